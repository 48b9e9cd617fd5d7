"""A run over unanswerable questions: its scores, its verdicts, and the words beside each question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_workspace import CommandLine, add_llm, chain, generate, retrieve, write_lines

from rallebench.engine.store import RunFolder
from rallebench.services.workbench import Workbench
from rallebench.views.run_questions import questions, read_stages

RECORDS = (
    {"id": "q1", "input": "Which moon of Saturn has air?", "output": [{"answer": "Titan"}]},
    {"id": "n1", "input": "Which ring has air?", "output": [], "unanswerable": True},
    {"id": "n2", "input": "Which comet has air?", "unanswerable": True},
)


@pytest.fixture
def declining_run(cli: CommandLine) -> CommandLine:
    """A run whose model answers one unanswerable question and declines the other."""
    folder = cli.workspace
    add_llm(
        folder, "careful", replies={"Saturn": "Titan", "ring": "Cassini"}, default="I don't know."
    )
    content = chain("careful", retrieve(), generate("{question}", "careful"))
    (folder / "chains" / "careful.json").write_text(json.dumps(content))
    write_lines(folder / "datasets" / "air.jsonl", RECORDS)
    return cli


RUN = ("run", "--no-mlflow", "--chain", "careful", "--dataset", "air", "--name", "air")


def test_the_scores_count_declining_and_name_the_metrics_that_cannot(
    declining_run: CommandLine,
) -> None:
    ran = declining_run(*RUN)
    assert (
        "Without the 2 unanswerable questions, since they cannot count that declining is right: rougel"
        in ran.out
    )
    report = RunFolder.open(declining_run.workspace / "runs", "air").report()
    assert report is not None and report.unanswerable == 2
    means = {name: (mean.value, mean.n) for name, mean in report.metrics.items()}
    assert means["em"] == means["f1"] == means["accuracy"] == (pytest.approx(2 / 3), 3)
    assert (means["em_answerable"], means["em_unanswerable"]) == ((1.0, 1), (0.5, 2))
    assert means["rougel"][1] == 1
    again = declining_run.json(*RUN, "--resume")
    assert again["metrics"]["em"]["n"] == 3


def test_each_question_has_its_verdict_and_stage(declining_run: CommandLine) -> None:
    assert declining_run(*RUN).code == 0
    bench = Workbench(declining_run.workspace)
    run = bench.runs.open("air")
    rows = [(row.kind, row.gold) for row in questions(bench.workspace, run)]
    declining = "declining is right"
    assert rows == [("right", "Titan"), ("wrong", declining), ("right", declining)]
    read_stages(bench.workspace, run)
    stages = [row.stage for row in questions(bench.workspace, run)]
    assert stages[1:] == ["not_declined", "declined"]
    (lost,) = declining_run.json("analyse", "air")["runs"]
    assert (lost["waterfall"]["declined"], lost["waterfall"]["not_declined"]) == (1, 1)
    printed = declining_run("analyse", "air").out
    assert "1  the answer declines, which is right: the question has no answer" in printed


def test_questions_added_to_a_set_stay_unanswerable(
    declining_run: CommandLine, tmp_path: Path
) -> None:
    picked = declining_run(
        "import",
        declining_run.workspace / "datasets" / "air.jsonl",
        "--kind",
        "dataset",
        "--name",
        "again",
    )
    assert (
        "1 with answers, 0 with gold pages, 2 where declining is right, 0 with neither"
        in picked.out
    )
    both = [
        (declining_run.workspace / "datasets" / f"{name}.jsonl").read_text()
        for name in ("air", "again")
    ]
    assert both[0] == both[1]
