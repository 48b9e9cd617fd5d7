"""One language model: a prompt to try it, its settings, its price and its key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rallebench.core.entries import LLMEntry
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.memory import size
from rallebench.gui import form, html
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import e
from rallebench.gui.places._models_add import price_fields, priced
from rallebench.gui.wording import on_page
from rallebench.services import catalog, model_entries, model_lines
from rallebench.services.jobs import Job

FIRST = (
    "model",
    "base_url",
    "api_key_env",
    "quantization",
    "dtype",
    "max_tokens",
    "temperature",
    "decline_below",
)
"""Settings that are not folded."""


WEIGHTS = {"none": "as stored", "8bit": "8-bit", "4bit": "4-bit"}


def register(page: Page) -> None:
    """The view and its actions."""
    page.view("models/one", open_one)
    page.actions(
        "models",
        tried=follow,
        change=change,
        price_form=price_form,
        price=price,
        key_form=key_form,
        key=key,
        key_forget=forget_key,
        **{"try": try_prompt},
    )


def open_one(page: Page, event: Event) -> Patch:
    """The model that the address names."""
    name = event.query.get("id", "")
    try:
        entry = page.workbench.workspace.llm(name)
        own = name in page.workbench.models.own()
    except RalleError as error:
        return {"go": "#/models/list", "say": on_page(error)}
    buttons = ""
    if own and entry.backend == model_entries.ELSEWHERE:
        buttons += html.button("Key…", "models.key_form", id=name)
    buttons += html.button("Delete…", "models.ask", kind="danger", id=name) if own else ""
    crumb = html.crumb("Models", "#/models/list", name, model_lines.about(entry), buttons=buttons)
    settings = settings_form(page, name, entry) if own else f"<p>{e(entry.about)}</p>"
    settings += borders() if entry.backend == "extractive-reader" else ""
    body = (
        f'<div class="wrap-page">{crumb}<div class="one-cols"><div class="stack">{prompt_form(name)}'
        f'<div id="model-answer">{answer(page.workbench.jobs.get("test", name))}</div></div>'
        f'<div class="stack">{settings}{forms(page, name)}</div></div>'
        f'<span data-follow="test {e(name)}" data-do="models.tried" data-id="{e(name)}"></span></div>'
    )
    return {"#v-models-one": body, "title": name}


# try it


def prompt_form(name: str) -> str:
    """A prompt, and the button that asks it."""
    field = f'<textarea name="prompt" rows="6">{e(model_lines.PROMPT)}</textarea>'
    ask = html.button("Ask", "models.try", kind="primary", id=name)
    return f'<h3 class="sub first">Try it</h3><div data-form data-problems class="stack">{form.labelled("Prompt", field)}<div class="row">{ask}</div></div>'


def try_prompt(page: Page, event: Event) -> Patch:
    """Ask the model, as a job: past the cache of replies."""
    job = model_lines.start_test(
        page.workbench, event.text("id"), str(event.data.get("prompt", ""))
    )
    job.wait(0.3)
    return {"#model-answer": answer(job)}


def follow(page: Page, event: Event) -> Patch:
    """How far the question is."""
    return {"#model-answer": answer(page.workbench.jobs.get("test", event.text("id")))}


def answer(job: Job | None) -> str:
    """What the model answered, or how far it is."""
    if job is None:
        return '<p class="note">The answer comes here; the model is loaded if it is not.</p>'
    if not job.done:
        stop = html.button("Stop", "jobs.stop", id=job.id)
        return html.doing(job.message or "starting", stop)
    if job.error is not None:
        return html.problem(job.error)
    result = job.result
    tokens = (
        f"{result.prompt_tokens:,} + {result.completion_tokens:,} tokens"
        if result.prompt_tokens is not None and result.completion_tokens is not None
        else "tokens not counted"
    )
    speed = f"{result.speed:.1f} tokens/s" if result.speed else ""
    words = " · ".join(filter(None, [html.duration(result.seconds), tokens, speed]))
    return f'<h3 class="sub">Answer <small>{e(words)}</small></h3><div class="pre box">{e(result.answer or "The answer is empty.")}</div>'


# settings


def settings_form(page: Page, name: str, entry: LLMEntry) -> str:
    """All settings of the entry, the rarer ones folded."""
    known = known_of(entry)
    if known is None:
        return f'<p class="problem">{e(name)} has the backend {e(entry.backend)}, which is not known here.</p>'
    rare = [setting for setting in known if setting not in FIRST]
    fields = form.draw(known, entry.settings, {}, prefix="set-", folded=rare)
    prices = (
        price_fields(model_entries.prices(entry) or {})
        if entry.backend == model_entries.ELSEWHERE
        else ""
    )
    save = html.button("Save", "models.change", id=name)
    return f'<h3 class="sub first">Settings</h3><div data-form data-problems class="stack">{fields}{prices}<div class="row">{save}</div></div>'


def known_of(entry: LLMEntry) -> Mapping[str, Any] | None:
    """The settings of an entry's backend, the prices left out; None for an unknown backend."""
    if entry.backend not in catalog.names("llms"):
        return None
    known = catalog.entry("llms", entry.backend).form
    return {name: setting for name, setting in known.items() if name != "prices"}


def change(page: Page, event: Event) -> Patch:
    """Save the settings that differ from the defaults; a loaded model is unloaded, so that the change counts."""
    name = event.text("id")
    before = page.workbench.models.entry(name)
    known = known_of(before) or {}
    values = form.read(known, event, prefix="set-", owner=f"model {name!r}")
    own = {key: value for key, value in values.items() if value != known[key].default}
    entry = before.model_copy(update={"settings": own})
    if before.backend == model_entries.ELSEWHERE:
        entry = priced(event, entry)
    return {"say": saved(page, name, entry), **open_one(page, Event("open", {}, {"id": name}))}


def saved(page: Page, name: str, entry: LLMEntry) -> str:
    """Save a changed entry; returns a sentence."""
    models = page.workbench.models
    if models.is_loaded(name) and entry != models.entry(name):
        models.unload(name)  # raises while it is in use: then nothing is written
    models.add(name, entry, replace=True)
    return f"Saved {name}."


def forms(page: Page, name: str) -> str:
    """What the model takes in every quantisation."""
    try:
        fits = page.workbench.models.room_in_every_form(name)
    except RalleError as error:
        return f'<p class="note">{e(on_page(error))}</p>'
    rows = [
        [e(WEIGHTS.get(kind, kind)), size(fit.need.total), "fits" if fit.fits else "does not fit"]
        for kind, fit in fits.items()
    ]
    return (
        f'<h3 class="sub">Memory it needs</h3>{html.rows(["Weights", ">Memory", "Now"], rows)}'
        if rows
        else ""
    )


def borders() -> str:
    """What the built-in reader loses and gains by declining more."""
    usual, prompts, rows = model_lines.reader_borders()
    note = (
        f"decline_below is the confidence below which the reader withholds its answer: {usual['short']:g} where the prompt "
        f"says what to do without an answer, else {usual['plain']:g}. To set it, add the reader again under Another backend. "
        f"Measured on {prompts} prompts of five passages, half of them without the answer."
    )
    heads = [
        ">decline_below",
        ">Right answers kept",
        ">Declined without an answer",
        ">Answers that are right",
    ]
    keys = ("right_kept", "absent_declined", "given_right")
    cells = [[f"{row['below']:.2f}", *(f"{100 * row[key]:.0f} %" for key in keys)] for row in rows]
    return html.fold(
        "What declining costs",
        f'<p class="note">{e(note)}</p>{html.rows(heads, cells)}',
        id="model-borders",
    )


# price and key


def price_form(page: Page, event: Event) -> Patch:
    """The price of a model of a server."""
    name = event.text("id")
    entry = page.workbench.models.entry(name)
    save = html.button("Save", "models.price", kind="primary", id=name)
    note = "<p>Empty means unknown; runs then name no dollars.</p>"
    return {
        "dialog": html.dialog(
            f"Price of {name}", note + price_fields(model_entries.prices(entry) or {}), save
        )
    }


def price(page: Page, event: Event) -> Patch:
    """Save the price."""
    from rallebench.gui.places.models import refresh

    name = event.text("id")
    entry = priced(event, page.workbench.models.entry(name))
    return {"say": saved(page, name, entry), "dialog": "", **refresh(page, event)}


def key_form(page: Page, event: Event) -> Patch:
    """The key of a server."""
    name = event.text("id")
    save = html.button("Use this key", "models.key", kind="primary", id=name)
    forget = html.button("Forget it", "models.key_forget", id=name)
    note = "<p>It is kept in memory until rallebench ends, and is in no file, log or run.</p>"
    field = '<input name="key" type="password" autocomplete="off">'
    body = note + form.labelled("Key", field)
    return {"dialog": html.dialog(f"Key of {name}", body, forget, save)}


def key(page: Page, event: Event) -> Patch:
    """Hold the typed key."""
    if not event.text("key"):
        raise UsageError("The key is empty; type it, or forget the one that is held.")
    return hold(page, event, event.text("key"))


def forget_key(page: Page, event: Event) -> Patch:
    """Forget the key that was typed."""
    return hold(page, event, "")


def hold(page: Page, event: Event, words: str) -> Patch:
    """Hold these words as the key of a model."""
    from rallebench.gui.places.models import refresh

    sentence = model_entries.set_key(page.workbench, event.text("id"), words)
    return {"say": sentence, "dialog": "", **refresh(page, event)}
