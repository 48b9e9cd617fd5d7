"""R-Eval's taxonomy on hand-made episodes: the verdicts of its code, and ours by default."""

from __future__ import annotations

from typing import Any

import pytest

from rallebench import sandbox
from rallebench.analysis.agents import AgentTask, EpisodeSummary, System, TaskRun
from rallebench.analysis.agents.errors import CLASSES, ORIGINAL, breakdown, classify
from rallebench.analysis.agents.reading import summarize
from rallebench.analysis.agents.traces import observed_by, observed_in, scratchpad_text
from rallebench.core.types import (
    Episode,
    Example,
    Generate,
    Gold,
    Message,
    Note,
    Outcome,
    Question,
    Reply,
    Step,
    ToolCall,
    UseTool,
)
from rallebench.workflows import REASONS

GOLD = "Christiaan Huygens"


def model_step(label: str, text: str) -> Step:
    return Step(
        Generate("m", (Message("user", f"Question: Who?\n{label}:"),)),
        Reply(text, prompt_tokens=7, completion_tokens=1),
        0.5,
    )


def observation_step(text: str, label: str = "Observation 1: ") -> Step:
    return Step(Note(label + text), Reply(label + text))


def react(answer: str, seen: str, reason: str = "answered", last: str = "") -> Episode:
    """An episode of ReAct that searches once and then ends in this way."""
    steps = [
        model_step("Thought 1", "I search."),
        model_step("Action 1", "Search[Titan]"),
        observation_step(seen),
    ]
    steps += (
        [
            model_step("Action 2", last or f"Finish[{answer}]"),
            observation_step("Episode finished.", "Observation 2: "),
        ]
        if reason == "answered"
        else []
    )
    return Episode("q", "react", tuple(steps), Outcome(answer, reason))


def row(episode: Episode, gold: str = GOLD, **more: Any) -> EpisodeSummary:
    return summarize(Example(Question("q", "Who?"), Gold((gold,))), episode, **more)


FOUND, NOTHING = f"Titan was found by {GOLD} in 1655.", "Titan is a moon."
CASES = [
    ("answered with evidence", react(GOLD, FOUND), "EM", "EM"),
    (
        "answered from inner knowledge: the model's own Finish hides it from R-Eval",
        react(GOLD, NOTHING),
        "EM",
        "AM",
    ),
    ("another wording, from inner knowledge", react("Christiaan H", NOTHING), "AM", "AM"),
    ("half right counts as right", react("Huygens", FOUND), "EM", "EM"),
    ("evidence, another answer", react("Galilei", FOUND), "GE", "GE"),
    ("the model said nothing", react("", NOTHING, "model_error"), "ME", "ME"),
    ("a tool failed", react("", NOTHING, "tool_error"), "TE", "TE"),
    ("no step left", react("", NOTHING, "step_limit"), "TE", "SL"),
    ("no context left", react("", NOTHING, "context_limit"), "TE", "CL"),
    ("no time left", react("", NOTHING, "time_limit"), "TE", "OL"),
    ("no evidence, another answer", react("Galilei", NOTHING), "RE", "RE"),
    ("gave up", react("", NOTHING, "gave_up"), "RE", "RE"),
    (
        "the gold inside a word proves nothing",
        react("Galilei", "The Christiaan Huygensian order."),
        "GE",
        "RE",
    ),
    (
        "the model's own guess proves nothing",
        react("Galilei", NOTHING, last=f"Lookup[{GOLD}]"),
        "GE",
        "RE",
    ),
    (
        "a search tree never halts at R-Eval",
        Episode("q", "dfsdt", (), Outcome("", "step_limit")),
        "RE",
        "SL",
    ),
]


@pytest.mark.parametrize(
    ("case", "episode", "original", "ours"), CASES, ids=[case[0] for case in CASES]
)
def test_an_episode_is_of_one_class_as_reval_counts_and_of_one_as_we_do(
    case: str, episode: Episode, original: str, ours: str
) -> None:
    assert classify(row(episode, original=True), original=True) == original
    assert classify(row(episode)) == ours


def test_every_class_and_every_reason_has_a_case() -> None:
    assert {original for _, _, original, _ in CASES} == set(ORIGINAL)
    assert {ours for *_, ours in CASES} == set(CLASSES)
    ended = (Episode("q", "react", (), Outcome("", reason)) for reason in REASONS)
    assert {classify(row(episode)) for episode in ended} <= set(CLASSES)


def test_yes_and_no_are_evidence_of_nothing_but_stand_in_every_scratchpad_for_reval() -> None:
    episode = react("yes", "No moon is known.")
    assert classify(row(episode, "no", original=True), original=True) == "GE"
    assert classify(row(episode, "no")) == "RE"
    assert classify(row(react("no", "No moon."), "no")) == "AM"


def test_a_reward_of_five_hundredths_is_right() -> None:
    for words, reward, expected in ((38, 2 / 41, "RE"), (37, 2 / 40, "AM")):
        answer = " ".join(f"w{n}" for n in range(words)) + " Huygens"
        summary = row(react(answer, NOTHING))
        assert (summary.reward, classify(summary)) == (pytest.approx(reward), expected)


def test_scratchpads_are_revals_and_observations_only_the_environments() -> None:
    episode = react("Galilei", FOUND)
    assert scratchpad_text(episode) == (
        f"\nThought 1: I search.\nAction 1: Search[Titan]\nObservation 1: {FOUND}\nAction 2: Finish[Galilei]\nObservation 2: Episode finished."
    )
    assert observed_by(episode) == FOUND == observed_in(scratchpad_text(episode))


@pytest.mark.parametrize(
    "echo",
    [
        f"Could not find [{GOLD}]. Similar: ['Titan']",
        f"There is no tool '{GOLD}'. The tools are Search, Finish.",
    ],
)
def test_the_models_own_words_in_an_observation_are_no_evidence(echo: str) -> None:
    assert classify(row(react(GOLD, echo))) == "AM"
    assert classify(row(react("Galilei", echo))) == "RE"
    assert classify(row(react(GOLD, f"Could not find [Titan]. Similar: ['{GOLD}']"))) == "EM"


def test_a_programs_observations_are_the_answers_to_its_calls() -> None:
    steps = (
        model_step("", "```python\nprint(Search('x'))\n```"),
        Step(
            UseTool(
                sandbox.TOOL, {"session": "s", "program": "print(Search('x'))", "functions": "{}"}
            ),
            Reply("", tool_calls=(ToolCall("1", "Search", "{}"),)),
        ),
        Step(UseTool(sandbox.TOOL, {"session": "s", "observation": FOUND}), Reply("Galilei\n")),
    )
    episode = Episode("q", "pal", steps, Outcome("Galilei"))
    assert observed_by(episode) == FOUND and classify(row(episode)) == "GE"
    assert scratchpad_text(episode).endswith(f"{FOUND} Galilei")


REACT = System("react", "m")


def cell(task: AgentTask, *episodes: Episode, failed: int = 0) -> TaskRun:
    return TaskRun("r", REACT, task, tuple(map(row, episodes)), failed)


EASY, HARD = AgentTask("soay_easy", "aminer", "KS"), AgentTask("hotpotqa", "wiki", "KA")


def test_shares_are_of_the_questions_there_are_and_places_weigh_the_same() -> None:
    cells = [
        cell(EASY, react(GOLD, FOUND), failed=3),
        cell(HARD, react(GOLD, FOUND), *[react("", NOTHING, "step_limit")] * 3),
    ]
    found = breakdown(REACT, cells)
    assert (found.shares["EM"], found.shares["SL"]) == ((100 + 25) / 2, 75 / 2)
    assert sum(found.shares.values()) == 100
    value = found.to_json(list(CLASSES))
    assert (value["n"], value["failed"], value["counts"]) == (5, 3, {"EM": 2, "SL": 3})
    assert value["stop_reasons"] == {"EM": {"answered": 2}, "SL": {"step_limit": 3}}
    assert len(value["examples"]["SL"]) == 3


def test_reval_divides_every_count_by_a_hundred() -> None:
    cells = [cell(EASY, react(GOLD, FOUND)), cell(HARD, *[react("", NOTHING, "step_limit")] * 4)]
    shares = breakdown(REACT, cells, original=True).shares
    assert (shares["EM"], shares["TE"], shares["SL"]) == (0.5, 2.0, 0)


def test_questions_without_an_answer_are_in_no_class_and_blind_traces_are_counted() -> None:
    without = summarize(Example(Question("q", "Who?"), Gold()), react("x", NOTHING))
    rows = (without, row(react(GOLD, "")), row(react(GOLD, FOUND)))
    found = breakdown(REACT, [TaskRun("r", REACT, EASY, rows)])
    assert (found.n, found.unscored, found.blind) == (2, 1, 1)
