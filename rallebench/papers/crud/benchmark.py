"""Registration of CRUD-RAG, and the plots of its printed tables."""

from __future__ import annotations

from pathlib import Path

from rallebench.core.tables import FigureKind
from rallebench.experiments.benchmarks import BENCHMARKS, Benchmark
from rallebench.experiments.published.plots import Plot


def _by_factor(setting: str, kind: FigureKind) -> tuple[Plot, ...]:
    """ROUGE-L and recall for every task over the values of one setting."""
    x = setting.replace("_", " ")
    return tuple(
        Plot(f"{column} by {x}", (column,), x=x, kind=kind, along=setting, by="task")
        for column in ("rouge-L", "recall")
    )


CRUD = BENCHMARKS.register("crud", about="CRUD-RAG: six tasks on Chinese news (Lyu et al. 2024).")(
    Benchmark(
        name="crud",
        title="CRUD-RAG",
        paper="arXiv:2401.17043",
        folder=Path(__file__).parent,
        tables="crud",
        first_suite="crud-qa1",
        first_table="crud:2",
        ready="Without a download: BM25 in Chinese, the default retriever; choose a model, and an encoder for similarity, that reads Chinese.",
        languages=("Chinese",),
        order=2,
        plots={
            "crud_table3": _by_factor("chunk_size", "line"),
            "crud_table4": _by_factor("chunk_overlap_percent", "line"),
            "crud_table5": _by_factor("retriever", "bar"),
            "crud_table6": _by_factor("embedding", "bar"),
            "crud_table7": _by_factor("top-k", "line"),
            "crud_table8": _by_factor("llm", "bar"),
        },
    )
)
