"""The Suites tab: its handlers called as plain functions; a suite is planned, run in the background, read and compared."""

from __future__ import annotations

import base64
import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from performing import run_suite
from small_suites import small_suites  # noqa: F401 - a fixture
from small_workspace import make_workspace

from rallebench.core.errors import UsageError
from rallebench.core.events import Finished, Progress
from rallebench.engine.experiment_store import REPORT
from rallebench.gui import app, views_answers, views_suites
from rallebench.gui.tabs import _suites_form as form_of
from rallebench.gui.tabs import _suites_results as results
from rallebench.gui.tabs import compare, runs
from rallebench.gui.tabs import suites as tab
from rallebench.gui.works import Works
from rallebench.services.jobs import JobManager
from rallebench.services.workbench import Workbench

STYLE = Path(app.__file__).with_name("style.css")
pytestmark = pytest.mark.usefixtures("small_suites")


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(make_workspace(tmp_path / "workspace"))


@pytest.fixture
def form() -> form_of.SuiteForm:
    return form_of.SuiteForm(form_of.in_order())


@pytest.fixture
def works() -> Works:
    return Works(JobManager(), "suite")


@pytest.fixture
def probes() -> Works:
    return Works(JobManager(), "probe")


def values(form: form_of.SuiteForm, suite: str, **given: Any) -> list[Any]:
    own = set(form.of(suite))
    return [
        given.get(name, setting.default) if i in own else "of another suite"
        for i, (name, setting) in enumerate(form.settings)
    ]


Start = Callable[..., list[str]]


@pytest.fixture
def start(bench: Workbench, form: form_of.SuiteForm, works: Works) -> Start:
    def started(
        name: str = "n",
        suite: str = "small-alone",
        llm: str = "titan",
        limit: str = "",
        wait: bool = True,
        **given: Any,
    ) -> list[str]:
        said = tab.on_start(
            bench, form, works, False, suite, llm, limit, name, *values(form, suite, **given)
        )
        if wait:
            works.wait(60)
        return said

    return started


# the form


def test_a_suites_own_settings_are_shown_and_equal_ones_of_several_are_one_field(
    bench: Workbench, form: form_of.SuiteForm
) -> None:
    assert [form.settings[i][0] for i in form.of("small-alone")] == [
        "words",
        "times",
        "search",
        "note",
    ]
    assert form.of("small-alone") == form.of("small-judged") and not set(
        form.of("small-alone")
    ) & set(form.of("rgb-noise"))
    said, about, *shown = tab.on_suite(bench, form, "small-alone")
    assert said == "", "what was wrong with another suite goes"
    assert "as often as is asked for" in about and [
        i for i, one in enumerate(shown) if one["visible"]
    ] == form.of("small-alone")
    assert form_of.NO_SUITE in tab.on_suite(bench, form, "gone")[1]


def test_an_index_and_a_model_that_came_later_are_offered_by_the_settings(
    bench: Workbench, form: form_of.SuiteForm
) -> None:
    def offered(updates: list[Any], suite: str, name: str) -> list[str]:
        (at,) = [i for i in form.of(suite) if form.settings[i][0] == name]
        return list(updates[at]["choices"])

    before = tab.on_suite(bench, form, "barag-curve")[2:]
    assert "later" not in offered(before, "barag-curve", "index") and "newer" not in offered(
        before, "barag-curve", "judge"
    )
    shutil.copytree(bench.workspace.indexes / "tiny", bench.workspace.indexes / "later")
    models = json.loads((bench.workspace.path / "llms.json").read_text())
    (bench.workspace.path / "llms.json").write_text(
        json.dumps({**models, "newer": models["titan"]})
    )
    llm, *selected = tab.on_offers(bench, form, "titan")
    assert "newer" in llm["choices"] and "value" not in llm, "what was chosen stays"
    for updates in (tab.on_suite(bench, form, "barag-curve")[2:], selected):
        assert "later" in offered(updates, "barag-curve", "index") and "newer" in offered(
            updates, "barag-curve", "judge"
        )


def test_a_new_page_shows_a_suite_that_runs_at_once_with_the_model_that_is_loaded_or_the_reader(
    tmp_path: Path, form: form_of.SuiteForm
) -> None:
    fresh = Workbench(tmp_path / "fresh")
    first = form_of.first_suite()
    llm = tab.on_offers(fresh, form, None)[0]["value"]
    assert (first, llm) == ("reval-scholar", "extractive-reader")
    said, shown = tab.on_plan(fresh, form, first, llm, "1", "n", *values(form, first))
    assert said == "" and "in all" in shown
    (fresh.workspace.path / "llms.json").write_text(
        json.dumps({"echo": {"backend": "scripted", "settings": {"echo": True}}})
    )
    list(fresh.models.load("echo", "language model"))
    assert tab.on_offers(fresh, form, None)[0]["value"] == "echo"


def test_a_box_to_tick_is_as_wide_as_its_label_needs(bench: Workbench) -> None:
    with gr.Blocks():
        drawn = form_of.draw_settings(bench, None)
    ticks = [one for one in drawn.inputs if isinstance(one, gr.Checkbox)]
    assert ticks and all(one.elem_classes == ["rb-tick"] for one in ticks)
    assert re.search(
        r"\.rb-tick \{ min-width: min\(200px, 100%\) !important; \}", STYLE.read_text()
    )


@pytest.mark.parametrize(
    ("suite", "llm", "limit", "given", "sentence"),
    [
        ("small-alone", "", "", {}, "needs a language model; choose one."),
        ("small-alone", "nobody", "", {}, "nobody"),
        ("small-alone", "titan", "some", {}, "number of questions is &#x27;some&#x27;"),
        (
            "small-alone",
            "titan",
            "",
            {"times": 9},
            "times=9: times must be a whole number from 1 to 5",
        ),
        ("small-alone", "titan", "", {"times": 2.5}, "must be a whole number"),
        ("gone", "titan", "", {}, "There is no suite"),
        ("small-alone", "titan", "", {"note": "wrong"}, "note=wrong: such a note is refused"),
    ],
)
def test_a_wrong_request_is_a_sentence_and_nothing_is_begun(
    bench: Workbench,
    form: form_of.SuiteForm,
    start: Start,
    suite: str,
    llm: str,
    limit: str,
    given: dict[str, Any],
    sentence: str,
) -> None:
    said, panel = start(suite=suite, llm=llm, limit=limit, **given)
    assert sentence in said and "rb-error" in said and "--" not in said and "rb-error" not in panel
    assert (
        sentence
        in tab.on_plan(bench, form, suite, llm, limit, "n", *values(form, suite, **given))[0]
    )
    assert bench.experiments.list("suite") == []


# before and while it runs


def test_what_it_will_run_stands_in_a_table_with_the_command_line(
    bench: Workbench, form: form_of.SuiteForm
) -> None:
    said, shown = tab.on_plan(
        bench,
        form,
        "small-judged",
        "titan",
        "3",
        "my name",
        *values(form, "small-judged", search=True),
    )
    assert said == "" and "2 parts in all" in shown and "are a guess" in shown
    assert (
        "--set search=true" in shown
        and "--limit 3" in shown
        and "--name &#x27;my name&#x27;" in shown
    )


def test_what_it_will_cost_is_measured_in_the_background_and_shown_to_a_page_that_comes_later(
    bench: Workbench, form: form_of.SuiteForm, probes: Works
) -> None:
    said, _ = tab.on_measure(
        bench, form, probes, 2, "small-alone", "titan", "", "n", *values(form, "small-alone")
    )
    probes.wait(60)
    mark, shown = tab.on_probe_tick(probes, "")
    assert (
        said == ""
        and "Measured on 4 questions of 2 parts" in shown
        and "completion tokens" in shown
    )
    assert mark == tab.on_probe_tick(probes, "")[0] != "" and isinstance(
        tab.on_probe_tick(probes, mark)[1], dict
    )
    said, _ = tab.on_measure(
        bench, form, probes, 2, "small-alone", "mute", "", "n", *values(form, "small-alone")
    )
    probes.wait(60)
    assert "All 2 questions" in said + tab.probe_panel(probes)


def test_a_suite_goes_on_in_the_background_and_is_opened_when_it_has_ended(
    bench: Workbench, works: Works, start: Start
) -> None:
    said, _ = start()
    mark, panel, opens = tab.on_tick(bench, works, "", None)
    assert said == "" and "n: 2 parts done" in panel and opens["value"] == "n"
    assert all(
        isinstance(one, dict) and "value" not in one for one in tab.on_tick(bench, works, mark, "n")
    )


def test_stop_ends_it_and_the_same_name_goes_on_where_it_was(
    bench: Workbench, works: Works, probes: Works, start: Start
) -> None:
    assert "nothing to stop" in tab.on_stop(bench, works, probes)
    start(llm="slow", times=5, wait=False)
    deadline = time.monotonic() + 20
    while not bench.experiments.list("suite") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert "part 1" in tab.panel_of(bench, works) or "rb-bar" in tab.panel_of(bench, works)
    assert "Stopping" in tab.on_stop(bench, works, probes)
    works.wait(60)
    assert "was stopped; what was answered is kept" in tab.panel_of(bench, works)
    shown, *_ = results.on_open(bench, "n", "")
    assert "It has not ended" in shown
    start(llm="slow", times=5)
    assert "5 parts done" in tab.panel_of(bench, works)


def test_the_panel_shows_parts_that_ended_and_the_bar_of_the_one_that_runs(
    bench: Workbench, form: form_of.SuiteForm
) -> None:
    request = form_of.request_of(
        bench, form, "small-alone", "titan", "", "n", values(form, "small-alone")
    )
    said = list(run_suite(bench, request.suite, request.asked, request.name, track=False))
    first_end = next(i for i, piece in enumerate(said) if isinstance(piece, Finished))
    running = next(
        i
        for i, piece in enumerate(said)
        if i > first_end and isinstance(piece, Progress) and piece.done
    )
    assert "loading" in views_suites.going_on("n", said[:1], {}, False)
    assert "The next part is being made" in views_suites.going_on(
        "n", said[: first_end + 1], {}, False
    )
    panel = views_suites.going_on(
        "n", said[: running + 1], {"rate": 2.0, "state": "running"}, False
    )
    assert (
        "part 2" in panel
        and ">done<" in panel
        and "right 0.1250 (n = 8)" in panel
        and "1 of 8 questions" in panel
    )
    assert "stopping" in views_suites.going_on("n", said[: running + 1], {}, True)
    again = list(run_suite(bench, request.suite, request.asked, request.name, track=False))
    assert "had ended before" in views_suites.going_on("n", again[:-1], {}, False)


# what came out


def test_results_are_the_suites_own_tables_and_plots_with_intervals_and_nothing_in_them_is_markup(
    bench: Workbench, start: Start
) -> None:
    start()
    shown, two, _, taking, files, _, parts, *plots = results.on_open(bench, "n", "")
    assert (
        "Right &lt;i&gt;answers&lt;/i&gt;" in shown
        and "<i>" not in shown
        and "Know &lt;this&gt;." in shown
        and "text &lt;b&gt;" in shown
    )
    assert "12.50" in shown and "-17.1 – 42.1, n = 8" in shown and "A note." in shown
    assert (
        not two["visible"]
        and taking["visible"]
        and files["choices"] == ["experiment.json", "raw/answers.txt", "report.json"]
    )
    assert parts["choices"] == [("time 1", "n time 1"), ("time 2", "n time 2")]
    assert [one["visible"] for one in plots[results.MOST_PLOTS :]] == [True] + [False] * (
        results.MOST_PLOTS - 1
    )
    figure = plots[0]["value"]
    assert [list(trace.x) for trace in figure.data] == [
        ["time 1", "time 2"],
        ["time 1"],
    ] and figure.data[0].error_y.array[0] == pytest.approx(0.295578, rel=1e-5)
    (first, *_) = re.findall(r'base64,([\w+/=]+)"', shown)
    head, row, *_ = base64.b64decode(first).decode().splitlines()
    assert (
        head == "time,right,right low,right high,right n,not measured,word"
        and row == "time 1,0.125,-0.17057803144909806,0.42057803144909806,8,,text <b>"
    )


def test_files_are_saved_by_a_link_and_no_other_file_is_reached(
    bench: Workbench, start: Start
) -> None:
    start()
    assert base64.b64encode(b"one\n").decode() in results.on_file(bench, "n", "raw/answers.txt")
    with pytest.raises(UsageError, match="has no file"):
        results.on_file(bench, "n", "../../llms.json")


def test_two_suites_stand_beside_each_other_and_their_runs_go_to_compare(
    bench: Workbench, start: Start
) -> None:
    start("a")
    start("b", llm="picky")
    start("c", llm="echo", times=1)
    assert "Differences, question by question" in results.on_open(bench, "a", "c")[0]
    shown, two, pair, *_ = results.on_open(bench, "a", "c")
    assert (
        "(−12.50)" in shown
        and 'class="name">both</td>' in shown
        and two["visible"]
        and pair["choices"] == ["time 1"]
    )
    plot = results.on_open(bench, "a", "c")[7]
    assert [trace.name for trace in plot["value"].data] == ["ours (a)", "ours (c)", "paper"]
    selected, asked = results.on_compare(bench, "a", "c", "time 1")
    assert selected.selected == "compare" and asked["runs"] == ["a time 1", "c time 1"]
    assert compare.on_asked(bench, asked)["value"] == asked["runs"]
    with pytest.raises(UsageError, match="both suites have"):
        results.on_compare(bench, "a", "c", "time 2")


def test_an_earlier_request_comes_back_into_the_form(
    bench: Workbench, form: form_of.SuiteForm, start: Start
) -> None:
    start(limit="3", words="long", times=1)
    suite, llm, limit, name, *fields = results.on_fill(bench, form, "n")
    assert (suite, llm, limit, name) == ("small-alone", "titan", "3", "n")
    own = {form.settings[i][0]: fields[i]["value"] for i in form.of("small-alone")}
    assert own == {"words": "long", "times": 1, "search": False, "note": ""}


def test_what_is_gone_or_damaged_is_one_sentence(bench: Workbench, start: Start) -> None:
    assert results.NO_RESULT in results.on_open(bench, None, "")[0]
    assert "There is no suite run &#x27;gone&#x27;" in results.on_open(bench, "gone", "")[0]
    start()
    (bench.experiments.store.folder("n") / REPORT).write_text('{"suite": 1}')
    assert "was damaged by another program" in results.on_open(bench, "n", "")[0]


# single answers


def test_every_step_of_an_answer_can_be_read_and_what_was_read_of_it(
    bench: Workbench, start: Start
) -> None:
    start(suite="small-judged", llm="titan")
    run = bench.experiments.open("n", "suite run").report["parts"][1]["run"]  # type: ignore[index]
    which, counted, table, _ = results.on_part(bench, run)
    assert (
        which["choices"] == ["all", "failed", "without a value", "unparsed"]
        and "8 of 8 questions" in counted
    )
    assert (
        table["value"][0][2] == "The reply has <no> number." and table["value"][0][4] == "unparsed"
    )
    clicked = results.on_select(SimpleNamespace(row_value=table["value"][0]))
    shown = results.on_answer(bench, run, clicked)
    assert (
        "Unparsed: The reply has &lt;no&gt; number." in shown
        and "judge Titan Which moon of Saturn" in shown
    )
    assert (
        "stopped: unparsed" in shown
        and "score not scored" in shown
        and 'title="the judge&#x27;s number"' in shown
    )
    assert results.on_which(bench, run, "failed")[1]["visible"] is False


def test_a_judgement_that_was_read_shows_its_values_and_reason(
    bench: Workbench, start: Start
) -> None:
    start(suite="small-judged", llm="echo")
    run = bench.experiments.open("n", "suite run").report["parts"][1]["run"]  # type: ignore[index]
    shown = results.on_answer(bench, run, "5")
    assert "<b>score 1</b><br>It says so." in shown


def test_failed_questions_are_listed_with_their_reason(bench: Workbench, start: Start) -> None:
    start(llm="picky", times=1)
    rows = results.on_which(bench, "n time 1", "failed")[1]["value"]
    assert len(rows) == 5 and "picky" in rows[0][-1], (
        "after five failures and no answer a run is stopped"
    )
    assert "Failed: " in results.on_answer(bench, "n time 1", str(rows[0][0]))
    with pytest.raises(UsageError, match="no answer number 99"):
        results.on_answer(bench, "n time 1", "99")


def test_the_runs_of_a_suite_are_opened_in_runs_with_the_suites_own_numbers(
    bench: Workbench, start: Start
) -> None:
    start()
    shown, opens, sends = runs.on_chosen(bench, "n time 1")
    assert "Workflow small" in shown and opens["interactive"] and sends["interactive"]
    assert "The suite&#x27;s own numbers" in shown and ">0.1250<br>" in shown


def test_a_step_is_shown_whatever_was_asked() -> None:
    from rallebench.core.types import Generate, Gold, Message, Note, Reply, Step, ToolCall, UseTool

    called = Step(
        Generate("m", (Message("system", "Be <kind>"), Message("user", "Hi"))),
        Reply("", tool_calls=(ToolCall("1", "score", '{"x": 1}'),)),
    )
    assert (
        "Be &lt;kind&gt;" in (shown := views_answers.step(1, called, Gold(), {}))
        and "score {&quot;x&quot;: 1}" in shown
    )
    assert "seen" in views_answers.step(
        1, Step(UseTool("look", {"at": "it"}), Reply("seen")), Gold(), {}
    )
    assert "a note" in views_answers.step(1, Step(Note("a note"), Reply("a note")), Gold(), {})
