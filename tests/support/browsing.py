"""The page as a separate program, and helpers for browser tests. Each one waits for a named thing, so that a slow machine
does not fail a test."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from project import PROJECT
from small_workspace import chain, generate, retrieve

PATIENCE = 60_000
"""Milliseconds after which a wait fails."""
SCRIPTED = {"echo": {"backend": "scripted", "settings": {"echo": True}}}

SERVER_CALL = re.compile("component_server")

CHAIN = chain("starter", retrieve(target="starter-bm25", k=5), generate("{response[0]}", "echo"))
"""The chain with which the page opens; it needs no weights."""


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def expect(what: Any) -> Any:
    """Playwright's waiting assertions; imported late, because without Playwright these tests skip."""
    from playwright.sync_api import expect as waiting

    waiting.set_options(timeout=PATIENCE)
    return waiting(what)


def says(page: Any, css: str, text: str) -> None:
    """Wait until an element shows ``text``; a failure shows its last text."""
    expect(page.locator(css)).to_contain_text(text, use_inner_text=True)


def go(page: Any, address: str) -> None:
    """Open an address of the page and wait for its view."""
    page.evaluate("address => { location.hash = address }", address)
    view = address.removeprefix("#/").partition("?")[0].replace("/", "-")
    page.locator(f"#v-{view}:not([hidden]) *").first.wait_for(timeout=PATIENCE)


def press(page: Any, words: str) -> None:
    """Press the button of the open view, dialog or drawer that has these words."""
    open_part = "dialog[open] button, .drawer:not([hidden]) button, .view:not([hidden]) button"
    page.locator(open_part).filter(has_text=words, visible=True).first.click()


@contextlib.contextmanager
def serving(
    workspace: Path, *flags: str, models: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[str]:
    """The address of a running page, started like a user's; ``models``: entries of ``llms.json``."""
    app = App(workspace, *flags, models=models)
    try:
        yield app.url
    finally:
        app.end()


class App:
    """A running page, started like a user's; ``start`` starts it again at the same address."""

    def __init__(
        self,
        workspace: Path,
        *flags: str,
        models: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        (workspace / "llms.json").write_text(json.dumps({**SCRIPTED, **models}))
        (workspace / "chains").mkdir(exist_ok=True)
        (workspace / "chains" / "starter.json").write_text(json.dumps(CHAIN))
        port = free_port()
        self.url, self._log = f"http://127.0.0.1:{port}", workspace / "app.log"
        self._command = [sys.executable, str(PROJECT / "app.py"), "--workspace", str(workspace)]
        self._command += ["--port", str(port), "--no-browser", *flags]
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with open(self._log, "a") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 180  # a busy machine starts programs slowly
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(self.url, timeout=2).close()
                return
            except OSError:
                assert self.process.poll() is None, self._log.read_text()
                time.sleep(0.2)

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.kill()
        self.process.wait(timeout=20)

    def end(self) -> None:
        """End it as a user does."""
        self.process.terminate()
        assert self.process.wait(timeout=20) == 0, self._log.read_text()


@contextlib.contextmanager
def visiting(browser: Any, url: str, address: str = "") -> Iterator[Any]:
    """A separate visitor, who contacts no other server and breaks no content policy."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    visitor = context.new_page()
    complaints = watch(visitor, url)
    visitor.goto(f"{url}/{address}")
    yield visitor
    context.close()
    assert complaints == []


def watch(visitor: Any, own: str) -> list[str]:
    """A list that collects every request to another server, and every breach of the content policy."""
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


def hold_the_first(tab: Any, words: str) -> list[Any]:
    """Hold the first call of the server with these words in the list until it is released."""
    held: list[Any] = []

    def hold(route: Any) -> None:
        first = words in (route.request.post_data or "") and not held
        held.append(route) if first else route.continue_()

    tab.route(SERVER_CALL, hold)
    return held


def let_go(tab: Any, held: list[Any]) -> None:
    """Release that call, and wait until the page has its answer."""
    with tab.expect_response(SERVER_CALL):
        held[0].continue_()
    tab.wait_for_timeout(300)
