"""What CRUD-RAG's numbers are: of which answers, over how many."""

from __future__ import annotations

from collections.abc import Mapping

from rallebench.metrics.judges.ragquesteval import COLUMNS

ANSWERED = "Over the answers that are not empty."

DEFINITIONS: Mapping[str, str] = {
    "bleu-avg": f"BLEU of one answer on jieba's words, geometric mean of bleu-1 … bleu-4, no brevity penalty, no smoothing. {ANSWERED}",
    **{
        f"bleu-{n}": f"The share of the answer's {n}-grams of jieba's words that the reference has. {ANSWERED}"
        for n in range(1, 5)
    },
    "rouge-L": f"F-measure of the longest common subsequence of jieba's words. {ANSWERED}",
    "similarity": f"Cosine of the sentence embeddings of answer and reference; CRUD-RAG calls it bertScore. {ANSWERED}",
    "length": f"Characters of the answer. {ANSWERED}",
    "mrr": "1 / rank of each gold document among the passages, 0 if it is not there, the mean over a record's gold documents. "
    "Over the answers that are not empty of records whose gold documents are known.",
    **{column.name: column.definition for column in COLUMNS},
}


def named(*metrics: str) -> dict[str, str]:
    """These metrics with their definitions, in this order."""
    return {metric: DEFINITIONS[metric] for metric in metrics}
