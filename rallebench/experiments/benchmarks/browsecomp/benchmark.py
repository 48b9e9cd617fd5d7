"""Registration of BrowseComp-Plus, and the plots of its printed tables."""

from __future__ import annotations

from pathlib import Path

from rallebench.experiments.benchmarks import BENCHMARKS, Benchmark
from rallebench.experiments.published.plots import Plot

BROWSECOMP = BENCHMARKS.register(
    "browsecomp", about="BrowseComp-Plus: hard questions over a fixed corpus (Chen et al. 2025)."
)(
    Benchmark(
        name="browsecomp",
        title="BrowseComp-Plus",
        paper="arXiv:2508.06600",
        folder=Path(__file__).parent,
        tables="browsecomp",
        first_suite="browsecomp",
        first_table="browsecomp:1",
        ready="Without a download: BM25 in English and in Chinese; choose a model that acts.",
        needs_llm=False,
        languages=("English", "Chinese"),
        order=8,
        plots={
            "browsecomp_table1": (Plot("With {}", ("accuracy", "recall"), each="retriever"),),
            "browsecomp_table2": (Plot("Evidence and gold documents"),),
        },
    )
)
