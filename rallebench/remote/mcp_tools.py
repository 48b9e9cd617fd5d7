"""The calls as tools of MCP. Each runs in a thread, reports its progress, and stops when its client cancels it or leaves."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from concurrent.futures import CancelledError
from functools import partial

import anyio
import anyio.from_thread
import anyio.to_thread
from mcp import MCPError, types
from mcp.server import ServerRequestContext
from mcp.server.mcpserver.tools import Tool

from rallebench.core.errors import READ_ONLY, StoppedError
from rallebench.core.events import Event, Progress
from rallebench.core.registry import unknown
from rallebench.core.stopping import Stop, obeying
from rallebench.core.surrogates import without_halves
from rallebench.remote.calls import CALLS, Calls, Effect
from rallebench.remote.wording import CallError, in_one_sentence
from rallebench.services.workbench import Workbench

AT_ONCE = 16
"""Concurrent calls that ask a model, and as many others; further calls wait without a thread."""


class Tools:
    """The tools over one workbench. If it is read-only, those that ask a model or start a run are neither listed nor called."""

    def __init__(self, workbench: Workbench) -> None:
        self._bench, calls = workbench, Calls(workbench)
        may_work = not workbench.workspace.read_only
        offered = {name: effect for name, effect in CALLS.items() if may_work or not effect.works}
        self._tools = {
            name: Tool.from_function(calls.by_name(name), annotations=_annotations(effect))
            for name, effect in offered.items()
        }
        self._stops: set[Stop] = set()
        self._limits = {works: anyio.CapacityLimiter(AT_ONCE) for works in (False, True)}

    async def list(
        self, _: ServerRequestContext, __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """Handle ``tools/list``."""
        tools = [
            types.Tool(
                name=name,
                description=inspect.cleandoc(tool.description).replace("``", "`"),
                input_schema={**tool.parameters, "additionalProperties": False},
                output_schema=tool.output_schema,
                annotations=tool.annotations,
            )
            for name, tool in self._tools.items()
        ]
        return types.ListToolsResult(tools=tools)

    async def call(
        self, context: ServerRequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Handle ``tools/call``. Raises MCPError for an unknown tool."""
        name = params.name
        if name not in CALLS:
            raise MCPError(types.INVALID_PARAMS, unknown("tool", name, [*CALLS]))
        if name not in self._tools:
            return _refusal(
                f"{READ_ONLY.removesuffix('.')}; 'rallebench mcp --allow-run' permits it."
            )
        stop = Stop()
        self._stops.add(stop)
        work = partial(self._answer, context, name, params.arguments or {}, stop)
        limiter = self._limits[CALLS[name].works]
        try:
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=limiter)
        finally:
            stop.set()  # ends the work of an abandoned thread
            self._stops.remove(stop)

    def stop_calls(self) -> None:
        """Stop all running and waiting calls."""
        for stop in list(self._stops):
            stop.set()

    def _answer(
        self,
        context: ServerRequestContext,
        name: str,
        arguments: Mapping[str, object],
        stop: Stop,
    ) -> types.CallToolResult:
        calls = Calls(self._bench, _Reporter(context, stop).hear)
        try:
            with obeying(stop):
                value = in_one_sentence(calls.by_name(name), CallError)(**arguments)
        except CallError as error:
            return _refusal(str(error))
        wrapped = {"result": value} if self._tools[name].fn_metadata.wrap_output else value
        text = without_halves(json.dumps(wrapped, ensure_ascii=False))
        return types.CallToolResult(
            content=[types.TextContent(text=text)], structured_content=json.loads(text)
        )


class _Reporter:
    """Sends the progress of a question to the client, from the thread that answers it."""

    def __init__(self, context: ServerRequestContext, stop: Stop) -> None:
        self._session, self._stop, self._count = context.session, stop, 0

    def hear(self, event: Event) -> None:
        """Report an event. Raises StoppedError once the client has cancelled the call."""
        self._stop.check()
        if isinstance(event, Progress):
            self._count += 1  # the protocol asks for rising numbers
            report = partial(self._session.report_progress, self._count, message=event.message)
            try:
                anyio.from_thread.run(report)
            except CancelledError:
                raise StoppedError("The call was cancelled.") from None


def _refusal(sentence: str) -> types.CallToolResult:
    text = types.TextContent(text=without_halves(sentence))
    return types.CallToolResult(content=[text], is_error=True)


def _annotations(effect: Effect) -> types.ToolAnnotations:
    return types.ToolAnnotations(
        read_only_hint=not effect.works,
        destructive_hint=False,  # replies and runs are added, never changed or deleted
        idempotent_hint=effect.repeatable,
        open_world_hint=effect.works,  # a model may be another server's
    )
