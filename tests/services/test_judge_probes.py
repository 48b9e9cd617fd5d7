"""Probes of a judge by scripted models that fall for them, or do not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from page_views import run_of
from small_workspace import make_workspace

from rallebench.core.audits import JudgeProbes
from rallebench.core.entries import LLMEntry
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.events import complete
from rallebench.services.workbench import Workbench
from rallebench.views.audits import probe_table, wrong_answers

GOOD, BAD = '{"truthfulness": 5, "relevance": 5}', '{"truthfulness": 1, "relevance": 1}'


@pytest.fixture
def judging(tmp_path: Path) -> Any:
    """A workbench with a run whose answers are "Titan", right once in eight."""
    bench = Workbench(make_workspace(tmp_path / "workspace"))
    run_of(bench, "first")
    yield bench
    bench.close()


def judge(bench: Workbench, name: str, replies: Mapping[str, str], default: str = BAD) -> str:
    """Add a scripted judge, and score the run by it."""
    entry = LLMEntry(backend="scripted", settings={"replies": dict(replies), "default": default})
    bench.workspace.save_llm(name, entry)
    complete(bench.runs.rescore("first", (f"truthfulness:{name}",)), lambda event: None)
    return f"truthfulness:{name}"


def test_a_scoring_job_fails_if_a_judge_gives_no_score(judging: Workbench) -> None:
    judging.workspace.save_llm(
        "mumbling", LLMEntry(backend="scripted", settings={"default": "well"})
    )
    scoring = judging.runs.rescore_or_fail("first", ("f1", "truthfulness:mumbling"))
    with pytest.raises(RalleError, match="'truthfulness:mumbling' gave no scores"):
        complete(scoring, lambda event: None)
    report = judging.runs.open("first").report()
    assert report is not None and "f1" in report.metrics, "what could be scored is kept"


def probe(bench: Workbench, column: str, *probes: str, **more: Any) -> JudgeProbes:
    wrong = wrong_answers(bench.runs.open("first"), column)
    return complete(bench.runs.probe("first", column, wrong, probes, **more), lambda event: None)


def test_a_judge_that_believes_praise_flips_for_wrong_answers_alone(judging: Workbench) -> None:
    column = judge(judging, "vain", {"certainly correct": GOOD})
    found = probe(judging, column, "praised", "padded", "seed")
    praised, padded, seed = found.probes
    assert (praised.flips.value, praised.flips.n, praised.to_right) == (1.0, 7, 7)
    assert praised.moved == 1.0 and praised.to_wrong == 0
    assert (padded.flips.value, padded.flips.n) == (0.0, 8) and seed.flips.value == 0.0
    assert "7 of 7 verdicts flip" in found.sentences[0] and found.truth == "em"
    assert [row[0] for row in probe_table(found).rows] == ["praised", "padded", "seed"]


def test_a_judge_that_goes_by_the_first_block_flips_with_the_order(judging: Workbench) -> None:
    # The swapped prompt asks for the relevance first.
    column = judge(judging, "first", {"one for relevance and one for truthfulness": GOOD})
    (order,) = probe(judging, column, "order").probes
    assert (order.flips.value, order.flips.n, order.to_right) == (1.0, 8, 8)
    assert {x.probe for x in probe(judging, column).probes} == {
        "order",
        "padded",
        "praised",
        "seed",
    }


def test_the_usual_pass_is_not_asked_again(judging: Workbench) -> None:
    column = judge(judging, "fair", {})
    folder = judging.runs.open("first").path / "judges"
    before = {path.name: (path / "episodes.jsonl").stat().st_mtime_ns for path in folder.iterdir()}
    probe(judging, column, "padded")
    after = {path.name: (path / "episodes.jsonl").stat().st_mtime_ns for path in folder.iterdir()}
    assert len(after) == 2 and before.items() <= after.items()


def test_a_judge_that_cannot_be_read_is_counted_not_flipped(judging: Workbench) -> None:
    column = judge(judging, "mumbling", {"asked above": "well"})
    (padded,) = probe(judging, column, "padded").probes
    assert (padded.flips.n, padded.missing, padded.flips.value) == (0, 8, None)
    assert "no answer could be probed" in probe(judging, column, "padded").sentences[0]


def test_a_sample_is_drawn_by_its_seed(judging: Workbench) -> None:
    column = judge(judging, "fair", {})
    found = probe(judging, column, "padded", sample=3, seed=1)
    assert found.probes[0].flips.n == 3 and "3 answers drawn by seed 1 of 8." in found.notes
    with pytest.raises(UsageError, match="A sample of 0 answers is empty"):
        probe(judging, column, "padded", sample=0)


def test_what_cannot_be_probed_is_one_sentence(judging: Workbench) -> None:
    column = judge(judging, "fair", {})
    with pytest.raises(UsageError, match="There is no probe 'louder'; choose order, padded"):
        probe(judging, column, "louder")
    with pytest.raises(UsageError, match="'em' is not a judge, so it cannot be probed"):
        probe(judging, "em", "padded")
    with pytest.raises(UsageError, match="has one order only"):
        probe(judging, "rgb-errors:fair", "order")
    assert {x.probe for x in probe(judging, "rgb-errors:fair").probes} == {
        "padded",
        "praised",
        "seed",
    }
