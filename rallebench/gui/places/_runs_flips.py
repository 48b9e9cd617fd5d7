"""Questions × compared runs: every answer is a door to its trace."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from rallebench.core.comparison import Comparison
from rallebench.core.declining import accepted_answers
from rallebench.core.run_results import RunSummary
from rallebench.gui import html
from rallebench.gui.addresses import Door, RunAddress
from rallebench.gui.answers import draw_answer
from rallebench.gui.frame import Page
from rallebench.views import run_questions, run_views

MOST_FLIPS = 200


def question_table(page: Page, listed: Sequence[RunSummary], qids: Sequence[str]) -> Markup:
    """Draw questions × runs; every answer is a door to its trace."""
    runs = [page.workbench.runs.open(row.name) for row in listed]
    answers = [{x.qid: x for x in run_questions.questions(page.workspace, run)} for run in runs]
    lines = []
    for qid in qids[:MOST_FLIPS]:
        example = run_questions.example(runs[0], qid)
        accepted, expected = example.gold.answers, accepted_answers(example.gold)
        cells = [
            html.door(
                Door.to(row.name, qid),
                Markup('{} <div dir="auto">{}</div>').format(
                    html.mark(rows[qid].kind),
                    draw_answer(rows[qid].answer[:300], accepted, with_raw=False),
                ),
            )
            if qid in rows
            else "–"
            for row, rows in zip(listed, answers)
        ]
        gold = Markup("<mark>{}</mark>").format(expected[0]) if expected else "–"
        question = html.link(example.question.text, RunAddress(listed[-1].name, q=qid).href, "nm")
        lines.append([question, gold, *cells])
    heads = ["Question", "Gold", *(row.title for row in listed)]
    table = html.rows(heads, lines, kind="flips")
    return html.copyable_table(Markup('<div class="wide">{}</div>').format(table))


def flips(page: Page, compared: run_views.RunPair, both: Sequence[RunSummary]) -> Markup:
    """List the questions whose scores differ."""
    pair = compared.pair
    same = pair.n - pair.wins - pair.losses
    counts = html.join_facts(
        f"{pair.wins:,} better", f"{pair.losses:,} worse", f"{same:,} the same"
    )
    head = html.heading("Questions that flipped", counts)
    if not pair.flipped_ids:
        return head + html.note("Every question has the same score in both runs.")
    return head + question_table(page, both, list(pair.flipped_ids))


def differing(page: Page, compared: Comparison) -> list[str]:
    """Return the shared questions on which the verdicts of several runs differ."""
    kinds: dict[str, set[str]] = {example.question.qid: set() for example in compared.common}
    for side in compared.sides:
        run = page.workbench.runs.open(side.name)
        for row in run_questions.questions(page.workspace, run):
            if row.qid in kinds:
                kinds[row.qid].add(row.kind)
    return [qid for qid, seen in kinds.items() if len(seen) > 1]
