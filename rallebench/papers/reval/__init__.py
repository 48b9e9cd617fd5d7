"""R-Eval (Tu et al. 2024): the grid of workflows, models and tasks, and logs in its form."""

from functools import partial

from rallebench.experiments import EXPERIMENTS

suite = partial(
    EXPERIMENTS.register,
    place="suites",
    paper="arXiv:2406.11681",
    ready="Without a download: the starter's stand-ins of the tasks, in English, and BM25, in Chinese, too; choose a model that acts.",
    needs_llm=False,
)
"""Registers a suite of this paper."""
