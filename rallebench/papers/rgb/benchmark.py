"""Registration of RGB, and the plots of its printed tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rallebench.core.letters import CODES
from rallebench.experiments.benchmarks import BENCHMARKS, Benchmark
from rallebench.experiments.published.plots import Plot

NOISE = tuple(
    Plot(name, (f"{code}_*",), x="share of noise", kind="line", cut=f"{code}_")
    for code, name in CODES.items()
)

RGB = BENCHMARKS.register(
    "rgb", about="RGB: noise, rejection, integration and false documents (Chen et al. 2023)."
)(
    Benchmark(
        name="rgb",
        title="RGB",
        paper="arXiv:2309.01431",
        folder=Path(__file__).parent,
        tables="rgb",
        first_suite="rgb-noise",
        first_table="rgb:1",
        ready="Without a download: the embedded reader in English; in Chinese a model that you choose. Nothing is retrieved.",
        languages=("English", "Chinese"),
        order=1,
        plots={
            "rgb_table1": NOISE,
            "rgb_table3": tuple(replace(plot, x="", kind="bar") for plot in NOISE),
            "rgb_table5": NOISE,
            "rgb_table6": (Plot("Errors of integration", along="error_type"),),
            "rgb_table7": tuple(
                Plot(name, where={"language": code}) for code, name in CODES.items()
            ),
        },
    )
)
