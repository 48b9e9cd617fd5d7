"""Models: a card per language model; encoders, retrievers and rerankers below; and the view of one model."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from itertools import starmap

from markupsafe import Markup

from rallebench.core.errors import RalleError
from rallebench.core.list_columns import ListColumn
from rallebench.core.memory import size
from rallebench.core.plugins import plugin_warnings
from rallebench.gui import figures, html, lists, panels
from rallebench.gui.addresses import IndexAddress, ModelAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import PLACES, Page
from rallebench.gui.html import escape
from rallebench.gui.lists import ListState, ListView
from rallebench.gui.patches import Patch
from rallebench.gui.places import _models_add, _models_one
from rallebench.render.numbers import text
from rallebench.services import model_lines
from rallebench.services.model_lines import ModelLine, PartLine, Tested
from rallebench.views import library


@PLACES.register("models", label="Models", order=5)
def models(page: Page) -> None:
    page.view("models/list", open_list)
    page.actions("models", refresh, reads=True)
    page.actions("models", test, load, ask_delete, delete)
    for verb in ("cancel", "unload", "delete_copy"):
        page.action(f"models.{verb}", let_go)
    MODELS.register(page)
    PARTS.register(page)
    for part in (_models_one, _models_add):
        part.register(page)


def open_list(page: Page, event: Event) -> Patch:
    parts = draw_parts(page, event)
    body = Markup(
        '<div class="crumb"><h1>Models</h1><small id="models-line">{}</small></div>'
        '<div id="models-plugins">{}</div>{}'
        '{}<div class="cards four" id="models-cards">{}</div>{}'
        '<div class="cards three" id="models-add">{}</div><div class="data-list">{}<div id="models-parts">{}</div></div>{}'
    ).format(
        parts.line,
        parts.plugins,
        html.heading("Language models", first=True),
        lists.filter_bar(MODELS, page, event),
        parts.cards,
        html.heading("Add a model"),
        _models_add.draw(),
        lists.filter_bar(PARTS, page, event),
        parts.parts,
        html.follow("models.refresh"),
    )
    return panels.view("models/list", "Models", body, kind="wide")


@dataclass(frozen=True, slots=True)
class ModelParts:
    """The parts that change during loads, as HTML. ``plugins``: plug-ins that could not be used."""

    line: Markup
    plugins: Markup
    cards: Markup
    parts: Markup


def draw_parts(page: Page, event: Event) -> ModelParts:
    cards = draw_cards(page, MODELS.state(event))
    try:
        parts = parts_table(page, PARTS.state(event)) + other_encoders(page)
    except RalleError as error:
        parts = html.problem(error)
    plugins = Markup().join(map(html.warning, plugin_warnings()))
    return ModelParts(escape(model_lines.memory_line()), plugins, cards, parts)


def draw_cards(page: Page, state: ListState) -> Markup:
    """Draw the cards that fit the filter, in order; a fault of the filter takes their place."""
    try:
        cards = Markup().join(map(card, MODELS.arrange(page, state)))
    except RalleError as error:
        return html.problem(error)
    return cards + Markup().join(starmap(broken_card, page.workspace.damaged_llms().items()))


def card(line: ModelLine) -> Markup:
    """Draw a language model: its state, facts and actions."""
    id, address = line.name, ModelAddress(id=line.name).href
    priced = line.own and not line.local
    copy = f"Delete the converted copy ({size(line.converted)})"
    menu = html.menu(
        html.link("Open", address, ""),
        html.link("Change…", address, "") if line.own else Markup(),
        html.button("Price…", "models.price_form", id=id) if priced else Markup(),
        html.button("Key…", "models.key_form", id=id) if priced else Markup(),
        html.button(copy, "models.delete_copy", id=id) if line.converted else Markup(),
        html.button("Delete…", "models.ask_delete", id=id) if line.own else Markup(),
        label=f"Actions for {id}",
    )
    failed = line.state == "failed"
    word = "no answer" if failed and not line.local else line.state
    bar = progress(line.news) if line.state in ("loading", "testing") else Markup()
    return Markup(
        '<article class="mc"><h3>{}{}</h3><p class="kind" title="{}">{}</p>{}{}{}<div class="mf">{}'
        '<span class="gap"></span>{}</div></article>'
    ).format(
        html.link(id, address, "nm"),
        html.state(word),
        line.about,
        line.about,
        html.defs(facts(line)),
        html.problem(line.news) if failed else html.note(line.news),
        bar,
        buttons(line),
        menu,
    )


def broken_card(name: str, sentence: str) -> Markup:
    """Draw the card of an unreadable entry."""
    return Markup('<article class="mc"><h3><b class="nm">{}</b>{}</h3>{}</article>').format(
        name, html.state("damaged"), html.problem(sentence)
    )


def buttons(line: ModelLine) -> Markup:
    """Draw the buttons to test or stop a test, and to load, cancel or unload."""
    busy, test = line.state in ("loading", "waiting", "cancelling"), line.test
    first, second = (
        html.button("Test", "models.test", disabled=busy, about=line.name, id=line.name),
        Markup(),
    )
    if test is not None and not test.done:
        words = "Stopping" if test.stopping else "Stop test"
        first = html.button(words, "jobs.stop", disabled=test.stopping, about=line.name, id=test.id)
    if busy or line.local:
        verb = "Cancel" if busy else "Unload" if line.loaded else "Load"
        off = line.state == "cancelling"
        second = html.button(
            verb, f"models.{verb.lower()}", disabled=off, about=line.name, id=line.name
        )
    return first + second


def progress(news: object) -> Markup:
    """Draw the progress bar of a load; its share is known if the message ends with a count such as "64/256"."""
    count = re.search(r" (\d+)/(\d+)$", str(news))
    return html.progress(min(1.0, int(count[1]) / max(1, int(count[2]))) if count else None)


def facts(line: ModelLine) -> list[tuple[str, str]]:
    """Return the memory or the latest test, the speed, and the price."""
    test, speed, last, price = line.test, "not tested", "never", "none"
    if test is not None:
        last, result = "going on", test.result_as(Tested)
        if test.done:
            took = figures.duration(result.seconds) if result else test.status
            last = f"{took}, {time.strftime('%H:%M', time.localtime(test.ended))}"
        if result and result.speed:
            speed = f"{result.speed:.1f} tokens/s"
    if not line.local:
        price = "unknown"
        if line.prices is not None:
            dollars = [text(line.prices.get(way, 0.0), "usd") for way in ("prompt", "completion")]
            price = f"{dollars[0]} in, {dollars[1]} out a million"
    memory = ("Memory", line.memory or "known when it is loaded")
    return [memory if line.local else ("Last test", last), ("Speed", speed), ("Price", price)]


def parts_table(page: Page, state: ListState) -> Markup:
    """Draw the encoders, retrievers and rerankers."""
    title = "Encoders, retrievers and rerankers"
    names = ("name", "kind", "state", "memory", "about", "")
    heads = [(name, "") for name in names]
    table = lists.table(PARTS, page, state, heads, part_cells, kind="roomy parts")
    return html.heading(title, "an encoder is loaded with its index") + table


def part_cells(line: PartLine) -> list[str]:
    """Draw a row of encoders, retrievers and rerankers."""
    verbs = {"loaded": ("Unload", "models.unload"), "loading": ("Cancel", "models.cancel")}
    name, menu = Markup('<b class="nm">{}</b>').format(line.name), Markup()
    if line.kind == "retriever":
        name = html.name_link(line.name, IndexAddress(id=line.name))
        verb = verbs.get(line.state, ("Load", "models.load"))
        button = html.button(*verb, id=line.name, what="retriever")
        menu = html.menu(button, label=f"Actions for {line.name}")
    state, memory = html.state(line.state), escape(line.memory or "–")
    return [name, line.kind, state, memory, escape(line.about), menu]


def part_lines(page: Page) -> list[PartLine]:
    """Return the encoders, then the retrievers. Raises RalleError."""
    bench = page.workbench
    states = library.retriever_states(bench.workspace, bench.data.states())
    return [*bench.model_lines.encoders(), *bench.model_lines.retrievers(states)]


def other_encoders(page: Page) -> Markup:
    """Draw the encoders not used by any index, in a collapsed section."""
    more = page.workbench.model_lines.other_encoders()
    rows = [[Markup("<b>{}</b>").format(name), escape(about)] for name, about in more.items()]
    note = html.note("Choose one when you build an index; the first use downloads it.")
    table = html.rows(["Name", "About"], rows)
    return html.fold("More encoders", note + table, gist=f"{len(rows)}", id="models-encoders")


# actions


def refresh(page: Page, event: Event) -> Patch:
    """Redraw the cards and the lists."""
    parts = draw_parts(page, event)
    return Patch(
        {
            "models-line": parts.line,
            "models-plugins": parts.plugins,
            "models-cards": parts.cards,
            "models-parts": parts.parts,
        }
    )


def test(page: Page, event: Event) -> Patch:
    """Send one prompt to a model, loading it if necessary, as a job."""
    page.workbench.model_lines.start_test(event.text("id")).wait(0.2)
    return refresh(page, event)


def load(page: Page, event: Event) -> Patch:
    """Start loading a language model, or a retriever with ``what="retriever"``; the job's followers show the
    progress.
    """
    page.workbench.models.begin(event.text("id"), event.text("what", "language model"))
    return refresh(page, event)


def let_go(page: Page, event: Event) -> Patch:
    """Cancel a load, unload a model, or delete the converted copy of a GGUF file (the original is kept)."""
    models, id = page.workbench.models, event.text("id")
    if event.action == "models.delete_copy":
        sentence = models.delete_converted(id)
    else:
        sentence = models.cancel(id) if event.action == "models.cancel" else models.unload(id)
    return refresh(page, event) | Patch(say=sentence)


def ask_delete(page: Page, event: Event) -> Patch:
    name = event.text("id")
    lost = library.lost_with(page.workspace, "model", name)
    sentence = f"{lost} Downloaded weights stay.".strip()
    return panels.ask_delete(f"the model {name}", sentence, "models.delete", id=name)


def delete(page: Page, event: Event) -> Patch:
    sentence = page.workbench.models.delete(event.text("id"))
    page.workbench.jobs.forget(f"test {event.text('id')}")
    return refresh(page, event) | Patch(dialog="", say=sentence, go="#/models/list")


def price_in(line: ModelLine) -> float | None:
    """Return the US dollars for a million tokens of a prompt; 0 on this machine, None if unknown."""
    if line.local:
        return 0.0
    return line.prices.get("prompt") if line.prices else None


def speed(line: ModelLine) -> float | None:
    """Return the tokens a second of the last test; None without one."""
    result = line.test.result_as(Tested) if line.test else None
    return result.speed if result else None


MODEL_COLUMNS: tuple[ListColumn[ModelLine], ...] = (
    ListColumn("name", "Name", "text", lambda line: line.name, searched=True),
    ListColumn("state", "State", "text", lambda line: line.state, searched=True),
    ListColumn("kind", "Kind", "text", lambda line: line.backend, searched=True),
    ListColumn("speed", "Speed", "number", speed),
    ListColumn("price", "Price", "usd", price_in),
    ListColumn("about", "About", "text", lambda line: line.about, searched=True),
)
MODELS: ListView[ModelLine] = ListView(
    "models",
    "models/list",
    lambda page: page.workbench.model_lines.models(),
    lambda page: MODEL_COLUMNS,
    lambda page, event, state: {"models-cards": draw_cards(page, state)},
    prefix="m-",
    orders=("name", "state", "speed", "price"),
    hint="Filter, as in state:loaded",
)
"""Language models, as cards."""
PART_COLUMNS: tuple[ListColumn[PartLine], ...] = (
    ListColumn("name", "Name", "text", lambda line: line.name, searched=True),
    ListColumn("kind", "Kind", "text", lambda line: line.kind, searched=True),
    ListColumn("state", "State", "text", lambda line: line.state, searched=True),
    ListColumn("memory", "Memory", "text", lambda line: line.memory),
    ListColumn("about", "About", "text", lambda line: line.about, searched=True),
)
PARTS: ListView[PartLine] = ListView(
    "parts",
    "models/list",
    part_lines,
    lambda page: PART_COLUMNS,
    lambda page, event, state: {"models-parts": parts_table(page, state) + other_encoders(page)},
    hint="Filter, as in kind:retriever",
)
"""Encoders, retrievers and rerankers."""
