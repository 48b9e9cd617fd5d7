"""A measurement in a process of its own, so that its memory and time are measured alone.

The program is ``python -m MODULE JOB.json``. It prints JSON lines: ``{"progress": sentence}``, a final ``{"error":
sentence}``, and one line for each measurement. Other lines are ignored, because native libraries print.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.events import Operation, Progress
from rallebench.core.experiments import MeasureRequest
from rallebench.core.files import write_text
from rallebench.core.json_values import JsonObject
from rallebench.core.types import Json

PROGRAM_SECONDS = 1800.0
"""Seconds after which a program is ended."""


MEND = "it is measured anew"


@dataclass(frozen=True, slots=True)
class StoredMeasurements:
    """A file of measurements, sealed. ``job``: the digest of the request."""

    job: str
    measurements: tuple[Json, ...]


def measurements(request: MeasureRequest) -> Operation[tuple[JsonObject, ...]]:
    """Run the program and return its measurements. It ends with the operation. Raises UsageError if it fails or takes too
    long."""
    with tempfile.TemporaryDirectory(prefix="rallebench-") as folder:
        job, errors = Path(folder) / "job.json", Path(folder) / "stderr.txt"
        write_text(job, json.dumps(dict(request.job)))
        with open(errors, "w", encoding="utf-8") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", request.module, str(job)],
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env=_environment(),
            )
        assert process.stdout is not None
        late = threading.Timer(PROGRAM_SECONDS, process.kill)
        late.daemon = True
        late.start()
        lines: list[JsonObject] = []
        try:
            for text in process.stdout:
                if not text.startswith("{"):
                    continue
                match json.loads(text):
                    case {"error": str(sentence)}:
                        raise UsageError(sentence)
                    case {"progress": sentence}:
                        yield Progress("", message=str(sentence))
                    case line:
                        lines.append(line)
            code = process.wait()
        finally:
            timed_out = not late.is_alive()
            late.cancel()
            process.kill()
            process.stdout.close()
            process.wait()
        if timed_out:
            raise UsageError(
                f"{request.label} took more than {PROGRAM_SECONDS:.0f} s; ask fewer questions."
            )
        if code:
            last = (errors.read_text("utf-8", "replace").strip().splitlines() or ["no message"])[-1]
            raise UsageError(
                f"{request.label} could not be measured in a process of its own: {last[:300]}"
            )
        return tuple(lines)


def _environment() -> dict[str, str]:
    """One thread, so that the milliseconds of a query do not depend on the number of free cores."""
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "PYTHONPATH": path}


def run_program(measure: Callable[[Json], Iterable[JsonObject]]) -> int:
    """The side of the program: print the measurements of the job on the command line; return the exit code."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        for line in measure(job):
            print(json.dumps(line), flush=True)
    except RalleError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return error.exit_code
    return 0
