"""Chat: use the chain in Build for a conversation, with sources cited after each sentence."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from rallebench.core.errors import RalleError
from rallebench.core.numbers import plural
from rallebench.core.stopping import stop_of_thread
from rallebench.core.types import Chain, Episode, Example, Gold
from rallebench.gui import form, html, panels
from rallebench.gui.addresses import QuestionAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.html import attributes
from rallebench.gui.patches import NO_CHANGE, Meanwhile, PageEvent, Patch
from rallebench.gui.places._bench import PAUSE, window_bench
from rallebench.gui.places._chain import summary
from rallebench.gui.places._chat_turn import sources_html, turns_html
from rallebench.gui.places._one import MODES, columns
from rallebench.gui.wording import on_page
from rallebench.render.numbers import moment, text
from rallebench.services import stored_conversations
from rallebench.services.conversations import Talk, Turn
from rallebench.views import chain_forms
from rallebench.views.verdicts import DEPTH, verdict

BOTTOM = Patch(event=PageEvent("rb-bottom"))
"""Patch that scrolls to the last turn."""
NEW_DATASET = "my-chat-questions"


def register(page: Page) -> None:
    """Register this mode's views and actions."""
    page.view("build/chat", open_chat)
    page.actions("chat", send, regenerate, edit, resend, branch, new, delete, choose, stop)
    page.actions("chat", sources, open_in_build, keep, save)


@dataclass
class Chats:
    """The conversations of a window, newest first, at least one. ``dataset``: the dataset to which a question was
    last saved.
    """

    talks: list[Talk]
    opened: int = 0
    dataset: str = ""

    @property
    def talk(self) -> Talk:
        """The open conversation."""
        return self.talks[min(self.opened, len(self.talks) - 1)]


def window_chats(page: Page, event: Event) -> Chats:
    """Return the conversations of this window; earlier sessions are read from disk."""
    workspace, window = page.workspace, event.session.window
    return event.session.state(
        Chats, lambda: Chats(stored_conversations.load(workspace, window) or [Talk()])
    )


def open_talk(page: Page, event: Event) -> Talk:
    """Return the open conversation."""
    return window_chats(page, event).talk


def event_turn(page: Page, event: Event) -> Turn:
    """Return the turn of an event. Raises UsageError."""
    return open_talk(page, event).turn(event.whole("index") or 0)


def save_talks(page: Page, event: Event) -> None:
    """Save the conversations of this window for the next session."""
    workspace = page.workspace
    talks = window_chats(page, event).talks
    stored_conversations.save(workspace, event.session.window, talks)


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
    chain, talk = window_bench(page, event).chain, open_talk(page, event)
    switch, actions = html.segments(MODES, "#/build/chat"), " → ".join(map(summary, chain.actions))
    field = Markup(
        '<textarea name="text" id="chat-text" rows="1" aria-label="Your question" placeholder="Your question; Enter sends it, Shift Enter begins a line" data-on="enter" data-do="chat.send" autofocus></textarea>'
    )
    about = Markup('<p class="note how">{}</p>').format(how(page, chain))
    body = columns(
        Markup('{}<span class="note status">{}</span>{}{}').format(
            switch,
            f"{chain.name}: {actions}",
            deletion(page, event),
            html.button("New conversation", "chat.new"),
        ),
        Markup(
            '<div class="start"><h5>Conversations</h5><div class="convs" id="chat-list">{}</div></div>'
        ).format(conversations(page, event)),
        Markup(
            '<div class="mid talk">{}<div class="turns" id="turns" aria-live="polite">{}</div>'
            '<div class="send" data-form data-problems>{}<span id="chat-buttons">{}</span></div></div>'
        ).format(about, turns_html(page, talk), field, send_button(talk)),
        Markup(
            '<div class="side" id="chat-side" role="region" aria-label="Sources">{}</div>'
        ).format(sources_html(talk.last)),
    )
    return Patch({"v-build-chat": body})


def parts(page: Page, event: Event) -> Patch:
    """Draw everything except the input field, which keeps its text during an answer."""
    talk = open_talk(page, event)
    return Patch(
        {
            "chat-list": conversations(page, event),
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


def how(page: Page, chain: Chain) -> str:
    """Describe the chain in one line: whether it quotes or writes, and how it handles follow-up questions."""
    asking, writes = page.workbench.asking, ""
    if chain.llms and asking.copies(chain.llms[-1]):
        writes = f"{chain.llms[-1]} quotes: it copies a few words from the passages or declines, and writes nothing of its own. "
    if "history" in chain_forms.variables(chain):
        return f"{writes}The chain reads the earlier turns by {{history}}."
    rewriter = asking.rewriter(chain).llm
    if rewriter:
        return f"{writes}{rewriter} rewrites a follow-up question so that it stands alone."
    return (
        f"{writes}A follow-up question is searched for with the names of the questions before it."
    )


def deletion(page: Page, event: Event) -> Markup:
    """Draw the button that deletes the open conversation; "" before its first turn."""
    turns = open_talk(page, event).turns
    if not turns:
        return Markup()
    sure = f"Delete this conversation of {plural(len(turns), 'turn')}? Nothing brings it back."
    return html.button("Delete", "chat.delete", kind="quiet", confirm=sure, confirm_verb="Delete")


def conversations(page: Page, event: Event) -> Markup:
    """Draw the list on the left."""
    rows, opened = Markup(), open_talk(page, event)
    for index, talk in enumerate(window_chats(page, event).talks):
        path = talk.path
        title = path[0].question if path else "New conversation"
        on = "on" if talk is opened else ""
        began = moment(datetime.fromtimestamp(talk.began))
        rows += Markup(
            '<button type="button" class="conv {}"{}>{}<br><small>{} · {}</small></button>'
        ).format(
            on,
            attributes(do="chat.choose", index=index),
            title[:80],
            began,
            plural(len(path), "turn"),
        )
    workspace, window = page.workspace, event.session.window
    return rows + html.note(stored_conversations.damage_note(workspace, window))


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
    save_talks(page, event)
    return stream_turn(page, event, talk, turn, fresh, draw_parts(page, event) | BOTTOM | more)


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
        save_talks(page, event)
    yield parts(page, event) | BOTTOM


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
    save_talks(page, event)
    return draw_parts(page, event)


def choose(page: Page, event: Event) -> Patch:
    """Open another conversation."""
    window_chats(page, event).opened = event.position("index")
    return draw_parts(page, event)


def sources(page: Page, event: Event) -> Patch:
    """Show the sources of an answer, or the cited passage with the quoted span."""
    cite = event.whole("cite")
    return Patch(
        {"chat-side": sources_html(event_turn(page, event), cite)}, event=PageEvent("rb-cited")
    )


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


def keep(page: Page, event: Event) -> Patch:
    """Ask for the dataset, gold answers and gold pages."""
    turn = event_turn(page, event)
    own = page.workspace.own_datasets()
    name = window_chats(page, event).dataset or (own[0] if own else NEW_DATASET)
    about = "A dataset of this workspace, or a new name."
    body = form.text("dataset", "Dataset", name, about=about, offers=own)
    body += form.area("question", "Question, as it stands alone", turn.standalone, rows=2)
    body += form.area("answers", "Right answers, one a line", turn.answer.strip(), rows=3)
    titles = {hit.passage.page_id: hit.passage.title for hit in turn.sources if hit.passage.page_id}
    cited = {
        turn.sources[citation.number - 1].passage.page_id
        for sentence in turn.cited_sentences
        for citation in sentence.citations
    }
    if titles:
        pages = [(page_id, title or page_id) for page_id, title in titles.items()]
        body += form.checks("page", pages, cited, "Pages that hold the answer")
    title, label = "Save the question to a dataset", "Save the question"
    return panels.ask(title, body, label, "chat.save", index=turn.number)


def save(page: Page, event: Event) -> Patch:
    """Add the question to the dataset."""
    titles = {hit.passage.page_id: hit.passage.title for hit in event_turn(page, event).sources}
    pages = {page_id: titles.get(page_id, "") for page_id in event.many("page")}
    name, answers = event.text("dataset"), event.text("answers").splitlines()
    count = page.workbench.data.add_question(
        name, event.text("question"), answers, pages, source="chat"
    )
    window_chats(page, event).dataset = name
    return Patch(dialog="", say=f"Saved in {name}, which holds {plural(count, 'question')} now.")
