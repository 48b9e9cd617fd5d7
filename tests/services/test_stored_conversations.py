"""Conversations on disk: questions and answers of a window are there at the next start of the program."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from talking import ask, script

from rallebench.core.files import read_json, write_json
from rallebench.core.types import Chain
from rallebench.engine.record import episode_to_json, step_to_json
from rallebench.services.conversations import Talk, Turn
from rallebench.services.stored_conversations import load, save
from rallebench.services.workbench import Workbench

WINDOW = "0123456789abcdef" * 2
MOON, SECOND = "Which moon of Saturn has a thick atmosphere?", "Who discovered it?"


@pytest.fixture
def read(bench: Workbench) -> Chain:
    return bench.workspace.chain("read")


def stored_file(bench: Workbench) -> Path:
    return bench.workspace.path / "conversations" / f"{WINDOW}.json"


def contents(turn: Turn) -> list[Any]:
    """The episode of a turn in JSON, and its steps, as stored: with rounded seconds."""
    assert turn.episode is not None and turn.rewriting is not None
    return [episode_to_json(turn.episode), *map(step_to_json, (turn.rewriting, *turn.steps))]


def test_a_conversation_comes_back_with_branches_steps_and_sources(
    bench: Workbench, read: Chain
) -> None:
    replies = "Who discovered Titan?", "Huygens", "Who named Titan?", "Herschel", "When?", "1655"
    script(bench, "Titan", *replies)
    talk = Talk()
    first = ask(bench, talk, read, MOON)
    second = ask(bench, talk, read, SECOND)
    ask(bench, talk, read, "Who named it?", first)
    talk.show(second)
    save(bench.workspace, WINDOW, [talk])
    (again,) = load(bench.workspace, WINDOW)
    assert [turn.answer for turn in again.turns] == [turn.answer for turn in talk.turns]
    assert [turn.question for turn in again.path] == [MOON, SECOND]
    assert [turn.number for turn in again.branches(again.turns[1])] == [1, 2]
    restored = again.turns[1]
    assert restored.standalone == second.standalone == "Who discovered Titan?"
    assert contents(restored) == contents(second) and restored.history == second.history
    assert (restored.sources, restored.cited_sentences) == (second.sources, second.cited_sentences)
    third = ask(bench, again, read, "And when?")
    assert third.history[0].content == MOON, "a restored conversation goes on"


def test_an_answer_that_the_end_of_the_program_cut_off_is_stopped(
    bench: Workbench, read: Chain
) -> None:
    talk = Talk()
    talk.ask(bench.asking, read, MOON, None)
    save(bench.workspace, WINDOW, [talk])
    (again,) = load(bench.workspace, WINDOW)
    assert (again.turns[0].question, again.turns[0].state) == (MOON, "stopped")
    assert not again.is_busy


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "[]",
        '{"conversations": [{"began": 1e999, "last": null, "turns": []}]}',
        '{"conversations": [{"began": 1e18, "last": null, "turns": []}]}',
        '{"conversations": [{"began": "today", "last": null, "turns": []}]}',
        '{"conversations": [{"began": 0, "last": 0, "turns": []}]}',
        '{"conversations": [{"began": 0, "last": null, "turns": [{"before": null}]}]}',
    ],
)
def test_a_damaged_file_is_set_aside(
    bench: Workbench, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    path = stored_file(bench)
    path.parent.mkdir()
    path.write_text(damage)
    assert load(bench.workspace, WINDOW) == []
    assert not path.exists() and path.with_suffix(".damaged").read_text() == damage
    assert "was damaged by another program" in caplog.text


@pytest.mark.parametrize(
    "change",
    [
        {"answer": 5},
        {"before": -1},
        {"steps": {}},
        {"copies": "no"},
        {"chain": []},
        {"error": None},
    ],
)
def test_a_damaged_conversation_hides_no_other(
    bench: Workbench, read: Chain, caplog: pytest.LogCaptureFixture, change: dict[str, Any]
) -> None:
    talks = [Talk(), Talk()]
    for talk in talks:
        talk.ask(bench.asking, read, MOON, None)
    save(bench.workspace, WINDOW, talks)
    stored = read_json(stored_file(bench))
    stored["conversations"][0]["turns"][0] |= change
    write_json(stored_file(bench), stored)
    (left,) = load(bench.workspace, WINDOW)
    assert left.turns[0].question == MOON and "1 of its conversations are whole" in caplog.text
    assert read_json(stored_file(bench).with_suffix(".damaged")) == stored
    assert len(load(bench.workspace, WINDOW)) == 1


def test_a_state_that_no_turn_has_is_damage(bench: Workbench, read: Chain) -> None:
    talk = Talk()
    talk.ask(bench.asking, read, MOON, None)
    save(bench.workspace, WINDOW, [talk])
    stored = read_json(stored_file(bench))
    stored["conversations"][0]["turns"][0]["state"] = "lost"
    write_json(stored_file(bench), stored)
    assert load(bench.workspace, WINDOW) == []


@pytest.mark.parametrize("window", ["", "w", "../../llms", WINDOW.upper(), WINDOW + "0"])
def test_only_a_name_that_a_browser_gives_names_a_file(
    bench: Workbench, read: Chain, window: str
) -> None:
    talk = Talk()
    talk.ask(bench.asking, read, MOON, None)
    save(bench.workspace, window, [talk])
    assert load(bench.workspace, window) == []
    assert not (bench.workspace.path / "conversations").exists()


def test_a_window_without_conversations_has_no_file(bench: Workbench, read: Chain) -> None:
    talk = Talk()
    talk.ask(bench.asking, read, MOON, None)
    save(bench.workspace, WINDOW, [talk])
    assert stored_file(bench).exists()
    save(bench.workspace, WINDOW, [Talk()])
    assert not stored_file(bench).exists()


def test_a_disk_that_takes_no_file_ends_no_conversation(
    bench: Workbench, read: Chain, caplog: pytest.LogCaptureFixture
) -> None:
    (bench.workspace.path / "conversations").write_text("in the way")
    talk = Talk()
    talk.ask(bench.asking, read, MOON, None)
    with caplog.at_level(logging.WARNING):
        said = save(bench.workspace, WINDOW, [talk])
    assert (
        said.startswith("The conversation was not saved: Could not write") and said in caplog.text
    )
