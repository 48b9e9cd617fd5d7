"""What the lists of Data and their details share: words of an index, its state, and coverage."""

from __future__ import annotations

from rallebench.gui import html
from rallebench.services.gold_coverage import Coverage
from rallebench.services.library import RetrieverLine

KINDS = {
    "bm25": "words",
    "flat": "dense, exact",
    "numpy-flat": "dense, exact",
    "hnsw": "dense, graph",
    "hnswlib": "dense, graph",
    "ivf-sq8": "dense, 8-bit",
    "diskann": "dense, on disk",
    "rrf": "hybrid, by rank",
    "scores": "hybrid, by score",
    "union": "hybrid, sampled",
    "rerank": "reranked",
    "llm-rerank": "reranked by a model",
}
"""Kind of an index or way of combining → what it is called; the exact name is the tooltip."""


def state(line: RetrieverLine) -> str:
    """The state of an index in a word, and why if it is damaged."""
    words = line.state or "ready"
    about = line.about if words in ("damaged", "not built") else ""
    return html.state(words, about)


def switch_button(line: RetrieverLine) -> str:
    """Load, or unload."""
    if line.state == "loaded":
        return html.button("Unload", "models.unload", id=line.name)
    return html.button("Load", "models.load", id=line.name, what="retriever")


def badge(share: Coverage | None, *, loading: bool = False) -> str:
    """The coverage of a dataset by a corpus or an index."""
    if loading:
        return '<span class="cov">…</span>'
    if share is None or share.share is None:
        why = "not known before it is loaded" if share is None else "no gold pages are named"
        return f'<span class="cov" title="{why}">–</span>'
    level = "full" if share.share >= 0.95 else "some" if share.share >= 0.5 else "low"
    words = f"{share.held:,} of {share.total:,} gold pages are there"
    return f'<span class="cov {level}" title="{words}">{100 * share.share:.1f} %</span>'
