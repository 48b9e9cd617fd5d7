"""The page, served once per test file on loopback over a fresh workspace, and a headless Chromium."""

from __future__ import annotations

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

PROJECT = Path(__file__).resolve().parent.parent.parent
SCRIPTED = {
    "echo": {"backend": "scripted", "settings": {"echo": True}},
}


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """(address, workspace) of a running page, started as a user starts it."""
    workspace = tmp_path_factory.mktemp("workspace")
    (workspace / "llms.json").write_text(json.dumps(SCRIPTED))
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
        yield url, workspace
    finally:
        app.terminate()
        app.wait(timeout=20)
        log.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium; skips where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium is installed")
    with api.sync_playwright() as play:
        running = play.chromium.launch(
            executable_path=chromium,
            args=["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield running
        running.close()


@pytest.fixture
def page(browser: Any, served: tuple[str, Path]) -> Iterator[Any]:
    """A fresh visitor on the page, 1280 pixels wide."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    visitor = context.new_page()
    visitor.goto(served[0])
    visitor.wait_for_selector("#tabs")
    yield visitor
    context.close()
