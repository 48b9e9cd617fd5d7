"""Imported predictions are shown faithfully: unrecorded values are unknown and not scored, never 0."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from scored import score
from small_workspace import CommandLine, write_lines

from rallebench.analysis import deployment
from rallebench.core.types import Gold
from rallebench.engine.score import stored_cost
from rallebench.engine.store import RunFolder
from rallebench.render import costs
from rallebench.render import text as words

ANSWERS = "id,answer\nq1,Titan\nq2,wrong\nq3,Texas\n"
PAGES = "q1 Q0 p1 1 2.0 t\nq2 Q0 p9 1 2.0 t\nq3 Q0 p3 1 2.0 t\n"
BOTH = [
    {"id": "q1", "answer": "Titan", "pages": ["p1"]},
    {"id": "q2", "answer": "Triton"},
    {"id": "q3", "pages": ["p3"]},
]


@pytest.fixture
def imported_runs(cli: CommandLine, workspace: Path, tmp_path: Path) -> dict[str, RunFolder]:
    files = {
        "answers": ("a.csv", ANSWERS),
        "pages": ("p.trec", PAGES),
        "both": ("b.jsonl", "\n".join(map(json.dumps, BOTH))),
    }
    for name, (file, text) in files.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
        assert cli.predictions(tmp_path / file, name).code == 0
    return {name: RunFolder.open(workspace / "runs", name) for name in files}


def values(run: RunFolder, metric: str) -> dict[str, float | None]:
    lines = map(json.loads, (run.path / "scores.jsonl").read_text().splitlines())
    return {
        line["qid"]: line["value"]
        for line in lines
        if line["metric"] == metric and line["qid"] in ("q1", "q2", "q3")
    }


def test_a_line_is_not_scored_by_answers_or_pages_it_lacks(
    imported_runs: dict[str, RunFolder],
) -> None:
    assert values(imported_runs["both"], "em") == {"q1": 1.0, "q2": 1.0, "q3": None}
    assert values(imported_runs["both"], "Rprec") == {"q1": 1.0, "q2": None, "q3": 1.0}
    assert values(imported_runs["both"], "KILT-em") == {"q1": 1.0, "q2": None, "q3": None}


def test_a_line_without_pages_scores_0_as_in_kilts_scorer(cli: CommandLine, tmp_path: Path) -> None:
    lines = [
        {"id": "q1", "output": [{"answer": "Titan", "provenance": [{"wikipedia_id": "p1"}]}]},
        {"id": "q2", "output": [{"answer": "Triton", "provenance": []}]},
        {"id": "q3", "output": [{"answer": "Texas"}]},
    ]
    file = tmp_path / "kilt.jsonl"
    write_lines(file, lines)
    assert cli.predictions(file, "kilt").code == 0
    run = RunFolder.open(cli.workspace / "runs", "kilt")
    assert values(run, "Rprec") == {"q1": 1.0, "q2": 0.0, "q3": None}
    assert values(run, "KILT-em") == {"q1": 1.0, "q2": 0.0, "q3": None}
    empty = [{"id": line["id"], "output": [{"answer": "x", "provenance": []}]} for line in lines]
    write_lines(file, empty)
    assert cli.predictions(file, "closed").code == 0
    closed = RunFolder.open(cli.workspace / "runs", "closed").report()
    assert closed is not None and "Rprec" not in closed, "no line has pages"


def test_an_empty_cell_is_an_empty_answer_and_scores_0(cli: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "some.csv"
    file.write_text("id,answer\nq1,Titan\nq2,\n")
    assert cli.predictions(file, "some").code == 0
    assert values(RunFolder.open(cli.workspace / "runs", "some"), "em") == {
        "q1": 1.0,
        "q2": 0.0,
        "q3": None,
    }


@pytest.mark.parametrize(
    "metric",
    ["em", "seconds", "prompt_tokens", "length", "answer_in_context@5", "similarity:hashing"],
)
def test_pages_alone_are_no_empty_answers_and_cost_nothing_known(
    cli: CommandLine, imported_runs: dict[str, RunFolder], metric: str
) -> None:
    ran = cli("compare", "answers", "pages", "--metric", metric)
    assert ran.code == 2 and "is scored by" in ran.last and "in both" in ran.last


def test_answers_alone_are_compared_by_their_answers_only(
    cli: CommandLine, imported_runs: dict[str, RunFolder]
) -> None:
    found = cli.json("compare", "answers", "both", "--metric", "em")
    assert (found["n"], found["wins"], found["gained"]) == (2, 1, ["q2"])
    assert cli("compare", "answers", "both", "--metric", "Rprec").code == 2


@pytest.mark.parametrize(
    ("name", "metric", "reason"),
    [
        ("answers", "seconds", "the predictions do not record their cost"),
        ("answers", "answer_in_context@1", "the predictions contain no passage texts"),
        ("answers", "Rprec", "no retrieval is recorded"),
        ("pages", "em", "no answer is recorded"),
    ],
)
def test_a_question_says_why_a_metric_does_not_judge_it(
    imported_runs: dict[str, RunFolder], name: str, metric: str, reason: str
) -> None:
    episode = imported_runs[name].find_episode("q1")
    assert episode is not None
    (note,) = score([metric], [(episode, Gold(("Titan",)))])[metric].notes
    assert note == f"not scored: {reason}"


def test_an_imported_runs_cost_is_unknown(
    cli: CommandLine, imported_runs: dict[str, RunFolder]
) -> None:
    run = imported_runs["answers"]
    report = run.report()
    assert report is not None and report.cost is not None
    assert report.seconds_per_question is None and stored_cost(run).total.seconds is None
    assert costs.blocks(report.cost) == ("Cost unknown: imported predictions do not say it.",)
    ran = cli("compare", "answers", "both")
    seconds = next(line for line in ran.out.splitlines() if line.startswith("seconds "))
    assert seconds.split() == ["seconds", "unknown", "unknown"]
    assert set(deployment.costs(report).values()) == {None}
    first, *_ = cli("export", "answers", "--format", "jsonl").out.splitlines()
    assert json.loads(first)["seconds"] is None


def test_the_waterfall_of_imported_predictions_tells_only_what_is_recorded(
    cli: CommandLine, imported_runs: dict[str, RunFolder]
) -> None:
    runs = cli.json("analyse", "answers", "pages")["runs"]
    answers, pages = ({s: n for s, n in run["waterfall"].items() if n} for run in runs)
    assert answers == {"failed": 5, "not_recorded": 3}
    assert pages == {"retrieved": 2, "not_found": 6}
    assert "no retrieval is recorded" in cli("analyse", "answers").out


def test_nothing_is_claimed_of_a_corpus_by_imported_pages(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "wrong.trec").write_text("".join(f"q{n} Q0 p99 1 2.0 t\n" for n in range(1, 9)))
    assert cli.predictions(tmp_path / "wrong.trec", "wrong").code == 0
    out = cli("analyse", "wrong").out
    assert (
        "8  the gold was not retrieved within k; it is unknown whether the corpus holds it" in out
    )
    assert "in the corpus" not in out and "could not be looked at" not in out


def test_dollars_that_are_known_in_part_do_not_break_the_columns() -> None:
    from rallebench.engine.cost import run_cost

    known = run_cost([], [], {})
    unknown = {"a-model-with-a-very-long-name": "it has no price"}
    total = replace(known.total, usd=None, usd_known=0.5, usd_unknown_for=unknown)
    cost = replace(known, total=total)
    _, *table, note = words.table(costs.beside(["a", "b"], [cost, run_cost([], [], {})]))
    assert len({len(line) for line in table}) == 1
    assert (
        note
        == "* US dollars of a: $0.50 + unknown for a-model-with-a-very-long-name (it has no price)."
    )
