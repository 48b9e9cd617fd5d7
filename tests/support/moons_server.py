"""A small MCP server, made with the official SDK: a program on stdin and stdout, or over HTTP with a port as its argument."""

from __future__ import annotations

import os
import sys
import time

import uvicorn
from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

MOONS = {"titan": "Titan is the largest moon of Saturn.", "triton": "Triton is a moon of Neptune."}

server = MCPServer("moons", log_level="CRITICAL")


@server.tool()
def moon(name: str) -> str:
    """Tell about a moon."""
    return MOONS.get(name.lower(), f"moon: there is no moon {name[:50]!r}")


@server.tool()
def add(a: int, b: int = 1) -> str:
    """Add two numbers."""
    return f"add: {a + b}"


@server.tool()
def names() -> str:
    """List all moons."""
    return "\n".join(MOONS)


@server.tool()
def picture() -> Image:
    """Show a moon."""
    return Image(data=b"x" * 100, format="png")


@server.tool()
def fall() -> str:
    """Fail."""
    raise ToolError("it is too dark")


@server.tool()
def die() -> str:
    """End the server."""
    os._exit(3)


@server.tool()
def wait(seconds: float) -> str:
    """Wait."""
    time.sleep(seconds)
    return "waited"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        uvicorn.run(
            server.streamable_http_app(json_response="--json" in sys.argv),
            port=int(sys.argv[1]),
            log_level="critical",
        )
    else:
        server.run()
