"""The factors of CRUD-RAG's grid, with the paper's values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rallebench.papers.crud.retrieval import RETRIEVERS

WORDS = "bm25"
ENCODER, RERANKER = "bge-base-zh-v1.5-plain", "BAAI/bge-reranker-base"
"""The paper's models for Chinese. They are used if they are on this machine or named by the user."""


@dataclass(frozen=True, slots=True)
class GridFactor:
    """A factor of the grid. ``heading``: its table heading; ``setting``: the setting with its values; ``papers``: the paper's
    values. ``low``, ``high``: bounds for numeric values, else None."""

    heading: str
    setting: str
    papers: tuple[int | str, ...]
    low: int | None = None
    high: int | None = None

    @property
    def ordered(self) -> bool:
        """True if the values are numeric."""
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
"""Field of Config → its factor in the grid (CRUD-RAG's section 4)."""
