"""Chat: the chain of Build in a conversation, its sources cited beside each answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.types import Chain, Episode, Gold, Message, Retrieve, Step
from rallebench.gui import figures, html
from rallebench.gui.frame import Event, Meanwhile, Page, Patch
from rallebench.gui.html import attributes, e
from rallebench.gui.markdown import safe_markdown
from rallebench.gui.places._bench import PAUSE, bench_of
from rallebench.gui.places._chain import summary
from rallebench.gui.places._one import MODES, columns
from rallebench.gui.places._steps import passage, price, requests, tokens
from rallebench.gui.wording import on_page
from rallebench.render.numbers import plural, text
from rallebench.services.chain_forms import variables
from rallebench.services.steps import Delta, StepDone, StepStarted, citations, is_span, sources

HISTORY_TURNS, HISTORY_CHARACTERS, MESSAGE_CHARACTERS = 10, 8_000, 2_000
"""How much of a conversation a chain is given: about 2,000 tokens, so small models keep room to answer."""
NO_HISTORY = "each question stands alone: no template uses {history}"
BOTTOM: Patch = {"event": {"name": "rb-bottom"}}
"""Scrolls to the last turn."""


@dataclass
class Turn:
    """A question and its answer so far. ``state``: running, done, stopped or failed."""

    question: str
    answer: str = ""
    steps: tuple[Step, ...] = ()
    error: str = ""
    activity: str = "Starting …"
    state: str = "running"


@dataclass
class Talk:
    """A conversation."""

    turns: list[Turn] = field(default_factory=list)
    began: float = field(default_factory=time.time)

    @property
    def is_busy(self) -> bool:
        """Whether an answer is being written."""
        return any(turn.state == "running" for turn in self.turns)


def register(page: Page) -> None:
    """Add this mode."""
    page.view("build/chat", open_chat)
    page.actions("chat", send, again, new, choose, show_sources, stop)


def talks_of(event: Event) -> list[Talk]:
    """The conversations of this window, the newest first; at least one."""
    talks: list[Talk] = event.session.setdefault("talks", [])
    if not talks:
        talks.append(Talk())
    return talks


def talk_of(event: Event) -> Talk:
    """The open conversation."""
    talks = talks_of(event)
    return talks[min(int(event.session.get("talk", 0)), len(talks) - 1)]


def open_chat(page: Page, event: Event) -> Iterator[Patch]:
    """The three columns; an answer that is being written is followed."""
    talk = talk_of(event)
    yield {"title": "Chat", **drawn(page, event)}
    while talk.is_busy and talk is talk_of(event):
        yield {"#turns": turns_html(page, talk)}
        time.sleep(PAUSE)
    yield parts(page, event)


def drawn(page: Page, event: Event) -> Patch:
    """Conversations, the open one, the sources of its last answer."""
    chain, inside = bench_of(page, event).chain, parts(page, event)
    switch = html.segments(MODES, "#/build/chat")
    field = '<textarea name="text" id="chat-text" rows="1" aria-label="Your question" placeholder="Your question; Ctrl Enter sends it" autofocus></textarea>'
    body = columns(
        f'{switch}<span class="note status">{e(remark(chain))}</span>{html.button("New conversation", "chat.new")}',
        f'<div class="start"><h5>Conversations</h5><div class="convs" id="chat-list">{inside["#chat-list"]}</div></div>',
        f'<div class="mid talk"><div class="turns" id="turns" aria-live="polite">{inside["#turns"]}</div><div class="send" data-form data-problems>{field}<span id="chat-buttons">{inside["#chat-buttons"]}</span></div></div>',
        f'<div class="side" id="chat-side">{inside["#chat-side"]}</div>',
    )
    return {"#v-build-chat": body}


def parts(page: Page, event: Event) -> Patch:
    """All but the field: what is typed in it while an answer is written stays."""
    talk, send = talk_of(event), html.button("Send", "chat.send", kind="primary")
    return {
        "#chat-list": conversations(event),
        "#turns": turns_html(page, talk),
        "#chat-buttons": html.button("Stop", "chat.stop") if talk.is_busy else send,
        "#chat-side": sources_html(talk, len(talk.turns) - 1),
    }


def remark(chain: Chain) -> str:
    """Which chain answers, and whether it sees the earlier turns."""
    names = " → ".join(summary(action) for action in chain.actions)
    alone = "" if "history" in variables(chain) else NO_HISTORY
    return html.dotted(f"{chain.name}: {names}", alone)


def conversations(event: Event) -> str:
    """The list at the left."""
    rows, opened = "", talk_of(event)
    for index, talk in enumerate(talks_of(event)):
        title = talk.turns[0].question if talk.turns else "New conversation"
        on = "on" if talk is opened else ""
        clock = time.strftime("%H:%M", time.localtime(talk.began))
        rows += f'<button type="button" class="conv {on}"{attributes(do="chat.choose", index=index)}>{e(title[:80])}<br><small>{clock} · {plural(len(talk.turns), "turn")}</small></button>'
    return rows


def turns_html(page: Page, talk: Talk) -> str:
    """The conversation."""
    if not talk.turns:
        return html.empty("Ask the chain something. Its sources appear beside the answer.")
    return "".join(turn_html(page, index, turn) for index, turn in enumerate(talk.turns))


def turn_html(page: Page, index: int, turn: Turn) -> str:
    """A turn: question, answer with its citations, cost, steps."""
    answer, cites, end = safe_markdown(turn.answer) if turn.answer else "", "", ""
    buttons = html.button("Sources", "chat.show_sources", kind="quiet", index=index)
    if turn.state != "running":
        buttons += html.button("Ask again", "chat.again", kind="quiet", index=index)
    elif not answer:
        answer = f'<span class="note">{e(turn.activity)}</span>'
    if turn.state == "done":
        hits = sources(turn.question, turn.steps)
        for n in citations(turn.answer, hits):
            data = attributes(do="chat.show_sources", index=index, cite=n)
            cites += f'<button type="button" class="cite" title="{e(hits[n - 1].passage.title)}"{data}>{n}</button>'
        end = "" if turn.answer.strip() else html.note("The answer is empty.")
    elif turn.state == "failed":
        end = html.problem(turn.error)
    elif turn.state == "stopped":
        end = html.note("Stopped by you.")
    steps = steps_fold(page, index, turn) if turn.steps and turn.state != "running" else ""
    return f'<section class="turn" id="t{index}"><h4 dir="auto">{e(turn.question)}</h4><div class="said" dir="auto">{answer}{cites}</div>{end}{steps}<div class="row">{buttons}</div></section>'


def steps_fold(page: Page, index: int, turn: Turn) -> str:
    """The steps of a turn, with what they took."""
    prices = page.workbench.models.prices()
    facts = html.dotted(
        figures.duration(sum(step.seconds for step in turn.steps)),
        tokens(turn.steps[-1]),
        f"price {price(turn.steps, prices)}",
        f"{len(sources(turn.question, turn.steps))} sources",
    )
    steps = requests(turn.steps, Gold(), prices)
    return html.fold("Steps", steps, gist=facts, id=f"turn-{index}")


def sources_html(talk: Talk, index: int, cite: int = 0) -> str:
    """The sources of an answer; the cited one first in sight."""
    if not 0 <= index < len(talk.turns):
        return html.empty("The sources of an answer appear here.")
    turn = talk.turns[index]
    gold = Gold(answers=(turn.answer.strip(),)) if is_span(turn.answer) else Gold()
    rows = "".join(
        passage(n, hit, gold, bool(cite) and n != cite)
        for n, hit in enumerate(sources(turn.question, turn.steps), 1)
    )
    head = html.heading("Sources", "as they stood in the prompt", first=True)
    return head + (rows or html.empty("No passage stood in the prompt."))


def history(turns: Sequence[Turn]) -> list[Message]:
    """The earlier turns that the next one is given: answered ones, the oldest dropped, long texts cut."""
    messages: list[Message] = []
    room = HISTORY_CHARACTERS
    answered = [turn for turn in turns if turn.state == "done" and turn.answer.strip()]
    for turn in reversed(answered[-HISTORY_TURNS:]):
        pair = [Message("user", cut(turn.question)), Message("assistant", cut(turn.answer))]
        room -= sum(len(message.content) for message in pair)
        if room < 0:
            break
        messages = pair + messages
    return messages


def cut(text: str) -> str:
    """The text, its end left out if it is long."""
    text = text.strip()
    return text if len(text) <= MESSAGE_CHARACTERS else f"{text[: MESSAGE_CHARACTERS - 2]} …"


def send(page: Page, event: Event) -> Iterator[Patch]:
    """Ask the chain; the answer appears as it is written."""
    talk, question = talk_of(event), event.text("text")
    if not question:
        raise UsageError("There is no question; type one.")
    if talk.is_busy:
        raise UsageError("The last question is still being answered; wait for it, or stop it.")
    yield from answered(page, event, question, len(talk.turns))


def again(page: Page, event: Event) -> Iterator[Patch]:
    """Ask a question again, of the chain as it is now; later turns go."""
    talk, index = talk_of(event), int(event.text("index"))
    yield from answered(page, event, talk.turns[index].question, index)


def answered(page: Page, event: Event, question: str, index: int) -> Iterator[Patch]:
    """A question as the turn ``index``, as it grows. What goes wrong ends in the turn, so that the question stays."""
    chain, workbench = bench_of(page, event).chain, page.workbench
    talk, turn = talk_of(event), Turn(question)
    earlier, talk.turns[index:] = talk.turns[:index], [turn]
    yield {**drawn(page, event), **BOTTOM}
    last = sum(1 for action in chain.actions if action.template) - 1
    yield {"meanwhile": waiting(page, talk, turn, chain)}
    try:
        with workbench.models.lease(f"a chat turn of the chain {chain.name!r}") as lease:
            for news in lease.load_for(chain.llms, chain.retrievers):
                turn.activity = f"{news.message[:1].upper()}{news.message[1:]} …"
                yield {"#turns": turns_html(page, talk)}
            for piece in workbench.asking.chat(chain, history(earlier), turn.question):
                if turn.state != "running":
                    return
                if isinstance(piece, StepStarted):
                    searches = isinstance(piece.request, Retrieve)
                    turn.activity = "Searching …" if searches else "Asking the model …"
                elif isinstance(piece, Delta) and piece.index == last:
                    turn.answer += piece.text
                elif isinstance(piece, StepDone):
                    turn.steps = (*turn.steps, piece.step)
                elif isinstance(piece, Episode):
                    turn.error, turn.state = piece.error, "failed" if piece.error else "done"
                    turn.answer = piece.answer or turn.answer
                    workbench.tracking.trace(piece, turn.question, "chat")
                yield {"#turns": turns_html(page, talk), **BOTTOM}
    except RalleError as error:
        turn.error, turn.state = on_page(error), "failed"
    finally:
        turn.state = "stopped" if turn.state == "running" else turn.state
    yield {**parts(page, event), **BOTTOM}


def waiting(page: Page, talk: Talk, turn: Turn, chain: Chain) -> Meanwhile:
    """How long a model has been silent, and why it is asked again, in the turn."""
    began = time.time()

    def show(end: bool) -> Patch:
        if not end and not turn.answer:
            silent = text(int(time.time() - began), "duration")
            trouble = page.workbench.models.trouble(chain.llms)
            turn.activity = html.dotted("Waiting for the model", silent, trouble)
        return {"#turns": turns_html(page, talk)}

    return show


def stop(page: Page, event: Event) -> Patch:
    """Stop the answer; what has come stays."""
    for turn in talk_of(event).turns:
        turn.state = "stopped" if turn.state == "running" else turn.state
    return parts(page, event)


def new(page: Page, event: Event) -> Patch:
    """A new conversation."""
    talks = talks_of(event)
    if talks[0].turns:
        talks.insert(0, Talk())
    event.session["talk"] = 0
    return drawn(page, event)


def choose(page: Page, event: Event) -> Patch:
    """Another conversation."""
    event.session["talk"] = int(event.text("index"))
    return drawn(page, event)


def show_sources(page: Page, event: Event) -> Patch:
    """The sources of an answer."""
    index, cite = int(event.text("index")), int(event.text("cite", "0"))
    return {"#chat-side": sources_html(talk_of(event), index, cite)}
