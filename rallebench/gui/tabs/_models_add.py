"""Add a language model to the workspace, in the Models tab: from a preset or freely, and ask it at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import gradio as gr

from rallebench.core.entries import LLMEntry
from rallebench.core.errors import RalleError, UsageError
from rallebench.gui import views, views_add, views_models
from rallebench.gui.session import guard, guard_stream
from rallebench.gui.tabs._models_form import (
    ADD,
    ADD_AND_ASK,
    BACKENDS,
    EMPTY,
    mode_of,
    on_anew,
    on_group,
    on_preset,
)
from rallebench.gui.tabs._models_own import draw_own
from rallebench.llms.presets import GROUPS
from rallebench.reader.delta import said_of
from rallebench.reader.spans import WEIGHTS
from rallebench.services.model_entries import key_of
from rallebench.services.workbench import Workbench

ABOUT = (
    "The entry is written to `llms.json` in the workspace and offered at once. **Never type a key here**: "
    "give the *name* of the environment variable that holds it, and set that variable before rallebench is "
    "started; the key itself is stored nowhere. OpenAI and servers on this machine get `OPENAI_API_KEY` "
    "unless you name another; a server elsewhere gets only a key that you name."
)
OTHERS = {
    "openai_compatible": '{"temperature": 0.2, "max_tokens": 64, "timeout": 60}',
    "transformers": '{"device_map": "cuda", "max_tokens": 64, "batch_size": 8}',
    "extractive-reader": '{"decline_below": 0.3}',
    "scripted": '{"replies": {"capital of France": "Paris"}, "default": "I cannot tell."}',
}
MODEL_INFO = {
    "openai_compatible": "the name by which the server knows it: press Find models",
    "transformers": "a folder, or a Hugging Face id owner/model",
    "extractive-reader": "",
    "scripted": "",
}
QUESTION = "On which river does Tbilisi stand? Answer in five words or less."
FIRST = next(iter(GROUPS.values()))


def offer(names: list[str], chosen: Any) -> Any:
    """Choices of a list or a drop-down; what is chosen and still there stays chosen."""
    if isinstance(chosen, list):
        return gr.update(
            choices=names, value=[name for name in dict.fromkeys(chosen) if name in names]
        )
    return gr.update(
        choices=names, value=chosen if chosen in names else names[-1] if names else None
    )


def line(label: str, info: str, part: str, placeholder: str = "", scale: int = 1) -> gr.Textbox:
    """A one-line text box."""
    return gr.Textbox(
        label=label,
        info=info,
        placeholder=placeholder,
        max_lines=1,
        elem_id=f"models-{part}",
        scale=scale,
        min_width=240,
    )


def radio(label: str, names: list[str], part: str, scale: int = 1) -> gr.Radio:
    """A choice of one among a few, the first to begin with."""
    return gr.Radio(names, value=names[0], label=label, elem_id=f"models-add-{part}", scale=scale)


def html(part: str, first: str = "") -> gr.HTML:
    """A place for a sentence."""
    return gr.HTML(first, elem_id=f"models-add-{part}", elem_classes="rb-flush")


def draw_add(workbench: Workbench, llms: gr.CheckboxGroup) -> None:
    """The form of a new entry and of one that is changed; ``llms`` is the list that offers it."""
    editing = gr.State("")
    with gr.Accordion("Add a language model", open=False, elem_id="models-add-panel") as panel:
        group, chosen, facts = draw_presets()
        backend = radio("Backend", list(BACKENDS), "backend")
        address, base_url, key, find = draw_address()
        with gr.Row(equal_height=True):
            name = line("Name", "what chains call it", "add-name", scale=3)
            model = gr.Dropdown(
                [],
                label="Model",
                info=MODEL_INFO[BACKENDS[0]],
                allow_custom_value=True,
                elem_id="models-add-model",
                scale=5,
            )
        with gr.Row(visible=False) as weights:
            quantization = radio("Quantization", ["none", "8bit", "4bit"], "quantization")
            dtype = radio(
                "Number format (dtype)", ["auto", "float32", "bfloat16", "float16"], "dtype"
            )
        found, needs = (
            html("found"),
            html("needs", on_needs(workbench, BACKENDS[0], "", "", "", "", "")),
        )
        other = gr.Textbox(
            label="Other settings as JSON (may stay empty)",
            placeholder=OTHERS[BACKENDS[0]],
            lines=2,
            max_lines=8,
            elem_id="models-add-settings",
        )
        gr.Markdown(ABOUT)
        with gr.Row(elem_classes="rb-tools"):
            add = gr.Button(ADD, variant="primary", elem_id="models-add", scale=2)
            anew = gr.Button(EMPTY, elem_id="models-add-anew", scale=1, min_width=110)
        said = html("status")
        question, ask, answer = draw_question()

    form = [backend, name, model, base_url, key, quantization, dtype, other]
    mode = [editing, add, ask, anew]
    group.input(on_group, [group], [chosen, facts], show_progress="hidden")
    filled = [*form, facts, found, said, answer, *mode]
    # Not .input: a drop-down that takes any text fires that whenever it is left, and would fill the form again.
    chosen.change(
        partial(guard, on_preset, workbench), [chosen, name], filled, show_progress="hidden"
    )
    anew.click(on_anew, None, [*filled, chosen], show_progress="hidden")
    backend.change(on_backend, [backend], [model, address, weights, other], show_progress="hidden")
    told = [backend, model, base_url, key, quantization, dtype]
    gr.on(
        [field.change for field in told],
        partial(on_needs, workbench),
        told,
        [needs],
        show_progress="hidden",
        trigger_mode="always_last",
    )
    find.click(
        partial(guard_stream, on_find, workbench),
        [base_url, key, model],
        [found, model],
        show_progress="hidden",
    )
    written = [llms, editing, *form]
    add.click(
        partial(guard, on_add, workbench), written, [said, llms, *mode], show_progress="hidden"
    )
    # It saves, too: what was said of an earlier saving is not of this one.
    ask.click(lambda: "", None, [said], show_progress="hidden")
    handler = partial(guard_stream, on_ask, workbench)
    ask.click(handler, [question, *written], [answer, llms, *mode], show_progress="hidden")
    draw_own(workbench, panel, [*filled, chosen])


def draw_presets() -> tuple[gr.Radio, gr.Dropdown, gr.HTML]:
    """Group, preset and what is known of it."""
    with gr.Row(equal_height=True):
        group = radio("Begin with", [*GROUPS.values(), views_add.NO_PRESET], "group", scale=6)
        chosen = gr.Dropdown(
            views_add.choices(FIRST),
            value=None,
            label="Preset",
            info="fills the form below",
            allow_custom_value=True,
            elem_id="models-add-preset",
            scale=5,
            min_width=280,
        )
    return group, chosen, html("facts", views.empty(views_add.NONE_CHOSEN))


def draw_address() -> tuple[gr.Row, gr.Textbox, gr.Textbox, gr.Button]:
    """Where a server is, which variable holds its key, and the button that asks for its models."""
    with gr.Row(equal_height=True, elem_classes="rb-tools") as address:
        base_url = line(
            "Address of the server (base_url)",
            "empty = OpenAI's",
            "add-base-url",
            "http://127.0.0.1:8000/v1",
            scale=4,
        )
        key = line(
            "Name of the key's variable",
            "never the key itself",
            "add-key-variable",
            "OPENAI_API_KEY",
            scale=3,
        )
        find = gr.Button("Find models", elem_id="models-add-find", scale=1, min_width=130)
    return address, base_url, key, find


def draw_question() -> tuple[gr.Textbox, gr.Button, gr.HTML]:
    """One question to the model of the form."""
    with gr.Row(equal_height=True, elem_classes="rb-tools"):
        question = gr.Textbox(
            QUESTION,
            label="One question, to try it",
            max_lines=4,
            elem_id="models-add-question",
            scale=5,
        )
        ask = gr.Button(ADD_AND_ASK, elem_id="models-add-ask", scale=2, min_width=160)
    return question, ask, html("answer")


# what the form shows


def on_backend(backend: str) -> list[Any]:
    """Show the fields that the backend has."""
    return [
        gr.update(
            visible=backend in ("openai_compatible", "transformers"), info=MODEL_INFO[backend]
        ),
        gr.update(visible=backend == "openai_compatible"),
        gr.update(visible=backend == "transformers"),
        gr.update(placeholder=OTHERS[backend]),
    ]


def on_needs(
    workbench: Workbench,
    backend: str,
    model: str | None,
    base_url: str | None,
    key: str | None,
    quantization: str,
    dtype: str,
) -> str:
    """What the model takes, which key its server is sent, or what the reader loses by declining."""
    try:
        if backend == "openai_compatible":
            return views_add.key_line(key_of(server_of(base_url, key)))
        if backend == "transformers":
            wanted = {"model": model, "quantization": quantization, "dtype": dtype}
            return views_add.needs(workbench.models.needs(wanted))
        if backend == "extractive-reader":
            return views_add.borders(said_of(WEIGHTS))
    except RalleError as error:
        return views.error(str(error))
    return ""


def server_of(base_url: str | None, key: str | None) -> dict[str, str]:
    """Where a server is, as settings. A box in which nothing was typed yet gives None."""
    return {"base_url": (base_url or "").strip(), "api_key_env": (key or "").strip()}


def on_find(
    workbench: Workbench, base_url: str | None, key: str | None, model: str | None
) -> Iterator[list[Any]]:
    """Ask the server for its models and offer them."""
    yield [views.note("Asking the server for its models …"), gr.skip()]
    try:
        names = workbench.models.served(server_of(base_url, key))
    except RalleError as error:
        yield [views.error(str(error)), gr.skip()]
        return
    kept = model if model in names or len(names) != 1 else names[0]
    yield [views_add.found(names), gr.update(choices=list(names), value=kept)]


# saving


def on_add(
    workbench: Workbench, ticked: list[str], editing: str, backend: str, name: str, *fields: Any
) -> list[Any]:
    """Check an entry, save it in the workspace and offer it."""
    try:
        name, entry = workbench.models.check_name(name), new_entry(backend, *fields)
        said, *more = workbench.models.add(name, entry, replace=name == editing)
    except RalleError as error:
        return [views.error(str(error)), *[gr.skip()] * 5]
    told = views.note(f"{said} It is ticked above: press Load.", "good") + "".join(
        map(views.note, more)
    )
    return [told, offered(workbench, ticked, name), *mode_of(name)]


def on_ask(
    workbench: Workbench,
    question: str,
    ticked: list[str],
    editing: str,
    backend: str,
    name: str,
    *fields: Any,
) -> Iterator[list[Any]]:
    """Save the entry as it stands in the form, load it and ask it one question."""
    if not (question or "").strip():
        raise UsageError("The question is empty; type one.")
    rest: list[Any] = [gr.skip()] * 5
    try:
        name, entry = workbench.models.check_name(name), new_entry(backend, *fields)
        for said in workbench.models.add_and_load(name, entry, replace=name == editing):
            yield [views.note(f"{views_models.capital(said).rstrip('.')} …"), *rest]
        rest = [offered(workbench, ticked, name), *mode_of(name)]
        yield [views.note(f"Asking {name} …"), *rest]
        yield [views_models.answer(name, workbench.asking.ask_model(name, question)), *rest]
    except RalleError as error:
        saved = name in workbench.models.own()
        yield [
            views.error(str(error)),
            *([offered(workbench, ticked, name), *mode_of(name)] if saved else rest),
        ]


def offered(workbench: Workbench, ticked: list[str], name: str) -> Any:
    """The list of models with a saved one ticked."""
    return offer(list(workbench.workspace.llms()), [*ticked, name])


def new_entry(
    backend: str,
    model: str | None,
    base_url: str,
    key: str,
    quantization: str,
    dtype: str,
    other: str,
) -> LLMEntry:
    """The form's fields as an entry. Raises UsageError."""
    values = {
        "model": model,
        "base_url": base_url,
        "api_key_env": key,
        "quantization": quantization,
        "dtype": dtype,
    }
    return views_add.entry_of_form(backend, values, other)
