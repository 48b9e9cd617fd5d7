"""BrowseComp-Plus (Chen et al. 2025, arXiv:2508.06600): JSON lines with ``query_id``, ``query``, ``answer``, ``gold_docs``,
``evidence_docs`` and ``negative_docs``, as decrypted by its own script.

Each evidence document is a gold page in an evidence set of its own; documents with the answer are marked ``gold``.
"""

from __future__ import annotations

import re
from pathlib import Path

from rallebench.core.types import Json
from rallebench.datasets import Record
from rallebench.datasets._published import PublishedSet, record

BROWSECOMP = PublishedSet(
    "BrowseComp-Plus",
    ("query_id", "query", "gold_docs", "evidence_docs"),
    "browsecomp_plus_decrypted.jsonl of scripts_build_index/decrypt_dataset.py",
)
_BASE64 = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")
SAMPLE = """{"query_id": "1", "query": "Which moon did the man of The Hague discover?", "answer": "Titan", "gold_docs": [{"docid": "d1", "text": "Titan.", "url": ""}], "evidence_docs": [{"docid": "d1", "text": "Titan.", "url": ""}, {"docid": "d2", "text": "Huygens.", "url": ""}], "negative_docs": []}
{"query_id": "2", "query": "Which sea does the river of Ulm reach?", "answer": "Black Sea", "gold_docs": [{"docid": "d3", "text": "Danube.", "url": ""}], "evidence_docs": [{"docid": "d3", "text": "Danube.", "url": ""}], "negative_docs": []}
"""


def _record(row: Record) -> Record:
    if _BASE64.fullmatch(str(row["query"])):
        raise ValueError("still encrypted")
    gold = {str(document["docid"]) for document in row["gold_docs"]}
    evidence = dict.fromkeys([*(str(d["docid"]) for d in row["evidence_docs"]), *sorted(gold)])
    sets = [
        [{"wikipedia_id": page, **({"gold": True} if page in gold else {})}] for page in evidence
    ]
    return record(row["query"], [row.get("answer")], sets=sets, id=str(row["query_id"]))


def gold_documents(record: Json) -> frozenset[str]:
    """Return the documents of a record that contain the answer."""
    items = (item for element in record["output"] for item in element.get("provenance", ()))
    return frozenset(str(item["wikipedia_id"]) for item in items if item.get("gold"))


def folder_file(path: Path) -> Path:
    """Return the decrypted file of BrowseComp-Plus's repository, or ``path`` itself."""
    inside = path / "data" / "browsecomp_plus_decrypted.jsonl"
    return inside if inside.is_file() else path


BROWSECOMP.register(
    "browsecomp",
    "BrowseComp-Plus's decrypted JSON lines; the gold pages are the evidence documents.",
    _record,
    {"browsecomp_plus_decrypted.jsonl": SAMPLE},
)
