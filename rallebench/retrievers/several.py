"""One retriever over several indexes, as a rule over different corpora.

How the lists are merged: where all parts score on one scale (dense with the same encoder, BM25 with the same
tokens, k1 and b, the same re-ranker), by score. BM25's scores know only their own corpus's word counts, as
those of shards do elsewhere; corpora of very different kinds are better merged by rank. Where the scales
differ, by rank: the first of each part, then the second of each, in the parts' order. A passage that several
parts hold (same id and text) comes once. Passages keep their ids, titles and page ids.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.settings import Setting
from rallebench.core.types import Hit
from rallebench.retrievers import COMBINATIONS, Retriever
from rallebench.retrievers._parts import IDENTITIES, Combined, lists_of

MAX_PARTS = 64


def scale_of(parts: Sequence[Retriever]) -> str:
    """What the parts' scores measure, if it is the same for all and known; '' otherwise."""
    scales = {getattr(part, "scale", "") for part in parts}
    return scales.pop() if len(scales) == 1 else ""


class Several(Combined):
    """The parts' passages in one list; ``scale`` is '' if they were merged by rank."""

    def __init__(self, name: str, parts: Sequence[Retriever], settings: Mapping[str, Any]) -> None:
        merge, common = settings["merge"], scale_of(parts)
        if merge == "score" and not common:
            raise UsageError(
                f"{name!r} cannot merge by score: its indexes do not score on one scale; use merge=rank, or merge=auto."
            )
        self.scale = "" if merge == "rank" else common
        super().__init__(name, "several", parts, {"merge": "score" if self.scale else "rank"})
        self.prefix_stable = all(part.prefix_stable for part in parts)

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """At most k hits per query, best first; merged by rank their score is 1 / rank in their part."""
        return [self._merged(lists, k) for lists in lists_of(self.parts, queries, k)]

    def _merged(self, lists: Sequence[Sequence[Hit]], k: int) -> tuple[Hit, ...]:
        hits = [
            hit if self.scale else Hit(hit.passage, 1.0 / rank)
            for hits in lists
            for rank, hit in enumerate(hits, 1)
        ]
        merged: dict[Hashable, Hit] = {}
        for hit in sorted(hits, key=lambda hit: -hit.score):
            merged.setdefault(IDENTITIES["passage"](hit.passage), hit)
        return tuple(merged.values())[:k]


_MERGE = Setting(
    str,
    "auto",
    choices=("auto", "score", "rank"),
    about="auto: by score on one scale, else by rank",
)


@COMBINATIONS.register("several", parts=(1, MAX_PARTS), form={"merge": _MERGE})
def several(name: str, parts: Sequence[Retriever], settings: Mapping[str, Any]) -> Several:
    """One retriever over several indexes: merged by score on one scale, else by rank."""
    return Several(name, parts, settings)
