"""Times are compared batch by batch, and not at all if runs shared the machine or used the reply cache."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_workspace import CommandLine, make_workspace, read_lines, write_lines

from rallebench.analysis.ranking import compare_many
from rallebench.analysis.timing import IN_PARALLEL, REPLAYED, timing_notes
from rallebench.core.errors import BadFileError
from rallebench.core.report import Clusters, RunReport
from rallebench.engine.clusters import BATCH, timed_clusters
from rallebench.engine.score import stored_timings
from rallebench.engine.store import RunFolder

ARTICLES = Clusters("question", {f"q{i}": i for i in range(60)})


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("times") / "workspace")


def batches(size: int, at: float = 0.1) -> dict[str, list[Any]]:
    """The timings of 60 questions, asked ``size`` at a time."""
    return {f"q{i}": [("generate", at + i // size, size)] if size > 1 else [] for i in range(60)}


def began(run: RunFolder, when: str, seconds: float, *, replayed: bool = False) -> None:
    """Give a run another start and duration."""
    spec = json.loads((run.path / "run.json").read_text())
    (run.path / "run.json").write_text(json.dumps({**spec, "created": when}))
    report = run.report()
    assert report is not None and report.cost is not None
    cost = report.cost
    uncached = replace(cost.uncached, model_calls=0 if replayed else cost.total.model_calls)
    run.write_report(replace(report, seconds=seconds, cost=replace(cost, uncached=uncached)))


def test_questions_of_one_batch_are_one_unit_of_time() -> None:
    units = timed_clusters(ARTICLES, [batches(20)])
    assert (units.by, len(set(units.of.values())), units.largest) == (BATCH, 3, 20)
    assert timed_clusters(ARTICLES, [batches(1)]) is ARTICLES, "asked one by one"
    both = timed_clusters(ARTICLES, [batches(20), batches(30)])
    assert len(set(both.of.values())) == 1, "a batch of either run joins its questions"


def test_batches_are_the_unit_even_if_articles_are_fewer() -> None:
    few = Clusters("gold pages", {f"q{i}": i % 12 for i in range(60)})
    units = timed_clusters(few, [batches(3)])
    assert (units.by, len(set(units.of.values()))) == (BATCH, 20)
    assert timed_clusters(few, [batches(1)]) is few, "asked one by one"


def test_times_of_three_batches_have_no_interval_and_no_p(cli: CommandLine) -> None:
    for name in ("one", "two"):
        seed = ("--set", f"2.seed={len(name + name)}", "--set", f"2.max_tokens={ord(name[0])}")
        assert cli.run(name, "titan", "--batch-size", 3, *seed).code == 0
    runs = [RunFolder.open(cli.workspace / "runs", name) for name in ("one", "two")]
    seconds = (runs[0].report() or RunReport()).metrics["seconds"]
    assert seconds.value is not None and seconds.low is None is seconds.high
    assert all(stored_timings(runs[0]).values())
    compared = compare_many(runs, "seconds")
    assert compared.clusters.by == BATCH
    pair = compared.against["two"]
    assert pair.p is None and pair.low is None and pair.note == "too few articles"
    by_em = compare_many(runs)
    assert by_em.clusters.by == "gold pages" and by_em.cells["em"][0].low is not None
    printed = cli("compare", "one", "two", "--metric", "seconds").out
    assert "batches (the questions of a batch share one measured time)" in printed
    assert "too few batches" in cli.run("three", "titan", "--batch-size", 3).out


def test_times_of_runs_that_went_on_together_are_not_compared(cli: CommandLine) -> None:
    runs = []
    for name in ("first", "second", "third"):
        assert cli.run(name).code == 0
        runs.append(RunFolder.open(cli.workspace / "runs", name))
    first, second, third = runs
    began(first, "2011-01-01T10:00:00+0000", 60)
    began(second, "2011-01-01T11:00:00+0000", 60)
    began(third, "2011-01-01T12:00:00+0000", 60)
    assert timing_notes([first, second]) == []
    assert compare_many([first, second]).is_printed("seconds")
    began(third, "2011-01-01T11:00:30+0000", 60)
    assert timing_notes([first, second]) == [IN_PARALLEL], "a run that is not compared"
    compared = compare_many([first, second], "seconds")
    assert IN_PARALLEL in compared.warnings
    assert not compare_many([first, second]).is_printed("seconds")
    began(third, "2011-01-01T12:00:00+0000", 60)
    began(second, "2011-01-01T11:00:00+0000", 60, replayed=True)
    assert timing_notes([first, second]) == [REPLAYED]


@pytest.mark.parametrize(
    "damage", [{"seconds": -1}, {"seconds": "1"}, {"batch": 0}, {"batch": 2.5}, {"kind": None}]
)
def test_damaged_times_are_named_with_their_mend(cli: CommandLine, damage: dict[str, Any]) -> None:
    assert cli.run("timed", "titan", "--batch-size", 3).code == 0
    run = RunFolder.open(cli.workspace / "runs", "timed")
    lines = read_lines(run.path / "costs.jsonl")
    lines[0]["steps"][0] |= damage
    write_lines(run.path / "costs.jsonl", lines)
    with pytest.raises(BadFileError, match=r"costs\.jsonl was damaged .*; resume the run"):
        stored_timings(run)
    shutil.rmtree(run.path)
