"""MCP servers of the tests as configured servers, and their tools as an environment."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rallebench.core.entries import McpServerEntry
from rallebench.environments.mcp import McpServerTools
from rallebench.environments.mcp_servers.calls import CallSettings, McpTool, list_tools
from rallebench.environments.mcp_servers.listing import choose
from rallebench.environments.mcp_servers.ready import ReadyServer, fill_in

SUPPORT = Path(__file__).parent


def raw(kind: str, *more: str | Path) -> dict[str, Any]:
    """The entry of a server that behaves as ``kind`` says."""
    return {
        "command": sys.executable,
        "args": ["-S", str(SUPPORT / "raw_mcp.py"), kind, *map(str, more)],
    }


MOONS: dict[str, Any] = {"command": sys.executable, "args": [str(SUPPORT / "moons_server.py")]}
"""The entry of a server made with the SDK."""


def ready(entry: dict[str, Any], name: str = "moons") -> ReadyServer:
    return fill_in(name, McpServerEntry(**entry))


def write_servers(folder: Path, **servers: dict[str, Any]) -> Path:
    """A file of servers."""
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    return file


@contextmanager
def acting(
    entry: dict[str, Any], names: str = "", seconds: float = 20.0, characters: int = 20_000
) -> Iterator[tuple[McpServerTools, dict[str, McpTool]]]:
    """The environment of a server, and its tool by name for ``acted.observed``."""
    server = ready(entry)
    offered = choose("moons", list_tools(server), names)
    tool = McpTool(server, offered, CallSettings(names, seconds, characters))
    try:
        yield McpServerTools("mcp:moons", offered), {"mcp:moons": tool}
    finally:
        tool.disconnect()


@contextmanager
def over_http(*flags: str) -> Iterator[dict[str, Any]]:
    """The entry of the SDK's server over HTTP on this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, str(SUPPORT / "moons_server.py"), str(port), *flags]
    with subprocess.Popen(command) as process:
        try:
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                with socket.socket() as attempt:
                    if attempt.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield {"url": f"http://127.0.0.1:{port}/mcp"}
        finally:
            process.kill()
