"""Registration of R-Eval."""

from __future__ import annotations

from pathlib import Path

from rallebench.experiments.benchmarks import BENCHMARKS, Benchmark
from rallebench.papers.reval.printed import WORKFLOWS, draw_levels, draw_shares

REVAL = BENCHMARKS.register(
    "reval",
    about="R-Eval: workflows of agents, models and tasks of two environments (Tu et al. 2024).",
)(
    Benchmark(
        name="reval",
        title="R-Eval",
        paper="arXiv:2406.11681",
        folder=Path(__file__).parent,
        tables="reval",
        first_suite="reval-scholar",
        first_table="reval:2",
        ready="Without a download: the starter's stand-ins of the tasks, in English, and BM25, in Chinese, too; choose a model that acts.",
        needs_llm=False,
        languages=("English", "Chinese"),
        order=5,
        plots={"reval_table3": WORKFLOWS, "reval_table5": WORKFLOWS},
        drawings={"reval_table3": draw_levels, "reval_text_facts": draw_shares},
    )
)
