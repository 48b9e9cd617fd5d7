"""The history of a dataset with its way back, copies to be edited, and questions of a run as additions."""

from __future__ import annotations

from datetime import datetime

from markupsafe import Markup

from rallebench.core.dataset_edits import Edit, LineChange
from rallebench.core.errors import UsageError
from rallebench.core.numbers import plural
from rallebench.gui import form, html, panels
from rallebench.gui.addresses import DatasetAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.patches import Patch
from rallebench.gui.places._versions import words_changed
from rallebench.render.numbers import moment
from rallebench.views import run_list, run_questions
from rallebench.views.edit_histories import change_words

LISTED, LINES = 50, 20
"""The newest edits that the history lists, and the questions of each."""
VERBS = {
    "add": "added",
    "change": "changed",
    "delete": "deleted",
    "undo": "back by Undo",
    "return": "back to an earlier version",
}
ONLY = (
    ("wrong", "wrong or failed"),
    ("lost", "not retrieved"),
    ("format", "in the wrong format"),
    ("right", "right"),
    ("", "all"),
)


def register(page: Page) -> None:
    page.actions("edits", show, reads=True)
    page.actions("edits", copy_form, run_form, keep_form, undo, restore, copy, add_run)


# history


def show(page: Page, event: Event) -> Patch:
    """Open the history in a drawer, the newest edit first."""
    name = event.text("id")
    history = page.workbench.edits.history(name)
    rows, count = Markup(), len(history.edits)
    for number in range(count, max(0, count - LISTED), -1):
        rows += edit_row(
            name, number, history.edits[number - 1], number < count and history.continuous
        )
    if count and history.continuous:
        first = html.button("Return to the first version", "edits.restore", id=name, number=0)
        rows += Markup('<div class="row">{}</div>').format(first)
    note = "Every edit is kept with the question before and after it. Undo takes back one edit; returning takes back all later ones, and can be undone itself."
    parts = [html.note(note), html.warning(history.problem)]
    if count and not history.continuous and not history.problem:
        parts.append(
            html.warning(
                "Another program changed the file between these edits, so only single edits can be undone."
            )
        )
    body = rows or html.empty("No question was edited yet.")
    return panels.drawer(f"History of {name}", *parts, body)


def edit_row(name: str, number: int, edit: Edit, can_return: bool) -> Markup:
    when = moment(datetime.fromtimestamp(edit.time))
    ids = {change.qid for change in edit.changes}
    about = f"from {edit.about}" if edit.kind == "add" and edit.about else ""
    what = html.join_facts(f"{plural(len(ids), 'question')} {VERBS[edit.kind]}", about)
    buttons = html.button("Undo", "edits.undo", id=name, number=number)
    if can_return:
        buttons += html.button(
            "Return to here", "edits.restore", kind="quiet", id=name, number=number
        )
    lines = Markup().join(map(change_row, edit.changes[:LINES]))
    if len(edit.changes) > LINES:
        lines += html.note(f"… and {plural(len(edit.changes) - LINES, 'further question')}")
    return Markup(
        '<section class="version"><h3>{} <small>{}</small><span class="gap"></span>{}</h3><div class="diff">{}</div></section>'
    ).format(when, what, buttons, lines)


def change_row(change: LineChange) -> Markup:
    """Draw a changed question, word by word."""
    old, new = change_words(change)
    return Markup("<div><small>{}</small><p>{}</p></div>").format(
        change.qid, words_changed(old, new)
    )


def undo(page: Page, event: Event) -> Patch:
    name, number = event.text("id"), event.position("number")
    return reopen(event, name, page.workbench.edits.undo(name, number))


def restore(page: Page, event: Event) -> Patch:
    name, number = event.text("id"), event.position("number")
    return reopen(event, name, page.workbench.edits.restore(name, number))


def reopen(event: Event, name: str, say: str) -> Patch:
    """Open the dataset anew at the same question."""
    query = event.read(DatasetAddress)
    qid = query.q if query.id == name else ""
    return Patch(drawer="", go=DatasetAddress(name, query.find, qid).href, say=say)


# copies


def copy_form(page: Page, event: Event) -> Patch:
    """Ask for the name of a copy to be edited."""
    name, qid = event.text("id"), event.read(DatasetAddress).q
    more = form.on_enter("edits.copy", id=name, qid=qid)
    body = form.text("as", "Name of the copy", free_name(page, f"my-{name}"), more=more)
    body += html.note(
        f"{name} stays as it is. Runs over it and over the copy are compared by the questions that are the same."
    )
    return panels.ask("Edit a copy", body, "Copy and edit", "edits.copy", id=name, qid=qid)


def free_name(page: Page, stem: str) -> str:
    known, number = page.workspace.dataset_paths(), 2
    name = stem
    while name in known:
        name, number = f"{stem}-{number}", number + 1
    return name


def copy(page: Page, event: Event) -> Patch:
    name, new = event.text("id"), event.text("as")
    for _ in page.workbench.edits.copy(name, new):
        pass
    count = plural(len(page.workspace.questions(new)), "question")
    say = f"{new} has {count}; edit them here."
    return Patch(dialog="", go=DatasetAddress(new, q=event.text("qid")).href, say=say)


# questions of a run


def run_form(page: Page, event: Event) -> Patch:
    """Ask for a run whose questions are added to a dataset."""
    name = event.text("id")
    rows = [row for row in run_list.rows(page.workspace) if not row.problem]
    if not rows:
        raise UsageError(
            "There is no run yet, so no question of a run can be added; make one first."
        )
    rows.sort(key=lambda row: row.dataset != name)
    runs = [
        (row.name, html.join_facts(row.title, row.dataset, moment(row.created))) for row in rows
    ]
    body = form.fields(
        form.chooser("Run", "run", runs, runs[0][0]),
        form.chooser("Questions", "only", ONLY, "wrong"),
    )
    body += html.note("Questions that the dataset already has are left out.")
    return panels.ask(
        f"Add questions of a run to {name}",
        body,
        "Add the questions",
        "edits.add_run",
        dataset=name,
    )


def keep_form(page: Page, event: Event) -> Patch:
    """Ask for the dataset to which the filtered questions of a run are saved."""
    run, only, words = event.text("run"), event.text("only"), event.text("words")
    count = len(run_ids(page, run, only, words))
    own = [name for name in page.workspace.own_datasets() if not page.workbench.edits.refusal(name)]
    more = form.on_enter("edits.add_run", run=run, only=only, words=words)
    about = "A dataset of this workspace, or a new name."
    body = form.text(
        "dataset",
        "Dataset",
        own[0] if own else "hard-questions",
        about=about,
        more=more,
        offers=own,
    )
    title = f"Save {plural(count, 'question')} to a dataset"
    return panels.ask(title, body, "Save them", "edits.add_run", run=run, only=only, words=words)


def run_ids(page: Page, run: str, only: str, words: str) -> list[str]:
    """Return the questions of a run that pass a filter."""
    folder = page.workbench.runs.open(run)
    return run_questions.question_ids(page.workspace, folder, only, words)


def add_run(page: Page, event: Event) -> Patch:
    """Add questions of a run to a dataset."""
    run, name = event.text("run"), event.text("dataset")
    qids = run_ids(page, run, event.text("only"), event.text("words"))
    result = page.workbench.edits.add_from_run(name, page.workbench.runs.open(run), qids)
    already = f"; {result.present:,} were there already" if result.present else ""
    say = f"Added {plural(len(result.added), 'question')} to {name}{already}."
    if event.read(DatasetAddress).id == name:
        return reopen(event, name, say) | Patch(dialog="")
    return Patch(dialog="", say=say, undo=html.link("Open it", DatasetAddress(name).href, "button"))
