"""What the benchmarks beyond the papers share in tests."""

from __future__ import annotations

import pytest

from rallebench.experiments.benchmarks import beir, browsecomp, mtrag


@pytest.fixture
def like_the_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small sets count as those of the printed figures, which then stand beside ours."""
    for module in (beir, browsecomp, mtrag):
        monkeypatch.setattr(module, "unlike", lambda *_: "")
        monkeypatch.setattr(module, "unverified", lambda *_, **__: "")
