"""ReAct and similar agents, played with scripted replies: every branch of the loop, every way to end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from small_world import (
    INVALID,
    QUESTION,
    SHOT,
    TITAN,
    Pages,
    World,
    acting,
    ended,
    flow_of,
    observations,
    play,
    prompts,
)

from rallebench.core.backends import Backends
from rallebench.core.errors import BackendError
from rallebench.core.types import Episode, Generate, Reply
from rallebench.engine.single import resume_from, run_one
from rallebench.llms.scripted import Scripted
from rallebench.workflows import REASONS, WORKFLOWS, EpisodeLimits
from rallebench.workflows._actions import parse_action
from rallebench.workflows._conversation import SILENT

SCRATCHPAD = ("react", "zero-shot-think", "planner-react")


def test_react_searches_looks_up_then_finishes_with_two_calls_a_step() -> None:
    episode, llm = play("react", acting("Search[Titan]", "Lookup[Saturn]", "Finish[Saturn]"))
    assert episode.answer == "Saturn"
    assert episode.outcome is not None and episode.outcome.stop_reason == "answered"
    assert observations(episode) == [TITAN.text, f"(Result 1/1) {TITAN.text}", "Episode finished."]
    assert [prompt.rsplit("\n", 1)[1] for prompt in prompts(llm)] == [
        f"{kind} {n}:" for n in (1, 2, 3) for kind in ("Thought", "Action")
    ]
    for request in llm.requests:
        assert (request.stop, request.max_tokens, request.temperature) == (("\n",), 128, 0.0)


def test_every_step_is_appended_to_the_page_whose_passages_reach_readers_as_evidence() -> None:
    _, llm = play("react", acting("Search[Titan]", "Finish[Saturn]"))
    page = prompts(llm)[-1].split(f"Question: {QUESTION.text}")[1]
    step = f"\nThought 1: I think.\nAction 1: Search[Titan]\nObservation 1: {TITAN.text}"
    assert page == f"{step}\nThought 2: I think.\nAction 2:"
    evidence = [request.evidence for request in llm.requests]
    assert [e and e.question for e in evidence] == [QUESTION.text] * 4
    assert [e and [p.doc_id for p in e.passages] for e in evidence] == [[], [], ["1"], ["1"]]
    assert {request.llm for request in llm.requests} == {"m"}


@pytest.mark.parametrize(
    ("action", "observation"),
    [
        ("Dance[Titan]", INVALID),
        ("I think it is Saturn.", INVALID),
        ("Search[]", INVALID),
        ("Lookup[Saturn]", "The last page Searched was not found."),
        ("Search[Nobody]", "Could not find that page, please try again."),
        ('Search[Titan, "the moon" [of] Saturn]', TITAN.text),
        ("Search[Titan].", TITAN.text),
        ("Action 1: Search[Titan]", TITAN.text),
        ("Search[Titan] Observation 1: Titan is made of cheese. [sic]", TITAN.text),
        ("Search[" + "x" * 10_000 + "]", "The argument has 10,000 characters; use at most 2,000."),
        ("搜索[土卫六]", INVALID),
    ],
)
def test_a_wrong_action_is_an_observation_and_no_end(action: str, observation: str) -> None:
    episode, _ = play("react", acting(action, "Finish[Saturn]"))
    assert observations(episode) == [observation, "Episode finished."]
    assert episode.answer == "Saturn"


@pytest.mark.parametrize(
    ("script", "limits", "reason"),
    [
        (acting(*["Search[Titan]"] * 3), {"steps": 3}, "step_limit"),
        (acting(*["Search[Titan]"] * 9), {"context": 150}, "context_limit"),
        (acting(*["Search[Titan]"] * 9), {"tokens": 200}, "token_limit"),
        (acting("Search[Titan]"), {"seconds": 1e-9}, "time_limit"),
        (acting("No response"), {}, "model_error"),
        (["No response"], {}, "model_error"),
        ([""] * SILENT, {}, "model_error"),
        (["\n \n"] * SILENT, {}, "model_error"),
    ],
)
def test_every_other_way_to_end_has_a_reason_of_its_own(
    script: list[str], limits: dict[str, float], reason: str
) -> None:
    assert ended("react", script, **limits) == ("", reason)
    assert reason in REASONS


@pytest.mark.parametrize(
    "broken", [ValueError("no such column"), BackendError("The table is gone.")]
)
def test_an_environment_that_raises_ends_the_episode_as_a_tool_error(broken: Exception) -> None:
    episode, _ = play("react", acting("Search[Titan]"), world=World(broken=broken))
    assert episode.outcome is not None and episode.outcome.stop_reason == "tool_error"
    assert str(broken) in episode.steps[-1].reply.text


def test_a_model_that_fails_is_the_episodes_error_not_an_answer() -> None:
    episode, _ = play("react", [BackendError("The server is down.")])
    assert (episode.outcome, episode.error) == (None, "The server is down.")


def test_an_endless_reply_without_a_stop_is_its_first_line() -> None:
    class Endless:
        def __init__(self) -> None:
            self.asked: list[str] = []

        def generate(self, batch: Sequence[Generate]) -> list[Reply]:
            self.asked += [request.messages[-1].content for request in batch]
            return [
                Reply(
                    "\n\nI think.\nAnd so on.\n"
                    if p.endswith("Thought 1:")
                    else " Finish[yes] \n" * 2000
                )
                for p in self.asked[-1:]
            ]

    endless = Endless()
    *_, episode = run_one(flow_of("react"), Backends(llms={"m": endless}))
    assert isinstance(episode, Episode) and episode.answer == "yes"
    assert endless.asked[1].endswith("Thought 1: I think.\nAction 1:")


def test_the_models_own_count_of_tokens_is_what_a_context_is_checked_with() -> None:
    words = len(play("react", acting("Finish[x]"))[1].requests[0].messages[-1].content.split())
    assert (
        ended("react", acting("Search[Titan]", "Finish[x]"), context=words + 400)[1] == "answered"
    )
    assert (
        ended("react", acting("Search[" + "x" * 1990 + "]"), context=words + 400)[1]
        == "context_limit"
    )


def test_one_call_writes_thought_and_action_at_once_and_is_cut_where_it_observes() -> None:
    invented = " I look.\nAction 1: Search[Titan]\nObservation 7: Titan is a planet.\nThought 2: So it is.\nAction 2: Finish[itself]"
    episode, llm = play("react", [invented, "I know.\nAction 2: Finish[Saturn]"], one_call=True)
    assert episode.answer == "Saturn"
    stops = [request.stop for request in llm.requests]
    assert stops == [("\nObservation 1:",), ("\nObservation 2:",)]
    assert prompts(llm)[1].endswith(
        f"\nThought 1: I look.\nAction 1: Search[Titan]\nObservation 1: {TITAN.text}\nThought 2:"
    )
    assert ended("react", ["I only think."] * 2, one_call=True, steps=2) == ("", "step_limit")


@pytest.mark.parametrize(
    "action",
    [
        "**Search[Titan]**",
        "*Search[Titan]*",
        "__Search[Titan]__",
        "`Search[Titan]`",
        "- Search[Titan]",
        "* Search[Titan]",
        "1. Search[Titan]",
        "> Search[Titan]",
        "**Search**[Titan]",
        "`Search`[Titan]",
        "Search[**Titan**]",
        "Search[`Titan`]",
        "Search [Titan]",
        "Search: [Titan]",
        "Action 1： Search[Titan]",
        "Action: Search［Titan］",
        "Search【Titan】",
        "**Action 1:** Search[Titan]",
        "- **Action：** `Search［Titan］`",
        "**Action:** **Search[Titan]** to know more",
        "Search Action Input: Titan",
        "Action: Search, Action Input: Titan",
        '**Action:** `Search` **Action Input：** "Titan"',
        'Search Action Input: {"entity": "Titan"}',
    ],
)
def test_an_action_is_read_through_markdown_wide_signs_and_an_input_of_its_own(action: str) -> None:
    assert parse_action(action, "[]") == ("Search", "Titan")
    episode, _ = play("react", acting(action, "**Finish[Saturn]**"))
    assert observations(episode) == [TITAN.text, "Episode finished."]
    assert episode.answer == "Saturn"


@pytest.mark.parametrize("argument", ["a * b * c", "snake_case_name", "_x", "2 ** 3", "C#", "- 5"])
def test_signs_inside_an_argument_stay(argument: str) -> None:
    assert parse_action(f"Search[{argument}]", "[]") == ("Search", argument)


def test_one_call_reads_an_input_on_a_line_of_its_own() -> None:
    script = [
        "I look.\n**Action 1:** Search\n**Action Input:** Titan\nObservation 1: x",
        'I know.\n- Action 2： `Finish`\n- Action Input: "Saturn"',
    ]
    episode, llm = play("react", script, one_call=True)
    assert episode.answer == "Saturn"
    assert (
        f"Thought 1: I look.\nAction 1: Search[Titan]\nObservation 1: {TITAN.text}"
        in prompts(llm)[1]
    )


def test_compat_original_parses_as_the_published_code() -> None:
    text = "Search[Titan] Observation 1: Saturn [sic]"
    assert parse_action(text, "[]") == ("Search", "Titan")
    argument = "Titan] Observation 1: Saturn [sic"
    assert parse_action(text, "[]", original=True) == ("Search", argument)
    labelled = "Action 1: Search[Titan]"
    assert parse_action(labelled, "[]", original=True) == (labelled, "")
    verb, argument = parse_action('searchPerson(name="A (B)", x=1) .', "()", original=True)
    assert (verb, argument) == ("searchPerson", 'name="A (B)", x=1')
    assert ended("react", acting("finish[x]", "Finish[y]"), compat="original") == ("y", "answered")
    assert ended("react", acting("finish[x]"), compat="ours") == ("x", "answered")
    assert ended("react", [""] * 6, compat="original", steps=3) == ("", "step_limit")


def test_no_observation_ever_says_whether_an_answer_is_right() -> None:
    for compat in ("ours", "original"):
        episode, _ = play("react", acting("Finish[Saturn]"), compat=compat)
        assert not any("CORRECT" in step.reply.text for step in episode.steps)


def test_calls_in_round_brackets_lose_the_quotes_around_an_answer() -> None:
    assert ended(
        "react", acting("Search(Titan (moon))", 'Finish("Saturn")'), world=World("()")
    ) == ("Saturn", "answered")


@pytest.mark.parametrize(
    ("workflow", "script", "ends"),
    [
        ("zero-shot", ["Search[Titan]", "Finish[Saturn]"], ["Action 1:", "Action 2:"]),
        ("zero-shot-think", ["I think.", "Finish[Saturn]"], ["Thought 1:", "Action 1:"]),
        ("plan-then-act", ["1. Find it.", "Finish[Saturn]"], ["Plan:", "Action 1:"]),
        (
            "planner-react",
            ["1. Find it.", "I think.", "Finish[Saturn]"],
            ["Plan:", "Thought 1:", "Action 1:"],
        ),
    ],
)
def test_the_kin_of_react_act_in_turn(workflow: str, script: list[str], ends: list[str]) -> None:
    episode, llm = play(workflow, script)
    assert episode.answer == "Saturn" and "example" not in prompts(llm)[0]
    assert [prompt.rsplit("\n", 1)[1] for prompt in prompts(llm)] == ends


def test_a_planner_plans_once_in_one_line_then_acts_by_its_plan() -> None:
    _, llm = play("plan-then-act", ["1. Find it.\n2. no", "Finish[Saturn]"], shots=(SHOT,))
    assert prompts(llm)[0].endswith(f"Question: {QUESTION.text}\nPlan:")
    assert f"Question: {SHOT.question}\nPlan: {SHOT.plan}\n" in prompts(llm)[0]
    assert prompts(llm)[1].endswith(f"Question: {QUESTION.text}\nPlan: 1. Find it.\nAction 1:")
    assert ended("plan-then-act", [" \n"]) == ("", "model_error")


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("Titan is a moon of Saturn.\nAnswer: Saturn\n", ("Saturn", "answered")),
        ("**Answer:** Saturn", ("Saturn", "answered")),
        ("It must be Saturn.", ("It must be Saturn.", "answered")),
        ("Answer:\n", ("", "no_answer")),
        ("", ("", "model_error")),
    ],
)
def test_chain_of_thought_answers_in_its_last_line(said: str, outcome: tuple[str, str]) -> None:
    assert ended("chain-of-thought", [said]) == outcome


@pytest.mark.parametrize("workflow", SCRATCHPAD)
def test_demonstrations_stand_before_the_question_as_many_as_asked_for(workflow: str) -> None:
    for count in (0, 1, 2):
        _, llm = play(workflow, ["Finish[x]"] * 4, shots=(SHOT,) * count)
        prompt = prompts(llm)[-1]
        assert prompt.count(f"Question: {SHOT.question}") == count
        assert ("(END OF EXAMPLES)" in prompt) == bool(count)


@pytest.mark.parametrize(
    "workflow", [name for name in WORKFLOWS.names() if "prompts" in WORKFLOWS.entry(name).traits]
)
def test_every_workflow_says_what_it_needs_and_takes_the_common_settings(workflow: str) -> None:
    entry = WORKFLOWS.entry(workflow)
    assert {"needs_env", "needs_python", "paper"} <= entry.traits.keys()
    assert {"shots", "pool", *EpisodeLimits.__dataclass_fields__} <= entry.form.keys()
    assert entry.about.endswith(".")


def test_an_episode_goes_on_from_an_edited_action_without_asking_again_what_was_answered() -> None:
    first, _ = play("react", acting("Search[Triton]", "Finish[Neptune]"))
    replies = [step.reply for step in first.steps[:1]] + [Reply("Search[Titan]")]
    llm = Scripted(["I see.", "Finish[Saturn]"])
    *_, episode = run_one(
        resume_from(flow_of("react"), replies), Backends({"pages": Pages()}, {"m": llm})
    )
    assert isinstance(episode, Episode) and episode.answer == "Saturn"
    assert observations(episode) == [TITAN.text, "Episode finished."]
    assert prompts(llm)[0].endswith(
        f"Thought 1: I think.\nAction 1: Search[Titan]\nObservation 1: {TITAN.text}\nThought 2:"
    )
    whole = [step.reply for step in first.steps]
    *_, again = run_one(resume_from(flow_of("react"), whole), Backends())
    assert isinstance(again, Episode) and (again.outcome, again.steps) == (first.outcome, ())
