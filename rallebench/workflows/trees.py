"""The tree of a depth-first search, stored as notes in the episode's trace, so that a page can draw it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from rallebench.core.types import Note, Step

MARK = "tree "


@dataclass(frozen=True, slots=True)
class Node:
    """A turn of the model. ``parent``: 0 is the root; ``depth`` from 1. ``move``: the call in one line, '' without a call.
    ``state``: ``open`` (continued), ``answered``, ``gave_up``, ``too_deep``, or ``left`` (all its branches failed).
    """

    number: int
    parent: int
    depth: int
    thought: str
    move: str
    observation: str = ""
    state: str = "open"


def tree_note(node: Node) -> Note:
    """Return the current state of the node as a note; a later note with the same number replaces it."""
    return Note(MARK + json.dumps(asdict(node), ensure_ascii=False))


def read_tree(steps: Iterable[Step]) -> tuple[Node, ...]:
    """Return the nodes of an episode in the order of the search; () for an episode without a tree."""
    nodes: dict[int, Node] = {}
    for step in steps:
        if isinstance(step.request, Note) and step.request.text.startswith(MARK):
            value: Any = json.loads(step.request.text[len(MARK) :])
            nodes[value["number"]] = Node(**value)
    return tuple(nodes.values())
