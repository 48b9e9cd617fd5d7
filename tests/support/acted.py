"""A small encyclopedia, a retriever over it, and the means to act in an environment like a workflow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rallebench.core.backends import Backends
from rallebench.core.types import Hit, Passage, Reply, Request
from rallebench.corpora.store import PassageStore, write_store
from rallebench.engine.perform import perform
from rallebench.environments import Environment, Observed
from rallebench.environments.pages import PageStore, write_pages

PASSAGES = (
    Passage(
        "1",
        "Titan is the largest moon of Saturn.\n\nIt has a thick atmosphere of nitrogen.",
        "Titan (moon)",
        "p1",
    ),
    Passage(
        "2", "Methane rains on Titan.\n\nThe atmosphere hides its lakes.", "Titan (moon)", "p1"
    ),
    Passage("3", "Triton is a moon of Neptune. It has no lakes.", "Triton", "p2"),
    Passage("4", "Mercury may refer to:\n\nMercury (planet)\n\nMercury (element)", "Mercury", "p3"),
    Passage("5", "Mercury is the planet nearest to the Sun.", "Mercury (planet)", "p4"),
    Passage("6", 'The Danube is a river, "the second longest" of Europe.', "Danube", "p5"),
    Passage("7", "卡西尼 号 是 一 艘 飞船。", "卡西尼", "p6"),
)


class Words:
    """The passages that share the most words with a query."""

    fingerprint, titled, prefix_stable = "words/1", False, True

    def search(self, queries: list[str], k: int) -> list[tuple[Hit, ...]]:
        return [self._hits(query, k) for query in queries]

    def _hits(self, query: str, k: int) -> tuple[Hit, ...]:
        asked = set(query.lower().split())
        shared = [(len(asked & set(f"{p.title} {p.text}".lower().split())), p) for p in PASSAGES]
        found = sorted((pair for pair in shared if pair[0]), key=lambda pair: -pair[0])
        return tuple(Hit(passage, float(count)) for count, passage in found[:k])


def pages(folder: Path) -> PageStore:
    folder.mkdir(parents=True, exist_ok=True)
    write_store(folder, PASSAGES)
    write_pages(PassageStore(folder), folder)
    return PageStore(PassageStore(folder), folder)


def observed(
    flow: Observed, tools: Mapping[str, Any] | None = None, asked: list[Request] | None = None
) -> str:
    """The observation of an action. Every request is added to ``asked``, and answered by Words and ``tools``."""
    backends = Backends(retrievers={"words": Words()}, tools=dict(tools or {}))
    try:
        request = next(flow)
        while True:
            if asked is not None:
                asked.append(request)
            (answer,) = perform([request], backends)
            assert isinstance(answer, Reply), answer
            request = flow.send(answer)
    except StopIteration as end:
        return str(end.value)


def act(
    environment: Environment,
    action: str,
    tools: Mapping[str, Any] | None = None,
    asked: list[Request] | None = None,
) -> str:
    """``Search[Titan]``, in a text protocol."""
    left, right = environment.brackets
    verb, _, rest = action.partition(left)
    return observed(environment.act(verb, rest.removesuffix(right)), tools, asked)
