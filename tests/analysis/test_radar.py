"""Runs over several axes: datasets without common questions, or the kinds of question of one set."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_workspace import RECORDS, CommandLine, make_workspace, write_lines

from rallebench.analysis.radar import (
    DATASETS,
    Radar,
    over_datasets,
    over_field,
    possible_axes,
    share_nothing,
)
from rallebench.analysis.radar import figure as radar_figure
from rallebench.analysis.ranking import compare_many
from rallebench.core.errors import UsageError
from rallebench.core.report import Estimate
from rallebench.core.tables import Figure
from rallebench.engine.store import RunFolder
from rallebench.render import report, svg
from rallebench.services.workbench import Workbench
from rallebench.views import run_views


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = make_workspace(tmp_path_factory.mktemp("radar") / "workspace")
    kinds = ("moon", "moon", "place", "river", "person", "moon", "river", "place")
    rows = [
        {**row, "meta": {"kind": kind, "own": row["id"]}, "partial_evidence": []}
        for row, kind in zip(RECORDS, kinds)
    ]
    write_lines(found / "datasets" / "kinds.jsonl", rows)
    for name, part in (("one", rows[:3]), ("two", rows[3:6]), ("three", rows[6:])):
        write_lines(found / "datasets" / f"{name}.jsonl", part)
    return found


@pytest.fixture
def runs(cli: CommandLine, workspace: Path) -> dict[str, RunFolder]:
    names = [f"read-titan-{dataset}" for dataset in ("kinds", "one", "two", "three")]
    for name in (*names, "read-echo-kinds", "closed-titan-one", "closed-titan-two"):
        if not (workspace / "runs" / name).exists():
            chain, llm, dataset = name.split("-")
            assert cli.run(name, llm, "--dataset", dataset, chain=chain).code == 0
    return {run.name: run for run in Workbench(workspace).runs.list()}


def some(runs: dict[str, RunFolder], *names: str) -> list[RunFolder]:
    return [runs[name] for name in names]


def means(found: Radar, line: str) -> dict[str, tuple[float | None, int] | None]:
    return {
        axis: (mean.value, mean.n) if mean else None
        for axis, mean in zip(found.axes, found.lines[line])
    }


def test_kinds_of_question_are_the_axes_and_names_are_not(runs: dict[str, RunFolder]) -> None:
    both = some(runs, "read-titan-kinds", "read-echo-kinds")
    common = compare_many(both).common
    assert possible_axes(both, common) == ["meta.kind"]
    found = over_field(both, common, "em", "meta.kind")
    assert means(found, "read-titan-kinds") == {
        "moon": (1 / 3, 3),
        "place": (0.0, 2),
        "river": (0.0, 2),
        "person": (0.0, 1),
    }
    with pytest.raises(UsageError, match=r"no kinds by .meta\.own2."):
        over_field(both, common, "em", "meta.own2")


def test_a_line_is_a_chain_over_datasets_and_may_be_open(runs: dict[str, RunFolder]) -> None:
    chosen = some(
        runs,
        "read-titan-one",
        "read-titan-two",
        "read-titan-three",
        "closed-titan-one",
        "closed-titan-two",
    )
    assert share_nothing(chosen) and possible_axes(chosen, ()) == [DATASETS]
    found = over_datasets(chosen)
    assert (list(found.lines), found.axes) == (["read", "closed"], ("one", "two", "three"))
    rings = svg.figure(radar_figure(found))
    assert ">25 %</text>" in rings and ">0.25<" not in rings, "a share is written in percent"
    assert means(found, "read") == {"one": (1 / 3, 3), "two": (0.0, 3), "three": (0.0, 2)}
    assert means(found, "closed")["three"] is None


def test_two_runs_of_one_chain_on_one_set_are_never_averaged(runs: dict[str, RunFolder]) -> None:
    chosen = some(runs, "read-titan-one", "read-titan-two", "read-echo-kinds", "read-titan-kinds")
    found = over_datasets(chosen)
    assert list(found.lines) == ["read", "read-echo-kinds"], (
        "another model makes another chain of the same name"
    )
    assert list(means(found, "read").values())[2] == (1 / 8, 8)


def test_runs_of_one_set_have_no_radar_over_sets(runs: dict[str, RunFolder]) -> None:
    with pytest.raises(UsageError, match="choose runs of several datasets"):
        over_datasets(some(runs, "read-titan-kinds", "read-echo-kinds"))


def test_drawings_are_whole_svg_and_escape_what_they_show(runs: dict[str, RunFolder]) -> None:
    import xml.etree.ElementTree as ET

    both = some(runs, "read-titan-kinds", "read-echo-kinds")
    found = over_field(both, compare_many(both).common, "em", "meta.kind")
    evil = Radar(
        "<by>",
        found.measure,
        tuple(f"<{axis}>" for axis in found.axes),
        {f"<i>{name}": row for name, row in found.lines.items()},
    )
    figures = (
        radar_figure(evil),
        Figure("", "<x>", "<y>", {"<a>": ((0.0, 0.0, 0.0),), "b": ((0.0, 0.0, 1.0),)}, "bubble"),
        Figure("", "", "", {"<a>": (("right", 3),)}, "waterfall", {"right": "<r>", "failed": "f"}),
        Figure(
            "", "<x>", "<y>", {"<a>": (("<1>", Estimate(0.5, 0.4, 0.6, 9)), ("2", None))}, "bar"
        ),
        Figure("", "<x>", "<y>", {"<a>": ((1, 0.5), (2, 0.75))}, "line"),
        Figure("", "", "<y>", {"<a>": (("<1>", 0.5),), "b": (("2", 0.25),)}, "box"),
        Figure("", "", "", {"in": (("EM", 60.0),), "out": (("EM", 60.0),)}, "rings", {"EM": "<e>"}),
    )
    for figure in figures:
        assert ET.fromstring(svg.figure(figure)).tag.endswith("svg"), figure.kind
    two_axes = radar_figure(Radar("x", found.measure, ("a", "b"), {"one": (None, None)}))
    assert svg.figure(two_axes) == "", "two axes span nothing"
    assert "A radar needs three axes" in report.block(two_axes)


def test_a_page_calls_runs_by_titles_and_kinds(workspace: Path, runs: dict[str, RunFolder]) -> None:
    bench = Workbench(workspace)
    titles = {"read-titan-kinds": "mine", "read-echo-kinds": "read · echo"}
    (_, figure, table), *_ = run_views.kind_tables(bench.workspace, titles, "em")
    assert (figure.title, figure.x, list(figure.series)) == (
        "EM by kind",
        "kind",
        list(titles.values()),
    )
    assert table.labels == ("kind", "mine", "read · echo")
    bench.close()
