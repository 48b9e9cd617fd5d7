"""Chat: talk to the chain of Develop or to a saved one; its last action is streamed, its steps unfold."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Union

import gradio as gr

from rallebench.core.errors import RalleError
from rallebench.core.types import Chain, Episode, Message
from rallebench.engine.perform import flow_error
from rallebench.engine.single import Delta, Event, StepDone
from rallebench.gui import form, views, views_chat
from rallebench.gui import keepalive as pulse
from rallebench.gui.session import Session, guard, guard_stream, warn_of_memory
from rallebench.gui.tabs import TABS
from rallebench.gui.views_chat import Turn
from rallebench.services.asking import chat_holder
from rallebench.services.workbench import Workbench

DEVELOP = ":develop"
"""Stands for the chain in Develop; no saved chain can be called so."""

HISTORY_TURNS, HISTORY_CHARACTERS, MESSAGE_CHARACTERS = 10, 8_000, 2_000
"""How much of a conversation a chain is given: about 2,000 tokens, so small models keep room to answer."""

HINT = (
    "**Follow-up questions.** A template sees the earlier turns as `{history}`, one line each "
    "(`User: …`, `Assistant: …`), the newest ten at most. In Develop, write for example\n\n"
    "* in a retriever's template: `{history} {question}`\n"
    "* in a model's template: `{history}` on a line of its own, then `User: {question}` and `Assistant:`\n"
    "* in an eval template: `question if not history else history + ' ' + question`"
)


@TABS.register("chat", order=6, label="Chat")
def build(workbench: Workbench, session: Session, tab: gr.Tab, page: gr.Blocks) -> None:
    """Talk to a chain."""
    turns = gr.State([])
    with gr.Row():
        with gr.Column(scale=2, min_width=260):
            source = gr.Dropdown(
                offers(workbench),
                value=DEVELOP,
                label="Chain",
                allow_custom_value=True,
                elem_id="chat-chain",
            )
        with gr.Column(scale=5, min_width=320):
            line = gr.HTML(elem_id="chat-chain-line")
    talk = gr.Chatbot(
        elem_id="chat-conversation",
        show_label=False,
        height="50vh",
        min_height=280,
        placeholder=views_chat.EMPTY,
        buttons=["copy", "copy_all"],
        feedback_options=None,
    )
    with gr.Row(equal_height=True):
        text = gr.Textbox(
            placeholder="Your question; Enter sends it",
            show_label=False,
            lines=1,
            max_lines=8,
            elem_id="chat-text",
            scale=8,
            container=False,
        )
        send = gr.Button("Send", variant="primary", elem_id="chat-send", scale=1, min_width=90)
        stop = gr.Button("Stop", interactive=False, elem_id="chat-stop", scale=1, min_width=80)
        clear = gr.Button("Clear", elem_id="chat-clear", scale=1, min_width=80)
    gr.Markdown(HINT, elem_id="chat-hint")

    screen = [turns, talk, send, stop]
    chosen = [source, *session.form]
    sent = gr.on(
        [send.click, text.submit],
        partial(guard_stream, on_send, workbench),
        [turns, text, *chosen],
        [*screen, text],
        show_progress="hidden",
    )
    again = talk.retry(
        partial(guard_stream, on_retry, workbench),
        [turns, *chosen],
        [*screen, text],
        show_progress="hidden",
    )
    # Cancel first, then draw: in one event the page would drop what is drawn.
    stop.click(None, None, None, cancels=[sent, again]).then(
        on_stop, [turns], screen, show_progress="hidden"
    )
    cleared = gr.on([clear.click, talk.clear], None, None, None, cancels=[sent, again])
    cleared.then(on_clear, None, screen, show_progress="hidden")
    source.input(partial(guard, on_chain, workbench), chosen, [line], show_progress="hidden")
    tab.select(partial(guard, on_tab, workbench), chosen, [source, line], show_progress="hidden")


def offers(workbench: Workbench) -> list[tuple[str, str]]:
    """(shown, value) of the chains that can be talked to."""
    return [
        ("The chain in Develop", DEVELOP),
        *((name, name) for name in workbench.workspace.chain_paths()),
    ]


def chosen_chain(workbench: Workbench, source: str, values: form.Values) -> Chain:
    """The chain in Develop as it stands there, or a saved one. Raises RalleError."""
    return form.read_chain(values) if source == DEVELOP else workbench.workspace.chain(source)


def history(turns: Sequence[Turn]) -> list[Message]:
    """What the next turn is told: answered turns only, the oldest dropped and long texts cut."""
    told: list[Message] = []
    room = HISTORY_CHARACTERS
    answered = [turn for turn in turns if turn.state == "done" and turn.answer.strip()]
    for turn in reversed(answered[-HISTORY_TURNS:]):
        pair = [Message("user", cut(turn.question)), Message("assistant", cut(turn.answer))]
        room -= sum(len(message.content) for message in pair)
        if room < 0:
            break
        told = pair + told
    return told


def cut(text: str) -> str:
    """The text, its end left out if it is long."""
    text = text.strip()
    return text if len(text) <= MESSAGE_CHARACTERS else text[: MESSAGE_CHARACTERS - 2] + " …"


def screen_of(turns: list[Turn]) -> list[Any]:
    """State, conversation, and which of Send and Stop can be pressed."""
    busy = running(turns)
    return [
        turns,
        views_chat.messages(turns),
        gr.update(interactive=not busy),
        gr.update(interactive=busy),
    ]


def drawn(earlier: list[Turn], growing: Iterator[Turn], box: Any) -> Iterator[list[Any]]:
    """The screen for every new turn, ``box`` the first update of the text box; what stays is skipped."""
    shown: Turn | None = None
    for turn in growing:
        screen = [gr.skip()] * 5 if turn is shown else [*screen_of([*earlier, turn]), box]
        if shown is not None and shown.state == turn.state:
            screen[2:4] = [gr.skip()] * 2
        yield screen
        shown, box = turn, gr.skip()


def running(turns: Sequence[Turn]) -> bool:
    """Whether the last turn is still being answered."""
    return bool(turns) and turns[-1].state == "running"


def asked(
    workbench: Workbench, source: str, values: form.Values, earlier: list[Turn], text: str
) -> Iterator[Turn]:
    """The new turn as it grows, the same one again while nothing happens.

    Whatever goes wrong ends in the turn, so the question stays on the page.
    """
    turn = Turn(text)
    yield turn
    try:
        chain = chosen_chain(workbench, source, values)
        turn = replace(turn, final=views_chat.final_action(chain))
        last = since = time.monotonic()
        for event in pulse.pulsed(happenings(workbench, chain, history(earlier), text), "chat"):
            now = time.monotonic()
            turn, since = grown(turn, event, now - since), since if event is None else now
            if isinstance(event, StepDone):
                turn = replace(turn, prices=workbench.models.prices())
            if not isinstance(event, Delta) or now - last > pulse.PACE:
                last = now
                yield turn
            if isinstance(event, Episode):
                warn_of_memory(workbench)
                workbench.tracking.trace(event, text, "chat")
    except (
        Exception
    ) as error:  # a bug is logged with its traceback and must not leave the turn running
        yield replace(turn, error=str(flow_error(error)), state="failed")


def grown(turn: Turn, event: Union[str, Event, None], silent: float) -> Turn:
    """The turn after an event; after None the same one, or one that waits a whole second longer."""
    if event is not None:
        return replace(views_chat.heard(turn, event), waited=0)
    return turn if int(silent) == turn.waited else replace(turn, waited=int(silent))


def happenings(
    workbench: Workbench, chain: Chain, told: list[Message], text: str
) -> Iterator[Union[str, Event]]:
    """News about loading what the chain names, then the events of the turn."""
    with workbench.models.lease(chat_holder(chain)) as lease:
        for event in lease.load_for(chain.llms, chain.retrievers, heavy=False):
            yield event.message
        yield from workbench.asking.chat(chain, told, text)


def on_send(
    workbench: Workbench, turns: list[Turn], text: str, source: str, *values: Any
) -> Iterator[list[Any]]:
    """Ask the chain; the conversation grows as things happen. Nothing is asked while a turn is running."""
    if not (text or "").strip() or running(turns):
        yield [gr.skip()] * 5
        return
    yield from drawn(turns, asked(workbench, source, values, turns, text.strip()), "")


def on_retry(
    workbench: Workbench, turns: list[Turn], source: str, *values: Any
) -> Iterator[list[Any]]:
    """Ask the last question again, of the chain as it is now; the new answer takes the old one's place."""
    if not turns or running(turns):
        yield [gr.skip()] * 5
        return
    earlier, text = turns[:-1], turns[-1].question
    yield from drawn(earlier, asked(workbench, source, values, earlier, text), gr.skip())


def on_stop(turns: list[Turn]) -> list[Any]:
    """The running turn is cancelled; what it has said stays."""
    return screen_of(views_chat.stopped(turns))


def on_clear() -> list[Any]:
    """A new conversation; a running turn is cancelled."""
    return screen_of([])


def on_chain(workbench: Workbench, source: str, *values: Any) -> str:
    """Say what the chosen chain consists of and whether it sees earlier turns."""
    try:
        return views_chat.chain_line(chosen_chain(workbench, source, values))
    except RalleError as error:
        return views.error(str(error))


def on_tab(workbench: Workbench, source: str, *values: Any) -> list[Any]:
    """Offer the chains that are saved now, and describe the chosen one as it is now."""
    return [gr.update(choices=offers(workbench)), on_chain(workbench, source, *values)]
