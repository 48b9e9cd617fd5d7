"""HotpotQA (Yang et al. 2018, arXiv:1809.09600): one JSON list of records with ``_id``, ``question``, ``answer``,
``supporting_facts`` ([title, sentence] each), ``context`` ([title, sentences] each), ``type`` and ``level``.

The gold pages are those of the supporting facts, by title: both are needed together.
"""

from __future__ import annotations

from rallebench.datasets import Record
from rallebench.datasets._published import PublishedSet, record

HOTPOTQA = PublishedSet(
    "HotpotQA",
    ("_id", "question", "context"),
    "hotpot_dev_distractor_v1.json",
    others=("evidences",),
)
SAMPLE = """[{"_id": "h1", "question": "Which sea does the river of Ulm reach?", "answer": "Black Sea", "type": "bridge", "level": "hard",
 "supporting_facts": [["Ulm", 0], ["Danube", 1]],
 "context": [["Ulm", ["Ulm lies on the Danube."]], ["Danube", ["It is a river.", " It reaches the Black Sea."]]]},
 {"_id": "h2", "question": "Are Titan and Triton moons?", "answer": "yes", "type": "comparison", "level": "hard",
 "supporting_facts": [["Titan", 0], ["Triton", 0]], "context": [["Titan", ["A moon."]], ["Triton", ["A moon."]]]}]
"""


def two_hops(row: Record, dataset: str) -> Record:
    """A row of HotpotQA or 2WikiMultihopQA as a record; its gold pages are the titles of the supporting facts."""
    texts = {title: "".join(sentences).strip() for title, sentences in row["context"]}
    titles = dict.fromkeys(title for title, _ in row.get("supporting_facts") or ())
    return record(
        row["question"],
        [row.get("answer")],
        {title: texts.get(title, "") for title in titles},
        id=row["_id"],
        environment="wiki",
        dataset=dataset,
        type=row.get("type"),
        level=row.get("level"),
    )


HOTPOTQA.register(
    "hotpotqa",
    "HotpotQA's own JSON list; the gold pages are the titles of the supporting facts.",
    lambda row: two_hops(row, "hotpotqa"),
    {"hotpot_dev_distractor_v1.json": SAMPLE},
)
