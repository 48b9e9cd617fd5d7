"""Questions in the import panel: three rows as they are read, and questions about a corpus that is being imported."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from rallebench.core.declining import accepted_answers
from rallebench.core.numbers import plural
from rallebench.core.types import Example
from rallebench.gui import form, html
from rallebench.gui.frame import Page
from rallebench.gui.places._data_columns import columns_part, missing_role
from rallebench.gui.places._data_imported import warning_list
from rallebench.gui.places._import_chunks import count_read, row, short
from rallebench.gui.places._import_state import ImportState, OwnQuestions
from rallebench.gui.wording import on_page
from rallebench.services import uploads
from rallebench.services.import_previews import Looked, Preview
from rallebench.views import library, passages

MOST_QUESTIONS = 3
"""Questions that are shown as they are read."""
MOST_SHOWN = 4
"""Answers or pages of a question that are shown."""
TRIED = 10
"""Questions that are tried after an import."""
PREFIX = "asked_column_"
"""Prefix of the fields of the columns of a file about a corpus."""


def first_questions(preview: Preview) -> Markup:
    """Draw the first questions with all that is read of them."""
    items = Markup().join(map(question_row, preview.rows[:MOST_QUESTIONS]))
    items = items or html.note("No question can be read here. Choose another kind or format.")
    heading = html.heading("First questions", count_read(preview))
    return Markup('{}<div class="firsts whole" id="import-asked-firsts">{}</div>').format(
        heading, items
    )


def question_row(example: Example) -> Markup:
    """Draw a question with its answers, pages, id and group as the import reads them."""
    gold = example.gold
    pages = sorted(gold.pages)
    named = [f"{gold.titles[p]} ({p})" if gold.titles.get(p) else p for p in pages]
    facts = [
        ("Answers", join_values(accepted_answers(gold)) or "none"),
        (plural(len(pages), "gold page") if pages else "Gold pages", join_values(named) or "none"),
        ("Id", example.question.qid),
        ("Group", passages.question_group(example) or "none"),
    ]
    return row(
        Markup("<span>{}</span>").format(short(example.question.text)),
        Markup("").join(
            Markup('<span class="fact"><small>{}</small> {}</span>').format(label, value)
            for label, value in facts
        ),
    )


def join_values(values: tuple[str, ...] | list[str]) -> str:
    """Join the first values, and say how many follow."""
    more = f"{len(values) - MOST_SHOWN} more" if len(values) > MOST_SHOWN else ""
    return html.join_facts(*(short(value) for value in values[:MOST_SHOWN]), more)


# questions about a corpus


def asked_part(page: Page, state: ImportState) -> Markup:
    """Draw the choice of questions about the corpus: a dataset of the workspace, or a file that is imported with it."""
    chosen = state.questions
    heading = html.heading(
        "Questions about it", "to try the indexes, and to see answers cut in two"
    )
    if chosen.source and chosen.looked:
        return heading + asked_file(page, chosen.source, chosen, chosen.looked)
    names = [line.name for line in library.datasets(page.workspace)]
    follow = form.on_change("import.ask")
    drop = Markup(
        '<label class="drop small"{}><span>Drop a file of questions, or click</span>'
        '<input type="file" class="sr" aria-label="File of questions"></label>'
    ).format(html.attributes(upload="import.ask"))
    select = form.select(
        "asked",
        [("", "none yet"), *((name, name) for name in names)],
        chosen.dataset,
        more=Markup(' aria-label="Dataset of questions about it"{}').format(follow),
    )
    return Markup('{}<div class="asked">{}{}</div>').format(heading, select, drop)


def asked_file(page: Page, source: Path, chosen: OwnQuestions, looked: Looked) -> Markup:
    """Draw a file of questions: its columns, and three rows as they are read."""
    remove = html.button("Remove", "import.ask", kind="quiet", without="1")
    drawn = Markup('<div class="row"><b class="nm grow">{}</b>{}</div>').format(source.name, remove)
    drawn += columns_part(
        looked, chosen.columns, prefix=PREFIX, do="import.ask", id="import-asked-columns"
    )
    if missing_role(looked, chosen.columns):
        return drawn
    if looked.problem:
        drawn += html.problem(uploads.as_sent(page.workspace, on_page(looked.problem)))
    if preview := looked.dataset:
        drawn += first_questions(preview) + warning_list(preview.warnings, preview.notes)
    return drawn


def count_known(page: Page, state: ImportState) -> int:
    """Return the number of questions that the import can try."""
    chosen = state.questions
    if state.looked and state.looked.kind == "both" and state.looked.dataset:
        return len(state.looked.dataset.seen)
    if chosen.looked and chosen.looked.dataset:
        return len(chosen.looked.dataset.seen)
    return len(page.workspace.questions(chosen.dataset)) if chosen.dataset else 0


def start_button(page: Page, state: ImportState) -> Markup:
    """Draw the button that imports, builds and tries."""
    if state.looked is not None and state.looked.corpus is None:
        return html.button("Import", "import.start", kind="primary")
    count, questions = len(state.targets), count_known(page, state)
    label = f"Build {plural(count, 'index')}" if count else "Import"
    if count:
        what = f"try {plural(min(TRIED, questions), 'question')}" if questions else "open Build"
        label += f" and {what}"
    return html.button(label, "import.start", kind="primary")
