"""The Benchmark tab: its handlers called as plain functions on a workspace with a scripted model."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import gradio as gr
import pytest
from performing import prepared

from rallebench.analysis.runs import waterfall_of
from rallebench.core.errors import StoppedError, UsageError
from rallebench.core.events import Failed, Progress
from rallebench.core.types import Action, Chain
from rallebench.engine.store import RunFolder
from rallebench.gui import form, views_questions
from rallebench.gui.tabs import benchmark as tab
from rallebench.gui.works import baselines_of
from rallebench.services.workbench import Workbench

CHAIN = Chain("said", (Action("identity", "{question}"),))


class Telling(Workbench):
    """A workbench that remembers what it was asked to log; nothing goes to MLflow."""

    def __init__(self, workspace: Path) -> None:
        super().__init__(workspace)
        self.logged: list[str] = []
        self.tracking.track_run = self.track_run  # type: ignore[method-assign]

    def track_run(self, folder: RunFolder) -> str:
        self.logged.append(folder.name)
        return ""


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    """A workspace with one finished run, ``first``, of two questions."""
    made = Workbench(tmp_path)
    plan = prepared(made.workspace, CHAIN, "starter-qa", limit=2, name="first", track=False)
    list(made.runs.run(plan))
    return made


def values() -> list[Any]:
    held: list[Any] = [CHAIN.name, 1, ""]
    return held + [
        value for action in form.rows(CHAIN) for value in form.action_values(action).values()
    ]


def run(
    bench: Workbench, limit: str = "3", batch_size: float | None = 20, name: str = "next"
) -> list[Any]:
    return tab.on_run(bench, "starter-qa", limit, batch_size, name, [], False, *values())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"limit": "0"}, "The number of questions is 0; give at least 1, or -1 for all."),
        ({"limit": "-3"}, "The number of questions is -3; give at least 1, or -1 for all."),
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
    while not bench.jobs.get("run", "next").done and time.monotonic() < deadline:
        time.sleep(0.02)
    assert bench.runs.open("next").spec()["batch_size"] == 20


def test_a_run_that_has_ended_cannot_be_stopped(bench: Workbench) -> None:
    with pytest.raises(UsageError, match="The run 'first' has ended, so there is nothing to stop"):
        tab.on_stop(bench, "first")
    assert not bench.runs.open("first").stop_asked()


def test_a_run_that_another_process_works_on_can_be_stopped(bench: Workbench) -> None:
    folder = bench.runs.open("first")
    folder.set_state("running", done=1, total=2)
    with folder.locked():
        assert "after the current batch" in tab.on_stop(bench, "first")
    assert folder.stop_asked()


def test_a_followed_run_that_is_taken_away_is_said_once(bench: Workbench) -> None:
    followed, shown, *_ = tab.on_tick(bench, "first", "", "all")
    shutil.rmtree(bench.workspace.runs / "first")
    followed, shown, progress, *results = tab.on_tick(bench, followed, shown, "all")
    assert "rb-error" in progress and "There is no run &#x27;first&#x27;" in progress
    assert results == ["", "", [], ""]
    assert tab.on_tick(bench, followed, shown, "all") == [gr.skip()] * 7


def test_whoever_comes_back_after_the_end_finds_the_run(bench: Workbench) -> None:
    assert tab.on_tick(bench, "", "", "all")[0] == "", (
        "a run of an earlier process is opened in Runs"
    )
    run(bench)
    deadline = time.monotonic() + 30
    while not bench.jobs.get("run", "next").done and time.monotonic() < deadline:
        time.sleep(0.02)
    followed, _, progress, report, falls, questions, counted = tab.on_tick(bench, "", "", "all")
    assert followed == "next" and "3 of 3 questions" in progress
    assert (
        "3 of 3 questions answered" in report and len(questions) == 3 and "3 questions" in counted
    )
    assert "Where questions were lost" in falls


@pytest.mark.parametrize("track", [True, False])
def test_a_resumed_run_is_logged_to_mlflow_only_if_that_is_ticked(
    tmp_path: Path, track: bool
) -> None:
    bench = Telling(tmp_path)
    plan = prepared(bench.workspace, CHAIN, "starter-qa", limit=2, name="first", track=False)
    list(bench.runs.run(plan))
    tab.on_resume(bench, "first", track)
    deadline = time.monotonic() + 30
    while not bench.jobs.get("run", "first").done and time.monotonic() < deadline:
        time.sleep(0.02)
    assert bench.logged == (["first"] if track else [])


# baselines and the waterfall

READING = Chain(
    "read",
    (
        Action("retrieve", "{question}", target="starter-bm25", k=2),
        Action("identity", "{response[0]}"),
    ),
)


@pytest.fixture
def reading(tmp_path: Path) -> Workbench:
    """A workspace with a finished run, ``found``, that retrieves."""
    made = Workbench(tmp_path)
    list(
        made.runs.run(
            prepared(made.workspace, READING, "starter-qa", limit=3, name="found", track=False)
        )
    )
    return made


def wait(bench: Workbench) -> None:
    deadline = time.monotonic() + 30
    while baselines_of(bench).going_on() and time.monotonic() < deadline:
        time.sleep(0.02)


def test_reference_lines_are_run_beside_the_followed_run_and_stand_in_its_report(
    reading: Workbench,
) -> None:
    assert "closed book" not in tab.on_tick(reading, "found", "", "all")[3]
    progress = tab.on_references(reading, "found", False)
    assert "found closed-book" in progress
    followed = tab.on_tick(reading, "", "", "all")[0]
    assert followed == "found", "whoever comes back follows the run, not its line"
    wait(reading)
    followed, mark, progress, report, *_ = tab.on_tick(reading, "", "", "all")
    assert followed == "found" and progress.count("baseline") == 3
    for column in ("closed book", "random passage", "oracle passage", "retrieval ceiling"):
        assert f'rb-line">{column}</th>' in report
    assert tab.on_tick(reading, followed, mark, "all") == [gr.skip()] * 7


def test_lines_that_are_running_are_shown_while_the_report_stays_and_stop_ends_them(
    reading: Workbench,
) -> None:
    _, mark, *_ = tab.on_tick(reading, "found", "", "all")
    paused = Event()

    def lines() -> Iterator[Any]:
        yield Progress("closed-book", 1, 3)
        yield Failed("random", "The language model 'big' is not loaded.")
        paused.wait(10)
        yield Progress("oracle", 1, 3)

    following = baselines_of(reading).follow("found", "found", lines)
    assert [next(following).task, next(following).task] == ["closed-book", "random"]
    _, mark, progress, *_ = tab.on_tick(reading, "found", mark, "all")
    assert "found closed-book" in progress and "1 of 3 questions" in progress
    assert "found random: The language model &#x27;big&#x27; is not loaded." in progress
    assert tab.on_tick(reading, "found", mark, "all")[3:] == [gr.skip()] * 4
    assert "Stopping the baselines of found" in tab.on_stop(reading, "found")
    paused.set()
    with pytest.raises(StoppedError):
        list(following)
    wait(reading)
    assert "was stopped; start it again" in tab.on_tick(reading, "found", "", "all")[2]


def test_reference_lines_of_no_run_or_of_one_that_goes_on_are_refused(bench: Workbench) -> None:
    with pytest.raises(UsageError, match="No run is followed"):
        tab.on_references(bench, "", False)
    with pytest.raises(UsageError, match="The chain 'said' retrieves nothing"):
        tab.on_references(bench, "first", False)
    folder = bench.runs.open("first")
    folder.set_state("running", done=1, total=2)
    with folder.locked(), pytest.raises(UsageError, match="The run 'first' goes on"):
        tab.on_references(bench, "first", False)


def test_a_click_on_a_stage_lists_its_questions(reading: Workbench) -> None:
    falls = tab.on_tick(reading, "found", "", "all")[4]
    stages = waterfall_of(reading.runs.open("found"), reading.workspace).counts()
    clicked = {
        stage: tab.on_stage(gr.EventData(None, {"stage": stage}))
        for stage, count in stages.items()
        if count
    }
    assert clicked and sum(stages.values()) == 3
    for stage, name in clicked.items():
        assert f'data-stage="{stage}"' in falls and name in views_questions.STAGE_FILTERS
        rows, said = tab.on_filter(reading, "found", name)
        assert len(rows) == stages[stage] and f"{len(rows)} question" in said
    assert tab.on_stage(gr.EventData(None, {"stage": "nonsense"})) == gr.skip()


def test_lines_are_compared_on_the_questions_that_all_have_answered_and_the_report_says_so(
    reading: Workbench,
) -> None:
    tab.on_references(reading, "found", False)
    wait(reading)
    path = reading.workspace.runs / "found oracle" / "scores.jsonl"
    kept = path.read_text().replace(
        '"metric": "em", "value": 0.0', '"metric": "em", "value": null', 1
    )
    path.write_text(kept)
    report = tab.on_tick(reading, "found", "", "all")[3]
    (row,) = [row for row in report.split("<tr") if "<code>em</code>" in row]
    assert (
        "on the 2 compared" in row and row.count("n = 2") == 4 and '<td class="num">3</td>' in row
    )
    assert report.count("on the 2 compared") == 1, "the other metrics keep all three"


def test_a_run_that_retrieved_nothing_and_is_not_scored_by_it_says_nothing_of_what_was_retrieved(
    bench: Workbench,
) -> None:
    plan = prepared(
        bench.workspace, CHAIN, "starter-qa", limit=2, metrics=("em",), name="said", track=False
    )
    list(bench.runs.run(plan))
    at = [views_questions.QUESTION_COLUMNS.index(name) for name in ("EM", "R-prec", "gold rank")]
    cells = {
        name: [
            [row[i] for i in at]
            for row in views_questions.question_rows(bench.runs.open(name), "all")
        ]
        for name in ("said", "first")
    }
    assert cells["said"] == [["0.00", "", ""]] * 2
    assert cells["first"] == [["0.00", "0.00", "none"]] * 2, (
        "where it is scored, nothing retrieved is 0"
    )


@pytest.mark.parametrize(
    ("settings", "workflow", "place"),
    [
        ({"words": "short"}, "small", "Suites, under Read the answers"),
        ({}, "imported", "Runs or Compare"),
    ],
)
def test_a_question_that_no_chain_answered_is_read_elsewhere_and_says_where(
    bench: Workbench, settings: dict[str, Any], workflow: str, place: str
) -> None:
    assert "Click one to open it in Develop" in tab.counted(bench.runs.open("first"), [[1]])
    file = bench.workspace.runs / "first" / "run.json"
    made = json.loads(file.read_text())
    file.write_text(
        json.dumps({**made, "spec": {**made["spec"], "settings": settings, "workflow": workflow}})
    )
    said = tab.counted(bench.runs.open("first"), [[1]])
    assert place in said and "Click" not in said
    with pytest.raises(UsageError, match=f"read it in {place}"):
        bench.runs.open_question("first", 1)
