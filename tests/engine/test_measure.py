"""A measurement runs in its own process: its lines, its progress, its failures, and its end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from rallebench.core.errors import UsageError
from rallebench.core.events import Progress, complete
from rallebench.core.experiments import MeasureRequest
from rallebench.engine import measure
from rallebench.engine.measure import measurements

PROGRAM = """
import json, os, sys, time
job = json.load(open(sys.argv[1]))
open(job.get("pid", os.devnull), "w").write(str(os.getpid()))
print("a native library prints", flush=True)
print(json.dumps({"progress": "warming up"}), flush=True)
for number in range(job.get("lines", 0)):
    print(json.dumps({"number": number, "threads": os.environ["OMP_NUM_THREADS"]}), flush=True)
if job.get("error"):
    print(json.dumps({"error": job["error"]}), flush=True)
time.sleep(job.get("sleep", 0))
sys.exit(job.get("exit", 0))
"""


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "thermometer.py").write_text(PROGRAM)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def request(**job: Any) -> MeasureRequest:
    return MeasureRequest("the attic", "thermometer", job)


def test_a_program_prints_a_line_for_each_measurement_and_runs_with_one_thread() -> None:
    events: list[Any] = []
    lines = complete(measurements(request(lines=2)), events.append)
    assert lines == ({"number": 0, "threads": "1"}, {"number": 1, "threads": "1"})
    assert events == [Progress("", message="warming up")]


@pytest.mark.parametrize(
    ("job", "sentence"),
    [
        ({"lines": 1, "error": "It is too cold."}, "^It is too cold.$"),
        ({"exit": "it is frozen"}, "the attic could not be measured in .*: it is frozen$"),
        ({"exit": 3}, "the attic could not be measured in .*: no message$"),
    ],
)
def test_a_program_that_fails_is_one_sentence(job: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        complete(measurements(request(**job)))


def test_a_program_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "PROGRAM_SECONDS", 0.5)
    with pytest.raises(UsageError, match="the attic took more than"):
        complete(measurements(request(sleep=60)))


def test_the_program_ends_with_the_operation(tmp_path: Path) -> None:
    running = measurements(request(sleep=60, pid=str(tmp_path / "pid")))
    next(running)
    process = int((tmp_path / "pid").read_text())
    os.kill(process, 0)
    running.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
