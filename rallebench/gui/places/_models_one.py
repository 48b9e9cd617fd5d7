"""One language model: a test prompt, settings, price and key."""

from __future__ import annotations

from markupsafe import Markup

from rallebench.core.entries import LLMEntry
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.memory import size
from rallebench.gui import figures, form, html, panels
from rallebench.gui.addresses import ModelAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.html import escape
from rallebench.gui.jobs import going
from rallebench.gui.patches import Patch
from rallebench.gui.places._models_add import QUANTIZATIONS, key_field, price_fields, with_prices
from rallebench.services import model_entries, model_lines
from rallebench.services.jobs import Job
from rallebench.services.model_lines import Tested
from rallebench.views import catalog

FIRST = (
    "model", "base_url", "api_key_env", "quantization", "dtype", "max_tokens", "temperature", "decline_below",
)  # fmt: skip
"""Settings shown without unfolding the rest."""


def register(page: Page) -> None:
    page.view("models/one", open_one, back="models/list")
    page.actions("models", follow, reads=True)
    page.actions("models", try_, change, price_form, price, key_form)
    for verb in ("key", "forget_key"):
        page.action(f"models.{verb}", hold)


def open_one(page: Page, event: Event) -> Patch:
    return view_one(page, event.read(ModelAddress).id)


def view_one(page: Page, name: str) -> Patch:
    entry = page.workspace.llm(name)
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
    """Draw a form with its own heading."""
    return Markup(
        '{}<div data-form data-problems class="stack">{}<div class="row">{}</div></div>'
    ).format(html.heading(title, first=True), fields, button)


def try_(page: Page, event: Event) -> Patch:
    """Test the model as a job, without the reply cache."""
    prompt = event.raw_text("prompt")
    page.workbench.model_lines.start_test(event.text("id"), prompt).wait(0.3)
    return follow(page, event)


def follow(page: Page, event: Event) -> Patch:
    return Patch({"model-answer": answer(page.workbench.jobs.get("test", event.text("id")))})


def answer(job: Job | None) -> Markup:
    """Draw the answer of the model, or its progress."""
    if job is None:
        return html.note("The answer appears here; the model is loaded first if necessary.")
    result, tokens = job.result_as(Tested), "tokens not counted"
    if result is None:
        return going(job)
    if result.prompt_tokens is not None and result.completion_tokens is not None:
        tokens = f"{result.prompt_tokens:,} + {result.completion_tokens:,} tokens"
    speed = f"{result.speed:.1f} tokens/s" if result.speed else ""
    words = html.join_facts(figures.duration(result.seconds), tokens, speed)
    text = escape(result.answer or "The answer is empty.")
    return Markup('{}<div class="pre box">{}</div>').format(html.heading("Answer", words), text)


def known_settings(entry: LLMEntry) -> form.Form:
    """Return the settings of an entry's backend without the prices; none for an unknown backend."""
    if entry.backend not in catalog.names("llms"):
        return {}
    known = catalog.entry("llms", entry.backend).form
    return {name: setting for name, setting in known.items() if name != "prices"}


def settings_form(name: str, entry: LLMEntry) -> Markup:
    """Draw all settings of the entry, with the rarer ones collapsed."""
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
        models.unload(name)  # raises an error before anything is written if the model is in use
    models.add(name, entry, replace=True)
    return Patch(say=f"Saved {name}.", dialog="")


def forms(page: Page, name: str) -> Markup:
    """Draw a table of the memory per quantization; "" for a model without quantizations."""
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
    """Show the gains and losses if the built-in reader declines more often."""
    borders = model_lines.reader_borders()
    note = (
        "decline_below is the confidence below which the reader withholds its answer: "
        f"{borders.with_advice:g} where the prompt has instructions for a missing answer, else {borders.plain:g}. "
        "To set it, add the reader again under Another backend. "
        f"Measured on {borders.prompts} prompts of five passages, half of them without the answer."
    )
    heads = (
        ">decline_below",
        ">Right answers kept",
        ">Declined without an answer",
        ">Answers that are right",
    )
    lines = [
        [f"{row.below:.2f}", *map(share, (row.right_kept, row.absent_declined, row.given_right))]
        for row in borders.figures
    ]
    table = html.rows(heads, lines)
    return html.fold("What declining costs", html.note(note) + table, id="model-borders")


def share(value: float) -> str:
    return f"{100 * value:.0f} %"


# price and key


def price_form(page: Page, event: Event) -> Patch:
    name = event.text("id")
    fields = price_fields(page.workbench.models.entry(name).prices or {})
    body = Markup("<p>Empty means unknown; runs then name no dollars.</p>{}").format(fields)
    return panels.ask(f"Price of {name}", body, "Save", "models.price", id=name)


def price(page: Page, event: Event) -> Patch:
    name = event.text("id")
    patch = save_change(page, name, with_prices(event, page.workbench.models.entry(name)))
    return patch | page.call("models.refresh")


def key_form(page: Page, event: Event) -> Patch:
    name = event.text("id")
    save = html.button("Use this key", "models.key", kind="primary", id=name)
    forget = html.button("Forget it", "models.forget_key", id=name)
    return Patch(dialog=html.dialog(f"Key of {name}", key_field(), forget, save))


def hold(page: Page, event: Event) -> Patch:
    """Keep a model's typed key in memory, or forget it."""
    words = event.text("key") if event.action == "models.key" else ""
    if event.action == "models.key" and not words:
        raise UsageError("The key is empty; type it, or forget the one that is held.")
    sentence = page.workbench.models.set_key(event.text("id"), words)
    return Patch(say=sentence, dialog="") | page.call("models.refresh")
