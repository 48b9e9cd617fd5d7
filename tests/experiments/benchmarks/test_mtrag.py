"""MTRAG: each form of a question retrieves for itself; with a model the answers are compared; wrong folders are one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_workspace import CommandLine, write_lines

PASSAGES = {
    "c1-0-40": "Titan is the largest moon of Saturn.",
    "c2-0-40": "Huygens discovered Titan in 1655.",
    "c3-0-40": "The Danube reaches the Black Sea.",
}
FORMS = {
    "lastturn": ["|user|: And who was it?", "|user|: Which sea?"],
    "rewrite": ["|user|: Who discovered Titan?", "|user|: Which sea does the Danube reach?"],
    "questions": [
        "|user|: What is the largest moon of Saturn?\n|user|: Who discovered it?",
        "|user|: Where does the Danube flow?\n|user|: Which sea?",
    ],
}
TASKS = ("a<::>2", "b<::>2")
GOLD = {"a<::>2": "c2-0-40", "b<::>2": "c3-0-40"}


def write_mtrag(folder: Path, domains: tuple[str, ...] = ("clapnq", "govt")) -> Path:
    for domain in domains:
        tasks = folder / "mtrag-human" / "retrieval_tasks" / domain
        (tasks / "qrels").mkdir(parents=True)
        lines = [f"{task}\t{passage}\t1" for task, passage in GOLD.items()]
        (tasks / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(lines))
        for form, texts in FORMS.items():
            rows = [{"_id": task, "text": text} for task, text in zip(TASKS, texts)]
            write_lines(tasks / f"{domain}_{form}.jsonl", rows)
        corpus = folder / "corpora" / "passage_level"
        corpus.mkdir(parents=True, exist_ok=True)
        rows = [{"_id": i, "title": "", "text": text, "url": ""} for i, text in PASSAGES.items()]
        write_lines(corpus / f"{domain}.jsonl", rows)
    targets = folder / "mtrag-human" / "generation_tasks"
    targets.mkdir(parents=True, exist_ok=True)
    rows = [{"task_id": t, "targets": [{"text": a}]} for t, a in zip(TASKS, ("Titan", "Black Sea"))]
    write_lines(targets / "reference.jsonl", rows)
    return folder


@pytest.mark.slow
def test_every_form_retrieves_beside_the_printed(cli: CommandLine, like_the_printed: None) -> None:
    folder = write_mtrag(cli.workspace / "mtrag")
    found: Any = cli.report("mtrag", f"data={folder}", run="m")
    assert len(found["parts"]) == 6
    rows = {row[0]: row[1:] for row in found["tables"][0]["rows"]}
    assert rows["bm25, rewritten query"][0] == 4 and rows["bm25, rewritten query"][1] == 1.0
    assert rows["bm25, last turn"][1] < 1.0  # "it" says nothing of Titan
    assert rows["BM25, last turn, printed"] == [777, 0.08, 0.15, 0.2, 0.27, 0.17, 0.16, 0.18, 0.21]
    assert found["means"]["bm25 rewrite"] == 1.0
    tests = cli.tests_in(found)
    assert len(tests) == 3, "three forms, by the headline alone"
    row = tests["bm25: rewritten query less last turn", found["headline"]]
    assert row[2]["n"] == 4, "the same question of two forms is one pair"
    assert row[2]["value"] == pytest.approx(1 - found["means"]["bm25 lastturn"])
    own = {row["settings"]["form"]: row for row in found["published"]}
    assert list(own) == ["lastturn", "rewrite"], "the full conversation is not printed"
    assert own["rewrite"]["cells"]["R@1"] == {"value": 100.0, "low": None, "high": None, "n": 4}
    asked = [line["steps"][0]["query"] for line in cli.episodes("m clapnq questions bm25")]
    assert asked[0] == "What is the largest moon of Saturn?\nWho discovered it?"


def test_with_a_model_the_answers_are_compared_with_mtrags_own(cli: CommandLine) -> None:
    folder = write_mtrag(cli.workspace / "mtrag", ("clapnq",))
    pairs = (f"data={folder}", "forms=rewrite", "k=1")
    found: Any = cli.report("mtrag", *pairs, llm="titan", run="m")
    (table,) = found["tables"]
    assert not any("printed" in row[0] for row in table["rows"])
    both = cli.report("mtrag", pairs[0], "forms=lastturn,rewrite", "k=1", llm="titan", run="both")
    answers = cli.tests_in(both)["bm25: rewritten query less last turn", "f1"]
    assert answers[2] == {"value": 0.0, "low": None, "high": None, "n": 2}, "it always says Titan"
    why = "ours are of 1 of them, the paper's of all 4 domains"
    assert why in table["note"] and found["published"][0]["why"] == why
    assert table["columns"] == ["system", "questions", "R@1", "nDCG@1", "f1", "rougel"]
    assert table["rows"][0][1:] == [2, 1.0, 1.0, 0.5, pytest.approx(0.5)]
    (folder / "mtrag-human" / "generation_tasks" / "reference.jsonl").unlink()
    found = cli.report("mtrag", *pairs, llm="titan", run="bare")
    assert found["tables"][0]["columns"] == ["system", "questions", "R@1", "nDCG@1"]
    assert any("no answer is scored" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("data", "has no mtrag-human/retrieval_tasks; fetch MTRAG's repository: `git clone"),
        ("corpus", "unpack clapnq.jsonl.zip"),
        ("form", "clapnq_lastturn.jsonl is missing"),
        ("forms", "forms"),
        ("targets", "has no task_id and targets"),
    ],
)
def test_what_is_wrong_is_one_sentence_at_once(cli: CommandLine, change: str, why: str) -> None:
    folder = write_mtrag(cli.workspace / "mtrag", ("clapnq",))
    pairs, llm = [f"data={folder}"], ""
    if change == "data":
        pairs = [f"data={cli.workspace / 'datasets'}"]
    elif change == "corpus":
        (folder / "corpora" / "passage_level" / "clapnq.jsonl").unlink()
    elif change == "form":
        tasks = folder / "mtrag-human" / "retrieval_tasks"
        (tasks / "clapnq" / "clapnq_lastturn.jsonl").unlink()
    elif change == "forms":
        pairs.append("forms=lastturns")
    else:
        llm = "titan"
        file = folder / "mtrag-human" / "generation_tasks" / "reference.jsonl"
        file.write_text(json.dumps({"task_id": "a<::>2"}) + "\n")
    assert why in cli.refused("mtrag", *pairs, llm=llm)
