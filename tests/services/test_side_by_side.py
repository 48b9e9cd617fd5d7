"""Small models and indexes of one chain are loaded in parallel; each counts with its own memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rallebench.checkpoints.memory import MemoryNeed
from rallebench.core.entries import LLMEntry
from rallebench.core.errors import BackendError, NotFoundError, StoppedError
from rallebench.core.memory import Memory
from rallebench.core.registry import Entry
from rallebench.llms import LLMS
from rallebench.llms.load_progress import report_stage
from rallebench.llms.scripted import Scripted
from rallebench.services.jobs import JobManager
from rallebench.services.models import PREPARATION, ModelManager
from rallebench.services.side_by_side import divide
from rallebench.workspace.paths import WorkspaceFolder

WAIT_SECONDS = 20.0
DECLARED = 7_000_000


class World:
    """The active loads: each waits until ``wanted`` of them have begun."""

    def __init__(self) -> None:
        self.wanted = 1
        self.running = self.most = 0
        self.imported: list[str] = []
        self.change = threading.Condition()

    def open(self, name: str, /, **settings: Any) -> Scripted:
        with self.change:
            self.running += 1
            self.most = max(self.most, self.running)
            self.change.notify_all()
        try:
            report_stage(f"loading {name}: reading")
            with self.change:
                enough = self.change.wait_for(lambda: self.most >= self.wanted, WAIT_SECONDS)
            assert enough, f"{name} was loaded alone"
            if "fails" in settings:
                raise BackendError("broken weights")
            report_stage(f"loading {name}: read")
            return Scripted((), name, default="x")
        finally:
            with self.change:
                self.running -= 1

    def open_slowly(self, name: str, cache: Path, /, **settings: Any) -> Iterator[Any]:
        yield "weights"
        yield self.open(name)

    def load_libraries(self, **settings: Any) -> None:
        self.imported.append("libraries")


def need(name: str, context: int | None, batch: int | None, /, **settings: Any) -> MemoryNeed:
    return MemoryNeed(DECLARED, 0, 0, 1, "none", "cpu", context or 1, batch or 1)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    small = {"need": need, "libraries": world.load_libraries}
    monkeypatch.setitem(LLMS._entries, "small", Entry("small", world.open, "", small))
    heavy = {"loading": world.open_slowly}
    monkeypatch.setitem(LLMS._entries, "heavy", Entry("heavy", Scripted, "", heavy))
    return world


@pytest.fixture
def models(tmp_path: Path, world: World) -> Iterator[ModelManager]:
    workspace = WorkspaceFolder(tmp_path)
    for name, backend in (("one", "small"), ("two", "small"), ("big", "heavy"), ("huge", "heavy")):
        workspace.save_llm(name, LLMEntry(backend=backend))
    workspace.save_llm("broken", LLMEntry(backend="small", settings={"fails": True}))
    models = ModelManager(workspace, JobManager())
    yield models
    models.close()


def load(models: ModelManager, *llms: str, retrievers: tuple[str, ...] = ()) -> list[str]:
    """Messages during the load of a chain with these models."""
    with models.lease("a chain") as lease:
        return [news.message for news in lease.load_for(llms, retrievers)]


def test_two_small_models_of_a_chain_are_opened_at_the_same_time(
    models: ModelManager, world: World
) -> None:
    world.wanted = 2
    told = load(models, "one", "two")
    assert {line.name for line in models.status()} == {"one", "two"}
    assert any("one: read" in message and "two: read" in message for message in told)
    assert {line.name: line.ram for line in models.status()} == {"one": DECLARED, "two": DECLARED}


def test_a_model_and_an_index_are_opened_at_the_same_time(
    models: ModelManager, world: World
) -> None:
    load(models, "one", retrievers=("starter-bm25",))
    assert models.is_loaded_as("starter-bm25", "retriever") and models.is_loaded("one")
    rows = {line.name: line for line in models.status()}
    assert rows["starter-bm25"].ram >= 0


def test_a_model_that_may_take_gigabytes_is_opened_alone(
    models: ModelManager, world: World
) -> None:
    load(models, "big", "one", "huge")
    assert world.most == 1 and len(models.status()) == 3


def test_loads_of_two_requests_do_not_run_side_by_side(models: ModelManager, world: World) -> None:
    for name in ("one", "two"):
        models.begin(name, "language model")
    for name in ("one", "two"):
        list(models.load(name, "language model"))
    assert world.most == 1


def test_where_one_fails_the_other_is_loaded_and_measured(
    models: ModelManager, world: World
) -> None:
    world.wanted = 2
    with pytest.raises(BackendError, match="broken weights"):
        load(models, "broken", "one")
    list(models.load("one", "language model"))
    assert [line.name for line in models.status()] == ["one"]
    assert models.loading() == {} and models.leases.holders("one", {}) == []


def test_a_cancelled_load_ends_alone_while_it_waits_for_the_other(
    models: ModelManager, world: World
) -> None:
    world.wanted = 3  # neither ends by itself
    models.begin_together([("one", "language model"), ("two", "language model")])
    with world.change:
        assert world.change.wait_for(lambda: world.running == 2, WAIT_SECONDS)
    models.cancel("one")
    with world.change:
        world.most = 3
        world.change.notify_all()
    list(models.load("two", "language model"))
    for job in models._jobs.list("load"):
        assert job.wait(WAIT_SECONDS)
    assert [line.name for line in models.status()] == ["two"]
    assert isinstance(models.load_outcomes()["one"], StoppedError)


def test_an_unknown_index_ends_the_load_of_the_chain_and_nothing_stays_held(
    models: ModelManager, world: World
) -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        load(models, "one", retrievers=("nowhere",))
    assert models.leases.holders("one", {}) == models.leases.holders("nowhere", {}) == []


def test_libraries_are_imported_in_a_job_before_they_are_needed(
    models: ModelManager, world: World
) -> None:
    job = models.prepare("starter", [("one", "language model"), ("big", "language model")])
    assert job.wait(WAIT_SECONDS) and job.kind == PREPARATION and job.status == "finished"
    assert world.imported == ["libraries"] and models.status() == []


def test_the_rest_of_the_memory_goes_to_what_declares_no_need() -> None:
    class Loading:
        def check(self) -> None:
            """Never cancelled."""

        def publish(self, message: str) -> None:
            """Without followers."""

    model, small, large = Loading(), Loading(), Loading()
    parts = {model: (Memory(100), 0), small: (None, 1), large: (None, 3)}
    shares = divide(Memory(500), parts)
    assert shares == {model: Memory(100), small: Memory(100), large: Memory(300)}
    assert divide(Memory(50), {model: (Memory(100), 0), small: (None, 0)})[small] == Memory()
