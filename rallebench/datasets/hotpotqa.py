"""HotpotQA (Yang et al. 2018, arXiv:1809.09600): one JSON list of records with ``_id``, ``question``, ``answer``,
``supporting_facts`` ([title, sentence] each), ``context`` ([title, sentences] each), ``type`` and ``level``.

The gold pages are the titles of the supporting facts; both are needed together. The copy on Hugging Face has ``id``, and
columns instead of pairs: ``supporting_facts`` is {title: […], sent_id: […]}, ``context`` {title: […], sentences: […]}.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rallebench.datasets import Record
from rallebench.datasets._published import PublishedSet, record

HOTPOTQA = PublishedSet(
    "HotpotQA",
    ("_id", "question", "context"),
    "hotpot_dev_distractor_v1.json",
    others=("evidences",),
    copy=("id", "question", "context", "supporting_facts"),
)
SAMPLE = """[{"_id": "h1", "question": "Which sea does the river of Ulm reach?", "answer": "Black Sea", "type": "bridge", "level": "hard",
 "supporting_facts": [["Ulm", 0], ["Danube", 1]],
 "context": [["Ulm", ["Ulm lies on the Danube."]], ["Danube", ["It is a river.", " It reaches the Black Sea."]]]},
 {"_id": "h2", "question": "Are Titan and Triton moons?", "answer": "yes", "type": "comparison", "level": "hard",
 "supporting_facts": [["Titan", 0], ["Triton", 0]], "context": [["Titan", ["A moon."]], ["Triton", ["A moon."]]]}]
"""


def two_hops(row: Record, dataset: str) -> Record:
    """Convert a row of HotpotQA or 2WikiMultihopQA; its gold pages are the titles of the supporting facts."""
    texts = {title: "".join(sentences).strip() for title, sentences in _pairs(row["context"])}
    titles = dict.fromkeys(title for title, _ in _pairs(row.get("supporting_facts") or ()))
    return record(
        row["question"],
        [row.get("answer")],
        {title: texts.get(title, "") for title in titles},
        id=row.get("_id", row.get("id")),
        environment="wiki",
        dataset=dataset,
        type=row.get("type"),
        level=row.get("level"),
    )


def _pairs(columns: Any) -> Iterable[tuple[Any, Any]]:
    """Return pairs of a title and its value, also from an object with two columns."""
    return zip(*columns.values(), strict=True) if isinstance(columns, Mapping) else columns


HOTPOTQA.register(
    "hotpotqa",
    "HotpotQA's own JSON list; the gold pages are the titles of the supporting facts.",
    lambda row: two_hops(row, "hotpotqa"),
    {"hotpot_dev_distractor_v1.json": SAMPLE},
)
