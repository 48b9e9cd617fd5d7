"""Common parts of the tests of benchmarks that belong to no paper."""

from __future__ import annotations

import pytest

from rallebench.experiments.benchmarks.beir import suite as beir
from rallebench.experiments.benchmarks.browsecomp import suite as browsecomp
from rallebench.experiments.benchmarks.mtrag import suite as mtrag


@pytest.fixture
def like_the_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count small sets as those of the printed figures, so that these are shown beside ours."""
    for module in (beir, browsecomp, mtrag):
        monkeypatch.setattr(module, "unlike", lambda *_: "")
        monkeypatch.setattr(module, "why_unverified", lambda *_, **__: "")
