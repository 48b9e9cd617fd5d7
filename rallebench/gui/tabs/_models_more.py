"""The lower half of the Models tab: add a language model, ask one a question, build an index."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from rallebench.catalog import LLMEntry, Manifest
from rallebench.corpora.chunking import Chunking
from rallebench.encoders import ENCODERS
from rallebench.errors import RalleError, UsageError
from rallebench.gui import views, views_models
from rallebench.gui.session import guard, guard_stream
from rallebench.indexing import Building, kinds
from rallebench.llms import openai_compatible, settings_from
from rallebench.llms._transformers import settings as local
from rallebench.loading import close, open_llm
from rallebench.ralle_settings import with_environment
from rallebench.workbench import Workbench
from rallebench.workspace import READER

ABOUT_ADDING = (
    "The entry is written to `llms.json` in the workspace and offered at once. **Never type a key here**: "
    "give the *name* of the environment variable that holds it, such as `OPENAI_API_KEY`, and set that "
    "variable before rallebench is started. The key itself is stored nowhere."
)
ABOUT_CORPORA = (
    "A corpus is a TSV file with the columns `id`, `text` and `title` (a header row may name them), or JSONL "
    "with `id`, `text`, `title` and `page_id`. The page map (JSON, passage id → page id) says which page "
    "each passage belongs to; without one a passage is its own page. Leaving this page stops the build; "
    "for a big corpus use `rallebench index` on the command line."
)
NO_ANSWER = "The answer comes here; the model is really asked, whatever it answered before."
TRY = (
    'Referring to the following document, answer "On which river does Tbilisi stand?" in 5 words or less.'
    "\n\nTbilisi, the capital of Georgia, stands on the Kura River.\n\nAnswer: "
)
BACKENDS = ("openai_compatible", "transformers", "scripted")
OTHERS = {
    "openai_compatible": '{"temperature": 0.2, "max_tokens": 64, "timeout": 60}',
    "transformers": '{"device_map": "cuda", "max_tokens": 64, "batch_size": 8}',
    "scripted": '{"replies": {"capital of France": "Paris"}, "default": "I cannot tell."}',
}
MODEL_INFO = {
    "openai_compatible": "the name by which the server knows it",
    "transformers": "a folder of this machine, or a Hugging Face id such as owner/model",
    "scripted": "",
}
UNSAID = {"quantization": "none", "dtype": "auto"}
"""Settings that are left out of an entry, because they are what happens anyway."""


def offer(names: list[str], chosen: Any) -> Any:
    """Choices of a list or a drop-down; what is chosen and still there stays chosen."""
    if isinstance(chosen, list):
        return gr.update(choices=names, value=[name for name in dict.fromkeys(chosen) if name in names])
    return gr.update(choices=names, value=chosen if chosen in names else names[-1] if names else None)


# add a language model


def draw_add(workbench: Workbench, llms: gr.CheckboxGroup) -> None:
    """The form of a new entry; ``llms`` is the list that offers it."""
    first = BACKENDS[0]
    with gr.Accordion("Add a language model", open=False, elem_id="models-add-panel"):
        gr.Markdown(ABOUT_ADDING)
        with gr.Row(equal_height=True):
            backend = gr.Radio(list(BACKENDS), value=first, label="Backend", elem_id="models-add-backend")
            name = _line("Name", "what chains call it", "add-name")
            model = _line("Model", MODEL_INFO[first], "add-model")
        with gr.Row() as served:
            base_url = _line(
                "Address of the server", "empty = OpenAI's", "add-base-url", "http://127.0.0.1:8000/v1"
            )
            key = _line(
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
        said = gr.HTML(elem_id="models-add-status")
    backend.change(on_backend, [backend], [model, served, weights, other], show_progress="hidden")
    written = [backend, name, model, base_url, key, quantization, dtype, other]
    add.click(partial(guard, on_add, workbench), [llms, *written], [said, llms], show_progress="hidden")


def _line(label: str, info: str, part: str, placeholder: str = "", scale: int = 1) -> gr.Textbox:
    return gr.Textbox(
        label=label,
        info=info,
        placeholder=placeholder,
        max_lines=1,
        elem_id=f"models-{part}",
        scale=scale,
        min_width=240,
    )


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
        openai_compatible._check(name, settings_from(openai_compatible.Settings, name, settings))
    else:
        close(open_llm(name, entry))


def hints(workbench: Workbench, name: str, entry: LLMEntry) -> str:
    """What the user should know of a saved entry: an earlier one is still loaded, no key is set."""
    said = []
    if workbench.is_loaded(name):
        said.append(f"{name} is loaded with its earlier settings: unload it, then load it again.")
    variable = str(entry.settings.get("api_key_env", "OPENAI_API_KEY"))
    if entry.backend == "openai_compatible" and not os.environ.get(variable):
        said.append(f"{variable} is not set: if the server wants a key, set it and start rallebench again.")
    return "".join(map(views.note, said))


# ask a language model


def draw_ask(workbench: Workbench) -> gr.Dropdown:
    """One question to a loaded model; returns the list of those that can be asked."""
    with gr.Accordion("Ask a language model one question", open=False, elem_id="models-ask-panel"), gr.Row():
        with gr.Column(scale=5, min_width=320):
            llm = gr.Dropdown([], label="Language model (of those loaded)", elem_id="models-ask-llm")
            prompt = gr.Textbox(TRY, label="Prompt", lines=5, max_lines=16, elem_id="models-ask-prompt")
            with gr.Row():
                ask = gr.Button("Ask", elem_id="models-ask", scale=3)
                stop = gr.Button("Stop", elem_id="models-ask-stop", scale=1, min_width=80)
        with gr.Column(scale=5, min_width=320):
            shown = gr.HTML(views.empty(NO_ANSWER), elem_id="models-ask-answer")
    handler = partial(guard_stream, on_ask, workbench)
    asking = ask.click(handler, [llm, prompt], [shown], show_progress="hidden")
    stop.click(on_stop_asking, None, [shown], cancels=[asking], show_progress="hidden")
    return llm


def on_ask(workbench: Workbench, name: str | None, prompt: str) -> Iterator[str]:
    """Ask a loaded model one prompt, past the memory."""
    if not name:
        raise UsageError("No language model is loaded; tick one above and press Load.")
    if not (prompt or "").strip():
        raise UsageError("The prompt is empty; type a question.")
    yield views.note(f"Asking {name} …")
    try:
        yield views_models.answer(name, workbench.ask_model(name, prompt))
    except RalleError as error:
        yield views.error(str(error))


def on_stop_asking() -> str:
    """Wait no longer for the answer."""
    return views.note("No longer waiting for the answer; the model ends what it had begun.")


# build an index


def draw_index(workbench: Workbench, retrievers: gr.CheckboxGroup) -> None:
    """The form of a new index; ``retrievers`` is the list that offers it."""
    with gr.Accordion("Build an index over your own corpus", open=False, elem_id="models-index-panel"):
        gr.Markdown(ABOUT_CORPORA)
        corpus = draw_path("Corpus file", "a path on this machine, or upload one", "index-corpus")
        pages = draw_path(
            "Page map", "a path on this machine, or upload one; may stay empty", "index-page-map"
        )
        with gr.Row(equal_height=True):
            name = _line("Name", "empty = made of file and kind", "index-name")
            kind = gr.Radio(list(kinds()), value="bm25", label="Kind", elem_id="models-index-kind")
            encoder = gr.Dropdown(
                list(ENCODERS.names()),
                value="minilm",
                label="Encoder",
                visible=False,
                elem_id="models-index-encoder",
            )
        with gr.Row(equal_height=True):
            length = _count("Chunk size", "empty = rows stay whole", "index-size", None, 1)
            overlap = _count("Chunk overlap", "how much two neighbours share", "index-overlap", 0, 0)
            unit = gr.Radio(
                ["words", "tokens", "characters"],
                value="words",
                label="Chunk unit",
                elem_id="models-index-unit",
            )
        with gr.Row():
            start = gr.Button("Build", elem_id="models-index-build", scale=3)
            stop = gr.Button("Stop", elem_id="models-index-stop", scale=1, min_width=80)
        news = gr.HTML(elem_id="models-index-progress")
    kind.change(on_kind, [kind], [encoder], show_progress="hidden")
    asked = [retrievers, corpus, pages, name, kind, encoder, length, overlap, unit]
    handler = partial(guard_stream, on_build, workbench)
    running = start.click(handler, asked, [news, retrievers], show_progress="hidden")
    stop.click(on_stop_building, None, [news], cancels=[running], show_progress="hidden")


def draw_path(label: str, info: str, part: str) -> gr.Textbox:
    """A file of this machine, or an uploaded one: the upload writes its place into the box."""
    with gr.Row(equal_height=True, elem_classes="rb-tools"):
        path = _line(label, info, part, scale=8)
        upload = gr.UploadButton("Upload", elem_id=f"models-{part}-upload", scale=1, min_width=110)
    upload.upload(on_upload, [upload], [path], show_progress="hidden")
    return path


def _count(label: str, info: str, part: str, value: int | None, least: int) -> gr.Number:
    return gr.Number(
        value, label=label, info=info, precision=0, minimum=least, elem_id=f"models-{part}", min_width=160
    )


def on_kind(kind: str) -> Any:
    """BM25 needs no encoder."""
    return gr.update(visible=kind != "bm25")


def on_upload(path: str) -> str:
    """Where the uploaded file lies."""
    return path


def on_build(workbench: Workbench, ticked: list[str], *asked: Any) -> Iterator[list[Any]]:
    """Build an index with progress; the new one is offered at once."""
    try:
        for news in building(workbench, *asked):
            if isinstance(news, Manifest):
                names = list(workbench.workspace.retrievers())
                yield [views_models.built(news), offer(names, [*ticked, news.name])]
            else:
                yield [views_models.building(news), gr.skip()]
    except RalleError as error:
        yield [views.error(str(error)), gr.skip()]


def building(
    workbench: Workbench,
    corpus: str,
    page_map: str,
    name: str,
    kind: str,
    encoder: str,
    length: int | None,
    overlap: int | None,
    unit: Any,
) -> Iterator[Building | Manifest]:
    """The build that the form asks for. Raises UsageError before anything is written."""
    if not (corpus or "").strip():
        raise UsageError("No corpus is given; type the path of a corpus file, or upload one.")
    if overlap and not length:
        raise UsageError("A chunk overlap needs a chunk size; give one, or set the overlap to 0.")
    source, pages = Path(corpus.strip()).expanduser(), (page_map or "").strip()
    name = (name or "").strip() or f"{source.name.split('.')[0]}-{kind}"
    if name in workbench.workspace.llms():
        raise UsageError(f"{name!r} is a language model of this workspace; choose another name.")
    return workbench.build_index(
        name,
        source,
        kind,
        encoder=encoder,
        page_map=Path(pages).expanduser() if pages else None,
        chunking=Chunking(int(length), int(overlap or 0), unit) if length else None,
    )


def on_stop_building() -> str:
    """The build is cancelled."""
    return views.note("Stopped. Nothing is kept of the unfinished index.")
