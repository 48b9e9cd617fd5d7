"""Shared set-up of the tests: offline by default, few threads, and real data only if present beside the project."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from small_workspace import CommandLine

    from rallebench.services.workbench import Workbench

# No test cuts the power: a killed process's writes survive without a sync, which takes milliseconds per file.
os.fsync = lambda fd: None

# A busy machine is not a failure.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


class Loggers(dict[str, Any]):
    """The loggers of this process, safe to iterate while another thread creates one.

    Before each phase of a test pytest iterates over them, while a library imported in the background (MLflow, for the
    traces of an episode) may create its own.
    """

    def values(self) -> Any:
        """A copy, made in one step."""
        return list(super().values())


logging.root.manager.loggerDict = Loggers(logging.root.manager.loggerDict)

PROJECT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of published data beside the project; tests that need it skip where it is absent."""
    folder = PROJECT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the published data sets do not lie beside this checkout")
    return folder


@pytest.fixture(scope="session")
def template_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small workspace. A module may replace it by its own; no test changes it."""
    from small_workspace import make_workspace

    return make_workspace(tmp_path_factory.mktemp("made") / "workspace")


@pytest.fixture
def workspace(template_workspace: Path, tmp_path: Path) -> Path:
    """A copy of ``template_workspace`` for one test."""
    from small_workspace import copy_workspace

    return copy_workspace(template_workspace, tmp_path / "workspace")


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], workspace: Path) -> CommandLine:
    """The command line over the ``workspace`` of a test's module."""
    from small_workspace import CommandLine

    return CommandLine(capfd, workspace)


@pytest.fixture
def bench(workspace: Path) -> Iterator[Workbench]:
    """A workbench on the ``workspace`` of a test's module."""
    from rallebench.services.workbench import Workbench

    workbench = Workbench(workspace)
    yield workbench
    workbench.close()


def pytest_collection_finish() -> None:
    """Keep the modules and tests to the end: without this each garbage collection takes a third of the time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def smollm2_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The GGUF file of a real language model. Tests with it are slow, and skip if it is unavailable."""
    from smollm2 import smollm2

    return smollm2(tmp_path_factory.mktemp("smollm2"))


@pytest.fixture(scope="session")
def smollm2_cache(smollm2_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace's cache with the converted real model."""
    from rallebench.checkpoints.gguf import gguf_model
    from rallebench.core.events import complete
    from rallebench.llms._transformers.converting import convert_model

    # The processes of one test run share the conversion, which is guarded by a lock.
    shared = "PYTEST_XDIST_WORKER" in os.environ
    base = tmp_path_factory.getbasetemp()
    cache = base.parent / "smollm2-cache" if shared else tmp_path_factory.mktemp("smollm2-cache")
    complete(convert_model(gguf_model(smollm2_file), cache))
    return cache
