"""One language model: a prompt to try it, its settings, its price and its key."""

from __future__ import annotations

from rallebench.core.entries import LLMEntry
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.memory import size
from rallebench.gui import figures, form, html
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import e
from rallebench.gui.jobs import going
from rallebench.gui.places._models_add import QUANTIZATIONS, key_field, price_fields, priced
from rallebench.services import catalog, model_entries, model_lines
from rallebench.services.jobs import Job

# fmt: off
FIRST = (
    "model", "base_url", "api_key_env", "quantization", "dtype", "max_tokens", "temperature", "decline_below",
)
# fmt: on
"""Settings that are not folded."""


def register(page: Page) -> None:
    page.view("models/one", open_one, back="models/list")
    page.actions("models", try_, follow, change, price_form, price, key_form, key, forget_key)


def open_one(page: Page, event: Event) -> Patch:
    name = event.query.get("id", "")
    entry = page.workbench.workspace.llm(name)
    own, buttons = name in page.workbench.models.own(), ""
    if own and entry.backend == model_entries.ELSEWHERE:
        buttons += html.button("Key…", "models.key_form", id=name)
    if own:
        buttons += html.button("Delete…", "models.ask_delete", kind="danger", id=name)
    crumb = html.crumb("Models", "#/models/list", name, model_lines.about(entry), buttons=buttons)
    settings = settings_form(name, entry) if own else f"<p>{e(entry.about)}</p>"
    settings += borders() if entry.backend == "extractive-reader" else ""
    prompt = form.area("prompt", "Prompt", model_lines.PROMPT, 6)
    ask = html.button("Ask", "models.try", kind="primary", id=name)
    news = html.attributes(follow=f"test {name}", do="models.follow", id=name)
    last = answer(page.workbench.jobs.get("test", name))
    body = (
        f'{crumb}<div class="one-cols"><div class="stack">{part("Try it", prompt, ask)}<div id="model-answer">{last}</div></div>'
        f'<div class="stack">{settings}{forms(page, name)}</div></div><span{news}></span>'
    )
    return html.view("models/one", name, body)


def part(title: str, fields: str, button: str) -> str:
    """A form of its own under its heading."""
    return f'{html.heading(title, first=True)}<div data-form data-problems class="stack">{fields}<div class="row">{button}</div></div>'


# try it


def try_(page: Page, event: Event) -> Patch:
    """Ask the model, as a job: past the cache of replies."""
    prompt = str(event.data.get("prompt", ""))
    model_lines.start_test(page.workbench, event.text("id"), prompt).wait(0.3)
    return follow(page, event)


def follow(page: Page, event: Event) -> Patch:
    return {"#model-answer": answer(page.workbench.jobs.get("test", event.text("id")))}


def answer(job: Job | None) -> str:
    """What the model answered, or how far it is."""
    if job is None:
        return html.note("The answer comes here; the model is loaded if it is not.")
    if not job.done or job.error is not None:
        return going(job)
    result, tokens = job.result, "tokens not counted"
    if result.prompt_tokens is not None and result.completion_tokens is not None:
        tokens = f"{result.prompt_tokens:,} + {result.completion_tokens:,} tokens"
    speed = f"{result.speed:.1f} tokens/s" if result.speed else ""
    words = html.dotted(figures.duration(result.seconds), tokens, speed)
    text = e(result.answer or "The answer is empty.")
    return f'{html.heading("Answer", words)}<div class="pre box">{text}</div>'


# settings


def known_of(entry: LLMEntry) -> form.Form:
    """The settings of an entry's backend, the prices left out; none for an unknown backend."""
    if entry.backend not in catalog.names("llms"):
        return {}
    known = catalog.entry("llms", entry.backend).form
    return {name: setting for name, setting in known.items() if name != "prices"}


def settings_form(name: str, entry: LLMEntry) -> str:
    """All settings of the entry, the rarer ones folded."""
    if entry.backend not in catalog.names("llms"):
        return html.problem(f"{name} has the backend {entry.backend}, which is not known here.")
    known = known_of(entry)
    rare = [setting for setting in known if setting not in FIRST]
    fields = form.draw(known, entry.settings, {}, prefix="set-", folded=rare)
    if entry.backend == model_entries.ELSEWHERE:
        fields += price_fields(model_entries.prices(entry) or {})
    return part("Settings", fields, html.button("Save", "models.change", id=name))


def change(page: Page, event: Event) -> Patch:
    """Save the settings that differ from the defaults."""
    name = event.text("id")
    entry = page.workbench.models.entry(name)
    own = form.changed(known_of(entry), event, prefix="set-", owner=f"model {name!r}")
    entry = entry.model_copy(update={"settings": own})
    if entry.backend == model_entries.ELSEWHERE:
        entry = priced(event, entry)
    return {**saved(page, name, entry), **open_one(page, Event("open", {}, {"id": name}))}


def saved(page: Page, name: str, entry: LLMEntry) -> Patch:
    """Save a changed entry; a loaded model is unloaded, so that the change counts."""
    models = page.workbench.models
    if models.is_loaded(name) and entry != models.entry(name):
        models.unload(name)  # raises while it is in use: then nothing is written
    models.add(name, entry, replace=True)
    return {"say": f"Saved {name}.", "dialog": ""}


def forms(page: Page, name: str) -> str:
    try:
        fits = page.workbench.models.room_in_every_form(name)
    except RalleError as error:
        return html.note(error)
    rows = []
    for kind, fit in fits.items():
        fitting = "fits" if fit.fits else "does not fit"
        rows.append([e(QUANTIZATIONS.get(kind, kind)), size(fit.need.total), fitting])
    table = html.rows(["Weights", ">Memory", "Now"], rows)
    return html.heading("Memory it needs", "an estimate") + table if rows else ""


def borders() -> str:
    """What the built-in reader loses and gains by declining more."""
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
    fields = price_fields(model_entries.prices(page.workbench.models.entry(name)) or {})
    body = f"<p>Empty means unknown; runs then name no dollars.</p>{fields}"
    return html.ask(f"Price of {name}", body, "Save", "models.price", id=name)


def price(page: Page, event: Event) -> Patch:
    name = event.text("id")
    patch = saved(page, name, priced(event, page.workbench.models.entry(name)))
    return {**patch, **page.call("models.refresh")}


def key_form(page: Page, event: Event) -> Patch:
    name = event.text("id")
    save = html.button("Use this key", "models.key", kind="primary", id=name)
    forget = html.button("Forget it", "models.forget_key", id=name)
    return {"dialog": html.dialog(f"Key of {name}", key_field(), forget, save)}


def key(page: Page, event: Event) -> Patch:
    """Hold the typed key."""
    if not event.text("key"):
        raise UsageError("The key is empty; type it, or forget the one that is held.")
    return hold(page, event, event.text("key"))


def forget_key(page: Page, event: Event) -> Patch:
    return hold(page, event, "")


def hold(page: Page, event: Event, words: str) -> Patch:
    """Hold these words as the key of a model; "" forgets it."""
    sentence = model_entries.set_key(page.workbench, event.text("id"), words)
    return {"say": sentence, "dialog": "", **page.call("models.refresh")}
