"""COPEN's three tasks (Peng et al. 2022, arXiv:2211.04079), a JSON list each, phrased as questions.

Similarity (``csj``): ``query``, the similar entity ``y`` and the others ``n``; property (``cpj``): a ``text`` and its truth
(``label``); context (``cic``): a ``sentence``, an ``entity`` and its concepts, of which ``my_label`` fits. The candidates are
shuffled with the question's text as seed, so that their order never changes. COPEN does not publish the labels of its test sets.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from rallebench.core.types import digest
from rallebench.datasets import Record
from rallebench.datasets._published import PublishedSet, record

CSJ = PublishedSet("COPEN", ("query", "y", "n"), "task1/iid/dev.json of COPEN")
CPJ = PublishedSet("COPEN", ("text", "label"), "task2/iid/dev.json of COPEN", others=("sentence",))
CIC = PublishedSet("COPEN", ("sentence", "entity", "label"), "task3/iid/dev.json of COPEN")
TRUTH = {0: "false", 1: "true"}


def _shuffle(names: Iterable[str], question: str) -> str:
    order = sorted(dict.fromkeys(names))
    random.Random(int(digest([question, order])[:16], 16)).shuffle(order)
    return ", ".join(order)


def _similarity(row: Record) -> Record:
    query, answer = row["query"]["name"], row["y"]["name"]
    candidates = _shuffle([answer, *(other["name"] for other in row["n"])], query)
    question = f"Which of these is of the same kind as {query}: {candidates}?"
    return record(question, [answer], environment="wiki", dataset="csj")


def _property(row: Record) -> Record:
    question = f"Is this statement true or false: {str(row['text']).strip()}"
    label = TRUTH[row["label"]] if row["label"] is not None else None
    return record(question, [label], environment="wiki", dataset="cpj")


def _concept(row: Record) -> Record:
    concepts = [path.split("_")[-1] for chain in row["label"] for path in chain]
    entity, answer = row["entity"]["name"], row.get("my_label")
    question = (
        f'In the sentence "{str(row["sentence"]).strip()}", which concept fits {entity} best: '
        f"{_shuffle(concepts, row['sentence'])}?"
    )
    return record(question, [answer and answer.split("_")[-1]], environment="wiki", dataset="cic")


CSJ.register(
    "copen-csj",
    "COPEN's conceptual similarity judgment (task1): the candidate most like an entity.",
    _similarity,
    {
        "dev.json": '[{"query": {"id": 1, "name": "Titan"}, "y": {"id": 2, "name": "Triton"}, "n": [{"id": 3, "name": "Ulm"}]},\n'
        ' {"query": {"id": 4, "name": "Rhine"}, "y": {"id": 5, "name": "Danube"}, "n": [{"id": 6, "name": "Linz"}]}]\n'
    },
)
CPJ.register(
    "copen-cpj",
    "COPEN's conceptual property judgment (task2): truth of a statement about a concept.",
    _property,
    {
        "dev.json": '[{"concept": "river", "text": "Rivers have beds.", "label": 1},\n {"concept": "moon", "text": "Moons are tea.", "label": 0}]\n'
    },
)
CIC.register(
    "copen-cic",
    "COPEN's conceptualization in contexts (task3): the concept of an entity that fits its sentence.",
    _concept,
    {
        "dev.json": '[{"sentence": "He rowed on the Danube.", "entity": {"id": 1, "name": "Danube"}, "label": [["Place", "Place_River"]], "my_label": "Place_River"},\n'
        ' {"sentence": "He saw Titan.", "entity": {"id": 2, "name": "Titan"}, "label": [["Place", "Place_Moon"]], "my_label": "Place_Moon"}]\n'
    },
)
