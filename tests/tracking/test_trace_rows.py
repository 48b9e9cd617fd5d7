"""Rows of traces written directly are those of MLflow's own store; with other tables its client writes them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from run_folders import FAILURE, STARTED, episode

from rallebench.tracking import trace_rows, trace_store
from rallebench.tracking.assessments import (
    CODE,
    EXPECTATION,
    FEEDBACK,
    HUMAN,
    JUDGE,
    TraceAssessment,
)
from rallebench.tracking.connection import MlflowStore, open_store
from rallebench.tracking.trace_store import write_traces
from rallebench.tracking.traces import Trace, TraceRecord, record

RUN = "a" * 32
PRICES = {"my-llm": {"prompt": 1.0, "completion": 2.0}}
ASSESSED = (
    TraceAssessment(EXPECTATION, "expected_response", "Yes", HUMAN, "tiny-qa"),
    TraceAssessment(EXPECTATION, "expected_pages", ["p1", "p2"], HUMAN, "tiny-qa"),
    TraceAssessment(FEEDBACK, "overall_assessment", "no", CODE, "waterfall", "not in the prompt"),
    TraceAssessment(FEEDBACK, "em", 0.25, CODE, "em"),
    TraceAssessment(FEEDBACK, "truth", 5.0, JUDGE, "judge", "It is true: 東京 é."),
    TraceAssessment(FEEDBACK, "f1", None, CODE, "f1", code="QUESTION_FAILED", error=FAILURE),
)


def traces() -> Iterator[TraceRecord]:
    """An answered question, a failed one, one without its steps, and a turn of a chat with odd characters."""
    common: dict[str, Any] = {"run_id": RUN, "name": "read two", "ended": STARTED}
    common |= {"prices": PRICES, "assessments": ASSESSED, "tags": {"rallebench.run": "shown"}}
    yield record(Trace(episode("q0"), "Who is Ada?", **common))
    yield record(Trace(episode("q1", error=FAILURE), "Who is Grace?", **common))
    yield record(Trace(episode("q2"), "東京 \0 \ud83d?", **common), steps=False)
    yield record(Trace(episode("chat é"), "And she?", ended=STARTED, session="s1"))


def rows(place: Path) -> dict[str, list[tuple[Any, ...]]]:
    """The content of the tables of traces, without what differs between two calls of MLflow."""
    with closing(sqlite3.connect(place / "mlflow.db")) as db:
        content = {}
        for table, names in trace_rows.TABLES.items():
            columns = [
                name
                for name in names.split()
                if name not in ("created_timestamp", "last_updated_timestamp")
            ]
            found = db.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY 1, 2, 3")
            content[table] = [tuple(str(v).replace(str(place), "") for v in row) for row in found]
        return content


@pytest.fixture
def store(workspace: Path, tmp_path: Path) -> MlflowStore:
    """A store without traces, in a folder of its own."""
    with (
        closing(sqlite3.connect(workspace / "mlflow.db")) as source,
        closing(sqlite3.connect(tmp_path / "mlflow.db")) as copy,
        copy,
    ):
        source.backup(copy)
        for table in (*trace_rows.TABLES, "experiment_tags", "experiments"):
            copy.execute(f"DELETE FROM {table}")
    return open_store(tmp_path)


def test_rows_written_directly_are_those_that_mlflow_writes(
    store: MlflowStore, tmp_path: Path
) -> None:
    written = list(traces())
    trace_store._send(store, written)
    by_mlflow = rows(tmp_path)
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as db, db:
        for table in trace_rows.TABLES:
            db.execute(f"DELETE FROM {table}")
    assert trace_rows.write(tmp_path / "mlflow.db", store.experiment_id, written)
    assert rows(tmp_path) == by_mlflow
    assert {table: len(content) for table, content in by_mlflow.items()} == {
        **{"trace_info": 4, "spans": 9, "assessments": 18},
        **{"trace_tags": 15, "trace_request_metadata": 11},
    }


def test_a_new_value_replaces_the_old_and_keeps_what_a_person_did(
    store: MlflowStore, tmp_path: Path
) -> None:
    (first, *_) = traces()
    write_traces(store, [first])
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as db, db:
        db.execute("UPDATE assessments SET valid = 0 WHERE name = 'em'")  # overridden on the page
    scored = [each._replace(value=1.0) if each.name == "em" else each for each in ASSESSED]
    write_traces(store, [replace(first, assessments=tuple(scored))])
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as db:
        found = db.execute(
            "SELECT value, aggregate_value, valid FROM assessments WHERE name = 'em'"
        )
        assert found.fetchall() == [("1.0", 1.0, 0)]
        assert db.execute("SELECT count(*) FROM assessments").fetchone() == (len(ASSESSED),)


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE assessments ADD COLUMN reviewer TEXT",
        "INSERT INTO sql_trace_rollup_rebuild_queue VALUES (1, '2026-01-01', 'ASSESSMENT')",
    ],
)
def test_tables_of_another_mlflow_are_left_to_mlflows_client(
    store: MlflowStore, tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as db, db:
        db.execute(change)
    before = rows(tmp_path)
    assert not trace_rows.write(tmp_path / "mlflow.db", store.experiment_id, list(traces()))
    assert rows(tmp_path) == before
    sent: list[TraceRecord] = []
    monkeypatch.setattr(trace_store, "_send", lambda store, traces: sent.extend(traces))
    write_traces(store, traces())
    assert len(sent) == 4


def test_an_interrupted_write_leaves_nothing(
    store: MlflowStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(trace_rows, "_assessments", stop)
    with pytest.raises(KeyboardInterrupt):
        write_traces(store, traces())
    assert set(map(len, rows(tmp_path).values())) == {0}
