"""Re-ranking: a slower, better scorer sorts the best hits of a retriever."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rallebench.checkpoints.failures import check_reachable
from rallebench.checkpoints.files import cached_folder, has_weights, model_folder
from rallebench.core.backends import Retriever
from rallebench.core.settings import dataclass_form, declare
from rallebench.core.types import Hit, Json, Passage
from rallebench.retrievers import COMBINATIONS
from rallebench.retrievers._cross_encoder import cross_encoder
from rallebench.retrievers._parts import MAX_DEPTH, Combined, search_parts

DEPTH = 50


class PairScorer(Protocol):
    """A model that scores pairs of a query and a passage. ``fingerprint``: everything that changes a score."""

    @property
    def fingerprint(self) -> str: ...

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one score for each text, higher is better, in their order."""
        ...


class Reranked(Combined):
    """The first ``depth`` hits of a retriever, sorted by the scorer; deeper hits are never returned.

    The depth does not depend on k, so a smaller k is a prefix of a larger one. Equal scores keep the
    retriever's order. ``titles``: the scorer reads ``"{title}, {text}"``, as the indexes do, not the bare text.
    """

    prefix_stable = True

    def __init__(
        self, name: str, part: Retriever, scorer: PairScorer, *, depth: int, titles: bool
    ) -> None:
        settings = {"judge": scorer.fingerprint, "depth": depth, "titles": titles}
        super().__init__(name, "rerank", [part], settings)
        self.scale = f"rerank {scorer.fingerprint} {titles}"
        self._scorer, self._depth, self._titles = scorer, depth, titles

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """Return at most k hits per query with the scorer's values, best first; none for a blank query."""
        lists = search_parts(self.parts, queries, self._depth)
        return [self._order(query, hits)[:k] for query, (hits,) in zip(queries, lists)]

    def _order(self, query: str, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        scores = self._scorer.score(
            query, [passage_text(hit.passage, self._titles) for hit in hits]
        )
        scored = [Hit(hit.passage, score) for hit, score in zip(hits, scores, strict=True)]
        return tuple(sorted(scored, key=lambda hit: -hit.score))


def passage_text(passage: Passage, titles: bool) -> str:
    """Return a passage's text for the scorer."""
    return f"{passage.title}, {passage.text}" if titles and passage.title else passage.text


def to_fetch(model: str, *, demanded: bool = False) -> str:
    """Return the hub id of a cross-encoder to download first; '' if it is already here. ``demanded``: raise BackendError if the
    hub is switched off. Raises BadFileError for a folder with an incomplete model.
    """
    if model_folder("rerank", model) is not None:
        return ""
    cached = cached_folder(model)
    if cached is not None and has_weights(cached):
        return ""
    if demanded:
        check_reachable(model)
    return model


TITLES = "let the judge read the titles, too"


@dataclass(frozen=True, slots=True)
class CrossEncoderSettings:
    """Settings of re-ranking with a cross-encoder."""

    model: str = declare(
        str,
        "",
        required=True,
        about="folder or hub id of a cross-encoder with one label",
        names="checkpoint",
    )
    depth: int = declare(int, DEPTH, 1, MAX_DEPTH, about="hits to judge")
    titles: bool = declare(bool, True, about=TITLES)
    dtype: str = declare(str, "float32", choices=("float32", "bfloat16", "float16"))
    device: str = declare(str, "auto", about="auto, cpu, cuda, cuda:1 …")
    max_length: int = declare(
        int, 512, 0, 1_000_000, about="tokens of a pair; 0 = the model's own limit"
    )
    batch_size: int = declare(int, 32, 1, 4096)


@COMBINATIONS.register(
    "rerank",
    parts=(1, 1),
    form=dataclass_form(CrossEncoderSettings),
)
def rerank(name: str, parts: Sequence[Retriever], settings: Json) -> Reranked:
    """Re-ranking with a cross-encoder, loaded once and shared."""
    chosen = CrossEncoderSettings(**settings)
    scorer = cross_encoder(
        name, chosen.model, chosen.dtype, chosen.device, chosen.max_length, chosen.batch_size
    )
    return Reranked(name, parts[0], scorer, depth=chosen.depth, titles=chosen.titles)
