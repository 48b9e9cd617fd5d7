"""Fusion of several lists of hits: by rank, by score, or as a sample of their union.

Every part is searched for ``depth`` hits whatever k is, so that a smaller k is a prefix of a larger one. If k exceeds
the fused hits, the depth is doubled repeatedly, and new hits are appended to those fused before. An item counts once
per part, at its best rank there.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.core.backends import Retriever
from rallebench.core.errors import UsageError
from rallebench.core.settings import dataclass_form, declare
from rallebench.core.types import Hit, Json, Passage
from rallebench.retrievers import COMBINATIONS
from rallebench.retrievers._parts import IDENTITIES, MAX_DEPTH, Combined, Identity, search_parts

CONSTANT = 60
DEPTH = 100
MAX_PARTS = 16

id_of: Identity = IDENTITIES["passage"]

Lists = Sequence[Sequence[Hit]]
Fuse = Callable[[str, Lists, int], list[Hit]]


def by_rank(
    lists: Lists, weights: Sequence[float], constant: float, identity: Identity
) -> list[Hit]:
    """Weighted reciprocal-rank fusion: Σ weight / (constant + rank), rank from 1, best first.

    Cormack, Clarke and Büttcher 2009, doi:10.1145/1571941.1572114 (constant 60). CRUD-RAG (arXiv:2401.17043)
    weights each of its two lists 0.5. Ties go to the earlier list, then to the better rank in it.

    >>> a, b = Hit(Passage("1", "one"), 9.0), Hit(Passage("2", "two"), 3.0)
    >>> [(h.passage.doc_id, round(h.score * 62, 3)) for h in by_rank([[a, b], [b]], [0.5, 0.5], 60, id_of)]
    [('2', 1.008), ('1', 0.508)]
    """
    scores: dict[Hashable, float] = {}
    passages: dict[Hashable, Passage] = {}
    for hits, weight in zip(lists, weights):
        seen: set[Hashable] = set()
        for rank, hit in enumerate(hits, 1):
            item = identity(hit.passage)
            if item not in seen:
                seen.add(item)
                passages.setdefault(item, hit.passage)
                scores[item] = scores.get(item, 0.0) + weight / (constant + rank)
    return best_first(scores, passages)


def by_score(
    lists: Lists, weights: Sequence[float], normalise: str, identity: Identity
) -> list[Hit]:
    """Σ weight × score normalised within its list (Bruch, Gai and Ingber 2023, arXiv:2210.11934).

    ``min-max``: (s − min) / (max − min), 1 if all are equal; an item that is not in a list gets 0.
    ``z``: (s − mean) / standard deviation, 0 if all are equal; an item that is not in a list gets the
    lowest value of that list.
    """
    scores: dict[Hashable, float] = {}
    passages: dict[Hashable, Passage] = {}
    normalised = []
    for hits in lists:
        best: dict[Hashable, float] = {}
        for hit in hits:
            item = identity(hit.passage)
            passages.setdefault(item, hit.passage)
            best.setdefault(item, hit.score)
        normalised.append(_z(best) if normalise == "z" else _min_max(best))
    for item in passages:
        scores[item] = sum(
            w * values.get(item, missing) for w, (values, missing) in zip(weights, normalised)
        )
    return best_first(scores, passages)


def _min_max(scores: Mapping[Hashable, float]) -> tuple[dict[Hashable, float], float]:
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    span = high - low
    return {item: (s - low) / span if span else 1.0 for item, s in scores.items()}, 0.0


def _z(scores: Mapping[Hashable, float]) -> tuple[dict[Hashable, float], float]:
    if not scores:
        return {}, 0.0
    mean = math.fsum(scores.values()) / len(scores)
    deviation = math.sqrt(math.fsum((s - mean) ** 2 for s in scores.values()) / len(scores))
    values = {item: (s - mean) / deviation if deviation else 0.0 for item, s in scores.items()}
    return values, min(values.values())


def best_first(scores: Mapping[Hashable, float], passages: Mapping[Hashable, Passage]) -> list[Hit]:
    """Return hits by falling score; ties in the order of first occurrence."""
    order = sorted(scores, key=lambda item: -scores[item])
    return [Hit(passages[item], scores[item]) for item in order]


def draw_hits(query: str, fused: Sequence[Hit], k: int, seed: int) -> list[Hit]:
    """Draw ``k`` of the fused hits without replacement, keeping their order.

    The draw depends only on seed, query and passages, so it is the same in every batch and on every machine.
    """

    def lot(hit: Hit) -> bytes:
        drawn = f"{seed}\0{query}\0{hit.passage.doc_id}\0{hit.passage.text}"
        return hashlib.sha256(drawn.encode("utf-8", "surrogatepass")).digest()

    chosen = {id(hit) for hit in sorted(fused, key=lot)[:k]}
    return [hit for hit in fused if id(hit) in chosen]


class Fusion(Combined):
    """Parts whose lists are fused. ``depth`` 0 searches each part for k hits, so that k affects the fusion."""

    def __init__(
        self,
        name: str,
        kind: str,
        parts: Sequence[Retriever],
        settings: Json,
        depth: int,
        identity: Identity,
        fuse: Fuse,
    ) -> None:
        super().__init__(name, kind, parts, settings)
        self.prefix_stable = kind != "union"
        self._depth, self._identity, self._fuse = depth, identity, fuse

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """Return at most k fused hits per query, best first; fewer only if the parts have no more. None for a blank query."""
        depth = self._depth or k
        lists = search_parts(self.parts, queries, depth)
        fused = [self._fuse(query, results, k) for query, results in zip(queries, lists)]
        while depth < MAX_DEPTH:
            short = [
                i
                for i, hits in enumerate(fused)
                if len(hits) < k and any(len(part) >= depth for part in lists[i])
            ]
            if not short:
                break
            deeper = min(2 * depth, MAX_DEPTH)
            for number, part in enumerate(self.parts):  # a part that returned fewer has no more
                due = [i for i in short if len(lists[i][number]) >= depth]
                more = search_parts([part], [queries[i] for i in due], deeper) if due else ()
                for i, (hits,) in zip(due, more):
                    lists[i][number] = hits
            depth = deeper
            for i in short:
                fused[i] = extend_hits(
                    fused[i], self._fuse(queries[i], lists[i], k), self._identity
                )
        return [tuple(hits[:k]) for hits in fused]


def extend_hits(first: Sequence[Hit], deeper: Sequence[Hit], identity: Identity) -> list[Hit]:
    """Return ``first``, then the other hits of ``deeper`` in order, with scores capped at the last of ``first``.

    >>> one, two, both = (Passage(name, name) for name in ("1", "2", "3"))
    >>> [(h.passage.doc_id, h.score) for h in extend_hits([Hit(one, 0.3)], [Hit(both, 0.4), Hit(one, 0.3), Hit(two, 0.1)], id_of)]
    [('1', 0.3), ('3', 0.3), ('2', 0.1)]
    """
    identities = {identity(hit.passage) for hit in first}
    most = first[-1].score if first else math.inf
    more = [hit for hit in deeper if identity(hit.passage) not in identities]
    return [*first, *(Hit(hit.passage, min(hit.score, most)) for hit in more)]


def parse_weights(name: str, written: Any, parts: int) -> tuple[float, ...]:
    """Parse one weight per part from ``"0.7,0.3"`` or a list; '' makes them equal, with sum 1.

    >>> parse_weights("x", "0.7,0.3", 2), parse_weights("x", "", 2)
    ((0.7, 0.3), (0.5, 0.5))
    """
    if written in ("", None):
        return (1.0 / parts,) * parts
    texts = [t for t in written.split(",") if t.strip()] if isinstance(written, str) else written
    try:
        weights = tuple(map(float, texts if isinstance(texts, (list, tuple)) else [texts]))
    except (TypeError, ValueError):
        weights = (math.nan,)
    if not all(math.isfinite(w) and w >= 0 for w in weights) or not any(weights):
        raise UsageError(
            f"{name!r}: weights is {written!r}; it must be a list of numbers from 0 up, not all 0, as in 0.7,0.3."
        )
    if len(weights) != parts:
        raise UsageError(
            f"{name!r}: weights has {len(weights)} numbers for {parts} retrievers; give one each."
        )
    return weights


def check_weights(name: str, parts: int, settings: Json) -> None:
    """Raise UsageError for weights that do not fit the parts."""
    parse_weights(name, settings.get("weights", ""), parts)


_WEIGHTS = "one number per retriever, as in 0.7,0.3; equal by default"
_DEPTH = "hits requested from each retriever; more if k needs them"
_EQUAL = "criterion for equal hits: id and text, or only the text"
_CRITERIA = tuple(IDENTITIES)


@dataclass(frozen=True, slots=True)
class RankFusionSettings:
    """Settings of fusion by rank."""

    weights: str = declare(str, "", about=_WEIGHTS)
    constant: float = declare(float, float(CONSTANT), 0.0, 1e6, about="constant added to a rank")
    depth: int = declare(int, DEPTH, 1, MAX_DEPTH, about=_DEPTH)
    equal: str = declare(str, "passage", choices=_CRITERIA, about=_EQUAL)


@dataclass(frozen=True, slots=True)
class ScoreFusionSettings:
    """Settings of fusion by score."""

    weights: str = declare(str, "", about=_WEIGHTS)
    normalise: str = declare(
        str, "min-max", choices=("min-max", "z"), about="how the scores of a list are normalised"
    )
    depth: int = declare(int, DEPTH, 1, MAX_DEPTH, about=_DEPTH)
    equal: str = declare(str, "passage", choices=_CRITERIA, about=_EQUAL)


@dataclass(frozen=True, slots=True)
class UnionSettings:
    """Settings of a sample of the union."""

    seed: int = declare(int, 0, 0, 2**31 - 1, about="another seed draws another sample")
    depth: int = declare(int, 0, 0, MAX_DEPTH, about="hits requested from each retriever; 0 = k")
    equal: str = declare(str, "passage", choices=_CRITERIA, about=_EQUAL)


@COMBINATIONS.register(
    "rrf",
    parts=(2, MAX_PARTS),
    form=dataclass_form(RankFusionSettings),
    check=check_weights,
)
def reciprocal_rank_fusion(name: str, parts: Sequence[Retriever], settings: Json) -> Fusion:
    """Hybrid by rank: weighted reciprocal-rank fusion."""
    chosen = RankFusionSettings(**settings)
    weights = parse_weights(name, chosen.weights, len(parts))
    identity = IDENTITIES[chosen.equal]

    def fuse(query: str, lists: Lists, k: int) -> list[Hit]:
        return by_rank(lists, weights, chosen.constant, identity)

    named = {**settings, "weights": weights}
    return Fusion(name, "rrf", parts, named, chosen.depth, identity, fuse)


@COMBINATIONS.register(
    "scores",
    parts=(2, MAX_PARTS),
    form=dataclass_form(ScoreFusionSettings),
    check=check_weights,
)
def score_fusion(name: str, parts: Sequence[Retriever], settings: Json) -> Fusion:
    """Hybrid by score: weighted sum of scores normalised per query."""
    chosen = ScoreFusionSettings(**settings)
    weights = parse_weights(name, chosen.weights, len(parts))
    identity = IDENTITIES[chosen.equal]

    def fuse(query: str, lists: Lists, k: int) -> list[Hit]:
        return by_score(lists, weights, chosen.normalise, identity)

    named = {**settings, "weights": weights}
    return Fusion(name, "scores", parts, named, chosen.depth, identity, fuse)


@COMBINATIONS.register(
    "union",
    parts=(2, MAX_PARTS),
    form=dataclass_form(UnionSettings),
)
def union_sample(name: str, parts: Sequence[Retriever], settings: Json) -> Fusion:
    """Hybrid by sampling: k drawn at random from the union, in the order of rank fusion.

    CRUD-RAG's wording (arXiv:2401.17043); its code fuses by rank, which is ``rrf`` here.
    """
    weights = parse_weights(name, "", len(parts))
    chosen = UnionSettings(**settings)
    identity = IDENTITIES[chosen.equal]

    def fuse(query: str, lists: Lists, k: int) -> list[Hit]:
        return draw_hits(query, by_rank(lists, weights, CONSTANT, identity), k, chosen.seed)

    return Fusion(name, "union", parts, settings, chosen.depth, identity, fuse)
