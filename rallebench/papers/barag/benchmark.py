"""Registration of BARAG, and the plots of its printed tables."""

from __future__ import annotations

from pathlib import Path

from rallebench.experiments.benchmarks import BENCHMARKS, Benchmark
from rallebench.experiments.published.plots import Plot

SCORE = "mean score, 1 to 5"
JUDGED = (
    Plot("Scores of the judge", ("truthfulness", "relevance"), SCORE),
    Plot("Tokens", ("n_in", "n_out"), "tokens in all"),
)

BARAG = BENCHMARKS.register(
    "barag",
    about="BARAG: an agent that decides for each question whether to retrieve (Kenneweg et al. 2024).",
)(
    Benchmark(
        name="barag",
        title="BARAG",
        paper="arXiv:2403.00820",
        folder=Path(__file__).parent,
        tables="barag",
        first_suite="barag-modes",
        first_table="barag:1",
        ready="Without a download: BM25 in English and in Chinese, MiniLM in English; choose a model that decides and judges.",
        languages=("English", "Chinese"),
        order=3,
        plots={
            "barag_table1": tuple(
                Plot(metric.capitalize(), y=SCORE, where={"metric": metric})
                for metric in ("truthfulness", "relevance")
            ),
            "barag_table2": JUDGED,
            "barag_table3": JUDGED,
        },
    )
)
