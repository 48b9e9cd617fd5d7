"""Opening the page: an unusable address is one sentence before anything is built; headers of every answer."""

from __future__ import annotations

import argparse
import re
import socket
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from rallebench.core.errors import UsageError
from rallebench.gui import app
from rallebench.gui.content_policy import FRAMES, POLICY, REFUSALS, ContentPolicy


def serve_options(tmp_path: Path, **more: Any) -> argparse.Namespace:
    given = {"host": "127.0.0.1", "port": 0, "auth": None, "workspace": tmp_path / "w"}
    given |= {"base_settings": None, "allowed_host": [], "no_browser": True}
    given |= {"root_path": "", "spaces": False, "share": False, "theme": "", "queue_size": None}
    return argparse.Namespace(**{**given, **more})


@pytest.mark.parametrize("port", [99_999, -1])
def test_a_port_that_does_not_exist_is_refused(port: int, tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=rf"127\.0\.0\.1:{port} .*; choose another --port or --host\."
    ):
        app.serve(serve_options(tmp_path, port=port))
    assert not (tmp_path / "w").exists()


def test_a_port_that_is_taken_is_refused_with_the_systems_own_reason(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(
            UsageError, match=r"\(Address already in use\); choose another --port"
        ) as refusal:
            app.serve(serve_options(tmp_path, port=other.getsockname()[1]))
    assert "GRADIO" not in str(refusal.value)


def test_a_host_that_is_not_this_machine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="choose another --port or --host"):
        app.serve(serve_options(tmp_path, host="192.0.2.1", auth="me:secret"))


def test_a_port_whose_server_has_just_ended_can_be_used_again() -> None:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)), server.accept()[0] as answered:
            answered.close()  # the side that closes first leaves the port waiting
    with socket.socket() as plain, pytest.raises(OSError, match="in use"):
        plain.bind(("127.0.0.1", port))
    app.check_address("127.0.0.1", port)
    with (
        socket.create_server(("127.0.0.1", port)) as again,
        socket.create_connection(("127.0.0.1", port)) as visitor,
    ):
        again.accept()[0].sendall(b"the page")
        assert visitor.recv(8) == b"the page", "the address was left free for the page itself"


# headers of every answer

HTML = '<head><base href="./" /></head><script>"<base href=\\"./\\" />"; \'<base href="./" />\'</script>'


def test_the_policy_names_no_other_server_and_lets_no_page_frame_this_one() -> None:
    rules = dict(
        rule.split(" ", 1) for rule in POLICY.format(scripts="", frames="'none'").split("; ")
    )
    known = {"'self'", "'none'", "'unsafe-inline'", "'unsafe-eval'", "data:", "blob:"}
    assert {word for rule in rules.values() for word in rule.split()} <= known
    assert rules["default-src"] == rules["form-action"] == "'self'"
    assert rules["frame-ancestors"] == rules["base-uri"] == rules["object-src"] == "'none'"
    assert rules["script-src"].split() == ["'self'", "'unsafe-eval'"]
    assert "'unsafe-eval'" not in rules["style-src"]


def test_gradios_template_still_has_the_element_that_is_replaced() -> None:
    template = Path(gr.__file__).parent / "templates/frontend/index.html"
    assert "<base href=\"{{ base_url | default('./') }}\" />" in template.read_text()


def test_the_base_of_a_page_is_replaced_and_its_scripts_alone_may_run() -> None:
    def page(request: object) -> Response:
        return HTMLResponse(HTML)

    def file(request: object) -> Response:
        return PlainTextResponse(HTML)

    application = Starlette(
        routes=[Route("/", page), Route("/file", file)], middleware=[Middleware(ContentPolicy)]
    )
    client = TestClient(application)
    shown, again = client.get("/"), client.get("/")
    nonce = re.search(r"'nonce-([\w-]{20,})'", shown.headers["content-security-policy"])[1]
    marked = HTML.replace('<base href="./" />', (FRAMES + REFUSALS).decode(), 1)
    assert shown.text == marked.replace("<script", f'<script nonce="{nonce}"')
    assert len(shown.content) == int(shown.headers["content-length"])
    assert nonce not in again.text and nonce not in again.headers["content-security-policy"]
    file = client.get("/file")
    assert file.text == HTML and "nonce-" in file.headers["content-security-policy"]
