"""A session with a server: the SDK's client in an event loop of its own, which a thread runs."""

from __future__ import annotations

import atexit
import threading
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from os.path import expanduser
from typing import Any, TypeVar
from weakref import WeakSet

import anyio
import httpx2
import mcp_types as types
from anyio.from_thread import start_blocking_portal
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from rallebench import __version__
from rallebench.core.errors import BackendError
from rallebench.core.stopping import stop_of_thread
from rallebench.core.terminal import visible_line
from rallebench.environments.mcp_servers._limits import (
    LINES,
    MAX_MESSAGE,
    ErrorOutput,
    TooLongMessage,
    limit_body,
    on_long_line,
)
from rallebench.environments.mcp_servers.listing import ListedTool
from rallebench.environments.mcp_servers.ready import ReadyServer

T = TypeVar("T")

CONNECT_SECONDS = 60.0
"""Seconds until a server must have listed its tools; a command may download its program first."""
CLOSE_SECONDS = 2.0
"""Seconds for a polite end of a session; afterwards it is cancelled."""
GRACE = 2.0
"""Seconds beyond a call's limit, after which the waiting ends even if the SDK's does not."""
MAX_TOOLS, MAX_PAGES = 2_000, 100
"""Maximum listed tools, and the maximum pages of the list."""
REPLIES = frozenset({types.INVALID_PARAMS, types.METHOD_NOT_FOUND, types.INTERNAL_ERROR})
"""Codes of errors with which a server answers a call; others come from the connection."""
REFUSED = "Server returned an error response"
"""The SDK's message for an error of HTTP, which is not a reply of the protocol."""
ABOUT_US = types.Implementation(name="rallebench", version=__version__)

_OPEN: WeakSet[McpSession] = WeakSet()


class CallRefused(Exception):
    """The server answers a call with an error, such as wrong arguments; the message is its own."""


class McpSession:
    """A session with a server. ``tools``: the tools that it listed at the beginning. Safe for several threads."""

    def __init__(self, server: ReadyServer) -> None:
        """Connect and list the tools. Raises BackendError, StoppedError."""
        self._server = server
        self._errors = ErrorOutput() if server.entry.command else None
        self._status = 0
        self._fault: BaseException | None = None
        self._running = start_blocking_portal(name=f"mcp {server.name}")
        self._portal = self._running.__enter__()
        self._closing = threading.Lock()
        self._closed = False
        self._opened: Future[tuple[Client, tuple[ListedTool, ...]]] = Future()
        self._end: anyio.Event | None = None
        _OPEN.add(self)
        self._holding = self._portal.start_task_soon(self._hold)
        try:
            self._client, self.tools = self._wait(self._opened, CONNECT_SECONDS, CONNECT_SECONDS)
        except BaseException:
            self.close()
            raise

    def call(self, name: str, arguments: dict[str, Any], seconds: float) -> types.CallToolResult:
        """Call a tool. Raises CallRefused if the server answers with an error, BackendError if it does not answer,
        StoppedError.
        """
        request = types.CallToolRequest(
            params=types.CallToolRequestParams(name=name, arguments=arguments)
        )

        # The client's own ``call_tool`` also checks structured results by the server's schema, whose patterns
        # could block the process.
        async def call() -> types.CallToolResult:
            return await self._client.session.send_request(
                request, types.CallToolResult, request_read_timeout_seconds=seconds
            )

        try:
            future = self._portal.start_task_soon(call)
        except RuntimeError:  # the loop has ended
            raise self._end_with(anyio.ClosedResourceError(), seconds) from None
        return self._wait(future, seconds + GRACE, seconds)

    def close(self) -> None:
        """End the session and the server's program; may be called more than once."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            _OPEN.discard(self)
            if self._errors is not None:
                self._errors.file.close()
            with suppress(RuntimeError):
                self._portal.start_task_soon(self._let_end)
            with suppress(BaseException):
                self._holding.result(CLOSE_SECONDS)
            self._holding.cancel()
            self._running.__exit__(None, None, None)

    # in the event loop

    async def _let_end(self) -> None:
        if self._end is not None:
            self._end.set()

    async def _hold(self) -> None:
        """Keep the client open until the session ends. A fault of the server is kept for the threads that wait."""
        self._end = anyio.Event()
        scope = anyio.CancelScope()

        def end_at_once() -> None:
            self._fault = TooLongMessage()
            scope.cancel()

        on_long_line.set(end_at_once)
        try:
            with scope:
                await self._connect(self._end)
        except Exception as error:  # of the server, its transport or the SDK; it must not end the process's other work
            self._fault = error
        if not self._opened.done():
            self._opened.set_exception(self._fault or anyio.ClosedResourceError())

    async def _connect(self, end: anyio.Event) -> None:
        async with AsyncExitStack() as stack:
            transport = await self._transport(stack)
            client = await stack.enter_async_context(
                Client(transport, cache=None, client_info=ABOUT_US)
            )
            if self._errors is not None:
                self._errors.file.close()
            tools = tuple(map(self._describe, await _list_tools(client)))
            self._opened.set_result((client, tools))
            await end.wait()

    def _describe(self, tool: types.Tool) -> ListedTool:
        about = self._server.hide_secrets(tool.description or tool.title or "")
        return ListedTool(tool.name, about, tool.input_schema)

    async def _transport(self, stack: AsyncExitStack) -> AbstractAsyncContextManager[Any]:
        entry = self._server.entry
        if self._errors is not None:
            parameters = StdioServerParameters(
                command=expanduser(entry.command),
                args=entry.args,
                env=dict(self._server.env),
                cwd=expanduser(entry.cwd) or None,
                encoding=LINES,
                encoding_error_handler="replace",
            )
            return stdio_client(parameters, self._errors.file)
        client = httpx2.AsyncClient(
            headers={"accept-encoding": "identity", **self._server.headers},
            timeout=httpx2.Timeout(30.0, read=None),
            event_hooks={"response": [self._note_status, limit_body]},
        )
        await stack.enter_async_context(client)
        return streamable_http_client(entry.url, http_client=client, max_sse_event_size=MAX_MESSAGE)

    async def _note_status(self, response: httpx2.Response) -> None:
        self._status = response.status_code

    # in the threads that wait

    def _wait(self, future: Future[T], longest: float, seconds: float) -> T:
        """Wait for a result, or for the thread's stop, at most ``longest`` seconds; ``seconds``: the limit to report.

        Raises CallRefused, StoppedError, and BackendError, after which the session is closed.
        """
        ended = threading.Event()
        future.add_done_callback(lambda _: ended.set())
        with stop_of_thread().waking(ended.set):
            ended.wait(longest)
        if not future.done():
            future.cancel()
            stop_of_thread().check()
            raise self._end_with(TimeoutError(), seconds)
        try:
            return future.result()
        except MCPError as error:
            if error.code in REPLIES and error.message != REFUSED:
                raise CallRefused(self._server.hide_secrets(error.message)) from None
            raise self._end_with(error, seconds) from None
        except (Exception, CancelledError) as error:
            raise self._end_with(error, seconds) from None

    def _end_with(self, error: BaseException, seconds: float) -> BackendError:
        """Close the session; return the error for the user."""
        self.close()
        if _is_end(error) and self._fault is not None:
            error = self._fault
        while inner := getattr(error, "exceptions", ()):  # of a group
            error = inner[0]
        reason = self._server.hide_secrets(self._reason(error, seconds))
        return BackendError(f"The MCP server {self._server.name!r} failed: {reason}.")

    def _reason(self, error: BaseException, seconds: float) -> str:
        """Return the cause of an error, without a capital and a full stop."""
        if isinstance(error, TimeoutError) or getattr(error, "code", 0) == types.REQUEST_TIMEOUT:
            return f"it did not answer within {seconds:g} seconds"
        if isinstance(error, TooLongMessage):
            return f"it sent more than {MAX_MESSAGE // 2**20} MB in one message"
        if isinstance(error, ListTooLong):
            return f"it lists more than {MAX_TOOLS:,} tools"
        if isinstance(error, ValidationError):
            return "its reply does not follow the protocol"
        if _is_end(error):
            end = self._errors.end if self._errors is not None else ""
            return f"it ended ({end.removesuffix('.')})" if end else "it ended"
        if isinstance(error, httpx2.ConnectError):
            return "it cannot be reached"
        if isinstance(error, OSError) and self._errors is not None:
            return f"its command could not be started ({error.strerror or error})"
        if self._status >= 400:
            return f"it answered with the HTTP status {self._status}"
        text = visible_line(" ".join(str(error).split()))[:300].removesuffix(".")
        return text or type(error).__name__


class ListTooLong(Exception):
    """A server lists more than MAX_TOOLS tools, or more than MAX_PAGES pages of them."""


async def _list_tools(client: Client) -> list[types.Tool]:
    tools: list[types.Tool] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None or len(tools) > MAX_TOOLS:
            break
    if cursor is not None or len(tools) > MAX_TOOLS:
        raise ListTooLong
    return tools


def _is_end(error: BaseException) -> bool:
    """Return whether an error only says that the session is over."""
    closed = (anyio.ClosedResourceError, anyio.BrokenResourceError, CancelledError)
    return isinstance(error, closed) or getattr(error, "code", 0) == types.CONNECTION_CLOSED


@atexit.register
def close_all() -> None:
    """End every session, so that no program of a server outlives this process."""
    for session in list(_OPEN):
        session.close()
