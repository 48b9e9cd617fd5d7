"""Fixtures of the tests of papers."""

from __future__ import annotations

import pytest

from rallebench.papers.crud import suites as crud
from rallebench.papers.ralle import suites as kilt
from rallebench.papers.rgb import tables as rgb


@pytest.fixture
def like_the_papers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count small sets as the papers' own, so that the printed rows are shown beside ours."""
    for module in (crud, rgb):
        monkeypatch.setattr(module, "unlike", lambda *_: "")
        monkeypatch.setattr(module, "why_unverified", lambda *_, **__: "")
    monkeypatch.setattr(crud, "_too_few", lambda *_: "")
    monkeypatch.setattr(kilt, "_why", lambda *_: "")
