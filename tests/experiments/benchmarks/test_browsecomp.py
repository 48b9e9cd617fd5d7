"""BrowseComp-Plus: evidence and gold documents by retrieval alone and by agents; encrypted and wrong files are one sentence."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from small_workspace import CommandLine, add_llm, write_lines

DOCUMENTS = {
    "1": "Christiaan Huygens was born in The Hague and discovered Titan.",
    "2": "Titan is the largest moon of Saturn.",
    "3": "The Danube flows from Ulm into the Black Sea.",
    "4": "Ulm has the highest church tower.",
}


def documents(*ids: str) -> list[dict[str, str]]:
    return [{"docid": i, "text": DOCUMENTS[i], "url": ""} for i in ids]


def question(qid: str, query: str, answer: Any, evidence: list[Any], gold: list[Any]) -> Any:
    lists = {"gold_docs": gold, "evidence_docs": evidence, "negative_docs": documents("4")}
    return {"query_id": qid, "query": query, "answer": answer, **lists}


MOON, RIVER = "Who discovered the largest moon of Saturn?", "Which sea does the river of Ulm reach?"
ROWS = [
    question("7", MOON, "Huygens", documents("1", "2"), documents("1")),
    question("9", RIVER, "Black Sea", documents("3"), documents("3")),
]
MODEL = {
    "replies": {
        r"(?s)largest moon of Saturn\?\s*\nThought 1:.*Action 1:$": "Search[largest moon of Saturn]",
        r"(?s)Action 2:$": "Finish[Christiaan Huygens]",
        r"(?s)Action 1:$": "Finish[North Sea]",
    },
    "default": "Hm.",
}


@pytest.fixture
def workspace(workspace: Path) -> Path:
    add_llm(workspace, "agent", **MODEL)
    (workspace / "data").mkdir()
    write_lines(workspace / "data" / "browsecomp_plus_decrypted.jsonl", ROWS)
    write_lines(workspace / "corpus.jsonl", documents(*DOCUMENTS))
    return workspace


def pairs(cli: CommandLine, *more: str) -> tuple[str, ...]:
    return (f"data={cli.workspace}", f"corpus={cli.workspace / 'corpus.jsonl'}", *more)


def test_retrieval_is_judged_by_evidence_and_gold(cli: CommandLine, like_the_printed: None) -> None:
    found: Any = cli.report("browsecomp", *pairs(cli), run="b")
    (table,) = found["tables"]
    names = [f"{kind} {m}" for kind in ("evidence", "gold") for m in ("R@5", "nDCG@10")]
    assert table["columns"] == ["retriever", *names]
    ours, *printed = table["rows"]
    assert ours[0] == "bm25" and [cell["value"] for cell in ours[1:4:2]] == [1.0, 1.0]
    assert ours[2]["value"] <= 1.0 and printed[0] == ["BM25, printed", 0.012, 0.016, 0.014, 0.017]


def test_agents_search_the_fixed_corpus_and_what_they_saw_counts(
    cli: CommandLine, like_the_printed: None
) -> None:
    found: Any = cli.report("browsecomp", *pairs(cli, "k=2"), llm="agent", run="b")
    assert [part["label"] for part in found["parts"]] == ["bm25", "react agent bm25"]
    ours, first, *_ = found["tables"][1]["rows"]
    assert (ours[0], ours[1]["value"]) == ("react agent bm25", 0.5)
    assert ours[2]["value"] == ours[3]["value"] == 0.5 and ours[4] == "0.50"
    assert first[4] == "10.35"
    assert first[:3] == ["gpt-4.1, BM25, printed", 0.1458, 0.1642]
    retrieval, own = found["published"]
    cells = {"evidence R@5", "evidence nDCG@10", "gold R@5", "gold nDCG@10"}
    assert set(retrieval["cells"]) == cells
    assert own["settings"] == {"retriever": "bm25"} and "accuracy" not in own["cells"]
    assert (own["cells"]["recall"]["value"], own["cells"]["searches"]["value"]) == (50.0, 0.5)
    agent = json.loads((cli.workspace / "runs" / "b react agent bm25" / "run.json").read_text())
    assert agent["spec"]["settings"]["agent"]["environment"]["name"] == "corpus-tools"


def test_two_questions_have_no_printed_figures_beside_them(cli: CommandLine) -> None:
    found: Any = cli.report("browsecomp", *pairs(cli, "k=2"), llm="agent", run="b")
    why = "ours are of 2 questions, the paper's of 830"
    assert {row["why"] for row in found["published"]} == {why}
    assert [len(table["rows"]) for table in found["tables"]] == [1, 1]
    assert f"The printed figures are left out: {why}." in found["tables"][0]["note"]


def test_retrievers_and_agents_are_tested_against_each_other(cli: CommandLine) -> None:
    more = ("kinds=bm25,numpy-flat", "encoder=hashing")
    found: Any = cli.report("browsecomp", *pairs(cli, *more, "k=2"), llm="agent", run="b")
    tests = cli.tests_in(found)
    searched = "retrieval: numpy-flat less bm25"
    acted = "agents: react agent numpy-flat less react agent bm25"
    assert list(tests) == [
        *((searched, f"{kind} R@5") for kind in ("evidence", "gold")),
        *((acted, name) for name in ("accuracy", "evidence recall")),
    ]
    assert tests[acted, "accuracy"][2]["n"] == 2 and tests[acted, "accuracy"][2]["value"] == 0.0


def test_an_agent_without_an_answer_is_counted_as_wrong(cli: CommandLine) -> None:
    found: Any = cli.report("browsecomp", *pairs(cli, "steps=1"), llm="echo", run="b")
    ours = found["tables"][1]["rows"][0]
    assert (ours[1]["value"], ours[1]["n"], ours[4]) == (0.0, 2, "0.00")


def test_the_plan_of_an_index_that_is_not_built_names_runs_and_build(cli: CommandLine) -> None:
    more = ("kinds=bm25,numpy-flat", "encoder=hashing", "workflows=react,function-calling")
    flags = ("--plan", "--json")
    planned = cli.suite("browsecomp", *pairs(cli, *more), llm="agent", flags=flags).json
    agents = [f"{w} agent" for w in ("react", "function-calling")]
    labels = [[kind, *(f"{a} {kind}" for a in agents)] for kind in ("bm25", "numpy-flat")]
    assert [run["label"] for run in planned["plan"]] == [
        label for of_kind in labels for label in of_kind
    ]
    assert {run["questions"] for run in planned["plan"]} == {2}
    assert all(run["generations"]["low"] > 0 for run in planned["plan"] if run["llms"])
    assert planned["indexes"]["to_build"] == 2 and "8 passages" in planned["indexes"]["costs"]
    assert "It uses 2 indexes; 2 must be built first." in planned["notes"]
    assert not any("depends on its answers" in note for note in planned["notes"])
    assert not (cli.workspace / "experiments").exists()


def test_indexes_that_exist_are_searched(cli: CommandLine) -> None:
    cli.json("index", "--corpus", cli.workspace / "corpus.jsonl", "--name", "own", "--kind", "bm25")
    file = cli.workspace / "data" / "browsecomp_plus_decrypted.jsonl"
    found = cli.report("browsecomp", f"data={file}", "retriever=own", "depth=100", run="b")
    assert "evidence R@100" in found["tables"][0]["columns"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("encrypted", "browsecomp_plus_decrypted.jsonl of scripts_build_index/decrypt_dataset.py"),
        ("no corpus", "The corpus is not named; fetch it with `python -c"),
        ("no file", "has no data/browsecomp_plus_decrypted.jsonl; make it with `git clone"),
        ("workflow", "workflows=chain-of-thought: choose of"),
        ("retriever", "nobody"),
    ],
)
def test_what_is_wrong_is_one_sentence_at_once(cli: CommandLine, change: str, why: str) -> None:
    file, settings, llm = cli.workspace / "data" / "browsecomp_plus_decrypted.jsonl", pairs(cli), ""
    if change == "encrypted":
        query = base64.b64encode(ROWS[0]["query"].encode()).decode()
        write_lines(file, [{**ROWS[0], "query": query}])
    elif change == "no corpus":
        settings = settings[:1]
    elif change == "no file":
        settings = (f"data={cli.workspace / 'chains'}", settings[1])
    elif change == "workflow":
        settings, llm = (*settings, "workflows=chain-of-thought"), "agent"
    else:
        settings = (*settings, "retriever=nobody")
    assert why in cli.refused("browsecomp", *settings, llm=llm)
