"""CRUD-RAG's metrics of a single answer, from its text and the ranks of its gold documents."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rallebench.core.types import Hit
from rallebench.metrics.rouge import rouge_lcs_score
from rallebench.metrics.unpenalised_bleu import geometric_mean, precisions
from rallebench.metrics.words import jieba_words
from rallebench.papers.crud.judge import COLUMNS
from rallebench.papers.crud.records import GoldDocument

ANSWERED = "Over the answers that are not empty."
RANK = "1 / rank of each gold document among the passages, 0 if it is not there, the mean over a record's gold documents."
DEFINITIONS: Mapping[str, str] = {
    "bleu-avg": f"BLEU of one answer on jieba's words, geometric mean of bleu-1 … bleu-4, no brevity penalty, no smoothing. {ANSWERED}",
    **{
        f"bleu-{n}": f"The share of the answer's {n}-grams of jieba's words that the reference has. {ANSWERED}"
        for n in range(1, 5)
    },
    "rouge-L": f"F-measure of the longest common subsequence of jieba's words. {ANSWERED}",
    "similarity": f"Cosine of the sentence embeddings of answer and reference; CRUD-RAG calls it bertScore. {ANSWERED}",
    "length": f"Characters of the answer. {ANSWERED}",
    "mrr": f"{RANK} Over the answers that are not empty of records whose gold documents are known.",
    **{column.name: column.definition for column in COLUMNS},
}
RETRIEVAL: Mapping[str, str] = {
    "mrr": f"{RANK} Over the records whose gold documents are known.",
    "gold_found": "The share of a record's gold documents of which a passage was found. Over the records whose gold documents are known.",
}
"""The metrics of a run without a model."""
LEAST = 20
"""The fewest characters needed to identify a passage by its text alone."""
_HEAD = re.compile(r"^.{0,60}?正文：")


def text_values(answer: str, reference: str) -> dict[str, float | None]:
    """BLEU, its four precisions, ROUGE-L and the length of one answer."""
    orders = precisions(answer, reference)
    rouge = rouge_lcs_score(jieba_words(answer), jieba_words(reference))
    return {
        "bleu-avg": geometric_mean(orders),
        **{f"bleu-{n}": value for n, value in enumerate(orders, 1)},
        "rouge-L": rouge,
        "length": float(len(answer)),
    }


def reciprocal_ranks(gold: Sequence[GoldDocument], hits: Sequence[Hit]) -> list[float]:
    """1 / rank of the first passage from each gold document; 0 for a document that was not retrieved (CRUD-RAG, figures 7 and
    8).

    A passage is identified by its own id, the id of its page or source document, or its text.
    """
    shapes = []
    for hit in hits:
        passage = hit.passage
        names = {passage.doc_id, passage.page_id, passage.doc_id.rsplit("#", 1)[0]} - {""}
        shapes.append((names, _plain(passage.text)))

    def reciprocal(document: GoldDocument) -> float:
        text = _plain(document.text)
        for rank, (names, passage) in enumerate(shapes, 1):
            long = len(passage) >= LEAST and len(text) >= LEAST
            same = not document.ids and long and (passage in text or text in passage)
            if same or document.ids & names:
                return 1 / rank
        return 0.0

    return list(map(reciprocal, gold))


def _plain(text: str) -> str:
    """The text without white space and the leading date of a report."""
    return "".join(_HEAD.sub("", text).split())
