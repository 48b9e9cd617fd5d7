"""An episode → a run of one question, which Runs opens and Compare compares."""

from __future__ import annotations

from rallebench.core.errors import UsageError
from rallebench.core.files import sha256_file
from rallebench.core.types import digest
from rallebench.engine.score import choose_metrics
from rallebench.engine.store import RunFolder
from rallebench.services.benchmark import Plan, finish, fresh_name, run_spec
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
    plan = _plan(workbench, watched)
    made = run_spec(plan, watched.agent.with_tools(workbench.backends))
    made["spec"]["settings"] |= {
        "question": watched.episode.qid,
        "edited": was_edited(watched.steps),
    }
    made["fingerprint"] = digest(made["spec"])[:12]
    folder = RunFolder.create(
        workbench.workspace.runs, plan.name, made, (dict(e.record) for e in plan.examples)
    )
    with folder.log() as log:
        folder.append(log, watched.episode, f"{watched.began:.3f}", watched.seconds)
    report = finish(folder, plan.metrics)
    ended = {
        "done": report["n_done"],
        "total": report["n"],
        "errors": report["n_errors"],
        "seconds": report["seconds"],
    }
    folder.set_state(
        "done",
        **ended,
        message="One episode of the Agent tab"
        + (", an action edited." if was_edited(watched.steps) else "."),
    )
    return folder


def _plan(workbench: Workbench, watched: Watched) -> Plan:
    wanted, agent = watched.wanted, watched.agent
    assert agent is not None
    dataset, file, sha = TYPED, "", digest(wanted.example.question.text)
    if wanted.dataset != TYPED:
        dataset, path = workbench.workspace.dataset(wanted.dataset)
        file, sha = str(path) if dataset != wanted.dataset else "", sha256_file(path)
    chain = agent.named_backends()
    name = fresh_name(workbench.workspace, f"{chain.name}-{agent.llm}", wanted.example.question.qid)
    metrics = choose_metrics(None, (wanted.example,), dataset)
    return Plan(
        chain,
        dataset,
        (wanted.example,),
        sha,
        file,
        metrics,
        name,
        seed=agent.seed or 0,
        agent=agent,
    )
