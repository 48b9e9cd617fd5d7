"""Two of the compared runs: what was changed between them, and what that did to each question."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import gradio as gr

from rallebench.analysis.changes import changes
from rallebench.analysis.measures import Measure, measure
from rallebench.analysis.paired import PairedComparison, compare
from rallebench.analysis.ranking import scores_of
from rallebench.core.errors import UsageError
from rallebench.core.memory import uncollected
from rallebench.core.types import Example, Question
from rallebench.datasets.kilt import read_gold, record_id
from rallebench.engine.answers import episode_of, heads
from rallebench.engine.clusters import clusters_of
from rallebench.engine.score import examples_of
from rallebench.engine.store import RunFolder
from rallebench.gui import views, views_compare
from rallebench.gui.session import Session, guard
from rallebench.services.workbench import Workbench

NO_QUESTION = "Click a question above to see both prompts and both answers, what differs marked."
NONE_FLIPPED = "No question changed its score."
FLIPPED_AT_MOST = 500


def draw_pair() -> list[Any]:
    """The other run's chooser; then what was changed, the questions that flipped, their file, one of them, a button."""
    gr.Markdown("### Two runs side by side", elem_classes="rb-section")
    other = gr.Dropdown(
        [], label="The first run, and", allow_custom_value=True, elem_id="compare-other"
    )
    changed = gr.HTML(elem_id="compare-changes", elem_classes="rb-flush")
    flipped = gr.Dataframe(
        headers=list(views_compare.FLIPPED_COLUMNS),
        interactive=False,
        wrap=True,
        show_label=False,
        max_height=360,
        column_widths=["12%", "28%", "18%", "16%", "16%", "10%"],
        elem_id="compare-flipped",
    )
    saved = gr.HTML(elem_id="compare-flipped-csv", elem_classes="rb-flush")
    question = gr.HTML(
        views.empty(NO_QUESTION), elem_id="compare-question", elem_classes="rb-flush"
    )
    opens = gr.Button(
        "Open this question of the other run", interactive=False, elem_id="compare-open"
    )
    return [other, changed, flipped, saved, question, opens]


def connect(
    workbench: Workbench,
    session: Session,
    compared: gr.State,
    other: gr.Dropdown,
    pair: Sequence[Any],
) -> None:
    """A click on a question shows it; the button opens it where its run was developed."""
    _, flipped, _, question, opens = pair
    clicked = gr.State("")
    asked = [compared, other, clicked]
    select = flipped.select(on_select, None, [clicked], show_progress="hidden")
    select.then(
        partial(guard, on_question, workbench), asked, [question, opens], show_progress="hidden"
    )
    opens.click(partial(guard, on_open, workbench), asked, [session.open_question])


def on_pair(workbench: Workbench, compared: dict[str, Any], other: str | None) -> list[Any]:
    """What was changed between the first run and another, and the questions that flipped."""
    if not compared or not other or other not in compared["runs"]:
        return [gr.skip()] * 5
    first, second = workbench.runs.open(compared["runs"][0]), workbench.runs.open(other)
    shown = views_compare.changed(
        changes(first.spec()["spec"], second.spec()["spec"]), first.name, second.name
    )
    of = measure(compared["metric"], [first, second])
    rows, pair = flipped_rows(first, second, of)
    saved = views_compare.flipped_below(rows, pair, of.about["label"])
    table = gr.update(
        value=rows,
        headers=views_compare.flipped_columns(first.name, second.name),
        visible=bool(rows),
    )
    return [
        shown,
        table,
        saved,
        views.empty(NO_QUESTION if rows else NONE_FLIPPED),
        gr.update(interactive=False, visible=bool(rows)),
    ]


@uncollected()
def flipped_rows(
    first: RunFolder, second: RunFolder, of: Measure
) -> tuple[list[list[Any]], PairedComparison]:
    """One row per question whose score differs, gains first, at most FLIPPED_AT_MOST; and the comparison."""
    by_id = shared_records(first, second)
    left, right = (
        {q: v for q, v in scores_of(run, (of.name,))[of.name].items() if q in by_id}
        for run in (first, second)
    )
    clusters = clusters_of(examples_of(first)).of
    pair = compare(
        of.name, left, right, higher_is_better=of.higher_is_better is not False, clusters=clusters
    )
    answers = [heads(run) for run in (first, second)]
    rows: list[list[Any]] = []
    for change, qids in zip(
        ("higher", "lower") if of.higher_is_better is None else ("better", "worse"),
        (pair.gained, pair.lost),
    ):
        for qid in qids[: FLIPPED_AT_MOST - len(rows)]:
            gold = read_gold(by_id[qid], first.name)
            said = [str(answered.get(qid, {}).get("answer", "")) for answered in answers]
            rows.append([qid, by_id[qid]["input"], " / ".join(gold.answers[:3]), *said, change])
    return rows, pair


def shared_records(first: RunFolder, second: RunFolder) -> dict[str, dict[str, Any]]:
    """Id → the first run's record of every question that both have asked with the same text."""
    texts = {record_id(record, second.name): record["input"] for record in second.records()}
    mine = {record_id(record, first.name): record for record in first.records()}
    return {qid: record for qid, record in mine.items() if texts.get(qid) == record["input"]}


def on_select(event: gr.SelectData) -> str:
    """The id of the question that was clicked. Gradio gives no event to a partial."""
    return str(event.row_value[0])


def on_question(
    workbench: Workbench, compared: dict[str, Any], other: str | None, qid: str
) -> list[Any]:
    """Both runs' steps for one question."""
    if not compared or not other or not qid:
        return [views.empty(NO_QUESTION), gr.update(interactive=False)]
    first, second = workbench.runs.open(compared["runs"][0]), workbench.runs.open(other)
    record = shared_records(first, second).get(qid)
    if record is None:
        raise UsageError(f"The question {qid!r} is not in both runs any more; press Compare again.")
    example = Example(Question(qid, record["input"]), read_gold(record, first.name), record)
    return [
        views_compare.question(
            example, [(run.name, episode_of(run, qid)) for run in (first, second)]
        ),
        gr.update(interactive=True),
    ]


def on_open(
    workbench: Workbench, compared: dict[str, Any], other: str | None, qid: str
) -> dict[str, Any]:
    """Ask Develop, or Agent, to open the question with the other run's chain and steps."""
    if not compared or not other or not qid:
        raise UsageError("No question is chosen; click one of the table.")
    records = [str(record["id"]) for record in workbench.runs.open(other).records()]
    if qid not in records:
        raise UsageError(
            f"The question {qid!r} is not in the run {other!r} any more; press Compare again."
        )
    return {"run": other, "position": records.index(qid) + 1, "at": time.time()}
