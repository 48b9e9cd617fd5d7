"""One benchmark from request to report: check, load, ask, score, write RaLLe's files, track."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Union

from rallebench import __version__
from rallebench.bench.memo import Memo
from rallebench.bench.perform import Backends
from rallebench.bench.ralle_files import write_ralle_files
from rallebench.bench.runner import Progress, work
from rallebench.bench.score import choose_metrics, score_episode, score_run
from rallebench.bench.store import RunFolder, checked_run_name
from rallebench.catalog import chain_from_json, chain_to_json, checked_generation, read_manifest
from rallebench.chain.chain import as_flow
from rallebench.chain.ralle import experiment_to_json
from rallebench.chain.safe_format import Field, parse_format
from rallebench.chain.template import check
from rallebench.combining import needs
from rallebench.datasets.kilt import read_questions
from rallebench.errors import RalleError, TemplateError, UsageError
from rallebench.files import sha256_file
from rallebench.indexing import versions
from rallebench.loading import check_pages
from rallebench.types import Action, Chain, Episode, Example, RunSpec
from rallebench.workspace import Workspace

HEADLINE = ("accuracy", "em", "f1", "has_answer", "Rprec", "recall@5")
"""The metrics that are shown while a run goes on."""

PACKAGES = (
    "torch",
    "transformers",
    "bitsandbytes",
    "faiss-cpu",
    "bm25s",
    "numpy",
    "openai",
    "mlflow",
    "gradio",
    "rouge",
)


_PER_ACTION = ("prompt", "response", "wiki_id_title", "documents")

MAX_K = 10_000
"""As many passages as a saved chain may ask for."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked benchmark: nothing in it needs to be looked up again."""

    chain: Chain
    dataset: str
    examples: tuple[Example, ...]
    dataset_sha256: str
    dataset_file: str
    metrics: tuple[str, ...]
    name: str
    limit: int | None = None
    batch_size: int = 20
    seed: int = 0
    max_errors: int | None = None
    resume: bool = False
    track: bool = True


@dataclass(frozen=True, slots=True)
class Phase:
    """A benchmark entered a phase: loading, running, scoring, tracking."""

    name: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """A benchmark ended; ``warnings`` are sentences for the user."""

    folder: RunFolder
    report: Mapping[str, Any]
    state: str
    warnings: tuple[str, ...] = ()


Stage = Union[Phase, Progress, Finished]


def prepare(
    workspace: Workspace,
    chain: Chain,
    dataset: str,
    *,
    limit: int | None = None,
    metrics: tuple[str, ...] | None = None,
    name: str = "",
    batch_size: int = 20,
    seed: int = 0,
    max_errors: int | None = None,
    resume: bool = False,
    track: bool = True,
) -> Plan:
    """Check everything that can be wrong before a model is loaded. Raises UsageError; writes nothing."""
    if limit == 0:
        raise UsageError("The number of questions is 0; give at least 1, or -1 for all.")
    if limit is not None and limit < 0:
        limit = None
    if batch_size < 1:
        raise UsageError(f"The batch size is {batch_size}; it must be at least 1.")
    if max_errors is not None and max_errors < 0:
        raise UsageError(f"--max-errors is {max_errors}; it must be at least 0.")
    check_chain(workspace, chain)
    dataset_name, path = workspace.dataset(dataset)
    examples = read_questions(path, limit)
    if not examples:
        raise UsageError(f"{path} holds no questions.")
    chosen = choose_metrics(metrics, examples, dataset_name)
    name = checked_run_name(name or fresh_name(workspace, chain.name, dataset_name))
    plan = Plan(
        chain,
        dataset_name,
        examples,
        sha256_file(path),
        str(path) if dataset_name != dataset else "",
        chosen,
        name,
        limit,
        batch_size,
        seed,
        max_errors,
        resume,
        track,
    )
    exists = (workspace.runs / name).exists()
    if exists and not resume:
        raise UsageError(
            f"The run {name!r} exists already in {workspace.runs}; choose another --run name, or add --resume."
        )
    if resume:
        RunFolder.open(workspace.runs, name).spec()
    return plan


def check_chain(workspace: Workspace, chain: Chain) -> None:
    """UsageError naming the action for a template, retriever or model that cannot work."""
    for number, action in enumerate(chain.actions, 1):
        if not action.template and number > 1:
            return  # an empty template ends the chain
        try:
            if not action.template:
                raise TemplateError("its template is empty, so the chain would ask nothing; write one.")
            check(action.template, action.dialect)
            _check_reach(action, number - 1)
            _check_target(workspace, action)
        except UsageError as error:
            raise type(error)(f"Action {number} of {chain.name!r}: {error}") from None


def _check_reach(action: Action, earlier: int) -> None:
    """TemplateError if ``{response[1]}`` or the like asks for an action that runs later, or never."""
    fields = parse_format(action.template) if action.dialect == "fstring" else ()
    for field in fields:
        if isinstance(field, Field) and field.name in _PER_ACTION and field.keys:
            asked = field.keys[0]
            if isinstance(asked, int) and asked >= earlier:
                raise TemplateError(
                    f"its template reads {field.name}[{asked}], the {field.name} of action {asked + 1}, "
                    f"but {earlier or 'no'} earlier action{'s' if earlier > 1 else ''} can be read; counting starts at 0."
                )


def _check_target(workspace: Workspace, action: Action) -> None:
    if action.kind == "retrieve":
        _check_retriever(workspace, action.target)
    if action.kind == "generate" and not action.target:
        raise UsageError(_unknown_target("language model", "", workspace.llms()))
    if action.kind == "generate":
        workspace.llm(action.target)


def _check_retriever(workspace: Workspace, name: str) -> None:
    """UsageError for an unknown or damaged index, or a combination that cannot be made."""
    known = workspace.retrievers()
    entry = workspace.retriever(name) if name in known or "?" in name or ":" in name else None
    if entry is not None:
        for part, kind in needs(entry):
            if kind == "retriever":
                _check_retriever(workspace, part)
    elif name not in known:
        folder = workspace.indexes / name
        if name and os.path.exists(folder / "manifest.json"):
            read_manifest(folder)  # says what is wrong with it
        raise UsageError(_unknown_target("retriever", name, known))


def _unknown_target(kind: str, name: str, known: Mapping[str, Any]) -> str:
    named = f"there is no {kind} {name!r}" if name else f"no {kind} is chosen"
    return f"{named}. Known: {', '.join(known) or 'none'}."


def fresh_name(workspace: Workspace, chain: str, dataset: str) -> str:
    """A free run name: chain, question set, time."""
    what = re.sub(r"[^\w.\-]+", "-", f"{chain}-{dataset}").encode()[:80].decode("utf-8", "ignore").strip("-.")
    base = f"{what}-{time.strftime('%Y%m%d-%H%M%S')}"
    name, n = base, 2
    while (workspace.runs / name).exists():
        name, n = f"{base}-{n}", n + 1
    return name


def run_spec(plan: Plan, backends: Backends) -> dict[str, Any]:
    """``run.json``'s content. Its fingerprint changes whenever an episode may."""
    named = {a.target for a in plan.chain.actions if a.template and a.kind != "identity"}
    fingerprints = {f"retriever {n}": r.fingerprint for n, r in backends.retrievers.items() if n in named}
    fingerprints |= {f"llm {n}": m.fingerprint for n, m in backends.llms.items() if n in named}
    chain = {key: value for key, value in chain_to_json(plan.chain).items() if key != "about"}
    spec = RunSpec(
        plan.dataset,
        "chain",
        {"chain": chain, "backends": fingerprints, "dataset_sha256": plan.dataset_sha256},
        plan.metrics,
        plan.limit,
        plan.seed,
    )
    return {
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "fingerprint": spec.fingerprint(),
        "dataset_file": plan.dataset_file,
        "spec": {
            "dataset": spec.dataset,
            "workflow": spec.workflow,
            "settings": dict(spec.settings),
            "limit": spec.limit,
            "seed": spec.seed,
        },
        "metrics": list(plan.metrics),
        "batch_size": plan.batch_size,
        "versions": {"rallebench": __version__, "python": platform.python_version(), **versions(*PACKAGES)},
        "platform": platform.platform(),
    }


def execute(
    workspace: Workspace,
    plan: Plan,
    load: Callable[[Chain], Iterator[str | Backends]],
    memo: Callable[[], Memo | None],
    track: Callable[[RunFolder], str],
    opened: Callable[[RunFolder], None] = lambda folder: None,
) -> Generator[Stage, None, None]:
    """Run a plan, yielding phases and progress; Finished is last. Raises RalleError; what was answered is kept.

    ``memo`` is opened only when all is loaded: a request that is refused before writes nothing.
    """
    backends = Backends()
    for piece in load(plan.chain):
        if isinstance(piece, Backends):
            backends = piece
        else:
            yield Phase("loading", piece)
    spec = run_spec(plan, backends)
    if plan.resume:
        folder = RunFolder.open(workspace.runs, plan.name)
        folder.check_same(spec)
    remembered = memo()
    if not plan.resume:
        folder = RunFolder.create(workspace.runs, plan.name, spec, (dict(e.record) for e in plan.examples))
    lock = folder.lock()
    try:
        folder.forget_stop()
        opened(folder)
        warnings = _warnings(plan, backends)
        judged = _judgements(plan, backends)
        yield Phase("running", " ".join(warnings))
        yield from work(
            folder,
            lambda question: as_flow(plan.chain, question),
            [example.question for example in plan.examples],
            backends,
            memo=remembered,
            batch_size=plan.batch_size,
            max_errors=plan.max_errors,
            observe=_observer(plan),
        )
        warnings += _unread(judged, _judgements(plan, backends))
        yield Phase("scoring")
        report = finish(folder, plan.metrics)
        stopped = not report["complete"]
        if plan.track:
            yield Phase("tracking")
            warnings += tuple(filter(None, [track(folder)]))
        state = "stopped" if stopped else "done"
        _end(folder, report, state, warnings)
        yield Finished(folder, report, state, warnings)
    except (KeyboardInterrupt, GeneratorExit):
        _ended_early(folder, plan, "stopped", "Stopped by you.")
        raise
    except BaseException as error:
        _ended_early(folder, plan, "failed", str(error) or type(error).__name__)
        raise
    finally:
        lock.release()


def _observer(plan: Plan) -> Callable[[Episode], dict[str, float | None]]:
    """A few metrics of each episode as it ends, for whoever watches."""
    names = [name for name in HEADLINE if name in plan.metrics]
    gold = {example.question.qid: example for example in plan.examples}
    return lambda episode: {s.metric: s.value for s in score_episode(episode, gold[episode.qid], names)}


def finish(folder: RunFolder, metrics: tuple[str, ...]) -> dict[str, Any]:
    """Score what is there and write RaLLe's files."""
    report = score_run(folder, metrics)
    spec = folder.spec()
    chain = chain_from_json(spec["spec"]["settings"]["chain"])
    config = experiment_to_json(
        chain, spec["spec"]["dataset"], spec["spec"]["limit"] or -1, spec["batch_size"]
    )
    write_ralle_files(folder.path, folder.records(), folder.episodes(), report, chain, config)
    return report


def _warnings(plan: Plan, backends: Backends) -> tuple[str, ...]:
    found = []
    for action in plan.chain.actions:
        if (
            action.kind == "retrieve"
            and action.template
            and hasattr(backends.retrievers[action.target], "page_ids")
        ):
            gold = (page for example in plan.examples for page in example.gold.provenance)
            found.append(check_pages(backends.retrievers[action.target].page_ids(), gold))
    return tuple(dict.fromkeys(filter(None, found)))


def _judgements(plan: Plan, backends: Backends) -> dict[str, tuple[int, int]]:
    """Retriever → (judgements asked, those that could not be read) until now, where a language model re-ranks."""
    named = {action.target for action in plan.chain.actions if action.template}
    judges = {n: r for n, r in backends.retrievers.items() if n in named and hasattr(r, "unread")}
    return {name: (judge.asked, judge.unread) for name, judge in judges.items()}


def _unread(
    before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]
) -> tuple[str, ...]:
    found = []
    for name, (asked, unread) in after.items():
        asked, unread = asked - before[name][0], unread - before[name][1]
        if unread:
            found.append(f"{unread} of {asked} judgements of {name!r} could not be read; the order stayed as it was.")
    return tuple(found)


def _end(folder: RunFolder, report: Mapping[str, Any], state: str, warnings: tuple[str, ...]) -> None:
    folder.set_state(
        state,
        done=report["n_done"],
        total=report["n"],
        errors=report["n_errors"],
        seconds=report["seconds"],
        message=" ".join(warnings),
    )


def _ended_early(folder: RunFolder, plan: Plan, state: str, message: str) -> None:
    """Whatever was answered is scored, so that a stopped night still has its numbers."""
    report: Mapping[str, Any] = {"n_done": 0, "n": len(plan.examples), "n_errors": 0, "seconds": 0.0}
    with contextlib.suppress(RalleError):
        report = finish(folder, plan.metrics)
    _end(folder, report, state, (message,))


def with_overrides(chain: Chain, settings: Mapping[str, Any], *, all_fit: bool = True) -> Chain:
    """``--set``: ``k``, generation settings for all generate actions, or ``N.field`` for action N (from 1).

    Raises UsageError for a setting that no action has; with ``all_fit`` false it is left out, so that
    one setting serves a whole folder of chains.
    """
    for key, value in settings.items():
        number, dot, name = key.partition(".")
        if dot and number.isdecimal() and len(number) < 9:
            if not 1 <= int(number) <= len(chain.actions):
                raise UsageError(f"--set {key}: the chain has {len(chain.actions)} actions.")
            chain = _set(chain, int(number) - 1, name, value, key)
            continue
        fits = [
            i for i, a in enumerate(chain.actions) if a.kind == ("retrieve" if key == "k" else "generate")
        ]
        if not fits and all_fit:
            raise UsageError(f"--set {key}: no action of this chain has it.")
        for index in fits:
            chain = _set(chain, index, key, value, key)
    return chain


def _set(chain: Chain, index: int, name: str, value: Any, key: str) -> Chain:
    kind = chain.actions[index].kind
    if name in ("template", "dialect") or (name == "target" and kind != "identity"):
        return chain.replace_action(index, **{name: str(value)})
    if name == "k" and kind == "retrieve":
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_K:
            raise UsageError(f"--set {key}={value}: k must be a whole number from 1 to {MAX_K:,}.")
        return chain.replace_action(index, k=value)
    if kind != "generate" or name in ("", "k"):
        raise UsageError(f"--set {key}: action {index + 1} is of the kind {kind!r} and has no {name!r}.")
    generation = {**chain.actions[index].generation, name: value}
    return chain.replace_action(index, generation=checked_generation(generation, f"--set {key}"))
