"""The Sweep tab: its handlers called as plain functions; a sweep goes on in the background and is read afterwards."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from small_workspace import make_workspace

from rallebench.core.errors import UsageError
from rallebench.core.events import Failed
from rallebench.core.types import Action, Chain
from rallebench.engine.driver import ExperimentResult
from rallebench.gui import form, views_sweep
from rallebench.gui.tabs import sweep as tab
from rallebench.gui.works import Works
from rallebench.services.jobs import JobManager
from rallebench.services.workbench import Workbench

CHAIN = Chain(
    "c",
    (
        Action("retrieve", "{question}", "fstring", "tiny", 2),
        Action("generate", "{question}", "fstring", "titan"),
    ),
)


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(make_workspace(tmp_path / "workspace"))


@pytest.fixture
def works() -> Works:
    return Works(JobManager(), "sweep")


def values() -> tuple[Any, ...]:
    rows = [form.action_values(action) for action in form.rows(CHAIN)]
    return (
        CHAIN.name,
        len(CHAIN.actions),
        CHAIN.about,
        *(row[field] for row in rows for field in form.FIELDS),
    )


def started(
    bench: Workbench, works: Works, vary: str, name: str = "s", limit: str = ""
) -> list[str]:
    return tab.on_start(bench, works, vary, "one-factor", "tiny-qa", limit, name, False, *values())


def test_the_variants_can_be_seen_before_anything_runs(bench: Workbench) -> None:
    *_, shown = tab.on_plan(bench, "k=1,2\n\nllm=titan,echo", "grid", *values())
    assert "4 variants, in this order: k=2, llm=titan" in shown


@pytest.mark.parametrize(
    ("vary", "limit", "sentence"),
    [
        ("", "", "Nothing is varied"),
        ("k", "", "names no field with values"),
        ("k=1", "some", "number of questions is &#x27;some&#x27;"),
    ],
)
def test_a_wrong_request_stands_on_the_page(
    bench: Workbench, works: Works, vary: str, limit: str, sentence: str
) -> None:
    said, _ = started(bench, works, vary, limit=limit)
    assert sentence in said and "rb-error" in said


def test_a_sweep_goes_on_in_the_background_and_is_opened_when_it_ended(
    bench: Workbench, works: Works
) -> None:
    said, panel = started(bench, works, "llm=titan,echo")
    assert said == "" and "s" in panel
    works.wait(60)
    ended, panel, opens = tab.on_tick(bench, works, 0, None)
    assert ended == 1 and opens["value"] == "s" and "Best: llm=titan" in panel
    table, plot, _ = tab.on_open(bench, "s", "")
    assert "too few articles to show a difference" in table and table.count("<tr>") == 3
    assert plot["visible"] and list(plot["value"].data[0].x) == ["llm=echo", "llm=titan"]


@pytest.mark.parametrize(("vary", "name"), [("llm=nobody", "s"), ("k=1", "no/name")])
def test_a_sweep_that_was_refused_does_not_stay_in_the_panel(
    bench: Workbench, works: Works, vary: str, name: str
) -> None:
    said, panel = started(bench, works, vary, name=name)
    assert "rb-error" in said and "rb-error" not in panel
    started(bench, works, "k=1")
    works.wait(60)
    assert "nobody" not in tab.panel_of(works)


def test_a_name_with_markup_is_text_in_the_table_and_in_the_plot(
    bench: Workbench, works: Works
) -> None:
    started(bench, works, "system=<i>x</i>,y")
    works.wait(60)
    table, plot, _ = tab.on_open(bench, "s", "")
    assert "<i>" not in table and list(plot["value"].data[0].x) == [
        "system=&lt;i&gt;x&lt;/i&gt;",
        "system=y",
    ]


def test_a_page_that_opens_later_finds_the_sweep(bench: Workbench, works: Works) -> None:
    started(bench, works, "k=1,2")
    works.wait(60)
    _, chosen = tab.on_names(bench, None)
    assert chosen["choices"] == ["s"] and chosen["value"] == "s"


def test_stop_ends_it_between_answers_and_the_same_name_goes_on(
    bench: Workbench, works: Works
) -> None:
    assert "nothing to stop" in tab.on_stop(works)
    started(bench, works, "llm=slow,titan")
    assert "Stopping" in tab.on_stop(works)
    works.wait(60)
    assert "was stopped" in str(works.ended()["s"])
    started(bench, works, "llm=slow,titan")
    works.wait(60)
    deadline = time.monotonic() + 5
    while "s" not in works.ended() and time.monotonic() < deadline:
        time.sleep(0.05)
    found = works.ended()["s"]
    assert isinstance(found, ExperimentResult) and len(found.runs) == 2


def test_a_sweep_that_is_gone_is_one_sentence(bench: Workbench) -> None:
    table, plot, _ = tab.on_open(bench, "gone", "")
    assert "There is no sweep &#x27;gone&#x27;" in table and not plot["visible"]


def test_a_number_of_questions_is_a_number() -> None:
    assert (tab.number_of(" 12 "), tab.number_of("")) == (12, None)
    with pytest.raises(UsageError):
        tab.number_of("-1")


def test_a_variant_that_failed_shows_its_sentence_as_text() -> None:

    shown = views_sweep.going_on("s", [Failed("k=<b>", "no <i>model</i>")], False)
    assert "&lt;b&gt;" in shown and "<i>" not in shown


def test_what_the_indexes_of_the_variants_take_is_said_before_anything_is_built(
    bench: Workbench,
) -> None:
    *_, shown = tab.on_plan(
        bench,
        "index.chunk_size=5,7\nindex.kind=numpy-flat\nindex.encoder=hashing",
        "grid",
        *values(),
    )
    assert "2 indexes to build" in shown and "to encode with hashing" in shown
    assert [path.name for path in bench.workspace.indexes.iterdir()] == ["tiny"]


@pytest.mark.parametrize(
    "vary",
    ["retriever=nothing-here,tiny", "index.chunk_size=0.5", "index.nope=1", "temprature=0,1"],
)
def test_variants_that_could_not_run_are_refused_when_they_are_shown(
    bench: Workbench, vary: str
) -> None:
    *_, shown = tab.on_plan(bench, vary, "one-factor", *values())
    assert "rb-error" in shown


def test_top_k_is_said_to_be_no_number_of_passages_before_and_while_it_runs(
    bench: Workbench, works: Works
) -> None:
    *_, shown = tab.on_plan(bench, "top_k=1,3", "one-factor", *values())
    assert "the number of passages is k" in shown and "Where a model does not sample" in shown
    assert "the number of passages is k" in started(bench, works, "top_k=1,3")[0]
    works.wait(60)
    *_, shown = tab.on_plan(bench, "k=1,3", "one-factor", *values())
    assert "sampling" not in shown


def test_variants_of_one_score_are_equal_and_none_is_called_the_best(
    bench: Workbench, works: Works
) -> None:
    started(bench, works, "k=1,2")
    works.wait(60)
    table, plot, _ = tab.on_open(bench, "s", "")
    assert "None is the best alone: k=1, k=2 are equal, the cheapest first (EM 0.1250" in table
    assert "Best:" not in table and ">best<" not in table and table.count(">equal<") == 2
    assert len(set(plot["value"].data[0].marker.color)) == 1
    started(bench, works, "llm=titan,echo\nk=1,2", name="t")
    works.wait(60)
    table, *_ = tab.on_open(bench, "t", "")
    assert (
        "k=1, llm=titan are equal, the cheapest first" in table
        and "too few articles to show a difference" in table
    )
