"""Write traces with their assessments: into the tables of an SQLite file, or through MLflow's client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rallebench.core.types import Episode
from rallebench.tracking import trace_rows
from rallebench.tracking.assessments import EXPECTATION, RUN_OF_ASSESSMENT, TraceAssessment
from rallebench.tracking.connection import (
    MlflowStore,
    import_mlflow,
    is_server,
    mlflow_errors,
    open_store,
    sqlite_file,
)
from rallebench.tracking.traces import SOURCE_RUN, SpanRecord, Trace, TraceRecord, record

MOST_TRACES, MOST_BY_CLIENT = 5_000, 1_000
"""Maximum traces of a run in an SQLite file, and in a store to which the client sends them one by one."""

_CONNECTIONS = 8
"""Traces sent to a server at the same time."""

_BATCH = 2_000_000
"""Characters of spans in one request."""


def most_traces(store: MlflowStore) -> int:
    """Return how many traces of a run the store takes in reasonable time."""
    return MOST_TRACES if sqlite_file(store.uri) else MOST_BY_CLIENT


def write_traces(store: MlflowStore, traces: Iterable[TraceRecord]) -> None:
    """Write traces with their assessments; a stored trace gets the new assessments. Raises RalleError.

    Everything is stored when this returns; nothing is queued.
    """
    with mlflow_errors(store.uri):
        if database := sqlite_file(store.uri):
            traces = list(traces)
            if trace_rows.write(database, store.experiment_id, traces):
                return
        _send(store, traces)


def trace_episode(
    episode: Episode,
    question: str,
    *,
    workspace: Path,
    tracking_uri: str | None = None,
    source: str = "",
    **fields: Any,
) -> str:
    """Log one episode and return its trace id. Raises RalleError; ``live.trace_later`` never does.

    ``source``: ``develop`` or ``chat``; ``fields``: fields of ``Trace``.
    """
    store = open_store(workspace, tracking_uri)
    tags = {"rallebench.source": source} if source else {}
    trace = record(Trace(episode, question, tags=tags, **fields))
    write_traces(store, [trace])
    return trace.trace_id


# through MLflow's client


def _send(store: MlflowStore, traces: Iterable[TraceRecord]) -> None:
    import_mlflow()
    from mlflow.entities import TraceData
    from mlflow.tracing.client import TracingClient

    client = TracingClient(store.uri)
    experiment_id = store.experiment_id
    with ThreadPoolExecutor(_CONNECTIONS if is_server(store.uri) else 1) as pool:
        for batch in _batches(traces):
            # A trace is created with its assessments, in one request. Sent again, it is updated.
            infos = list(
                pool.map(client.start_trace, [_info(trace, experiment_id) for trace in batch])
            )
            spans = [[_span(span, trace.trace_id) for span in trace.spans] for trace in batch]
            try:
                client.log_spans(experiment_id, [span for each in spans for span in each])
            except RuntimeError:  # raised by servers before 3.4, which store spans as artifacts
                for info, each in zip(infos, spans):
                    client._upload_trace_data(info, TraceData(each))


def _batches(traces: Iterable[TraceRecord]) -> Iterator[list[TraceRecord]]:
    """Divide traces into batches of some _BATCH characters."""
    batch: list[TraceRecord] = []
    size = 0
    for trace in traces:
        batch.append(trace)
        size += sum(span.size for span in trace.spans)
        if size > _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _info(trace: TraceRecord, experiment_id: str) -> Any:
    from mlflow.entities import TraceInfo, TraceLocation, TraceState

    return TraceInfo(
        trace.trace_id,
        TraceLocation.from_experiment_id(experiment_id),
        trace.start,
        TraceState.ERROR if trace.failed else TraceState.OK,
        request_preview=trace.request,
        response_preview=trace.response,
        execution_duration=trace.duration,
        trace_metadata=dict(trace.metadata),
        tags={"mlflow.traceName": trace.name, **trace.tags},
        assessments=[_assessment(each, trace) for each in trace.assessments],
    )


def _assessment(each: TraceAssessment, trace: TraceRecord) -> Any:
    from mlflow.entities import AssessmentError, AssessmentSource, Expectation, Feedback

    run = trace.metadata.get(SOURCE_RUN, "")
    common: dict[str, Any] = {
        "name": each.name,
        "value": each.value,
        "source": AssessmentSource(each.source_type, each.source),
        "trace_id": trace.trace_id,
        "metadata": {RUN_OF_ASSESSMENT: run} if run else None,
    }
    if each.kind == EXPECTATION:
        entity: Any = Expectation(**common)
    else:
        error = AssessmentError(each.code, each.error) if each.code else None
        entity = Feedback(**common, error=error, rationale=each.rationale or None)
    entity.assessment_id = each.id_on(trace.trace_id)
    return entity


def _span(span: SpanRecord, trace_id: str) -> Any:
    from mlflow.entities import Span

    return Span.from_dict(
        {
            "trace_id": trace_id,
            "span_id": span.span_id,
            "parent_span_id": span.parent_id,
            "name": span.name,
            "start_time_unix_nano": span.start,
            "end_time_unix_nano": span.end,
            "events": span.events,
            "status": span.status,
            "attributes": dict(span.attributes),
        }
    )
