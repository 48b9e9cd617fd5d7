"""What each verb of the command line does: flags → one core call → a JSON-able value."""

from __future__ import annotations

import argparse
import builtins
import contextlib
import json
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rallebench import benchmark
from rallebench.bench.perform import Backends
from rallebench.bench.record import hit_to_json, request_to_json
from rallebench.bench.runner import Progress
from rallebench.catalog import Manifest
from rallebench.chain.chain import prompt_of
from rallebench.chain.template import render as render_template
from rallebench.errors import BackendError, BadFileError, RalleError, StoppedError, UsageError
from rallebench.files import read_json, read_lines, write_text
from rallebench.types import Chain, Episode, Generate, Question, Retrieve, Step
from rallebench.workbench import Workbench
from rallebench.workspace import DEFAULT_DATASET, parse_settings


def _workbench(args: argparse.Namespace) -> Workbench:
    """The workbench of this call; ``args.ending`` closes it when the verb has ended."""
    tracking_uri = getattr(args, "tracking_uri", None)
    workbench = Workbench(args.workspace, base_settings=args.base_settings, tracking_uri=tracking_uri)
    args.ending.callback(workbench.close)
    return workbench


def say(message: str) -> None:
    """Tell the user something on stderr: stdout belongs to the result."""
    print(message, file=sys.stderr, flush=True)


def list(args: argparse.Namespace) -> dict[str, Any]:
    """What can be named."""
    from rallebench.listing import listing

    return listing(_workbench(args).workspace, args.kind)


def index(args: argparse.Namespace) -> dict[str, Any]:
    """Build an index."""
    from rallebench.corpora.chunking import Chunking

    chunking = (
        None if args.chunk_size is None else Chunking(args.chunk_size, args.chunk_overlap, args.chunk_unit)
    )
    if chunking is None and args.chunk_overlap:
        raise UsageError("--chunk-overlap needs --chunk-size.")
    manifest = None
    for progress in _workbench(args).build_index(
        args.name,
        args.corpus,
        args.kind,
        encoder=args.encoder,
        page_map=args.page_map,
        chunking=chunking,
        parameters=parse_settings(args.set),
    ):
        if isinstance(progress, Manifest):
            manifest = progress
        else:
            far = f" {progress.done}/{progress.total}" if progress.total else ""
            say(f"{progress.stage}{far} ({progress.seconds:.1f} s)")
    assert manifest is not None
    if manifest.passages_without_page:
        say(
            f"Warning: {manifest.passages_without_page} of {manifest.passages} passages are not in {args.page_map}."
        )
    return manifest.model_dump()


def search(args: argparse.Namespace) -> Any:
    """Retrieve passages."""
    if args.k < 1:
        raise UsageError(f"-k is {args.k}; it must be at least 1.")
    queries = [*args.query, *([line for _, line in read_lines(args.queries)] if args.queries else [])]
    if not queries:
        raise UsageError("No query was given; write one after the flags, or use --queries FILE.")
    workbench = _workbench(args)
    _drain(workbench.load(args.index, "retriever"))
    found = workbench.backends.retrievers[args.index].search(queries, args.k)
    return [
        {"query": query, "hits": [{"rank": rank, **hit_to_json(hit)} for rank, hit in enumerate(hits, 1)]}
        for query, hits in zip(queries, found)
    ]


def render(args: argparse.Namespace) -> dict[str, str]:
    """Interpret one template."""
    documents = read_json(args.documents) if args.documents else []
    lists = builtins.list
    if not isinstance(documents, lists) or not all(isinstance(passages, lists) for passages in documents):
        raise BadFileError(f"{args.documents} should hold a JSON list with one list of passages per action.")
    variables = {
        "question": args.question,
        "history": "",
        "prompt": args.prompt,
        "response": args.response,
        "wiki_id_title": args.wiki_id_title,
        "documents": documents,
    }
    return {"prompt": render_template(args.template, args.dialect, variables)}


def ask(args: argparse.Namespace) -> dict[str, Any]:
    """Run one chain once."""
    workbench = _workbench(args)
    chain = _overridden(workbench.workspace.chain(args.chain), args)
    benchmark.check_chain(workbench.workspace, chain)
    _load(workbench, chain)
    episode = None
    for event in workbench.execute_chain(chain, Question("ask", args.question)):
        if isinstance(event, Episode):
            episode = event
    assert episode is not None
    if episode.error:
        raise BackendError(episode.error)
    return {"answer": episode.answer, "steps": [step_json(step) for step in episode.steps]}


def step_json(step: Step) -> dict[str, Any]:
    """A step for people and programs: kind, target, prompt, response, hits, cost."""
    request = step.request
    kind = {"note": "identity", "tool": "tool"}.get(
        request_to_json(request)["ask"], request_to_json(request)["ask"]
    )
    target = (
        request.retriever
        if isinstance(request, Retrieve)
        else request.llm
        if isinstance(request, Generate)
        else ""
    )
    value: dict[str, Any] = {
        "kind": kind,
        "target": target,
        "prompt": prompt_of(request),
        "response": step.reply.text,
    }
    if isinstance(request, Retrieve):
        value["hits"] = [{"rank": rank, **hit_to_json(hit)} for rank, hit in enumerate(step.reply.hits, 1)]
    value |= {"seconds": step.seconds, "cached": step.cached}
    if isinstance(request, Generate):
        value["tokens"] = {"prompt": step.reply.prompt_tokens, "completion": step.reply.completion_tokens}
    return value


def run(args: argparse.Namespace) -> Any:
    """Benchmark a chain, or each chain of a folder."""
    workbench = _workbench(args)
    if args.resume and not args.name:
        raise UsageError("--resume needs --name RUN, the run to continue.")
    files = workbench.workspace.chain_folder(args.chain)
    if files is None:
        return _run_one(workbench, _prepare(workbench, args.chain, args, args.name, args.resume))
    for name, path in files:  # a night of runs should not end at a file that was wrong from the start
        _prepare_in_folder(workbench, name, path, args)
    results, failures = [], []
    for name, path in files:
        say(f"── {name}")
        try:
            results.append(_run_one(workbench, _prepare_in_folder(workbench, name, path, args)))
        except StoppedError:
            raise
        except RalleError as error:
            failures.append(f"{name}: {error}")
            say(failures[-1])
    if failures:
        raise BackendError(f"{len(failures)} of {len(files)} chains could not be run. {failures[0]}")
    return results


def _prepare_in_folder(
    workbench: Workbench, name: str, path: Path, args: argparse.Namespace
) -> benchmark.Plan:
    run = f"{args.name}-{name}" if args.name else ""
    resume = args.resume and (workbench.workspace.runs / run).exists()
    try:
        return _prepare(workbench, str(path), args, run, resume, name)
    except UsageError as error:
        raise type(error)(f"{path}: {error}") from None


def _prepare(
    workbench: Workbench, reference: str, args: argparse.Namespace, run: str, resume: bool, name: str = ""
) -> benchmark.Plan:
    """The plan of one chain, checked; ``name`` is that of a chain in a folder of chains."""
    chain = workbench.workspace.chain(reference)
    dataset, limit, batch_size = args.dataset, args.limit, args.batch_size
    experiment = workbench.workspace.experiment(reference)
    if experiment is not None:
        dataset = dataset or experiment.dataset_name
        limit = limit if limit is not None else experiment.num_evaluate
        batch_size = batch_size if batch_size is not None else experiment.batch_size
    return benchmark.prepare(
        workbench.workspace,
        _overridden(replace(chain, name=name or chain.name), args, all_fit=not name),
        dataset or DEFAULT_DATASET,
        limit=limit,
        metrics=tuple(m.strip() for m in args.metrics.split(",") if m.strip()) if args.metrics else None,
        name=run,
        batch_size=20 if batch_size is None else batch_size,
        seed=args.seed,
        max_errors=args.max_errors,
        resume=resume,
        track=not args.no_mlflow,
    )


def _run_one(workbench: Workbench, plan: benchmark.Plan) -> dict[str, Any]:
    with _stoppable(workbench, plan.name) as stoppable, contextlib.closing(workbench.run(plan)) as stages:
        finished = _follow(stages, stoppable)
    report = finished.report
    for warning in finished.warnings:
        say(f"Warning: {warning}")
    for message, count in report["errors"].items():
        say(f"{count} failed: {message}")
    if finished.state == "stopped":
        raise StoppedError(
            f"Stopped after {report['n_done']} of {report['n']} questions; continue with --name {plan.name} --resume."
        )
    return {
        "run": finished.folder.name,
        "n": report["n"],
        "n_errors": report["n_errors"],
        "seconds": report["seconds"],
        "metrics": {**report["metrics"], **_ralle_keys(report["metrics"])},
    }


def _ralle_keys(metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("@", "_at_"): value for name, value in metrics.items() if "@" in name}


def _follow(stages: Iterator[Any], stoppable: _stoppable) -> Any:
    """Show the stages on stderr; return the last."""
    stage, told = None, 0.0
    for stage in stages:
        if isinstance(stage, benchmark.Phase):
            stoppable.running = stage.name == "running"
            say(stage.message or stage.name) if stage.name == "loading" else say(
                f"{stage.name} {stage.message}".strip()
            )
        elif isinstance(stage, Progress) and (time.monotonic() - told > 2 or stage.done == stage.total):
            told = time.monotonic()
            errors = f", {stage.errors} failed" if stage.errors else ""
            say(f"{stage.done}/{stage.total}{errors} ({stage.seconds:.0f} s)")
    return stage


class _stoppable:
    """The first Ctrl-C or SIGTERM stops after the current batch, the second at once; while nothing is
    being answered (``running`` is false) the first one stops at once."""

    def __init__(self, workbench: Workbench, name: str) -> None:
        self.workbench, self.name, self.running = workbench, name, False

    def _stop(self, signum: int, frame: Any) -> None:
        if not self.running:
            raise KeyboardInterrupt
        signal.signal(signum, signal.default_int_handler)
        say("Stopping after the current batch; press Ctrl-C again to stop at once.")
        self.workbench.stop_run(self.name)

    def __enter__(self) -> _stoppable:
        self._before = {}
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError):  # not in the main thread
                self._before[number] = signal.signal(number, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def score(args: argparse.Namespace) -> dict[str, Any]:
    """Score a file of predictions."""
    from rallebench.kilt_score import score_files

    try:
        ks = tuple(int(k) for k in args.ks.split(","))
    except ValueError:
        raise UsageError(f"--ks {args.ks!r} should be whole numbers, as in 1,5,10,20.") from None
    return score_files(args.gold, args.guess, ks=ks, rank_keys=tuple(args.rank_keys.split(",")))


def pick(args: argparse.Namespace) -> dict[str, Any]:
    """Keep the first questions whose gold pages the index holds."""
    from rallebench.datasets.pickup import pick_up

    if args.number < 1:
        raise UsageError(f"--number is {args.number}; it must be at least 1.")
    output = args.output.resolve()
    if output.exists() and not output.is_file():  # a device would be replaced by a file
        raise UsageError(f"--output {args.output} is no plain file; name a file to write.")
    workbench = _workbench(args)
    _, path = workbench.workspace.dataset(args.dataset)
    _drain(workbench.load(args.index, "retriever"))
    pages = workbench.backends.retrievers[args.index].page_ids()
    records, counts = pick_up(path, pages, args.number)
    write_text(output, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
    return {"output": str(args.output), "kept": counts.kept, "read": counts.read, "without": counts.without}


def track(args: argparse.Namespace) -> dict[str, Any]:
    """Send a finished run to MLflow."""
    from rallebench.tracking.mlflow import log_run

    workbench = _workbench(args)
    folder = workbench.open_run(args.run)
    return {
        "run": args.run,
        "mlflow_run_id": log_run(
            folder.path, workspace=workbench.workspace.path, tracking_uri=args.tracking_uri
        ),
    }


def ui(args: argparse.Namespace) -> None:
    """Open the page."""
    from rallebench.gui.app import serve

    serve(args)


def _overridden(chain: Chain, args: argparse.Namespace, *, all_fit: bool = True) -> Chain:
    from rallebench.chain.ralle import override

    chain = override(chain, llm=args.llm, retriever=args.retriever)
    return benchmark.with_overrides(chain, parse_settings(args.set), all_fit=all_fit)


def _load(workbench: Workbench, chain: Chain) -> Backends:
    for piece in workbench.load_for(chain):
        if isinstance(piece, Backends):
            return piece
        say(piece)
    raise AssertionError("load_for ends with the backends")


def _drain(progress: Iterator[str]) -> None:
    for message in progress:
        say(message)


def plain(verb: str, value: Any) -> str:
    """A verb's value as a person reads it."""
    if verb == "list":
        return "\n\n".join(
            f"{kind}:\n" + "\n".join(_row(row) for row in rows) for kind, rows in value.items()
        )
    if verb == "search":
        return "\n\n".join(_search_lines(found) for found in value)
    if verb == "render":
        return str(value["prompt"])
    if verb == "ask":
        return "\n\n".join(
            [*(_step_lines(n, s) for n, s in enumerate(value["steps"], 1)), f"Answer: {value['answer']}"]
        )
    if verb == "run":
        return "\n\n".join(
            _run_lines(result) for result in (value if not isinstance(value, dict) else [value])
        )
    return json.dumps(value, ensure_ascii=False, indent=2)


def _row(row: Mapping[str, Any]) -> str:
    return f"  {row['name']:<28} {row['about']}".rstrip()


def _search_lines(found: Mapping[str, Any]) -> str:
    lines = [
        f"{hit['rank']:>3}. [{hit['score']:.3f}] {hit['title']} (page {hit['page_id']})\n     {hit['text']}"
        for hit in found["hits"]
    ]
    return "\n".join([found["query"], *(lines or ["  nothing found"])])


def _step_lines(number: int, step: Mapping[str, Any]) -> str:
    cost = "from memory" if step["cached"] else f"{step['seconds']:.2f} s"
    return f"── {number} {step['kind']} {step['target']} ({cost})\n{step['prompt']}\n→ {step['response']}"


def _run_lines(result: Mapping[str, Any]) -> str:
    lines = [
        f"{result['run']}: {result['n']} questions, {result['n_errors']} failed, {result['seconds']:.1f} s"
    ]
    for name, m in result["metrics"].items():
        if "_at_" in name:
            continue
        shown = (
            "not scored"
            if m["value"] is None
            else f"{m['value']:.4f}  [{m['low']:.4f}, {m['high']:.4f}]  n = {m['n']}"
        )
        lines.append(f"  {name:<22} {shown}")
    return "\n".join(lines)
