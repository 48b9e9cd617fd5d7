"""A tiny environment, and the means to play a workflow with a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from project import PROJECT

from rallebench.core.backends import Backends
from rallebench.core.types import (
    Episode,
    Flow,
    Hit,
    Note,
    Passage,
    Question,
    Reply,
    Retrieve,
    ToolCall,
    ToolSpec,
)
from rallebench.engine.single import run_one
from rallebench.environments import Observed
from rallebench.llms.scripted import Line, Script, Scripted
from rallebench.workflows import WORKFLOWS, EpisodeLimits, Shot, ShotStep

PROMPTS = PROJECT / "prompts" / "workflows"

TOOLS = (
    ToolSpec(
        "Search",
        "Open a page.",
        {"type": "object", "properties": {"entity": {"type": "string"}}, "required": ["entity"]},
    ),
    ToolSpec(
        "Lookup",
        "Look in it.",
        {"type": "object", "properties": {"keyword": {"type": "string"}}, "required": ["keyword"]},
    ),
)
TITAN = Passage("1", "Titan is a moon of Saturn.", "Titan", "p1")
INVALID = "Invalid Action. Valid Actions are Lookup[<topic>] Search[<topic>] and Finish[<answer>]."


class World:
    """Search asks a retriever, Lookup needs a page; ``broken`` raises at every call."""

    tools = TOOLS

    def __init__(self, brackets: str = "[]", broken: Exception | None = None) -> None:
        self.brackets, self.broken = brackets, broken
        self.page = ""
        self.asked: list[tuple[str, Any]] = []

    def act(self, verb: str, argument: str) -> Observed:
        names = {"Search": "entity", "Lookup": "keyword"}
        return (yield from self.call(verb, {names.get(verb, ""): argument}))

    def call(self, name: str, arguments: Mapping[str, Any]) -> Observed:
        self.asked.append((name, dict(arguments)))
        if self.broken is not None:
            raise self.broken
        if name == "Search" and "entity" in arguments:
            reply = yield Retrieve("pages", str(arguments["entity"]), 1)
            self.page = reply.text
            return reply.text or "Could not find that page, please try again."
        if name == "Lookup" and "keyword" in arguments:
            yield Note("looked up")
            return (
                "(Result 1/1) " + self.page
                if self.page
                else "The last page Searched was not found."
            )
        return INVALID


class Pages:
    """Finds only Titan."""

    fingerprint, titled, prefix_stable = "pages/1", False, True

    def search(self, queries: list[str], k: int) -> list[tuple[Hit, ...]]:
        return [(Hit(TITAN, 1.0),) if "Titan" in query else () for query in queries]


SHOT = Shot(
    "Is Rome in Italy?",
    "yes",
    (
        ShotStep(
            "I look for Rome.",
            "Search",
            "Rome",
            {"entity": "Rome"},
            "Rome is the capital of Italy.",
        ),
        ShotStep("It is.", "Finish", "yes", {"return_type": "give_answer", "final_answer": "yes"}),
    ),
    plan="1. Find Rome. 2. Finish.",
    reasoning="Rome is the capital of Italy.",
    program="print('yes' if 'Italy' in Search('Rome') else 'no')",
)
QUESTION = Question("q1", "Which planet does Titan go round?")


def prompts_of(workflow: str) -> dict[str, str]:
    """The texts given to a workflow."""
    names = WORKFLOWS.entry(workflow).traits["prompts"]
    return {name: (PROMPTS / name).read_text(encoding="utf-8").removesuffix("\n") for name in names}


def flow_of(
    workflow: str,
    question: Question = QUESTION,
    *,
    world: World | None = None,
    shots: tuple[Shot, ...] = (),
    **given: Any,
) -> Flow:
    """The flow of a workflow; settings of EpisodeLimits are recognised by their names."""
    traits = WORKFLOWS.entry(workflow).traits
    limits = EpisodeLimits(
        **{name: given.pop(name) for name in EpisodeLimits.__dataclass_fields__ if name in given}
    )
    env = {"env": world or World()} if traits["needs_env"] else {}
    if traits.get("calls"):
        given.setdefault("native", False)
    return WORKFLOWS[workflow](
        question, llm="m", shots=shots, limits=limits, prompts=prompts_of(workflow), **env, **given
    )


def play(
    workflow: str, script: Script, *, tools: Mapping[str, Any] | None = None, **given: Any
) -> tuple[Episode, Scripted]:
    """One episode, and the model behind it."""
    llm = Scripted(script)
    backends = Backends({"pages": Pages()}, {"m": llm}, tools or {})
    *_, episode = run_one(flow_of(workflow, **given), backends, qid="q1", workflow=workflow)
    assert isinstance(episode, Episode)
    return episode, llm


def ended(workflow: str, script: Script, **given: Any) -> tuple[str, str]:
    """Return the end of an episode: (answer, reason)."""
    episode, _ = play(workflow, script, **given)
    assert episode.outcome is not None, episode.error
    return episode.outcome.answer, episode.outcome.stop_reason


def observations(episode: Episode) -> list[str]:
    """Return the agent's observations, in order."""
    notes = [step.request.text for step in episode.steps if isinstance(step.request, Note)]
    return [text.partition(": ")[2] for text in notes if text.startswith("Observation")]


def prompts(llm: Scripted) -> list[str]:
    """The last message of every request."""
    return [request.messages[-1].content for request in llm.requests]


def calls(name: str, arguments: str, said: str = "") -> Reply:
    """A reply that calls a function."""
    return Reply(said, tool_calls=(ToolCall("", name, arguments),), finish_reason="tool_calls")


def text_call(name: str, arguments: str, said: str = "I think.") -> str:
    """The same in the text protocol."""
    return f"Thought: {said}\nAction: {name}\nAction Input: {arguments}"


def acting(*actions: str) -> list[Line]:
    """A script for ReAct: a thought before every action."""
    return [line for action in actions for line in ("I think.", action)]
