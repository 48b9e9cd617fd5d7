"""R-Eval's systems (Tu et al. 2024, arXiv:2406.11681): workflow × language model × task, one table of scores and ranks.

Every cell is a run of an agent as any other, so an interrupted grid goes on where it stood, and ``analyse`` takes its runs.
``compat=original`` acts, parses and counts as R-Eval's code does: the first of several answers alone is accepted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from rallebench.analysis import agents as acting
from rallebench.analysis.agents.leaderboard import Leaderboard, board
from rallebench.analysis.agents.report import tables_of, tex_of
from rallebench.core.errors import BackendError, MismatchError, RalleError, StoppedError
from rallebench.core.experiments import ExperimentRequest, Figure, Release, Report, Table
from rallebench.core.files import sha256_file
from rallebench.core.runs import Backends, RunRequest, RunResult
from rallebench.core.settings import Setting
from rallebench.core.types import Episode, Example
from rallebench.datasets.tasks import DOMAINS
from rallebench.engine.score import score_episode
from rallebench.experiments.papers import SUITES, Suite
from rallebench.experiments.papers.reval.grid import Place, grid
from rallebench.experiments.papers.reval.tasks import tasks_of
from rallebench.experiments.runs import scored_run
from rallebench.metrics import metric, read_card
from rallebench.render import csv, latex

REWARD = "f1_yes_no"
Grid = Generator["RunRequest | Release", Any, Report]
NAMED_BY = ("workflows", "models", "tasks")
SETTINGS = {
    "workflows": Setting(
        str, "react", about="react, pal, function-calling, dfsdt …, several with commas"
    ),
    "models": Setting(
        str, "", about="models, several with commas; default: the one named for the suite"
    ),
    "tasks": Setting(
        str,
        "",
        about="of R-Eval's twelve by name or number, or question sets; default: those that are there",
    ),
    "data": Setting(str, "", about="folder with R-Eval's files (1-1_high_freq_ent.jsonl …)"),
    "env": Setting(str, "", about="environments to act in; default: each task's own"),
    "retriever": Setting(str, "", about="the index behind the environment; default: the starter's"),
    "corpus": Setting(
        str, "", about="imported corpus whose pages are opened; default: the index's own"
    ),
    "table": Setting(str, "", about="scholar table; default: the starter's"),
    "shots": Setting(int, -1, -1, 50, about="demonstrations; -1: as many as each workflow has"),
    "steps": Setting(int, 0, 0, 1000, about="steps at most; 0: as each workflow has"),
    "protocol": Setting(
        str, "auto", choices=("auto", "native", "text"), about="how functions are called"
    ),
    "more": Setting(
        str, "", about="further settings of workflows and environments: max_tokens=64;env.similar=5"
    ),
    "instances": Setting(
        int, 0, 0, 1_000_000, about="questions drawn of each task as R-Eval draws its 100; 0: all"
    ),
    "tokenizer": Setting(
        str,
        "",
        about="folder with the tokenizer whose tokens position match compares (the paper: GPT-2's)",
    ),
    "compat": Setting(str, "corrected", choices=("corrected", "original")),
}


@SUITES.register("reval", needs_llm=False, form=SETTINGS, named_by=NAMED_BY)
def reval(asked: ExperimentRequest) -> Grid:
    """R-Eval: workflows × models × tasks, as far as they fit each other, with scores, means and ranks."""
    return (yield from _answered(asked, ""))


def _domain(domain: str) -> Suite:
    def suite(asked: ExperimentRequest) -> Grid:
        return (yield from _answered(asked, domain))

    return suite


for _word, _environment in DOMAINS.items():
    SUITES.register(
        f"reval-{_environment}",
        about=f"R-Eval's systems on the tasks of its environment {_word} alone.",
        needs_llm=False,
        form=SETTINGS,
        named_by=NAMED_BY,
    )(_domain(_word))


def _answered(asked: ExperimentRequest, domain: str) -> Grid:
    s = asked.settings
    original = s["compat"] == "original"
    tasks = tasks_of(
        asked.workspace,
        s["tasks"],
        s["data"],
        domain=domain,
        limit=asked.limit,
        instances=s["instances"],
        first_only=original,
    )
    position = f"position_match:{s['tokenizer']}" if s["tokenizer"] else "position_match"
    names = (REWARD, "em", metric(position).name)
    places = grid(asked, tasks)
    parts = {place.label: _part(asked, place, names) for place in places if place.agent}
    done: dict[str, RunResult] = {}
    failed: dict[str, str] = {}
    for i, place in enumerate(places):
        if place.agent:
            try:
                done[place.label] = yield parts[place.label]
            except (StoppedError, MismatchError):
                raise
            except RalleError as error:
                failed[place.label] = str(error)
        if all(other.system.llm != place.system.llm for other in places[i + 1 :]):
            yield Release((place.system.llm,))
    if not done:
        label, why = next(iter(failed.items()))
        raise BackendError(f"No system could be run. {label}: {why}")
    return _made(asked, places, done, failed)


def _part(asked: ExperimentRequest, place: Place, names: Sequence[str]) -> RunRequest:
    agent, asking = place.agent, place.asking
    assert agent is not None
    s = asked.settings
    whole = not s["instances"] and s["compat"] != "original"  # the file says which questions
    return scored_run(
        place.label,
        agent.workflow,
        asking.dataset,
        asking.examples,
        agent.flows(Backends()),
        {"agent": agent.as_json()},
        _score(names),
        {name: f"{metric(name).traits['label']}: {read_card(name).definition}" for name in names},
        (agent.llm,),
        agent.retrievers,
        agent=agent,
        metrics=(*names, "f1"),
        file=str(asking.file),
        sha256=sha256_file(asking.file) if whole else "",
    )


def _score(names: Sequence[str]) -> Any:
    def score(example: Example, episode: Episode) -> dict[str, float | None]:
        return {score.metric: score.value for score in score_episode(episode, example, names)}

    return score


# what it ends with


def _made(
    asked: ExperimentRequest,
    places: Sequence[Place],
    done: Mapping[str, RunResult],
    failed: Mapping[str, str],
) -> Report:
    tasks = list(dict.fromkeys(place.asking.task for place in places))
    tasks.sort(key=lambda task: (task.domain != "wiki", task.domain, task.order, task.name))
    systems = [
        s
        for s in dict.fromkeys(place.system for place in places)
        if any(p.system == s and p.label in done for p in places)
    ]
    scores = {
        (p.system, p.asking.task): done[p.label].mean(REWARD) for p in places if p.label in done
    }
    cells = [acting.TaskRun("", system, task, ()) for system, task in scores]
    found = board(systems, tasks, scores, acting.groups_of(cells))
    tables = tables_of(found)
    report = {
        "headline": REWARD,
        "compat": asked.settings["compat"],
        "cells": [_cell(place, done, failed) for place in places],
        "means": {system.label: dict(found.means[system]) for system in systems},
        "ranks": {system.label: dict(found.ranks[system]) for system in systems},
    }
    files = {
        "scores.csv": csv.table(tables[0]),
        "ranks.csv": csv.table(tables[1]),
        "table.tex": latex.table(tex_of(found)),
    }
    return Report(
        report,
        tuple(_notes(places, done, failed)),
        files,
        tables=(*tables, _endings(systems, places, done)),
        figures=(_plot(found),),
        failed=failed,
    )


def _endings(
    systems: Sequence[acting.System], places: Sequence[Place], done: Mapping[str, RunResult]
) -> Table:
    """Why the episodes of each system ended: a score of 0 tells nothing of a limit that was always reached."""
    counts: dict[acting.System, Counter[str]] = {system: Counter() for system in systems}
    for place in places:
        if place.label in done:
            counts[place.system].update(
                one.outcome.stop_reason
                for one in done[place.label].episodes.values()
                if one.outcome
            )
    reasons = sorted(
        {reason for counted in counts.values() for reason in counted},
        key=lambda r: (r != "answered", r),
    )
    rows = tuple(
        (system.label, *(counts[system][reason] for reason in reasons)) for system in systems
    )
    return Table(
        "How the episodes ended",
        ("system", *(reason.replace("_", " ") for reason in reasons)),
        rows,
        note="Numbers of questions, over all tasks.",
    )


def _cell(place: Place, done: Mapping[str, RunResult], failed: Mapping[str, str]) -> dict[str, Any]:
    answered = done.get(place.label)
    state = "done" if answered else "failed" if place.agent else "not feasible"
    return {
        "workflow": place.system.workflow,
        "llm": place.system.llm,
        "task": place.asking.task.name,
        "environment": place.env,
        "state": state,
        "why": place.why or failed.get(place.label, ""),
        "run": answered.run if answered else None,
        "n": answered.n if answered else 0,
        "n_errors": answered.n_errors if answered else 0,
        "memory": sum(answered.memory.values()) if answered else None,
    }


def _notes(
    places: Sequence[Place], done: Mapping[str, RunResult], failed: Mapping[str, str]
) -> list[str]:
    said = []
    for system in dict.fromkeys(place.system for place in places):
        whys: dict[str, list[str]] = {}
        for place in places:
            if place.system == system and place.why:
                whys.setdefault(place.why, []).append(place.asking.task.name)
        said += [
            f"{system.label} is not feasible on {', '.join(tasks)}: {why}."
            for why, tasks in whys.items()
        ]
    said += [f"{label} failed: {why}" for label, why in failed.items()]
    said += [
        f"{label}: {one.n_errors} of {one.n} questions failed and are in no figure."
        for label, one in done.items()
        if one.n_errors
    ]
    stand_ins = [
        p.asking.dataset
        for p in places
        if p.asking.task.name != p.asking.dataset and p.asking.dataset.startswith("starter-")
    ]
    if stand_ins:
        said.append(
            f"Stand-ins of the starter, with fictional scholars, in place of R-Eval's own questions: {', '.join(dict.fromkeys(stand_ins))}."
        )
    asked = {place.asking.task.name: len(place.asking.examples) for place in places}
    if len(set(asked.values())) > 1:
        said.append(
            f"The tasks have different numbers of questions ({', '.join(f'{n}: {c}' for n, c in asked.items())}); each counts the same in a mean."
        )
    return said


def _plot(found: Leaderboard) -> Figure:
    series = {
        system.label: tuple(
            (task.name, found.scores[system][task])
            for task in found.tasks
            if found.scores[system][task] is not None
        )
        for system in found.systems
    }
    return Figure("F1 by task", "task", "F1", series, "bar")
