"""The Chat tab: its handlers called as plain functions on a workspace with scripted models."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from rallebench.chains.saved import MAX_ACTIONS
from rallebench.core.types import (
    Action,
    Chain,
    Episode,
    Evidence,
    Generate,
    Hit,
    Message,
    Note,
    Passage,
    Reply,
    Retrieve,
    Step,
)
from rallebench.gui import form, views_chat
from rallebench.gui import keepalive as pulse
from rallebench.gui.tabs import chat
from rallebench.gui.views_chat import Turn
from rallebench.services.workbench import Workbench

MODELS = {
    "echo": {"backend": "scripted", "settings": {"echo": True}},
    "huygens": {"backend": "scripted", "settings": {"default": "Christiaan Huygens"}},
    "slow": {
        "backend": "scripted",
        "settings": {"default": "one two three four five six", "delay": 3},
    },
    "silent": {"backend": "scripted", "settings": {"default": ""}},
}
TITAN = "Who discovered Titan?"
SEARCH = Action("retrieve", "{question}", "fstring", "starter-bm25", 3)


class Listening(Workbench):
    """A workbench that remembers what it was asked to trace; nothing goes to MLflow."""

    def __init__(self, *places: Path, **settings: Any) -> None:
        super().__init__(*places, **settings)
        self.tracking.trace = self.trace  # type: ignore[method-assign]

    def trace(self, episode: Episode, question: str, source: str = "") -> None:
        self.traced = [*getattr(self, "traced", []), (episode, question, source)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("chat")
    (made / "llms.json").write_text(json.dumps(MODELS))
    return made


@pytest.fixture
def bench(folder: Path) -> Listening:
    return Listening(folder)


def ask(template: str, llm: str = "echo", **settings: Any) -> Action:
    return Action("generate", template, "fstring", llm, generation=settings)


def form_of(*actions: Action, name: str = "mine") -> list[Any]:
    """The values that the form in Develop has for a chain."""
    values: list[Any] = [name, len(actions), ""]
    for index in range(MAX_ACTIONS):
        action = actions[index] if index < len(actions) else Action("identity", "")
        values += form.action_values(action).values()
    return values


def send(
    bench: Workbench, text: str, *actions: Action, turns: Sequence[Turn] = ()
) -> list[list[Any]]:
    """Every screen of a turn: state, messages, Send, Stop, text box."""
    return list(chat.on_send(bench, list(turns), text, chat.DEVELOP, *form_of(*actions)))


def drawn(screens: list[list[Any]]) -> list[list[Any]]:
    """The screens that draw something: a silent pulse only lets the page breathe."""
    return [screen for screen in screens if isinstance(screen[0], list)]


def last_turn(screens: list[list[Any]]) -> Turn:
    turn: Turn = drawn(screens)[-1][0][-1]
    return turn


def texts(messages: list[dict[str, Any]]) -> list[str]:
    return [message["content"][0]["text"] for message in messages]


def answered(question: str, answer: str) -> Turn:
    return Turn(question, answer=answer, state="done")


# ── a turn ───────────────────────────────────────────────────────────────────


def test_the_last_action_is_streamed_into_the_answer(
    bench: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulse, "PACE", 0.0)
    screens = drawn(send(bench, TITAN, SEARCH, ask("{question} once and again")))
    seen = [screen[0][-1].answer for screen in screens if screen[0][-1].answer]
    whole = f"{TITAN} once and again"
    assert seen[-1] == whole and len(set(seen)) == len(whole.split())
    assert all(whole.startswith(text) for text in seen)


def test_an_earlier_action_is_not_streamed_into_the_answer(
    bench: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulse, "PACE", 0.0)
    screens = drawn(send(bench, TITAN, ask("thinking of {question}"), ask("{response[0]}: done")))
    running = [screen[0][-1] for screen in screens if not screen[0][-1].steps]
    assert [turn.answer for turn in running] == [""] * len(running)
    assert "Action 1 of 2: asking echo …" in [turn.activity for turn in running]


def test_the_answer_stands_first_and_the_steps_fold_under_it(bench: Listening) -> None:
    messages = drawn(send(bench, TITAN, SEARCH, ask("{response[0]} {question}", "huygens")))[-1][1]
    assert [m["role"] for m in messages] == ["user"] + ["assistant"] * 5
    assert texts(messages)[:2] == [TITAN, "Christiaan Huygens"]
    assert messages[2]["metadata"]["title"].startswith("Cost: ")
    assert [m["metadata"]["title"] for m in messages[3:]] == [
        "Sources: 3 passages from 2 pages",
        "1 · Retriever starter-bm25: 3 passages",
        "2 · LLM huygens",
    ]
    assert {m["metadata"]["status"] for m in messages[2:]} == {"done"}, (
        "a step is folded until it is opened"
    )
    retrieval, generation = messages[4], messages[5]
    assert "page 1047" in texts([retrieval])[0] and "Titan (moon)" in texts([retrieval])[0]
    assert (
        "tokens" in generation["metadata"]["log"]
        and "Titan is the largest moon" in texts([generation])[0]
    )


def test_a_reply_from_memory_says_so(bench: Listening) -> None:
    chain = (ask("{question} remembered?", "huygens"),)
    send(bench, TITAN, *chain)
    assert "from memory" in drawn(send(bench, TITAN, *chain))[-1][1][-1]["metadata"]["log"]


def test_the_sources_are_the_passages_of_the_last_prompt_with_the_answer_marked(
    bench: Listening,
) -> None:
    messages = drawn(send(bench, TITAN, SEARCH, ask("{documents[0][0][text]}", "huygens")))[-1][1]
    assert messages[3]["metadata"]["title"] == "Sources: 1 passage from 1 page"
    assert '<mark class="rb-answer">Christiaan Huygens</mark>' in texts(messages)[3]
    no_passage = drawn(send(bench, TITAN, SEARCH, ask("{question}", "huygens")))[-1][1]
    assert not [
        m for m in no_passage if m.get("metadata", {}).get("title", "").startswith("Sources")
    ]


def test_a_retriever_as_last_action_answers_with_its_passages(bench: Listening) -> None:
    screens = send(bench, TITAN, ask("{question}", "huygens"), SEARCH)
    shown = texts(drawn(screens)[-1][1])[1]
    assert shown.startswith("1. **Titan (moon)** Titan is the largest moon of Saturn")
    assert shown.count("\n") == 2
    assert last_turn(screens).answer.startswith("Titan (moon), Titan is the largest")


def test_a_retriever_that_finds_nothing_says_so(bench: Listening) -> None:
    assert texts(drawn(send(bench, "xyzzy qwrtp", SEARCH))[-1][1])[1] == (
        "No passage shares anything with this question."
    )


def test_an_identity_as_last_action_answers_with_its_text(bench: Listening) -> None:
    screens = send(bench, TITAN, SEARCH, Action("identity", "{question} – {wiki_id_title[0]}"))
    assert last_turn(screens).answer.startswith(f"{TITAN} – Titan (moon), 1047; ")


def test_an_empty_template_ends_the_chain_and_the_answer_is_what_came_before(
    bench: Listening,
) -> None:
    screens = send(bench, TITAN, ask("{question}", "huygens"), ask(""), ask("never"))
    turn = last_turn(screens)
    assert (turn.state, turn.answer, len(turn.steps)) == ("done", "Christiaan Huygens", 1)
    assert "The template of action 2 is empty" in texts(drawn(screens)[-1][1])[1]
    nothing = last_turn(send(bench, TITAN, ask("")))
    assert nothing.state == "failed" and "template of action 1 is empty" in nothing.error


def test_an_empty_answer_is_not_a_blank_bubble(bench: Listening) -> None:
    screens = send(bench, TITAN, ask("{question}", "silent"))
    assert (
        last_turn(screens).state == "done"
        and "The answer is empty." in texts(drawn(screens)[-1][1])[1]
    )


def test_loading_is_told_while_it_happens(tmp_path: Path) -> None:
    (tmp_path / "llms.json").write_text(json.dumps(MODELS))
    screens = drawn(send(Listening(tmp_path), TITAN, SEARCH, ask("{question}")))
    assert any("Building starter-bm25" in texts(screen[1])[1] for screen in screens)
    assert last_turn(screens).state == "done"


def test_a_finished_turn_is_traced_once_as_chat(bench: Listening) -> None:
    send(bench, TITAN, ask("{question}", "huygens"))
    ((episode, question, source),) = bench.traced
    assert (episode.answer, question, source) == ("Christiaan Huygens", TITAN, "chat")


# ── what goes wrong ──────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("actions", "said"),
    [
        (
            (SEARCH, ask("{nothing}")),
            "Action 2: Template at line 1, character 1: there is no variable",
        ),
        ((SEARCH, ask("{question}", "gpt-9")), "There is no language model 'gpt-9'."),
        (
            (Action("retrieve", "{question}", "fstring", "starter-bm52"),),
            "Did you mean 'starter-bm25'",
        ),
        ((ask("{question}", ""),), "There is no language model ''"),
        ((Action("retrieve", "{question}", "fstring", "starter-bm25", 0),), "Action 1: k is 0"),
    ],
)
def test_an_error_is_one_sentence_in_the_conversation_and_the_question_stays(
    bench: Listening, actions: tuple[Action, ...], said: str
) -> None:
    screens = drawn(send(bench, TITAN, *actions))
    turn = last_turn(screens)
    assert (turn.question, turn.state) == (TITAN, "failed") and said in turn.error
    shown = texts(screens[-1][1])
    assert shown[0] == TITAN and 'class="rb-error"' in shown[1] and "Traceback" not in shown[1]
    assert screens[-1][2]["interactive"] is True, "the next question can be sent"


def test_a_bug_ends_the_turn_and_nothing_else(
    bench: Listening, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> Any:
        raise KeyError("oops")

    bench.asking.chat = broken  # type: ignore[method-assign]
    turn = last_turn(send(bench, TITAN, ask("{question}")))
    assert turn.state == "failed" and turn.error.startswith(
        "Internal error, please report it: KeyError"
    )
    assert "Traceback" in caplog.text, "a bug keeps its traceback in the log"


def test_a_chain_that_is_gone_or_new_is_followed_when_the_tab_is_opened(bench: Listening) -> None:
    bench.asking.save_chain(Chain("saved", (ask("{history} {question}"),)), "saved")
    offer, line = chat.on_tab(bench, "saved", *form_of(SEARCH))
    assert (
        ("saved", "saved") in offer["choices"]
        and "LLM echo" in line
        and "sees earlier turns" in line
    )
    (bench.workspace.path / "chains" / "saved.json").unlink()
    offer, line = chat.on_tab(bench, "saved", *form_of(SEARCH))
    assert ("saved", "saved") not in offer["choices"] and "rb-error" in line


def test_a_saved_chain_answers_instead_of_the_form(bench: Listening) -> None:
    bench.asking.save_chain(Chain("loud", (ask("{question}!!"),)), "loud")
    screens = list(chat.on_send(bench, [], TITAN, "loud", *form_of(ask("{question}", "silent"))))
    assert last_turn(screens).answer == f"{TITAN}!!"


def test_the_line_says_when_a_chain_does_not_see_earlier_turns(bench: Listening) -> None:
    assert "no {history}" in chat.on_chain(bench, chat.DEVELOP, *form_of(SEARCH))
    evaluated = Action("identity", "question + history", "eval")
    assert "sees earlier turns" in chat.on_chain(bench, chat.DEVELOP, *form_of(SEARCH, evaluated))
    assert "no variable &#x27;x&#x27;" in chat.on_chain(bench, chat.DEVELOP, *form_of(ask("{x}")))
    assert "is empty" in chat.on_chain(bench, chat.DEVELOP, *form_of(ask("")))


# ── one turn after another ───────────────────────────────────────────────────


def test_earlier_turns_reach_the_template_without_steps_errors_and_stopped_answers(
    bench: Listening,
) -> None:
    chain = (SEARCH, ask("{history}|{question}"))
    turns = drawn(send(bench, "First?", SEARCH, ask("An answer.")))[-1][0]
    turns = drawn(send(bench, "Fails?", ask("{x}"), turns=turns))[-1][0]
    turns = [*turns, Turn("Stopped?", answer="half an", state="stopped")]
    final = last_turn(send(bench, "Second?", *chain, turns=turns))
    assert final.answer == "User: First?\nAssistant: An answer.|Second?"


def test_a_first_question_has_no_history(bench: Listening) -> None:
    assert last_turn(send(bench, TITAN, ask("[{history}] {question}"))).answer == f"[] {TITAN}"


def test_the_history_keeps_the_newest_turns_within_its_limits() -> None:
    many = [answered(f"q{n}", f"a{n}") for n in range(30)]
    told = chat.history(many)
    assert len(told) == 2 * chat.HISTORY_TURNS
    assert (told[0], told[-1]) == (Message("user", "q20"), Message("assistant", "a29"))
    long = [answered("q" * 5_000, "a" * 5_000) for _ in range(9)]
    told = chat.history(long)
    assert {len(message.content) for message in told} == {chat.MESSAGE_CHARACTERS}
    assert sum(len(message.content) for message in told) <= chat.HISTORY_CHARACTERS
    assert [message.role for message in told] == ["user", "assistant"] * 2


def test_the_text_box_is_emptied_once_and_then_left_to_the_next_question(bench: Listening) -> None:
    screens = drawn(send(bench, TITAN, SEARCH, ask("{question}")))
    assert screens[0][4] == "" and "" not in [screen[4] for screen in screens[1:]]


def test_nothing_is_asked_while_a_turn_is_running_and_the_text_stays(bench: Listening) -> None:
    busy = [Turn("still running")]
    assert send(bench, "next", ask("{question}"), turns=busy) == [[gr.skip()] * 5]
    assert send(bench, "   ", ask("{question}")) == [[gr.skip()] * 5]
    assert list(chat.on_retry(bench, busy, chat.DEVELOP, *form_of(ask("{question}")))) == [
        [gr.skip()] * 5
    ]
    assert list(chat.on_retry(bench, [], chat.DEVELOP, *form_of(ask("{question}")))) == [
        [gr.skip()] * 5
    ]
    _, _, sending, stopping = chat.screen_of(busy)
    assert (sending["interactive"], stopping["interactive"]) == (False, True)


def test_asking_again_replaces_the_last_turn_with_the_chain_as_it_is_now(bench: Listening) -> None:
    turns = drawn(send(bench, "First?", ask("one")))[-1][0]
    turns = drawn(send(bench, "Second?", ask("{x}"), turns=turns))[-1][0]
    screens = list(chat.on_retry(bench, turns, chat.DEVELOP, *form_of(ask("{history}|{question}"))))
    now = drawn(screens)[-1][0]
    assert [turn.question for turn in now] == ["First?", "Second?"]
    assert now[1].answer == "User: First?\nAssistant: one|Second?"


def test_two_conversations_share_nothing(bench: Listening) -> None:
    chain = (ask("{history}|{question}"),)
    mine = drawn(send(bench, "My secret?", *chain))[-1][0]
    theirs = drawn(send(bench, "Yours?", *chain))[-1][0]
    assert [turn.answer for turn in theirs] == ["|Yours?"]
    assert [turn.question for turn in mine] == ["My secret?"]


def test_clearing_starts_a_new_conversation() -> None:
    turns, messages, sending, stopping = chat.on_clear()
    assert (turns, messages) == ([], []) and sending["interactive"] and not stopping["interactive"]


# ── stopping ─────────────────────────────────────────────────────────────────


def test_stopping_keeps_what_was_said_and_stops_the_model(bench: Listening) -> None:
    values = form_of(ask("{question} slowly", "slow"))
    screens = chat.on_send(bench, [], TITAN, chat.DEVELOP, *values)
    turns = next(s[0] for s in screens if isinstance(s[0], list) and s[0][-1].answer)
    screens.close()  # type: ignore[attr-defined]
    turns, messages, sending, stopping = chat.on_stop(turns)
    assert turns[-1].state == "stopped" and turns[-1].answer.startswith("one")
    assert turns[-1].answer != MODELS["slow"]["settings"]["default"]  # type: ignore[index]
    assert "Stopped by you." in texts(messages)[1]
    assert sending["interactive"] and not stopping["interactive"]
    deadline = time.monotonic() + 10
    while any(t.name == "chat" and t.is_alive() for t in threading.enumerate()):
        assert time.monotonic() < deadline, "the thread of a stopped turn ends"
        time.sleep(0.05)
    fresh = bench.models.backends.llms["slow"]
    assert fresh.requests and not bench.asking.memo.get(
        fresh.requests[-1], bench.models.backends
    ), "half an answer is not kept"
    assert not hasattr(bench, "traced")


def test_a_model_that_is_silent_does_not_hold_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "PULSE", 0.01)
    gate = threading.Event()

    def thinking() -> Iterator[str]:
        yield "before"
        gate.wait(5)
        yield "after"

    events = pulse.pulsed(thinking(), "chat")
    assert next(events) == "before"
    assert [next(events) for _ in range(3)] == [None] * 3
    gate.set()
    assert [event for event in events if event is not None] == ["after"]


def test_an_error_in_the_thread_of_a_turn_reaches_the_page() -> None:
    def failing() -> Iterator[str]:
        yield "before"
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        list(pulse.pulsed(failing(), "chat"))


def test_a_wait_of_whole_seconds_is_shown() -> None:
    turn = Turn("q", activity="Asking it …")
    assert chat.grown(turn, None, 0.7) is turn, "nothing is redrawn for a fraction of a second"
    assert "Asking it … 3 s" in views_chat.answer(chat.grown(turn, None, 3.2))


# ── nothing in a text is obeyed ──────────────────────────────────────────────

NASTY = (
    '<img src=x onerror="alert(1)">\n\n<script>alert(2)</script> ![see](http://evil.example/?q=1)'
)


def test_markup_in_a_question_and_an_answer_is_shown_and_no_image_is_fetched() -> None:
    for shown in texts(views_chat.messages([answered(NASTY, NASTY)])):
        assert "<img" not in shown and "<script" not in shown and "![see]" not in shown
        assert "&lt;img" in shown


def test_markup_in_passages_prompts_and_names_is_shown_as_text() -> None:
    passage = Passage("d1", f"first\n\n{NASTY}", NASTY, "<b>7</b>")
    hit = Hit(passage, 1.0)
    steps = (
        Step(Retrieve("<i>*r*</i>", NASTY, 1), Reply(NASTY, (hit,)), 0.1),
        Step(
            Generate("m", (Message("user", passage.text),), evidence=Evidence()), Reply(NASTY), 0.1
        ),
        Step(Note(passage.text), Reply(passage.text)),
    )
    messages = views_chat.messages([Turn("q", 2, answer="a", steps=steps, state="done")])
    folded = messages[2:]
    assert [m["metadata"]["title"] for m in folded] == [
        r"Cost: 0.200 s, tokens not counted, \$ unknown",
        "Sources: 1 passage from 1 page",
        r"1 · Retriever &lt;i&gt;\*r\*&lt;/i&gt;: 1 passage",
        "2 · LLM m",
        "3 · Identity",
    ]
    for shown in texts(folded):
        assert "<img" not in shown and "<script" not in shown
        assert "\n" not in shown, "a blank line would end the HTML and let Markdown in"
    last = views_chat.messages([Turn("q", 0, steps=steps[:1], state="done")])
    assert "<img" not in texts(last)[1] and "![see]" not in texts(last)[1]
    assert "<b>7" not in "".join(texts(folded))


def test_an_error_that_quotes_markup_is_shown_as_text() -> None:
    shown = views_chat.answer(Turn("q", error=f"no {NASTY}", state="failed"))
    assert "<img" not in shown and "&lt;img" in shown
