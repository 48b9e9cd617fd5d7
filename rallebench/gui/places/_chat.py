"""Chat: use the chain in Build for a conversation, with sources cited after each sentence."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

from markupsafe import Markup

from rallebench.core.errors import RalleError
from rallebench.core.stopping import stop_of_thread
from rallebench.core.types import Chain, Episode, Example, Gold
from rallebench.gui import form, html, panels
from rallebench.gui.addresses import QuestionAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.patches import NO_CHANGE, Meanwhile, PageEvent, Patch
from rallebench.gui.places import _chat_marks
from rallebench.gui.places._bench import PAUSE, Bench, saved_chain, window_bench
from rallebench.gui.places._chain import summary
from rallebench.gui.places._chat_list import conversation_list, talk_head
from rallebench.gui.places._chat_state import event_turn, open_talk, save_talks, window_chats
from rallebench.gui.places._chat_turn import cited_page, sources_html, turns_html
from rallebench.gui.places._one import MODES, chain_choice, columns, header
from rallebench.gui.places._pages import show_page
from rallebench.gui.wording import on_page
from rallebench.render.numbers import text
from rallebench.services.conversations import Talk, Turn
from rallebench.views import chain_forms
from rallebench.views.verdicts import DEPTH, verdict

BOTTOM = Patch(event=PageEvent("rb-bottom"))
"""Patch that scrolls to the last turn."""


def register(page: Page) -> None:
    """Register this mode's views and actions."""
    page.view("build/chat", open_chat)
    page.actions(
        "chat", branch, choose, choose_chain, add_history, sources, open_in_build, reads=True
    )
    page.actions("chat", send, regenerate, edit, resend, new, delete, stop)
    _chat_marks.register(page)


# the view


def open_chat(page: Page, event: Event) -> Iterator[Patch]:
    """Open the three columns; follow an answer in progress."""
    talk = open_talk(page, event)
    yield Patch(title="Chat") | draw_parts(page, event)
    while talk.is_busy and talk is open_talk(page, event):
        yield Patch({"turns": turns_html(page, talk)})
        time.sleep(PAUSE)
    yield parts(page, event)


def draw_parts(page: Page, event: Event) -> Patch:
    """Draw the list of conversations, the open conversation, and the sources of its last answer."""
    bench, talk = window_bench(page, event), open_talk(page, event)
    field = Markup(
        '<textarea name="text" id="chat-text" rows="1" aria-label="Your question" placeholder="Your question; Enter sends it, Shift Enter begins a line" data-on="enter" data-do="chat.send" autofocus></textarea>'
    )
    body = columns(
        bar(bench),
        Markup(
            '<div class="start" role="region" aria-label="Conversations"><div id="chat-chain" class="stack">{}</div>{}'
            '<div class="convs" id="chat-list">{}</div></div>'
        ).format(
            chain_choice(page, bench),
            html.button("New conversation", "chat.new"),
            conversation_list(page, event),
        ),
        Markup(
            '<div class="mid talk" role="region" aria-label="Conversation"><div class="talk-head" id="chat-head">{}</div>'
            '<div class="turns" id="turns" aria-live="polite">{}</div>'
            '<div class="send" data-form data-problems><div class="send-row">{}<span id="chat-buttons">{}</span></div>'
            '<p class="note how" id="chat-how">{}</p></div></div>'
        ).format(
            talk_head(talk),
            turns_html(page, talk),
            field,
            send_button(talk),
            how(page, bench.chain),
        ),
        Markup(
            '<div class="side" id="chat-side" role="region" aria-label="Sources">{}</div>'
        ).format(sources_html(talk.last)),
        "Chat",
    )
    return Patch({"v-build-chat": body})


def bar(bench: Bench) -> Markup:
    """Draw the mode switch, the chain in a line, and the actions on it."""
    actions = " → ".join(map(summary, bench.chain.actions))
    return Markup(
        '{}<span class="note status" id="chat-status" title="{}">{}</span>{}{}{}{}'
    ).format(
        html.segments(MODES, "#/build/chat"),
        actions,
        actions,
        html.button("Versions", "versions.show", kind="quiet"),
        html.button("Code", "code.show", kind="quiet"),
        html.button("Save", "versions.save", save=""),
        html.button("Run on a dataset", "build.benchmark"),
    )


def parts(page: Page, event: Event) -> Patch:
    """Draw everything except the input field, which keeps its text during an answer."""
    talk = open_talk(page, event)
    return Patch(
        {
            "chat-list": conversation_list(page, event),
            "chat-head": talk_head(talk),
            "turns": turns_html(page, talk),
            "chat-buttons": send_button(talk),
            "chat-side": sources_html(talk.last),
        }
    )


def send_button(talk: Talk) -> Markup:
    """Draw the button that sends a question or stops the answer in progress."""
    if talk.is_busy:
        return html.button("Stop", "chat.stop")
    return html.button("Send", "chat.send", kind="primary")


def how(page: Page, chain: Chain) -> Markup:
    """Describe the chain in one line: whether it quotes or writes, and how it handles follow-up questions."""
    asking, writes = page.workbench.asking, ""
    is_copying = bool(chain.llms) and asking.copies(chain.llms[-1])
    if is_copying:
        writes = f"{chain.llms[-1]} quotes: it copies a few words from the passages or declines, and writes nothing of its own. "
    if "history" in chain_forms.variables(chain):
        return Markup("{}The chain reads the earlier turns by {{history}}.").format(writes)
    rewriter = asking.rewriter(chain).llm
    follow_up = "A follow-up question is searched for with the names of the questions before it."
    if rewriter:
        follow_up = f"{rewriter} rewrites a follow-up question so that it stands alone."
    add = Markup()
    if not is_copying and chain_forms.history_place(chain) is not None:
        add = html.button("Add {history} to the prompt", "chat.add_history", kind="link")
    return Markup("{}{} {}").format(writes, follow_up, add)


def choose_chain(page: Page, event: Event) -> Patch:
    """Use another saved chain from the next question on; Undo in Build returns to an edited one."""
    bench = window_bench(page, event)
    bench.edit(saved_chain(page, bench, event.text("chain")))
    return header(page, bench) | draw_parts(page, event)


def add_history(page: Page, event: Event) -> Patch:
    """Put the earlier turns before the prompt of the last model; Undo in Build removes them."""
    bench = window_bench(page, event)
    bench.edit(chain_forms.with_history(bench.chain))
    return (
        header(page, bench)
        | draw_parts(page, event)
        | Patch(say="The prompt begins with {history}.")
    )


# asking


def send(page: Page, event: Event) -> Iterator[Patch]:
    """Ask a question and stream its answer."""
    return begin_turn(page, event, event.text("text"), open_talk(page, event).last)


def regenerate(page: Page, event: Event) -> Iterator[Patch]:
    """Repeat a question with the current chain and without the reply cache; the earlier answer is kept as a branch."""
    turn = event_turn(page, event)
    return begin_turn(page, event, turn.question, turn.before, fresh=True)


def edit(page: Page, event: Event) -> Patch:
    """Open a form for rewording a question."""
    turn = event_turn(page, event)
    body = form.area("edited", "Question", turn.question, rows=3, more=Markup(" autofocus"))
    body += html.note("The earlier question and its later turns stay as a branch.")
    return panels.ask("Edit and send again", body, "Send", "chat.resend", index=turn.number)


def resend(page: Page, event: Event) -> Iterator[Patch]:
    """Send the edited question instead of the earlier one, which is kept as a branch."""
    return begin_turn(
        page, event, event.text("edited"), event_turn(page, event).before, Patch(dialog="")
    )


def begin_turn(
    page: Page,
    event: Event,
    question: str,
    before: Turn | None,
    more: Patch = NO_CHANGE,
    *,
    fresh: bool = False,
) -> Iterator[Patch]:
    """Start a turn. A refusal is raised immediately and does not affect an answer in progress."""
    chain, talk = window_bench(page, event).chain, open_talk(page, event)
    turn = talk.ask(page.workbench.asking, chain, question, before)
    saved = save_talks(page, event)
    first = draw_parts(page, event) | BOTTOM | more | saved
    return stream_turn(page, event, talk, turn, fresh, first)


def stream_turn(
    page: Page, event: Event, talk: Talk, turn: Turn, fresh: bool, first: Patch
) -> Iterator[Patch]:
    """Stream a turn. An error becomes part of the turn, so that the question is kept."""
    chain, workbench, turn.hang_up = turn.chain, page.workbench, stop_of_thread()
    yield first
    yield Patch(meanwhile=waiting(page, talk, turn))
    try:
        with workbench.models.lease(f"a chat turn of the chain {chain.name!r}") as lease:
            for news in lease.load_for(chain.llms, chain.retrievers):
                turn.activity = f"{news.message[:1].upper()}{news.message[1:]} …"
                yield Patch({"turns": turns_html(page, talk)})
            for piece in workbench.asking.chat(chain, turn.history, turn.question, fresh=fresh):
                if turn.state != "running":
                    return
                turn.take(piece)
                if isinstance(piece, Episode):
                    workbench.tracking.trace(piece, turn.question, "chat")
                yield Patch({"turns": turns_html(page, talk)}) | BOTTOM
    except RalleError as error:
        if turn.state == "running":
            turn.error, turn.state = on_page(error), "failed"
    finally:
        turn.state = "stopped" if turn.state == "running" else turn.state
        saved = save_talks(page, event)
    yield parts(page, event) | BOTTOM | saved


def waiting(page: Page, talk: Talk, turn: Turn) -> Meanwhile:
    """Return the status shown in the turn: how long a model has been silent, and the reason for a retry."""
    began, work = time.time(), stop_of_thread()

    def show(end: bool) -> Patch:
        if not end and not turn.answer:
            silent = text(int(time.time() - began), "duration")
            trouble = page.workbench.models.trouble(turn.chain.llms, work)
            turn.activity = html.join_facts("Waiting for the model", silent, trouble)
        return Patch({"turns": turns_html(page, talk)})

    return show


def stop(page: Page, event: Event) -> Patch:
    """Stop the answer, keeping its text so far."""
    open_talk(page, event).stop()
    return parts(page, event)


# navigation


def branch(page: Page, event: Event) -> Patch:
    """Show another branch of a question, at its newest turn."""
    open_talk(page, event).show(event_turn(page, event))
    return parts(page, event)


def new(page: Page, event: Event) -> Patch:
    """Start a new conversation."""
    chats = window_chats(page, event)
    if chats.talks[0].turns:
        chats.talks.insert(0, Talk())
    chats.opened = 0
    return draw_parts(page, event)


def delete(page: Page, event: Event) -> Patch:
    """Delete the open conversation, stopping its answer."""
    talks, talk = window_chats(page, event).talks, open_talk(page, event)
    talk.stop()
    talks.remove(talk)
    if not talks:
        talks.append(Talk())
    saved = save_talks(page, event)
    return draw_parts(page, event) | saved


def choose(page: Page, event: Event) -> Patch:
    """Open another conversation."""
    window_chats(page, event).opened = event.position("index")
    return draw_parts(page, event)


def sources(page: Page, event: Event) -> Patch:
    """Show the sources of an answer; for a citation, open the page of the passage at the cited span, too."""
    cite, turn = event.whole("cite"), event_turn(page, event)
    side = Patch({"chat-side": sources_html(turn, cite)})
    address = None if cite is None else cited_page(turn, cite)
    with suppress(RalleError):  # the passages of a server, or of a deleted index, have no page here
        side |= show_page(page, address) if address else NO_CHANGE
    return side | Patch(event=PageEvent("rb-cited"))


# to other places


def open_in_build(page: Page, event: Event) -> Patch:
    """Open a question in Build with its chain and steps."""
    turn, bench = event_turn(page, event), window_bench(page, event)
    question, steps = turn.in_build
    words = NO_CHANGE
    if bench.chain != turn.chain:
        bench.edit(turn.chain)
        words = Patch(say="The chain is that of the turn; Undo returns to yours.")
    bench.forget_steps()
    bench.question, bench.earlier = question.text, question.history
    bench.steps = dict(enumerate(steps))
    bench.ran = dict(enumerate(turn.chain.actions[: len(steps)]))
    episode = turn.episode
    if episode is not None and not episode.error:
        bench.executed = turn.chain
        alone = Episode(question.qid, episode.workflow, steps, episode.outcome)
        example = Example(question, Gold())
        bench.put(
            example,
            alone,
            verdict(
                page.workspace,
                example,
                alone,
                page.workbench.asking.deeper_hits(alone, DEPTH),
            ),
        )
    return Patch(go=QuestionAddress(set=bench.dataset, ask=question.text).href) | words
