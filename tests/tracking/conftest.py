"""One MLflow database for the whole session: making its tables takes seconds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from run_folders import make_run

from rallebench.engine.store import RunFolder
from rallebench.tracking.connection import connect, default_uri


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace (with a space and an umlaut in its name) whose ``mlflow.db`` has its tables."""
    folder = tmp_path_factory.mktemp("tracking") / "Mein Wörkspace"
    folder.mkdir()
    connect(default_uri(folder))
    return folder


@pytest.fixture(scope="session")
def client(workspace: Path) -> Any:
    """An MLflow client that reads what was logged to the workspace."""
    return connect(default_uri(workspace))


@pytest.fixture
def new_run(workspace: Path, request: pytest.FixtureRequest) -> Callable[..., RunFolder]:
    """Make a run named after the test."""
    return lambda *args, **changes: make_run(
        workspace / "runs", request.node.name[:90], *args, **changes
    )


@pytest.fixture(autouse=True)
def no_other_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore a tracking address in the tester's environment."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
