"""The conversations of a browser window, kept across sessions."""

from __future__ import annotations

from dataclasses import dataclass

from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.patches import Patch
from rallebench.services import stored_conversations
from rallebench.services.conversations import Talk, Turn


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


def save_talks(page: Page, event: Event) -> Patch:
    """Save the conversations of this window for the next session, and say so if the disk does not take them."""
    workspace = page.workspace
    talks = window_chats(page, event).talks
    return Patch(say=stored_conversations.save(workspace, event.session.window, talks))
