from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from stand_in_hub import StandInHub


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[StandInHub]:
    """A stand-in of the hub that this process and its children ask, with an empty cache in ``home``."""
    with StandInHub() as stand_in:
        stand_in.environ(monkeypatch, str(tmp_path / "home"))
        yield stand_in
