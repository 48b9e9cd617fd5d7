"""BEIR's sets by folder: indexed, searched and scored, beside the printed figures; wrong folders are one sentence."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from small_workspace import CommandLine, write_lines

DOCUMENTS = {
    "d1": "Titan is the largest moon of Saturn.",
    "d2": "Triton is the largest moon of Neptune.",
    "d3": "The Danube reaches the Black Sea.",
    "d4": "Charon is the largest moon of Pluto.",
    "q3": "Which river reaches the Black Sea?",
}
QUERIES = {"q1": "the largest moon of Saturn", "q2": "the moon of Pluto", "q3": DOCUMENTS["q3"]}
QRELS = {("q1", "d1"): 2, ("q1", "d2"): 1, ("q2", "d4"): 1, ("q2", "d1"): 0, ("q3", "d3"): 1}


def write_set(folder: Path, name: str) -> Path:
    path = folder / name
    (path / "qrels").mkdir(parents=True)
    rows = [{"_id": i, "title": "", "text": text} for i, text in DOCUMENTS.items()]
    write_lines(path / "corpus.jsonl", rows)
    write_lines(path / "queries.jsonl", [{"_id": i, "text": t} for i, t in QUERIES.items()])
    lines = [f"{query}\t{document}\t{score}" for (query, document), score in QRELS.items()]
    text = "\n".join(["query-id\tcorpus-id\tscore", *lines])
    (path / "qrels" / "test.tsv").write_text(text + "\n")
    return path


def gains(ranked: list[str], relevant: dict[str, int]) -> float:
    found = sum(relevant.get(i, 0) / math.log2(n + 1) for n, i in enumerate(ranked[:10], 1))
    best = sorted(relevant.values(), reverse=True)
    return found / sum(grade / math.log2(n + 1) for n, grade in enumerate(best, 1))


@pytest.mark.slow
def test_sets_are_scored_beside_printed_figures(cli: CommandLine, like_the_printed: None) -> None:
    folder = cli.workspace / "beir"
    write_set(folder, "scifact")
    write_set(folder, "nfcorpus")
    found: Any = cli.report("beir", f"data={folder}", "depth=10", run="b")
    (table,) = found["tables"]
    heads = ["bm25 nDCG@10", "bm25 R@10", "BM25, printed"]
    heads += ["BM25 multifield, printed", "BM25 flat, printed"]
    assert table["columns"] == ["set", "questions", *heads]
    nfcorpus, scifact, mean = table["rows"]
    assert (scifact[0], scifact[1], scifact[4:]) == ("scifact", 3, [0.665, 0.6647, 0.6789])
    assert nfcorpus[4:] == [0.325, 0.3254, 0.3218] and mean[0] == "mean of the sets"
    expected = []
    for line in cli.episodes("b scifact bm25"):
        ids = [hit["page_id"] for hit in line["steps"][0]["reply"]["hits"]]
        relevant = {d: score for (q, d), score in QRELS.items() if q == line["qid"] and score}
        assert ids[0] == "q3" if line["qid"] == "q3" else "q3" not in ids[:1]
        expected.append(gains([i for i in ids if i != line["qid"]], relevant))
    assert scifact[2]["value"] == pytest.approx(sum(expected) / 3)
    assert mean[2] == pytest.approx(scifact[2]["value"]) and scifact[3]["value"] == 1.0
    assert found["means"]["scifact"]["bm25"] == pytest.approx(sum(expected) / 3)
    own = {row["system"]: row for row in found["published"]}
    cell = own["scifact, bm25"]["cells"]["BM25 flat"]
    assert cell["value"] == pytest.approx(100 * sum(expected) / 3) and len(own) == 2


def test_one_folder_of_another_name_is_searched_by_indexes_that_exist(cli: CommandLine) -> None:
    path = write_set(cli.workspace, "mine")
    cli.json("index", "--corpus", path, "--name", "own", "--kind", "bm25")
    found = cli.report("beir", f"data={path}", "retriever=own,random:own", run="b")
    assert [part["label"] for part in found["parts"]] == ["mine own", "mine random:own"]
    (row,) = found["tables"][0]["rows"]
    assert row[-3:] == [None] * 3 and len(row) == 9
    assert any("No figure is printed for mine" in note for note in found["notes"])
    tests = cli.tests_in(found)
    assert list(tests) == [("mine: random:own less own", name) for name in ("nDCG@10", "R@100")]
    means, row = found["means"]["mine"], tests["mine: random:own less own", "nDCG@10"]
    assert row[2]["value"] == pytest.approx(means["random:own"] - means["own"]) and row[2]["n"] == 3


def test_a_folder_that_only_is_called_as_a_set_has_no_printed_figure(cli: CommandLine) -> None:
    path = write_set(cli.workspace, "scifact")
    found = cli.report("beir", f"data={path}", "depth=10", run="b")
    (row,), (own,) = found["tables"][0]["rows"], found["published"]
    why = "ours are of 3 questions, the paper's of 300"
    assert row[-3:] == [None] * 3 and (own["why"], own["cells"]) == (why, {})
    assert f"scifact: the printed figures are left out: {why}." in found["notes"]


@pytest.mark.parametrize(
    ("pairs", "why"),
    [
        (["data=EMPTY"], "is not a folder in BEIR's form and holds none"),
        (["data=ALL", "datasets=scifacts"], "has no set 'scifacts'; it has nfcorpus, scifact"),
        (["data=ALL", "retriever=tiny"], "searches one corpus, and 2 sets are named"),
        (["data=ALL", "kinds="], "No kind of index is named"),
        (["data=ALL", "datasets=scifact", "retriever=nobody"], "There is no index 'nobody'"),
        (["data=ALL", "kinds=bm52"], "bm52"),
        ([], "The setting data is empty"),
        (["data=BARE"], "contains no corpus.jsonl"),
    ],
)
def test_what_is_wrong_is_one_sentence_before_anything_runs(
    cli: CommandLine, pairs: list[str], why: str
) -> None:
    (cli.workspace / "EMPTY").mkdir()
    for name in ("scifact", "nfcorpus"):
        write_set(cli.workspace / "ALL", name)
    (write_set(cli.workspace, "BARE") / "corpus.jsonl").unlink()
    filled = [pair.replace("data=", f"data={cli.workspace}/") for pair in pairs]
    assert why in cli.refused("beir", *filled)


def test_judged_queries_that_are_missing_or_without_a_relevant_passage_are_noted_and_scored(
    cli: CommandLine,
) -> None:
    path = write_set(cli.workspace / "beir", "mine")
    with open(path / "queries.jsonl", "a") as queries:
        queries.write('{"_id": "q4", "text": "the moon of Pluto"}\n')
    with open(path / "qrels" / "test.tsv", "a") as qrels:
        qrels.write("q4\td4\t0\nq5\td1\t1\n")
    report: Any = cli.report("beir", f"data={path}", "depth=10", run="b")
    assert (
        "mine: Only judged 0 in test.tsv, so scored 0 as by trec_eval: 1 question (q4)."
        in (report["notes"])
    )
    assert any("so not scored: 1 id (q5)" in note for note in report["notes"])
    (row,) = report["tables"][0]["rows"]
    assert (row[1], row[2]["n"]) == (4, 4) and row[3]["value"] == 0.75
