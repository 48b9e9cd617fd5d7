"""Files and processes of builds: vectors are linked, and a builder in another process ends with its owner."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from rallebench.core.events import complete
from rallebench.vector_indexes import VECTOR_INDEXES


def random_vectors(count: int, dim: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    vectors = np.random.default_rng(0).normal(size=(count, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", ["ivf-sq8", "numpy-flat"])
def test_vectors_mapped_from_a_file_are_linked_others_written(kind: str, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", random_vectors(200, 16))
    mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
    for name, vectors, linked in (
        ("a", mapped, True),
        ("b", mapped[:150], False),
        ("c", np.array(mapped), False),
    ):
        (tmp_path / name).mkdir()
        complete(VECTOR_INDEXES[kind].build(tmp_path / name, vectors))
        kept = tmp_path / name / "vectors.npy"
        assert kept.samefile(tmp_path / "v.npy") == linked
        np.testing.assert_array_equal(np.load(kept), vectors)


def builders(folder: Path) -> set[int]:
    """The processes that build in ``folder``."""
    found = set()
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if "_diskann_build.py" in words and str(folder) in words:
            found.add(process.pid)
    return found


def wait_for(what: str, holds: object) -> None:
    until = time.monotonic() + 30
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < until, what
        time.sleep(0.05)


BUILD = """
import sys
from pathlib import Path
import numpy
from rallebench.core.events import complete
from rallebench.vector_indexes import VECTOR_INDEXES
complete(VECTOR_INDEXES["diskann-memory"].build(Path(sys.argv[1]), numpy.load(sys.argv[2]), build_complexity=2000))
"""


@pytest.mark.slow
def test_a_diskann_build_ends_with_the_process_that_asked_even_if_killed(tmp_path: Path) -> None:
    pytest.importorskip("diskannpy", reason="diskannpy has no wheel here")
    np.save(tmp_path / "v.npy", random_vectors(20_000, 64))
    (tmp_path / "x").mkdir()
    asked = subprocess.Popen(
        [sys.executable, "-c", BUILD, str(tmp_path / "x"), str(tmp_path / "v.npy")]
    )
    wait_for("no builder started", lambda: len(builders(tmp_path)) == 2)
    asked.kill()
    asked.wait()
    wait_for("a builder was left behind", lambda: not builders(tmp_path))
    assert asked.returncode == -signal.SIGKILL


def test_a_diskann_build_that_is_stopped_leaves_no_process(tmp_path: Path) -> None:
    pytest.importorskip("diskannpy", reason="diskannpy has no wheel here")
    steps = VECTOR_INDEXES["diskann"].build(
        tmp_path, random_vectors(20_000, 64), build_complexity=2000
    )
    while not builders(tmp_path):
        next(steps)
    steps.close()
    assert not builders(tmp_path)
