"""The font that the page brings along: small, kept by browsers, under its own licence."""

from __future__ import annotations

from typing import Any

import pytest
from project import PROJECT
from starlette.applications import Starlette
from starlette.testclient import TestClient

from rallebench.gui.assets import FONTS, head
from rallebench.gui.vendored import CACHING, FOLDER, vendored_route

MOST_BYTES = 120_000
NOTICE = (PROJECT / "NOTICE").read_text(encoding="utf-8")


def test_the_font_is_small_and_every_vendored_file_is_in_the_notice() -> None:
    assert sum((FOLDER / name).stat().st_size for name in FONTS) < MOST_BYTES
    for path in FOLDER.iterdir():
        assert f"rallebench/gui/vendor/{path.name.partition('-')[0]}" in NOTICE


def test_a_browser_fetches_the_font_once() -> None:
    client = TestClient(Starlette(routes=[vendored_route()]))
    for name in FONTS:
        reply = client.get(f"/vendor/{name}")
        assert reply.status_code == 200 and reply.headers["cache-control"] == CACHING


@pytest.mark.parametrize(
    "path", ["/vendor/", "/vendor/../app.py", "/vendor/%2e%2e/app.py", "/vendor/no.woff2"]
)
def test_nothing_else_is_served(path: str) -> None:
    client = TestClient(Starlette(routes=[vendored_route()]))
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("root", ["", "/bench", "https://example.org/bench"])
def test_the_font_has_its_address_behind_a_proxy(root: str) -> None:
    first, *_ = FONTS
    assert f'href="{root}/vendor/{first}"' in head(f"{root}/vendor")
    assert f"url({root}/vendor/{first})" in head(f"{root}/vendor")


@pytest.mark.slow
def test_the_page_is_drawn_in_the_vendored_font(tab: Any) -> None:
    assert tab.evaluate("() => document.fonts.load('13px Inter').then(faces => faces.length)") == 1
    assert "Inter" in tab.evaluate(
        "() => getComputedStyle(document.querySelector('#frame')).fontFamily"
    )
