"""The page, served once per test file on loopback over a fresh workspace, and a headless Chromium."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_views import opened_page
from small_workspace import chain, generate, retrieve

from rallebench.gui.frame import Page

PROJECT = Path(__file__).resolve().parent.parent.parent
SCRIPTED = {"echo": {"backend": "scripted", "settings": {"echo": True}}}

CHAIN = chain("starter", retrieve(target="starter-bm25", k=5), generate("{response[0]}", "echo"))
"""The chain with which the page opens; it needs no weights."""


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(autouse=True)
def _untraced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing goes to MLflow beside a test: its thread would go on into the tests of MLflow's database."""
    monkeypatch.setattr("rallebench.services.tracking.Tracking.trace", lambda *_: None)


@contextlib.contextmanager
def serving(workspace: Path, *flags: str) -> Iterator[str]:
    """The address of a running page, started as a user starts it."""
    (workspace / "llms.json").write_text(json.dumps(SCRIPTED))
    (workspace / "chains").mkdir(exist_ok=True)
    (workspace / "chains" / "starter.json").write_text(json.dumps(CHAIN))
    port = free_port()
    log = open(workspace / "app.log", "w")  # noqa: SIM115 - closed by its owner
    app = subprocess.Popen(
        [
            sys.executable,
            str(PROJECT / "app.py"),
            "--workspace",
            str(workspace),
            "--port",
            str(port),
            "--no-browser",
            *flags,
        ],
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(url, timeout=2).close()
                break
            except OSError:
                assert app.poll() is None, (workspace / "app.log").read_text()
                time.sleep(0.2)
        yield url
    finally:
        app.terminate()
        assert app.wait(timeout=20) == 0, (workspace / "app.log").read_text()
        log.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """(address, workspace) of a running page."""
    workspace = tmp_path_factory.mktemp("workspace")
    with serving(workspace) as url:
        yield url, workspace


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium; skips where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if chromium is None:
        pytest.skip("no Chromium is installed")
    with api.sync_playwright() as play:
        running = play.chromium.launch(
            executable_path=chromium,
            args=[
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
            ],
        )
        yield running
        running.close()


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """The page without a browser, over a small workspace."""
    with opened_page(tmp_path / "workspace") as page:
        yield page


@pytest.fixture
def tab(browser: Any, served: tuple[str, Path]) -> Iterator[Any]:
    """A fresh visitor on the page, 1280 pixels wide; whatever a test does, the page stays with its own server."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    visitor = context.new_page()
    complaints = watch(visitor, served[0])
    visitor.goto(served[0])
    visitor.wait_for_selector("body.ready")
    yield visitor
    context.close()
    assert complaints == []


def watch(visitor: Any, own: str) -> list[str]:
    """A list to which every request to another server, and every breach of the content policy, is added."""
    complaints: list[str] = []

    def on_request(request: Any) -> None:
        if not request.url.startswith((f"{own}/", "data:", f"blob:{own}/")):
            complaints.append(request.url)

    def on_console(message: Any) -> None:
        if "Content Security Policy" in message.text:
            complaints.append(message.text)

    visitor.on("pageerror", lambda error: complaints.append(str(error)))
    visitor.on("request", on_request)
    visitor.on("console", on_console)
    return complaints
