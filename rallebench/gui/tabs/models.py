"""Models: load and unload retrievers and language models, and see what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import gradio as gr

from rallebench.core import memory
from rallebench.core.entries import LLMEntry
from rallebench.core.errors import RalleError, UsageError
from rallebench.gui import views, views_models
from rallebench.gui.session import Session, guard, guard_stream
from rallebench.gui.tabs import TABS
from rallebench.gui.tabs._models_add import draw_add, offer
from rallebench.services.load_queue import Going
from rallebench.services.memory_fit import MemoryFit
from rallebench.services.models import is_heavy
from rallebench.services.workbench import Workbench
from rallebench.workspace.paths import DEFAULT_CHAIN

WELCOME = (
    "**Welcome! Press Load first**: it loads the ticked retriever and language model, which come with "
    "rallebench and need no download, no key and no GPU. **Then open Develop**, where a chain that uses them "
    "waits with its first question."
)
BUILD = "To import a corpus, build an index over it or combine retrievers, open the **Data** tab."
ALL = "all of them"
NO_ANSWER = "The answer comes here; the model is really asked, whatever it answered before."
TRY = (
    'Referring to the following document, answer "On which river does Tbilisi stand?" in 5 words or less.'
    "\n\nTbilisi, the capital of Georgia, stands on the Kura River.\n\nAnswer: "
)
REFRESH_SECONDS, LOADING_SECONDS = 2.0, 0.4
"""How often a page looks what others did, and how often while something is being loaded."""

CHOOSERS = ("retrievers", "llms", "loaded", "askable")
REFRESHED = (*CHOOSERS, "table", "memory", "room")

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
    room = gr.HTML(elem_id="models-room", elem_classes="rb-flush")
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
    said = gr.HTML(elem_id="models-said", elem_classes="rb-flush")
    progress = gr.HTML(loads_now(workbench), elem_id="models-progress", elem_classes="rb-flush")
    with gr.Row(equal_height=True, elem_classes="rb-tools", visible=False) as busy:
        going = gr.Dropdown(
            [],
            label="Being loaded",
            allow_custom_value=True,
            elem_id="models-going",
            scale=4,
            min_width=200,
        )
        cancel = gr.Button(
            "Cancel", variant="stop", elem_id="models-cancel", scale=1, min_width=110
        )
    held = gr.HTML(now["memory"], elem_id="models-memory", elem_classes="rb-flush")
    table = gr.HTML(now["table"], elem_id="models-table", elem_classes=["rb-flush", "rb-long"])
    draw_add(workbench, llms)
    askable = draw_ask(workbench)
    gr.Markdown(BUILD, elem_id="models-build")

    choosers = [retrievers, llms, loaded, askable]
    pace = gr.Timer(LOADING_SECONDS, active=False)
    followed = [progress, busy, going, pace]
    begun = load.click(
        partial(guard, on_load, workbench),
        [retrievers, llms],
        [said, *followed],
        show_progress="hidden",
    )
    ended = unload.click(
        partial(guard, on_unload, workbench), [loaded], [said, progress], show_progress="hidden"
    )
    stopped = cancel.click(
        partial(guard, on_cancel, workbench), [going], [said, *followed], show_progress="hidden"
    )
    told, shown = gr.State(""), [*followed, seen, *choosers, table, held, room]
    develop.click(on_open_develop, None, [session.tabs], show_progress="hidden")
    refresh, asked = partial(guard, on_refresh, workbench), [told, going, seen, *choosers]
    pace.tick(
        partial(guard, on_follow, workbench),
        [told, going],
        [told, *followed],
        show_progress="hidden",
    )
    for happening in (
        begun.then,
        ended.then,
        stopped.then,
        tab.select,
        page.load,
        gr.Timer(REFRESH_SECONDS).tick,
    ):
        happening(refresh, asked, [told, *shown], show_progress="hidden")
    gr.on(
        [llms.input],
        partial(guard, on_tick, workbench),
        [llms],
        [room],
        show_progress="hidden",
        trigger_mode="always_last",
    )


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
    status, problem = workbench.models.status(), ""
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


def loading_now(workbench: Workbench) -> Mapping[str, Going]:
    """What is being loaded, by whomever."""
    return workbench.models.loading()


def going_now(workbench: Workbench) -> list[str]:
    """What can be cancelled now; the one whose turn it is comes first."""
    names = [name for name, load in workbench.models.loading().items() if not load.cancelled]
    return [*names, ALL] if len(names) > 1 else names


def loads_now(workbench: Workbench) -> str:
    """The loads that go on, and how the last ones ended."""
    return views_models.panel(workbench.models.loading(), workbench.models.ended())


def room_for(workbench: Workbench, llms: Sequence[str] | None) -> str:
    """What the ticked models that are not loaded yet will take, beside what is free."""
    found: list[MemoryFit | RalleError | str] = []
    for name in llms or ():
        if workbench.models.is_loaded(name):
            continue
        try:
            room = workbench.models.room(name)
            if room is not None or is_heavy(workbench.workspace.llm(name).backend):
                found.append(room or name)
        except RalleError as error:
            found.append(error)
    return views_models.rooms(found)


def changes(seen: Snapshot | None, now: Snapshot, chosen: Sequence[Any]) -> list[Any]:
    """Updates of the refreshed components; one that has not changed is left alone, under the user's hand."""
    updates: list[Any] = []
    for part, value in zip(REFRESHED, [*chosen, None, None, None], strict=True):
        if seen is not None and seen.get(part) == now[part]:
            updates.append(gr.skip())
        else:
            updates.append(offered(now[part], value) if part in CHOOSERS else now[part])
    return updates


def offered(names: list[str], chosen: Any) -> Any:
    """The choices that there are now. Without a value, a tick that was set since the page asked stays."""
    still = isinstance(chosen, list) and all(name in names for name in chosen)
    return gr.update(choices=names) if still else offer(names, chosen)


def on_refresh(
    workbench: Workbench, told: str, going: str | None, seen: Snapshot | None, *chosen: Any
) -> list[Any]:
    """Show what has changed since this page was last told, by whomever."""
    now = snapshot(workbench)
    now["room"] = room_for(workbench, chosen[1])
    return [*on_follow(workbench, told, going), now, *changes(seen, now, chosen)]


def on_follow(workbench: Workbench, told: str, chosen: str | None = None) -> list[Any]:
    """Show how far the loads are, offer to cancel them, and look more often while there are any."""
    now, names = loads_now(workbench), going_now(workbench)
    if now == told:
        return [gr.skip()] * 5
    kept = chosen if chosen in names else names[0] if names else None
    pace = gr.Timer(active=bool(workbench.models.loading()))
    return [now, now, gr.update(visible=bool(names)), gr.update(choices=names, value=kept), pace]


def on_tick(workbench: Workbench, llms: list[str]) -> str:
    """Say what the ticked models will take."""
    return room_for(workbench, llms)


# load, cancel and unload


def on_load(workbench: Workbench, retrievers: list[str], llms: list[str]) -> list[Any]:
    """Begin to load what is ticked, one after the other; what is loaded stays loaded."""
    if not retrievers and not llms:
        raise UsageError(
            "Nothing is ticked; tick a retriever or a language model, then press Load."
        )
    if not workbench.models.loading():
        workbench.models.forget()
    wanted = [(name, "retriever") for name in retrievers] + [
        (name, "language model") for name in llms
    ]
    lines = [begin(workbench, name, kind) for name, kind in wanted]
    return ["".join(lines), *on_follow(workbench, "")[1:]]


def begin(workbench: Workbench, name: str, kind: str) -> str:
    """Begin one load; what is wrong at once is told, and does not keep the others from loading."""
    try:
        load = workbench.models.begin(name, kind)
    except RalleError as error:
        return views.error(str(error))
    return "" if load else views.note(f"Already loaded: {name}.", "good")


def on_cancel(workbench: Workbench, name: str | None) -> list[Any]:
    """Cancel one load, or all, for everybody who waits for it."""
    said = ""
    try:
        workbench.models.cancel("" if name in (None, ALL) else str(name))
    except RalleError as error:  # it has ended meanwhile
        said = views.note(str(error))
    return [said, *on_follow(workbench, "")[1:]]


def on_unload(workbench: Workbench, name: str | None) -> list[str]:
    """Let go of one thing; every window then says how much memory came back."""
    if not name:
        raise UsageError("Nothing is chosen to unload; what is loaded stands under 'Loaded now'.")
    said = ""
    try:
        workbench.models.unload(name)
    except RalleError as error:
        said = views.error(str(error))
    return [said, loads_now(workbench)]


def on_open_develop() -> Any:
    """Go where chains are made."""
    return gr.Tabs(selected="develop")


# ask a language model


def draw_ask(workbench: Workbench) -> gr.Dropdown:
    """One question to a loaded model; returns the list of those that can be asked."""
    with (
        gr.Accordion("Ask a language model one question", open=False, elem_id="models-ask-panel"),
        gr.Row(),
    ):
        with gr.Column(scale=5, min_width=320):
            llm = gr.Dropdown(
                [],
                label="Language model (of those loaded)",
                allow_custom_value=True,
                elem_id="models-ask-llm",
            )
            prompt = gr.Textbox(
                TRY, label="Prompt", lines=5, max_lines=16, elem_id="models-ask-prompt"
            )
            with gr.Row():
                ask = gr.Button("Ask", elem_id="models-ask", scale=3)
                stop = gr.Button("Stop", elem_id="models-ask-stop", scale=1, min_width=80)
        with gr.Column(scale=5, min_width=320):
            shown = gr.HTML(
                views.empty(NO_ANSWER), elem_id="models-ask-answer", elem_classes="rb-flush"
            )
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
        yield views_models.answer(name, workbench.asking.ask_model(name, prompt))
    except RalleError as error:
        yield views.error(str(error))


def on_stop_asking() -> str:
    """Wait no longer for the answer."""
    return views.note("No longer waiting for the answer; the model ends what it had begun.")
