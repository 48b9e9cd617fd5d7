"""RGB (Chen et al. 2023): its four tests, testbeds from an index, its own files of predictions."""

from functools import partial

from rallebench.experiments import EXPERIMENTS

suite = partial(
    EXPERIMENTS.register,
    place="suites",
    paper="arXiv:2309.01431",
    ready="Without a download: the embedded reader in English; in Chinese a model that you choose. Nothing is retrieved.",
)
"""Registers a suite of this paper."""
