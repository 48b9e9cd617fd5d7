"""What goes with every answer of the page, without a browser."""

from __future__ import annotations

import gradio as gr
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from rallebench.gui.content_policy import CONTENT_POLICY, FRAMES, WithoutBase

HTML = '<head><base href="./" /></head><script>"<base href=\\"./\\" />"; \'<base href="./" />\'</script>'


def test_the_policy_names_no_other_server_and_lets_no_page_frame_this_one() -> None:
    rules = dict(rule.split(" ", 1) for rule in CONTENT_POLICY.split("; "))
    known = {"'self'", "'none'", "'unsafe-inline'", "'unsafe-eval'", "data:", "blob:"}
    assert {word for rule in rules.values() for word in rule.split()} <= known
    assert rules["default-src"] == rules["form-action"] == "'self'"
    assert rules["frame-ancestors"] == rules["base-uri"] == rules["object-src"] == "'none'"
    assert "'unsafe-eval'" not in rules["style-src"] and "data:" not in rules["script-src"]


def test_gradios_template_still_has_the_element_that_is_replaced() -> None:
    from pathlib import Path

    assert (
        "<base href=\"{{ base_url | default('./') }}\" />"
        in (Path(gr.__file__).parent / "templates/frontend/index.html").read_text()
    )


def test_the_base_of_a_page_is_replaced_once_and_other_files_stay_as_they_are() -> None:
    def page(request: object) -> Response:
        return HTMLResponse(HTML)

    def file(request: object) -> Response:
        return PlainTextResponse(HTML)

    application = Starlette(
        routes=[Route("/", page), Route("/file", file)], middleware=[Middleware(WithoutBase)]
    )
    client = TestClient(application)
    shown = client.get("/")
    assert shown.text == HTML.replace('<base href="./" />', FRAMES.decode(), 1) and len(
        shown.content
    ) == int(shown.headers["content-length"])
    assert client.get("/file").text == HTML
