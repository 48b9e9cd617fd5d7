"""What a suite's run folder holds: what was asked for, and once it has ended what the answers are worth."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rallebench import __version__
from rallebench.chains.ralle import experiment_to_json
from rallebench.core.files import write_text
from rallebench.core.types import Episode, RunSpec
from rallebench.engine.cost import prices_of
from rallebench.engine.perform import Backends
from rallebench.engine.ralle_files import write_ralle_files
from rallebench.engine.score import score_run
from rallebench.engine.store import SCORES, RunFolder
from rallebench.experiments.suites import Answered, Asked, Part, Values
from rallebench.experiments.suites._means import bounds_of, means_of
from rallebench.experiments.suites._rehearsing import fixed
from rallebench.services.benchmark import PACKAGES
from rallebench.services.workbench import Workbench
from rallebench.workspace.coverage import coverage
from rallebench.workspace.entries import chain_from_json
from rallebench.workspace.indexes.manifests import versions
from rallebench.workspace.paths import Workspace

COSTS = ("seconds", "prompt_tokens", "completion_tokens")
"""Beside the suite's own metrics, every run is scored by these."""


def complete(folder: RunFolder, part: Part) -> bool:
    """Whether every question of a part is answered already."""
    lines = folder.lines()
    qids = (example.question.qid for example in part.examples)
    return folder.state()["state"] == "done" and all(
        q in lines and not lines[q].get("error") for q in qids
    )


def missing_gold(workspace: Workspace, part: Part) -> tuple[str, ...]:
    """One sentence per retriever of a part that lacks gold pages of its questions."""
    found = coverage(workspace, part.retrievers, part.examples).values()
    return tuple(f"{part.dataset}: {sentence}" for sentence in found if sentence)


def spec_of(
    part: Part, asked: Asked, backends: Backends, workbench: Workbench, batch_size: int
) -> dict[str, Any]:
    """``run.json``'s content. Its fingerprint changes whenever an episode may."""
    llms = {name: backends.llms[name] for name in part.llms}
    fingerprints = {f"llm {name}": llm.fingerprint for name, llm in llms.items()}
    fingerprints |= {
        f"retriever {name}": backends.retrievers[name].fingerprint for name in part.retrievers
    }
    settings = {**fixed(part), "backends": fingerprints}
    spec = RunSpec(part.dataset, part.workflow, settings, COSTS, asked.limit, asked.seed)
    return {
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "fingerprint": spec.fingerprint(),
        "dataset_file": part.dataset_file,
        "spec": {
            "dataset": spec.dataset,
            "workflow": spec.workflow,
            "settings": settings,
            "limit": spec.limit,
            "seed": spec.seed,
        },
        "metrics": list(_scored_by(part)),
        "batch_size": batch_size,
        "prices": prices_of(llms),
        "asks_models": [],
        "memory": workbench.footprint([*part.llms, *part.retrievers]),
        "versions": {
            "rallebench": __version__,
            "python": platform.python_version(),
            **versions(*PACKAGES),
        },
        "platform": platform.platform(),
    }


def _scored_by(part: Part) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*part.scored_by, *COSTS)))


def scored(
    folder: RunFolder,
    part: Part,
    episodes: Mapping[str, Episode],
    workbench: Workbench,
    track: bool,
) -> Answered:
    """Score what was answered; the suite's own means stand in the report under ``suite``, what they
    mean under ``definitions``."""
    report = score_run(folder, _scored_by(part))
    good = {
        e.question.qid: episodes[e.question.qid]
        for e in part.examples
        if not episodes[e.question.qid].error
    }
    rows = {
        e.question.qid: part.score(e, good[e.question.qid])
        for e in part.examples
        if e.question.qid in good
    }
    values: dict[str, Values] = {
        metric: {q: row.get(metric) for q, row in rows.items()} for metric in part.metrics
    }
    found = means_of(part, values)
    own = {metric: column for metric, column in values.items() if metric not in part.scored_by}
    write_text(
        folder.path / SCORES, (folder.path / SCORES).read_text(encoding="utf-8") + _score_lines(own)
    )
    own_report = {
        "suite": {name: asdict(mean) for name, mean in found.items()},
        "definitions": dict(part.metrics),
        "ranges": bounds_of(part.metrics),
    }
    folder.write_report({**report, **own_report})
    chain = chain_from_json(part.settings["chain"]) if "chain" in part.settings else None
    config = (
        experiment_to_json(chain, part.dataset, folder.spec()["spec"]["limit"]) if chain else None
    )
    write_ralle_files(folder.path, folder.records(), episodes, report, chain, config)
    warning = workbench.track_run(folder) if track else ""
    said = " ".join(filter(None, (*missing_gold(workbench.workspace, part), warning)))
    named = {*part.llms, *part.retrievers}
    memory = {line.name: line.ram + line.vram for line in workbench.status() if line.name in named}
    folder.set_state(
        "done",
        done=report["n_done"],
        total=report["n"],
        errors=report["n_errors"],
        seconds=report["seconds"],
        message=said,
    )
    return Answered(
        part,
        folder.name,
        good,
        values,
        found,
        report["n"],
        report["n_errors"],
        report["seconds"],
        warning,
        memory,
    )


def _score_lines(values: Mapping[str, Values]) -> str:
    rows = (
        {"qid": qid, "metric": m, "value": value}
        for m, column in values.items()
        for qid, value in column.items()
    )
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
