"""The page under a path of a real nginx, with the configuration of docs/containers.md."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import free_port, serving, visiting
from project import PROJECT

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


def location(server: str) -> str:
    """The block of the manual, before the page at ``server``."""
    manual = (PROJECT / "docs" / "containers.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```nginx\n(.*?)```", manual, re.DOTALL)
    assert "http://127.0.0.1:7860/" in block
    return block.replace("http://127.0.0.1:7860/", f"{server}/")


def configuration(folder: Path, port: int, block: str) -> str:
    """A complete configuration that needs no privileges and writes only to ``folder``."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "\n".join(f"  {kind}_temp_path {folder}/{kind};" for kind in kinds)
    return f"""\
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
{paths}
  access_log {folder}/access.log;
  server {{
    listen 127.0.0.1:{port};
{block}  }}
}}
"""


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of the page at nginx, and nginx's folder."""
    if NGINX is None:
        pytest.skip("nginx is not installed")
    workspace, folder = tmp_path / "workspace", tmp_path / "nginx"
    workspace.mkdir()
    folder.mkdir()
    with serving(workspace, "--root-path", "/bench") as server:
        port = free_port()
        file = folder / "nginx.conf"
        file.write_text(configuration(folder, port, location(server)), encoding="utf-8")
        proxy = subprocess.Popen([NGINX, "-p", str(folder), "-c", str(file)])
        try:
            yield f"http://127.0.0.1:{port}/bench", folder
        finally:
            proxy.terminate()
            proxy.wait(20)


def test_the_page_works_under_a_path(proxied: tuple[str, Path], browser: Any) -> None:
    url, folder = proxied
    with visiting(browser, url) as visitor:
        visitor.wait_for_selector("body.ready")
        visitor.wait_for_selector("#v-build-one")
        visitor.evaluate("location.hash = '#/runs/list'")
        visitor.wait_for_selector("#v-runs-list:not([hidden])")
        # While the visitor is there: requests in progress at the end are logged as 499.
        lines = (folder / "access.log").read_text().splitlines()
    asked = [(line.split('"')[1].split()[1], line.split('"')[2].split()[0]) for line in lines]
    asked = [pair for pair in asked if pair[0] != "/favicon.ico"]  # browsers always request it
    assert len(asked) > 5
    assert all(path.startswith("/bench/") for path, _ in asked)
    assert not [pair for pair in asked if pair[1].startswith(("4", "5"))]
    assert any("component_server" in path for path, _ in asked)
