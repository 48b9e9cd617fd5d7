"""Tables I to III of the boolean-agent study from run files; nothing is asked.

The published data may hold a part of each run only: the means over the rows that are there stand beside the whole run's own
figures, where a manifest gives them, and beside what the paper prints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rallebench.core.experiments import Experiment, ExperimentRequest, Figure, Report, Table
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.papers.barag import PAPER
from rallebench.experiments.papers.barag.points import choice_table
from rallebench.experiments.papers.barag.published import (
    RUNS,
    disagreements,
    exact,
    printed_rows,
    printed_table,
)
from rallebench.experiments.papers.barag.runs import (
    COLUMNS,
    Run,
    Summary,
    histogram_plot,
    read_runs,
    runs_table,
    summary_of,
)
from rallebench.experiments.papers.common import string

Runs = Mapping[str, tuple[Run, Summary]]
COSTS = (("n_in", "input"), ("n_out", "output"))


@EXPERIMENTS.register(
    "barag-tables",
    place="suites",
    paper=PAPER,
    needs_llm=False,
    asks=False,
    named_by=("runs",),
    form={
        "runs": string(
            "folder of run files (JSON lines); a runs_manifest.json beside or above is read"
        )
    },
)
def tables(request: ExperimentRequest) -> Experiment:
    """BARAG, Tables I to III from run files: means, tokens, retrievals, beside the whole runs' and the printed figures."""
    runs = {
        run.name: (run, summary_of(run.rows[: request.limit]))
        for run in read_runs(request.settings["runs"])
    }
    printed = [name for name, rows in RUNS.items() if runs.keys() & set(rows.values())]
    summaries = {name: summary for name, (_, summary) in runs.items()}
    whole = any(run.whole for run, _ in runs.values())
    yield from ()
    return Report(
        {
            "runs": {
                name: {**of.as_json(), "description": run.description, "whole": dict(run.whole)}
                for name, (run, of) in runs.items()
            }
        },
        (*_notes(runs), *_costs(runs)),
        tables=(
            *(printed_table(name, runs) for name in printed),
            *_choices(runs),
            runs_table("All runs, over the rows present", summaries),
            *[_whole_table(runs)] * whole,
        ),
        figures=_plots(runs),
    )


def _whole_table(runs: Runs) -> Table:
    fields = ("n", "truthfulness", "relevance", "n_in", "n_out", "retrieved", "both_5")
    rows = tuple(
        (name, *(exact(run.whole.get(field)) for field in fields), run.description)
        for name, (run, _) in runs.items()
        if run.whole
    )
    head = ("Run", "Answers", *COLUMNS[:4], "Retrieved (flag)", "Perfect", "What it is")
    return Table("All runs, whole, as the manifest has them", head, rows)


def _notes(runs: Runs) -> Iterator[str]:
    parts = [run for run, summary in runs.values() if run.whole and run.whole["n"] != summary.n]
    if parts:
        yield f"{len(parts)} of {len(runs)} files hold a part of their run; its whole figures are the manifest's."
    for table in RUNS:
        rows = printed_rows(table)
        for row in rows:
            yield from (f"{table}, {row.label}: {text}." for text in disagreements(row, runs))
            if not row.run and any(other.run in runs for other in rows):
                yield f"{table}, {row.label}: its answers were not released."
    drafts = [
        name for name, (run, _) in runs.items() if any(r.context and not r.read for r in run.rows)
    ]
    if drafts:
        yield f"Where nothing was retrieved, {', '.join(drafts)} keep the draft as the context; it is not counted as retrieved."
    for name, (_, summary) in runs.items():
        if summary.scored < summary.n:
            yield f"{name}: {summary.n - summary.scored} of {summary.n} answers have no scores; they are in no mean."


def _costs(runs: Runs) -> Iterator[str]:
    """What the agent saves or costs against retrieving always, by the whole runs where they are known."""
    for table, label in (("Table II", "A_r"), ("Table III", "A_f")):
        names = [RUNS[table][way] for way in ("NRAG", "BARAG")]
        if not runs.keys() >= set(names):
            continue
        always, own = (runs[name][0].whole or runs[name][1].as_json() for name in names)
        parts = [
            f"{own[key] / always[key] - 1:+.1%} {kind} tokens ({own[key]:,} against {always[key]:,})"
            for key, kind in COSTS
            if always[key] and own[key] is not None
        ]
        yield f"On {label} the agent needs {' and '.join(parts)} compared with retrieving always."


def _choices(runs: Runs) -> Iterator[Table]:
    """The published agents against a coin and against the better answer each time."""
    for table in ("Table II", "Table III"):
        names = list(RUNS[table].values())
        if all(name in runs for name in names):
            title = f"What the decision is worth, {table}"
            if choice := choice_table(title, *(runs[name][0] for name in names)):
                yield choice


def _plots(runs: Runs) -> tuple[Figure, ...]:
    groups: dict[str, dict[str, Summary]] = {}
    for name, (run, summary) in runs.items():
        groups.setdefault(run.dataset, {})[name.removeprefix(f"{run.dataset}_") or name] = summary
    title = "Truthfulness + relevance"
    plots = (histogram_plot(f"{title} on {d}" if d else title, of) for d, of in groups.items())
    return tuple(plot for plot in plots if plot.series)
