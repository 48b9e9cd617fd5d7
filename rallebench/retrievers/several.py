"""One retriever over several indexes, usually of different corpora.

If all parts score on one scale (dense with the same encoder, BM25 with the same tokens, k1 and b, the same
re-ranker), the lists are merged by score. BM25's scores use only the word counts of their own corpus, like those of
shards elsewhere, so very different corpora are better merged by rank. If the scales differ, the lists are merged
by rank: the first of each part, then the second of each, in the parts' order. A passage in several parts (same id
and text) is returned once. Passages keep their ids, titles and page ids.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from rallebench.core.backends import Retriever
from rallebench.core.errors import UsageError
from rallebench.core.settings import Setting
from rallebench.core.types import Hit, Json
from rallebench.retrievers import COMBINATIONS
from rallebench.retrievers._parts import IDENTITIES, Combined, search_parts

MAX_PARTS = 64


def common_scale(parts: Sequence[Retriever]) -> str:
    """Return the common scale of the parts' scores; '' if it differs or is unknown."""
    scales = {getattr(part, "scale", "") for part in parts}
    return scales.pop() if len(scales) == 1 else ""


class Several(Combined):
    """The parts' passages in one list; ``scale``: '' if they are merged by rank."""

    def __init__(self, name: str, parts: Sequence[Retriever], settings: Json) -> None:
        merge, common = settings["merge"], common_scale(parts)
        if merge == "score" and not common:
            raise UsageError(
                f"{name!r} cannot merge by score: its indexes score on different scales; use merge=rank, or merge=auto."
            )
        self.scale = "" if merge == "rank" else common
        super().__init__(name, "several", parts, {"merge": "score" if self.scale else "rank"})
        self.prefix_stable = all(part.prefix_stable for part in parts)

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """Return at most k hits per query, best first; if merged by rank, the score is 1 / rank in the part."""
        return [self._merge(lists, k) for lists in search_parts(self.parts, queries, k)]

    def _merge(self, lists: Sequence[Sequence[Hit]], k: int) -> tuple[Hit, ...]:
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
def several(name: str, parts: Sequence[Retriever], settings: Json) -> Several:
    """One retriever over several indexes: merged by score on one scale, else by rank."""
    return Several(name, parts, settings)
