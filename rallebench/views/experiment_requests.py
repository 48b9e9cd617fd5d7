"""Requests for experiments, parsed from the user's settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rallebench.chains.saved import chain_to_json
from rallebench.core.errors import Hint, SettingError, UsageError
from rallebench.core.events import complete
from rallebench.core.experiment_reports import IMPROVE, RankingReport
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.json_values import JsonObject
from rallebench.core.numbers import plural
from rallebench.core.report import Estimate
from rallebench.core.settings import check_values
from rallebench.core.types import Chain, Json
from rallebench.engine.experiment_store import folder_name
from rallebench.engine.store import RunFolder
from rallebench.experiments import EXPERIMENTS, SUITES
from rallebench.experiments.baselines import LONG, baseline_name
from rallebench.experiments.sweeps import indexing, remarks
from rallebench.experiments.sweeps.results import headline, open_sweep
from rallebench.experiments.sweeps.running import sweep_settings, sweep_variants
from rallebench.experiments.tradeoff.running import read_swept, tradeoff_settings
from rallebench.workspace.checking import check_chain
from rallebench.workspace.indexes.ensure import Costs, index_costs
from rallebench.workspace.paths import WorkspaceFolder

BASELINES, LONGEST_NAME = "baselines", 60


# sweeps


def sweep_request(
    workspace: WorkspaceFolder,
    name: str,
    chain: Chain,
    factors: Sequence[str],
    dataset: str,
    *,
    limit: int | None = None,
    seed: int = 0,
    strategy: str = "one-factor",
    metrics: tuple[str, ...] | None = None,
    metric: str = "",
    sampled: bool = False,
) -> tuple[ExperimentRequest[WorkspaceFolder], int]:
    """Return the request for a sweep, and its number of variants; keywords as for ``sweep_settings``.

    Raises UsageError if the chain lacks one of the fields to vary.
    """
    settings = sweep_settings(
        chain,
        factors,
        dataset,
        strategy=strategy,
        metrics=metrics,
        metric=metric,
        sampled=sampled,
    )
    request = ExperimentRequest(workspace, "", settings, limit, seed, kind="sweep", name=name)
    return request, len(sweep_variants(settings))


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """The variants of a sweep by their labels, and the index builds and encodings that come before them."""

    variants: tuple[str, ...]
    costs: Costs
    verdict: str
    notes: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        costs = self.costs
        return {
            "variants": self.variants,
            "indexes_there": costs.existing,
            "index_builds": costs.builds,
            "passages": costs.passages,
            "encodings": {
                name: {"to_encode": new, "texts": total}
                for name, (new, total) in costs.encodings.items()
            },
            "verdict": self.verdict,
        }


def sweep_plan(
    workspace: WorkspaceFolder, request: ExperimentRequest[WorkspaceFolder]
) -> SweepPlan:
    """Return the runs, index builds and encodings of a sweep. Raises UsageError if a variant
    cannot run.
    """
    variants = sweep_variants(request.settings)
    for variant in variants:
        check_chain(workspace, variant.chain)
    recipes = indexing.indexes(workspace, variants)
    costs = complete(index_costs(workspace, recipes))
    labels = tuple(variant.label for variant in variants)
    verdict = f"{plural(len(labels), 'run')}: {', '.join(labels)}."
    if any(variant.index for variant in variants):
        verdict += f" {costs.sentence}"
    return SweepPlan(labels, costs, verdict, tuple(remarks(variants)))


# improvements


def improve_request(
    workspace: WorkspaceFolder,
    name: str,
    chain: Chain,
    settings: Json,
    *,
    vary: Sequence[str] = (),
    llm: str = "",
    limit: int | None = None,
    seed: int = 0,
) -> ExperimentRequest[WorkspaceFolder]:
    """Return the request to improve a chain. ``settings``: unparsed values of the declared settings; ``vary``: as for
    ``sweep_request``; ``llm``: replaces the chain's models. Raises UsageError.
    """
    if limit is not None and limit < 1:
        raise SettingError("limit", limit, "at least 1; leave it out for all")
    checked = check_values("improvement", EXPERIMENTS.entry(IMPROVE).form, settings)
    content = {**checked, "chain": chain_to_json(chain), "vary": list(vary)}
    return ExperimentRequest(workspace, llm, content, limit, seed, kind=IMPROVE, name=name)


# trade-offs


def tradeoff_request(
    workspace: WorkspaceFolder,
    name: str,
    indexes: Sequence[str],
    dataset: str,
    *,
    k: int,
    limit: int,
    knobs: Sequence[str],
    flag: str = "",
) -> ExperimentRequest[WorkspaceFolder]:
    """Return the request for an index trade-off. ``knobs``: ``KEY=V,V`` texts, given by ``flag``. Raises UsageError."""
    swept = read_swept(knobs, f"{flag} ".lstrip())
    settings = tradeoff_settings(list(indexes), dataset, k=k, swept=swept)
    return ExperimentRequest(workspace, "", settings, limit, kind="tradeoff", name=name)


# suites and baselines


def suite_request(
    workspace: WorkspaceFolder,
    suite: str,
    llms: Sequence[str],
    settings: Json,
    *,
    limit: int | None = None,
    name: str = "",
    seed: int = 0,
    allow_python: bool = False,
) -> ExperimentRequest[WorkspaceFolder]:
    """Return the request for a suite from unparsed settings. If several models are given, the suite must have a
    setting that compares them. Raises UsageError, NotFoundError.
    """
    entry = SUITES.entry(suite)
    if llms and not entry.traits.get("asks", True):
        raise UsageError(
            f"The suite {suite!r} asks no language model.", hint=Hint("leave-out", "llm")
        )
    if len(llms) > 1:
        if "models" not in entry.form:
            raise UsageError(
                f"The suite {suite!r} takes one language model, but {len(llms)} are named; run it once for each."
            )
        if "models" in settings:
            raise UsageError(
                "The models are named twice, also by the setting models.",
                hint=Hint("leave-out", "llm"),
            )
        settings, llms = {**settings, "models": ",".join(llms)}, ()
    llm, checked = "".join(llms), SUITES.settings(suite, settings)
    if limit is not None and limit < 1:
        raise SettingError("limit", limit, "at least 1; leave it out for all")
    return ExperimentRequest(
        workspace,
        llm,
        checked,
        limit,
        seed,
        allow_python,
        suite,
        name or suite_name(suite, llm, checked, limit),
    )


def suite_name(kind: str, llm: str, settings: Json, limit: int | None) -> str:
    """Return the default name of a suite's runs; equal requests get equal names. It contains the model, the settings
    that most suites have, and the settings in the suite's trait ``named_by``.

    >>> suite_name("rgb-noise", "my-llm", {"data": "/data/rgb", "language": "auto", "set": "en_fact"}, 5)
    'rgb-noise en_fact my-llm first 5'
    """
    dataset = str(settings.get("set") or Path(str(settings.get("data", ""))).name.split(".json")[0])
    language = str(settings.get("language", "")).replace("auto", "")
    own: Sequence[str] = SUITES.entry(kind).traits.get("named_by", ())
    words = [
        re.sub(r"[^,=]*[/\\]|\.jsonl?(\.gz)?\b", "", str(settings[key]))
        for key in own
        if settings.get(key)
    ]
    first = [] if limit is None else [f"first {limit}"]
    text = " ".join(filter(None, [kind, language, dataset, *words, llm, *first]))
    return folder_name(text, LONGEST_NAME)


def baselines_request(
    workspace: WorkspaceFolder, run: str, long_context: bool = False
) -> ExperimentRequest[WorkspaceFolder]:
    """Return the request for the baselines of a run; ``long_context`` adds one with whole pages. Raises UsageError
    if there is no such run.
    """
    spec = RunFolder.open(workspace.runs, run).description().spec
    name = baseline_name(run, f"{BASELINES} {LONG}" if long_context else BASELINES)
    settings = {"run": run, **({"long_context": True} if long_context else {})}
    return ExperimentRequest(
        workspace, "", settings, spec.limit, spec.seed, kind=BASELINES, name=name
    )


def stored_sweep(workspace: WorkspaceFolder, name: str, metric: str = "") -> RankingReport:
    """Return a stored sweep: its variants ranked by ``metric``, and why others are missing. Raises UsageError if
    there is none.
    """
    return open_sweep(workspace, name, metric)


def sweep_headline(means: Mapping[str, Estimate]) -> str:
    """Return the metric to show for a variant without comparisons; '' if it has none."""
    return headline(means)
