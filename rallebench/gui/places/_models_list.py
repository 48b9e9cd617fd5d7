"""The list of models: a card each, and encoders, retrievers and rerankers below."""

from __future__ import annotations

import re
import time

from rallebench.core.errors import RalleError
from rallebench.core.memory import size
from rallebench.gui import figures, html
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import e
from rallebench.render.numbers import text
from rallebench.services import model_lines
from rallebench.services.model_lines import ModelLine, PartLine


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
    copy = f"Delete the converted copy ({size(line.converted)})"
    menu = html.menu(
        html.link("Open", address, ""),
        html.link("Change…", address, "") if line.own else "",
        html.button("Price…", "models.price_form", **data) if priced else "",
        html.button("Key…", "models.key_form", **data) if priced else "",
        html.button(copy, "models.delete_copy", **data) if line.converted else "",
        html.button("Delete…", "models.ask_delete", **data) if line.own else "",
        label=f"Actions for {line.name}",
    )
    news = html.problem(line.news)
    if line.state != "failed":
        news = html.note(line.news)
    bar = progress(line.news) if line.state == "loading" or testing else ""
    return (
        f'<article class="mc"><h4>{html.named(line.name, "models/one", id=line.name)}{html.state(word(line))}</h4>'
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
            name = html.named(line.name, "data/index", id=line.name)
            verb = verbs.get(line.state, ("Load", "models.load"))
            button = html.button(*verb, id=line.name, what="retriever")
            menu = html.menu(button, label=f"Actions for {line.name}")
        state, memory = html.state(line.state), e(line.memory or "–")
        rows.append([name, line.kind, state, memory, e(line.about), menu])
    heads = ["Name", "Kind", "State", ">Memory", "About", ""]
    about = "an encoder is loaded with its index"
    title = html.heading("Encoders, retrievers and rerankers", about)
    return title + html.rows(heads, rows, kind="roomy parts")
