"""Models: a card for each language model, three ways to add one, and the list of encoders and retrievers."""

from __future__ import annotations

from rallebench.core.errors import RalleError
from rallebench.gui import html
from rallebench.gui.frame import PLACES, Event, Page, Patch
from rallebench.gui.html import e
from rallebench.gui.places import _models_add, _models_one
from rallebench.gui.places._models_list import drawn, refresh
from rallebench.services import library, model_lines


@PLACES.register("models", label="Models", order=5)
def models(page: Page) -> None:
    """Look, test, load, add, change, delete."""
    page.view("models/list", open_list)
    page.actions("models", refresh, test, load, cancel, unload, ask_delete, delete)
    page.actions("models", delete_copy)
    for part in (_models_add, _models_one):
        part.register(page)


def open_list(page: Page, event: Event) -> Patch:
    """The cards, the ways to add, the list."""
    parts = drawn(page)
    body = (
        f'<div class="crumb"><h1>Models</h1><small id="models-line">{parts["line"]}</small></div>'
        f'{html.heading("Language models", first=True)}<div class="cards four" id="models-cards">{parts["cards"]}</div>'
        f'{html.heading("Add a model")}<div class="cards three" id="models-add">{_models_add.draw(page)}</div>'
        f'<div id="models-parts">{parts["parts"]}</div>{others(page)}{html.follow("models.refresh")}'
    )
    return html.view("models/list", "Models", body, kind="wide")


def others(page: Page) -> str:
    """The encoders that no index uses yet."""
    try:
        more = model_lines.other_encoders(page.workbench)
    except RalleError:
        return ""
    rows = [[f"<b>{e(name)}</b>", e(about)] for name, about in more.items()]
    note = html.note("Choose one when you build an index; the first use downloads it.")
    inside = note + html.rows(["Name", "About"], rows)
    return html.fold("More encoders", inside, gist=f"{len(rows)}", id="models-encoders")


# actions


def test(page: Page, event: Event) -> Patch:
    """Load a model if it is not, and ask it one prompt, as a job."""
    model_lines.start_test(page.workbench, event.text("id")).wait(0.2)
    return refresh(page, event)


def load(page: Page, event: Event) -> Patch:
    """Begin to load a language model, or a ``what="retriever"``; what follows its job shows it."""
    page.workbench.models.begin(event.text("id"), event.text("what", "language model"))
    return refresh(page, event)


def cancel(page: Page, event: Event) -> Patch:
    """Cancel a load, for everybody who waits for it."""
    sentence = page.workbench.models.cancel(event.text("id"))
    return {**refresh(page, event), "say": sentence}


def unload(page: Page, event: Event) -> Patch:
    """Unload a model or a retriever."""
    sentence = page.workbench.models.unload(event.text("id"))
    return {**refresh(page, event), "say": sentence}


def ask_delete(page: Page, event: Event) -> Patch:
    """Say what else a deletion breaks, and ask."""
    name = event.text("id")
    lost = library.lost_with(page.workbench, "model", name)
    sentence = f"{lost} Downloaded weights stay.".strip()
    return html.ask_delete(f"the model {name}", sentence, "models.delete", id=name)


def delete(page: Page, event: Event) -> Patch:
    """Forget an added model."""
    sentence = page.workbench.models.delete(event.text("id"))
    page.workbench.jobs.forget(f"test {event.text('id')}")
    return {**refresh(page, event), "dialog": "", "say": sentence, "go": "#/models/list"}


def delete_copy(page: Page, event: Event) -> Patch:
    """Delete the converted copy of a GGUF file; the file stays."""
    sentence = page.workbench.models.delete_converted(event.text("id"))
    return {**refresh(page, event), "say": sentence}
