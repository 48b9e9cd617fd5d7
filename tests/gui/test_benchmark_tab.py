"""The Benchmark tab: its handlers called as plain functions on a workspace with a scripted model."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from rallebench import benchmark
from rallebench.bench.store import RunFolder
from rallebench.errors import UsageError
from rallebench.gui import form
from rallebench.gui.tabs import benchmark as tab
from rallebench.types import Action, Chain
from rallebench.workbench import Workbench

CHAIN = Chain("said", (Action("identity", "{question}"),))


class Telling(Workbench):
    """A workbench that remembers what it was asked to log; nothing goes to MLflow."""

    def __init__(self, workspace: Path) -> None:
        super().__init__(workspace)
        self.logged: list[str] = []

    def track_run(self, folder: RunFolder) -> str:
        self.logged.append(folder.name)
        return ""


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    """A workspace with one finished run, ``first``, of two questions."""
    made = Workbench(tmp_path)
    plan = benchmark.prepare(made.workspace, CHAIN, "starter-qa", limit=2, name="first", track=False)
    list(made.run(plan))
    return made


def values() -> list[Any]:
    held: list[Any] = [CHAIN.name, 1, ""]
    return held + [value for action in form.rows(CHAIN) for value in form.action_values(action).values()]


def run(bench: Workbench, limit: str = "3", batch_size: float | None = 20, name: str = "next") -> list[Any]:
    return tab.on_run(bench, "starter-qa", limit, batch_size, name, [], False, *values())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"limit": "0"}, "The number of questions is 0; give at least 1, or -1 for all."),
        ({"limit": "inf"}, "The number of questions is 'inf'; it must be a number, or empty."),
        ({"limit": "1.5"}, "The number of questions is 1.5; it must be a whole number."),
        ({"batch_size": 0}, "The batch size is 0; it must be at least 1."),
        ({"batch_size": -5}, "The batch size is -5; it must be at least 1."),
        ({"batch_size": 2.5}, "The batch size is 2.5; it must be a whole number."),
        ({"name": "x" * 300}, "is too long; use at most 100 characters."),
        ({"name": "first"}, "The run 'first' exists already"),
    ],
)
def test_a_wrong_setting_is_one_sentence_and_nothing_runs(
    bench: Workbench, wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as refusal:
        run(bench, **wrong)
    assert said in str(refusal.value) and len(str(refusal.value)) < 300
    assert [path.name for path in bench.workspace.runs.iterdir()] == ["first"]


def test_an_empty_batch_size_is_the_usual_one(bench: Workbench) -> None:
    run(bench, batch_size=None)
    deadline = time.monotonic() + 30
    while not bench.jobs["next"].done and time.monotonic() < deadline:
        time.sleep(0.02)
    assert bench.open_run("next").spec()["batch_size"] == 20


def test_a_run_that_has_ended_cannot_be_stopped(bench: Workbench) -> None:
    with pytest.raises(UsageError, match="The run 'first' has ended, so there is nothing to stop"):
        tab.on_stop(bench, "first")
    assert not bench.open_run("first").stop_asked()


def test_a_run_that_another_process_works_on_can_be_stopped(bench: Workbench) -> None:
    folder = bench.open_run("first")
    folder.set_state("running", done=1, total=2)
    assert "after the current batch" in tab.on_stop(bench, "first")
    assert folder.stop_asked()


def test_a_followed_run_that_is_taken_away_is_said_once(bench: Workbench) -> None:
    followed, shown, *_ = tab.on_tick(bench, "first", "", "all")
    shutil.rmtree(bench.workspace.runs / "first")
    followed, shown, progress, *results = tab.on_tick(bench, followed, shown, "all")
    assert "rb-error" in progress and "There is no run &#x27;first&#x27;" in progress
    assert results == ["", [], ""]
    assert tab.on_tick(bench, followed, shown, "all") == [gr.skip()] * 6


def test_whoever_comes_back_after_the_end_finds_the_run(bench: Workbench) -> None:
    assert tab.on_tick(bench, "", "", "all")[0] == "", "a run of an earlier process is opened in Runs"
    run(bench)
    deadline = time.monotonic() + 30
    while not bench.jobs["next"].done and time.monotonic() < deadline:
        time.sleep(0.02)
    followed, _, progress, report, questions, counted = tab.on_tick(bench, "", "", "all")
    assert followed == "next" and "3 of 3 questions" in progress
    assert "3 of 3 questions answered" in report and len(questions) == 3 and "3 questions" in counted


@pytest.mark.parametrize("track", [True, False])
def test_a_resumed_run_is_logged_to_mlflow_only_if_that_is_ticked(tmp_path: Path, track: bool) -> None:
    bench = Telling(tmp_path)
    plan = benchmark.prepare(bench.workspace, CHAIN, "starter-qa", limit=2, name="first", track=False)
    list(bench.run(plan))
    tab.on_resume(bench, "first", track)
    deadline = time.monotonic() + 30
    while not bench.jobs["first"].done and time.monotonic() < deadline:
        time.sleep(0.02)
    assert bench.logged == (["first"] if track else [])
