"""The formats of an agent's replies: every reply in the format is a readable action, and models without formats are asked
as before."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
import tiny_models
from small_world import QUESTION, TOOLS, Pages, World, calls, flow_of, text_call

from rallebench.core.backends import Backends
from rallebench.core.formats import Format, read_format
from rallebench.core.structured import check_schema
from rallebench.core.types import Episode, Generate, Question, Step
from rallebench.engine import loop
from rallebench.engine.perform import batch_key
from rallebench.engine.single import run_one
from rallebench.llms import LLMS
from rallebench.llms.scripted import Scripted
from rallebench.workflows import _forms
from rallebench.workflows._actions import parse_action
from rallebench.workflows._calling import FINISHING, read_arguments, read_move

VERBS = ("Search", "Lookup", "Finish")
ANSWER = json.dumps({"return_type": "give_answer", "final_answer": "Saturn"})
SCRIPTS: dict[str, list[Any]] = {
    "react": ["I think.", "Finish[Saturn]"],
    "zero-shot": ["Finish[Saturn]"],
    "planner-react": ["1. Finish.", "I think.", "Finish[Saturn]"],
    "plan-then-act": ["1. Finish.", "Finish[Saturn]"],
    "function-calling": [text_call("Finish", ANSWER)],
    "dfsdt": [text_call("Finish", ANSWER)],
}


class Model(Scripted):
    """A scripted model that may enforce formats."""

    def __init__(self, script: Any, forces_formats: bool) -> None:
        super().__init__(script)
        self.forces_formats = forces_formats


def played(workflow: str, script: Any, forces: bool = True, **given: Any) -> Episode:
    backends = Backends({"pages": Pages()}, {"m": Model(script, forces)})
    *_, episode = run_one(flow_of(workflow, **given), backends, qid="q1", workflow=workflow)
    assert isinstance(episode, Episode) and not episode.error, episode
    return episode


def asked(episode: Episode) -> list[Generate]:
    return [step.request for step in episode.steps if isinstance(step.request, Generate)]


def form_in(request: Generate) -> Format | None:
    return read_format("'m'", request.options.get("response_format"))


@pytest.mark.parametrize("workflow", SCRIPTS)
def test_the_last_reply_of_an_agent_has_its_form_and_is_recorded_with_it(workflow: str) -> None:
    episode = played(workflow, SCRIPTS[workflow])
    assert episode.answer == "Saturn"
    last = asked(episode)[-1]
    form = form_in(last)
    assert form is not None and form.fault(SCRIPTS[workflow][-1]) == ""
    assert not last.forced, "a request is recorded as it was sent"


@pytest.mark.parametrize("workflow", SCRIPTS)
def test_a_model_that_enforces_nothing_and_the_original_are_asked_as_ever(workflow: str) -> None:
    free = asked(played(workflow, SCRIPTS[workflow], forces=False))
    forced = asked(played(workflow, SCRIPTS[workflow]))
    assert [request.messages for request in free] == [request.messages for request in forced]
    assert {json.dumps(dict(request.options)) for request in free} == {"{}"}
    if workflow in ("react", "function-calling", "dfsdt"):
        original = asked(played(workflow, SCRIPTS[workflow], compat="original"))
        assert {json.dumps(dict(request.options)) for request in original} == {"{}"}


def test_a_native_call_must_be_made() -> None:
    episode = played("function-calling", [calls("Finish", ANSWER)], native=True)
    assert asked(episode)[0].options == {"tool_choice": "required"}


def test_forms_do_not_split_a_batch() -> None:
    thought, action = asked(played("react", SCRIPTS["react"]))
    assert dict(thought.options) != dict(action.options)
    assert batch_key(thought) == batch_key(action)


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("Search[Ada]", True),
        (" Finish[Paris, Texas]", True),
        ("Search[Paris [Texas], US]", True),
        ("Dance[Ada]", False),
        ("Search[]", False),
        ("Search[ ]", False),
        ("Search[Ada", False),
        ("Search[Ada]\nObservation 1: x", False),
        ("I know it.", False),
    ],
)
def test_an_action_is_a_verb_with_an_argument_in_its_brackets(text: str, fits: bool) -> None:
    form = read_format("'m'", _forms.action(VERBS, "[]", 128)["response_format"])
    assert form is not None and (form.fault(text) == "") is fits
    if fits:
        assert parse_action(text, "[]")[0] in VERBS


def test_a_thought_and_its_action_are_two_lines_of_one_number() -> None:
    form = read_format("'m'", _forms.thought_and_action(VERBS, "()", 3, 128)["response_format"])
    assert form is not None
    assert form.fault('I look.\nAction 3: Search(name="Ada (born 1815)")') == ""
    assert form.fault("I look.\nAction 2: Search(Ada)") and form.fault("Action 3: Search(Ada)")


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        (text_call("Search", '{"entity": "Ada"}'), True),
        (text_call("Finish", '{"return_type": "give_up_and_restart"}'), True),
        (text_call("Search", '{"keyword": "Ada"}'), False),
        (text_call("Dance", "{}"), False),
        (text_call("Finish", '{"return_type": "shrug"}'), False),
        ("Action: Search\nAction Input: {}", False),
    ],
)
def test_a_text_call_names_a_function_with_arguments_of_its_schema(text: str, fits: bool) -> None:
    form = read_format("'m'", _forms.text_call((*TOOLS, FINISHING), 512)["response_format"])
    assert form is not None and (form.fault(text) == "") is fits


# ── a random model ───────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def random_model(tmp_path_factory: pytest.TempPathFactory) -> Iterable[Any]:
    import torch

    folder = tmp_path_factory.mktemp("bytes") / "llama"
    tiny_models.save_llama(folder, hidden=16, layers=1, positions=16384, bytewise=True)
    llm: Any = LLMS["transformers"]("m", model=str(folder), device_map="cpu")
    with (
        torch.no_grad()
    ):  # other letters take up to four of its tokens each, so that a reply may end too early
        for token in range(len(llm._tokenizer)):
            if not llm._tokenizer.decode([token]).isascii():
                llm._model.lm_head.weight[token] = 0.0
    yield llm
    llm.close()


def readable(step: Step, scratchpad: bool) -> bool:
    """Return whether the action of a reply can be parsed, with arguments that fit."""
    text = step.reply.text
    if scratchpad:
        verb, argument = parse_action(text, "[]")
        return verb in VERBS and bool(argument)
    call = read_move(step.reply, 1).call
    schemas = {tool.name: tool.parameters for tool in (*TOOLS, FINISHING)}
    if call is None or call.name not in schemas:
        return False
    arguments, wrong = read_arguments(call)
    return not wrong and not check_schema(arguments, schemas[call.name])


@pytest.mark.parametrize("workflow", ["zero-shot", "function-calling", "dfsdt"])
def test_even_a_random_model_takes_readable_actions(random_model: Any, workflow: str) -> None:
    questions = [Question(f"q{n}", f"{QUESTION.text} {n}") for n in range(2)]
    episodes = loop.run(
        lambda question: flow_of(workflow, question, world=World(), steps=1, max_tokens=400),
        questions,
        Backends({"pages": Pages()}, {"m": random_model}),
        workflow=workflow,
    )
    replies = [
        step for episode in episodes for step in episode.steps if isinstance(step.request, Generate)
    ]
    assert len(replies) >= len(questions)
    unreadable = [s.reply.text for s in replies if not readable(s, workflow == "zero-shot")]
    assert unreadable == []
