"""Models: load and unload retrievers and language models, and see what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import gradio as gr

from rallebench import memory
from rallebench.catalog import LLMEntry
from rallebench.errors import RalleError, UsageError
from rallebench.gui import views, views_models
from rallebench.gui.session import Session, guard, guard_stream
from rallebench.gui.tabs import TABS
from rallebench.gui.tabs._models_add import draw_add, offer
from rallebench.workbench import Workbench
from rallebench.workspace import DEFAULT_CHAIN

WELCOME = (
    "**Welcome! Press Load first**: it loads the ticked retriever and language model, which come with "
    "rallebench and need no download, no key and no GPU. **Then open Develop**, where a chain that uses them "
    "waits with its first question."
)
BUILD = "To import a corpus, build an index over it or combine retrievers, open the **Data** tab."
NOTHING = "Nothing is being loaded. Tick what you need and press Load; what is loaded stays loaded."
NO_ANSWER = "The answer comes here; the model is really asked, whatever it answered before."
TRY = (
    'Referring to the following document, answer "On which river does Tbilisi stand?" in 5 words or less.'
    "\n\nTbilisi, the capital of Georgia, stands on the Kura River.\n\nAnswer: "
)
REFRESH_SECONDS = 2.0

CHOOSERS = ("retrievers", "llms", "loaded", "askable")
REFRESHED = (*CHOOSERS, "table", "memory")

Snapshot = dict[str, Any]


@TABS.register("models", order=1, label="Models")
def build(workbench: Workbench, session: Session, tab: gr.Tab, page: gr.Blocks) -> None:
    """Load, unload, add and try what chains use."""
    now, ticked = snapshot(workbench), recommended(workbench)
    # What the page is drawn with: its first refresh then leaves alone what a quick visitor has ticked already.
    seen = gr.State({**now, "loaded": [], "askable": []})
    gr.Markdown(WELCOME, elem_id="models-welcome")
    with gr.Row(equal_height=True):
        retrievers = draw_list("Retrievers", "retrievers", now, ticked)
        llms = draw_list("Language models", "llms", now, ticked)
    with gr.Row(equal_height=True, elem_classes="rb-tools"):
        load = gr.Button("Load", variant="primary", elem_id="models-load", scale=2, min_width=110)
        develop = gr.Button("Open Develop", elem_id="models-open-develop", scale=2, min_width=130)
        # A custom value is let through to the workbench, whose sentence is better than Gradio's: between two
        # refreshes a page may name what somebody else has just unloaded.
        loaded = gr.Dropdown(
            [],
            label="Loaded now",
            allow_custom_value=True,
            elem_id="models-loaded",
            scale=4,
            min_width=200,
        )
        unload = gr.Button("Unload", elem_id="models-unload", scale=1, min_width=110)
    progress = gr.HTML(views.empty(NOTHING), elem_id="models-progress", elem_classes="rb-flush")
    held = gr.HTML(now["memory"], elem_id="models-memory", elem_classes="rb-flush")
    table = gr.HTML(now["table"], elem_id="models-table", elem_classes=["rb-flush", "rb-long"])
    draw_add(workbench, llms)
    askable = draw_ask(workbench)
    gr.Markdown(BUILD, elem_id="models-build")

    choosers = [retrievers, llms, loaded, askable]
    running = load.click(
        partial(guard_stream, on_load, workbench), [retrievers, llms], [progress], show_progress="hidden"
    )
    ended = unload.click(partial(guard, on_unload, workbench), [loaded], [progress], show_progress="hidden")
    develop.click(on_open_develop, None, [session.tabs], show_progress="hidden")
    refresh = partial(guard, on_refresh, workbench)
    asked, shown = [seen, *choosers], [seen, *choosers, table, held]
    for happening in (running.then, ended.then, tab.select, page.load, gr.Timer(REFRESH_SECONDS).tick):
        happening(refresh, asked, shown, show_progress="hidden")


def draw_list(label: str, part: str, now: Snapshot, ticked: Sequence[str]) -> gr.CheckboxGroup:
    """A check list of what can be loaded."""
    value = [name for name in now[part] if name in ticked]
    return gr.CheckboxGroup(
        now[part],
        value=value,
        label=label,
        elem_id=f"models-{part}",
        elem_classes="rb-choices",
        min_width=320,
    )


# what the screen shows


def recommended(workbench: Workbench) -> list[str]:
    """What the chain names that a new user finds in Develop."""
    try:
        return [action.target for action in workbench.workspace.chain(DEFAULT_CHAIN).actions]
    except RalleError:
        return []


def snapshot(workbench: Workbench) -> Snapshot:
    """What can be loaded, what is loaded and what memory is held, now. Damaged entries are a sentence."""
    status, problem = workbench.status(), ""
    retrievers: dict[str, str] = {}
    llms: dict[str, LLMEntry] = {}
    try:
        retrievers = workbench.workspace.retrievers()
    except RalleError as error:
        problem += views.error(str(error))
    try:
        llms = workbench.workspace.llms()
    except RalleError as error:
        problem += views.error(str(error))
    rows = views_models.rows(retrievers, llms, status, loading_now(workbench))
    return {
        "retrievers": list(retrievers),
        "llms": list(llms),
        "loaded": [loaded.name for loaded in status],
        "askable": [loaded.name for loaded in status if loaded.kind == "language model"],
        "table": problem + views_models.table(rows),
        "memory": views_models.memory_line(memory.Memory.now(), memory.free_ram_bytes()),
    }


def loading_now(workbench: Workbench) -> frozenset[str]:
    """The names that are being loaded, by whomever."""
    return frozenset(workbench.loading())


def changes(seen: Snapshot | None, now: Snapshot, chosen: Sequence[Any]) -> list[Any]:
    """Updates of the refreshed components; one that has not changed is left alone, under the user's hand."""
    updates: list[Any] = []
    for part, value in zip(REFRESHED, [*chosen, None, None], strict=True):
        if seen is not None and seen[part] == now[part]:
            updates.append(gr.skip())
        else:
            updates.append(offered(now[part], value) if part in CHOOSERS else now[part])
    return updates


def offered(names: list[str], chosen: Any) -> Any:
    """The choices that there are now. Without a value, a tick that was set since the page asked stays."""
    still = isinstance(chosen, list) and all(name in names for name in chosen)
    return gr.update(choices=names) if still else offer(names, chosen)


def on_refresh(workbench: Workbench, seen: Snapshot | None, *chosen: Any) -> list[Any]:
    """Show what has changed since this page was last told, by whomever."""
    now = snapshot(workbench)
    return [now, *changes(seen, now, chosen)]


# load and unload


def on_load(workbench: Workbench, retrievers: list[str], llms: list[str]) -> Iterator[str]:
    """Load what is ticked; what is loaded stays loaded."""
    if not retrievers and not llms:
        raise UsageError("Nothing is ticked; tick a retriever or a language model, then press Load.")
    wanted = [(name, "retriever") for name in retrievers] + [(name, "language model") for name in llms]
    yield from loads(workbench, wanted)


def loads(workbench: Workbench, wanted: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Follow the load of each; one that fails says so and does not keep the others from loading."""
    lines: list[str] = []
    followed = [(name, workbench.load(name, kind)) for name, kind in wanted]
    yield views_models.loading(lines, "waiting for earlier loads", 0, len(followed))
    for done, (name, load) in enumerate(followed):
        said = f"already loaded: {name}"
        try:
            for said in load:
                yield views_models.loading(lines, said, done, len(followed))
            lines.append(views.note(f"{views_models.capital(said)}.", "good"))
        except RalleError as error:
            lines.append(views.error(str(error)))
        yield views_models.loading(lines, "", done + 1, len(followed))


def on_unload(workbench: Workbench, name: str | None) -> str:
    """Let go of one thing; say how much memory came back."""
    if not name:
        raise UsageError("Nothing is chosen to unload; what is loaded stands under 'Loaded now'.")
    try:
        return views.note(workbench.unload(name), "good")
    except RalleError as error:
        return views.error(str(error))


def on_open_develop() -> Any:
    """Go where chains are made."""
    return gr.Tabs(selected="develop")


# ask a language model


def draw_ask(workbench: Workbench) -> gr.Dropdown:
    """One question to a loaded model; returns the list of those that can be asked."""
    with gr.Accordion("Ask a language model one question", open=False, elem_id="models-ask-panel"), gr.Row():
        with gr.Column(scale=5, min_width=320):
            llm = gr.Dropdown(
                [],
                label="Language model (of those loaded)",
                allow_custom_value=True,
                elem_id="models-ask-llm",
            )
            prompt = gr.Textbox(TRY, label="Prompt", lines=5, max_lines=16, elem_id="models-ask-prompt")
            with gr.Row():
                ask = gr.Button("Ask", elem_id="models-ask", scale=3)
                stop = gr.Button("Stop", elem_id="models-ask-stop", scale=1, min_width=80)
        with gr.Column(scale=5, min_width=320):
            shown = gr.HTML(views.empty(NO_ANSWER), elem_id="models-ask-answer", elem_classes="rb-flush")
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
