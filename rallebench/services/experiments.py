"""Experiments: planned, measured by a pilot, performed, opened again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rallebench.core.errors import UsageError
from rallebench.core.events import Operation
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.runs import DEFAULT_OPTIONS, RunOptions
from rallebench.engine import driver
from rallebench.engine.driver import ExperimentResult
from rallebench.engine.estimate import CostEstimate
from rallebench.engine.experiment_store import (
    ExperimentStore,
    StoredExperiment,
    check_free,
    folder_name,
)
from rallebench.engine.pilot import QUESTIONS, pilot
from rallebench.engine.plan import Plan, plan
from rallebench.experiments.benchmark import check_options
from rallebench.experiments.suites import SUITES
from rallebench.experiments.sweeps.running import sweep, variants_of
from rallebench.services.context import Context
from rallebench.services.leases import Lease

if TYPE_CHECKING:
    from rallebench.services.workbench import Workbench

LONGEST_NAME = 60
SWEEP = "sweep"


class Experiments:
    """The verbs of the Suites and Sweep tabs."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self.store = ExperimentStore(workbench.workspace.path)

    # of suites

    def plan(self, request: ExperimentRequest) -> Plan:
        """Everything that ``run_suite`` would run. Loads nothing, writes nothing. Raises RalleError for a wrong request, and
        MismatchError if a run of that name was made with other settings."""
        request = self._checked(request)
        with self._workbench.lease(f"the plan of the suite {request.name!r}") as lease:
            return plan(request, SUITES[request.kind], Context(self._workbench, lease))

    def pilot(
        self,
        planned: Plan,
        request: ExperimentRequest,
        *,
        questions: int = QUESTIONS,
        batch_size: int = 20,
        **limits: float,
    ) -> Operation[CostEstimate]:
        """Ask a few questions of each run of a plan; returns what the whole will cost. See ``engine.pilot``."""
        request = self._checked(request)
        with self._workbench.lease(f"the probe of the suite {request.name!r}") as lease:
            return (
                yield from pilot(
                    planned,
                    request,
                    SUITES[request.kind],
                    Context(self._workbench, lease),
                    questions=questions,
                    batch_size=batch_size,
                    **limits,
                )
            )

    def run_suite(
        self,
        request: ExperimentRequest,
        options: RunOptions = DEFAULT_OPTIONS,
        *,
        lease: Lease | None = None,
    ) -> Operation[ExperimentResult]:
        """Perform all runs of a suite. ``lease``: that of the work which the suite is part of. See ``engine.driver``."""
        check_options(options.batch_size, options.max_errors)
        request = self._checked(request)
        own = self._workbench.lease(f"the suite {request.name!r}")
        with own:
            return (
                yield from driver.perform(
                    request,
                    SUITES[request.kind],
                    Context(self._workbench, lease or own),
                    self.store,
                    options,
                    document=suite_document,
                    noun="suite",
                )
            )

    def suites(self) -> list[str]:
        """The names of all suites that were begun, the newest first."""
        return self.store.names(SUITES.names())

    def open_suite(self, name: str) -> StoredExperiment:
        """A suite by its name. Raises UsageError if there is none, BadFileError for damaged files."""
        return self.store.open(name, "suite run")

    def _checked(self, request: ExperimentRequest) -> ExperimentRequest:
        """The request, if it can be made. Raises UsageError, NotFoundError."""
        if SUITES.entry(request.kind).traits.get("needs_llm", True) and not request.llm:
            raise UsageError(
                f"The suite {request.kind!r} needs a language model; name one with --llm."
            )
        if request.limit is not None and request.limit < 1:
            raise UsageError(f"The number of questions is {request.limit}; it must be at least 1.")
        check_free(self._workbench.workspace.path, request.kind, request.name, "suite")
        return request

    # of sweeps

    def run_sweep(
        self,
        name: str,
        settings: Mapping[str, Any],
        options: RunOptions = DEFAULT_OPTIONS,
        *,
        limit: int | None = None,
        seed: int = 0,
    ) -> Operation[ExperimentResult]:
        """Run all variants of a chain, see ``sweep_settings``. A sweep of that name with the same content goes on where it
        stopped. Raises RalleError for what is wrong before the first variant runs."""
        check_options(options.batch_size, options.max_errors)
        workspace = self._workbench.workspace
        request = ExperimentRequest(
            workspace, "", settings, limit, seed, kind=SWEEP, name=checked_sweep_name(name)
        )
        with self._workbench.lease(f"the sweep {name!r}") as lease:
            return (
                yield from driver.perform(
                    request,
                    sweep,
                    Context(self._workbench, lease),
                    self.store,
                    options,
                    document=lambda result: result.report.data,
                    noun=SWEEP,
                    fixed=True,
                )
            )

    def sweeps(self) -> list[str]:
        """The names of all sweeps, the newest first."""
        return self.store.names((SWEEP,))

    @staticmethod
    def variants(settings: Mapping[str, Any]) -> list[Any]:
        """The variants that a sweep's settings ask for. Raises UsageError."""
        return variants_of(settings)


def checked_sweep_name(name: str) -> str:
    """The name, if a sweep can have it. Raises UsageError."""
    if not re.fullmatch(r"[\w\-.][\w\-.]{0,39}", name) or name.startswith("."):
        raise UsageError(
            f"The sweep's name {name!r} must be 1 to 40 letters, digits, '-', '_' or '.'."
        )
    return name


def suite_document(result: ExperimentResult) -> dict[str, Any]:
    """One JSON document: every run with its means, then what the suite itself says."""
    report = result.report
    definitions = {
        metric: text for run in result.runs for metric, text in run.request.rates.columns.items()
    }
    return {
        "suite": result.request.kind,
        "name": result.request.name,
        "parts": [
            {
                "label": run.request.label,
                "run": run.run,
                "n": run.n,
                "n_errors": run.n_errors,
                "seconds": run.seconds,
                "metrics": {metric: asdict(mean) for metric, mean in run.means.items()},
            }
            for run in result.runs
        ],
        "definitions": definitions,
        **report.data,
        "notes": list(report.notes),
        "tables": [table.as_json() for table in report.tables],
        "plots": [figure.as_json() for figure in report.figures],
        "files": list(result.files),
        "folder": str(result.folder),
    }


def suite_name(kind: str, llm: str, settings: Mapping[str, Any], limit: int | None) -> str:
    """The default name of a suite's runs: the same request, the same name. It has the model, those settings that most suites
    have, and those of the suite's trait ``named_by``.

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


def changed_settings(stored: StoredExperiment) -> dict[str, Any]:
    """The settings that a stored suite was asked for and that are not its defaults, as far as the suite is known here."""
    known = SUITES.entry(stored.kind).form if stored.kind in SUITES else {}
    settings = stored.request.get("settings") or {}
    return {
        name: value
        for name, value in settings.items()
        if name not in known or value != known[name].default
    }


def named(request: ExperimentRequest, kind: str, name: str) -> ExperimentRequest:
    """The request as one of an experiment of that kind and name."""
    return replace(request, kind=kind, name=name)
