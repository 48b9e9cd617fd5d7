"""Plots: what a reader, a keyboard and a screen reader find in them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from project import PROJECT

from rallebench.core.marks import find_marks, marks_table
from rallebench.core.report import Estimate
from rallebench.core.table_files import csv_table
from rallebench.core.tables import Figure, FigureKind, Unit
from rallebench.render import colours, report, svg
from rallebench.render.axes import fit_axis, frame_axis
from rallebench.render.drawing import Medium
from rallebench.render.plots import MANY

NUMBERS = st.lists(
    st.floats(-1e9, 1e9, allow_nan=False).map(lambda x: float(f"{x:.6g}")), min_size=1, max_size=9
)
SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=9)
SVG = "{http://www.w3.org/2000/svg}"
EM = Estimate(0.518, 0.455, 0.581, 222)
CURVE = Figure(
    "EM over k",
    "k",
    "EM",
    {"EM": ((1, Estimate(0.3, 0.25, 0.35, 222)), (5, EM), (10, None))},
    units=("", "share"),
    runs={"EM": ("one", "five", "ten")},
)


def elements(drawing: str, kind: str, mark: str = "") -> list[ElementTree.Element]:
    found = ElementTree.fromstring(drawing).iter(f"{SVG}{kind}")
    return [element for element in found if not mark or element.get("class") == mark]


def words(drawing: str) -> list[str]:
    return re.findall(r">([^<>]+)</text>", drawing)


# axes


@given(NUMBERS, st.booleans())
def test_an_axis_begins_and_ends_at_ticks_around_the_data(
    values: list[float], from_zero: bool
) -> None:
    axis = fit_axis(values, from_zero=from_zero)
    ticks = [at for at, _ in axis.ticks()]
    assert 2 <= len(ticks) <= 12 and ticks == sorted(set(ticks))
    room = 1e-6 * (axis.high - axis.low)
    assert axis.low - room <= min(values) and max(values) <= axis.high + room
    assert ticks[0] <= min(values) + room and max(values) <= ticks[-1] + room
    assert len({label for _, label in axis.ticks()}) == len(ticks), "no number stands twice"
    if from_zero:
        assert axis.low <= 0 <= axis.high
    if min(values) >= 0:
        assert axis.low >= 0


@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=9))
def test_a_logarithmic_axis_has_ordered_ticks_around_the_data(values: list[float]) -> None:
    axis = fit_axis(values, log=True)
    ticks = [at for at, _ in axis.ticks()]
    assert axis.log and len(ticks) >= 2 and ticks == sorted(set(ticks))
    assert ticks[0] <= min(values) * (1 + 1e-6) and max(values) <= ticks[-1] * (1 + 1e-6)
    places = [axis.place(at) for at in ticks]
    assert places == sorted(places) and places[0] == 0 and places[-1] == 1


@given(SHARES)
def test_shares_stay_between_0_and_100_percent(values: list[float]) -> None:
    for unit, factor in (("share", 1.0), ("percent", 100.0)):
        axis = fit_axis([factor * value for value in values], unit)  # type: ignore[arg-type]
        assert axis.low >= 0 and axis.high <= factor, unit
        assert all(label.endswith(" %") for _, label in axis.ticks())


def test_an_interval_beyond_100_percent_is_not_cut_off() -> None:
    assert fit_axis([0.9, 1.05], "share").high > 1.05 - 1e-9


@given(NUMBERS)
def test_marks_of_a_line_keep_clear_of_the_frame(values: list[float]) -> None:
    axis = frame_axis(values)
    assert axis.low < min(values) and max(values) < axis.high


@pytest.mark.parametrize(
    ("values", "unit", "shown"),
    [
        ([0, 1460], "", ["0", "500", "1,000", "1,500"]),
        ([0, 84_000_000], "bytes", ["0 MB", "20 MB", "40 MB", "60 MB", "80 MB", "100 MB"]),
        ([0.2, 0.9], "seconds", ["0.0 s", "0.2 s", "0.4 s", "0.6 s", "0.8 s", "1.0 s"]),
    ],
)
def test_ticks_have_their_unit(values: list[float], unit: Unit, shown: list[str]) -> None:
    labels = [label for _, label in fit_axis(values, unit, from_zero=True).ticks()]
    assert labels == shown


# marks


@pytest.mark.parametrize("kind", ["line", "bar", "scatter"])
def test_every_kind_of_plot_has_a_mark_for_what_was_measured(kind: FigureKind) -> None:
    mean = {"value": 0.5, "low": 0.4, "high": 0.7, "n": 3}
    drawing = svg.figure(Figure("t", "x", "y", {"a": ((0, mean), (0.2, None), (0.4, 0.1))}, kind))
    assert len(elements(drawing, "g", "mark")) == 2
    assert len(elements(drawing, "path", "interval")) == 1, "the interval of the mean"
    assert len(elements(drawing, "path", "bar")) == 2 * (kind == "bar")
    assert drawing.count("<polyline") == (kind == "line")


def test_a_mark_says_its_value_to_mouse_keyboard_and_screen_reader() -> None:
    first, second = elements(svg.figure(CURVE), "g", "mark")
    assert second.get("aria-label") == "k 5 · EM 51.8 % ± 6.3 · 222 questions"
    assert second.findtext(f"{SVG}title") == second.get("aria-label")
    assert (second.get("role"), second.get("tabindex")) == ("img", "0") and first is not second
    root = ElementTree.fromstring(svg.figure(CURVE))
    assert root.findtext(f"{SVG}title") == root.get("aria-label") == "EM over k"
    assert root.findtext(f"{SVG}desc") == "EM over k: EM."


def test_on_the_page_a_mark_leads_to_its_run_and_in_a_file_nowhere() -> None:
    live = svg.figure(CURVE, Medium(live=True, door=lambda mark: f"#/{mark.run}"))
    assert [a.get("href") for a in elements(live, "a", "mark")] == ["#/one", "#/five"]
    assert "href" not in svg.figure(CURVE)


def test_the_page_draws_with_its_tokens_and_a_file_with_colours() -> None:
    live, plain = svg.figure(CURVE, Medium(live=True)), svg.figure(CURVE)
    assert "var(--plot-1,#0d9488)" in live and "var(--bg,#ffffff)" in live
    assert "var(" not in plain and re.sub(r"var\(--[\w-]+,(#\w+)\)", r"\1", live) == plain


def test_printed_values_are_dashed_and_hollow_with_their_source() -> None:
    series = {"ours": ((0, EM), (0.4, EM)), "paper": ((0, 0.9), (0.4, 0.8))}
    figure = Figure(
        "t", "noise", "right", series, units=("", "share"), printed={"paper": "Table 1"}
    )
    ours, paper = elements(svg.figure(figure), "g", "series")
    lines = [part.find(f"{SVG}polyline") for part in (ours, paper)]
    assert [line is not None and line.get("stroke-dasharray") for line in lines] == ["none", "6 4"]
    labels = [
        mark.get("aria-label") for mark in paper.iter(f"{SVG}g") if mark.get("class") == "mark"
    ]
    assert labels[0] == "paper · noise 0 · right 90.0 % · Table 1"
    assert "Table 1" in (ElementTree.fromstring(svg.figure(figure)).findtext(f"{SVG}desc") or "")
    assert csv_table(marks_table(figure)).splitlines()[3].endswith(",Table 1")


def test_series_differ_by_shape_and_not_by_colour_alone() -> None:
    series = dict.fromkeys("abcdef", ((1, 0.5), (2, 0.4)))
    drawn = elements(svg.figure(Figure("t", "x", "y", series)), "g", "series")
    shapes = {path.get("d") for part in drawn for path in part.iter(f"{SVG}path")}
    assert len(shapes) == len(series)


def test_bars_of_several_series_are_told_apart_without_their_colour() -> None:
    bars = dict.fromkeys("abc", (("k 1", 0.5), ("k 5", 0.01)))
    drawing = svg.figure(Figure("t", "", "EM", bars, "bar", units=("", "share")))
    signs = [sign.get("d") for sign in elements(drawing, "path", "sign")]
    assert len(signs) == 6 + 3, "one on each bar, also a short one, and one in the legend"
    assert len(set(signs)) == 3
    alone = svg.figure(Figure("t", "", "EM", {"a": bars["a"]}, "bar", units=("", "share")))
    assert not elements(alone, "path", "sign")


def test_bars_begin_at_zero_and_lines_where_the_data_are() -> None:
    points = (("a", 0.5), ("b", 0.52))
    assert "0 %" in words(
        svg.figure(Figure("t", "", "EM", {"EM": points}, "bar", units=("", "share")))
    )
    assert "0 %" not in words(svg.figure(CURVE))


def test_an_axis_has_the_numbers_of_the_data_where_they_are_few() -> None:
    points = tuple((k, Estimate(0.5, 0.2, 0.8, 40)) for k in (3, 5, 10))
    shown = {*words(svg.figure(Figure("t", "k", "EM", {"EM": points}, units=("", "share"))))}
    assert {"3", "5", "10", "20 %", "80 %"} <= shown and not {"4", "6"} & shown
    many = tuple((x, 0.5) for x in range(40))
    assert {"0", "10", "20", "30"} <= {*words(svg.figure(Figure("t", "x", "y", {"a": many})))}


def test_a_line_of_many_points_has_a_band_and_a_few_have_whiskers() -> None:
    points = tuple((x, Estimate(0.5, 0.4, 0.6, 9)) for x in range(20))
    drawing = svg.figure(Figure("t", "x", "y", {"a": points}))
    assert drawing.count("<polygon") == 1 and not elements(drawing, "path", "interval")


def test_a_plot_with_many_points_has_the_ends_of_its_axes_for_zooming() -> None:
    points = tuple((x, x / 50) for x in range(MANY + 1))
    root = ElementTree.fromstring(svg.figure(Figure("t", "x", "y", {"a": points}, "scatter")))
    low, high, kind = (root.get("data-zoom-x") or "").split()
    assert float(low) < 0 and float(high) > MANY and kind == "linear"
    assert "data-zoom-x" not in svg.figure(CURVE)


def test_the_names_of_two_bubbles_in_one_place_stand_a_line_apart() -> None:
    series = {"large": ((1.0, 0.5, 196),), "small": ((1.0, 0.5, 169),)}
    drawing = svg.figure(Figure("t", "x", "y", series, "bubble"))
    large, small = (
        float(re.findall(rf'y="([-\d.]+)"[^>]*>{name}</text>', drawing)[0]) for name in series
    )
    assert large - small == 14, "lines that are 13 apart do not touch"


def test_bubbles_have_the_intervals_of_their_means() -> None:
    drawing = svg.figure(
        Figure("t", "s", "EM", {"a": ((1.0, EM, 5),)}, "bubble", units=("", "share"))
    )
    assert len(elements(drawing, "path", "interval")) == 1
    (mark,) = elements(drawing, "g", "mark")
    assert mark.get("aria-label") == "a · s 1 · EM 51.8 % ± 6.3 · 222 questions"


def test_points_without_a_value_are_left_out_of_a_plot_and_an_empty_plot_says_so() -> None:
    empty = report.block(Figure("t", "x", "y", {}, empty="Nothing is known."))
    assert "Nothing is known." in empty and "<svg" not in empty
    for kind in ("line", "bar", "scatter", "box", "bubble"):
        assert svg.figure(Figure("t", "x", "y", {"b": ((1, None),)}, kind)) == ""
        drawing = svg.figure(Figure("t", "x", "y", {"a": ((None, 1.0), (2, 0.5), (3, 1.0))}, kind))
        assert "NaN" not in drawing and len(elements(drawing, "g", "mark")) == 2


def test_the_run_of_a_point_stays_with_it_when_another_has_no_value() -> None:
    figure = Figure("t", "x", "y", {"a": ((1, None), (2, 0.5))}, runs={"a": ("first", "second")})
    assert [mark.run for mark in find_marks(figure)["a"]] == ["second"]


def test_the_data_of_a_plot_have_all_digits_and_the_ends_of_intervals() -> None:
    lines = csv_table(marks_table(CURVE)).splitlines()
    assert lines == [
        "series,k,EM,EM low,EM high,EM n",
        "EM,1,0.3,0.25,0.35,222",
        "EM,5,0.518,0.455,0.581,222",
    ]


def test_a_report_has_links_that_save_a_plot_and_its_data() -> None:
    drawn = report.block(CURVE)
    for name in ("Save as SVG", "Save as PNG", "Save data as CSV"):
        assert name in drawn
    assert 'download="line-k.svg"' in drawn and 'download="line-k.csv"' in drawn


# colours


def dark_tokens() -> dict[str, str]:
    style = "".join(
        path.read_text("utf-8")
        for path in (
            PROJECT / "rallebench/gui/style/base.css",
            PROJECT / "rallebench/gui/style/plots.css",
        )
    )
    dark = "".join(re.findall(r"body\.dark \{([^}]*)\}", style))
    return dict(re.findall(r"(--[\w-]+): (#\w+);", dark))


def test_every_series_stands_out_on_light_and_dark() -> None:
    dark = dark_tokens()
    for token, light in colours.TOKENS.items():
        if token.startswith("--plot"):
            assert colours.contrast(light, "#ffffff") >= 3, token
            assert colours.contrast(dark[token], dark["--bg"]) >= 3, token
    assert set(colours.TOKENS) <= dark.keys()
