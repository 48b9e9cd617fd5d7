"""The most valuable property: for every workflow the loop over many questions and the single runner end alike."""

from __future__ import annotations

import json

import pytest
from small_world import SHOT, Pages, calls, flow_of, text_call

from rallebench import sandbox
from rallebench.core.backends import Backends
from rallebench.core.run_results import EndingSummary
from rallebench.core.types import Episode, Generate, Outcome, Question
from rallebench.engine import loop
from rallebench.engine.reply_cache import ReplyCache
from rallebench.engine.single import run_one
from rallebench.llms.scripted import Line, Scripted
from rallebench.sandbox.limits import Limits
from rallebench.workflows import REASONS, WORKFLOWS
from rallebench.workspace.flows import ending_summary

ACTING = [name for name in WORKFLOWS.names() if "prompts" in WORKFLOWS.entry(name).traits]
CALLING = [name for name in ACTING if WORKFLOWS.entry(name).traits.get("calls")]
FORMS = [(name, {}) for name in ACTING] + [(name, {"native": True}) for name in CALLING]
QUESTIONS = tuple(
    Question(f"q{n}", f"{kind} {n}: what about {'Titan' if n % 3 else 'Triton'}?")
    for n, kind in enumerate(["plain", "lazy", "silent", "stubborn", "plain", "wrong", "mute"] * 6)
)


def scripted(request: Generate) -> Line:
    """A model that follows the question: it searches once and finishes, or never finishes, or says nothing …"""
    text = "\n".join(message.content for message in request.messages)
    question = next(question for question in QUESTIONS if question.text in text)
    kind, prompt = question.text.split(" ")[0], request.messages[-1].content
    if kind in ("silent", "mute"):
        return "" if kind == "silent" else "No response"
    searched = "Observation 1:" in prompt or len(request.messages) > 2
    name = "Dance" if kind == "wrong" else "Search"
    finishes = (searched and kind != "stubborn") or kind == "lazy"
    if request.messages[0].role == "system":
        call = calls if request.tools else text_call
        arguments = {"final_answer": question.qid} if finishes else {"entity": question.text}
        return call("Finish" if finishes else name, json.dumps(arguments))
    if "program" in prompt.split("\n")[0]:
        return f"print({name}('Titan'), 1 + 1)" if kind != "stubborn" else "while True: Search('x')"
    if prompt.endswith("Thought 1:") or prompt.endswith("Thought 2:"):
        return "I think."
    return f"Finish[{question.qid}]" if finishes else f"{name}[{question.text}]"


def backends() -> Backends:
    tool = sandbox.PythonTool(Limits(seconds=20))
    return Backends({"pages": Pages()}, {"m": Scripted(scripted)}, {"python": tool})


def ended(episode: Episode) -> tuple[Outcome | None, str]:
    return episode.outcome, episode.error


@pytest.mark.parametrize(("workflow", "own"), FORMS)
def test_batched_and_single_runs_end_alike(workflow: str, own: dict[str, bool]) -> None:
    questions = QUESTIONS[:14] if workflow == "pal" else QUESTIONS  # each starts a Python

    def make(question: Question) -> object:
        return flow_of(workflow, question, shots=(SHOT,), steps=4, **own)

    single = {}
    for question in questions:
        *_, episode = run_one(make(question), backends(), qid=question.qid, workflow=workflow)  # type: ignore[arg-type]
        assert isinstance(episode, Episode)
        single[question.qid] = ended(episode)
    together, cache = backends(), ReplyCache(None)
    for _ in range(2):  # the second time everything but the programs comes from the cache
        found = {
            e.qid: e
            for e in loop.run(
                make, questions, together, workflow=workflow, reply_cache=cache, batch_size=8
            )
        }  # type: ignore[arg-type]
        assert {qid: ended(episode) for qid, episode in found.items()} == single
    assert {outcome.stop_reason for outcome, _ in single.values() if outcome} <= REASONS.keys()
    assert (
        len({outcome.stop_reason for outcome, _ in single.values() if outcome}) > 1
        or workflow == "chain-of-thought"
    )
    cache.close()


def test_the_requests_of_many_agents_reach_the_model_in_full_batches() -> None:
    questions = [Question(f"x{n}", f"plain {n}: what about Titan?") for n in range(40)]
    llm = Scripted(
        lambda request: (
            "I think."
            if request.messages[-1].content.endswith(":")
            and "Thought" in request.messages[-1].content[-11:]
            else "Finish[x]"
        )
    )
    backends = Backends({"pages": Pages()}, {"m": llm})
    found = list(loop.run(lambda q: flow_of("react", q), questions, backends, batch_size=20))
    assert set(llm.batches) == {20}
    assert ending_summary(found) == EndingSummary({"answered": 40}, turns=2.0, batch=20.0)


def test_a_run_that_is_closed_leaves_no_program_behind() -> None:
    llm = Scripted(lambda request: "Search('x')\nwhile True: pass")
    flows = loop.run(
        lambda q: flow_of("pal", q),
        [Question(f"x{n}", "?") for n in range(4)] + [Question("mute 1", "?")],
        Backends(
            {"pages": Pages()},
            {"m": llm},
            {"python": sandbox.PythonTool(Limits(seconds=0.2))},
        ),
    )
    first = next(flows)
    assert first.outcome == Outcome("", "tool_error")
    flows.close()
    assert len(sandbox._SESSIONS) == 0
