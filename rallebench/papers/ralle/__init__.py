"""KILT (Petroni et al. 2021) with RaLLe's chains and tables: the eleven sets, their files, their chains."""

from functools import partial

from rallebench.experiments import EXPERIMENTS

suite = partial(
    EXPERIMENTS.register,
    place="suites",
    paper="arXiv:2009.02252",
    ready="Without a download: BM25, MiniLM and the embedded reader in English; in Chinese BM25, with a model that you choose.",
    needs_llm=False,
)
"""Registers a suite of this paper."""
