"""A server of MCP, the Model Context Protocol, over stdin and stdout or over HTTP."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from typing import TextIO

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from rallebench import __version__
from rallebench.core.events import ignore
from rallebench.core.hosts import Access, HostGuard
from rallebench.core.interrupts import Stoppable
from rallebench.core.listening import KeyGuard, serve_until_interrupted
from rallebench.remote.mcp_resources import Resources
from rallebench.remote.mcp_tools import Tools
from rallebench.services.workbench import Workbench

ABOUT = (
    "rallebench answers questions with retrieval-augmented chains and measures them. list_names lists chains, datasets, "
    "indexes and runs; search returns passages; run_status, report and compare read runs. "
)
MAY_RUN = (
    "ask answers a question; start_run measures a chain on a dataset, and run_status follows it."
)
MAY_READ = "This server is read-only: it asks no model and starts no run, unless its user starts it with --allow-run."


class McpServer:
    """The tools and resources over one workbench."""

    def __init__(self, workbench: Workbench) -> None:
        self._tools, resources = Tools(workbench), Resources(workbench)
        self.protocol = Server(
            "rallebench",
            version=__version__,
            instructions=ABOUT + (MAY_READ if workbench.workspace.read_only else MAY_RUN),
            on_list_tools=self._tools.list,
            on_call_tool=self._tools.call,
            on_list_resources=resources.list,
            on_list_resource_templates=resources.list_templates,
            on_read_resource=resources.read,
            on_completion=resources.complete,
        )
        self.protocol.middleware.clear()  # by default it traces requests, which belong to no run

    def serve_stdio(self, out: TextIO) -> None:
        """Serve the client on stdin until it closes it, or until an interrupt. ``out``: stdout of this process, which
        nothing else may write to.
        """
        stdin, server = _Stdin(), self.protocol

        async def serve() -> None:
            files = anyio.wrap_file(stdin.lines), anyio.wrap_file(out)
            async with stdio_server(*files) as (requests, replies):
                await server.run(requests, replies, server.create_initialization_options())

        with Stoppable(stdin.end, ignore) as interrupts:
            interrupts.running = True
            anyio.run(serve)

    def serve_http(self, listening: socket.socket, key: str, access: Access) -> None:
        """Serve clients at ``/mcp`` until interrupted, then close the socket. They send ``key``, unless it is ''."""
        # HostGuard does more than the SDK's own check, which knows no allowed hosts.
        unguarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        app = KeyGuard(self.protocol.streamable_http_app(transport_security=unguarded), key)
        serve_until_interrupted(HostGuard(app, access), listening, self._tools.stop_calls)


class _Stdin:
    """The client's messages. A daemon thread passes stdin on, so that an interrupt need not wait for the next line."""

    def __init__(self) -> None:
        self._source = os.dup(0)
        self._near, self._far = socket.socketpair()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)  # programs that this process starts would read the messages
        os.close(nothing)
        self.lines = self._far.makefile(encoding="utf-8", errors="replace")
        threading.Thread(target=self._pass_on, name="stdin", daemon=True).start()

    def _pass_on(self) -> None:
        with suppress(OSError):  # ended by an interrupt
            while piece := os.read(self._source, 2**16):
                self._near.sendall(piece)
        self.end()

    def end(self) -> None:
        """Let the lines end."""
        with suppress(OSError):
            self._near.shutdown(socket.SHUT_WR)
