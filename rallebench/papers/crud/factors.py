"""The factors that CRUD-RAG's grid varies, and the paper's values of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rallebench.papers.crud.retrieval import RETRIEVERS

WORDS = "bm25"
ENCODER, RERANKER = "bge-base-zh-v1.5-plain", "BAAI/bge-reranker-base"
"""The paper's models, which read Chinese; used where they are on this machine, or where the user names them."""


@dataclass(frozen=True, slots=True)
class GridFactor:
    """``heading``: of tables; ``setting``: names its values; ``papers``: the values of the paper. ``low``, ``high``: the bounds of
    values that are numbers, else None."""

    heading: str
    setting: str
    papers: tuple[int | str, ...]
    low: int | None = None
    high: int | None = None

    @property
    def ordered(self) -> bool:
        """True if its values are numbers."""
        return self.high is not None


_EMBEDDINGS = """
m3e-base bge-base-zh-v1.5-plain stella-base-zh-v2 sentence_transformers:thenlper/gte-base-zh
"""
_LLMS = """
gpt-3.5-turbo gpt-4-0613 gpt-4o chatglm2-6b baichuan2-13b qwen-7b qwen-14b qwen2-7b
"""
FACTORS: Mapping[str, GridFactor] = {
    "chunk": GridFactor("chunk", "chunks", (64, 128, 256, 512), 1, 1_000_000),
    "overlap": GridFactor("overlap %", "overlaps", (0, 10, 30, 50, 70), 0, 95),
    "embedding": GridFactor("embedding", "embeddings", tuple(_EMBEDDINGS.split())),
    "retriever": GridFactor("retriever", "retrievers", RETRIEVERS),
    "topk": GridFactor("top-k", "ks", (2, 4, 6, 8, 10), 1, 1000),
    "llm": GridFactor("LLM", "llms", tuple(_LLMS.split())),
}
"""Field of Config → how it is varied (CRUD-RAG's section 4)."""
