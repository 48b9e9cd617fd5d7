"""Time to log a run to MLflow, compared with MLflow's bare calls.

Makes a run folder with episodes of real size (5 passages of 600 characters) and the default metrics, logs it to a fresh
SQLite database, and then sends the same params, metrics, tags and files with nothing but
``create_run``, ``log_batch`` and ``log_artifact``. Every question becomes a trace with its gold and its scores; of these,
MLflow's own client sends some, one by one, to another database. Importing MLflow and making its tables are timed apart.
The target: 3,000 questions with their assessments in at most 5 seconds.
"""

from __future__ import annotations

import itertools
import json
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import _report  # sets the environment: before numpy
from _report import Fact, Measure, Report

from rallebench.chains.saved import chain_to_json
from rallebench.core.files import write_text
from rallebench.core.report import Estimate, RunReport
from rallebench.core.runs import RunSpec
from rallebench.core.types import (
    Action,
    Chain,
    Episode,
    Generate,
    Hit,
    Message,
    Outcome,
    Passage,
    Reply,
    Retrieve,
    Step,
)
from rallebench.engine.metric_choice import DEFAULT_METRICS
from rallebench.engine.ralle_files import write_ralle_files
from rallebench.engine.run_files import RunDescription
from rallebench.engine.store import SCORES, RunFolder
from rallebench.tracking.assessments import COST_METRICS
from rallebench.tracking.connection import connect, default_uri, import_mlflow, open_store
from rallebench.tracking.links import read_link
from rallebench.tracking.runs import log_run

TARGET_SECONDS = 5.0
BY_CLIENT = 100
"""Questions that MLflow's own client sends."""

CHAIN = Chain(
    "retrieve then read",
    (
        Action("retrieve", "{question}", target="wiki-bm25", k=5),
        Action("generate", "{response[0]}\n\nQuestion: {question}\nAnswer:", target="reader"),
    ),
)
WORDS = [
    "the",
    "of",
    "and",
    "in",
    "to",
    "a",
    "was",
    "is",
    "for",
    "on",
    "as",
    "with",
    "by",
    "at",
    "from",
    "that",
    "his",
    "it",
    "an",
    "were",
    "are",
    "which",
    "this",
    "also",
]


def text(rng: random.Random, characters: int) -> str:
    """Words up to a length."""
    return " ".join(rng.choices(WORDS, k=characters // 3))[:characters]


def episode(rng: random.Random, qid: str, failed: bool) -> Episode:
    """One question: five passages and an answer, or a failure after the retrieval."""
    passages = [
        Passage(f"{qid}-{i}", text(rng, 600), f"Title {i}", str(rng.randrange(10**6)))
        for i in range(5)
    ]
    hits = tuple(Hit(passage, 20.0 - rank) for rank, passage in enumerate(passages))
    context = "; ".join(passage.text for passage in passages)
    retrieval = Step(Retrieve("wiki-bm25", text(rng, 60), 5), Reply(context, hits), 0.02)
    if failed:
        return Episode(
            qid, "chain", (retrieval,), None, "reader failed: the endpoint closed the connection"
        )
    request = Generate(
        "reader",
        (Message("user", f"{context}\n\nQuestion: {text(rng, 60)}\nAnswer:"),),
        max_tokens=50,
    )
    generation = Step(request, Reply(text(rng, 20), prompt_tokens=900, completion_tokens=6), 0.8)
    return Episode(qid, "chain", (retrieval, generation), Outcome(generation.reply.text))


def make_folder(runs: Path, questions: int) -> RunFolder:
    """A finished run of ``questions`` questions, one in a hundred failed."""
    rng = random.Random(0)
    records = [
        {"id": f"q{i}", "input": text(rng, 60), "output": [{"answer": text(rng, 15)}]}
        for i in range(questions)
    ]
    episodes = {
        str(r["id"]): episode(rng, str(r["id"]), i % 100 == 99) for i, r in enumerate(records)
    }
    backends = {"retriever wiki-bm25": "a", "llm reader": "b"}
    spec = RunSpec("made-up", "chain", {"chain": chain_to_json(CHAIN), "backends": backends})
    versions = {f"package-{i}": "1.0" for i in range(12)}
    described = RunDescription(
        "bench", spec, "0" * 12, tuple(DEFAULT_METRICS), 20, versions=versions
    )
    folder = RunFolder.create(runs, described, records)
    with folder.log() as log:
        for number, answer in enumerate(episodes.values()):
            folder.append(log, answer, "1760000000.000", number * 0.82)
    scores = [
        {"qid": qid, "metric": name, "value": None if answer.error else rng.random()}
        for qid, answer in episodes.items()
        for name in DEFAULT_METRICS
    ]
    write_text(folder.path / SCORES, "".join(json.dumps(score) + "\n" for score in scores))
    errors = sum(bool(answer.error) for answer in episodes.values())
    report = RunReport(
        n=questions,
        n_done=questions,
        n_errors=errors,
        complete=True,
        seconds=0.82 * questions,
        seconds_per_question=0.82,
        steps=2 * questions,
    )
    mean = Estimate(0.5, 0.48, 0.52, questions - errors)
    report = report.with_means(dict.fromkeys(DEFAULT_METRICS, mean))
    folder.write_report(report)
    write_ralle_files(folder.path, records, episodes, report, CHAIN, {"chain_config": {}})
    return folder


def bare(client: Any, logged: Any, run_id: str, files: Path) -> None:
    """The same params, metrics, tags and artifacts with MLflow's own calls."""
    from mlflow.entities import Metric, Param, RunTag

    run = client.create_run(logged.info.experiment_id, run_name="bare")
    now = int(time.time() * 1000)
    client.log_batch(
        run.info.run_id,
        metrics=[Metric(key, value, now, 0) for key, value in logged.data.metrics.items()],
        params=[Param(key, value) for key, value in logged.data.params.items()],
        tags=[RunTag(f"bare.{key}", value) for key, value in logged.data.tags.items()],
    )
    for path in sorted(file for file in files.rglob("*") if file.is_file()):
        folder = path.parent.relative_to(files).as_posix()
        client.log_artifact(run.info.run_id, str(path), None if folder == "." else folder)
    client.set_terminated(run.info.run_id)


def by_client(workspace: Path, traces: Sequence[Any]) -> float:
    """Seconds a trace: the same traces with their assessments, sent by MLflow's own client to another database."""
    from mlflow.tracing.client import TracingClient

    store = open_store(workspace)
    client = TracingClient(store.uri)
    for trace in traces:  # the store adds its own places
        for key in ("mlflow.artifactLocation", "mlflow.trace.spansLocation"):
            trace.info.tags.pop(key)
    start = time.perf_counter()
    for trace in traces:
        client.start_trace(trace.info)
        client.log_spans(store.experiment_id, trace.data.spans)
    return (time.perf_counter() - start) / len(traces)


def once(questions: int) -> dict[str, float]:
    """Seconds of every part in a workspace of its own, and the megabytes and traces that were sent."""
    clock = time.perf_counter
    with tempfile.TemporaryDirectory(
        prefix="rallebench-bench-", ignore_cleanup_errors=True
    ) as place:
        workspace = Path(place)
        folder = make_folder(workspace / "runs", questions)
        megabytes = sum(file.stat().st_size for file in folder.path.iterdir()) / 2**20
        marks = [clock()]
        import_mlflow().MlflowClient  # noqa: B018  (MLflow loads its client when it is first named)
        marks.append(clock())
        client = connect(default_uri(workspace))
        marks.append(clock())
        run_id = log_run(folder.path, workspace=workspace)
        marks.append(clock())
        log_run(folder.path, workspace=workspace)
        marks.append(clock())
        run = client.get_run(run_id)
        link = read_link(folder.path)
        traces = client.search_traces(
            locations=[run.info.experiment_id], run_id=run_id, max_results=BY_CLIENT
        )
        sent = by_client(workspace / "client", traces)
        files = Path(client.download_artifacts(run_id, ""))
        start = clock()
        bare(client, run, run_id, files)
        seconds = clock() - start
    names = ("import", "migration", "ours", "again")
    parts = dict(zip(names, (after - before for before, after in itertools.pairwise(marks))))
    counts = {"traces": len(link.traces if link else ()), "megabytes": megabytes}
    scored = sum(
        each.feedback is not None for trace in traces for each in trace.info.assessments
    ) / len(traces)
    return {**parts, **counts, "bare": seconds, "client": sent, "assessments": scored}


def measure(questions: int, rounds: int) -> Report:
    """Log runs of ``questions`` questions, each to a database of its own."""
    figures = [once(questions) for _ in range(rounds)]
    ours = [parts["ours"] for parts in figures]
    return Report(
        "mlflow_logging",
        {"questions": questions, "run folder": f"{figures[0]['megabytes']:.0f} MB"},
        [
            Measure(
                "logging the run",
                "s",
                ours,
                [parts["bare"] for parts in figures],
                "MLflow's bare calls",
                most=TARGET_SECONDS,
            ),
            Measure(
                "the same, per question",
                "ms",
                [1000 * seconds / questions for seconds in ours],
                [1000 * parts["client"] for parts in figures],
                "a trace by MLflow's client",
            ),
            Measure("logging it again", "s", [parts["again"] for parts in figures]),
            Measure(
                "first migration of a database", "s", [parts["migration"] for parts in figures]
            ),
            Measure("import of MLflow", "s", [figures[0]["import"]]),
        ],
        [
            Fact(
                "traces sent, each time",
                sorted({parts["traces"] for parts in figures}),
                [questions],
            ),
            Fact(
                "assessments of a trace, without gold",
                sorted({round(parts["assessments"]) for parts in figures}),
                [len(set(DEFAULT_METRICS) - COST_METRICS)],
            ),
        ],
        ["the bare calls send no traces and no table, and read nothing"],
    )


def main() -> int:
    """Measure and print."""
    flags = _report.parser(__doc__, rounds=3)
    flags.add_argument("--questions", type=int, default=3000, metavar="N", help="default: 3000")
    arguments = flags.parse_args()
    questions, rounds = (60, 1) if arguments.quick else (arguments.questions, arguments.rounds)
    return measure(questions, rounds).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
