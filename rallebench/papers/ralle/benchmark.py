"""Registration of KILT with RaLLe's tables and their plots."""

from __future__ import annotations

from pathlib import Path

from rallebench.experiments.benchmarks import BENCHMARKS, Benchmark
from rallebench.experiments.published.plots import Plot

SET, RETRIEVAL = "set", {"block": "retrieval"}
BLOCKS = (
    Plot("Downstream", x=SET, where={"block": "downstream"}),
    Plot("KILT: counted where R-precision is 1", x=SET, where={"block": "KILT"}),
)

KILT = BENCHMARKS.register(
    "kilt",
    about="KILT: eleven sets over Wikipedia (Petroni et al. 2021), with the chains of RaLLe (Hoshi et al. 2023).",
)(
    Benchmark(
        name="kilt",
        title="KILT",
        paper="arXiv:2009.02252",
        folder=Path(__file__).parent,
        tables="ralle",
        tables_title="RaLLe (KILT)",
        first_suite="kilt",
        first_table="ralle:2",
        ready="Without a download: BM25, MiniLM and the embedded reader in English; in Chinese BM25, with a model that you choose.",
        needs_llm=False,
        languages=("English", "Chinese"),
        order=4,
        plots={
            "ralle_table2": BLOCKS,
            "ralle_table3": (Plot("Page-level R-precision of the retrievers", x=SET),),
            "ralle_table4": (
                Plot(
                    "R-precision against seconds",
                    ("sec_per_Q", "Avg_R-Prec", "Memory"),
                    *("R-precision", "s a question", "bubble"),
                    where=RETRIEVAL,
                ),
            ),
            "ralle_table5": BLOCKS,
            "ralle_table6": (Plot("Closed-book downstream scores (no retrieval)", x=SET),),
            "ralle_table7": (Plot("Without documents, on NQ", ("EM", "has_answer", "f1")),),
            "ralle_table8": (Plot("Recall@5 of the retrievers", x=SET),),
            "ralle_table9": (Plot("Retrieval", y="s a question", x=SET, where=RETRIEVAL),),
        },
    )
)
