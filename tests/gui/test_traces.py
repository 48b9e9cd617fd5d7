"""The trace of one question in the drawer: of a run, of a variant of the grid, in the list where its door was."""

from __future__ import annotations

import re

import pytest
from page_views import FIELDS, refused, run_of, text_of, texts, view_of
from small_workspace import RECORDS, write_lines

from rallebench.core.errors import UsageError
from rallebench.gui.frame import Page


def trace_in(page: Page, address: str) -> str:
    """The drawer that the trace in an address opens."""
    view, _, query = address.removeprefix("#/").partition("?")
    values = dict(part.split("=", 1) for part in query.split("&"))
    return page.call("trace.open", {"view": view}, **values).drawer or ""


def doors(html: str) -> list[str]:
    """The traces that a view leads to."""
    return re.findall(r'data-trace="([^"]*)"', html)


@pytest.fixture
def runs(page: Page) -> Page:
    """A page over the runs ``first`` and ``second``, which echoes its prompt."""
    run_of(page.workbench, "first")
    run_of(page.workbench, "second", llm="echo")
    return page


def test_a_trace_shows_question_gold_verdict_scores_and_every_step(runs: Page) -> None:
    words = texts(trace_in(runs, "runs/list?trace=first:q2"))
    assert words.startswith("first Open in Build Copy link Close")
    assert "Which moon goes round Neptune backwards?" in words
    assert "Wrong answer Titan gold Triton" in words and "In the answer lost here" in words
    assert "Prompt as sent" in words and "Retrieve · tiny · k 2" in words and "gold page" in words
    assert "Scores" in words and "R-precision" in words


def test_open_in_build_leads_to_that_chain_and_question(runs: Page) -> None:
    assert "#/build/one?set=tiny-qa&amp;q=q2&amp;run=second" in trace_in(
        runs, "runs/list?trace=second:q2"
    )


def test_j_and_k_move_through_the_filtered_list_of_the_run(runs: Page) -> None:
    drawer = trace_in(runs, "runs/run?id=first&only=wrong&trace=first:q2")
    assert "1 of 7" in texts(drawer) and doors(drawer) == ["first:q3"]
    everywhere = trace_in(runs, "experiments/list?trace=first:q2")
    assert "2 of 8" in texts(everywhere) and doors(everywhere) == ["first:q1", "first:q3"]


def test_a_flip_of_compare_is_a_door_to_each_run(runs: Page) -> None:
    view = view_of(runs, "runs/compare?a=first&b=second")
    assert doors(view) == ["first:q1", "second:q1"]
    drawer = trace_in(runs, "runs/compare?a=first&b=second&trace=first:q1")
    assert doors(drawer) == ["first:q1", "second:q1"], "both answers to one flipped question"


def test_a_long_gold_answer_among_short_ones_is_judged_alike_everywhere(page: Page) -> None:
    sentence = (
        "It is Titan, which Christiaan Huygens discovered on the 25th of March 1655 in The Hague."
    )
    output = [{"answer": sentence, "provenance": [{"wikipedia_id": "p1"}]}]
    lines = [*RECORDS, {"id": "long", "input": "Which moon has air?", "output": output}]
    write_lines(page.workspace.path / "datasets" / "mixed.jsonl", lines)
    page.open("build/one?set=mixed&chain=read&q=long")
    alone = text_of(page, "build/one?set=mixed&q=long")
    page.open("build/few?set=mixed&q=long")
    (cell,) = doors(page.call("few.run").html["v-build-few"])
    drawer = texts(trace_in(page, f"build/few?set=mixed&q=long&trace={cell}"))
    for shown in (alone, drawer):
        assert "Wrong answer Titan" in shown and "No verdict" not in shown


def test_a_cell_of_the_grid_is_a_door_to_its_variant(page: Page) -> None:
    page.open("build/one?set=tiny-qa&chain=read")
    grid = page.call("few.add", {**FIELDS, "a1_target": "mute"}).html["v-build-few"]
    cells = doors(grid)
    assert len(cells) == 16
    failed = texts(trace_in(page, f"build/few?trace={cells[1]}"))
    assert failed.startswith("mute") and "Failed error" in failed and "1 of 8" in failed
    right = trace_in(page, f"build/few?trace={cells[0]}")
    assert "Right answer Titan" in texts(right) and cells[1] in doors(right)
    key = cells[1].partition(":")[0].removeprefix("~")
    assert page.call("few.open", {"key": key, "q": "q3"}).go == "#/build/one?set=tiny-qa&q=q3"
    grid = text_of(page, "build/few")
    assert "compared with this" in grid and "mute, as edited in Build" in grid


def test_a_trace_that_is_not_there_says_so(runs: Page) -> None:
    with pytest.raises(UsageError, match="no question 'q99'; choose one of its list"):
        trace_in(runs, "runs/list?trace=first:q99")
    with pytest.raises(UsageError, match="not in the grid of this window"):
        trace_in(runs, "build/few?trace=~0123:q1")
    refused(runs, "trace.open", {"view": "runs/list"}, "names no question of a run")


def test_questions_on_which_several_runs_differ_are_doors(runs: Page) -> None:
    run_of(runs.workbench, "third", settings=("k=1",))
    address = "runs/compare?r0=first&r1=second&r2=third"
    assert doors(view_of(runs, address)) == ["first:q1", "second:q1", "third:q1"]
    drawer = trace_in(runs, f"{address}&trace=third:q1")
    assert doors(drawer) == ["first:q1", "second:q1", "third:q1"]
