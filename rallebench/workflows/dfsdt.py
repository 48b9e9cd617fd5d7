"""DFSDT: a depth-first search over function calls, which backtracks after a failed attempt.

ToolLLM (Qin et al. 2023, arXiv:2307.16789), "DFS without filter, width 2", as in R-Eval (Tu et al. 2024). From each
state at most ``width`` turns are tried; later turns see the earlier ones, with their observations, in the prompt. An
attempt that gives up goes back ``back`` states: with 2, to the state before its parent. One that is too deep goes back one.

ToolBench counts depth in nodes, two or three per turn (a thought, a function, its arguments), and stops at 12: the setting
``nodes``. ``depth`` counts turns, which are the nodes of the tree shown on the page.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rallebench.core.prompts import fill_template
from rallebench.core.settings import Setting
from rallebench.core.types import Flow, Message, Outcome, SubFlow
from rallebench.workflows import COMPAT, common
from rallebench.workflows._calling import OBSERVATION, carried_out, opening, turn
from rallebench.workflows._conversation import Conversation, EpisodeEnd, register_agent
from rallebench.workflows.function_calling import PROTOCOL
from rallebench.workflows.trees import Node, tree_note

SETTINGS = {
    **common(steps=60, shots=0, max_tokens=512),
    "width": Setting(int, 2, 1, 10, about="turns tried from one state"),
    "depth": Setting(int, 12, 1, 100, about="turns of an attempt before it gives up"),
    "nodes": Setting(
        int, 12, 0, 1000, about="depth as ToolBench counts it, 2 or 3 per turn; 0: no limit"
    ),
    "back": Setting(int, 2, 1, 100, about="states to go back after an attempt gives up"),
    "protocol": PROTOCOL,
    "compat": COMPAT,
}


class _Answered(Exception):
    """Ends the search: an attempt gave an answer."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.answer)
        self.outcome = outcome


@dataclass
class _Search:
    conversation: Conversation
    width: int
    depth: int
    nodes: int
    back: int
    turns: int = 0

    def below(self, parent: Node, messages: tuple[Message, ...], parts: int = 0) -> SubFlow[int]:
        """Try turns from ``parent``, at a depth of ``parts`` ToolBench nodes; return the number of states to go back.

        Raises _Answered, EpisodeEnd.
        """
        if parent.depth >= self.depth or 0 < self.nodes <= parts:
            yield tree_note(replace(parent, state="too_deep"))
            return 1
        tried: list[str] = []
        for _ in range(self.width):
            hint: tuple[Message, ...] = ()
            if tried:
                again = self.conversation.prompts["dfsdt_again.txt"]
                before = (
                    [f"Your {OBSERVATION.lower()}{parent.observation}"] if parent.number else []
                )
                hint = (
                    Message("user", fill_template(again, {"tried": "\n".join([*tried, *before])})),
                )
            if self.turns >= self.conversation.limits.steps:
                raise EpisodeEnd("step_limit")
            self.turns += 1
            move = yield from turn(self.conversation, (*messages, *hint), self.turns)
            node = Node(self.turns, parent.number, parent.depth + 1, move.thought, move.call_line())
            observed = yield from carried_out(self.conversation, move)
            if isinstance(observed, Outcome):
                state = "gave_up" if observed.stop_reason == "gave_up" else "answered"
                yield tree_note(replace(node, state=state))
                if state == "answered":
                    raise _Answered(observed)
                back, seen = self.back, ""
            else:
                node = replace(node, observation=observed)
                yield tree_note(node)
                deeper = parts + bool(move.thought) + 2 * bool(move.call)
                back = yield from self.below(
                    node, (*messages, move.message, move.observation_message(observed)), deeper
                )
                seen = f"\n{OBSERVATION}{observed}" if move.call else ""
            tried.append((move.call_line() or move.thought) + seen)
            if back > 1 and (parent.number or self.conversation.original):
                break  # at the root ours continues; ToolBench leaves the other turns untried
        else:
            back = 2  # all turns were tried: the parent's state continues with its next turn
        if parent.number:
            yield tree_note(replace(parent, state="left"))
        return back - 1


@register_agent(
    "dfsdt",
    form=SETTINGS,
    calls=True,
    prompts=("dfsdt.txt", "dfsdt_again.txt", "text_protocol.txt"),
    paper="arXiv:2307.16789",
)
def dfsdt(
    conversation: Conversation, *, width: int = 2, depth: int = 12, nodes: int = 12, back: int = 2
) -> Flow:
    """A depth-first search over function calls, which backtracks after a failed attempt."""
    search = _Search(conversation, width, depth, nodes, back)
    try:
        yield from search.below(Node(0, 0, 0, "", ""), opening(conversation, "dfsdt.txt"))
    except _Answered as end:
        return end.outcome
    return Outcome("", "gave_up")
