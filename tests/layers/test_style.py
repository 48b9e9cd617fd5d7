"""The whole tree is formatted and checked by the pinned ruff, with the project's own rules."""

from __future__ import annotations

import subprocess
import sys

import pytest
from project import PROJECT

TREES = ("rallebench", "tests", "benchmarks", "tools", "app.py")


@pytest.mark.parametrize("command", [("format", "--check"), ("check",)], ids=" ".join)
def test_ruff_finds_nothing(command: tuple[str, ...]) -> None:
    words = [sys.executable, "-m", "ruff", *command, "--no-cache", *TREES]
    run = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-500:]
