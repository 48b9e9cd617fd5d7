"""Registration of MTRAG, and the plots of its printed tables."""

from __future__ import annotations

from pathlib import Path

from rallebench.experiments.benchmarks import BENCHMARKS, Benchmark
from rallebench.experiments.published.plots import Plot

MTRAG = BENCHMARKS.register(
    "mtrag", about="MTRAG: conversations of several turns over four domains (Katsis et al. 2025)."
)(
    Benchmark(
        name="mtrag",
        title="MTRAG",
        paper="arXiv:2501.03468",
        folder=Path(__file__).parent,
        tables="mtrag",
        first_suite="mtrag",
        first_table="mtrag:1",
        ready="Without a download: BM25, MiniLM and the embedded reader in English; in Chinese BM25, with a model that you choose.",
        needs_llm=False,
        languages=("English", "Chinese"),
        order=7,
        plots={"mtrag_table1": (Plot("Asked by: {}", each="form"),)},
    )
)
