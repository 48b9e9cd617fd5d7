"""Calls of the tools of a server, over one session that is opened at the first call and again after a failure."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rallebench.core.errors import BackendError
from rallebench.core.settings import declare
from rallebench.core.stopping import stop_of_thread
from rallebench.core.types import Reply
from rallebench.core.versions import optional
from rallebench.environments.mcp_servers.contents import FAILED, cut, result_text
from rallebench.environments.mcp_servers.listing import ListedTool, OfferedTool
from rallebench.environments.mcp_servers.ready import ReadyServer

if TYPE_CHECKING:
    from rallebench.environments.mcp_servers._session import McpSession

CONCURRENT = 4
"""Calls at a time over HTTP. A program is asked one call after another, so a call that ends it fails no other question."""


def open_session(server: ReadyServer) -> McpSession:
    """Connect to a server. Raises BackendError, StoppedError, MissingPackageError."""
    optional("mcp", "mcp", f"and the MCP server {server.name!r} needs it")
    from rallebench.environments.mcp_servers._session import McpSession

    return McpSession(server)


def list_tools(server: ReadyServer) -> tuple[ListedTool, ...]:
    """Connect to a server, and return the tools that it lists. Raises BackendError, StoppedError, MissingPackageError."""
    session = open_session(server)
    session.close()
    return session.tools


@dataclass(frozen=True, slots=True)
class CallSettings:
    """The settings of a server's tools: the offered ones, and the limits of a call."""

    tools: str = declare(
        str, "", about="the tools to offer, with commas; default: all of the server's", many=True
    )
    timeout: float = declare(
        float, 60.0, 0.1, 86_400, about="seconds until a call counts as failed"
    )
    characters: int = declare(
        int, 20_000, 100, 1_000_000, about="maximum characters of an observation"
    )


class McpTool:
    """The tools of a server as one tool of a run. Thread-safe. ``disconnect`` ends the session, a later call opens another."""

    def __init__(
        self, server: ReadyServer, tools: Sequence[OfferedTool], settings: CallSettings
    ) -> None:
        self._server, self._settings = server, settings
        self._digests = {tool.listed.name: tool.listed.digest for tool in tools}
        self._lock = threading.Lock()
        self._session: McpSession | None = None
        self.concurrency = CONCURRENT if server.entry.url else 1
        self.fingerprint = f"mcp/1 {server.name} {self._digests}"

    def use(self, arguments: Mapping[str, str]) -> Reply:
        """Call the tool ``api`` with the JSON object ``arguments``. Raises BackendError if the server gives no answer."""
        stop_of_thread().check()
        from rallebench.environments.mcp_servers._session import CallRefused

        session = self._connect()
        name, values = arguments["api"], json.loads(arguments["arguments"])
        try:
            result = session.call(name, values, self._settings.timeout)
        except CallRefused as error:
            return Reply(FAILED + cut(str(error), self._settings.characters))
        except BackendError:
            self._drop(session)
            raise
        return Reply(self._server.hide_secrets(result_text(result, self._settings.characters)))

    def _connect(self) -> McpSession:
        """Return the open session, or open one with the same tools."""
        with self._lock:
            if self._session is None:
                session = open_session(self._server)
                listed = {tool.name: tool for tool in session.tools}
                for name, digest in self._digests.items():
                    if name not in listed or listed[name].digest != digest:
                        session.close()
                        raise BackendError(
                            f"The MCP server {self._server.name!r} changed its tool {name!r} meanwhile; start a new run."
                        )
                self._session = session
            return self._session

    def _drop(self, session: McpSession) -> None:
        with self._lock:
            if self._session is session:
                self._session = None

    def disconnect(self) -> None:
        """End the session and the server's program."""
        with self._lock:
            session, self._session = self._session, None
        if session is not None:
            session.close()
