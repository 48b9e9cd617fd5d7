"""Marks of answers in Chat: right, wrong with the right answer, and the ways into a dataset and a file."""

from __future__ import annotations

import json
from datetime import datetime

from markupsafe import Markup

from rallebench.core.errors import UsageError
from rallebench.core.numbers import plural
from rallebench.gui import form, html
from rallebench.gui.addresses import DatasetAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.patches import Download, Patch
from rallebench.gui.places._chat_list import conversation_list, talk_head
from rallebench.gui.places._chat_state import event_turn, open_talk, save_talks, window_chats
from rallebench.gui.places._chat_turn import turns_html
from rallebench.services import stored_conversations
from rallebench.services.conversations import Correction, Mark, Turn
from rallebench.services.marked_turns import (
    find_pages,
    right_answers,
    save_marked,
    save_question,
    to_markdown,
)

NEW_DATASET = "my-chat-questions"


def register(page: Page) -> None:
    """Register the actions on marks."""
    page.actions("chat", right, wrong, correct, keep, save, to_dataset)
    page.actions("chat", export, reads=True)


def marked_parts(page: Page, event: Event) -> Patch:
    """Save the conversations, and redraw the turns and their counts."""
    saved, talk = save_talks(page, event), open_talk(page, event)
    drawn = {
        "turns": turns_html(page, talk),
        "chat-head": talk_head(talk),
        "chat-list": conversation_list(page, event),
    }
    return Patch(drawn) | saved


def answered_turn(page: Page, event: Event) -> Turn:
    """Return the turn of an event. Raises UsageError while it is being answered."""
    turn = event_turn(page, event)
    if turn.state == "running":
        raise UsageError("The question is still being answered; mark it afterwards.")
    return turn


def set_mark(turn: Turn, mark: Mark) -> bool:
    """Set a mark, or remove it if the turn has it; return whether it is set. A new mark drops the correction."""
    turn.mark = "" if turn.mark == mark else mark
    if turn.correction is not None and not turn.correction.dataset:
        turn.correction = None
    return bool(turn.mark)


def right(page: Page, event: Event) -> Patch:
    """Mark an answer as right, or remove the mark."""
    set_mark(answered_turn(page, event), "right")
    return marked_parts(page, event)


def wrong(page: Page, event: Event) -> Patch:
    """Mark an answer as wrong and ask for the right one, or remove the mark."""
    turn = answered_turn(page, event)
    is_set = set_mark(turn, "wrong")
    return marked_parts(page, event) | (correction_dialog(page, event, turn) if is_set else Patch())


def keep(page: Page, event: Event) -> Patch:
    """Ask for the dataset, the right answers and the gold pages."""
    return correction_dialog(page, event, answered_turn(page, event))


def correction_dialog(page: Page, event: Event, turn: Turn) -> Patch:
    """Ask for the right answers to a question and the pages that hold them."""
    own = page.workspace.own_datasets()
    name = window_chats(page, event).dataset or (own[0] if own else NEW_DATASET)
    suggestion = Correction(turn.standalone, (turn.answer.strip(),), turn.cited_pages)
    if turn.mark == "wrong":
        suggestion = Correction(turn.standalone, ())
    gold = right_answers(turn) or suggestion
    answers = form.area(
        "answers",
        "Right answers, one a line",
        "\n".join(gold.answers),
        rows=3,
        more=Markup(" autofocus"),
    )
    titles = {hit.passage.page_id: hit.passage.title for hit in turn.sources}
    pages = {page_id: title or page_id for page_id, title in {**titles, **gold.pages}.items()}
    pages.pop("", None)
    listed = Markup()
    if pages:
        label = "Pages that hold the answer"
        listed = form.checks("page", list(pages.items()), gold.pages, label)
    body = Markup().join(
        (
            form.area("question", "Question, as it stands alone", gold.question, rows=2),
            answers,
            listed,
            form.area("pages", "Other pages, by id or title, one a line", rows=1),
            form.text(
                "dataset",
                "Dataset",
                name,
                about="One of this workspace, or a new name.",
                offers=own,
            ),
        )
    )
    buttons = html.button("Save as question", "chat.save", kind="primary", index=turn.number)
    title = "Save as question"
    if turn.mark == "wrong":
        title = "What is the right answer?"
        keeps = html.button("Keep the correction here", "chat.correct", index=turn.number)
        buttons = keeps + buttons
    close = "Not now" if turn.mark == "wrong" else "Cancel"
    return Patch(dialog=html.dialog(title, body, buttons, keep=close))


def read_correction(page: Page, event: Event, turn: Turn) -> Correction:
    """Return the correction in the dialog. Raises UsageError."""
    titles = {hit.passage.page_id: hit.passage.title for hit in turn.sources}
    titles |= turn.correction.pages if turn.correction else {}
    pages = {page_id: titles.get(page_id, "") for page_id in event.many("page")}
    names = event.text("pages").splitlines()
    pages |= find_pages(page.workspace, turn.chain.retrievers, names) if names else {}
    answers = tuple(filter(None, map(str.strip, event.text("answers").splitlines())))
    saved = turn.correction or Correction("", ())
    return Correction(event.text("question"), answers, pages, saved.dataset, saved.qid)


def correct(page: Page, event: Event) -> Patch:
    """Store the right answers with the turn."""
    turn = answered_turn(page, event)
    turn.correction = read_correction(page, event, turn)
    return marked_parts(page, event) | Patch(dialog="")


def save(page: Page, event: Event) -> Patch:
    """Add the question to the dataset, and store its right answers with the turn."""
    turn, name = answered_turn(page, event), event.text("dataset")
    gold = read_correction(page, event, turn)
    turn.correction = save_question(page.workbench.edits, name, gold)
    count = len(page.workspace.questions(name))
    window_chats(page, event).dataset = name
    words = f"Saved in {name}, which holds {plural(count, 'question')} now."
    return marked_parts(page, event) | Patch(dialog="", say=words, undo=open_dataset(name))


def open_dataset(name: str) -> Markup:
    """Draw the link to a dataset, for a message."""
    return html.link("Open it", DatasetAddress(id=name).href)


def to_dataset(page: Page, event: Event) -> Patch:
    """Make a dataset of the conversation's marked turns, or add those that are new since the last time."""
    talk = open_talk(page, event)
    name = f"chat-{datetime.fromtimestamp(talk.began):%Y%m%d-%H%M%S}"
    saved = save_marked(page.workspace, page.workbench.edits, talk, name)
    facts = html.join_facts(
        f"{plural(saved.added, 'question')} added to {name}",
        f"{saved.present} there already" if saved.present else "",
        f"{plural(saved.uncorrected, 'wrong answer')} without a correction left out"
        if saved.uncorrected
        else "",
    )
    return Patch(say=f"{facts}.", undo=open_dataset(name))


def export(page: Page, event: Event) -> Patch:
    """Download the open conversation with its marks: as a text, or as it is stored."""
    talk = open_talk(page, event)
    name = f"chat-{datetime.fromtimestamp(talk.began):%Y%m%d-%H%M%S}"
    if event.choice("shape", ("json", "markdown")) == "markdown":
        return Patch(download=Download(f"{name}.md", to_markdown(talk), type="text/markdown"))
    text = json.dumps(stored_conversations.to_json([talk]), ensure_ascii=False, indent=1)
    return Patch(download=Download(f"{name}.json", text, type="application/json"))
