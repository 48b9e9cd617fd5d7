"""The per-question table of MLflow's page, and a run's dataset as MLflow's fields. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MAX_ROWS = 5_000
"""The table of a longer run is cut, for a browser loads it whole; other artifacts hold every question."""

MAX_CELL = 1_000
"""Characters of a question, an answer or an error."""

MAX_LIST = 20
"""The most gold answers, gold pages and retrieved pages in a cell."""

FIXED = ("id", "question", "gold answers", "answer", "error", "gold pages", "pages")


def per_question(
    records: Iterable[Mapping[str, Any]],
    lines: Mapping[str, Mapping[str, Any]],
    scores: Iterable[Mapping[str, Any]],
) -> dict[str, Any]:
    """The table in the form of MLflow's ``log_table``: columns FIXED and the metrics, None = not scored.

    One row for each answered or failed question, in the order of ``records``, at most MAX_ROWS.
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
            values = by_question.get(qid, {})
            rows.append([*_fixed(qid, record, line), *(values.get(name) for name in names)])
    return {"columns": [*FIXED, *names], "data": rows}


def cut_note(lines: int) -> str:
    """A sentence if the table of ``lines`` questions is cut, else ''.

    >>> cut_note(5_001)
    'The table shows the first 5,000 of 5,001 questions; output.jsonl and report.json hold them all.'
    """
    if lines <= MAX_ROWS:
        return ""
    return f"The table shows the first {MAX_ROWS:,} of {lines:,} questions; output.jsonl and report.json hold them all."


def _fixed(qid: str, record: Mapping[str, Any], line: Mapping[str, Any]) -> list[Any]:
    return [
        qid,
        _cell(record.get("input")),
        _cells(gold_answers(record)),
        _cell(line.get("answer", "")),
        _cell(line.get("error", "")),
        _cells(gold_pages(record)),
        _cells(pages(line)),
    ]


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= MAX_CELL else f"{text[:MAX_CELL]} … (cut: {len(text):,} characters)"


def _cells(values: Sequence[str]) -> list[str]:
    more = [f"… ({len(values) - MAX_LIST} more)"] if len(values) > MAX_LIST else []
    return [*map(_cell, values[:MAX_LIST]), *more]


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
    """The pages of an episode's hits, in order, each once; the passage's id where it has no page."""
    hits = [hit for step in line.get("steps", ()) for hit in step.get("reply", {}).get("hits", ())]
    return list(dict.fromkeys(str(hit.get("page_id") or hit.get("doc_id", "")) for hit in hits))


def _outputs(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [output for output in record.get("output") or () if isinstance(output, Mapping)]


def dataset_of(run: Mapping[str, Any]) -> dict[str, str]:
    """A run's dataset as the fields of MLflow's Dataset, with the checksum of its whole file.

    ``source``: its file, or its name in the workspace. {} if ``run.json`` has no checksum.
    """
    spec = run.get("spec", {})
    checksum = str(spec.get("settings", {}).get("dataset_sha256", ""))
    if not checksum:
        return {}
    name = str(spec.get("dataset") or "questions")
    source = {"uri": run.get("dataset_file") or name, "sha256": checksum}
    return {
        "name": name[:500],
        "digest": checksum[:36],
        "source_type": "local",
        "source": json.dumps(source),
    }
