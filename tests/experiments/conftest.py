"""What the tests of experiments share: the command line over the ``workspace`` of a test's module."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_workspace import CommandLine


@pytest.fixture
def rallebench(capfd: pytest.CaptureFixture[str], workspace: Path) -> CommandLine:
    return CommandLine(capfd, workspace)
