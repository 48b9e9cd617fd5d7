"""Means and ranks as in R-Eval's tables; matching, normalisation, combination and deployment on numbers that can be
checked by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rallebench.analysis.agents import (
    AgentTask,
    Analysis,
    AnalysisOptions,
    EpisodeSummary,
    System,
    TaskGroup,
    TaskRun,
)
from rallebench.analysis.agents.aspects import ASPECTS, analyse
from rallebench.analysis.agents.leaderboard import board, strict_ranks
from rallebench.analysis.agents.reading import read_system
from rallebench.core.errors import UsageError
from rallebench.core.runs import RunSpec
from rallebench.core.table_files import latex
from rallebench.datasets.tasks import TASKS
from rallebench.engine.run_files import RunDescription
from rallebench.experiments.benchmarks import published_table
from rallebench.render import report, svg

TWELVE = tuple(AgentTask(task.name, task.domain, task.level, task.number) for task in TASKS)
PLACES = tuple(
    TaskGroup(domain, level) for domain in ("wiki", "aminer") for level in ("KS", "KU", "KA")
)
A, B, C = System("react", "a-7b"), System("react", "b-13b"), System("pal", "a-7b")


@pytest.mark.parametrize(
    ("settings", "system"),
    [
        ({"agent": {"workflow": "react", "llm": "a-7b"}}, A),
        ({"system": {"workflow": "pal", "llm": "a-7b"}}, C),
        (
            {
                "chain": {
                    "name": "read",
                    "actions": [
                        {"kind": "retrieve", "template": "{question}", "target": "wiki"},
                        {"kind": "generate", "template": "{question}", "target": "a-7b"},
                        {"kind": "generate", "template": "{question}", "target": "b-13b"},
                        {"kind": "generate", "template": "{question}", "target": "a-7b"},
                    ],
                }
            },
            System("read", "a-7b + b-13b"),
        ),
        ({}, System("mine", "")),
    ],
)
def test_the_system_of_a_run_is_its_workflow_with_its_models(
    settings: dict[str, Any], system: System
) -> None:
    stored = RunDescription("mine", RunSpec("nq", "chain", settings), "")
    assert read_system(stored, "mine") == system


def summary(qid: str, reward: float, **more: Any) -> EpisodeSummary:
    scores = (reward, float(reward == 1), reward)
    costs = {"seconds": 1.0, "tokens": 10, **more}
    return EpisodeSummary(qid, "?", ("x",), "x", *scores, "answered", "", "", **costs)


def cell(system: System, task: AgentTask, *rewards: float) -> TaskRun:
    rows = tuple(summary(f"q{n}", reward) for n, reward in enumerate(rewards))
    return TaskRun(f"{system.label} {task.name}", system, task, rows)


def test_no_rank_is_given_twice_as_in_the_paper() -> None:
    sums = [*range(30, 12, -1), 5.0, 5.0, 1.0]
    assert strict_ranks(sums) == list(range(1, 22))
    assert strict_ranks([0.3, 0.1 + 0.2, 0.3]) == [1, 2, 3]  # the upper of equal rows first
    assert strict_ranks([None, 2.0, None]) == [None, 1, None]
    assert strict_ranks([]) == []


@pytest.mark.parametrize("table", ["reval_table3", "reval_table5"])
def test_every_rank_that_the_paper_prints_is_its_own(table: str) -> None:
    printed = published_table(table)
    for column in (c for c in printed.columns if c.endswith("_rank")):
        ranks = [row.values[column] for row in printed.rows]
        assert sorted(ranks) == list(range(1, 22)), column
    means = [row.values["all"] for row in published_table("reval_table3").rows]
    ours = strict_ranks(means)
    theirs = [row.values["all_rank"] for row in published_table("reval_table3").rows]
    twice = {mean for mean in means if means.count(mean) > 1}  # the printed digits hide an order
    assert [r for r, m in zip(ours, means) if m not in twice] == [
        r for r, m in zip(theirs, means) if m not in twice
    ]


def test_means_are_over_nine_three_and_twelve_tasks_of_the_same_weight() -> None:
    scores = {(A, task): float(n) for n, task in enumerate(TWELVE)}
    wiki = [n for n, task in enumerate(TWELVE) if task.domain == "wiki"]
    assert len(wiki) == 9
    expected = {"wiki": sum(wiki) / 9, "aminer": (66 - sum(wiki)) / 3, "all": 5.5}
    assert board([A], TWELVE, scores, PLACES).means[A] == expected


def test_ranks_are_of_the_sums_of_a_level() -> None:
    easy, low = TWELVE[:2]
    rewards = {A: (0.5, 0.2), B: (0.1, 0.6), C: (0.9, 0.0)}
    scores = {(s, task): r for s, row in rewards.items() for task, r in zip((easy, low), row)}
    ranks = board([A, B, C], [easy, low], scores, PLACES[:1]).ranks
    assert [ranks[system]["Wikipedia KS"] for system in (A, B, C)] == [2, 3, 1]


def test_a_system_without_a_task_has_no_mean_and_takes_no_rank() -> None:
    cells = [cell(A, TWELVE[0], 1.0), cell(A, TWELVE[2], 0.5), cell(B, TWELVE[0], 0.5)]
    first, other = analyse(cells, "performance").value["systems"]
    assert other["means"] == {"wiki": 0.5, "aminer": None, "all": None}
    ranks = {"Wikipedia KS": 2, "scholar KS": None, "wiki": 2, "aminer": None, "all": None}
    assert other["ranks"] == ranks
    assert first["ranks"]["all"] == 1.0


def test_the_latex_table_prints_ranks_and_the_best_in_bold() -> None:
    table = analyse([cell(A, TWELVE[1], 1.0), cell(B, TWELVE[1], 0.25)], "performance").tex
    assert table is not None
    text = latex(table)
    for part in (
        "low\\_freq\\_ent & rank",
        "react $\\cdot$ b-13b & 25.0 & 2 & 25.0 & 2",
        "\\textbf{100.0} & 1",
    ):
        assert part in text


def test_matching_has_a_polygon_per_model_over_environments_and_levels() -> None:
    cells = [
        cell(A, TWELVE[0], 1.0),
        cell(A, TWELVE[1], 0.5),
        cell(B, TWELVE[0], 0.0),
        cell(C, TWELVE[2], 0.25),
    ]
    react, pal = analyse(cells, "matching").value["workflows"]
    assert react["axes"] == ["Wikipedia KS", "scholar KS"]
    assert react["models"] == {"a-7b": [0.75, None], "b-13b": [0.0, None]}
    assert pal["models"] == {"a-7b": [None, 0.25]}


def test_a_reference_divides_by_place_and_says_where_it_cannot() -> None:
    cells = [
        cell(A, TWELVE[0], 0.5),
        cell(A, TWELVE[2], 0.0),
        cell(B, TWELVE[0], 0.25),
        cell(B, TWELVE[2], 1.0),
    ]
    analysis = analyse(cells, "normalization")
    assert analysis.value == {
        "reference": "react · a-7b",
        "ratios": {"react · a-7b": {"Wikipedia KS": 1.0}, "react · b-13b": {"Wikipedia KS": 0.5}},
        "without": ["scholar KS"],
    }
    assert "react · a-7b has no score, or 0, on scholar KS" in analysis.notes[0]
    by_b = analyse(cells, "normalization", AnalysisOptions(reference="react · b-13b")).value
    assert by_b["ratios"]["react · a-7b"] == {"Wikipedia KS": 2.0, "scholar KS": 0.0}


def test_the_oracle_takes_the_best_of_all_on_every_question() -> None:
    cells = [cell(A, TWELVE[0], 1.0, 0.0, 0.0), cell(B, TWELVE[0], 0.0, 0.5, 0.0, 1.0)]
    (task,) = analyse(cells, "combination").value["tasks"]
    assert (task["n"], task["oracle"], task["best"]) == (3, 0.5, A.label)
    assert (task["best_mean"], task["deviation"]) == pytest.approx((1 / 3, (1 / 6) ** 0.5))


def test_time_is_taken_of_a_hundred_questions_and_f1_of_all() -> None:
    rows = tuple(summary(f"q{n}", float(n < 50), seconds=float(n)) for n in range(200))
    run = TaskRun("r", A, TWELVE[0], rows)
    (point,), (again,) = (analyse([run], "deployment").value["points"] for _ in range(2))
    counted = {name: point[name] for name in ("n_timed", "reward", "size", "tokens")}
    assert counted == {"n_timed": 100, "reward": 0.25, "size": 7.0, "tokens": 10}
    assert point["seconds"] == again["seconds"] != pytest.approx(99.5)
    given = AnalysisOptions(sizes={"a-7b": 70.0})
    assert analyse([run], "deployment", given).value["points"][0]["size"] == 70.0


def test_a_bubble_is_as_large_as_the_memory_where_no_size_is_known() -> None:
    small, large = System("react", "small"), System("react", "large")
    cells = [
        TaskRun("r", system, TWELVE[0], (summary("q", 1.0),), memory=memory)
        for system, memory in ((small, 1_000_000), (large, 9_000_000))
    ]
    analysis = analyse(cells, "deployment")
    (_, _, first, words), (_, _, second, more) = bubbles(analysis)
    assert (first, words, second, more) == (1_000_000, "1 MB", 9_000_000, "9 MB")
    assert analysis.value["points"][1]["memory"] == 9_000_000


NASTY = System("react", "</script><b>&_x")


@pytest.mark.parametrize("aspect", ASPECTS)
def test_every_aspect_is_a_document_tables_figures_and_files(aspect: str) -> None:
    cells = [cell(s, task, 1.0, 0.25) for s in (A, NASTY) for task in TWELVE]
    analysis = analyse(cells, aspect)
    json.dumps(analysis.value)
    rows = [(row, table) for table in analysis.tables for row in table.rows]
    assert rows and all(len(row) == len(table.columns) for row, table in rows)
    assert bool(analysis.figures) == (aspect != "performance")
    files = report.files(
        aspect, analysis.document, analysis.tables, analysis.figures, analysis.notes, analysis.tex
    )
    assert {Path(name).suffix for name in files} >= {".json", ".csv", ".html"}
    page = files[f"{aspect}.html"]
    assert "</script><b>" not in page and "<script" not in page
    assert page.count("<svg xmlns") == len(analysis.figures)
    for figure in analysis.figures.values():
        assert svg.figure(figure)


def bubbles(analysis: Analysis) -> list[tuple[Any, ...]]:
    """The points of the first plot."""
    return [point for (point,) in analysis.figures["wiki seconds"].series.values()]


def test_a_figure_is_one_radar_one_ring_pair_one_bubble_each() -> None:
    cells = [cell(s, task, 1.0, 0.0) for s in (A, B) for task in TWELVE]
    (radar,) = analyse(cells, "matching").figures.values()
    assert (radar.kind, [len(points) for points in radar.series.values()]) == ("radar", [6, 6])
    rings = analyse(cells, "errors").figures["react · a-7b"]
    assert [sum(share for _, share in ring) for ring in rings.series.values()] == [100, 100]
    assert [point[2] for point in bubbles(analyse(cells, "deployment"))] == [7.0, 13.0]


@pytest.mark.parametrize(
    ("runs", "aspect", "options", "sentence"),
    [
        (1, "speed", {}, "There is no aspect 'speed'; known: performance, matching"),
        (0, "errors", {}, "No run is named"),
        (1, "deployment", {"sizes": {"x": 7.0}}, "There is a size for 'x', but no run of that"),
        (1, "normalization", {"reference": "x"}, "none of the systems; they are react · a-7b"),
    ],
)
def test_what_cannot_be_analysed_is_refused_in_one_sentence(
    runs: int, aspect: str, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        analyse([cell(A, TWELVE[0], 1.0)][:runs], aspect, AnalysisOptions(**options))
