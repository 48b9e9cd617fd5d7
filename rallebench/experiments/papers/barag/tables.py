"""Tables I to III of the boolean-agent study from run files; nothing is asked.

The published data may hold a part of each run only: the means over the rows that are there stand beside the whole run's own
figures, where a manifest gives them, and beside what the paper prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rallebench.core.experiments import Experiment, ExperimentRequest, Figure, Report, Table
from rallebench.core.settings import Setting
from rallebench.experiments.papers import SUITES
from rallebench.experiments.papers.barag.choices import choice_table
from rallebench.experiments.papers.barag.published import (
    RUNS,
    disagreements,
    exact,
    printed_rows,
    printed_table,
)
from rallebench.experiments.papers.barag.runs import Run, read_runs
from rallebench.experiments.papers.barag.summary import (
    Summary,
    histogram_plot,
    runs_table,
    summary_of,
)

Runs = Mapping[str, tuple[Run, Summary]]
COSTS = (("n_in", "input"), ("n_out", "output"))


@SUITES.register(
    "barag-tables",
    needs_llm=False,
    asks=False,
    named_by=("runs",),
    form={
        "runs": Setting(
            str,
            "",
            about="folder of run files (JSON lines); a runs_manifest.json beside or above is read",
        )
    },
)
def tables(asked: ExperimentRequest) -> Experiment:
    """BARAG, Tables I to III from run files: means, tokens, retrievals, beside the whole runs' and the printed figures."""
    found = {
        run.name: (run, summary_of(run.rows[: asked.limit]))
        for run in read_runs(asked.settings["runs"])
    }
    shown = [
        printed_table(name, found)
        for name, runs in RUNS.items()
        if found.keys() & set(runs.values())
    ]
    summaries = {name: summary for name, (_, summary) in found.items()}
    whole = [_whole_table(found)] if any(run.whole for run, _ in found.values()) else []
    report: dict[str, Any] = {
        "runs": {
            name: {**summary.as_json(), "description": run.description, "whole": dict(run.whole)}
            for name, (run, summary) in found.items()
        }
    }
    yield from ()
    return Report(
        report,
        (*_notes(found), *_costs(found)),
        tables=(
            *shown,
            *_choices(found),
            runs_table("All runs, over the rows present", summaries),
            *whole,
        ),
        figures=_plots(found),
    )


def _whole_table(found: Runs) -> Table:
    fields = ("n", "truthfulness", "relevance", "n_in", "n_out", "retrieved", "both_5")
    rows = tuple(
        (name, *(exact(run.whole.get(field)) for field in fields), run.description)
        for name, (run, _) in found.items()
        if run.whole
    )
    head = (
        "Run",
        "Answers",
        "Truthfulness",
        "Relevance",
        "Input tokens",
        "Output tokens",
        "Retrieved (flag)",
        "Perfect",
        "What it is",
    )
    return Table("All runs, whole, as the manifest has them", head, rows)


def _notes(found: Runs) -> list[str]:
    part = [
        name for name, (run, summary) in found.items() if run.whole and run.whole["n"] != summary.n
    ]
    notes = [
        f"{len(part)} of {len(found)} files hold a part of their run; its whole figures are the manifest's."
    ] * bool(part)
    for table in RUNS:
        rows = printed_rows(table)
        for row in rows:
            notes += [f"{table}, {row.label}: {said}." for said in disagreements(row, found)]
            if not row.run and any(other.run in found for other in rows):
                notes.append(f"{table}, {row.label}: its answers were not released.")
    drafts = [
        name for name, (run, _) in found.items() if any(r.context and not r.read for r in run.rows)
    ]
    if drafts:
        notes.append(
            f"Where nothing was retrieved, {', '.join(drafts)} keep the draft as the context; it is not counted as retrieved."
        )
    for name, (_, summary) in found.items():
        if summary.scored < summary.n:
            notes.append(
                f"{name}: {summary.n - summary.scored} of {summary.n} answers have no scores; they are in no mean."
            )
    return notes


def _costs(found: Runs) -> list[str]:
    """What the agent saves or costs against retrieving always, by the whole runs where they are known."""
    said = []
    for table, label in (("Table II", "A_r"), ("Table III", "A_f")):
        naive, agent = (RUNS[table][one] for one in ("NRAG", "BARAG"))
        if naive not in found or agent not in found:
            continue
        sides = [found[name][0].whole or found[name][1].as_json() for name in (naive, agent)]
        parts = [
            f"{sides[1][key] / sides[0][key] - 1:+.1%} {kind} tokens ({sides[1][key]:,} against {sides[0][key]:,})"
            for key, kind in COSTS
            if sides[0][key] and sides[1][key] is not None
        ]
        said.append(
            f"On {label} the agent needs {' and '.join(parts)} compared with retrieving always."
        )
    return said


def _choices(found: Runs) -> list[Table]:
    """The published agents against a coin and against the better answer each time."""
    made = []
    for table in ("Table II", "Table III"):
        names = list(RUNS[table].values())
        if all(name in found for name in names):
            made.append(
                choice_table(
                    f"What the decision is worth, {table}", *(found[name][0] for name in names)
                )
            )
    return [one for one in made if one is not None]


def _plots(found: Runs) -> tuple[Figure, ...]:
    groups: dict[str, dict[str, Summary]] = {}
    for name, (run, summary) in found.items():
        groups.setdefault(run.dataset, {})[name.removeprefix(f"{run.dataset}_") or name] = summary
    plots = (
        histogram_plot(
            f"Truthfulness + relevance {f'on {dataset}' if dataset else ''}".strip(), group
        )
        for dataset, group in groups.items()
    )
    return tuple(plot for plot in plots if plot.series)
