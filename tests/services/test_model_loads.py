"""Loads run one at a time, may be cancelled by all visitors, and return their memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from project import PROJECT
from small_workspace import interruptible

from rallebench.checkpoints.memory import MemoryNeed
from rallebench.core.entries import Combination, LLMEntry
from rallebench.core.errors import BackendMemoryError, NotFoundError, StoppedError, UsageError
from rallebench.core.registry import Entry
from rallebench.llms import LLMS
from rallebench.llms.load_progress import reporting
from rallebench.llms.scripted import Scripted
from rallebench.services.jobs import JobManager
from rallebench.services.memory_fit import candidate, memory_fit
from rallebench.services.models import ModelManager
from rallebench.workspace.paths import WorkspaceFolder

STEPS = 200


class Slow(Scripted):
    """A scripted model with a slow load in many steps; counts how many were opened and closed."""

    opened = closed = 0

    def close(self) -> None:
        type(self).closed += 1


def opening(name: str, cache: Path, /, **settings: Any) -> Iterator[Any]:
    """Yield one step after the other."""
    Slow.opened += 1
    for step in range(STEPS):
        yield f"weights {step}/{STEPS}"
        time.sleep(settings.get("pause", 0.01))
    yield Slow((), name, default="slow")


def needs(name: str, context: int | None, batch: int | None, /, **settings: Any) -> MemoryNeed:
    """The settings of the model."""
    return MemoryNeed(
        settings.get("size", 1),
        0,
        0,
        1,
        settings.get("quantization", "none"),
        "cpu",
        context or 1,
        batch or 1,
    )


@pytest.fixture
def loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelManager]:
    assert "slow" not in LLMS
    traits = {"loading": opening, "need": needs, "quantizations": ("none", "8bit", "4bit")}
    monkeypatch.setitem(LLMS._entries, "slow", Entry("slow", Slow, "", traits))
    workspace = WorkspaceFolder(tmp_path)
    for name, settings in (
        ("one", {}),
        ("two", {}),
        ("stuck", {"pause": 8.0}),
        ("huge", {"size": 10**15}),
    ):
        workspace.save_llm(name, LLMEntry(backend="slow", settings=settings))
    workspace.save_llm("quick", LLMEntry(backend="scripted", settings={"echo": True}))
    Slow.opened = Slow.closed = 0
    loads = ModelManager(workspace, JobManager())
    yield loads
    loads.close()


def wait_for(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    """Wait until a condition holds; fail if it never does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


def follow_load(loads: ModelManager, name: str, ends: list[str]) -> threading.Thread:
    """A visitor who waits for a load; its end is appended to ``ends``."""

    joined = threading.Event()

    def follow() -> None:
        try:
            told = []
            for line in loads.load(name, "language model"):
                told.append(line)
                joined.set()
            ends.append(told[-1])
        except StoppedError as error:
            ends.append(str(error))

    visitor = threading.Thread(target=follow)
    visitor.start()
    assert joined.wait(20)
    return visitor


def test_a_cancelled_load_ends_for_all_who_follow_and_leaves_nothing(loads: ModelManager) -> None:
    ends: list[str] = []
    visitors = [follow_load(loads, "one", ends) for _ in range(2)]
    wait_for(lambda: "weights" in loads.loading()["one"].message)
    assert loads.cancel("one") == "Cancelling one …"
    for visitor in visitors:
        visitor.join(10)
    assert Slow.opened == 1
    assert len(ends) == 2 and ends[0] == ends[1]
    assert ends[0].startswith(
        "Loading one was cancelled and its memory given back: this process holds "
    )
    assert loads.status() == [] and loads.loading() == {}
    assert str(loads.load_outcomes()["one"]) == ends[0]


@pytest.mark.slow
def test_a_cancelled_load_can_be_asked_for_again_at_once(loads: ModelManager) -> None:
    loads.begin("one", "language model")
    loads.cancel("one")
    again = list(loads.load("one", "language model"))
    assert again[-1].startswith("loaded one: ") and loads.is_loaded("one")


@pytest.mark.slow
def test_a_load_that_waits_is_cancelled_before_it_begins_alone(loads: ModelManager) -> None:
    for name in ("one", "two", "quick"):
        loads.begin(name, "language model")
    wait_for(lambda: not loads.loading()["one"].waiting)
    assert [loads.loading()[name].waiting for name in ("two", "quick")] == [True, True]
    loads.cancel("two")
    wait_for(lambda: not loads.loading())
    assert [loaded.name for loaded in loads.status()] == ["one", "quick"]
    assert Slow.opened == 1
    assert (
        str(loads.load_outcomes()["two"])
        == "Loading two was cancelled before its turn came; nothing was loaded."
    )


def test_a_load_that_fails_before_its_turn_blocks_no_other(
    loads: ModelManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*load: str) -> None:
        raise UsageError("A library is missing.")

    with monkeypatch.context() as patched:
        patched.setattr("rallebench.services.libraries.importer", fail)
        with pytest.raises(UsageError, match="library"):
            list(loads.load("one", "language model"))
    loads.begin("quick", "language model")
    wait_for(lambda: loads.is_loaded("quick"), seconds=5)


def test_all_loads_are_cancelled_together(loads: ModelManager) -> None:
    for name in ("one", "two"):
        loads.begin(name, "language model")
    assert loads.cancel() == "Cancelling one, two …"
    wait_for(lambda: not loads.loading())
    assert loads.status() == []
    with pytest.raises(NotFoundError, match="Nothing is being loaded"):
        loads.cancel()
    with pytest.raises(NotFoundError, match="'one' is not being loaded"):
        loads.cancel("one")


@pytest.mark.slow
def test_a_step_that_cannot_be_interrupted_keeps_nobody_waiting(
    loads: ModelManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rallebench.services.models.PAGE_CANCEL_SECONDS", 0.1)
    ends: list[str] = []
    visitor = follow_load(loads, "stuck", ends)
    wait_for(lambda: "weights" in loads.loading()["stuck"].message)
    started = time.monotonic()
    loads.cancel("stuck")
    visitor.join(5)
    assert time.monotonic() - started < 3
    assert "cannot be interrupted is still running, and what it loads is dropped" in ends[0]
    assert loads.loading()["stuck"].cancelled and loads.status() == []


def test_cancelling_a_combination_cancels_parts_nobody_else_asked_for(loads: ModelManager) -> None:
    entry = Combination(kind="llm-rerank", of=["starter-bm25"], settings={"llm": "one"})
    loads._workspace.save_retriever("reranked", entry)
    loads.begin("reranked", "retriever")
    wait_for(lambda: "one" in loads.loading() and not loads.loading()["one"].waiting)
    loads.cancel("reranked")
    wait_for(lambda: not loads.loading())
    assert not loads.is_loaded("one") and not loads.is_loaded("reranked")


def test_a_model_that_cannot_fit_is_refused_before_it_is_opened(loads: ModelManager) -> None:
    room = loads.room("huge")
    assert room is not None and not room.fits
    with pytest.raises(
        BackendMemoryError,
        match=r"huge needs about 1000000.0 GB RAM \(none\), but only .* are free",
    ):
        list(loads.load("huge", "language model"))
    assert Slow.opened == 0 and loads.room("quick") is None


def test_the_mend_names_what_would_make_room(loads: ModelManager) -> None:
    settings = {"size": 10**12, "quantization": "none"}
    model = candidate("x", LLMEntry(backend="slow", settings=settings))
    assert model is not None
    room = memory_fit(model, {})
    assert room is not None and list(room.others) == ["8bit", "4bit"]


def test_closing_ends_what_is_being_loaded(loads: ModelManager) -> None:
    loads.begin("one", "language model")
    loads.close()
    assert loads.loading() == {} and loads.status() == []


@pytest.mark.slow
def test_a_load_tells_which_tensor_it_reads_and_ends_between_two(tmp_path: Path) -> None:
    import tiny_models

    folder = tiny_models.save_llama(tmp_path / "llama")
    told: list[str] = []

    def stop_at_the_third(said: str) -> None:
        told.append(said)
        if len(told) == 3:
            raise StoppedError("enough")

    with pytest.raises(StoppedError, match="enough"), reporting(stop_at_the_third):
        LLMS["transformers"]("tiny", model=str(folder), device_map="cpu")
    assert len(told) == 3 and told[0].endswith(" 1/21")
    LLMS["transformers"]("tiny", model=str(folder), device_map="cpu").close()


ASKING = """
import sys
from rallebench.cli.main import main
raise SystemExit(main(["models", "ask", sys.argv[1], "who ?", "--workspace", sys.argv[2]]))
"""


@pytest.mark.slow
def test_ctrl_c_on_the_command_line_cancels_a_load_with_a_sentence(tmp_path: Path) -> None:
    import tiny_models

    folder = tiny_models.save_llama(tmp_path / "wide", hidden=1024, layers=30)
    reference = f"transformers:{folder}?quantization=4bit&device_map=cpu"
    asking = subprocess.Popen(
        interruptible([sys.executable, "-c", ASKING, reference, str(tmp_path)]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
    )
    assert asking.stderr is not None
    for line in asking.stderr:
        if line.startswith("Loading the weights"):
            break
    os.kill(asking.pid, signal.SIGINT)
    _, said = asking.communicate(timeout=60)
    assert asking.returncode == 130, said
    assert "was cancelled and its memory given back" in said and "Traceback" not in said


IN_A_FRESH_PROCESS = """
import json, sys, time
from pathlib import Path
from rallebench.workspace.entries import LLMEntry
from rallebench.core.errors import RalleError
from rallebench.services.jobs import JobManager
from rallebench.services.models import ModelManager
from rallebench.core.memory import Memory, release
from rallebench.workspace.paths import WorkspaceFolder

small, wide, broken, folder, form = sys.argv[1:]
workspace = WorkspaceFolder(Path(folder))
for name, model in (("small", small), ("wide", wide), ("broken", broken)):
    settings = {"model": model, "quantization": form, "device_map": "cpu"}
    workspace.save_llm(name, LLMEntry(backend="transformers", settings=settings))
loads = ModelManager(workspace, JobManager())

def left_now():
    "Bytes above the start: the least within a second, since threads that loaded end a moment later."
    def sampled():
        for _ in range(20):
            yield (Memory.now() - before).ram
            time.sleep(0.05)
    return min(sampled())

list(loads.load("small", "language model"))
before = Memory.now()
list(loads.load("wide", "language model"))
loaded = loads.status()[-1]
held = Memory.now() - before
loads.unload("wide")
left = {"unloaded": left_now()}
try:
    list(loads.load("broken", "language model"))
except RalleError as error:
    left["failed: " + str(error)[:60]] = left_now()
loads.begin("wide", "language model")
while True:
    said = loads.loading()["wide"].message
    if said.rpartition("/")[0][-2:].strip().isdigit() and int(said.rpartition("/")[0].split()[-1]) > 20:
        break
loads.cancel("wide")
while loads.loading():
    time.sleep(0.01)
left[str(loads.load_outcomes()["wide"])[:40]] = left_now()
print(json.dumps({"held": held.ram, "expected": loaded.expected, "took": loaded.ram, "left": left}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["8bit", "4bit"])
def test_memory_comes_back_after_an_unload_failure_or_cancelling(tmp_path: Path, form: str) -> None:
    import tiny_models

    wide = tiny_models.save_llama(tmp_path / "wide", hidden=1024, layers=16)
    small = tiny_models.save_llama(tmp_path / "small")
    broken = tiny_models.save_llama(tmp_path / "broken", hidden=1024, layers=16)
    config = json.loads((broken / "config.json").read_text())
    (broken / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 17}))
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            IN_A_FRESH_PROCESS,
            str(small),
            str(wide),
            str(broken),
            str(tmp_path),
            form,
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=PROJECT,
    )
    found = json.loads(said.stdout.strip().split("\n")[-1])
    assert found["took"] == pytest.approx(found["expected"], rel=0.25)
    assert found["held"] == pytest.approx(found["expected"], rel=0.25)
    assert [key.split(":")[0] for key in found["left"]] == [
        "unloaded",
        "failed",
        "Loading wide was cancelled and its memor",
    ]
    assert all(left < 0.15 * found["took"] for left in found["left"].values()), found


def test_ctrl_c_while_a_line_is_printed_reaches_the_work_that_said_it() -> None:
    from rallebench.core.interrupts import interruptible

    def work() -> Iterator[str]:
        try:
            yield "half done"
        except KeyboardInterrupt:
            raise StoppedError("Given back.") from None

    for going, ends in ((work(), StoppedError), (iter(["half done"]), KeyboardInterrupt)):
        with pytest.raises(ends), interruptible(going):
            assert next(going) == "half done"
            raise KeyboardInterrupt
