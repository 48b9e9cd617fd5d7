"""An episode → a run of one question, which Runs opens and Compare compares."""

from __future__ import annotations

from dataclasses import replace

from rallebench.core.errors import UsageError
from rallebench.core.runs import DatasetRef, RunRequest
from rallebench.core.types import digest
from rallebench.engine.run_file import write_run
from rallebench.engine.score import choose_metrics
from rallebench.engine.store import RunFolder
from rallebench.experiments.benchmark import fresh_name
from rallebench.services.live.transcript import was_edited
from rallebench.services.live.watching import TYPED, Watched
from rallebench.services.workbench import Workbench


def keep(workbench: Workbench, watched: Watched | None) -> RunFolder:
    """Write an episode that has ended as a scored run of its own. Raises UsageError for one that cannot be compared.

    The run says of which question it is and whether an action was edited: it is never resumed as a benchmark.
    """
    if watched is not None and watched.run:
        raise UsageError(
            f"This episode is part of the run {watched.run!r} already; choose that run in Compare."
        )
    if watched is None or watched.agent is None:
        raise UsageError("There is no episode to keep; run one first.")
    if watched.going:
        raise UsageError("The episode goes on; wait for its end, then send it to Compare.")
    if watched.episode is None:
        raise UsageError(
            "The episode was stopped before it ended, so it has no outcome to compare; continue it, or run it again."
        )
    edited = was_edited(watched.steps)
    request = _request(workbench, watched, edited)
    return write_run(
        workbench.workspace.runs,
        request,
        [watched.episode],
        workbench.models.backends,
        session=f"{watched.began:.3f}",
        seconds=watched.seconds,
        message="One episode of the Agent tab" + (", an action edited." if edited else "."),
    )


def _request(workbench: Workbench, watched: Watched, edited: bool) -> RunRequest:
    wanted, agent = watched.wanted, watched.agent
    assert agent is not None and watched.episode is not None
    dataset = DatasetRef(TYPED, sha256=digest(wanted.example.question.text))
    if wanted.dataset != TYPED:
        dataset = workbench.workspace.dataset_ref(wanted.dataset)
    settings = {"question": watched.episode.qid, "edited": edited}
    flow = replace(agent.flow, settings={**agent.flow.settings, **settings})
    workspace, qid = workbench.workspace, wanted.example.question.qid
    return RunRequest(
        flow,
        dataset,
        (wanted.example,),
        choose_metrics(None, (wanted.example,), dataset.name),
        seed=agent.seed or 0,
        name=fresh_name(workspace, f"{flow.name}-{agent.llm}", qid),
    )
