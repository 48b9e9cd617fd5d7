"""Add a language model to the workspace, in the Models tab."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import Any

import gradio as gr

from rallebench.catalog import LLMEntry
from rallebench.endpoints.key import variable_of
from rallebench.errors import RalleError, UsageError
from rallebench.gui import views
from rallebench.gui.session import guard
from rallebench.llms import settings_from
from rallebench.llms._openai import settings as served
from rallebench.llms._transformers import settings as local
from rallebench.loading import close, open_llm
from rallebench.ralle_settings import with_environment
from rallebench.workbench import Workbench
from rallebench.workspace import READER

ABOUT = (
    "The entry is written to `llms.json` in the workspace and offered at once. **Never type a key here**: "
    "give the *name* of the environment variable that holds it, and set that variable before rallebench is "
    "started; the key itself is stored nowhere. OpenAI and servers on this machine get `OPENAI_API_KEY` "
    "unless you name another; a server elsewhere gets only a key that you name."
)
BACKENDS = ("openai_compatible", "transformers", "scripted")
OTHERS = {
    "openai_compatible": '{"temperature": 0.2, "max_tokens": 64, "timeout": 60}',
    "transformers": '{"device_map": "cuda", "max_tokens": 64, "batch_size": 8}',
    "scripted": '{"replies": {"capital of France": "Paris"}, "default": "I cannot tell."}',
}
MODEL_INFO = {
    "openai_compatible": "the name by which the server knows it",
    "transformers": "a folder, or a Hugging Face id owner/model",
    "scripted": "",
}
UNSAID = {"quantization": "none", "dtype": "auto"}
"""Settings that are left out of an entry, because they are what happens anyway."""


def offer(names: list[str], chosen: Any) -> Any:
    """Choices of a list or a drop-down; what is chosen and still there stays chosen."""
    if isinstance(chosen, list):
        return gr.update(choices=names, value=[name for name in dict.fromkeys(chosen) if name in names])
    return gr.update(choices=names, value=chosen if chosen in names else names[-1] if names else None)


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


def draw_add(workbench: Workbench, llms: gr.CheckboxGroup) -> None:
    """The form of a new entry; ``llms`` is the list that offers it."""
    first = BACKENDS[0]
    with gr.Accordion("Add a language model", open=False, elem_id="models-add-panel"):
        gr.Markdown(ABOUT)
        with gr.Row(equal_height=True):
            backend = gr.Radio(
                list(BACKENDS), value=first, label="Backend", elem_id="models-add-backend", scale=5
            )
            name = line("Name", "what chains call it", "add-name", scale=3)
            model = line("Model", MODEL_INFO[first], "add-model", scale=4)
        with gr.Row() as address:
            base_url = line(
                "Address of the server", "empty = OpenAI's", "add-base-url", "http://127.0.0.1:8000/v1"
            )
            key = line(
                "Name of the key's variable", "never the key itself", "add-key-variable", "OPENAI_API_KEY"
            )
        with gr.Row(visible=False) as weights:
            quantization = gr.Radio(
                ["none", "8bit", "4bit"],
                value="none",
                label="Quantization",
                elem_id="models-add-quantization",
            )
            dtype = gr.Radio(
                ["auto", "float32", "bfloat16", "float16"],
                value="auto",
                label="Number format (dtype)",
                elem_id="models-add-dtype",
            )
        other = gr.Textbox(
            label="Other settings as JSON (may stay empty)",
            placeholder=OTHERS[first],
            lines=2,
            max_lines=8,
            elem_id="models-add-settings",
        )
        add = gr.Button("Add to this workspace", elem_id="models-add")
        said = gr.HTML(elem_id="models-add-status", elem_classes="rb-flush")
    backend.change(on_backend, [backend], [model, address, weights, other], show_progress="hidden")
    written = [backend, name, model, base_url, key, quantization, dtype, other]
    add.click(partial(guard, on_add, workbench), [llms, *written], [said, llms], show_progress="hidden")


def on_backend(backend: str) -> list[Any]:
    """Show the fields that the backend has."""
    return [
        gr.update(visible=backend != "scripted", info=MODEL_INFO[backend]),
        gr.update(visible=backend == "openai_compatible"),
        gr.update(visible=backend == "transformers"),
        gr.update(placeholder=OTHERS[backend]),
    ]


def on_add(workbench: Workbench, ticked: list[str], backend: str, name: str, *fields: Any) -> list[Any]:
    """Check an entry, save it in the workspace and offer it."""
    try:
        name, entry = checked_name(workbench, name), new_entry(backend, *fields)
        check_settings(name, entry)
        workbench.workspace.save_llm(name, entry)
    except RalleError as error:
        return [views.error(str(error)), gr.skip()]
    said = f"Saved {name} in {workbench.workspace.path / 'llms.json'}. It is ticked above: press Load."
    names = list(workbench.workspace.llms())
    return [views.note(said, "good") + hints(workbench, name, entry), offer(names, [*ticked, name])]


def new_entry(
    backend: str, model: str, base_url: str, key: str, quantization: str, dtype: str, other: str
) -> LLMEntry:
    """The form's fields as an entry; fields of other backends do not count. Raises UsageError."""
    fields = {
        "openai_compatible": {"model": model, "base_url": base_url, "api_key_env": key},
        "transformers": {"model": model, "quantization": quantization, "dtype": dtype},
        "scripted": {},
    }[backend]
    given = {name: (value or "").strip() for name, value in fields.items()}
    settings: dict[str, Any] = {n: v for n, v in given.items() if v and v != UNSAID.get(n)}
    more = json_object(other)
    if twice := [name for name in more if name in settings]:
        raise UsageError(f"{twice[0]!r} stands in its own field and in the other settings; leave one out.")
    return LLMEntry(backend=backend, settings={**settings, **more})


def json_object(text: str) -> dict[str, Any]:
    """A JSON object that the user typed, {} if nothing was. Raises UsageError."""
    try:
        value = json.loads(text) if (text or "").strip() else {}
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The other settings are not valid JSON ({error}).") from None
    if not isinstance(value, dict):
        raise UsageError('The other settings must be a JSON object, as in {"temperature": 0.2}.')
    return value


def checked_name(workbench: Workbench, name: str) -> str:
    """A name for a model that nothing else has. Raises UsageError."""
    name = (name or "").strip()
    if not name or len(name) > 100:
        raise UsageError("Give the model a name of 1 to 100 characters; chains call it by that name.")
    if name == READER:
        raise UsageError(f"{READER!r} is the reader that comes with rallebench; choose another name.")
    if name in workbench.workspace.retrievers():
        raise UsageError(f"{name!r} is a retriever of this workspace; choose another name.")
    return name


def check_settings(name: str, entry: LLMEntry) -> None:
    """Raise what loading would raise for the settings; reads no weights and needs no key."""
    settings = with_environment(entry).settings
    if entry.backend == "transformers":
        local.check(name, settings_from(local.Settings, name, settings))
    elif entry.backend == "openai_compatible":
        served.check(name, settings_from(served.Settings, name, settings))
    else:
        close(open_llm(name, entry))


def hints(workbench: Workbench, name: str, entry: LLMEntry) -> str:
    """What the user should know of a saved entry: an earlier one is still loaded, no key is set."""
    said = []
    if workbench.is_loaded(name):
        said.append(f"{name} is loaded with its earlier settings: unload it, then load it again.")
    if entry.backend == "openai_compatible":
        variable = variable_of(settings_from(served.Settings, name, with_environment(entry).settings))
        if variable and not os.environ.get(variable):
            said.append(
                f"{variable} is not set: if the server wants a key, set it and start rallebench anew."
            )
    return "".join(map(views.note, said))
