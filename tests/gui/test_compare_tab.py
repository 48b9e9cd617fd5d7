"""The Compare tab: its handlers called as plain functions on a workspace with three runs."""

from __future__ import annotations

import csv
import io
import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from performing import prepared
from small_workspace import make_workspace

from rallebench.analysis import deployment
from rallebench.analysis.measures import Measure
from rallebench.analysis.paired import compare as paired
from rallebench.analysis.ranking import MultiRunComparison, PairedResult, RunSummary
from rallebench.core.errors import UsageError
from rallebench.core.tables import Figure
from rallebench.core.types import Action, Chain
from rallebench.gui import app, views_compare, views_fall
from rallebench.gui.tabs import _compare_pair, compare
from rallebench.metrics import card
from rallebench.render import colours, plotly, svg
from rallebench.services.workbench import Workbench

STYLE = Path(app.__file__).with_name("style.css")
SEARCH = Action("retrieve", "{question}", "fstring", "tiny", 2)


def chain(name: str, llm: str, template: str = "Read {response[0]}\nQuestion: {question}") -> Chain:
    return Chain(name, (SEARCH, Action("generate", template, "fstring", llm)))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    workspace = make_workspace(tmp_path_factory.mktemp("compare") / "workspace")
    bench = Workbench(workspace)
    made = {
        "first": chain("a", "titan"),
        "<b>second</b>": chain("b", "echo", "Answer {question}"),
        "short": chain("a", "titan"),
    }
    for name, its in made.items():
        limit = 5 if name == "short" else None
        name = re.sub(r"\W", "", name)
        list(
            bench.run(
                prepared(bench.workspace, its, "tiny-qa", limit=limit, name=name, track=False)
            )
        )
    return bench


SECOND = "bsecondb"
BOTH = {"runs": ["first", SECOND], "metric": "em"}


def shown(bench: Workbench, *names: str, metric: str = "") -> list[Any]:
    return compare.on_compare(bench, list(names), metric, "seconds_per_question")


def saved(html: str) -> list[list[str]]:
    """The rows of the first CSV file that a piece of the page offers."""
    found = re.search(r"data:text/csv;base64,([^\"]+)", html)
    assert found, "no CSV is offered"
    return list(csv.reader(io.StringIO(b64decode(found[1]).decode())))


def test_only_runs_with_a_report_are_offered_and_a_choice_that_is_gone_falls_away(
    bench: Workbench,
) -> None:
    offered = compare.on_offer(bench, ["first", "deleted"])
    assert sorted(name for name in offered["choices"]) == [SECOND, "first", "short"]
    assert offered["value"] == ["first"]


def test_runs_stand_beside_each_other_with_intervals_and_can_be_saved(bench: Workbench) -> None:
    said, results, compared, table, differences, _, other, plot, below, over, *_ = shown(
        bench, "first", SECOND
    )
    falls = compare.on_falls(bench, BOTH)
    assert said == "" and results["visible"] and compared == BOTH
    head, *rows = saved(table)
    assert head[:5] == ["metric", "n", "first", "first low", "first high"]
    em = next(row for row in rows if row[0] == "em")
    assert (em[1], float(em[2]), float(em[5])) == ("8", 1 / 8, 0.0)
    assert "too few articles" in differences and other["value"] == SECOND
    assert saved(falls)[1][0] == "first" and "n = 8" in falls
    assert len(plot.data) == 2 and {bubble.name for bubble in plot.data} == {"first", SECOND}
    assert "Not in the plot" not in below and not over["visible"], (
        "one question set, and no kinds of question"
    )
    assert saved(below)[0] == ["run", "seconds_per_question", "em", "memory_bytes"]


def test_runs_over_different_questions_are_compared_on_what_they_share(bench: Workbench) -> None:
    _, _, compared, table, *_ = shown(bench, "first", "short")
    falls = compare.on_falls(bench, compared)
    assert "only the 5 that all share are compared" in table
    assert falls.count("n = 5") == 2, "the waterfalls count the same questions"


@pytest.mark.parametrize(
    ("names", "metric", "sentence"),
    [
        ((), "", "at least two runs"),
        (("first", "nobody"), "", "There is no run"),
        (("first", SECOND), "emm", "emm"),
    ],
)
def test_a_refusal_stands_on_the_page_and_hides_old_results(
    bench: Workbench, names: tuple[str, ...], metric: str, sentence: str
) -> None:
    said, results, *_ = shown(bench, *names, metric=metric)
    assert sentence in said and "rb-error" in said
    assert not results["visible"]


def test_what_was_changed_and_the_questions_that_flipped_stand_below(bench: Workbench) -> None:
    changed, flipped, csv_file, _, _ = _compare_pair.on_pair(bench, BOTH, SECOND)
    assert "action 2: template" in changed and "<mark>" in changed and "titan" in changed
    assert [(row[0], row[2], row[5]) for row in flipped["value"]] == [("q1", "Titan", "worse")]
    assert (
        "1 of the 8 questions" in csv_file
        and saved(csv_file)[1][:1] == ["q1"]
        and saved(changed)[0] == ["what", "first", SECOND]
    )


def test_a_question_shows_both_answers_step_by_step_and_opens_in_develop(bench: Workbench) -> None:
    question, opens = _compare_pair.on_question(bench, BOTH, SECOND, "q1")
    assert "Which moon of Saturn has a thick atmosphere?" in question and "2. prompt" in question
    assert opens["interactive"]
    opened = _compare_pair.on_open(bench, BOTH, SECOND, "q1")
    assert (opened["run"], opened["position"]) == (SECOND, 1)


def test_a_question_that_is_gone_is_one_sentence(bench: Workbench) -> None:
    with pytest.raises(UsageError, match="not in both runs any more; press Compare again"):
        _compare_pair.on_question(bench, BOTH, SECOND, "q99")


@pytest.mark.parametrize(
    ("metric", "gaps", "verdict"),
    [
        ("f1", [0.02] * 70 + [-0.4] * 30, "worse"),
        ("f1", [-0.02] * 70 + [0.4] * 30, "better"),
        ("seconds", [-0.5] * 50 + [4.0] * 50, "worse"),
        ("seconds", [0.5] * 50 + [-4.0] * 50, "better"),
    ],
)
def test_better_is_said_of_the_mean_whose_p_stands_beside_it_not_of_most_questions(
    metric: str, gaps: list[float], verdict: str
) -> None:
    measure = Measure(metric, card(metric))
    first = {str(n): 5.0 for n in range(len(gaps))}
    pair = paired(
        metric,
        first,
        {str(n): 5.0 + gap for n, gap in enumerate(gaps)},
        higher_is_better=measure.higher_is_better is not False,
    )
    sides = tuple(RunSummary(name, "d", len(gaps), 0, 0, 0) for name in ("a", "b"))
    shown = views_compare.differences(
        MultiRunComparison(
            sides, (), metric, (), {}, {}, (PairedResult("b", pair),), measures={metric: measure}
        )
    )
    assert pair.p is not None and pair.p < 0.05
    assert f">{verdict}<" in shown.split("<tbody>")[1]


def test_names_and_texts_are_shown_as_they_are_and_never_run() -> None:
    from rallebench.analysis.changes import Change

    shown = views_compare.changed([Change("<i>", "<script>1</script>", "2")], "<b>a</b>", "b")
    assert "<script>" not in shown and "&lt;script&gt;" in shown and "<b>a</b>" not in shown


def test_every_stage_of_the_waterfall_has_a_colour_and_a_short_name() -> None:
    assert set(views_fall.SHORT) == set(views_fall.STAGES) <= set(colours.PARTS)


def test_a_cost_that_no_run_has_leaves_a_sentence_in_place_of_the_plot() -> None:
    measure = Measure("em", card("em"))
    plot = plotly.figure(
        deployment.figure([("a", {"metrics": {}})], measure, "seconds_per_question")
    )
    assert not plot.data and "No run has both" in json.dumps(plot.to_plotly_json()["layout"])


@pytest.mark.parametrize("stage", views_fall.STAGES)
def test_the_count_of_every_stage_can_be_read_on_its_colour(stage: str) -> None:
    figure = Figure("", "", "", {"r": ((stage, 3),)}, "waterfall", {stage: stage})
    drawn = svg.figure(figure)
    found = re.search(r'fill="(#[0-9a-f]{6})">3<', drawn)
    assert found and colours.contrast(found[1], colours.part(stage)) >= 4.5


def test_the_counts_on_the_page_have_the_same_ink_as_those_that_are_saved(bench: Workbench) -> None:
    shown = compare.on_falls(bench, BOTH)
    parts = re.findall(r"background:(#\w+)\" title=\"[^\"]*\"><span style=\"color:(#\w+)\">", shown)
    assert parts and all(ink == colours.ink_on(colour) for colour, ink in parts)
    assert "color:" not in next(
        line for line in STYLE.read_text().splitlines() if line.startswith(".rb-parts span")
    )


def test_half_a_name_is_let_go_before_it_can_be_compared(bench: Workbench) -> None:
    kept, metrics = compare.on_chosen(bench, ["first", "bsec"])
    assert kept["value"] == ["first"] and metrics["choices"]
    kept, _ = compare.on_chosen(bench, ["first", SECOND])
    assert "value" not in kept
    said, results, compared, *_ = shown(bench, "first", SECOND, "bsec")
    assert (
        "no run is called so: bsec" in said
        and results["visible"]
        and compared["runs"] == ["first", SECOND]
    )
