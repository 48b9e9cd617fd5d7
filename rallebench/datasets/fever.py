"""FEVER (Thorne et al. 2018, arXiv:1803.05355): JSON lines with ``id``, ``claim``, ``label`` and ``evidence``. The accepted answer
is the label: SUPPORTS, REFUTES or NOT ENOUGH INFO.

``evidence`` is a list of evidence sets of sentences, ``[annotation, evidence, page, line]`` each; the pages of a set are needed
together. A page's id is FEVER's, as in its ``wiki-pages``; its title is readable. A claim without enough information has no gold
pages. The copy on Hugging Face has a row for each sentence; the rows of a claim follow each other, and are joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from rallebench.core.sources import Source
from rallebench.datasets import DATASETS, Record
from rallebench.datasets._published import PublishedSet, record

LABELS = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")
_ESCAPED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-COLON-": ":", "_": " "}


def _fits(row: Record) -> bool:
    return row["label"] in (*LABELS, "", None)


FEVER = PublishedSet(
    "FEVER",
    ("id", "claim", "label", "evidence"),
    "train.jsonl or shared_task_dev.jsonl of FEVER",
    copy=("id", "claim", "label", "evidence_wiki_url", "evidence_sentence_id"),
    like=_fits,
    english=False,
)
SAMPLE = """{"id": 91198, "verifiable": "VERIFIABLE", "label": "SUPPORTS", "claim": "Titan is a moon of Saturn.", "evidence": [[[108548, 120001, "Titan_-LRB-moon-RRB-", 0]], [[108549, 120002, "Titan_-LRB-moon-RRB-", 3], [108549, 120002, "Saturn", 1]]]}
{"id": 91199, "verifiable": "NOT VERIFIABLE", "label": "NOT ENOUGH INFO", "claim": "Ulm has a tram museum.", "evidence": [[[108550, null, null, null]]]}
"""


def _page(name: str, line: Any) -> Record:
    title = name
    for escaped, character in _ESCAPED.items():
        title = title.replace(escaped, character)
    return {"wikipedia_id": name, "title": title, "meta": {"fever_sentence_id": line}}


def _record(row: Record) -> Record:
    label = str(row["label"] or "").upper()
    if label and label not in LABELS:
        raise ValueError(label)
    sets = (
        [_page(name, line) for *_, name, line in sentences if name is not None]
        for sentences in row["evidence"] or ()
    )
    return record(
        row["claim"], [label], sets=sets, id=row["id"], environment="wiki", dataset="fever"
    )


def _join(rows: Iterable[tuple[int, Record]]) -> Iterator[tuple[int, Record]]:
    """Join the rows of a claim of the copy, which has a row for each sentence, to one row with evidence sets."""

    def claim(pair: tuple[int, Record]) -> object:
        line, row = pair
        return ("claim", row.get("id")) if "evidence_wiki_url" in row else ("line", line)

    for _, same in groupby(rows, key=claim):
        line, first = next(same)
        if "evidence_wiki_url" in first:
            sentences = [first, *(row for _, row in same)]
            first = {**first, "evidence": _sets(sentences)}
        yield line, first


def _sets(rows: Iterable[Record]) -> list[list[Any]]:
    """Return the evidence sets in the rows of one claim; the sentences of a set have the same two numbers."""
    sets: dict[tuple[str, str], list[Any]] = {}
    for row in rows:
        numbers = (str(row.get("evidence_annotation_id")), str(row.get("evidence_id")))
        sentence = [row["evidence_wiki_url"] or None, row.get("evidence_sentence_id")]
        sets.setdefault(numbers, []).append(sentence)
    return list(sets.values())


@DATASETS.register("fever", recognises=FEVER.recognises, sample={"shared_task_dev.jsonl": SAMPLE})
def read_fever(source: Source) -> Iterator[tuple[int, Record]]:
    """FEVER's own JSON lines, answered by the label; the gold pages are those of each evidence set."""
    return FEVER.records(source, _record, _join(FEVER.rows(source)))
