"""DFSDT: a depth-first search over function calls that goes back where an attempt is given up.

ToolLLM (Qin et al. 2023, arXiv:2307.16789), "DFS without filter, width 2", as R-Eval (Tu et al. 2024) uses it. From
a state at most ``width`` turns are tried; the second is told what was tried before. An attempt that gives up, or
is ``depth`` turns deep, goes back ``back`` states: with 2, to the state before the one that led there.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace

from rallebench.core.prompts import filled
from rallebench.core.settings import Setting
from rallebench.core.types import Flow, Message, Outcome, Question, Reply, Request
from rallebench.environments import Environment
from rallebench.workflows import COMPAT, WORKFLOWS, Limits, Shot, common
from rallebench.workflows._calling import FINISHING, carried_out, opening, turn
from rallebench.workflows._talking import Ended, Talk, ending
from rallebench.workflows.function_calling import PROTOCOL
from rallebench.workflows.trees import Node, note_of

SETTINGS = {
    **common(steps=60, shots=0, max_tokens=512),
    "width": Setting(int, 2, 1, 10, about="turns that are tried from one state"),
    "depth": Setting(int, 12, 1, 100, about="turns after which an attempt is given up"),
    "back": Setting(int, 2, 1, 100, about="states that an attempt goes back when it is given up"),
    "protocol": PROTOCOL,
    "compat": COMPAT,
}


class _Found(Exception):
    """The search is over: an attempt gave an answer."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.answer)
        self.outcome = outcome


@dataclass
class _Search:
    """One search. ``native``: whether the model has calls of its own; ``again``: what the second try of a state is told."""

    talk: Talk
    env: Environment
    native: bool
    again: str
    width: int
    depth: int
    back: int
    asked: int = 0

    def below(
        self, parent: Node, conversation: tuple[Message, ...]
    ) -> Generator[Request, Reply, int]:
        """Try what follows ``parent``; by how many states to go back. Raises _Found, Ended."""
        if parent.depth >= self.depth:
            yield note_of(replace(parent, state="too_deep"))
            return self.back
        tried: list[str] = []
        for _ in range(self.width):
            told = (
                (Message("user", filled(self.again, {"tried": "\n".join(tried)})),) if tried else ()
            )
            if self.asked >= self.talk.limits.steps:
                raise Ended("step_limit")
            self.asked += 1
            move = yield from turn(
                self.talk,
                (*conversation, *told),
                (*self.env.tools, FINISHING),
                self.native,
                self.asked,
            )
            node = Node(self.asked, parent.number, parent.depth + 1, move.thought, move.written())
            observed = yield from carried_out(self.talk, self.env, move)
            if isinstance(observed, Outcome):
                state = "gave_up" if observed.stop_reason == "gave_up" else "answered"
                yield note_of(replace(node, state=state))
                if state == "answered":
                    raise _Found(observed)
                back = self.back
            else:
                node = replace(node, observation=observed)
                yield note_of(node)
                back = yield from self.below(
                    node, (*conversation, move.message, move.answered(observed))
                )
            tried.append(move.written() or move.thought)
            if back > 1 and (parent.number or self.talk.original):
                break  # from the question itself, whose other ways ToolLLM's code then leaves untried, ours goes on
        else:
            back = 2  # every way was tried: the state that led here goes on with its next
        if parent.number:
            yield note_of(replace(parent, state="left"))
        return back - 1


@WORKFLOWS.register(
    "dfsdt",
    settings=SETTINGS,
    needs_env=True,
    needs_python=False,
    calls=True,
    prompts=("dfsdt.txt", "dfsdt_again.txt", "text_protocol.txt"),
    paper="arXiv:2307.16789",
)
def dfsdt(
    question: Question,
    *,
    llm: str,
    env: Environment,
    shots: Sequence[Shot],
    limits: Limits,
    prompts: Mapping[str, str],
    native: bool,
    temperature: float = 0.0,
    seed: int | None = None,
    width: int = 2,
    depth: int = 12,
    back: int = 2,
    compat: str = "ours",
    protocol: str = "auto",
) -> Flow:
    """A depth-first search over function calls that goes back where an attempt is given up."""
    talk = Talk(
        question, llm, limits, temperature=temperature, seed=seed, original=compat == "original"
    )
    search = _Search(talk, env, native, prompts["dfsdt_again.txt"], width, depth, back)

    def flow() -> Flow:
        conversation = opening(
            prompts["dfsdt.txt"], prompts["text_protocol.txt"], env, shots, question.text, native
        )
        try:
            yield from search.below(Node(0, 0, 0, "", ""), conversation)
        except _Found as found:
            return found.outcome
        return Outcome("", "gave_up")

    return (yield from ending(flow()))
