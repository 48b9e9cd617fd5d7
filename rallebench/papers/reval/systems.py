"""R-Eval's systems (Tu et al. 2024, arXiv:2406.11681): workflow × language model × task, in one table of scores and ranks.

Each cell is an ordinary agent run, so an interrupted grid can be resumed and ``analyse`` accepts its runs. ``compat=original``
acts, parses and counts like R-Eval's code, which accepts only the first of several answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rallebench.analysis.agents import System, list_groups, list_tasks
from rallebench.analysis.agents.leaderboard import (
    Leaderboard,
    board,
    leaderboard_tables,
    paper_table,
)
from rallebench.core.errors import BackendError, RalleError
from rallebench.core.experiment_reports import PUBLISHED, OwnRow
from rallebench.core.experiments import ExperimentRequest, Release, Report
from rallebench.core.files import DiskError, sha256_file
from rallebench.core.prompts import Wording
from rallebench.core.runs import DatasetRef, RunRequest, RunResult
from rallebench.core.settings import dataclass_form
from rallebench.core.table_files import csv_table, latex
from rallebench.core.tables import Cell, Column, Figure, Table
from rallebench.datasets.tasks import DOMAINS, LEVELS, TASKS, find_task
from rallebench.experiments.benchmarks import published_table
from rallebench.experiments.common import bars, failed_note, scored_run
from rallebench.experiments.languages import prompts_note
from rallebench.experiments.published.rows import own_row
from rallebench.experiments.significance import tests_between
from rallebench.metrics import metric
from rallebench.papers.common import (
    differs_by,
    is_original,
    metric_definitions,
    note_on,
    register_each,
    score_by,
)
from rallebench.papers.reval.benchmark import REVAL
from rallebench.papers.reval.grid import GridCell, grid, read_tasks, wording_in
from rallebench.papers.reval.plots import analysis_plots
from rallebench.papers.reval.settings import RevalSettings
from rallebench.workspace.paths import WorkspaceFolder

POOLS = "reval_table1"
REWARD = "f1_yes_no"
Grid = Generator["RunRequest | Release", Any, Report]
NAMED_BY = ("workflows", "models", "tasks")


@REVAL.suite("reval", form=dataclass_form(RevalSettings), named_by=NAMED_BY)
def reval(request: ExperimentRequest[WorkspaceFolder]) -> Grid:
    """R-Eval: workflows × models × tasks, as far as they fit each other, with scores, means and ranks."""
    return (yield from _answer_cells(request, ""))


def _answer_cells(request: ExperimentRequest[WorkspaceFolder], domain: str) -> Grid:
    settings = request.read(RevalSettings)
    tasks, tokenizer = read_tasks(request, settings, domain), settings.tokenizer
    position = metric(f"position_match:{tokenizer}" if tokenizer else "position_match").name
    cells = grid(request, settings, tasks)
    names, wording = (REWARD, "em", position), wording_in(settings.prompts, cells)
    runs = {cell.label: _run(settings, cell, names, wording) for cell in cells if cell.agent}
    last = {cell.system.llm: cell for cell in cells}
    results: dict[str, RunResult] = {}
    failed: dict[str, str] = {}
    for cell in cells:
        try:
            if cell.label in runs:
                results[cell.label] = yield runs[cell.label]
        except DiskError:
            raise  # other systems could not be stored either
        except RalleError as error:
            failed[cell.label] = str(error)
        if cell is last[cell.system.llm]:
            yield Release((cell.system.llm,))
    if not results:
        label, why = next(iter(failed.items()))
        raise BackendError(f"No system could be run. {label}: {why}")
    return _report(request, cells, results, failed, wording)


register_each(
    REVAL.suite,
    _answer_cells,
    {
        f"reval-{environment}": (
            f"R-Eval's systems on the tasks of its environment {word} alone.",
            word,
        )
        for word, environment in DOMAINS.items()
    },
    form=dataclass_form(RevalSettings),
    named_by=NAMED_BY,
)


def _run(
    settings: RevalSettings, cell: GridCell, names: Sequence[str], wording: Wording
) -> RunRequest:
    agent, questions = cell.agent, cell.questions
    assert agent is not None
    all_of_file = not settings.instances and questions.file.is_file()
    whole = all_of_file and not settings.original  # the file determines the questions
    sha256 = sha256_file(questions.file) if whole else ""
    return scored_run(
        cell.label,
        replace(agent.flow, settings={**agent.flow.settings, **wording.run_settings}),
        DatasetRef(questions.dataset, str(questions.file), sha256),
        questions.examples,
        score_by(names),
        metric_definitions(names),
        metrics=(*names, "f1"),
    )


def _report(
    request: ExperimentRequest[WorkspaceFolder],
    cells: Sequence[GridCell],
    results: Mapping[str, RunResult],
    failed: Mapping[str, str],
    wording: Wording,
) -> Report:
    tasks = list_tasks([cell.task_run for cell in cells])
    scored = [cell for cell in cells if cell.label in results]
    scores = {
        (cell.system, cell.questions.task): results[cell.label].mean(REWARD) for cell in scored
    }
    with_result = {cell.system for cell in scored}
    systems = [s for s in dict.fromkeys(cell.system for cell in cells) if s in with_result]
    groups = list_groups([cell.task_run for cell in scored])
    leaderboard = board(systems, tasks, scores, groups)
    tables = leaderboard_tables(leaderboard)
    own = _own_rows(request, scored, results, leaderboard, wording)
    by_system = {
        system.label: [results[cell.label] for cell in scored if cell.system == system]
        for system in systems
    }
    return Report(
        {
            "headline": REWARD,
            "compat": "original" if is_original(request) else "corrected",
            "wording": wording.to_json(),
            PUBLISHED: tuple(own),
            "cells": [_as_json(cell, results.get(cell.label), failed) for cell in cells],
            "means": {system.label: dict(leaderboard.means[system]) for system in systems},
            "ranks": {system.label: dict(leaderboard.ranks[system]) for system in systems},
        },
        tuple(_notes(cells, results, failed)),
        {
            "scores.csv": csv_table(tables[0]),
            "ranks.csv": csv_table(tables[1]),
            "table.tex": latex(paper_table(leaderboard)),
        },
        tables=(
            *tables,
            _endings(systems, scored, results),
            _pools(cells),
            *tests_between({"": by_system}, (REWARD,), names={REWARD: "F1"}, best=True),
        ),
        figures=(
            _figure(leaderboard, scored, results),
            *analysis_plots(scored, results, is_original(request)),
        ),
        failed=failed,
    )


UNPUBLISHED = "R-Eval has not published the 100 questions that it drew for each task"
PRINTED = {"aminer": "reval_table3", "wiki": "reval_table5"}
"""Domain → the paper's table of its tasks; the first table also has the means over domains."""


def _own_rows(
    request: ExperimentRequest[WorkspaceFolder],
    scored: Sequence[GridCell],
    results: Mapping[str, RunResult],
    leaderboard: Leaderboard,
    wording: Wording,
) -> Iterator[OwnRow]:
    """A row per system for R-Eval's tables, without printed figures to compare: the paper's questions were never published."""
    first = "" if is_original(request) else "Every accepted answer counts, in the paper the first."
    corpus = "Ours act on a local corpus and table, the paper's on Wikipedia and AMiner."
    differs = differs_by(request, wording, first, corpus)
    for system in leaderboard.systems:
        cells = [cell for cell in scored if cell.system == system]
        for domain, table in PRINTED.items():
            tasks = map(find_task, (cell.task for cell in cells))
            if not any(task is not None and task.domain == domain for task in tasks):
                continue
            settings = {"workflow": system.workflow, "llm": system.llm}
            yield own_row(table, system.label, {}, UNPUBLISHED, differs, **settings)


def _endings(
    systems: Sequence[System], scored: Sequence[GridCell], results: Mapping[str, RunResult]
) -> Table:
    """The reasons why each system's episodes ended. They show, for example, if scores of 0 are due to a limit."""
    counts = Counter(
        (cell.system, episode.outcome.stop_reason)
        for cell in scored
        for episode in results[cell.label].episodes.values()
        if episode.outcome
    )
    reasons = {reason for _, reason in counts}
    ordered = sorted(reasons, key=lambda reason: (reason != "answered", reason))
    columns = ("system", *(reason.replace("_", " ") for reason in ordered))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (s.label, *(counts[s, reason] for reason in ordered)) for s in systems
    )
    note = "Numbers of questions, over all tasks."
    return Table("How the episodes ended", columns, rows, note=note)


def _pools(cells: Sequence[GridCell]) -> Table:
    """The number of questions for each task, beside the paper's."""
    printed = {row.settings["id"]: row.values["pool"] for row in published_table(POOLS).rows}
    known = {task.name: task for task in TASKS}
    rows: list[tuple[Cell, ...]] = []
    for questions in {cell.task: cell.questions for cell in cells}.values():
        task = known.get(questions.task.name)
        level = LEVELS.get(questions.task.level, "")
        papers = printed[task.number] if task else None
        counts = (len(questions.examples), len(questions.demonstrations), questions.pool)
        rows.append((questions.task.name, level, *counts, papers))
    count = [Column(c, "count") for c in ("asked", "shown", "pool", "pool in the paper")]
    note = "The paper draws 100 questions of each pool, and prints the pools rounded."
    heads = (Column("task", "text"), Column("level", "text"), *count)
    return Table("Questions", heads, tuple(rows), note=note)


def _as_json(cell: GridCell, result: RunResult | None, failed: Mapping[str, str]) -> dict[str, Any]:
    return {
        "workflow": cell.system.workflow,
        "llm": cell.system.llm,
        "task": cell.task,
        "environment": cell.env,
        "state": "done" if result else "failed" if cell.agent else "not feasible",
        "why": cell.why or failed.get(cell.label, ""),
        "run": result.run if result else None,
        "n": result.n if result else 0,
        "n_errors": result.n_errors if result else 0,
        "memory": sum(result.memory.values()) if result else None,
    }


def _notes(
    cells: Sequence[GridCell], results: Mapping[str, RunResult], failed: Mapping[str, str]
) -> Iterator[str]:
    whys: dict[System, dict[str, list[str]]] = {cell.system: {} for cell in cells}
    for cell in cells:
        if cell.why:
            whys[cell.system].setdefault(cell.why, []).append(cell.task)
    for system, of_system in whys.items():
        for why, tasks in of_system.items():
            yield f"{system.label} is not feasible on {', '.join(tasks)}: {why}."
    for label, why in failed.items():
        yield f"{label} failed: {why}"
    for label, result in results.items():
        yield from failed_note(label, result, "in no figure")
    for questions in {cell.task: cell.questions for cell in cells}.values():
        texts = (example.question.text for example in questions.examples)
        mend = "name the other tasks (tasks=…), or send your own prompts (prompts=FOLDER)"
        if note := prompts_note("English", texts, mend, questions.task.name):
            yield note
        bare = [e.question.qid for e in questions.examples if not e.gold.answers]
        yield from note_on(
            bare, f"questions of {questions.task.name} have no answer and are in no mean"
        )
    datasets = {cell.questions.dataset: cell.task for cell in cells}
    stand_ins = [d for d, task in datasets.items() if d.startswith("starter-") and task != d]
    if stand_ins:
        yield f"Stand-ins of the starter, with fictional scholars, in place of R-Eval's own questions: {', '.join(stand_ins)}."
    counts = {cell.task: len(cell.questions.examples) for cell in cells}
    if len(set(counts.values())) > 1:
        each = ", ".join(f"{task}: {count}" for task, count in counts.items())
        yield f"The tasks have different numbers of questions ({each}); each counts the same in a mean."


def _figure(
    leaderboard: Leaderboard, cells: Sequence[GridCell], results: Mapping[str, RunResult]
) -> Figure:
    """F1 by task, with intervals and runs."""
    by_cell = {(cell.system, cell.questions.task): results[cell.label] for cell in cells}
    series: dict[str, list[tuple[str, Any]]] = {}
    runs: dict[str, list[str]] = {}
    for system in leaderboard.systems:
        results_of = [(task, by_cell.get((system, task))) for task in leaderboard.tasks]
        series[system.label] = [
            (task.name, result and result.means.get(REWARD)) for task, result in results_of
        ]
        runs[system.label] = [result.run if result else "" for _, result in results_of]
    return bars("F1 by task", "task", "F1", series, unit="share", runs=runs)
