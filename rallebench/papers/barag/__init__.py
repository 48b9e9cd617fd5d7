"""BARAG (Kenneweg et al. 2024): a boolean agent that reads passages only where it needs them, and a judge of its answers."""

from functools import partial

from rallebench.experiments import EXPERIMENTS

suite = partial(
    EXPERIMENTS.register,
    place="suites",
    paper="arXiv:2402.16874",
    ready="Without a download: BM25 in English and in Chinese, MiniLM in English; choose a model that decides and judges.",
)
"""Registers a suite of this paper."""
