"""One table, and the same numbers, as text, HTML, CSV and LaTeX."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from rallebench.core.numbers import independence
from rallebench.core.report import ClusterCounts, Estimate
from rallebench.core.table_files import csv_lines, csv_table, latex
from rallebench.core.tables import Code, Column, Figure, Fold, Format, Section, Table
from rallebench.render import html, numbers, report, svg, text

TABLE = Table(
    "F1 <all>",
    (Column("run", "text"), Column("F1", "percent", "Overlap of words."), Column("n", "count")),
    (("a & b", Estimate(0.5, 0.4, 0.6, 30), 1200), ("多瑙", 0.25, None)),
    note="Two runs.",
    best=frozenset({(0, 1)}),
)


@pytest.mark.parametrize(
    ("value", "format", "shown"),
    [
        (None, "score", "–"),
        (0, "score", "0"),
        (0.0, "score", "0.0000"),
        (True, "score", "yes"),
        ("k=1", "percent", "k=1"),
        (0.123, "percent", "12.30"),
        (7, "percent", "7"),
        (1234.6, "score", "1,235"),
        (Estimate(None, None, None, 0), "score", "not scored"),
        (Estimate(0.5, None, None, 3), "score", "0.5000 n=3"),
        (
            {"value": 0.5, "low": 0.25, "high": 0.75, "n": 1200},
            "score",
            "0.5000 [0.250, 0.750] n=1,200",
        ),
        (1.0, "score", "1.0000"),
        (Estimate(-0.5, -0.75, 0.25, 9), "delta", "-0.5000 [-0.7500, +0.2500] n=9"),
        (12.25, "count", "12.2"),
        (1024, "count", "1,024"),
        (75.04, "seconds", "75.0 s"),
        (1000, "seconds", "1,000 s"),
        (7300, "duration", "2 h 1 min"),
        (84_400_000, "bytes", "84 MB"),
        (0.0000123, "usd", "$0.000012"),
        (0.04996, "p", "0.0499"),
        (0.0501, "p", "0.050"),
        (0.25, "delta", "+0.2500"),
    ],
)
def test_a_number_is_written_by_its_format(value: Any, format: Format, shown: str) -> None:
    assert numbers.text(value, format) == shown


def test_p_is_never_written_across_five_percent() -> None:
    for p in (0.0495, 0.04951, 0.04999, 0.05, 0.0504):
        assert (float(numbers.text(p, "p")) < 0.05) == (p < 0.05)


def test_a_mean_without_an_interval_says_why() -> None:
    few, equal = Estimate(0.5, None, None, 3), Estimate(7.0, None, None, 40)
    assert numbers.interval(few) == "too few articles"
    assert numbers.interval(equal) == "all are equal: no interval"


@pytest.mark.parametrize(
    ("clusters", "sentence"),
    [
        (None, ""),
        (
            ClusterCounts("gold pages", 40, 2),
            "40 articles (questions that share gold pages)",
        ),
        (ClusterCounts("group", 4, 5), "as independent."),
        (ClusterCounts("group", 4, 6), "One article holds 6 of the 10 questions."),
        (
            ClusterCounts("question", 10, 1),
            "10 questions (the data set names no articles)",
        ),
    ],
)
def test_the_unit_of_the_intervals_is_named_and_an_article_with_over_half_of_the_questions(
    clusters: ClusterCounts | None, sentence: str
) -> None:
    words = independence(clusters, 10)
    assert sentence in words and bool(sentence) == bool(words)
    assert ("holds" in words) == ("holds" in sentence)


def test_a_table_as_text_has_its_columns_below_each_other() -> None:
    assert text.table(TABLE) == [
        "F1 <all>",
        "run                         F1      n",
        "a & b  50.00 [40.0, 60.0] n=30  1,200",
        "多瑙                     25.00      –",
        "Two runs.",
        "F1: Overlap of words.",
    ]


def test_tables_stand_apart_from_sentences() -> None:
    small = Table("", ("a",), (("b",),))
    assert text.blocks(["one", "", "two", small, "three"]) == "one\ntwo\n\na\nb\n\nthree"


def test_a_table_as_html_is_escaped_and_carries_itself_as_csv() -> None:
    page = html.table(TABLE)
    assert "F1 &lt;all&gt;" in page and "a &amp; b" in page and "<b>50.00</b>" in page
    assert "40.0 – 60.0, n = 30" in page and 'download="F1-all.csv"' in page
    assert "This table has no rows." in html.table(Table("x", ("a",), ()))


def test_a_table_as_csv_has_four_columns_for_means_and_all_digits() -> None:
    assert csv_table(TABLE).splitlines() == [
        "run,F1,F1 low,F1 high,F1 n,n",
        "a & b,0.5,0.4,0.6,30,1200",
        "多瑙,0.25,,,,",
    ]
    assert csv_lines([["x", ["p1", "p2"], None]]) == "x,p1 | p2,\n"


def test_a_table_as_latex_is_escaped_with_the_largest_share_in_bold() -> None:
    scores = Table("", ("run", "F_1"), (("a", 0.5), ("b", 0.25), ("c", None)), percent=True)
    lines = latex(scores).splitlines()
    assert lines[2] == r"run & F\_1 \\" and lines[4] == r"a & \textbf{50.0} \\"
    assert lines[5] == r"b & 25.0 \\" and lines[6] == r"c & -- \\"


def test_a_table_as_json_has_formats_where_columns_differ() -> None:
    plain = Table("t", ("run", "EM"), (("a", Estimate(0.5, None, None, 3)),), True, "note")
    value = plain.to_json()
    assert set(value) == {"title", "columns", "rows", "percent", "note"}
    assert value["columns"] == ["run", "EM"]
    columns = (Column("pair"), Column("difference", "delta"), Column("p", "p"), Column("EM"))
    mixed = Table("t", columns, (("a, b", 0.0512, 0.0004, 0.5),))
    value = mixed.to_json()
    assert value["formats"] == {"difference": "delta", "p": "p"}
    assert text.table(mixed)[-1].split()[2:] == ["+0.0512", "<", "0.001", "0.5000"]


def test_a_figure_in_a_report_has_the_keys_of_the_stored_form_and_others_by_value() -> None:
    figure = Figure("t", "x", "y", {"a": ((1, Estimate(0.5, None, None, 3)),)})
    assert set(figure.to_json()) == {"title", "x", "y", "series", "kind"}
    assert set(replace(figure, high=1.0).to_json()) == {*figure.to_json(), "high"}
    assert figure.to_json()["series"]["a"][0][1]["value"] == 0.5


def test_a_report_shows_every_block_and_cuts_long_prompts() -> None:
    blocks = ["<one>", TABLE, Code("x" * 2000), Fold("Who?", ("gold: Ada",), "right", "good")]
    page = "".join(report.page("<Run>", [Section("First", blocks)], "2026-01-02"))
    assert "<h1>&lt;Run&gt;</h1>" in page and "<h2>First</h2><p>&lt;one&gt;</p>" in page
    assert f"{'x' * report.MAX_TEXT_CHARACTERS} … (2,000 characters)" in page
    assert 'Who? <span class="rb-badge good">right</span></summary><p>gold: Ada</p>' in page
    assert page.rstrip().endswith("on 2026-01-02.</p></body></html>")


@pytest.mark.parametrize("odd", ["\x1b[2J", "\u202e", "\x9b", "\x00", "\r", "\ud83d"])
def test_no_file_of_a_report_has_control_characters_or_half_ones(odd: str) -> None:
    name = f"=a{odd}b\n\nc"
    table = Table("T", (name, "x"), ((name, name), (f"@{odd}", "y")))
    plot = Figure(name, name, name, {name: ((1.0, 2.0), (2.0, 3.0))})
    written = "".join(report.page(name, [Section(name, (name, table, plot))], name))
    drawing = str(svg.figure(plot))
    for content in (written, drawing, csv_table(table), latex(table)):
        assert odd not in content and content.encode()
    assert "\n\n" not in latex(table)
    assert all(not line.startswith(("=", "@")) for line in csv_table(table).splitlines())
    ElementTree.fromstring(drawing)
