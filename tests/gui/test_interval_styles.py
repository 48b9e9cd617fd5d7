"""Intervals of one card or column have one form: both ends for all, where ± would mislead at one of them."""

from __future__ import annotations

import re

from page_views import run_of, texts, view_of

from rallebench.core.report import Estimate
from rallebench.core.tables import Column, Table
from rallebench.gui import figures
from rallebench.gui.frame import Page

EVEN, LOPSIDED = Estimate(0.458, 0.25, 0.666, 24), Estimate(0.4, 0.197, 0.644, 20)


def test_a_mean_alone_has_the_form_that_fits_it() -> None:
    assert texts(figures.percent(EVEN)) == "45.8 % ± 20.8"
    assert texts(figures.percent(LOPSIDED)) == "40.0 % (19.7–64.4)"
    assert not figures.needs_ends([EVEN, None, Estimate(None)])


def test_means_of_a_column_have_the_form_that_fits_all() -> None:
    ends = figures.needs_ends([EVEN, LOPSIDED])
    assert texts(figures.percent(EVEN, ends=ends)) == "45.8 % (25.0–66.6)"
    columns = (Column("Run"), Column("EM", "percent"), Column("F1", "percent"))
    table = Table("", columns, (("a", EVEN, EVEN), ("b", LOPSIDED, EVEN)))
    words = texts(figures.table(table))
    assert "45.8 % (25.0–66.6)" in words and words.count("45.8 % ± 20.8") == 2


def test_times_have_the_form_of_their_card() -> None:
    took = Estimate(0.16, 0.14, 0.18, 40)
    assert texts(figures.quantity(took, "seconds", ends=True)) == "0.16 s (0.14–0.18)"


def test_a_run_card_and_the_list_of_runs_mix_no_forms(page: Page) -> None:
    run_of(page.workbench, "x")
    run_of(page.workbench, "y", llm="echo")
    body = view_of(page, "runs/run?id=x")
    card = texts(body[body.index('class="tiles"') : body.index('class="legend"')])
    forms = {"±" if match[0] == "±" else "(" for match in re.finditer(r"±|\(\d", card)}
    assert len(forms) == 1
    rows = page.list_rows({"window": "w", "list": "runs", "key": {}, "start": 0, "count": 9})
    scores = [texts(row[1]) for row in rows.to_json()["rows"]]
    assert len(scores) == 2 and len({"±" in score for score in scores}) == 1
