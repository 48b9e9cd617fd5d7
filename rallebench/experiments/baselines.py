"""Baselines of a chain as an experiment: the same chain with no passages, random passages, the gold passages and, on
request, whole pages.

A baseline is the chain with its retrievers replaced and its retrieve templates set to the bare question, run as any
other chain under ``RUN closed-book``, ``RUN random`` and ``RUN oracle``. ``RUN long-context`` keeps the retriever and
the query, and returns the whole pages of the hits. Steps shared with the run come from the reply cache.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rallebench.analysis.baselines import compare_baselines
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Release, Report
from rallebench.core.runs import RunOptions, RunRequest
from rallebench.core.settings import dataclass_form, declare, declare_text
from rallebench.core.types import Chain, Example, digest
from rallebench.engine.store import RunFolder
from rallebench.engine.stored_runs import is_of
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.prepared_run import prepare_run
from rallebench.workspace.flows import chain_flow
from rallebench.workspace.paths import WorkspaceFolder

RETRIEVER_OF_BASELINE: Mapping[str, str] = {
    "closed-book": "nothing",
    "random": "random",
    "oracle": "gold",
    "long-context": "pages",
}
"""Baseline → the kind of retriever that replaces the chain's own."""
LONG = "long-context"


@dataclass(frozen=True, slots=True)
class BaselinesSettings:
    """The settings of ``baselines``."""

    run: str = declare_text("the run", names="run")
    long_context: bool = declare(
        bool, False, about="also with the whole pages of the passages that are found: long prompts"
    )


def baseline_chains(
    workspace: WorkspaceFolder,
    chain: Chain,
    dataset: str,
    examples: Sequence[Example],
    long_context: bool = False,
) -> dict[str, Chain]:
    """Baseline → chain. ``oracle`` is included only if ``examples``, the examples of ``dataset``, have gold pages;
    ``long-context`` only if requested.

    Raises UsageError for a chain that retrieves nothing or is a baseline itself.
    """
    places = [i for i, action in enumerate(chain.effective_actions) if action.kind == "retrieve"]
    if not places:
        raise UsageError(
            f"The chain {chain.name!r} retrieves nothing, so it has no baselines: it is its own closed book."
        )
    if is_baseline(chain):
        raise UsageError("This run is a baseline itself; choose the run that it belongs to.")
    has_pages = any(example.gold.pages or example.gold.passages for example in examples)
    chains = {}
    for baseline, kind in RETRIEVER_OF_BASELINE.items():
        if (kind == "gold" and not has_pages) or (baseline == LONG and not long_context):
            continue
        changed, end = chain, f"?questions={quote_value(dataset)}" if kind == "gold" else ""
        for place in places:
            if baseline == LONG:
                whole = f"{kind}:({chain.actions[place].target})"
                changed = changed.replace_action(place, target=whole)
                continue
            target = (
                f"{kind}:{','.join(workspace.component_indexes(chain.actions[place].target))}{end}"
            )
            changed = changed.replace_action(
                place, target=target, template="{question}", dialect="fstring"
            )
        chains[baseline] = changed
    return chains


def is_baseline(chain: Chain) -> bool:
    """Return whether a chain uses a baseline's retrievers."""
    targets = [action.target for action in chain.effective_actions if action.kind == "retrieve"]
    return bool(targets) and all(
        target.partition(":")[0] in RETRIEVER_OF_BASELINE.values() for target in targets
    )


def quote_value(value: str) -> str:
    """A value, quoted if necessary, to follow ``key=`` in a retriever's name.

    >>> quote_value("my-qa"), quote_value("2024"), quote_value("/a&b.jsonl")
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


def baseline_name(run: str, baseline: str) -> str:
    """The run name of a baseline, at most 100 characters; a long name ends with a digest.

    >>> baseline_name("my-run", "oracle")
    'my-run oracle'
    """
    if len(f"{run} {baseline}") > 100 or len(f"{run} {baseline}".encode()) > 200:
        run = f"{run.encode()[:70].decode('utf-8', 'ignore').rstrip()}-{digest(run)[:6]}"
    return f"{run} {baseline}"


@EXPERIMENTS.register("baselines", place="runs", form=dataclass_form(BaselinesSettings))
def baselines(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """The baselines of the run ``run``, compared with it.

    Some chains cannot work without passages. A failed baseline is reported, and the others still run.
    """
    workspace = request.workspace
    settings = request.read(BaselinesSettings)
    run = RunFolder.open(workspace.runs, settings.run)
    failed: dict[str, str] = {}
    for baseline, step in baseline_runs(workspace, run, settings.long_context).items():
        try:
            yield step
        except RalleError as error:
            failed[baseline] = str(error)
        yield Release(step.flow.retrievers)
    result = compare_baselines(run, stored_baselines(workspace, run), failed)
    return Report(failed=failed, result=result)


def baseline_runs(
    workspace: WorkspaceFolder, run: RunFolder, long_context: bool = False
) -> dict[str, RunRequest]:
    """Baseline → its run. Raises UsageError if the run cannot have baselines, or if another run already has the name of
    one."""
    stored = run.description()
    chain, dataset = stored.chain, stored.dataset_source
    if chain is None:
        raise UsageError(f"The run {run.name!r} was not made by a chain, so it has no baselines.")
    whole = prepare_run(
        workspace,
        chain_flow(chain),
        dataset,
        sampled=stored.is_sampled,
        metrics=stored.metrics,
        name=run.name,
        seed=stored.spec.seed,
        may_grow=True,
        options=RunOptions(resume=True),
    ).request
    if whole.dataset.sha256 != stored.dataset_sha256:
        raise UsageError(
            f"The dataset {stored.dataset!r} was changed after {run.name!r} was run; run the chain again first."
        )
    whole = replace(whole, batch_size=stored.batch_size)
    requests = {}
    chains = baseline_chains(workspace, chain, dataset, whole.examples, long_context)
    for baseline, changed in chains.items():
        name = baseline_name(run.name, baseline)
        request = replace(whole, flow=chain_flow(changed), label=baseline, name=name)
        exists = (workspace.runs / name).exists()
        if exists and not is_of(RunFolder.open(workspace.runs, name), request):
            raise UsageError(
                f"The run {name!r} exists already and is not a baseline of {run.name!r} as it is now; "
                f"move {workspace.runs / name} away."
            )
        requests[baseline] = request
    return requests


def stored_baselines(workspace: WorkspaceFolder, run: RunFolder) -> dict[str, RunFolder]:
    """Baseline → its run, for baselines with a report. Loads no model and reads no dataset."""
    folders = {}
    for baseline in RETRIEVER_OF_BASELINE:
        folder = RunFolder(workspace.runs / baseline_name(run.name, baseline))
        try:
            if folder.path.is_dir() and folder.report() and _is_baseline_of(run, folder):
                folders[baseline] = folder
        except RalleError:  # the list of runs names the damage
            continue
    return folders


def _is_baseline_of(run: RunFolder, other: RunFolder) -> bool:
    """Return whether ``other`` answered the same questions as ``run`` with a baseline chain."""
    ours, theirs = (
        (stored.dataset, stored.dataset_sha256, stored.spec.limit, stored.spec.seed)
        for stored in (run.description(), other.description())
    )
    chain = other.description().chain
    return chain is not None and ours == theirs and is_baseline(chain)
