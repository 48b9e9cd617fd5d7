"""Models: a card for each language model, three ways to add one, and the list of encoders and retrievers."""

from __future__ import annotations

import re
import time

from rallebench.core.errors import RalleError
from rallebench.gui import figures, html
from rallebench.gui.frame import PLACES, Event, Page, Patch
from rallebench.gui.html import e
from rallebench.gui.places import _models_add, _models_one
from rallebench.gui.wording import on_page
from rallebench.render.numbers import text
from rallebench.services import library, model_lines
from rallebench.services.model_lines import ModelLine, PartLine


@PLACES.register("models", label="Models", order=5)
def models(page: Page) -> None:
    """Look, test, load, add, change, delete."""
    page.view("models/list", open_list)
    page.actions("models", refresh, test, load, cancel, unload, ask_delete, delete)
    for part in (_models_add, _models_one):
        part.register(page)


def open_list(page: Page, event: Event) -> Patch:
    """The cards, the ways to add, the list."""
    parts = drawn(page)
    body = (
        f'<div class="wrap-page wide"><div class="crumb"><h1>Models</h1><small id="models-line">{parts["line"]}</small></div>'
        f'{html.heading("Language models", first=True)}<div class="cards four" id="models-cards">{parts["cards"]}</div>'
        f'{html.heading("Add a model")}<div class="cards three" id="models-add">{_models_add.draw(page)}</div>'
        f'<div id="models-parts">{parts["parts"]}</div>{others(page)}'
        '<span data-follow="*" data-do="models.refresh"></span></div>'
    )
    return {"#v-models-list": body, "title": "Models"}


def drawn(page: Page) -> dict[str, str]:
    """What changes while models are loaded, by the names of its elements."""
    try:
        cards = "".join(card(line) for line in model_lines.models(page.workbench))
    except RalleError as error:
        cards = html.problem(error)
    try:
        parts = parts_table(model_lines.parts(page.workbench))
    except RalleError as error:
        parts = html.problem(error)
    return {"line": e(model_lines.memory_line()), "cards": cards, "parts": parts}


def refresh(page: Page, event: Event) -> Patch:
    """The cards and the list as they are now."""
    return {f"#models-{name}": draw for name, draw in drawn(page).items()}


def card(line: ModelLine) -> str:
    """A language model."""
    data = {"id": line.name}
    busy = line.state in ("loading", "waiting", "cancelling")
    testing = line.test is not None and not line.test.done
    address, priced = html.address("models/one", id=line.name), line.own and not line.local
    buttons = html.button("Test", "models.test", disabled=busy, **data)
    if line.test and testing:
        words = "Stopping" if line.test.stopping else "Stop test"
        buttons = html.button(words, "jobs.stop", disabled=line.test.stopping, id=line.test.id)
    if busy:
        cancelling = line.state == "cancelling"
        buttons += html.button("Cancel", "models.cancel", disabled=cancelling, **data)
    elif line.local and line.loaded:
        buttons += html.button("Unload", "models.unload", **data)
    elif line.local:
        buttons += html.button("Load", "models.load", **data)
    menu = html.menu(
        html.link("Open", address, ""),
        html.link("Change…", address, "") if line.own else "",
        html.button("Price…", "models.price_form", **data) if priced else "",
        html.button("Key…", "models.key_form", **data) if priced else "",
        html.button("Delete…", "models.ask_delete", **data) if line.own else "",
        label=f"Actions for {line.name}",
    )
    news = html.problem(line.news)
    if line.state != "failed":
        news = html.note(on_page(line.news) if line.news else "")
    bar = progress(line.news) if line.state == "loading" or testing else ""
    return (
        f'<article class="mc"><h4>{html.link(line.name, address, "nm")}{html.state(word(line))}</h4>'
        f'<p class="kind" title="{e(line.about)}">{e(line.about)}</p>{html.defs(facts(line))}{news}{bar}'
        f'<div class="mf">{buttons}<span class="gap"></span>{menu}</div></article>'
    )


def progress(news: object) -> str:
    """The bar of a load, with its share where the news end in a count such as "64/256"."""
    count = re.search(r" (\d+)/(\d+)$", str(news))
    return html.progress(min(1.0, int(count[1]) / max(1, int(count[2]))) if count else None)


def word(line: ModelLine) -> str:
    """The state in a word or two."""
    return "no answer" if line.state == "failed" and not line.local else line.state


def facts(line: ModelLine) -> list[tuple[str, str]]:
    """Memory or the last test, speed, price."""
    result = line.test.result if line.test is not None and line.test.done else None
    first = ("Last test", last_test(line))
    if line.local:
        first = ("Memory", line.memory or "known when it is loaded")
    speed = f"{result.speed:.1f} tokens/s" if result and result.speed else "not tested"
    return [first, ("Speed", speed), ("Price", price(line))]


def last_test(line: ModelLine) -> str:
    """How long the last test took, and when it was."""
    test = line.test
    if test is None or not test.done:
        return "never" if test is None else "going on"
    clock = time.strftime("%H:%M", time.localtime(test.ended))
    if test.result is None:
        return f"{test.status}, {clock}"
    return f"{figures.duration(test.result.seconds)}, {clock}"


def price(line: ModelLine) -> str:
    """The price of a million tokens."""
    if line.local:
        return "none"
    if line.prices is None:
        return "unknown"
    dollars = [text(line.prices.get(kind, 0.0), "usd") for kind in ("prompt", "completion")]
    return f"{dollars[0]} in, {dollars[1]} out a million"


def parts_table(lines: list[PartLine]) -> str:
    """Encoders, retrievers and rerankers with their state."""
    rows = []
    verbs = {"loaded": ("Unload", "models.unload"), "loading": ("Cancel", "models.cancel")}
    for line in lines:
        name, menu = f'<b class="nm">{e(line.name)}</b>', ""
        if line.kind == "retriever":
            name = html.link(line.name, html.address("data/index", id=line.name), "nm")
            verb = verbs.get(line.state, ("Load", "models.load"))
            button = html.button(*verb, id=line.name, what="retriever")
            menu = html.menu(button, label=f"Actions for {line.name}")
        state, memory = html.state(line.state), e(line.memory or "–")
        rows.append([name, line.kind, state, memory, e(line.about), menu])
    heads = ["Name", "Kind", "State", ">Memory", "About", ""]
    about = "an encoder is loaded with its index"
    title = html.heading("Encoders, retrievers and rerankers", about)
    return title + html.rows(heads, rows, kind="roomy parts")


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
    yes = html.button("Delete", "models.delete", kind="danger", id=name)
    body = f"<p>{e(f'{lost} Downloaded weights stay.'.strip())}</p>"
    return {"dialog": html.dialog(f"Delete the model {name}?", body, yes, keep="Keep it")}


def delete(page: Page, event: Event) -> Patch:
    """Forget an added model."""
    sentence = page.workbench.models.delete(event.text("id"))
    page.workbench.jobs.forget(f"test {event.text('id')}")
    return {**refresh(page, event), "dialog": "", "say": sentence, "go": "#/models/list"}
