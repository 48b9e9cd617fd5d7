"""Write traces as rows of MLflow's SQLite tables, in one transaction.

MLflow's store takes some 10 ms for a trace with its assessments, this module less than 1. The rows are those that
MLflow writes itself (``tests/tracking/test_trace_rows.py`` compares them). If MLflow's tables have other columns, as in
another version, or MLflow aggregates traces by day, nothing is written, and the caller uses MLflow's client.
"""

from __future__ import annotations

import base64
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rallebench.core.json_values import JsonValue
from rallebench.tracking.assessments import EXPECTATION, RUN_OF_ASSESSMENT, TraceAssessment
from rallebench.tracking.database import open_database
from rallebench.tracking.traces import (
    DOLLARS,
    SESSION,
    SOURCE_RUN,
    SPAN_DOLLARS,
    SPAN_MODEL,
    TOKENS,
    SpanRecord,
    TraceRecord,
)

TABLES = {
    "trace_info": "request_id experiment_id timestamp_ms execution_time_ms status client_request_id request_preview "
    "response_preview db_payload_generation trace_name session_id input_tokens output_tokens total_tokens "
    "cache_read_input_tokens cache_creation_input_tokens cache_creation_input_tokens_above_1hr input_cost output_cost "
    "total_cost",
    "trace_tags": "key value request_id",
    "trace_request_metadata": "key value request_id",
    "spans": "trace_id experiment_id span_id parent_span_id name type status start_time_unix_nano end_time_unix_nano "
    "content input_cost output_cost total_cost model_name model_provider",
    "assessments": "assessment_id trace_id name assessment_type value error created_timestamp last_updated_timestamp "
    "source_type source_id run_id span_id rationale overrides valid assessment_metadata experiment_id "
    "trace_timestamp_ms aggregate_value is_numeric_value",
}
"""The columns of MLflow 3.17."""

_GENERATED = {"spans": {"duration_ns"}}
_ROLLUPS = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%rollup%'"
_UPDATED = (
    *("value", "error", "rationale", "last_updated_timestamp", "source_type", "source_id"),
    *("aggregate_value", "is_numeric_value"),
)
"""The columns that a new value of an assessment changes."""

_MODEL_LENGTH = 500

Row = tuple[object, ...]


def write(database: Path, experiment_id: str, traces: Sequence[TraceRecord]) -> bool:
    """Write the traces; return False, without a change, if the tables are not those of TABLES.

    Traces that are stored already get the new values of their assessments; a person's changes of these stay valid.
    """
    with open_database(database) as db:
        if not _fits(db):
            return False
        db.execute("BEGIN IMMEDIATE")
        try:
            stored = {row[0] for row in _known_ids(db, [trace.trace_id for trace in traces])}
            folder = str(_artifact_location(db, experiment_id)).rstrip("/")
            new = [trace for trace in traces if trace.trace_id not in stored]
            _insert(db, "trace_info", (_info(trace, experiment_id) for trace in new))
            _insert(db, "trace_tags", (row for trace in new for row in _tags(trace, folder)))
            _insert(
                db, "trace_request_metadata", (row for trace in new for row in _metadata(trace))
            )
            _insert(db, "spans", (row for trace in new for row in _spans(trace, experiment_id)))
            now = int(time.time() * 1000)
            rows = (row for trace in traces for row in _assessments(trace, experiment_id, now))
            changed = ", ".join(f"{name} = excluded.{name}" for name in _UPDATED)
            _insert(
                db, "assessments", rows, f" ON CONFLICT (assessment_id) DO UPDATE SET {changed}"
            )
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")
    return True


def _fits(db: sqlite3.Connection) -> bool:
    for table, columns in TABLES.items():
        names = {row[1] for row in db.execute(f"PRAGMA table_xinfo({table})")}
        if names - _GENERATED.get(table, set()) != set(columns.split()):
            return False
    rollups = [row[0] for row in db.execute(_ROLLUPS)]
    return not any(db.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone() for name in rollups)


def _known_ids(db: sqlite3.Connection, trace_ids: Sequence[str]) -> Iterator[tuple[str]]:
    for start in range(0, len(trace_ids), 500):
        part = trace_ids[start : start + 500]
        marks = ",".join("?" * len(part))
        yield from db.execute(
            f"SELECT request_id FROM trace_info WHERE request_id IN ({marks})", part
        )


def _artifact_location(db: sqlite3.Connection, experiment_id: str) -> str:
    query = "SELECT artifact_location FROM experiments WHERE experiment_id = ?"
    return str(db.execute(query, (int(experiment_id),)).fetchone()[0])


def _insert(db: sqlite3.Connection, table: str, rows: Iterator[Row], then: str = "") -> None:
    columns = TABLES[table].split()
    marks = ", ".join("?" * len(columns))
    db.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}){then}", rows)


def _info(trace: TraceRecord, experiment_id: str) -> Row:
    tokens = _json_object(trace.metadata, TOKENS)
    dollars = _json_object(trace.metadata, DOLLARS)
    return (
        trace.trace_id,
        int(experiment_id),
        trace.start,
        trace.duration,
        "ERROR" if trace.failed else "OK",
        None,
        trace.request,
        trace.response,
        1,
        trace.name,
        trace.metadata.get(SESSION),
        *(tokens.get(f"{part}_tokens") for part in ("input", "output", "total")),
        *(None, None, None),
        *(dollars.get(f"{part}_cost") for part in ("input", "output", "total")),
    )


def _json_object(texts: Mapping[str, str], key: str) -> dict[str, Any]:
    return dict(json.loads(texts[key])) if key in texts else {}


def _tags(trace: TraceRecord, folder: str) -> Iterator[Row]:
    tags = {
        **trace.tags,
        "mlflow.artifactLocation": f"{folder}/traces/{trace.trace_id}/artifacts",
        "mlflow.trace.spansLocation": "TRACKING_STORE",
    }
    return ((key, value, trace.trace_id) for key, value in tags.items())


def _metadata(trace: TraceRecord) -> Iterator[Row]:
    columns = (SESSION, TOKENS, DOLLARS)
    entries = {key: value for key, value in trace.metadata.items() if key not in columns}
    entries["mlflow.trace.infoFinalized"] = "true"
    return ((key, value, trace.trace_id) for key, value in entries.items())


def _spans(trace: TraceRecord, experiment_id: str) -> Iterator[Row]:
    for span in trace.spans:
        cost = _json_object(span.attributes, SPAN_DOLLARS)
        model = span.attributes.get(SPAN_MODEL)
        yield (
            trace.trace_id,
            int(experiment_id),
            span.span_id,
            span.parent_id,
            span.name,
            span.kind,
            "ERROR" if span.error else "OK",
            span.start,
            span.end,
            _content(span, trace.trace_id),
            *(cost.get(f"{part}_cost") for part in ("input", "output", "total")),
            str(json.loads(model))[:_MODEL_LENGTH] if model else None,
            None,
        )


def _content(span: SpanRecord, trace_id: str) -> str:
    value = {
        "trace_id": _base64(trace_id.removeprefix("tr-")),
        "span_id": _base64(span.span_id),
        "parent_span_id": _base64(span.parent_id) if span.parent_id else None,
        "name": span.name,
        "start_time_unix_nano": span.start,
        "end_time_unix_nano": span.end,
        "events": span.events,
        "status": span.status,
        "attributes": span.attributes,
        "links": [],
    }
    return json.dumps(value, ensure_ascii=False)


def _base64(digits: str) -> str:
    return base64.b64encode(bytes.fromhex(digits)).decode()


def _assessments(trace: TraceRecord, experiment_id: str, now: int) -> Iterator[Row]:
    run = trace.metadata.get(SOURCE_RUN)
    about = json.dumps({RUN_OF_ASSESSMENT: run}) if run else None
    for each in trace.assessments:
        number, is_number = _aggregate(each.value)
        yield (
            each.id_on(trace.trace_id),
            trace.trace_id,
            each.name,
            "expectation" if each.kind == EXPECTATION else "feedback",
            json.dumps(each.value),
            _error(each) if each.code else None,
            now,
            now,
            each.source_type,
            each.source,
            run,
            None,
            each.rationale or None,
            None,
            True,
            about,
            int(experiment_id),
            trace.start,
            number,
            is_number,
        )


def _error(each: TraceAssessment) -> str:
    return json.dumps({"error_code": each.code, "error_message": each.error, "stack_trace": None})


def _aggregate(value: JsonValue) -> tuple[float | None, bool]:
    """Return the number that MLflow averages, and whether the value is a number."""
    if isinstance(value, (int, float)):
        return float(value), True
    words = {"yes": 1.0, "no": 0.0}
    return words.get(value.strip().lower()) if isinstance(value, str) else None, False
