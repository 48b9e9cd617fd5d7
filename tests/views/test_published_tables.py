"""The tables of the papers with our runs beside them: comparable rows, notes, and output formats."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from small_workspace import CommandLine

from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.experiment_reports import PUBLISHED, OwnRow
from rallebench.core.report import Estimate
from rallebench.experiments.benchmarks import (
    published_names,
    published_table,
    table_figures,
    table_file,
)
from rallebench.experiments.published.rows import own_row
from rallebench.render import svg
from rallebench.services.workbench import Workbench
from rallebench.views import published

DOMAINS = {"wiki": "Wikipedia", "aminer": "scholar"}
HALF = Estimate(0.5, 0.4, 0.6, 300)


def store_experiment(workspace: Path, name: str, *rows: OwnRow) -> None:
    """A finished experiment with these rows."""
    folder = workspace / "experiments" / name
    folder.mkdir(parents=True)
    request = {"kind": "rgb-noise", "noun": "suite", "request": {"settings": {}}, "runs": {}}
    (folder / "experiment.json").write_text(json.dumps(request))
    report = {"request": {}, "made": "", PUBLISHED: [row.to_json() for row in rows]}
    (folder / "report.json").write_text(json.dumps(report))


def noise_row(why: str = "", differs: tuple[str, ...] = ("Prompts reworded.",)) -> OwnRow:
    return own_row("rgb_table1", "reader", {"en_0": HALF, "en_0.2": None}, why, differs)


@pytest.fixture
def workbench(tmp_path: Path) -> Any:
    made = Workbench(tmp_path)
    yield made
    made.close()


def test_our_rows_stand_below_the_printed_ones_in_the_papers_unit(workbench: Workbench) -> None:
    store_experiment(workbench.workspace.path, "night", noise_row())
    value = published.open_table("rgb:1")
    table = published.as_table(value, published.own_rows(workbench.workspace, value))
    assert table.rows[-1][0] == "ours: reader (night, n = 300)"
    cells = dict(zip(table.labels, table.rows[-1]))
    assert (cells["en_0"], cells["en_0.2"]) == ("50.00 [40.00, 60.00]", "")
    assert table.note == (
        "arXiv:2309.01431, Table 1. All in: percent. Ours (night): Prompts reworded."
    )
    assert published.counts(workbench.workspace) == {"rgb:1": 1}


def test_a_row_that_is_not_comparable_is_named_with_its_reason(workbench: Workbench) -> None:
    store_experiment(
        workbench.workspace.path, "few", noise_row("ours are of 20 questions, the paper's of 300")
    )
    value = published.open_table("rgb:1")
    own = published.own_rows(workbench.workspace, value)
    table = published.as_table(value, own)
    assert len(table.rows) == len(value.rows) and published.counts(workbench.workspace) == {}
    why = "ours are of 20 questions, the paper's of 300"
    assert table.note.endswith(f"Not beside it: few ({why}).")
    assert published.figures(value, own) == published.figures(value)


def test_rows_of_named_experiments_alone_or_a_sentence(workbench: Workbench) -> None:
    store_experiment(workbench.workspace.path, "night", noise_row())
    store_experiment(workbench.workspace.path, "day", noise_row())
    value = published.open_table("rgb:1")
    names = [
        beside.experiment for beside in published.own_rows(workbench.workspace, value, ["day"])
    ]
    assert names == ["day"] and len(published.own_rows(workbench.workspace, value)) == 2
    with pytest.raises(NotFoundError, match=r"^The experiment 'day' has nothing of this table"):
        published.own_rows(workbench.workspace, published.open_table("rgb:3"), ["day"])
    with pytest.raises(UsageError):
        published.own_rows(workbench.workspace, value, ["noon"])
    (workbench.workspace.path / "experiments" / "day" / "report.json").write_text("{")
    assert len(published.own_rows(workbench.workspace, value)) == 1, "a damaged one is left out"


@pytest.mark.parametrize("name", published_names())
def test_every_drawing_has_a_mark_for_every_figure_that_it_draws(name: str) -> None:
    value = published_table(name)
    for figure in published.figures(value):
        assert svg.figure(figure), (name, figure.title)
        drawn = [y for points in figure.series.values() for _, y, *_ in points]
        assert drawn and all(isinstance(y, (int, float)) for y in drawn)


def printed_rows(name: str) -> list[dict[str, Any]]:
    """The rows of a table's file, without the code that draws them."""
    rows: list[dict[str, Any]] = json.loads(table_file(name).read_text())["rows"]
    return rows


@pytest.mark.parametrize(
    "name", [name for name in published_names() if table_figures(published_table(name))[1]]
)
def test_every_drawn_point_is_a_figure_of_the_tables_file(name: str) -> None:
    table, rows = published_table(name), printed_rows(name)
    for plot in table_figures(table)[1]:
        figure = plot.figure(table.rows)
        fitting = [row for row in rows if plot.where.items() <= row["settings"].items()]
        cells = [(row, c) for row in fitting for c in plot.columns if row["values"][c] is not None]
        points = [(s, *point) for s, of_series in figure.series.items() for point in of_series]
        if plot.kind == "bubble":
            x, y, size = plot.columns
            whole = [r for r in fitting if None not in (r["values"][x], r["values"][y])]
            expected = {(r["system"], *(r["values"][c] for c in (x, y, size))) for r in whole}
        elif plot.along:
            names = {r["settings"].get(plot.by, plot.columns[0]) for r in fitting}
            assert set(figure.series) == names
            ways = [
                (r["settings"].get(plot.by, c), r["settings"].get(plot.along), r, c)
                for r, c in cells
            ]
            expected = {
                (s, at if plot.kind == "line" else str(at), r["values"][c])
                for s, at, r, c in ways
                if at is not None
            }
        else:
            kind = float if plot.kind == "line" else str
            ways = [(r, c, kind(c.removeprefix(plot.cut))) for r, c in cells]
            expected = {(r["system"], label, r["values"][c]) for r, c, label in ways}
        assert set(points) == expected, (name, plot.title)


def test_r_evals_radars_are_means_of_the_tasks_of_an_environment_and_level() -> None:
    levels = {
        row["settings"]["id"]: (row["settings"]["domain"], row["settings"]["level"])
        for row in printed_rows("reval_table1")
    }
    values: dict[tuple[str, str], dict[str, float]] = {}
    for row in printed_rows("reval_table3") + printed_rows("reval_table5"):
        system = row["settings"]["workflow"], row["settings"]["llm"]
        values.setdefault(system, {}).update(
            {c: v for c, v in row["values"].items() if c in levels}
        )
    figures = [f for f in published.figures(published.open_table("reval:3")) if "level" in f.title]
    drawn = {
        (f.title.partition(",")[0], llm): dict(p) for f in figures for llm, p in f.series.items()
    }
    assert drawn.keys() == values.keys() and len(drawn) == 21
    for system, of_system in values.items():
        assert len(of_system) == 12
        for (domain, word), level in product(DOMAINS.items(), ("KS", "KU", "KA")):
            tasks = [v for c, v in of_system.items() if levels[c] == (domain, level)]
            assert drawn[system][f"{word} {level}"] == pytest.approx(sum(tasks) / len(tasks))


def test_r_evals_rings_have_the_shares_of_its_text_and_name_what_is_not_printed() -> None:
    first, second = published.figures(published.open_table("reval:text"))
    assert (first.title, second.title) == ("PAL + gpt-4", "PAL + gpt-3.5-turbo")
    assert dict(first.series["right and wrong"]) == {"ACC": 43.6, "WA": 56.4}
    outside = dict(first.series["classes"])
    assert (outside["EM"], outside["AM"], outside["TE"]) == (16.5, 27.1, 49.4)
    for figure in (first, second):
        assert sum(share for _, share in figure.series["classes"]) == pytest.approx(100)


def test_our_row_is_a_series_of_its_own_where_its_settings_fit(workbench: Workbench) -> None:
    row = own_row("rgb_table7", "reader", {"Acc": HALF}, language="en")
    store_experiment(workbench.workspace.path, "facts", row)
    value = published.open_table("rgb:7")
    english, chinese = published.figures(value, published.own_rows(workbench.workspace, value))
    assert english.series["ours: reader (facts)"][0] == ("Acc", Estimate(50.0, 40.0, 60.0, 300))
    assert not any(name.startswith("ours") for name in chinese.series)


def test_words_are_searched_in_names_headings_and_rows() -> None:
    def names(words: str) -> list[str]:
        return [name for tables in published.search_tables(words).values() for name, _ in tables]

    assert names("rgb table 7")[0] == "rgb:7"
    assert names("DiskANN memory") == ["ralle:4"]
    assert names("nothing of the kind") == [] and len(names("")) == len(published_names())


def test_brackets_have_the_digits_of_their_column() -> None:
    table = published.as_table(published.open_table("ralle:2"))
    cells = [str(cell) for row in table.rows for cell in row]
    assert "42.1 (49.0)" in cells and not any(cell.endswith("(49)") for cell in cells)


# the command line


def test_a_table_is_printed_in_all_forms(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cli = CommandLine(capfd, tmp_path)
    store_experiment(cli.workspace, "night", noise_row())
    listed = {row["name"] for row in cli.json("list", "published")["published"]}
    assert {"ralle:2", "rgb:text", "reval:5"} <= listed and len(listed) == len(published_names())
    shown = cli("report", "--published", "rgb:1")
    assert "96.33" in shown.out and "ours: reader (night, n = 300)" in shown.out
    value: Mapping[str, Any] = cli.json("report", "--published", "rgb:1")
    assert value["rows"][0]["values"]["en_0"] == 96.33 and value["ours"][0]["experiment"] == "night"
    for suffix, holds in (("csv", "96.33"), ("tex", r"en\_0"), ("json", "96.33"), ("html", "svg")):
        file = tmp_path / f"t.{suffix}"
        ran = cli("report", "--published", "rgb:1", "--out", str(file))
        assert ran.code == 0, ran.err
        assert holds in file.read_text()
    bad = cli("report", "--published", "rgb:1", "--out", str(tmp_path / "t.doc"))
    assert bad.code == 2 and "its end must be one of .json, .csv, .tex, .html." in bad.err
    bare = cli("report")
    assert bare.code == 2 and "or a table with --published" in bare.err
