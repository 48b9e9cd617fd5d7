"""Work that waits for a silent server ends soon after it is stopped; its questions stay unanswered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import Loopback, answer, fail, hang
from performing import prepared
from small_workspace import RECORDS, chain, generate, make_workspace

from rallebench.chains.saved import chain_from_json
from rallebench.core.entries import LLMEntry
from rallebench.core.runs import PreparedRun
from rallebench.core.types import Chain
from rallebench.engine import loop
from rallebench.services.episodes import EpisodeRequest, chosen_example
from rallebench.services.jobs import Job
from rallebench.services.workbench import Workbench

ASKS: Chain = chain_from_json(chain("asks", generate("{question}", "far")))
SOON = 6.0
"""Seconds within which the work must end; the server would hold it for a minute."""


@pytest.fixture(params=["silent", "refusing"])
def server(request: pytest.FixtureRequest) -> Iterator[Loopback]:
    """A server that says nothing, or asks for a wait of a minute before the next attempt."""
    refusal = fail(429, headers={"retry_after": "60"})
    with Loopback(hang(60) if request.param == "silent" else refusal) as loopback:
        yield loopback


@pytest.fixture
def bench(tmp_path: Path, server: Loopback, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workbench]:
    monkeypatch.setattr(loop, "SERVER_PATIENCE", 0.1)
    workbench = Workbench(make_workspace(tmp_path))
    save(workbench, server)
    yield workbench
    workbench.close()


def save(workbench: Workbench, server: Loopback) -> None:
    settings = {"base_url": server.url, "model": "m", "concurrency": 2}
    workbench.workspace.save_llm("far", LLMEntry(backend="openai_compatible", settings=settings))


def plan(workbench: Workbench, **more: Any) -> PreparedRun:
    settings: dict[str, Any] = {"name": "x", "track": False, "metrics": ("em",), **more}
    return prepared(workbench.workspace, ASKS, "tiny-qa", **settings)


def stopped(job: Job) -> bool:
    return job.wait(SOON) and job.status == "stopped"


def test_a_run_is_stopped_unfailed_and_continued(bench: Workbench, server: Loopback) -> None:
    job = bench.runs.start(plan(bench))
    assert server.until(lambda: len(server.bodies) >= 2, SOON)
    bench.runs.stop("x")
    assert stopped(job) and bench.runs.open("x").heads() == {}
    server.behaviours = (answer("Titan"),)
    bench.models.unload("far")  # the model remembers the requested wait
    again = bench.runs.start(plan(bench, resume=True))
    assert again.wait(30) and len(bench.runs.open("x").heads()) == len(RECORDS)


def test_a_run_that_is_part_of_work_is_stopped(bench: Workbench, server: Loopback) -> None:
    job = bench.jobs.submit("sweep", "ks", None, lambda job: bench.runs.run(plan(bench)))
    assert server.until(lambda: len(server.bodies) >= 2, SOON)
    bench.jobs.stop("sweep ks")
    assert stopped(job)
    assert bench.runs.open("x").state().state == "stopped" and not bench.runs.open("x").heads()


def test_an_episode_of_an_agent_is_stopped(bench: Workbench, server: Loopback) -> None:
    question = chosen_example(bench.workspace, "tiny-qa", "q1")
    settings = {"env.retriever": "tiny"}
    state = bench.asking.start_episode(
        EpisodeRequest("react", "wikipedia", "far", settings, *question)
    )
    job = bench.jobs.get("episode", state.name)
    assert job is not None and server.until(lambda: bool(server.bodies), SOON)
    bench.asking.stop_episode(state.name)
    assert job.wait(SOON)
    ended = bench.asking.episode(state.name)
    assert ended is not None and (ended.state, ended.error) == ("stopped", "")
