"""Models: a card for each language model, three ways to add one, and encoders, retrievers and rerankers below."""

from __future__ import annotations

import re
import time

from rallebench.core.errors import RalleError
from rallebench.core.memory import size
from rallebench.gui import figures, html
from rallebench.gui.frame import PLACES, Event, Page, Patch
from rallebench.gui.html import e
from rallebench.gui.places import _models_add, _models_one
from rallebench.render.numbers import text
from rallebench.services import library, model_lines
from rallebench.services.model_lines import ModelLine, PartLine


@PLACES.register("models", label="Models", order=5)
def models(page: Page) -> None:
    page.view("models/list", open_list)
    page.actions("models", refresh, test, load, cancel, unload, ask_delete, delete, delete_copy)
    for part in (_models_add, _models_one):
        part.register(page)


def open_list(page: Page, event: Event) -> Patch:
    parts = drawn(page)
    body = (
        f'<div class="crumb"><h1>Models</h1><small id="models-line">{parts["line"]}</small></div>'
        f'{html.heading("Language models", first=True)}<div class="cards four" id="models-cards">{parts["cards"]}</div>'
        f'{html.heading("Add a model")}<div class="cards three" id="models-add">{_models_add.draw()}</div>'
        f'<div id="models-parts">{parts["parts"]}</div>{html.follow("models.refresh")}'
    )
    return html.view("models/list", "Models", body, kind="wide")


def drawn(page: Page) -> dict[str, str]:
    """What changes while models are loaded, by the names of its elements."""
    try:
        cards = "".join(map(card, model_lines.models(page.workbench)))
    except RalleError as error:
        cards = html.problem(error)
    try:
        parts = parts_table(model_lines.parts(page.workbench)) + other_encoders(page)
    except RalleError as error:
        parts = html.problem(error)
    return {"line": e(model_lines.memory_line()), "cards": cards, "parts": parts}


def card(line: ModelLine) -> str:
    """A language model: its state, its facts, what can be done with it."""
    id, address = line.name, html.address("models/one", id=line.name)
    priced = line.own and not line.local
    copy = f"Delete the converted copy ({size(line.converted)})"
    menu = html.menu(
        html.link("Open", address, ""),
        html.link("Change…", address, "") if line.own else "",
        html.button("Price…", "models.price_form", id=id) if priced else "",
        html.button("Key…", "models.key_form", id=id) if priced else "",
        html.button(copy, "models.delete_copy", id=id) if line.converted else "",
        html.button("Delete…", "models.ask_delete", id=id) if line.own else "",
        label=f"Actions for {id}",
    )
    failed = line.state == "failed"
    word = "no answer" if failed and not line.local else line.state
    bar = progress(line.news) if line.state in ("loading", "testing") else ""
    return (
        f'<article class="mc"><h4>{html.link(id, address, "nm")}{html.state(word)}</h4>'
        f'<p class="kind" title="{e(line.about)}">{e(line.about)}</p>{html.defs(facts(line))}'
        f"{html.problem(line.news) if failed else html.note(line.news)}{bar}"
        f'<div class="mf">{buttons(line)}<span class="gap"></span>{menu}</div></article>'
    )


def buttons(line: ModelLine) -> str:
    """Test a model or stop the test; load it, cancel that, or unload it."""
    busy, test = line.state in ("loading", "waiting", "cancelling"), line.test
    first, second = html.button("Test", "models.test", disabled=busy, id=line.name), ""
    if test is not None and not test.done:
        words = "Stopping" if test.stopping else "Stop test"
        first = html.button(words, "jobs.stop", disabled=test.stopping, id=test.id)
    if busy or line.local:
        verb = "Cancel" if busy else "Unload" if line.loaded else "Load"
        off = line.state == "cancelling"
        second = html.button(verb, f"models.{verb.lower()}", disabled=off, id=line.name)
    return first + second


def progress(news: object) -> str:
    """The bar of a load, with its share where the news end in a count such as "64/256"."""
    count = re.search(r" (\d+)/(\d+)$", str(news))
    return html.progress(min(1.0, int(count[1]) / max(1, int(count[2]))) if count else None)


def facts(line: ModelLine) -> list[tuple[str, str]]:
    """Memory or the last test, speed, price."""
    test, speed, last, price = line.test, "not tested", "never", "none"
    if test is not None:
        last = "going on"
        if test.done:
            took = figures.duration(test.result.seconds) if test.result else test.status
            last = f"{took}, {time.strftime('%H:%M', time.localtime(test.ended))}"
        if test.result and test.result.speed:
            speed = f"{test.result.speed:.1f} tokens/s"
    if not line.local:
        price = "unknown"
        if line.prices is not None:
            dollars = [text(line.prices.get(way, 0.0), "usd") for way in ("prompt", "completion")]
            price = f"{dollars[0]} in, {dollars[1]} out a million"
    memory = ("Memory", line.memory or "known when it is loaded")
    return [memory if line.local else ("Last test", last), ("Speed", speed), ("Price", price)]


def parts_table(lines: list[PartLine]) -> str:
    rows = []
    verbs = {"loaded": ("Unload", "models.unload"), "loading": ("Cancel", "models.cancel")}
    for line in lines:
        name, menu = f'<b class="nm">{e(line.name)}</b>', ""
        if line.kind == "retriever":
            name = html.named(line.name, "data/index", id=line.name)
            verb = verbs.get(line.state, ("Load", "models.load"))
            button = html.button(*verb, id=line.name, what="retriever")
            menu = html.menu(button, label=f"Actions for {line.name}")
        state, memory = html.state(line.state), e(line.memory or "–")
        rows.append([name, line.kind, state, memory, e(line.about), menu])
    title = "Encoders, retrievers and rerankers"
    heads = ["Name", "Kind", "State", ">Memory", "About", ""]
    table = html.rows(heads, rows, kind="roomy parts")
    return html.heading(title, "an encoder is loaded with its index") + table


def other_encoders(page: Page) -> str:
    """The encoders that no index uses yet, folded."""
    more = model_lines.other_encoders(page.workbench)
    rows = [[f"<b>{e(name)}</b>", e(about)] for name, about in more.items()]
    note = html.note("Choose one when you build an index; the first use downloads it.")
    table = html.rows(["Name", "About"], rows)
    return html.fold("More encoders", note + table, gist=f"{len(rows)}", id="models-encoders")


# actions


def refresh(page: Page, event: Event) -> Patch:
    """The cards and the lists as they are now."""
    return {f"#models-{name}": draw for name, draw in drawn(page).items()}


def test(page: Page, event: Event) -> Patch:
    """Load a model if it is not, and ask it one prompt, as a job."""
    model_lines.start_test(page.workbench, event.text("id")).wait(0.2)
    return refresh(page, event)


def load(page: Page, event: Event) -> Patch:
    """Begin to load a language model, or a ``what="retriever"``; what follows its job shows it."""
    page.workbench.models.begin(event.text("id"), event.text("what", "language model"))
    return refresh(page, event)


def cancel(page: Page, event: Event) -> Patch:
    sentence = page.workbench.models.cancel(event.text("id"))
    return {**refresh(page, event), "say": sentence}


def unload(page: Page, event: Event) -> Patch:
    sentence = page.workbench.models.unload(event.text("id"))
    return {**refresh(page, event), "say": sentence}


def ask_delete(page: Page, event: Event) -> Patch:
    name = event.text("id")
    lost = library.lost_with(page.workbench, "model", name)
    sentence = f"{lost} Downloaded weights stay.".strip()
    return html.ask_delete(f"the model {name}", sentence, "models.delete", id=name)


def delete(page: Page, event: Event) -> Patch:
    sentence = page.workbench.models.delete(event.text("id"))
    page.workbench.jobs.forget(f"test {event.text('id')}")
    return {**refresh(page, event), "dialog": "", "say": sentence, "go": "#/models/list"}


def delete_copy(page: Page, event: Event) -> Patch:
    """Delete the converted copy of a GGUF file; the file stays."""
    sentence = page.workbench.models.delete_converted(event.text("id"))
    return {**refresh(page, event), "say": sentence}
