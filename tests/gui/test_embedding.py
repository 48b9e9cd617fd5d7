"""The page in an application of another program: mounted under a path, or within a Blocks of its own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
import uvicorn
from browsing import expect, free_port, go, press, says
from fastapi import FastAPI
from small_workspace import make_workspace
from starlette.testclient import TestClient

from rallebench import gui
from rallebench.core.errors import UsageError
from rallebench.gui.vendored import FOLDER


def hosting_app(workspace: Path) -> FastAPI:
    """An application with a page of its own, the page under /bench, and one within a Blocks under /lab."""
    app = FastAPI()

    @app.get("/own")
    def own() -> str:
        return "own"

    embedded = gui.blocks(workspace, theme="soft")
    with gr.Blocks(analytics_enabled=False) as lab:
        button, text = gr.Button("Greet"), gr.Textbox(label="Greeting")
        button.click(lambda: "hello", outputs=text)
        gui.blocks(workspace, read_only=True).render()
    app = gr.mount_gradio_app(app, lab, path="/lab")
    return gr.mount_gradio_app(app, embedded.queue(max_size=2), path="/bench")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    return hosting_app(make_workspace(tmp_path_factory.mktemp("embedded") / "workspace"))


def test_the_host_keeps_its_pages_and_the_page_brings_its_files_along(app: FastAPI) -> None:
    with TestClient(app) as client:
        assert client.get("/own").json() == "own"
        config = client.get("/bench/config").json()
        (page,) = (c for c in config["components"] if c["props"].get("elem_id") == "page")
        assert "--sans:Montserrat" in page["props"]["head"] and ".gradio-container" in str(page)
        for path in FOLDER.iterdir():
            reply = client.get(f"/bench/gradio_api/file={path.as_posix()}")
            assert reply.status_code == 200 and reply.content == path.read_bytes()
        assert client.get("/bench/gradio_api/file=/etc/passwd").status_code == 403


def test_endpoints_answer_under_the_path(app: FastAPI) -> None:
    with TestClient(app) as client:
        named = client.get("/bench/gradio_api/info").json()["named_endpoints"]
        assert {"/search", "/ask"} <= set(named)


def test_an_unknown_theme_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no theme"):
        gui.blocks(tmp_path / "w", theme="nope")
    assert not (tmp_path / "w").exists()


@contextlib.contextmanager
def running(app: FastAPI) -> Iterator[str]:
    """The address of the application on loopback."""
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(20)


@pytest.mark.slow
@pytest.mark.browser
def test_a_visitor_uses_the_page_under_a_path_and_within_a_blocks(
    app: FastAPI, browser: Any, tmp_path: Path
) -> None:
    with running(app) as url:
        tab = browser.new_page()
        errors: list[str] = []
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.goto(f"{url}/bench")
        tab.wait_for_selector("body.ready")
        fonts = "() => document.fonts.load('13px Inter').then(faces => faces.length)"
        assert tab.evaluate(fonts) == 1
        go(tab, "#/data/list")
        tab.locator("#data-import [name=path]").fill(str(tmp_path / "nothing"))
        press(tab, "Preview")  # a refusal is shown, although none of our scripts stands in the head
        says(tab, "#v-data-list .problem", "nothing")
        upload = tmp_path / "facts.jsonl"
        upload.write_text('{"question": "Which moon is the largest?", "answer": "Ganymede"}\n')
        tab.set_input_files("#data-import input[type=file][multiple]", str(upload))
        says(tab, "#data-import", "Which moon is the largest?")
        tab.goto(f"{url}/lab")
        tab.wait_for_selector("body.ready")
        tab.get_by_role("button", name="Greet").click()
        expect(tab.get_by_label("Greeting")).to_have_value("hello")
        go(tab, "#/models/list")
        assert errors == []
        tab.close()
