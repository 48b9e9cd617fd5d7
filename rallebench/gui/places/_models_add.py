"""Add a language model: from a server, a local folder, a preset, or any other backend."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from rallebench.core.entries import LLMEntry
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.numbers import plural
from rallebench.core.types import Json
from rallebench.gui import form, html
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.html import attributes
from rallebench.gui.patches import Patch
from rallebench.gui.wording import on_page
from rallebench.services import model_entries
from rallebench.views import catalog

QUANTIZATIONS = {"none": "unchanged", "8bit": "8-bit", "4bit": "4-bit"}
KEY_NOTE = "Kept in memory until rallebench ends, in no file, log or run."


def register(page: Page) -> None:
    page.actions("models", find, add_server, add_folder, preset_facts, add_preset, add_other)


def draw() -> Markup:
    cards = (("", server()), ("", folder()), ("", preset()), ("whole-row", other()))
    return Markup().join(
        Markup('<div class="mc {}" data-form data-problems>{}</div>').format(kind, card)
        for kind, card in cards
    )


def head(title: str, about: str) -> Markup:
    return Markup("<h3><b>{}</b></h3><p>{}</p>").format(title, about)


def save_entry(page: Page, name: str, entry: LLMEntry, *, wish: str = "", then: str = "") -> Patch:
    """Save an entry under ``wish`` or a similar free name; ``then``: "test" or "load" it."""
    if wish and not name:
        name = model_entries.free_name(page.workspace, wish)
    _, *more = page.workbench.models.add(name, entry)
    if then == "test":
        page.workbench.model_lines.start_test(name)
    elif then:
        page.workbench.models.begin(name, "language model")
    say = on_page(" ".join([f"Added {name}.", *more]))
    return page.call("models.refresh") | Patch({"models-add": draw()}, say=say)


# a server


def server() -> Markup:
    known = [p for p in catalog.llm_presets().values() if p.group == "servers"]
    follow, first = attributes(on="enter", do="models.find"), "http://127.0.0.1:11434/v1"
    servers = [(p.settings["base_url"], p.title) for p in known]
    address = form.text("base_url", "Address", first, more=follow, offers=servers)
    variable = form.text("api_key_env", "… or the variable that holds it", hint="OPENAI_API_KEY")
    return Markup('{}{}{}{}<div id="models-found" class="stack"></div>').format(
        head("Server", "vLLM, llama.cpp, Ollama, LM Studio, OpenAI"),
        address,
        html.fold(
            "Key", key_field() + variable, gist="where the server wants one", id="models-key"
        ),
        html.button("Find models", "models.find"),
    )


def key_field() -> Markup:
    more = Markup(' type="password" autocomplete="off"')
    return form.text("key", "Key", "", "none", KEY_NOTE, more)


def server_settings(event: Event) -> Json:
    """Return the address of the server as settings; a typed key stays in memory."""
    settings = {name: event.text(name) for name in ("base_url", "api_key_env") if event.text(name)}
    return model_entries.with_key(settings, event.text("key"))


def find(page: Page, event: Event) -> Patch:
    names = model_entries.server_models(server_settings(event))
    if not names:
        raise UsageError(
            "The server answers but has no model yet; load or fetch one there, then find models again."
        )
    about = "the name in chains; if empty, the name of the model"
    body = (
        html.note(f"{plural(len(names), 'model')} there."),
        form.chooser("Model", "model", list(names), names[0]),
        form.text("model_name", "Name", hint=names[0], about=about),
        price_fields({}),
        html.button("Add and test", "models.add_server", kind="primary"),
    )
    return Patch({"models-found": Markup().join(body)})


def add_server(page: Page, event: Event) -> Patch:
    if not (model := event.text("model")):
        raise UsageError("Choose a model of the server.")
    settings = {"model": model, **server_settings(event)}
    entry = with_prices(event, LLMEntry(backend=model_entries.ELSEWHERE, settings=settings))
    return save_entry(page, event.text("model_name"), entry, wish=model, then="test")


def price_fields(now: Mapping[str, float]) -> Markup:
    """Draw two fields for dollars per million tokens. ``now``: ``prompt`` and ``completion`` → price; missing means
    unknown.
    """
    fields = Markup()
    for name, way, kind in (("price_in", "in", "prompt"), ("price_out", "out", "completion")):
        value, title = f"{now[kind]:g}" if kind in now else "", f"$ a million tokens {way}"
        fields += form.text(name, title, value, "unknown", more=Markup(' inputmode="decimal"'))
    return Markup('<div class="pair">{}</div>').format(fields)


def with_prices(event: Event, entry: LLMEntry) -> LLMEntry:
    """Return the entry with the prices in the form."""
    pair = event.number("price_in", "The price in"), event.number("price_out", "The price out")
    return model_entries.with_prices(entry, *pair)


# a folder or a file


def folder() -> Markup:
    follow = attributes(on="enter", do="models.add_folder")
    path = form.text("path", "Path", hint="/models/qwen3-4b", more=follow)
    name = form.text("name", "Name", hint="made of the folder")
    about = "A transformers folder, or a GGUF file, which is converted once"
    return Markup('{}{}<div class="pair">{}{}</div>{}').format(
        head("Local folder or GGUF", about),
        path,
        name,
        memory_field(),
        html.button("Check and add", "models.add_folder"),
    )


def memory_field(more: Markup = html.NOTHING) -> Markup:
    """Draw a field for the bits per weight."""
    choices = list(QUANTIZATIONS.items())
    return form.chooser("Weights", "quantization", choices, "none", more=more)


def chosen_quantization(event: Event) -> dict[str, str]:
    """Return the chosen quantization as a setting; no setting is needed for the stored precision."""
    chosen = event.text("quantization", "none")
    return {"quantization": chosen} if chosen != "none" else {}


def add_folder(page: Page, event: Event) -> Patch:
    if (place := event.path("path")) is None:
        raise UsageError("No folder is given; type the path of a model.")
    if not place.is_dir() and place.suffix.lower() != ".gguf":
        raise UsageError(
            f"{place} is not a folder; type the path of a transformers folder or a GGUF file."
        )
    settings = {"model": str(place), **chosen_quantization(event)}
    needs = model_entries.needs(settings)
    if not needs.fits:
        raise UsageError(" ".join(needs.sentences))
    entry = LLMEntry(backend="transformers", settings=settings)
    stem = place if place.is_dir() else place.with_suffix("")
    return save_entry(page, event.text("name"), entry, wish=str(stem))


# a preset


def preset() -> Markup:
    items = [
        (name, item.title)
        for name, item in catalog.llm_presets().items()
        if item.group != "servers"
    ]
    follow, first = form.on_change("models.preset_facts"), items[0][0]
    model = form.chooser("Model", "preset", items, first, more=follow)
    return Markup('{}{}{}<div id="preset-facts">{}</div>{}').format(
        head("Preset", "Runs on this machine; most are downloaded once"),
        model,
        memory_field(follow),
        facts(first, {}),
        html.button("Add", "models.add_preset"),
    )


def facts(name: str, settings: Mapping[str, str]) -> Markup:
    """Describe a preset, and whether it fits in memory with these settings."""
    item = catalog.llm_presets()[name]
    lines = [item.about + "."]
    lines += [f"Licence: {item.licence}."] if item.licence else []
    if item.gated:
        lines.append(
            f"Its owner asks you to accept the licence first, at huggingface.co/{item.model}; then set the variable HF_TOKEN before rallebench starts."
        )
    try:
        lines += model_entries.needs({**item.settings, **settings}).sentences
    except RalleError as error:
        lines.append(on_page(error))
    return html.note(" ".join(lines))


def preset_facts(page: Page, event: Event) -> Patch:
    return Patch(
        {
            "preset-facts": facts(
                event.choice("preset", catalog.llm_presets()), chosen_quantization(event)
            )
        }
    )


def add_preset(page: Page, event: Event) -> Patch:
    """Add a preset and load it, which downloads it. Refused if its package is not installed."""
    chosen = event.text("preset")
    entry = model_entries.build_entry(page.workspace, chosen_quantization(event), preset=chosen)
    return save_entry(page, "", entry, wish=chosen, then="load")


# another backend


def other() -> Markup:
    backends = list(catalog.names("llms"))
    more = Markup(' class="mono" placeholder=\'{"decline_below": 0.3}\'')
    fields = (
        form.chooser("Backend", "backend", backends, backends[0]),
        form.text("other_name", "Name", hint="the name in chains"),
        form.area("settings", "Settings, as JSON", rows=3, more=more),
        html.button("Add", "models.add_other"),
    )
    title, gist = "Another backend", "settings as JSON"
    return html.fold(title, Markup().join(fields), gist=gist, id="models-other")


def add_other(page: Page, event: Event) -> Patch:
    settings = form.json_or_text(event.text("settings") or "{}")
    if not isinstance(settings, dict):
        raise UsageError('The settings must be a JSON object, as in {"decline_below": 0.3}.')
    entry = LLMEntry(backend=event.text("backend"), settings=settings)
    return save_entry(page, event.text("other_name"), entry)
