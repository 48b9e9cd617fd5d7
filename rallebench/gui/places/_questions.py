"""Lists of questions by verdict: the list in Build, and the parts that it shares with the list of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from rallebench.core.errors import RalleError
from rallebench.core.types import Example
from rallebench.gui import form, html
from rallebench.gui.addresses import Query
from rallebench.gui.events import Rows, RowWindow
from rallebench.gui.frame import Page
from rallebench.gui.html import escape
from rallebench.gui.places._bench import Bench
from rallebench.views.run_questions import QuestionRow, counts, filter_questions, last_verdicts

FILTERS = (
    ("", "All"),
    ("wrong", "Wrong"),
    ("lost", "Not retrieved"),
    ("format", "Format"),
    ("failed", "Failed"),
    ("none", "No verdict"),
    ("right", "Right"),
)
IN_BUILD = FILTERS[:4]
ROWS_ALIKE, CHARACTERS_ALIKE, MOST_CHARACTERS = 3, 40, 120
"""Different answers, and characters of their common beginning, that make it a repeated prompt; characters of a row."""


@dataclass(frozen=True)
class BuildQuestions(Query):
    """The list of the dataset in Build, filtered."""

    dataset: str = ""
    only: str = ""
    words: str = ""


def verdict_chips(
    listed: Sequence[QuestionRow],
    only: str,
    do: str,
    filters: Sequence[tuple[str, str]] = FILTERS,
    **data: Any,
) -> Markup:
    """Draw the filters with their counts; empty ones are left out."""
    numbers = counts(listed)
    offered = [(key, label, numbers.get(key, 0)) for key, label in filters]
    return html.chips([chip for chip in offered if not chip[0] or chip[2]], only, do, **data)


def position(listed: Sequence[QuestionRow], qid: str) -> int:
    """Return the index of a question in a list; -1 if absent."""
    return next((i for i, row in enumerate(listed) if row.qid == qid), -1)


def answer_gists(answers: Sequence[str], most: int = MOST_CHARACTERS) -> list[str]:
    """Shorten the answers of a list's rows. Of answers that repeat a prompt, and so begin alike, the end is shown.

    >>> prompt = "Answer the question in a few words from these passages. "
    >>> answer_gists([prompt + "Q1: Rome", prompt + "Q2: Paris", prompt + "Q3: Oslo"], 12)
    ['… Q1: Rome', '… Q2: Paris', '… Q3: Oslo']
    >>> answer_gists(["Rome", "Paris"])
    ['Rome', 'Paris']
    """
    lines = [" ".join(answer.split()) for answer in answers]
    texts = [line for line in lines if line]
    beginnings = {line[:CHARACTERS_ALIKE] for line in texts}
    alike = len(set(texts)) >= ROWS_ALIKE and [*map(len, beginnings)] == [CHARACTERS_ALIKE]
    return [_end(line, most) if alike and len(line) > most else line[:most] for line in lines]


def _end(line: str, most: int) -> str:
    """Return the end of a line, from a whole word on."""
    return f"… {line[-most:].partition(' ')[2] or line[-most:]}"


def list_row(row: QuestionRow, below: str) -> Markup:
    """Draw a row of a list; ``below``: HTML below the question."""
    text = " ".join(row.text.split())[:240]
    return Markup('{}<span><em dir="auto">{}</em><small dir="auto">{}</small></span>').format(
        html.mark(row.kind), text, below
    )


# Build


def bench_rows(page: Page, bench: Bench, examples: Sequence[Example]) -> list[QuestionRow]:
    """Return the questions with verdicts from this chain's newest run; verdicts of this window take precedence."""
    try:
        known = dict(last_verdicts(page.workspace, bench.dataset, bench.chain.name))
    except RalleError:
        known = {}
    known |= {qid: v for (dataset, qid), v in bench.verdicts.items() if dataset == bench.dataset}
    listed = []
    for example in examples:
        question, gold = example.question, " ".join(example.gold.answers[:3])
        kind, answer = known.get(question.qid, ("none", ""))
        listed.append(QuestionRow(question.qid, question.text, gold, answer, kind, ""))
    return listed


def all_rows(page: Page, bench: Bench) -> list[QuestionRow]:
    """Return all questions of the dataset."""
    return bench_rows(page, bench, page.workspace.questions(bench.dataset))


def question_column(page: Page, bench: Bench) -> Markup:
    """Draw the whole column."""
    follow = Markup(' aria-label="Dataset"{}').format(form.on_change("build.choose_dataset"))
    choose = form.select(
        "dataset", list(page.workspace.dataset_paths()), bench.dataset, more=follow
    )
    hint = "Filter, or ask your own question"
    ask = {"enter": "build.pick"}
    field = form.filter_field("build-words", bench.words, "build.filter_list", hint, **ask)
    keys = Markup(
        "<span><kbd>J</kbd> <kbd>K</kbd> move</span><span><kbd>Ctrl</kbd> <kbd>Enter</kbd> run</span><span><kbd>?</kbd> keys</span>"
    )
    return Markup(
        '{}{}<div id="build-list" class="stack-list">{}</div><div class="foot">{}</div>'
    ).format(choose, field, list_parts(page, bench), keys)


def chips(page: Page, bench: Bench) -> Markup:
    """Draw the filters with their counts."""
    return verdict_chips(all_rows(page, bench), bench.only, "build.filter_list", IN_BUILD)


def list_parts(page: Page, bench: Bench) -> Markup:
    """Draw the filters with counts, and the list below them."""
    rows = filter_questions(all_rows(page, bench), bench.only, bench.words)
    own = Markup()
    if words := bench.words.strip():
        own = html.button(f"Ask “{words[:60]}”", "build.pick", kind="own", words=words)
    key = BuildQuestions(bench.dataset, bench.only, bench.words)
    at = position(rows, bench.question)
    window = html.window("build-questions", key, len(rows), "build.pick", at=at, row=74)
    nothing = Markup() if rows else html.note("No question of this dataset fits the filter.")
    return Markup('{}<div id="build-chips">{}</div>{}{}').format(
        own, chips(page, bench), nothing, window
    )


def question_rows(page: Page, request: RowWindow) -> Rows:
    """Return the requested rows of the list."""
    key = request.read(BuildQuestions)
    bench = request.session.get(Bench)
    if bench is None:
        return Rows(())
    examples = page.workspace.questions(key.dataset)
    if key.only or key.words:
        rows = filter_questions(bench_rows(page, bench, examples), key.only, key.words)[
            request.part
        ]
    else:
        rows = bench_rows(page, bench, examples[request.part])
    gists = answer_gists([row.answer for row in rows])
    return Rows([(row.qid, list_row(row, escape(gist))) for row, gist in zip(rows, gists)])
