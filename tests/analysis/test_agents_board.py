"""Means and ranks as in R-Eval's tables; matching, normalisation, combination and deployment on numbers one can check by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rallebench.analysis.agents import AgentTask, EpisodeSummary, System, TaskGroup, TaskRun
from rallebench.analysis.agents.aspects import combination, deployment, matching, normalize
from rallebench.analysis.agents.leaderboard import average_ranks, board, board_of
from rallebench.analysis.agents.report import ASPECTS, AnalysisOptions, analyse, tex_of
from rallebench.core.errors import UsageError
from rallebench.core.table_files import latex
from rallebench.datasets.tasks import TASKS
from rallebench.render import plotly, report

TWELVE = tuple(AgentTask(task.name, task.domain, task.level, task.number) for task in TASKS)
PLACES = tuple(
    TaskGroup(domain, level) for domain in ("wiki", "aminer") for level in ("KS", "KU", "KA")
)
A, B, C = System("react", "a-7b"), System("react", "b-13b"), System("pal", "a-7b")


def summary(qid: str, reward: float, seconds: float = 1.0, tokens: int = 10) -> EpisodeSummary:
    return EpisodeSummary(
        qid,
        "?",
        ("x",),
        "x",
        reward,
        float(reward == 1),
        reward,
        "answered",
        "",
        "",
        seconds=seconds,
        tokens=tokens,
    )


def cell(system: System, task: AgentTask, *rewards: float, **more: float) -> TaskRun:
    return TaskRun(
        f"{system.label} {task.name}",
        system,
        task,
        tuple(summary(f"q{n}", r, **more) for n, r in enumerate(rewards)),
    )  # type: ignore[arg-type]


def test_equal_values_share_the_mean_of_their_ranks() -> None:
    """Of R-Eval's 21 systems two share the places 19 and 20; its table prints their 19.5 as 20th."""
    sums = [100.0 - n for n in range(18)] + [3.0, 3.0, 1.0]
    assert average_ranks(sums) == [*map(float, range(1, 19)), 19.5, 19.5, 21.0]
    assert average_ranks([0.1 + 0.2, 0.3]) == [1.5, 1.5] and average_ranks([None, 2.0, None]) == [
        None,
        1.0,
        None,
    ]
    assert average_ranks([]) == []


def test_means_are_over_nine_three_and_twelve_tasks_of_the_same_weight() -> None:
    scores = {(A, task): float(n) for n, task in enumerate(TWELVE)}
    found = board([A], TWELVE, scores, PLACES)
    wiki = [n for n, task in enumerate(TWELVE) if task.domain == "wiki"]
    assert len(wiki) == 9
    assert found.means[A] == {"wiki": sum(wiki) / 9, "aminer": (66 - sum(wiki)) / 3, "all": 5.5}


def test_ranks_are_of_the_sums_of_a_level() -> None:
    easy, low = TWELVE[:2]
    found = board(
        [A, B, C],
        [easy, low],
        {
            (A, easy): 0.5,
            (A, low): 0.2,
            (B, easy): 0.1,
            (B, low): 0.6,
            (C, easy): 0.9,
            (C, low): 0.0,
        },
        PLACES[:1],
    )
    assert [found.ranks[s]["Wikipedia KS"] for s in (A, B, C)] == [2.5, 2.5, 1.0]


def test_a_system_without_a_task_has_no_mean_and_takes_no_rank() -> None:
    found = board_of([cell(A, TWELVE[0], 1.0), cell(A, TWELVE[2], 0.5), cell(B, TWELVE[0], 0.5)])
    assert found.means[B] == {"wiki": 0.5, "aminer": None, "all": None}
    assert found.ranks[B] == {
        "Wikipedia KS": 2.0,
        "scholar KS": None,
        "wiki": 2.0,
        "aminer": None,
        "all": None,
    }
    assert found.ranks[A]["all"] == 1.0


def test_the_latex_table_prints_ranks_and_the_best_in_bold() -> None:
    ranked = board_of([cell(A, TWELVE[1], 1.0), cell(B, TWELVE[1], 0.25)])
    text = latex(tex_of(ranked))
    assert (
        "low\\_freq\\_ent & rank" in text
        and "react $\\cdot$ b-13b & 25.0 & 2 & 25.0 & 2" in text
        and "\\textbf{100.0} & 1" in text
    )


def test_matching_has_a_polygon_per_model_over_environments_and_levels() -> None:
    cells = [
        cell(A, TWELVE[0], 1.0),
        cell(A, TWELVE[1], 0.5),
        cell(B, TWELVE[0], 0.0),
        cell(C, TWELVE[2], 0.25),
    ]
    react, pal = matching(cells)
    assert [group.label for group in react.groups] == ["Wikipedia KS", "scholar KS"]
    assert react.values == {"a-7b": (0.75, None), "b-13b": (0.0, None)} and pal.values == {
        "a-7b": (None, 0.25)
    }


def test_a_reference_divides_by_place_and_says_where_it_cannot() -> None:
    cells = [
        cell(A, TWELVE[0], 0.5),
        cell(A, TWELVE[2], 0.0),
        cell(B, TWELVE[0], 0.25),
        cell(B, TWELVE[2], 1.0),
    ]
    found = normalize(cells)
    assert found.reference == A and found.without == (TaskGroup("aminer", "KS"),)
    assert found.ratios == {A: {TaskGroup("wiki", "KS"): 1.0}, B: {TaskGroup("wiki", "KS"): 0.5}}
    assert normalize(cells, "react · b-13b").ratios[A] == {
        TaskGroup("wiki", "KS"): 2.0,
        TaskGroup("aminer", "KS"): 0.0,
    }
    with pytest.raises(UsageError, match="is none of the systems; they are react · a-7b"):
        normalize(cells, "nobody")


def test_the_oracle_takes_the_best_of_all_on_every_question() -> None:
    (found,) = combination(
        [cell(A, TWELVE[0], 1.0, 0.0, 0.0), cell(B, TWELVE[0], 0.0, 0.5, 0.0, 1.0)]
    )
    assert (found.n, found.mean, found.best, found.best_mean) == (3, 0.5, A, pytest.approx(1 / 3))
    assert found.deviation == pytest.approx((1 / 6) ** 0.5)


def test_time_is_taken_of_a_hundred_questions_and_f1_of_all() -> None:
    rows = tuple(summary(f"q{n}", float(n < 50), seconds=float(n)) for n in range(200))
    (found,) = deployment([TaskRun("r", A, TWELVE[0], rows)])
    assert (found.n, found.reward, found.size, found.tokens) == (100, 0.25, 7.0, 10)
    assert (
        found.seconds != pytest.approx(99.5)
        and deployment([TaskRun("r", A, TWELVE[0], rows)])[0].seconds == found.seconds
    )
    (whole,) = deployment([TaskRun("r", A, TWELVE[0], rows)], {"a-7b": 70.0}, timed=0)
    assert (whole.seconds, whole.size) == (99.5, 70.0)


def test_a_bubble_is_as_large_as_the_memory_where_no_size_is_known() -> None:
    small, large = System("react", "small"), System("react", "large")
    cells = [
        TaskRun("r", system, TWELVE[0], (summary("q", 1.0),), memory=memory)
        for system, memory in ((small, 1_000_000), (large, 9_000_000))
    ]
    traces = plotly.figure(analyse(cells, "deployment").figures["wiki seconds"]).data
    assert traces[0].marker.size < traces[1].marker.size and "9 MB" in traces[1].hovertemplate
    assert deployment(cells)[1].memory == 9_000_000


NASTY = System("react", "</script><b>&_x")


@pytest.mark.parametrize("aspect", ASPECTS)
def test_every_aspect_is_a_document_tables_figures_and_files(aspect: str) -> None:
    cells = [cell(s, task, 1.0, 0.25) for s in (A, NASTY) for task in TWELVE]
    found = analyse(cells, aspect)
    json.dumps(found.value)
    assert found.tables and all(
        len(row) == len(table.columns) for table in found.tables for row in table.rows
    )
    assert bool(found.figures) == (aspect != "performance")
    files = report.files(
        aspect, found.document, found.tables, found.figures, found.notes, found.tex
    )
    assert {Path(name).suffix for name in files} >= {".json", ".csv", ".html"}
    page = files[f"{aspect}.html"]
    assert "</script><b>" not in page and "<script" not in page
    assert page.count("<svg") == len(found.figures)
    for figure in found.figures.values():
        assert plotly.figure(figure).data


def test_a_figure_is_one_radar_one_ring_pair_one_bubble_each() -> None:
    cells = [cell(s, task, 1.0, 0.0) for s in (A, B) for task in TWELVE]
    (radar,) = map(plotly.figure, analyse(cells, "matching").figures.values())
    assert [trace.type for trace in radar.data] == ["scatterpolar"] * 2 and len(
        radar.data[0].theta
    ) == 7
    rings = plotly.figure(analyse(cells, "errors").figures["react · a-7b"])
    assert [trace.type for trace in rings.data] == ["pie", "pie"] and sum(
        rings.data[0].values
    ) == pytest.approx(100)
    bubbles = plotly.figure(analyse(cells, "deployment").figures["wiki seconds"])
    sizes = [trace.marker.size for trace in bubbles.data]
    assert len(sizes) == 2 and sizes[0] < sizes[1]


def test_what_cannot_be_analysed_is_refused_in_one_sentence() -> None:
    cells = [cell(A, TWELVE[0], 1.0)]
    with pytest.raises(
        UsageError, match="There is no aspect 'speed'; known: performance, matching"
    ):
        analyse(cells, "speed")
    with pytest.raises(UsageError, match="No run is named"):
        analyse([], "errors")
    with pytest.raises(UsageError, match="There is a size for 'x', but no run of that model"):
        analyse(cells, "deployment", AnalysisOptions(sizes={"x": 7.0}))
