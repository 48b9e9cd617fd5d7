"""Conversations on disk, one file per browser window, so that they survive a restart.

``<workspace>/conversations/<window>.json`` holds the turns of each conversation in the order they were asked. Each
turn has its chain, the number of the previous turn, its steps as in an episode, and a person's mark and correction.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from rallebench.chains.saved import chain_from_json, chain_to_json
from rallebench.core.errors import RalleError
from rallebench.core.files import disk_error, write_json
from rallebench.core.own_files import DAMAGE, parse, read_sealed
from rallebench.core.strict_numbers import Count, Flag, Number
from rallebench.core.types import Json
from rallebench.engine.record import (
    episode_from_json,
    episode_to_json,
    step_from_json,
    step_to_json,
)
from rallebench.services.conversations import (
    Correction,
    Mark,
    State,
    Talk,
    Turn,
    history,
    path_to,
)
from rallebench.workspace.paths import WorkspaceFolder

FORMAT = "rallebench-conversations/1"
MEND = "the conversation begins anew"
WINDOW = re.compile(r"[0-9a-f]{32}")
"""Name of a browser window. It is random, so the file of another window cannot be guessed."""

log = logging.getLogger(__name__)


def save(workspace: WorkspaceFolder, window: str, talks: Sequence[Talk]) -> str:
    """Save the conversations of a window; if there are none, delete the file. A disk error ends no conversation: it is logged,
    and returned as a sentence.
    """
    if workspace.read_only or not WINDOW.fullmatch(window):
        return ""
    path = _file(workspace, window)
    try:
        if any(talk.turns for talk in talks):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, to_json(talks))
        else:
            path.unlink(missing_ok=True)
    except (RalleError, OSError) as error:
        reason = disk_error(path, error) if isinstance(error, OSError) else error
        log.warning("The conversation was not saved: %s", reason)
        return f"The conversation was not saved: {reason}"
    return ""


def to_json(talks: Sequence[Talk]) -> dict[str, Any]:
    """Return conversations in the form of a window's file, without those that have no turn."""
    begun = [_talk_to_json(talk) for talk in talks if talk.turns]
    return {"format": FORMAT, "conversations": begun}


def load(workspace: WorkspaceFolder, window: str) -> list[Talk]:
    """Return the conversations of a window, newest first; [] if none were saved.

    If a conversation is damaged, its file is set aside, except in a read-only workspace; the other conversations in
    it are still returned.
    """
    path = _file(workspace, window)
    if not WINDOW.fullmatch(window) or not path.exists():
        return []
    talks: list[Talk] = []
    try:
        values = parse(read_sealed(path, MEND), StoredTalks, path, MEND).conversations
    except (RalleError, OSError):
        _set_aside(workspace, path, talks)
        return talks
    for value in values:
        with suppress(RalleError, OSError, *DAMAGE):
            talks.append(_read_talk(parse(value, StoredTalk, path, MEND)))
    if len(talks) < len(values):
        _set_aside(workspace, path, talks)
        save(workspace, window, talks)
    return talks


def damage_note(workspace: WorkspaceFolder, window: str) -> str:
    """Return the sentence about a damaged file of this window that was set aside; '' if there is none."""
    aside = _file(workspace, window).with_suffix(".damaged")
    if not WINDOW.fullmatch(window) or not aside.exists():
        return ""
    return f"A conversation was damaged by another program and is kept in {aside}; remove that file, or mend it and name it .json."


def _set_aside(workspace: WorkspaceFolder, path: Path, talks: Sequence[Talk]) -> None:
    if workspace.read_only:
        return
    aside = path.with_suffix(".damaged")
    rest = f" {len(talks)} of its conversations are whole and stay." if talks else ""
    log.warning("%s was damaged by another program; it is now %s.%s", path, aside.name, rest)
    with suppress(OSError):  # the folder is read-only, so the file is read again next time
        path.replace(aside)


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A stored turn. ``before``: the number of the previous turn."""

    chain: Json
    question: str
    before: Count | None
    answer: str
    state: State
    error: str
    copies: Flag
    rewriting: Json | None
    steps: tuple[Json, ...]
    episode: Json | None
    mark: Mark = ""
    correction: Correction | None = None


@dataclass(frozen=True, slots=True)
class StoredTalk:
    """A stored conversation. ``last``: the number of the turn shown last."""

    began: Number
    last: Count | None
    turns: tuple[StoredTurn, ...]


@dataclass(frozen=True, slots=True)
class StoredTalks:
    """The file of a window; a damaged conversation does not hide the others."""

    conversations: tuple[Any, ...]


def _file(workspace: WorkspaceFolder, window: str) -> Path:
    return workspace.path / "conversations" / f"{window}.json"


def _talk_to_json(talk: Talk) -> dict[str, Any]:
    return {
        "began": talk.began,
        "last": None if talk.last is None else talk.last.number,
        "turns": [_turn_to_json(turn) for turn in talk.turns],
    }


def _turn_to_json(turn: Turn) -> dict[str, Any]:
    """Convert a turn to JSON. Its episode's steps are the rewriting and its own steps, so they are stored once."""
    episode = turn.episode and replace(turn.episode, steps=())
    return {
        "chain": chain_to_json(turn.chain),
        "question": turn.question,
        "before": None if turn.before is None else turn.before.number,
        "answer": turn.answer,
        "state": turn.state,
        "error": turn.error,
        "copies": turn.copies,
        "rewriting": turn.rewriting and step_to_json(turn.rewriting),
        "steps": [step_to_json(step) for step in turn.steps],
        "episode": episode and episode_to_json(episode),
        "mark": turn.mark,
        "correction": turn.correction and _correction_to_json(turn.correction),
    }


def _correction_to_json(correction: Correction) -> dict[str, Any]:
    return {
        "question": correction.question,
        "answers": list(correction.answers),
        "pages": dict(correction.pages),
        "dataset": correction.dataset,
        "qid": correction.qid,
    }


def _read_talk(stored: StoredTalk) -> Talk:
    talk = Talk(began=datetime.fromtimestamp(stored.began).timestamp())
    for number, turn in enumerate(stored.turns):
        before = None if turn.before is None else talk.turns[turn.before]
        talk.turns.append(_read_turn(turn, number, before))
    talk.last = None if stored.last is None else talk.turns[stored.last]
    return talk


def _read_turn(stored: StoredTurn, number: int, before: Turn | None) -> Turn:
    """Read a turn; if it was unfinished when the program ended, it counts as stopped."""
    episode = None
    rewriting = step_from_json(stored.rewriting) if stored.rewriting else None
    steps = tuple(map(step_from_json, stored.steps))
    if stored.episode:
        every = (rewriting, *steps) if rewriting else steps
        episode = replace(episode_from_json(stored.episode), steps=every)
    return Turn(
        chain_from_json(stored.chain),
        stored.question,
        history(path_to(before)),
        number,
        before,
        answer=stored.answer,
        rewriting=rewriting,
        steps=steps,
        episode=episode,
        error=stored.error,
        state="stopped" if stored.state == "running" else stored.state,
        copies=stored.copies,
        mark=stored.mark,
        correction=stored.correction,
    )
