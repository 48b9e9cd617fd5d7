"""2WikiMultihopQA (Ho et al. 2020, COLING): HotpotQA's form with ``evidences``, triples of subject, relation and object.

The versions with ``evidences_id`` and ``answer_id`` are read alike.
"""

from __future__ import annotations

from collections.abc import Iterator

from rallebench.core.sources import Source
from rallebench.core.types import Example
from rallebench.datasets import DATASETS
from rallebench.datasets._published import PublishedSet
from rallebench.datasets.hotpotqa import two_hops

WIKIMULTIHOP = PublishedSet(
    "2WikiMultihopQA", ("_id", "question", "context", "evidences"), "dev.json of 2WikiMultihopQA"
)
SAMPLE = """[{"_id": "w1", "type": "compositional", "question": "Where was the discoverer of Titan born?", "answer": "The Hague",
 "supporting_facts": [["Titan", 0], ["Christiaan Huygens", 0]], "evidences": [["Titan", "discoverer", "Christiaan Huygens"]],
 "context": [["Titan", ["Huygens discovered it."]], ["Christiaan Huygens", ["He was born in The Hague."]]]},
 {"_id": "w2", "type": "comparison", "question": "Are Ulm and Linz on one river?", "answer": "yes",
 "supporting_facts": [["Ulm", 0], ["Linz", 0]], "evidences": [["Ulm", "river", "Danube"]],
 "context": [["Ulm", ["On the Danube."]], ["Linz", ["On the Danube."]]]}]
"""


@DATASETS.register(
    "2wikimultihopqa", recognises=WIKIMULTIHOP.recognises, sample={"dev.json": SAMPLE}
)
def read_wikimultihop(source: Source) -> Iterator[Example]:
    """2WikiMultihopQA's own JSON list; the gold pages are the titles of the supporting facts."""
    yield from WIKIMULTIHOP.read(source, lambda row: two_hops(row, "2wikimultihopqa"))
