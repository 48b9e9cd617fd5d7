"""Models: a card per language model; encoders, retrievers and rerankers below; and one model with its settings."""

from __future__ import annotations

import re
import time
from itertools import starmap

from markupsafe import Markup

from rallebench.core.entries import LLMEntry
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.memory import size
from rallebench.gui import figures, form, html, panels
from rallebench.gui.addresses import IndexAddress, ModelAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import PLACES, Page
from rallebench.gui.html import escape
from rallebench.gui.jobs import going
from rallebench.gui.patches import Patch
from rallebench.gui.places import _models_add
from rallebench.gui.places._models_add import QUANTIZATIONS, key_field, price_fields, with_prices
from rallebench.render.numbers import text
from rallebench.services import model_entries, model_lines
from rallebench.services.jobs import Job
from rallebench.services.model_lines import ModelLine, PartLine
from rallebench.views import catalog, library

FIRST = (
    "model", "base_url", "api_key_env", "quantization", "dtype", "max_tokens", "temperature", "decline_below",
)  # fmt: skip
"""Settings shown without unfolding."""


@PLACES.register("models", label="Models", order=5)
def models(page: Page) -> None:
    page.view("models/list", open_list)
    page.actions("models", refresh, test, load, ask_delete, delete)
    for verb in ("cancel", "unload", "delete_copy"):
        page.action(f"models.{verb}", let_go)
    page.view("models/one", open_one, back="models/list")
    page.actions("models", try_, follow, change, price_form, price, key_form)
    for verb in ("key", "forget_key"):
        page.action(f"models.{verb}", hold)
    _models_add.register(page)


def open_list(page: Page, event: Event) -> Patch:
    parts = draw_parts(page)
    body = Markup(
        '<div class="crumb"><h1>Models</h1><small id="models-line">{}</small></div>{}'
        '<div class="cards four" id="models-cards">{}</div>{}'
        '<div class="cards three" id="models-add">{}</div><div id="models-parts">{}</div>{}'
    ).format(
        parts["line"],
        html.heading("Language models", first=True),
        parts["cards"],
        html.heading("Add a model"),
        _models_add.draw(),
        parts["parts"],
        html.follow("models.refresh"),
    )
    return panels.view("models/list", "Models", body, kind="wide")


def draw_parts(page: Page) -> dict[str, str]:
    """The parts that change during loads, by element id."""
    cards = Markup().join(map(card, page.workbench.model_lines.models()))
    cards += Markup().join(starmap(broken_card, page.workbench.workspace.damaged_llms().items()))
    try:
        parts = parts_table(part_lines(page)) + other_encoders(page)
    except RalleError as error:
        parts = html.problem(error)
    return {"line": escape(model_lines.memory_line()), "cards": cards, "parts": parts}


def card(line: ModelLine) -> Markup:
    """A language model: its state, its facts, its actions."""
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
        '<article class="mc"><h4>{}{}</h4><p class="kind" title="{}">{}</p>{}{}{}<div class="mf">{}'
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
    """An unreadable entry."""
    return Markup('<article class="mc"><h4><b class="nm">{}</b>{}</h4>{}</article>').format(
        name, html.state("damaged"), html.problem(sentence)
    )


def buttons(line: ModelLine) -> Markup:
    """Test or stop the test; load, cancel or unload."""
    busy, test = line.state in ("loading", "waiting", "cancelling"), line.test
    first, second = html.button("Test", "models.test", disabled=busy, id=line.name), Markup()
    if test is not None and not test.done:
        words = "Stopping" if test.stopping else "Stop test"
        first = html.button(words, "jobs.stop", disabled=test.stopping, id=test.id)
    if busy or line.local:
        verb = "Cancel" if busy else "Unload" if line.loaded else "Load"
        off = line.state == "cancelling"
        second = html.button(verb, f"models.{verb.lower()}", disabled=off, id=line.name)
    return first + second


def progress(news: object) -> Markup:
    """The bar of a load; its share is known if the news end in a count such as "64/256"."""
    count = re.search(r" (\d+)/(\d+)$", str(news))
    return html.progress(min(1.0, int(count[1]) / max(1, int(count[2]))) if count else None)


def facts(line: ModelLine) -> list[tuple[str, str]]:
    """Memory or the latest test, speed, price."""
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


def parts_table(lines: list[PartLine]) -> Markup:
    rows = []
    verbs = {"loaded": ("Unload", "models.unload"), "loading": ("Cancel", "models.cancel")}
    for line in lines:
        name, menu = Markup('<b class="nm">{}</b>').format(line.name), Markup()
        if line.kind == "retriever":
            name = html.name_link(line.name, IndexAddress(id=line.name))
            verb = verbs.get(line.state, ("Load", "models.load"))
            button = html.button(*verb, id=line.name, what="retriever")
            menu = html.menu(button, label=f"Actions for {line.name}")
        state, memory = html.state(line.state), escape(line.memory or "–")
        rows.append([name, line.kind, state, memory, escape(line.about), menu])
    title = "Encoders, retrievers and rerankers"
    heads = ["Name", "Kind", "State", ">Memory", "About", ""]
    table = html.rows(heads, rows, kind="roomy parts")
    return html.heading(title, "an encoder is loaded with its index") + table


def part_lines(page: Page) -> list[PartLine]:
    """Encoders, then retrievers. Raises RalleError."""
    bench = page.workbench
    states = library.retriever_states(bench.workspace, bench.data.states())
    return [*bench.model_lines.encoders(), *bench.model_lines.retrievers(states)]


def other_encoders(page: Page) -> Markup:
    """The encoders that no index uses yet, folded."""
    more = page.workbench.model_lines.other_encoders()
    rows = [[Markup("<b>{}</b>").format(name), escape(about)] for name, about in more.items()]
    note = html.note("Choose one when you build an index; the first use downloads it.")
    table = html.rows(["Name", "About"], rows)
    return html.fold("More encoders", note + table, gist=f"{len(rows)}", id="models-encoders")


# actions


def refresh(page: Page, event: Event) -> Patch:
    """Redraw the cards and the lists."""
    return Patch({f"models-{name}": draw for name, draw in draw_parts(page).items()})


def test(page: Page, event: Event) -> Patch:
    """Load a model if necessary and ask it one prompt, as a job."""
    page.workbench.model_lines.start_test(event.text("id")).wait(0.2)
    return refresh(page, event)


def load(page: Page, event: Event) -> Patch:
    """Start to load a language model, or a ``what="retriever"``; the followers of its job show it."""
    page.workbench.models.begin(event.text("id"), event.text("what", "language model"))
    return refresh(page, event)


def let_go(page: Page, event: Event) -> Patch:
    """Cancel a load, unload a model, or delete the converted copy of a GGUF file (the original stays)."""
    models, id = page.workbench.models, event.text("id")
    if event.action == "models.delete_copy":
        sentence = models.delete_converted(id)
    else:
        sentence = models.cancel(id) if event.action == "models.cancel" else models.unload(id)
    return refresh(page, event) | Patch(say=sentence)


def ask_delete(page: Page, event: Event) -> Patch:
    name = event.text("id")
    lost = library.lost_with(page.workbench.workspace, "model", name)
    sentence = f"{lost} Downloaded weights stay.".strip()
    return panels.ask_delete(f"the model {name}", sentence, "models.delete", id=name)


def delete(page: Page, event: Event) -> Patch:
    sentence = page.workbench.models.delete(event.text("id"))
    page.workbench.jobs.forget(f"test {event.text('id')}")
    return refresh(page, event) | Patch(dialog="", say=sentence, go="#/models/list")


# one model


def open_one(page: Page, event: Event) -> Patch:
    return view_one(page, event.read(ModelAddress).id)


def view_one(page: Page, name: str) -> Patch:
    entry = page.workbench.workspace.llm(name)
    own, buttons = name in page.workbench.models.own(), Markup()
    if own and entry.backend == model_entries.ELSEWHERE:
        buttons += html.button("Key…", "models.key_form", id=name)
    if own:
        buttons += html.button("Delete…", "models.ask_delete", kind="danger", id=name)
    crumb = html.crumb("Models", "#/models/list", name, model_lines.about(entry), buttons=buttons)
    settings = settings_form(name, entry) if own else Markup("<p>{}</p>").format(entry.about)
    settings += borders() if entry.backend == "extractive-reader" else Markup()
    prompt = form.area("prompt", "Prompt", model_lines.PROMPT, 6)
    ask = html.button("Ask", "models.try", kind="primary", id=name)
    news = html.attributes(follow=f"test {name}", do="models.follow", id=name)
    last = answer(page.workbench.jobs.get("test", name))
    body = Markup(
        '{}<div class="one-cols"><div class="stack">{}<div id="model-answer">{}</div></div>'
        '<div class="stack">{}{}</div></div><span{}></span>'
    ).format(crumb, part("Try it", prompt, ask), last, settings, forms(page, name), news)
    return panels.view("models/one", name, body)


def part(title: str, fields: str, button: str) -> Markup:
    """A form under its own heading."""
    return Markup(
        '{}<div data-form data-problems class="stack">{}<div class="row">{}</div></div>'
    ).format(html.heading(title, first=True), fields, button)


# try it


def try_(page: Page, event: Event) -> Patch:
    """Ask the model as a job, without the reply cache."""
    prompt = event.raw_text("prompt")
    page.workbench.model_lines.start_test(event.text("id"), prompt).wait(0.3)
    return follow(page, event)


def follow(page: Page, event: Event) -> Patch:
    return Patch({"model-answer": answer(page.workbench.jobs.get("test", event.text("id")))})


def answer(job: Job | None) -> Markup:
    """The answer of the model, or its progress."""
    if job is None:
        return html.note("The answer comes here; the model is loaded if it is not.")
    if not job.done or job.error is not None:
        return going(job)
    result, tokens = job.result, "tokens not counted"
    if result.prompt_tokens is not None and result.completion_tokens is not None:
        tokens = f"{result.prompt_tokens:,} + {result.completion_tokens:,} tokens"
    speed = f"{result.speed:.1f} tokens/s" if result.speed else ""
    words = html.join_facts(figures.duration(result.seconds), tokens, speed)
    text = escape(result.answer or "The answer is empty.")
    return Markup('{}<div class="pre box">{}</div>').format(html.heading("Answer", words), text)


# settings


def known_settings(entry: LLMEntry) -> form.Form:
    """The settings of an entry's backend without the prices; none for an unknown backend."""
    if entry.backend not in catalog.names("llms"):
        return {}
    known = catalog.entry("llms", entry.backend).form
    return {name: setting for name, setting in known.items() if name != "prices"}


def settings_form(name: str, entry: LLMEntry) -> Markup:
    """All settings of the entry, the rarer ones folded."""
    if entry.backend not in catalog.names("llms"):
        return html.problem(f"{name} has the backend {entry.backend}, which is not known here.")
    known = known_settings(entry)
    rare = [setting for setting in known if setting not in FIRST]
    fields = form.draw(known, entry.settings, {}, prefix="set-", folded=rare)
    if entry.backend == model_entries.ELSEWHERE:
        fields += price_fields(entry.prices or {})
    return part("Settings", fields, html.button("Save", "models.change", id=name))


def change(page: Page, event: Event) -> Patch:
    """Save the settings that differ from the defaults."""
    name = event.text("id")
    entry = page.workbench.models.entry(name)
    own = form.changed_settings(
        known_settings(entry), event, prefix="set-", owner=f"model {name!r}"
    )
    entry = entry.model_copy(update={"settings": own})
    if entry.backend == model_entries.ELSEWHERE:
        entry = with_prices(event, entry)
    return save_change(page, name, entry) | view_one(page, name)


def save_change(page: Page, name: str, entry: LLMEntry) -> Patch:
    """Save a changed entry; a loaded model is unloaded so that the change takes effect."""
    models = page.workbench.models
    if models.is_loaded(name) and entry != models.entry(name):
        models.unload(name)  # raises while the model is in use, before anything is written
    models.add(name, entry, replace=True)
    return Patch(say=f"Saved {name}.", dialog="")


def forms(page: Page, name: str) -> Markup:
    """A table of the memory per quantisation as HTML; "" for a model without any."""
    try:
        fits = page.workbench.models.room_in_every_form(name)
    except RalleError as error:
        return html.note(error)
    rows = []
    for kind, fit in fits.items():
        fitting = "fits" if fit.fits else "does not fit"
        rows.append([escape(QUANTIZATIONS.get(kind, kind)), size(fit.need.total), fitting])
    table = html.rows(["Weights", ">Memory", "Now"], rows)
    return html.heading("Memory it needs", "an estimate") + table if rows else Markup()


def borders() -> Markup:
    """The built-in reader's gains and losses when it declines more often."""
    usual, prompts, rows = model_lines.reader_borders()
    note = (
        f"decline_below is the confidence below which the reader withholds its answer: {usual['short']:g} where the prompt "
        f"says what to do without an answer, else {usual['plain']:g}. To set it, add the reader again under Another backend. "
        f"Measured on {prompts} prompts of five passages, half of them without the answer."
    )
    columns = {
        "right_kept": ">Right answers kept",
        "absent_declined": ">Declined without an answer",
        "given_right": ">Answers that are right",
    }
    cells = [
        [f"{row['below']:.2f}", *(f"{100 * row[key]:.0f} %" for key in columns)] for row in rows
    ]
    table = html.rows([">decline_below", *columns.values()], cells)
    return html.fold("What declining costs", html.note(note) + table, id="model-borders")


# price and key


def price_form(page: Page, event: Event) -> Patch:
    name = event.text("id")
    fields = price_fields(page.workbench.models.entry(name).prices or {})
    body = Markup("<p>Empty means unknown; runs then name no dollars.</p>{}").format(fields)
    return panels.ask(f"Price of {name}", body, "Save", "models.price", id=name)


def price(page: Page, event: Event) -> Patch:
    name = event.text("id")
    patch = save_change(page, name, with_prices(event, page.workbench.models.entry(name)))
    return patch | refresh(page, event)


def key_form(page: Page, event: Event) -> Patch:
    name = event.text("id")
    save = html.button("Use this key", "models.key", kind="primary", id=name)
    forget = html.button("Forget it", "models.forget_key", id=name)
    return Patch(dialog=html.dialog(f"Key of {name}", key_field(), forget, save))


def hold(page: Page, event: Event) -> Patch:
    """Hold the typed key of a model in memory, or forget it."""
    words = event.text("key") if event.action == "models.key" else ""
    if event.action == "models.key" and not words:
        raise UsageError("The key is empty; type it, or forget the one that is held.")
    sentence = page.workbench.models.set_key(event.text("id"), words)
    return Patch(say=sentence, dialog="") | refresh(page, event)
