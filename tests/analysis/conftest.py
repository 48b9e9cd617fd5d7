"""A small workspace for each test of a module that has none of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_workspace import make_workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "workspace")
