"""Run a sweep: every variant a run folder, what variants share is asked once, the winner named at the end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rallebench import benchmark
from rallebench.analysis.many import HEADLINES, Many, compare_many
from rallebench.bench.runner import Progress
from rallebench.bench.store import RunFolder
from rallebench.catalog import chain_to_json
from rallebench.errors import RalleError, StoppedError, UsageError
from rallebench.files import read_json, write_json
from rallebench.metrics import metric
from rallebench.sweeps import Cell, run_name, tracked
from rallebench.types import Chain
from rallebench.workbench import Workbench
from rallebench.workspace import Workspace

_NAME = re.compile(r"[\w\-.][\w\-.]{0,39}")


@dataclass(frozen=True, slots=True)
class Working:
    """Variant ``number`` of ``total`` (from 1) is at ``done`` of ``questions``; ``said``: what it does else."""

    number: int
    total: int
    cell: Cell
    done: int = 0
    questions: int = 0
    said: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """A variant's run ended. ``error``: why it failed, '' if it did not; ``before``: it had ended already."""

    cell: Cell
    run: str
    error: str = ""
    before: bool = False


@dataclass(frozen=True, slots=True)
class Swept:
    """``runs``: run name → variant, best first by ``compared.metric``; ``compared`` is None with fewer than two
    runs. ``failed``: variant → sentence. ``warning``: why MLflow does not show it as one, '' if it does.
    ``alone``: the metrics of the only variant that ended, as in its report."""

    name: str
    runs: Mapping[str, str]
    compared: Many | None
    failed: Mapping[str, str]
    warning: str = ""
    alone: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """Who wins, in one sentence that claims no more than the numbers show."""
        if self.compared is None and self.runs:
            one = next(iter(self.runs.values()))
            return f"Only {one} ended, so there is nothing to compare it with{_scored(self.alone)}."
        if self.compared is None:
            return "Fewer than two variants ended, so there is nothing to compare."
        names, found = list(self.runs), self.compared
        first = found.cells[found.metric][0]
        alike = [one.name for one in found.against if one.corrected is None or one.corrected >= 0.05]
        score = f"{metric(found.metric).traits['label']} {first.value:.4f} [{first.low:.4f}, {first.high:.4f}], n = {first.n}"
        best = f"Best: {self.runs[names[0]]} ({score})"
        if not alike:
            return f"{best}; the difference to every other variant is more than chance (p < 0.05, Holm)."
        said = ", ".join(self.runs[name] for name in alike[:5]) + (" …" if len(alike) > 5 else "")
        return f"{best}; no difference is shown to: {said} (p ≥ 0.05, Holm)."


def sweep(
    workbench: Workbench,
    name: str,
    chain: Chain,
    variants: Sequence[Cell],
    dataset: str,
    *,
    limit: int | None = None,
    metrics: tuple[str, ...] | None = None,
    by: str = "",
    batch_size: int = 20,
    seed: int = 0,
    max_errors: int | None = None,
    track: bool = True,
) -> Iterator[Working | Ended | Swept]:
    """Run all variants, one after another; Swept is last. A sweep of that name with the same content goes on
    where it stopped. A variant that fails is told and the others go on. Raises RalleError for what is wrong
    before the first runs; StoppedError when a run was stopped, and then the sweep can be continued.

    ``by``: the metric that decides, '' = the first of em, accuracy, f1 … that all have.
    """
    if by:
        _deciding(by)
    content: dict[str, Any] = {
        "chain": chain_to_json(chain),
        "variants": [dict(cell.changes) for cell in variants],
        "dataset": dataset,
        "limit": limit,
        "metrics": list(metrics or ()),
        "seed": seed,
    }
    made = _keep(workbench.workspace, name, content, [run_name(name, cell) for cell in variants])
    plans = [
        benchmark.prepare(
            workbench.workspace, cell.chain, dataset, limit=limit, metrics=metrics, name=run, batch_size=batch_size,
            seed=seed, max_errors=max_errors, resume=(workbench.workspace.runs / run).exists(), track=track,
        )
        for cell, run in zip(variants, made)
    ]  # fmt: skip
    write_json(_file(workbench.workspace, name), {"format": "rallebench-sweep/1", **content, "runs": made})
    ended: dict[str, Cell] = {}
    failed: dict[str, str] = {}
    for number, (cell, plan) in enumerate(zip(variants, plans), 1):
        if plan.resume and _is_done(workbench.open_run(plan.name)):
            ended[plan.name] = cell
            yield Ended(cell, plan.name, before=True)
            continue
        try:
            for stage in _stages(workbench, plan):
                if isinstance(stage, benchmark.Finished) and stage.state == "stopped":
                    raise StoppedError(f"The sweep {name!r} was stopped at {cell.label}; start it again to continue.")
                done = stage if isinstance(stage, Progress) else None
                said = stage.message or stage.name if isinstance(stage, benchmark.Phase) else ""
                yield Working(number, len(plans), cell, done.done if done else 0, len(plan.examples), said)
            ended[plan.name] = cell
            yield Ended(cell, plan.name)
        except StoppedError:
            raise
        except RalleError as error:
            failed[cell.label] = str(error)
            yield Ended(cell, plan.name, str(error))
    found = swept(workbench, name, {run: cell.label for run, cell in ended.items()}, failed, by)
    yield replace(found, warning=tracked.track(workbench, as_json(found))) if track else found


def _stages(workbench: Workbench, plan: benchmark.Plan) -> Iterator[Any]:
    with closing(workbench.run(plan)) as stages:
        yield from stages


def _is_done(run: RunFolder) -> bool:
    report = run.report()
    return run.state()["state"] == "done" and bool(report and report["complete"])


def swept(
    workbench: Workbench, name: str, labels: Mapping[str, str], failed: Mapping[str, str], by: str = ""
) -> Swept:
    """The runs of a sweep beside each other, the best first. Raises UsageError for a metric that decides nothing."""
    by = _deciding(by) if by else ""
    reports = {run: workbench.open_run(run).report() or {"metrics": {}} for run in labels}
    shared = [m for m in HEADLINES if all(m in report["metrics"] for report in reports.values())]
    decides = by or next(iter(shared), "")
    upward = not decides or metric(decides).traits.get("higher_is_better", True) is not False
    values = {run: report["metrics"].get(decides, {}).get("value") for run, report in reports.items()}
    runs = {run: labels[run] for run in sorted(labels, key=lambda run: _rank(values[run], upward))}
    compared = compare_many([workbench.open_run(run) for run in runs], decides) if len(runs) > 1 else None
    if compared is not None:
        # Over the questions that every variant has scored, another one may be the best than over each one's own.
        means = dict(zip(runs, compared.cells[compared.metric]))
        upward = metric(compared.metric).traits.get("higher_is_better", True) is not False
        again = sorted(runs, key=lambda run: _rank(means[run].value, upward))
        if again != list(runs):
            runs = {run: labels[run] for run in again}
            compared = compare_many([workbench.open_run(run) for run in runs], compared.metric)
    alone: Mapping[str, Any] = {} if compared else next((report["metrics"] for report in reports.values()), {})
    return Swept(name, runs, compared, dict(failed), alone=alone)


def _scored(metrics: Mapping[str, Mapping[str, Any]]) -> str:
    name = next((name for name in HEADLINES if metrics.get(name, {}).get("value") is not None), "")
    cell = metrics.get(name, {})
    return f": {metric(name).traits['label']} {cell['value']:.4f}, n = {cell['n']}" if name else ""


def _rank(value: float | None, upward: bool) -> float:
    return float("inf") if value is None else -value if upward else value


def _deciding(by: str) -> str:
    """The metric's whole name. Raises UsageError for one that is unknown, or of which neither more nor less is better."""
    entry = metric(by)
    if entry.traits.get("higher_is_better", True) is None:
        raise UsageError(f"Neither more nor less of {entry.name} is better, so it cannot decide; choose another metric.")
    return entry.name


# what is kept


def folder_of(workspace: Workspace) -> Any:
    """Where sweeps are noted."""
    return workspace.path / "sweeps"


def _file(workspace: Workspace, name: str) -> Any:
    return folder_of(workspace) / f"{name}.json"


def kept(workspace: Workspace) -> list[str]:
    """The names of all sweeps, the newest first."""
    files = [path for path in folder_of(workspace).glob("*.json") if not path.name.startswith(".")]
    return [path.stem for path in sorted(files, key=lambda path: -path.stat().st_mtime)]


def opened(workbench: Workbench, name: str, by: str = "") -> Swept:
    """A sweep that was run: those of its variants that have ended, and why the others have not. Raises UsageError if
    there is none."""
    path = _file(workbench.workspace, name)
    if not path.is_file():
        raise UsageError(f"There is no sweep {name!r} (sweeps: {', '.join(kept(workbench.workspace)[:10]) or 'none yet'}).")
    value = read_json(path)
    labels = {
        run: ", ".join(f"{varied}={label}" for varied, label in changes.items()) or "base"
        for run, changes in zip(value["runs"], value["variants"])
    }
    ended: dict[str, str] = {}
    missing: dict[str, str] = {}
    for run, label in labels.items():
        if not (workbench.workspace.runs / run).exists():
            missing[label] = "It has no run; start the sweep again to make it."
        elif _is_done(found := workbench.open_run(run)):
            ended[run] = label
        else:
            missing[label] = str(found.state().get("message") or "") or "Its run has not ended."
    return swept(workbench, name, ended, missing, by)


def checked_name(name: str) -> str:
    """The name, if a sweep can have it. Raises UsageError."""
    if not _NAME.fullmatch(name) or name.startswith("."):
        raise UsageError(f"The sweep's name {name!r} must be 1 to 40 letters, digits, '-', '_' or '.'.")
    return name


def _keep(workspace: Workspace, name: str, content: Mapping[str, Any], runs: list[str]) -> list[str]:
    """The runs' names. Raises UsageError for a name that cannot be, or that another sweep has."""
    path = _file(workspace, checked_name(name))
    if path.is_file():
        there = read_json(path)
        if {key: there.get(key) for key in content} != content:
            raise UsageError(f"The sweep {name!r} exists already with another content; choose another name.")
    elif taken := [run for run in runs if (workspace.runs / run).exists()]:
        raise UsageError(f"The run {taken[0]!r} exists already and is of no sweep {name!r}; choose another name.")
    return runs


def as_json(found: Swept) -> dict[str, Any]:
    """One JSON document: the variants, best first, with every metric, and the verdict."""
    compared = found.compared
    names = list(found.runs)
    rows = []
    for i, run in enumerate(names):
        cells = {m: asdict(row[i]) for m, row in compared.cells.items()} if compared else dict(found.alone)
        against = compared.against[i - 1] if compared and i else None
        rows.append(
            {
                "run": run,
                "variant": found.runs[run],
                "metrics": cells,
                "difference": against.paired.difference if against else None,
                "p_corrected": against.corrected if against else None,
            }
        )
    return {
        "sweep": found.name,
        "metric": compared.metric if compared else None,
        "variants": rows,
        "failed": dict(found.failed),
        "verdict": found.verdict,
        "warnings": [*(compared.warnings if compared else []), *filter(None, [found.warning])],
    }
