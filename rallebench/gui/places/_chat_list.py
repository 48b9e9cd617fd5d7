"""The list of conversations by day, and the line above the open one, as HTML."""

from __future__ import annotations

from datetime import datetime

from markupsafe import Markup

from rallebench.core.numbers import plural
from rallebench.gui import html
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.html import attributes
from rallebench.gui.places._chat_state import open_talk, window_chats
from rallebench.services import stored_conversations
from rallebench.services.conversations import Talk
from rallebench.services.marked_turns import MARKS


def conversation_list(page: Page, event: Event) -> Markup:
    """Draw the conversations of the window, newest first, with their counts of marks."""
    rows, opened, day = Markup(), open_talk(page, event), ""
    for index, talk in enumerate(window_chats(page, event).talks):
        began = datetime.fromtimestamp(talk.began)
        if day_name(began) != day:
            day = day_name(began)
            rows += Markup('<h2 class="label">{}</h2>').format(day)
        title = talk.path[0].question[:80] if talk.path else "New conversation"
        about = html.join_facts_html(
            plural(len(talk.path), "turn") if talk.turns else "",
            f"{began:%H:%M}",
            mark_counts(talk),
        )
        data = attributes(do="chat.choose", index=index)
        current = Markup(" aria-current=true") if talk is opened else html.NOTHING
        rows += Markup(
            '<button type="button" class="conv {}"{}{}><span dir="auto">{}</span><br><small>{}</small></button>'
        ).format("on" if talk is opened else "", current, data, title, about)
    note = stored_conversations.damage_note(page.workspace, event.session.window)
    return rows + html.note(note)


def day_name(when: datetime) -> str:
    """Return the day of a conversation in words."""
    days = (datetime.now().date() - when.date()).days
    if days in (0, 1):
        return "Yesterday" if days else "Today"
    year = f" {when.year}" if when.year != datetime.now().year else ""
    return f"{when.day} {when:%b}{year}"


def mark_counts(talk: Talk) -> Markup:
    """Count the marked answers of a conversation; "" without any."""
    counts = Markup()
    for mark, words in MARKS.items():
        if count := len(talk.with_mark("right" if mark == "right" else "wrong")):
            kind, sign = ("good", "✓") if mark == "right" else ("bad", "✕")
            counts += Markup('<span class="{} counted" title="{}">{} {}</span> ').format(
                kind, f"{words}: {count}", sign, count
            )
    return counts


def talk_head(talk: Talk) -> Markup:
    """Draw the line above the open conversation: its size and marks, and what may be done with all of it."""
    if not talk.turns:
        return Markup()
    about = html.join_facts_html(plural(len(talk.turns), "turn"), mark_counts(talk))
    sure = f"Delete this conversation of {plural(len(talk.turns), 'turn')}? Nothing brings it back."
    is_marked = any(turn.mark for turn in talk.turns)
    dataset = html.button(
        "Make a dataset of the marked answers",
        "chat.to_dataset",
        kind="quiet",
        disabled=not is_marked,
        title="" if is_marked else "Mark an answer as right or wrong first",
    )
    menu = html.menu(
        html.button("Download as Markdown", "chat.export", shape="markdown"),
        html.button("Download as JSON, with steps", "chat.export", shape="json"),
        html.button("Delete", "chat.delete", kind="danger", confirm=sure, confirm_verb="Delete"),
        label="This conversation",
    )
    return Markup('<span class="note">{}</span><span class="gap"></span>{}{}').format(
        about, dataset, menu
    )
