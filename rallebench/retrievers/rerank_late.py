"""Re-ranking by late interaction: the hits of any retriever in the order of a ColBERT model's MaxSim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rallebench.core.backends import Retriever
from rallebench.core.settings import dataclass_form, declare
from rallebench.core.types import Json
from rallebench.retrievers import COMBINATIONS
from rallebench.retrievers._late_encoder import late_encoder
from rallebench.retrievers._parts import MAX_DEPTH
from rallebench.retrievers._sentence_models import PassageModelSettings, read_model_settings
from rallebench.retrievers.rerank import DEPTH, TITLES, Reranked


@dataclass(frozen=True, slots=True)
class LateRerankSettings(PassageModelSettings):
    """Settings of re-ranking by late interaction."""

    depth: int = declare(int, DEPTH, 1, MAX_DEPTH, about="hits to judge")
    titles: bool = declare(bool, True, about=TITLES)


@COMBINATIONS.register("late-rerank", parts=(1, 1), form=dataclass_form(LateRerankSettings))
def late_rerank(name: str, parts: Sequence[Retriever], settings: Json) -> Reranked:
    """Re-ranking with a ColBERT model (late interaction), loaded once and shared."""
    chosen = LateRerankSettings(**settings)
    scorer = late_encoder(name, read_model_settings(asdict(chosen)))
    return Reranked(name, parts[0], scorer, depth=chosen.depth, titles=chosen.titles)
