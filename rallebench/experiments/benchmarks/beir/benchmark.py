"""Registration of BEIR."""

from __future__ import annotations

from pathlib import Path

from rallebench.experiments.benchmarks import BENCHMARKS, Benchmark

BEIR = BENCHMARKS.register(
    "beir", about="BEIR: retrieval over sets of many kinds (Thakur et al. 2021)."
)(
    Benchmark(
        name="beir",
        title="BEIR",
        paper="arXiv:2104.08663",
        folder=Path(__file__).parent,
        tables="beir",
        first_suite="beir",
        first_table="beir:2",
        ready="Without a download: BM25 and MiniLM in English, BM25 in Chinese.",
        needs_llm=False,
        languages=("English", "Chinese"),
        order=6,
    )
)
