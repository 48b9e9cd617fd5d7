"""Changes of runs: title, tags, note and star, and the bin from which they can be restored."""

from __future__ import annotations

from itertools import chain

from markupsafe import Markup

from rallebench.core.numbers import plural
from rallebench.gui import form, html, panels
from rallebench.gui.addresses import RunAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.patches import PageEvent, Patch
from rallebench.gui.places._runs_list import LIST, view
from rallebench.gui.places._runs_one import heading
from rallebench.render import numbers
from rallebench.views import run_list


def register(page: Page) -> None:
    page.actions("runs", open_bin, reads=True)
    page.actions("runs", ask_title, rename, ask_marks, mark, star, delete, restore, empty_bin)


def redraw(page: Page, event: Event) -> Patch:
    """Redraw the list, or the heading of the open run."""
    query = event.read(RunAddress)
    if not query.id:
        return Patch(dict(LIST.draw(page, event, LIST.state(event))))
    row = run_list.run_row(page.workspace, query.id)
    return Patch({"run-head": heading(page, row, query.part or "questions")}, title=row.title)


def ask_title(page: Page, event: Event) -> Patch:
    row = run_list.run_row(page.workspace, event.text("id"))
    more = form.on_enter("runs.rename", id=row.name)
    note = f"Its folder stays {row.name}: experiments and MLflow know it by that name. Leave it empty to return to the automatic name."
    body = form.text("as", "Name", row.title, more=more) + html.note(note)
    return panels.ask("Rename the run", body, "Rename", "runs.rename", id=row.name)


def rename(page: Page, event: Event) -> Patch:
    page.workbench.runs.rename(event.text("id"), event.text("as"))
    return redraw(page, event) | Patch(dialog="")


def ask_marks(page: Page, event: Event) -> Patch:
    """Open a dialog with the tags and the note of a run."""
    row = run_list.run_row(page.workspace, event.text("id"))
    every = sorted(set(chain.from_iterable(r.tags for r in run_list.rows(page.workspace))))
    more = form.on_enter("runs.mark", id=row.name)
    tags = ", ".join(row.tags)
    body = form.text("tags", "Tags, between commas", tags, "night, best of May", "", more, every)
    body += form.area("note", "Note", row.note, 4)
    return panels.ask(f"Tags and note of {row.title}", body, "Save", "runs.mark", id=row.name)


def mark(page: Page, event: Event) -> Patch:
    """Replace the tags and the note of a run."""
    tags = event.text("tags").split(",")
    page.workbench.runs.mark(event.text("id"), tags, event.raw_text("note"))
    return redraw(page, event) | Patch(dialog="")


def star(page: Page, event: Event) -> Patch:
    """Make a run the reference of its dataset, or remove its star."""
    page.workbench.runs.star(event.text("id"), event.text("starred") == "yes")
    return redraw(page, event)


def delete(page: Page, event: Event) -> Patch:
    page.workbench.runs.delete(event.text("id"))
    gone = PageEvent("rb-gone", run=event.text("id"))
    undo = html.button("Bring back", "runs.restore", id=event.text("id"))
    patch = Patch(say="The run is in the bin.", undo=undo, go="#/runs/list", event=gone)
    return view(page, event) | patch


def open_bin(page: Page, event: Event) -> Patch:
    binned, lines = run_list.in_bin(page.workspace), []
    for row in binned:
        about = html.join_facts(row.dataset, numbers.moment(row.created))
        name = Markup('<b class="nm" title="{}">{}</b><small>{}</small>').format(
            row.name, row.title, about
        )
        lines.append([name, html.button("Bring back", "runs.restore", id=row.name)])
    count = plural(len(binned), "run")
    gone = html.button(
        f"Empty the bin ({len(binned)})",
        "runs.empty_bin",
        kind="danger",
        confirm=f"Delete {count} in the bin for good? Nothing brings them back.",
        confirm_verb=f"Delete {count} for good",
    )
    listed = html.rows(["Run", ">"], lines)
    return panels.form_drawer("Bin", listed, gone)


def restore(page: Page, event: Event) -> Patch:
    """Restore a run; the bin stays open while it contains others."""
    page.workbench.runs.restore(event.text("id"))
    more = open_bin(page, event) if run_list.in_bin(page.workspace) else Patch(drawer="")
    return view(page, event) | more


def empty_bin(page: Page, event: Event) -> Patch:
    say = f"Deleted {plural(page.workbench.runs.empty_bin(), 'run')}."
    return view(page, event) | Patch(drawer="", say=say)
