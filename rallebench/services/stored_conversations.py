"""Conversations on disk, a file for each window, so that they outlive the program.

``<workspace>/conversations/<window>.json``: for each conversation its turns as they were asked, each with its chain, the
number of the turn before, and its steps as in an episode.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from rallebench.chains.saved import chain_from_json, chain_to_json
from rallebench.core.errors import RalleError
from rallebench.core.files import disk_error, write_json
from rallebench.core.own_files import DAMAGE, Count, Stored, check_stored, read_stored
from rallebench.engine.record import (
    episode_from_json,
    episode_to_json,
    step_from_json,
    step_to_json,
)
from rallebench.services.conversations import State, Talk, Turn, history, path_to
from rallebench.workspace.paths import WorkspaceFolder

FORMAT = "rallebench-conversations/1"
MEND = "the conversation begins anew"
WINDOW = re.compile(r"[0-9a-f]{32}")
"""The name that a browser gives its window: random, so that the file of another window cannot be guessed."""

log = logging.getLogger(__name__)


def save(workspace: WorkspaceFolder, window: str, talks: Sequence[Talk]) -> None:
    """Write the conversations of a window; without any its file goes. A disk that takes no file ends no conversation: the log
    names it."""
    if not WINDOW.fullmatch(window):
        return
    path, begun = _file(workspace, window), [_talk_to_json(talk) for talk in talks if talk.turns]
    try:
        if begun:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, {"format": FORMAT, "conversations": begun})
        else:
            path.unlink(missing_ok=True)
    except (RalleError, OSError) as error:
        reason = disk_error(path, error) if isinstance(error, OSError) else error
        log.warning("The conversation was not saved: %s", reason)


def load(workspace: WorkspaceFolder, window: str) -> list[Talk]:
    """The conversations of a window, the newest first; [] where none was saved.

    A file with a damaged conversation is set aside; its other conversations are as they were.
    """
    path = _file(workspace, window)
    if not WINDOW.fullmatch(window) or not path.exists():
        return []
    talks: list[Talk] = []
    try:
        values = read_stored(path, StoredTalks, MEND)["conversations"]
    except (RalleError, OSError):
        _set_aside(path, talks)
        return talks
    for value in values:
        with suppress(RalleError, OSError, *DAMAGE):
            talks.append(_talk_from_json(check_stored(value, StoredTalk, path, MEND)))
    if len(talks) < len(values):
        _set_aside(path, talks)
        save(workspace, window, talks)
    return talks


def damage_note(workspace: WorkspaceFolder, window: str) -> str:
    """The sentence on a file of this window that was damaged and set aside; '' without one."""
    aside = _file(workspace, window).with_suffix(".damaged")
    if not WINDOW.fullmatch(window) or not aside.exists():
        return ""
    return f"A conversation was damaged by another program and is kept in {aside}; remove that file, or mend it and name it .json."


def _set_aside(path: Path, talks: Sequence[Talk]) -> None:
    aside = path.with_suffix(".damaged")
    rest = f" {len(talks)} of its conversations are whole and stay." if talks else ""
    log.warning("%s was damaged by another program; it is now %s.%s", path, aside.name, rest)
    with suppress(OSError):  # a folder without write access: it is read again next time
        path.replace(aside)


class StoredTurn(Stored):
    chain: dict[str, Any]
    question: str
    before: Count | None
    answer: str
    state: State
    error: str
    copies: bool
    rewriting: dict[str, Any] | None
    steps: list[dict[str, Any]]
    episode: dict[str, Any] | None


class StoredTalk(Stored):
    """A conversation."""

    began: float
    last: Count | None
    turns: list[StoredTurn]


class StoredTalks(Stored):
    """The file of a window; a damaged conversation hides no other."""

    conversations: list[Any]


def _file(workspace: WorkspaceFolder, window: str) -> Path:
    return workspace.path / "conversations" / f"{window}.json"


def _talk_to_json(talk: Talk) -> dict[str, Any]:
    return {
        "began": talk.began,
        "last": None if talk.last is None else talk.last.number,
        "turns": [_turn_to_json(turn) for turn in talk.turns],
    }


def _turn_to_json(turn: Turn) -> dict[str, Any]:
    """A turn. The steps of its episode are the rewriting and its own, so they are written once."""
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
    }


def _talk_from_json(value: Mapping[str, Any]) -> Talk:
    talk = Talk(began=datetime.fromtimestamp(value["began"]).timestamp())
    for number, line in enumerate(value["turns"]):
        before = None if line["before"] is None else talk.turns[line["before"]]
        talk.turns.append(_turn_from_json(line, number, before))
    talk.last = None if value["last"] is None else talk.turns[value["last"]]
    return talk


def _turn_from_json(line: Mapping[str, Any], number: int, before: Turn | None) -> Turn:
    """A turn; one that was still being answered when the program ended is stopped."""
    state, rewriting, episode = line["state"], line["rewriting"], None
    rewriting = rewriting and step_from_json(rewriting)
    steps = tuple(map(step_from_json, line["steps"]))
    if line["episode"]:
        every = (rewriting, *steps) if rewriting else steps
        episode = replace(episode_from_json(line["episode"]), steps=every)
    return Turn(
        chain_from_json(line["chain"]),
        line["question"],
        history(path_to(before)),
        number,
        before,
        answer=line["answer"],
        rewriting=rewriting,
        steps=steps,
        episode=episode,
        error=line["error"],
        state="stopped" if state == "running" else state,
        copies=line["copies"],
    )
