"""The baselines of a chain as an experiment: the same chain with no passages, with random ones, and with the gold's.

A baseline is the chain with every retrieve action's retriever exchanged and its template the bare question, run as any
other chain under ``RUN closed-book``, ``RUN random`` and ``RUN oracle``. Steps that they share with the run come
from the reply cache.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from rallebench.analysis.baselines import compare_baselines
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Release, Report
from rallebench.core.runs import RunRequest
from rallebench.core.types import Action, Chain, Example, digest
from rallebench.engine.store import RunFolder
from rallebench.experiments.benchmark import prepare
from rallebench.workspace.entries import chain_from_json
from rallebench.workspace.flows import chain_flow
from rallebench.workspace.paths import Workspace

KINDS: Mapping[str, str] = {"closed-book": "nothing", "random": "random", "oracle": "gold"}
"""Line → the way of combining retrievers that it exchanges a chain's own for."""


def lines(
    workspace: Workspace, chain: Chain, dataset: str, examples: Sequence[Example]
) -> dict[str, Chain]:
    """Line → chain; ``oracle`` only where the gold of ``dataset``, whose ``examples`` are given, names pages.

    Raises UsageError for a chain that retrieves nothing, or that is a line itself.
    """
    places = [i for i, action in enumerate(_run_at_all(chain)) if action.kind == "retrieve"]
    if not places:
        raise UsageError(
            f"The chain {chain.name!r} retrieves nothing, so it has no reference lines: it is its own closed book."
        )
    if is_line(chain):
        raise UsageError("This run is a reference line itself; choose the run that it belongs to.")
    has_pages = any(example.gold.pages or example.gold.passages for example in examples)
    chains = {}
    for line, kind in KINDS.items():
        if kind == "gold" and not has_pages:
            continue
        changed = chain
        for place in places:
            indexes = workspace.indexes_of(chain.actions[place].target)
            target = f"{kind}:{','.join(indexes)}" + (
                f"?questions={written(dataset)}" if kind == "gold" else ""
            )
            changed = changed.replace_action(
                place, target=target, template="{question}", dialect="fstring"
            )
        chains[line] = changed
    return chains


def _run_at_all(chain: Chain) -> tuple[Action, ...]:
    """The actions before the empty template that ends a chain."""
    end = next(
        (i for i, action in enumerate(chain.actions) if not action.template), len(chain.actions)
    )
    return chain.actions[:end]


def is_line(chain: Chain) -> bool:
    """Whether a chain's retrievers are those of a reference line."""
    targets = [action.target for action in _run_at_all(chain) if action.kind == "retrieve"]
    return bool(targets) and all(target.partition(":")[0] in KINDS.values() for target in targets)


def written(value: str) -> str:
    """A value as it stands after ``key=`` in a retriever's name, whatever it holds.

    >>> written("my-qa"), written("2024"), written("/a&b.jsonl")
    ('my-qa', '"2024"', '"/a\\\\u0026b.jsonl"')
    """
    try:
        json.loads(value)
        plain = False
    except ValueError:
        plain = not set(value) & set('&?(),"') and value == value.strip()
    if plain:
        return value
    return "".join(
        f"\\u{ord(letter):04x}" if letter in "&?()," else letter for letter in json.dumps(value)
    )


def line_name(run: str, line: str) -> str:
    """The run name of a line, at most 100 characters; of a long name the end is a digest.

    >>> line_name("my-run", "oracle")
    'my-run oracle'
    """
    if len(f"{run} {line}") > 100 or len(f"{run} {line}".encode()) > 200:
        run = f"{run.encode()[:70].decode('utf-8', 'ignore').rstrip()}-{digest(run)[:6]}"
    return f"{run} {line}"


def baselines(request: ExperimentRequest) -> Experiment:
    """Run the baselines of the run ``run`` and compare them with it. A chain may need a passage to work at all: a baseline
    that fails is reported, and the others are run."""
    workspace = request.workspace
    run = RunFolder.open(workspace.runs, request.settings["run"])
    failed: dict[str, str] = {}
    for line, step in baseline_runs(workspace, run).items():
        try:
            yield step
        except RalleError as error:
            failed[line] = str(error)
        yield Release(step.flow.retrievers)
    comparison = compare_baselines(run, lines_of(workspace, run))
    metrics = {
        name: {column: asdict(mean) for column, mean in row.items()}
        for name, row in comparison.cells.items()
    }
    data = {
        "run": run.name,
        "lines": dict(comparison.lines),
        "columns": comparison.columns,
        "failed": failed,
        "metrics": metrics,
    }
    return Report(data, failed=failed)


def baseline_runs(workspace: Workspace, run: RunFolder) -> dict[str, RunRequest]:
    """Line → its run. Raises UsageError where there can be none, or if another run has the name of a line."""
    made = run.spec()
    spec = made["spec"]
    chain = spec["settings"].get("chain")
    if chain is None:
        raise UsageError(f"The run {run.name!r} is of no chain, so it has no reference lines.")
    dataset = made.get("dataset_file") or spec["dataset"]
    whole = prepare(
        workspace,
        chain_flow(chain_from_json(chain)),
        dataset,
        limit=spec["limit"],
        metrics=tuple(made["metrics"]),
        name=run.name,
        resume=True,
    ).request
    if whole.dataset.sha256 != spec["settings"].get("dataset_sha256"):
        raise UsageError(
            f"The question set {spec['dataset']!r} was changed after {run.name!r} was run; run the chain again first."
        )
    requests = {}
    for line, changed in lines(workspace, chain_from_json(chain), dataset, whole.examples).items():
        name = line_name(run.name, line)
        there = (workspace.runs / name).exists()
        if there and not _is_of(run, RunFolder.open(workspace.runs, name), changed):
            raise UsageError(
                f"The run {name!r} exists already and is no reference line of {run.name!r} as it is now; "
                f"move {workspace.runs / name} away."
            )
        requests[line] = replace(
            whole, flow=chain_flow(changed), batch_size=made["batch_size"], label=line, name=name
        )
    return requests


def lines_of(workspace: Workspace, run: RunFolder) -> dict[str, RunFolder]:
    """Line → its run, of those that have a report. Nothing is loaded, no question set is read."""
    folders = {}
    for line in KINDS:
        folder = RunFolder(workspace.runs / line_name(run.name, line))
        try:
            if folder.path.is_dir() and folder.report() and _is_of(run, folder):
                folders[line] = folder
        except RalleError:  # a damaged line is none; Runs says what is wrong with it
            continue
    return folders


def _is_of(run: RunFolder, other: RunFolder, chain: Chain | None = None) -> bool:
    """Whether ``other`` was asked the same questions, by ``chain`` or, without it, by some baseline."""
    ours, theirs = run.spec()["spec"], other.spec()["spec"]
    sums = [spec["settings"].get("dataset_sha256") for spec in (ours, theirs)]
    same = sums[0] == sums[1] and all(ours[k] == theirs[k] for k in ("dataset", "limit", "seed"))
    stored = theirs["settings"].get("chain")
    if stored is None or not same:
        return False
    their_chain = chain_from_json(stored)
    if chain is None:
        return is_line(their_chain)
    return replace(chain, about="") == replace(their_chain, about="")
