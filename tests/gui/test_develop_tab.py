"""The Develop tab: its handlers called as plain functions on a workspace with scripted models."""

from __future__ import annotations

import functools
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from performing import prepared

from rallebench.chains.saved import MAX_ACTIONS
from rallebench.core.types import Action, Chain, Episode
from rallebench.gui import develop_output as executed
from rallebench.gui import form
from rallebench.gui import keepalive as pulse
from rallebench.gui.app import build_app
from rallebench.gui.tabs import develop
from rallebench.services.workbench import Workbench

MODELS = {
    "echo": {"backend": "scripted", "settings": {"echo": True}},
    "down": {
        "backend": "openai_compatible",
        "settings": {"model": "m", "base_url": "http://127.0.0.1:9/v1", "max_retries": 0},
    },
}
SEARCH = Action("retrieve", "{question}", "fstring", "starter-bm25", 3)
CHAIN = Chain(
    "mine", (SEARCH, Action("generate", "Read {response[0]}", "fstring", "echo")), "What it is for."
)
TITAN = "Who discovered Titan?"


class Listening(Workbench):
    """A workbench that remembers what it was asked to trace; nothing goes to MLflow."""

    def __init__(self, *places: Path, **settings: Any) -> None:
        super().__init__(*places, **settings)
        self.tracking.trace = self.trace  # type: ignore[method-assign]

    def trace(self, episode: Episode, question: str, source: str = "") -> None:
        self.traced = [*getattr(self, "traced", []), (episode, question, source)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("develop")
    (made / "llms.json").write_text(json.dumps(MODELS))
    return made


@pytest.fixture
def bench(folder: Path) -> Listening:
    return Listening(folder)


def values_of(chain: Chain) -> list[Any]:
    """What the widgets of the form hold for a chain."""
    held: list[Any] = [chain.name, len(chain.actions), chain.about]
    return held + [
        value for action in form.rows(chain) for value in form.action_values(action).values()
    ]


def execute(bench: Workbench, chain: Chain, index: int, steps: dict[int, Any]) -> list[list[Any]]:
    """Every screen of one action: steps, status, prompt, response."""
    return list(
        develop.on_execute_action(bench, index, "starter-qa", TITAN, True, steps, *values_of(chain))
    )


# one action


def test_one_action_runs_on_what_the_earlier_ones_answered_and_is_traced_alone(
    bench: Listening,
) -> None:
    running, *_, found = execute(bench, CHAIN, 0, {})
    assert "Running action 1" in running[1] and found[3].count('class="rb-hit"') == 3
    *_, read = execute(bench, CHAIN, 1, found[0])
    assert sorted(read[0]) == [0, 1] and "Titan" in read[0][1].reply.text
    traced = [(question, source, episode.steps) for episode, question, source in bench.traced]
    assert traced == [(TITAN, "develop", (read[0][0],)), (TITAN, "develop", (read[0][1],))]
    assert bench.traced[1][0].answer == read[0][1].reply.text


def test_an_action_that_fails_keeps_the_earlier_steps_and_its_trace_says_why(
    bench: Listening,
) -> None:
    *_, failed = execute(
        bench, Chain("c", (Action("generate", "{question}", "fstring", "down"),)), 0, {}
    )
    assert failed[0] == gr.skip() and "rb-error" in failed[3]
    ((episode, _, _),) = bench.traced
    assert episode.steps == () and episode.outcome is None and "127.0.0.1:9" in episode.error


def test_the_answer_is_shown_before_mlflow_is_told(bench: Listening) -> None:
    screens = develop.on_execute_chain(bench, "starter-qa", TITAN, True, *values_of(CHAIN))
    for screen in screens:
        if "Done: 2 actions" in str(screen[1]):
            assert not hasattr(bench, "traced")
    assert [len(episode.steps) for episode, _, _ in bench.traced] == [2]


def test_a_page_that_draws_slowly_makes_no_step_longer_and_is_not_asked_to_draw_every_word(
    bench: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulse, "PACE", 3600.0)
    words = " ".join(f"word{n}" for n in range(500))
    wordy = Chain("wordy", (Action("generate", words, "fstring", "echo"),))
    screens = 0
    for screen in develop.on_execute_chain(bench, "starter-qa", TITAN, True, *values_of(wordy)):
        screens += 1
        if "Running action 1" in str(screen[1]):
            time.sleep(2)
    ((episode, _, _),) = bench.traced
    assert episode.answer == words and episode.steps[0].seconds < 2
    assert screens < 50


def test_what_is_being_loaded_is_said_while_it_is_loaded(folder: Path) -> None:
    said = [screen[1] for screen in execute(Listening(folder), CHAIN, 0, {})]
    assert any("Loaded starter-bm25: " in str(status) for status in said) and said[-1] == ""
    screens = develop.on_execute_chain(
        Listening(folder), "starter-qa", TITAN, True, *values_of(CHAIN)
    )
    assert any("Loaded starter-bm25: " in str(screen[1]) for screen in screens)


def test_a_chain_that_names_what_is_not_there_ends_with_a_sentence_and_not_with_loading(
    bench: Listening,
) -> None:
    lost = Chain("c", (SEARCH, Action("generate", "{question}", "fstring", "gone")))
    *_, last = develop.on_execute_chain(bench, "starter-qa", TITAN, True, *values_of(lost))
    assert "rb-error" in last[1] and "gone" in last[1]


def test_an_empty_template_asks_nobody(bench: Listening) -> None:
    empty = Chain("c", (Action("retrieve", "", "fstring", "starter-bm25"),))
    ((steps, _, prompt, response),) = execute(bench, empty, 0, {})
    assert (steps, prompt) == (gr.skip(), gr.skip()) and "template is empty" in response
    shown, _ = develop.on_interpret(bench, 0, "starter-qa", TITAN, True, {}, *values_of(empty))
    assert "template is empty" in shown
    assert not hasattr(bench, "traced")


# what the browser keeps


def test_an_edited_chain_comes_back_as_it_was_and_the_shipped_one_needs_no_keeping(
    bench: Listening,
) -> None:
    kept = develop.on_keep(*values_of(CHAIN))
    back = develop.on_return(bench, kept)
    assert back[: -executed.SIZE] == form.write_chain(CHAIN)
    assert "before the page was loaded anew" in back[-executed.SIZE + 1]
    nothing = [gr.skip()] * len(back)
    shipped = develop.on_keep(*values_of(bench.workspace.chain("starter")))
    for text in ("", None, shipped, "[]", "{", '{"name": "x"}'):
        assert develop.on_return(bench, text) == nothing


def test_a_chain_that_cannot_be_read_yet_leaves_the_last_that_could() -> None:
    values = values_of(CHAIN)
    values[len(form.HEAD) + form.FIELDS.index("k")] = 0
    assert develop.on_keep(*values) == gr.skip() and develop.on_let_go() == ""


# a question of a run, opened from another tab


@pytest.fixture
def answered(bench: Listening) -> dict[str, Any]:
    """A question of a run of another chain, as another tab asks for it."""
    if "r" not in [run.name for run in bench.runs.list()]:
        alone = Chain("passed on", (Action("identity", "{question}"),))
        list(
            bench.runs.run(
                prepared(bench.workspace, alone, "starter-qa", limit=1, name="r", track=False)
            )
        )
    return {"run": "r", "position": 1, "at": 1.0}


def test_a_question_of_a_run_never_replaces_an_edited_chain_without_asking(
    bench: Listening, answered: dict[str, Any]
) -> None:
    kept, mine = develop.on_keep(*values_of(CHAIN)), values_of(CHAIN)
    tabs, *screen, asking, said = develop.on_asked_to_open(bench, answered, True, kept, *mine)
    assert (
        tabs.selected == "develop"
        and asking["visible"]
        and "which would replace the one that you edited" in said
    )
    assert screen == [gr.skip()] * len(screen), "nothing of the edited chain is replaced"
    assert develop.on_keep_mine() == [gr.update(visible=False), ""]
    *opened, asking, said = develop.on_replace(bench, answered, True)
    assert (
        opened[5 : 5 + len(form.HEAD)]
        == form.write_chain(Chain("passed on", (Action("identity", "{question}"),)))[
            : len(form.HEAD)
        ]
    )
    assert not asking["visible"] and said == ""


def test_a_chain_that_was_not_edited_or_is_saved_is_replaced_at_once(
    bench: Listening, answered: dict[str, Any]
) -> None:
    shipped = values_of(bench.workspace.chain("starter"))
    kept = develop.on_keep(*values_of(CHAIN))
    for text, values in (
        ("", shipped),
        (None, shipped),
        (kept, shipped),
        (develop.on_keep(*shipped), shipped),
    ):
        *screen, asking, said = develop.on_asked_to_open(bench, answered, True, text, *values)
        assert screen[1] == "starter-qa" and not asking["visible"] and said == ""
    saved = replace(CHAIN, name="saved")
    bench.asking.save_chain(saved, saved.name)
    *screen, asking, said = develop.on_asked_to_open(
        bench, answered, True, develop.on_keep(*values_of(saved)), *values_of(saved)
    )
    assert screen[1] == "starter-qa" and not asking["visible"], "a saved chain can be loaded again"


def test_nothing_is_asked_where_nothing_is_opened(bench: Listening) -> None:
    kept = develop.on_keep(*values_of(CHAIN))
    *screen, asking, said = develop.on_asked_to_open(bench, None, True, kept, *values_of(CHAIN))
    assert screen == [gr.skip()] * len(screen) and not asking["visible"] and said == ""


def test_the_page_asks_before_it_opens(bench: Listening) -> None:
    page = build_app(bench)
    changes = [
        fn.fn
        for fn in page.fns.values()
        if isinstance(fn.fn, functools.partial) and develop.on_open in fn.fn.args
    ]
    assert not changes, "no event opens a question without on_asked_to_open or on_replace"


# the form


def test_an_edit_redraws_only_the_actions_that_changed() -> None:
    chain = Chain("many", tuple(Action("identity", str(n)) for n in range(5)))
    moved = develop.on_edit("up", 3, *values_of(chain))[: -executed.SIZE - MAX_ACTIONS]
    per_action = [
        moved[start : start + len(form.FIELDS)] for start in range(3, len(moved), len(form.FIELDS))
    ]
    changed = [
        n for n, updates in enumerate(per_action) if updates != [gr.skip()] * len(form.FIELDS)
    ]
    assert changed == [2, 3]
    assert [per_action[n][1]["value"] for n in changed] == ["3", "2"]


def test_an_added_action_leaves_on_the_screen_what_was_executed_and_a_moved_one_does_not() -> None:
    assert develop.on_edit("add", 0, *values_of(CHAIN))[-executed.SIZE :] == executed.unchanged()
    assert develop.on_edit("down", 0, *values_of(CHAIN))[-executed.SIZE :] == executed.blank()


def test_loading_a_chain_blanks_what_the_one_before_it_answered(bench: Listening) -> None:
    assert develop.on_load_chain(bench, "starter")[-executed.SIZE :] == executed.blank()


def test_what_a_chain_is_for_is_saved_with_it(bench: Listening) -> None:
    develop.on_save_chain(bench, *values_of(CHAIN))
    assert bench.workspace.chain("mine") == CHAIN


def test_saving_says_when_it_takes_another_chains_place(bench: Listening) -> None:
    values = values_of(replace(CHAIN, name="twice"))
    first, second = (develop.on_save_chain(bench, *values)[1] for _ in range(2))
    assert "takes the place of the chain that had this name" in second and "place" not in first


# the questions


def test_a_search_says_how_many_it_found_and_the_next_set_begins_afresh(bench: Listening) -> None:
    found = develop.on_find(bench, "starter-qa", "napoleon")
    assert f"({len(found['choices'])} found" in found["label"] and 0 < len(found["choices"]) < 20
    assert develop.on_find(bench, "starter-qa", " ")["label"] == develop.QUESTION
    assert develop.on_dataset(bench, "starter-fact")[1]["label"] == develop.QUESTION
