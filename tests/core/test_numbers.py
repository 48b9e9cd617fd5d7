"""The interval of a mean is described correctly, on the page, in a terminal and in LaTeX alike."""

from __future__ import annotations

import pytest

from rallebench.core.numbers import smallness, spread
from rallebench.core.report import ClusterCounts, Estimate
from rallebench.core.table_files import latex
from rallebench.core.tables import Column, Table
from rallebench.gui import figures
from rallebench.render.numbers import text

TENTHS = "{:.1f}".format
NONE_RIGHT, EVEN = Estimate(0.0, 0.0, 0.022, 222), Estimate(0.518, 0.455, 0.581, 222)


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ((50.0, 44.0, 56.0), "± 6.0"),
        ((50.0, 44.0, 57.2), "± 6.6"),
        ((50.0, 44.0, 57.3), "(44.0–57.3)"),
        ((0.0, 0.0, 2.2), "(0.0–2.2)"),
        ((100.0, 98.0, 100.0), "(98.0–100.0)"),
        ((1.0, -0.1, 2.0), "(−0.1 to 2.0)"),
        ((99.0, 97.5, 100.3), "(97.5–100.3)"),
        ((-4.0, -6.0, -2.0), "± 2.0"),
    ],
)
def test_uneven_sides_and_what_would_leave_the_range_are_written_as_the_interval(
    ends: tuple[float, float, float], words: str
) -> None:
    value, low, high = ends
    bounds = (0.0, 100.0) if value > 0 else (None, None)
    assert spread(Estimate(value, low, high), TENTHS, bounds) == words


def test_nothing_right_is_never_plus_or_minus() -> None:
    page = str(figures.percent(NONE_RIGHT))
    table = Table("", ("run", Column("EM", "percent")), (("a", NONE_RIGHT), ("b", EVEN)))
    assert "±" not in page and "(0.0–2.2)" in page
    assert "± 6.3" in str(figures.percent(EVEN))
    written = latex(table)
    assert "a & 0.0 (0.0--2.2)" in written and r"\textbf{51.8} $\pm$ 6.3" in written
    assert text(NONE_RIGHT, "percent") == "0.00 [0.0, 2.2] n=222"


def test_a_time_that_is_skewed_has_its_interval_in_the_same_unit() -> None:
    skewed = {"value": 0.05, "low": 0.01, "high": 0.09, "n": 40}
    assert "50 ms<small>± 40" in str(figures.quantity(skewed, "seconds"))
    uneven = {"value": 0.05, "low": 0.04, "high": 0.09, "n": 40}
    assert "50 ms<small>(40–90)" in str(figures.quantity(uneven, "seconds"))
    assert "(834 to" not in str(figures.quantity({**uneven, "low": 0.0}, "tokens"))


@pytest.mark.parametrize(
    ("articles", "questions", "words"),
    [
        (30, 30, ""),
        (5, 14, "14 questions are few, so the intervals are wide."),
        (4, 400, "Below 5 articles there is no interval: these 400 questions are about 4."),
        (1, 1, "Below 5 articles there is no interval: this question is about 1."),
        (0, 0, ""),
    ],
)
def test_few_questions_have_a_sentence_and_few_articles_a_reason(
    articles: int, questions: int, words: str
) -> None:
    assert smallness(ClusterCounts("gold pages", articles, 1), questions) == words


def test_a_mean_of_few_questions_keeps_its_interval_on_the_page() -> None:
    small = {"value": 0.143, "low": 0.026, "high": 0.438, "n": 14}
    assert "(2.6–43.8)" in str(figures.percent(small))
    assert figures.doubt(small) == "14 questions are few, so the intervals are wide."
    assert 'style="left:2.6%;width:41.2%"' in str(figures.interval_bar(small))
