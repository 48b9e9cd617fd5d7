"""A model in use cannot be unloaded: every user of it holds a lease, and the refusal names the holder."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from performing import plan, prepared, probe, run_suite, sweep
from small_suites import small_suites  # noqa: F401 - a fixture
from small_workspace import READ, chain, generate, make_workspace, retrieve

from rallebench.chains.saved import chain_from_json
from rallebench.cli import serve as serving
from rallebench.cli.main import main
from rallebench.core.entries import Combination, LLMEntry
from rallebench.core.errors import NotFoundError, RalleError, UsageError
from rallebench.core.events import complete
from rallebench.core.experiments import ExperimentRequest, Report, RowId, RowsRequest
from rallebench.core.registry import Entry
from rallebench.core.runs import RunOptions
from rallebench.core.types import Chain, Generate, Message, Outcome, Question, Reply
from rallebench.experiments import BUILDERS, EXPERIMENTS, SUITES
from rallebench.llms import LLMS
from rallebench.llms.scripted import Scripted
from rallebench.services.asking import Asking
from rallebench.services.builders import builder_request
from rallebench.services.jobs import Job
from rallebench.services.standalone import LoadedChain
from rallebench.services.workbench import Workbench

SECONDS = 30
CHAIN: Chain = chain_from_json(chain("closed", generate("{question}", "gated")))
READS: Chain = chain_from_json(chain("reads", retrieve(), generate(READ, "gated")))
QUESTION = Question("q", "Which moon of Saturn has a thick atmosphere?")


class Gated(Scripted):
    """A scripted model that answers once the gate is open; ``late``: its answers after it was closed."""

    begin_work, gate = threading.Event(), threading.Event()
    late = 0
    closed = False

    def __init__(self, name: str, **settings: Any) -> None:
        super().__init__((), name, default="Thought: it is known. Finish[Titan]")

    def _wait(self) -> None:
        Gated.begun.set()
        assert Gated.gate.wait(SECONDS)
        Gated.late += self.closed

    def generate(self, batch: Sequence[Generate]) -> list[Reply | RalleError]:
        self._wait()
        return super().generate(batch)

    def stream(self, request: Generate) -> Iterator[str | Reply]:
        self._wait()
        yield from super().stream(request)

    def close(self) -> None:
        self.closed = True


def open_gated(name: str, **settings: Any) -> Gated:
    """A model that waits for the test."""
    return Gated(name, **settings)


def small_maker(request: ExperimentRequest) -> Any:
    """One stage that asks a model about one input."""

    def flow(name: RowId) -> Any:
        reply = yield Generate(request.llm, (Message("user", name.id),))
        return Outcome(reply.text)

    yield RowsRequest(
        "asked",
        "replies",
        lambda: [RowId("a")],
        flow=flow,
        read=lambda row, episode: [{"id": "a"}],
        llms=(request.llm,),
    )
    return Report()


@pytest.fixture
def bench(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    small_suites: None,  # noqa: F811
) -> Iterator[Workbench]:
    assert "gated" not in LLMS and "small" not in BUILDERS, "asking loads the registries"
    monkeypatch.setitem(LLMS._entries, "gated", Entry("gated", open_gated))
    monkeypatch.setitem(
        EXPERIMENTS._entries,
        "build-small",
        Entry("build-small", small_maker, traits={"place": "builders"}),
    )
    Gated.begun, Gated.gate, Gated.late = threading.Event(), threading.Event(), 0
    bench = Workbench(make_workspace(tmp_path / "workspace"))
    bench.workspace.save_llm("gated", LLMEntry(backend="gated"))
    yield bench
    Gated.gate.set()
    bench.close()


# ── users of a model ─────────────────────────────────────────────────────────


def run(bench: Workbench) -> None:
    list(
        bench.runs.run(
            prepared(bench.workspace, CHAIN, "tiny-qa", limit=2, name="night", track=False)
        )
    )


def one_sweep(bench: Workbench) -> Iterator[Any]:
    return sweep(bench, "ks", CHAIN, ["max_tokens=5,6"], "tiny-qa", limit=2, track=False)


def asked_of_a_suite(bench: Workbench) -> ExperimentRequest:
    return ExperimentRequest(
        bench.workspace, "gated", SUITES.settings("small-alone", {"times": "1"}), 2
    )


def suite(bench: Workbench) -> None:
    list(run_suite(bench, "small-alone", asked_of_a_suite(bench), "answers", track=False))


def a_probe(bench: Workbench) -> None:
    asked = asked_of_a_suite(bench)
    list(probe(bench, plan("small-alone", asked, "answers"), asked))


def builder(bench: Workbench) -> None:
    request = builder_request(bench.workspace, "small", "mine", {}, llm="gated")
    complete(bench.experiments.run(request, RunOptions(track=False)))


def episode(bench: Workbench) -> None:
    agent = bench.asking.agent("react", "wikipedia", "gated", {"shots": 0, "env.retriever": "tiny"})
    list(bench.asking.run_agent(agent, QUESTION, stream=True))


def try_model(bench: Workbench) -> None:
    list(bench.models.load("gated", "language model"))
    bench.asking.ask_model("gated", "Are you there?")


USES: dict[str, tuple[Callable[[Workbench], Any], str]] = {
    "run": (run, "the run 'night'"),
    "sweep": (lambda bench: list(one_sweep(bench)), "the sweep 'ks'"),
    "suite": (suite, "the suite 'answers'"),
    "probe": (a_probe, "the probe of the suite 'answers'"),
    "builder": (builder, "the dataset builder 'mine'"),
    "episode": (episode, "an episode of the agent 'react'"),
    "chat": (
        lambda bench: list(bench.asking.chat(CHAIN, [], "Hello")),
        "a chat turn of the chain 'closed', which is being answered",
    ),
    "execute one action": (
        lambda bench: bench.asking.execute_action(CHAIN, 0, QUESTION, []),
        "action 1 of the chain 'closed', which is being executed",
    ),
    "execute all": (
        lambda bench: list(bench.asking.execute_chain(CHAIN, QUESTION)),
        "the chain 'closed', which is being executed",
    ),
    "try a model": (try_model, "a prompt that tries it"),
}


def begin_work(
    work: Callable[[Workbench], Any], bench: Workbench
) -> tuple[threading.Thread, list[BaseException]]:
    """A thread with work that waits for the gate, and its errors."""
    errors: list[BaseException] = []

    def do() -> None:
        try:
            work(bench)
        except BaseException as error:
            errors.append(error)
            Gated.begun.set()

    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    assert Gated.begun.wait(SECONDS)
    assert not errors, errors
    return thread, errors


@pytest.mark.parametrize("use", USES)
def test_what_uses_a_model_keeps_it_loaded_until_its_end_named(bench: Workbench, use: str) -> None:
    work, holder = USES[use]
    thread, errors = begin_work(work, bench)
    with pytest.raises(UsageError) as refused:
        bench.models.unload("gated")
    assert str(refused.value) == f"'gated' is in use by {holder}; stop that, or wait for its end."
    assert bench.models.is_loaded("gated")
    Gated.gate.set()
    thread.join(SECONDS)
    assert not thread.is_alive() and not errors, errors
    assert bench.models.unload("gated").startswith("Unloaded gated")


def test_a_run_in_the_background_holds_its_models_when_it_is_started(bench: Workbench) -> None:
    list(bench.models.load("gated", "language model"))
    job = bench.runs.start(prepared(bench.workspace, CHAIN, "tiny-qa", name="night", track=False))
    with pytest.raises(UsageError, match="in use by the run 'night'"):
        bench.models.unload("gated")
    Gated.gate.set()
    assert job.wait(SECONDS)
    assert job.done and bench.models.unload("gated")


def test_a_run_that_joins_another_or_is_refused_holds_nothing_after_it(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(bench.models.load("gated", "language model"))
    plan = prepared(bench.workspace, CHAIN, "tiny-qa", name="night", track=False)
    job = bench.runs.start(plan)
    # Both calls have seen that no run of that name is active.
    monkeypatch.setattr(bench.jobs, "get", lambda kind, name: None)
    assert bench.runs.start(plan) is job
    with pytest.raises(UsageError, match="Another run is making 'night' now"):
        bench.runs.start(replace(plan, warnings=("different",)))
    Gated.gate.set()
    assert job.wait(SECONDS) and bench.models.unload("gated")


def test_a_closed_workbench_begins_no_load(bench: Workbench) -> None:
    bench.close()
    with pytest.raises(UsageError, match="The workbench is closed"):
        list(bench.models.load("gated", "language model"))
    assert bench.models.loading() == {}
    bench.close()


def test_serve_holds_its_models(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = []

    def listens(asking: Asking, *_: Any) -> None:
        with pytest.raises(UsageError) as refused:
            asking._models.unload("titan")
        refusals.append(str(refused.value))

    monkeypatch.setattr(serving, "serve", listens)
    folder = str(bench.workspace.path)
    assert main(["serve", "--chain", "read", "--port", "0", "--workspace", folder]) == 0
    assert refusals == [
        "'titan' is in use by the server of read (rallebench serve); stop that, or wait for its end."
    ]


def test_a_program_with_a_chain_holds_its_models_until_it_is_closed(bench: Workbench) -> None:
    held = pytest.raises(UsageError, match="in use by a program with the chain 'closed'")
    with LoadedChain(CHAIN, bench.workspace.path) as ready, held:
        ready._workbench.models.unload("gated")


# ── the end of a lease ───────────────────────────────────────────────────────


def start_sweep(bench: Workbench) -> Job:
    """The job of a sweep."""
    return bench.jobs.submit("sweep", "ks", 1, lambda job: one_sweep(bench))


def test_a_stopped_sweep_holds_nothing(bench: Workbench) -> None:
    job = start_sweep(bench)
    assert Gated.begun.wait(SECONDS)
    job.stop()
    Gated.gate.set()
    assert job.wait(SECONDS) and job.status == "stopped"
    assert bench.models.unload("gated")


def test_what_fails_and_what_is_closed_midway_holds_nothing(bench: Workbench) -> None:
    Gated.gate.set()
    events = bench.asking.execute_chain(CHAIN, QUESTION, stream=True)
    next(events)
    with pytest.raises(UsageError, match="in use by the chain 'closed'"):
        bench.models.unload("gated")
    events.close()  # type: ignore[attr-defined]
    assert bench.models.unload("gated")
    with pytest.raises(NotFoundError, match="nowhere"):
        list(bench.asking.execute_chain(CHAIN.replace_action(0, target="nowhere"), QUESTION))
    assert bench.models.leases.wait(0)


def test_a_failed_load_is_held_no_longer_and_what_was_before_it_is(bench: Workbench) -> None:
    with bench.models.lease("the suite 's'") as lease:
        list(lease.load("titan", "language model"))
        with pytest.raises(RalleError):
            list(lease.load("misspelt", "language model"))
        assert [bench.models.leases.holders(name, {}) for name in ("titan", "misspelt")] == [
            ["the suite 's'"],
            [],
        ]
        lease.release(["titan"])
        assert bench.models.unload("titan")


def test_each_lease_counts_holders_are_named_and_closing_twice_is_fine(bench: Workbench) -> None:
    list(bench.models.load("titan", "language model"))
    holders = ("the run 'a'", "the sweep 'b'", "the run 'a'")
    first, second, third = (bench.models.lease(name).hold(["titan", "none"]) for name in holders)
    with pytest.raises(UsageError, match="by the run 'a' and the sweep 'b'; stop"):
        bench.models.unload("titan")
    for lease in (first, first, second):
        lease.close()
    with pytest.raises(UsageError, match="in use by the run 'a';"):
        bench.models.unload("titan")
    third.close()
    assert bench.models.unload("titan") and bench.models.leases.wait(0)


def test_leases_of_many_threads_are_all_closed_at_the_end(bench: Workbench) -> None:
    def use() -> None:
        for _ in range(50):
            with bench.models.lease("a thread") as lease:
                list(lease.load("titan", "language model"))
                assert "titan" in bench.models.backends.llms

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        try:
            bench.models.unload("titan")
        except (UsageError, NotFoundError):
            continue
    assert bench.models.leases.wait(0)


# ── parts, replacing, closing ────────────────────────────────────────────────


def test_what_a_combination_is_made_of_is_held_also_the_model_it_asks(bench: Workbench) -> None:
    ranked = Combination(kind="llm-rerank", of=["tiny"], settings={"llm": "titan"})
    bench.workspace.save_retriever("ranked", ranked)
    with bench.models.lease("the run 'night'") as lease:
        list(lease.load("ranked", "retriever"))
        for name in ("ranked", "tiny", "titan"):
            with pytest.raises(UsageError, match=f"^'{name}' is in use by the run 'night';"):
                bench.models.unload(name)
    with pytest.raises(UsageError, match="'titan' is part of 'ranked', which is loaded"):
        bench.models.unload("titan")
    for name in ("ranked", "tiny", "titan"):
        bench.models.unload(name)


def night(bench: Workbench) -> Job:
    """The job of a run."""
    plan = prepared(bench.workspace, CHAIN, "tiny-qa", name="night", track=False, batch_size=1)
    return bench.runs.start(plan)


@pytest.mark.parametrize("begin", [night, start_sweep])
def test_closing_stops_the_work_first(bench: Workbench, begin: Callable[[Workbench], Job]) -> None:
    job = begin(bench)
    assert Gated.begun.wait(SECONDS)
    closing = threading.Thread(target=bench.close)
    closing.start()
    while not job.stopping:
        closing.join(0.01)
        assert closing.is_alive(), "closed without stopping the work"
    Gated.gate.set()
    closing.join(SECONDS)
    if begin is night:
        assert job.status in ("stopped", "finished")
        assert not bench.runs.open("night").state().errors
    else:
        assert job.status == "stopped"
    assert Gated.late == 0 and bench.models.status() == []
