"""The per-question table that MLflow's page shows, and what a run says of its question set. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MAX_ROWS = 5_000
"""A browser reads the table whole, so a longer run is cut here; its other artifacts hold every question."""

MAX_CELL = 1_000
"""Characters of a question, an answer or an error."""

MAX_LIST = 20
"""Gold answers, gold pages and retrieved pages that are shown."""

FIXED = ("id", "question", "gold answers", "answer", "error", "gold pages", "pages")


def per_question(
    records: Iterable[Mapping[str, Any]],
    lines: Mapping[str, Mapping[str, Any]],
    scores: Iterable[Mapping[str, Any]],
) -> dict[str, Any]:
    """The table as MLflow's ``log_table`` writes it: a row per question that was answered or failed, in the order
    asked, at most MAX_ROWS; its columns are FIXED and then the metrics. None means not scored.
    """
    by_question: dict[str, dict[str, float | None]] = {}
    names: dict[str, None] = {}
    for score in scores:
        names[score["metric"]] = None
        by_question.setdefault(score["qid"], {})[score["metric"]] = score.get("value")
    rows: list[list[Any]] = []
    for record in records:
        qid = str(record.get("id")).strip()
        line = lines.get(qid)
        if line is not None and len(rows) < MAX_ROWS:
            own = by_question.get(qid, {})
            rows.append([*_fixed(qid, record, line), *(own.get(name) for name in names)])
    return {"columns": [*FIXED, *names], "data": rows}


def said_of_table(lines: int) -> str:
    """How much of ``lines`` answered questions the table shows, '' if it shows all.

    >>> said_of_table(5_001)
    'The table shows the first 5,000 of 5,001 questions; output.jsonl and report.json hold them all.'
    """
    if lines <= MAX_ROWS:
        return ""
    return f"The table shows the first {MAX_ROWS:,} of {lines:,} questions; output.jsonl and report.json hold them all."


def _fixed(qid: str, record: Mapping[str, Any], line: Mapping[str, Any]) -> list[Any]:
    return [
        qid,
        _cell(record.get("input")),
        _some(gold_answers(record)),
        _cell(line.get("answer", "")),
        _cell(line.get("error", "")),
        _some(gold_pages(record)),
        _some(pages(line)),
    ]


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= MAX_CELL else f"{text[:MAX_CELL]} … (cut: {len(text):,} characters)"


def _some(values: Sequence[str]) -> list[str]:
    shown = [_cell(value) for value in values[:MAX_LIST]]
    return shown if len(values) <= MAX_LIST else [*shown, f"… ({len(values) - MAX_LIST} more)"]


def gold_answers(record: Mapping[str, Any]) -> list[str]:
    """The answers of a KILT record, in order, each once."""
    return list(dict.fromkeys(str(o["answer"]) for o in _outputs(record) if o.get("answer")))


def gold_pages(record: Mapping[str, Any]) -> list[str]:
    """The page ids of a KILT record's provenance, in order, each once."""
    evidence = [
        p for o in _outputs(record) for p in o.get("provenance") or () if isinstance(p, Mapping)
    ]
    return list(dict.fromkeys(str(p["wikipedia_id"]) for p in evidence if p.get("wikipedia_id")))


def pages(line: Mapping[str, Any]) -> list[str]:
    """The pages that an episode retrieved, in order, each once; a passage without a page is told by its own id."""
    hits = [hit for step in line.get("steps", ()) for hit in step.get("reply", {}).get("hits", ())]
    return list(dict.fromkeys(str(hit.get("page_id") or hit.get("doc_id", "")) for hit in hits))


def _outputs(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in record.get("output") or () if isinstance(one, Mapping)]


def dataset_of(run: Mapping[str, Any]) -> dict[str, str]:
    """A run's question set as the fields of MLflow's Dataset: the sum of its whole file, and where that lies.

    ``source`` is the file that was given, or the name of a set of the workspace. {} where ``run.json`` knows no sum.
    """
    spec = run.get("spec", {})
    total = str(spec.get("settings", {}).get("dataset_sha256", ""))
    if not total:
        return {}
    name = str(spec.get("dataset") or "questions")
    source = {"uri": run.get("dataset_file") or name, "sha256": total}
    return {
        "name": name[:500],
        "digest": total[:36],
        "source_type": "local",
        "source": json.dumps(source),
    }
