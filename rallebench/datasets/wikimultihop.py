"""2WikiMultihopQA (Ho et al. 2020, COLING): HotpotQA's format with ``evidences``, triples of subject, relation and
object.

Versions with ``evidences_id`` and ``answer_id`` are read, too.
"""

from __future__ import annotations

from rallebench.datasets._published import PublishedSet
from rallebench.datasets.hotpotqa import two_hops

WIKIMULTIHOP = PublishedSet(
    "2WikiMultihopQA",
    ("_id", "question", "context", "evidences"),
    "dev.json of 2WikiMultihopQA",
    copy=("id", "question", "context", "evidences", "supporting_facts"),
)
SAMPLE = """[{"_id": "w1", "type": "compositional", "question": "Where was the discoverer of Titan born?", "answer": "The Hague",
 "supporting_facts": [["Titan", 0], ["Christiaan Huygens", 0]], "evidences": [["Titan", "discoverer", "Christiaan Huygens"]],
 "context": [["Titan", ["Huygens discovered it."]], ["Christiaan Huygens", ["He was born in The Hague."]]]},
 {"_id": "w2", "type": "comparison", "question": "Are Ulm and Linz on one river?", "answer": "yes",
 "supporting_facts": [["Ulm", 0], ["Linz", 0]], "evidences": [["Ulm", "river", "Danube"]],
 "context": [["Ulm", ["On the Danube."]], ["Linz", ["On the Danube."]]]}]
"""


WIKIMULTIHOP.register(
    "2wikimultihopqa",
    "2WikiMultihopQA's own JSON list; the gold pages are the titles of the supporting facts.",
    lambda row: two_hops(row, "2wikimultihopqa"),
    {"dev.json": SAMPLE},
)
