"""The Data tab's section that makes question sets: its handlers called as plain functions."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from small_workspace import read_lines, write_lines

from rallebench.core.errors import BackendError, StoppedError
from rallebench.engine.driver import ExperimentResult
from rallebench.experiments import BUILDERS
from rallebench.gui import views_making
from rallebench.gui.tabs import _making as tab
from rallebench.gui.tabs._data_settings import rows_of
from rallebench.gui.works import Works
from rallebench.services.jobs import JobManager
from rallebench.services.workbench import Workbench

TEXT = "It happened in a town by the sea, and <b>everybody</b> remembers. " * 20
SAID = {
    "most of its facts": '{"recent": true}',
    "Read the text[\\s\\S]*One": "Where did the first festival happen?",
    "Read the text": "I cannot.",
    "answered completely": '{"answerable": true}',
    "from what you know": '{"known": false}',
}


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    folder = tmp_path / "workspace"
    folder.mkdir()
    models = {"writer": {"replies": SAID}, "slow": {"replies": SAID, "delay": 0.3}}
    (folder / "llms.json").write_text(
        json.dumps({name: {"backend": "scripted", "settings": s} for name, s in models.items()})
    )
    rows = [
        {"title": name, "content": f"{name}. {TEXT}", "date": "2022-01-01"}
        for name in ("One", "Two")
    ]
    write_lines(tmp_path / "articles.jsonl", rows)
    return Workbench(folder)


@pytest.fixture
def works() -> Works:
    return Works(JobManager(), "making")


def begin(
    bench: Workbench,
    works: Works,
    name: str = "mine",
    llm: str = "writer",
    articles: str = "",
    limit: str = "",
) -> list[str]:
    names = [("barag", key) for key in BUILDERS.entry("barag").form]
    fields = [setting.default for setting in BUILDERS.entry("barag").form.values()]
    place = articles or str(bench.workspace.path.parent / "articles.jsonl")
    return tab.on_make(bench, works, names, "barag", name, f'"{place}"', llm, limit, *fields)


def wait(works: Works) -> Any:
    works.wait(30)
    return works.ended()


def test_it_goes_on_in_the_background_and_is_opened_when_it_ended(
    bench: Workbench, works: Works
) -> None:
    said, panel = begin(bench, works, llm="slow")
    assert said == "" and "mine" in panel
    seen, *_ = tab.on_tick(bench, works, None, None, None)
    assert isinstance(wait(works)["mine"], ExperimentResult)
    _, panel, chosen, *_ = tab.on_tick(bench, works, seen, "another", None)
    assert "1 question on 1 of 2 articles" in panel and chosen["value"] == "mine"
    stages, stage = tab.on_open(bench, "mine", None)
    assert [label for _, label in stage["choices"]] == [
        "1-articles",
        "2-dates",
        "3-recency",
        "4-questions",
        "5-checks",
    ]
    assert (
        stage["value"] == "5-checks"
        and "1 no question in the reply" in stages
        and "datasets/mine.jsonl" in stages
    )


def test_the_rows_of_a_stage_are_shown_with_what_was_asked_and_replied(
    bench: Workbench, works: Works
) -> None:
    begin(bench, works)
    wait(works)
    shown = tab.on_rows(bench, "mine", "4-questions", "left out")
    assert "no question in the reply" in shown and "I cannot." in shown and "Where did" not in shown
    assert "Where did" in tab.on_rows(bench, "mine", "4-questions", "kept")
    assert "I cannot." in tab.on_rows(bench, "mine", "4-questions", "unknown")
    articles = tab.on_rows(bench, "mine", "1-articles", "all")
    assert "&lt;b&gt;everybody" in articles and "<b>everybody" not in articles


def test_continuing_takes_the_settings_of_last_time_and_what_was_edited(
    bench: Workbench, works: Works
) -> None:
    begin(bench, works)
    wait(works)
    file = bench.workspace.path / "experiments" / "mine" / "4-questions.jsonl"
    rows = read_lines(file)
    write_lines(
        file,
        [
            {**row, "question": "What was by the sea?", "keep": True}
            if not row["question"]
            else row
            for row in rows
        ],
    )
    assert tab.on_continue(bench, works, "mine")[0] == ""
    assert wait(works)["mine"].document["counts"]["questions"] == 2
    stages, _ = tab.on_open(bench, "mine", "4-questions")
    assert "1 changed by hand" in stages


@pytest.mark.slow
def test_stopping_keeps_what_was_made(bench: Workbench, works: Works) -> None:
    begin(bench, works, llm="slow")
    assert tab.on_stop(works) == "" and "stopping" in tab.panel_of(works)
    assert isinstance(wait(works)["mine"], StoppedError)
    assert "was stopped" in tab.panel_of(works)
    assert "nothing to stop" in tab.on_stop(works)
    tab.on_continue(bench, works, "mine")
    assert isinstance(wait(works)["mine"], ExperimentResult)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"name": " "}, "needs a name"),
        ({"limit": "some"}, "The number is &#x27;some&#x27;"),
        ({"articles": "nowhere.jsonl"}, "does not exist"),
        ({"llm": "extractive-reader"}, "cannot write questions"),
    ],
)
def test_a_wrong_request_stands_on_the_page_once(
    bench: Workbench, works: Works, asked: dict[str, str], sentence: str
) -> None:
    said, panel = begin(bench, works, **asked)
    time.sleep(0.05)
    assert sentence in said and "rb-error" in said and sentence not in panel
    assert tab.on_continue(bench, works, None)[0].count("No question set is chosen") == 1


def test_a_maker_shows_its_own_settings_and_whether_it_takes_articles() -> None:
    _, about, articles, *groups = tab.on_maker("rgb")
    shown = dict(zip(BUILDERS.names(), (group["visible"] for group in groups)))
    assert (
        "RGB" in about
        and articles["visible"] is False
        and shown.pop("rgb")
        and not any(shown.values())
    )


def test_a_model_that_only_copies_is_not_offered(bench: Workbench) -> None:
    assert tab.writers(bench) == ["writer", "slow"]


def test_nothing_is_shown_where_nothing_was_made(bench: Workbench, works: Works) -> None:
    assert tab.on_open(bench, None, None)[0] == tab.views.empty(tab.NO_SET)
    assert tab.on_rows(bench, None, None, "all") == "" and "is being made" in tab.panel_of(works)
    assert tab.on_tick(bench, works, [[], [], []], None, None)[1:] == [gr.skip()] * 4
    assert "has no stage" in tab.on_rows(bench, "gone", "1-articles", "all")


def test_a_failure_is_told_with_its_name() -> None:
    assert "mine: No room." in views_making.ended("mine", BackendError("No room."))


def test_many_settings_stand_in_rows_and_those_to_tick_in_rows_of_their_own() -> None:
    rows = rows_of(BUILDERS.entry("barag").form)
    assert max(map(len, rows)) <= 6 and "recency" in rows[-1] and "after" in rows[0]
    assert sorted(name for row in rows for name in row) == sorted(BUILDERS.entry("barag").form)


def test_what_was_wrong_with_one_maker_does_not_stay_when_another_is_chosen(
    bench: Workbench, works: Works
) -> None:
    assert "rb-error" in begin(bench, works, name=" ")[0]
    assert tab.on_maker("rgb")[0] == ""
