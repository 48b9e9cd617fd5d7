"""StrategyQA (Geva et al. 2021, arXiv:2101.02235): one JSON list of records with ``qid``, ``term``, ``question``, ``answer``
(true or false), ``facts``, ``decomposition`` and ``evidence``. The accepted answer is yes or no.

``evidence`` has one entry per annotator: for each step of the decomposition a list of paragraphs, ``Albany, Georgia-1``, or the
marks ``operation`` and ``no_evidence``. The gold pages are the titles of an annotator's paragraphs, needed together; every
annotator gives an evidence set of their own.
"""

from __future__ import annotations

from collections.abc import Iterable

from rallebench.datasets import Record
from rallebench.datasets._published import PublishedSet, page, record, yes_or_no

STRATEGYQA = PublishedSet(
    "StrategyQA",
    ("qid", "term", "question", "answer"),
    "strategyqa_train.json",
    copy=("qid", "term", "question", "facts"),
)
SAMPLE = """[{"qid": "s1", "term": "Ulm", "description": "City on the Danube", "question": "Could a raft drift from Ulm to the Black Sea?", "answer": true,
 "facts": ["Ulm lies on the Danube.", "The Danube reaches the Black Sea."], "decomposition": ["Which river passes Ulm?", "Does #1 reach the Black Sea?"],
 "evidence": [[[["Ulm-1"]], [["Danube-2", "Danube-3"]]], [[["Ulm-4"]], ["no_evidence", "operation"]]]},
 {"qid": "s2", "term": "Titan", "description": "Moon", "question": "Is Titan a moon of Mars?", "answer": false,
 "facts": ["Titan orbits Saturn."], "decomposition": ["Which planet does Titan orbit?"], "evidence": [[[["Titan (moon)-1"]]]]}]
"""


def _pages(annotator: Iterable[Iterable[object]]) -> list[Record]:
    """Return an annotator's paragraphs, each with its page. A step holds lists of paragraphs, and marks, which are texts."""
    lists = (element for step in annotator for element in step if isinstance(element, list))
    paragraphs = dict.fromkeys(paragraph for listed in lists for paragraph in listed)
    return [page(name.rpartition("-")[0], doc_id=name) for name in paragraphs]


def _record(row: Record) -> Record:
    return record(
        row["question"],
        [yes_or_no(row.get("answer"))],
        sets=map(_pages, row.get("evidence") or ()),
        id=row["qid"],
        environment="wiki",
        dataset="strategyqa",
    )


STRATEGYQA.register(
    "strategyqa",
    "StrategyQA's own JSON list, answered by yes or no; the gold pages are the titles of each annotator's paragraphs.",
    _record,
    {"strategyqa_train.json": SAMPLE},
)
