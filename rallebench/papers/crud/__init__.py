"""CRUD-RAG (Lyu et al. 2024): six tasks on Chinese news, its grid over retrievers and models, and RAGQuestEval."""

from functools import partial

from rallebench.experiments import EXPERIMENTS

suite = partial(
    EXPERIMENTS.register,
    place="suites",
    paper="arXiv:2401.17043",
    ready="Without a download: BM25 in Chinese, the default retriever; choose a model, and an encoder for similarity, that reads Chinese.",
)
"""Registers a suite of this paper."""
