"""The page, served once per test file on loopback over a fresh workspace, and a headless Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import serving, visiting
from page_views import opened_page

from rallebench.gui.frame import Page


@pytest.fixture(autouse=True)
def _no_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Log nothing to MLflow beside a test: its thread would continue into the tests of MLflow's database."""
    monkeypatch.setattr("rallebench.services.tracking.Tracking.trace", lambda *_: None)


@pytest.fixture(scope="module")
def page_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """(address, workspace) of a running page."""
    workspace = tmp_path_factory.mktemp("workspace")
    with serving(workspace) as url:
        yield url, workspace


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium; skips if there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    if chromium is None:
        pytest.skip("no Chromium is installed")
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with api.sync_playwright() as play:
        running = play.chromium.launch(executable_path=chromium, args=flags)
        yield running
        running.close()


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """The page without a browser, over a small workspace."""
    with opened_page(tmp_path / "workspace") as page:
        yield page


@pytest.fixture
def tab(browser: Any, page_server: tuple[str, Path]) -> Iterator[Any]:
    """A fresh visitor of the page, 1280 pixels wide; the page never contacts another server, whatever a test does."""
    with visiting(browser, page_server[0]) as visitor:
        visitor.wait_for_selector("body.ready")
        yield visitor
