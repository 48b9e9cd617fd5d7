"""The tools of a server of the Model Context Protocol, called as the server describes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rallebench.core.json_values import JsonValue
from rallebench.core.settings import dataclass_form
from rallebench.core.structured import decode_json
from rallebench.core.types import Json, ToolSpec, UseTool
from rallebench.environments import ENVIRONMENTS, MakeEnvironment, Observed
from rallebench.environments._calls import Unreadable, read_arguments
from rallebench.environments._tools import invalid_action, unknown_tool
from rallebench.environments.mcp_servers.calls import CallSettings
from rallebench.environments.mcp_servers.listing import OfferedTool, explain_arguments

FINISHED = "Episode finished."


class McpServerTools:
    """The tools of one episode. They share the session of the run, and with it any state of the server."""

    brackets = "()"

    def __init__(self, backend: str, offered: Sequence[OfferedTool]) -> None:
        self._backend = backend
        self._names = {tool.spec.name: tool.listed.name for tool in offered}
        self.tools = tuple(tool.spec for tool in offered)
        self.explanations = {
            spec.name: explain_arguments(spec) for spec in self.tools if spec.arguments
        }

    def act(self, verb: str, argument: str) -> Observed:
        """See Environment. A tool without arguments may be written without brackets, and ignores any text in them."""
        name = verb.strip().removesuffix("()").lower()
        if name == "finish":
            return FINISHED
        spec = next((spec for spec in self.tools if spec.name.lower() == name), None)
        if spec is None:
            return invalid_action(self.tools)
        try:
            values = _read_values(argument, spec) if spec.arguments else {}
        except Unreadable as error:
            return f"{spec.name}: {error}"
        return (yield from self.call(spec.name, values))

    def call(self, name: str, arguments: Json) -> Observed:
        spec = next((spec for spec in self.tools if spec.name == name), None)
        if spec is None:
            return unknown_tool(self.tools, name)
        if wrong := _fault(spec, arguments):
            return wrong
        text = json.dumps(dict(arguments), ensure_ascii=False)
        reply = yield UseTool(self._backend, {"api": self._names[name], "arguments": text})
        return reply.text


def _fault(spec: ToolSpec, arguments: Json) -> str:
    """Return one sentence about a missing or unknown argument, or ''. The server checks the values."""
    for key in spec.required_names:
        if key not in arguments:
            return f"{spec.name} needs {key}; it is missing."
    closed = spec.parameters.get("additionalProperties", True) is False
    for key in arguments:
        if closed and key not in spec.arguments:
            takes = ", ".join(spec.arguments) or "no arguments"
            return f"{spec.name} takes {takes}; {str(key)[:100]!r} is none of them."
    return ""


def _read_values(text: str, spec: ToolSpec) -> dict[str, JsonValue]:
    """Return the arguments of a call in a text: a JSON object, or texts that become values of the schema's types."""
    value = decode_json(text) if text.lstrip().startswith("{") else None
    if isinstance(value, dict):
        return value
    texts = read_arguments(text, spec.arguments)
    return {name: _json_value(written, spec.properties[name]) for name, written in texts.items()}


def _json_value(text: str, schema: Json) -> JsonValue:
    """Return the JSON value of a text if the schema takes another type than text, else the text.

    >>> _json_value("5", {"type": "integer"}), _json_value("5", {"type": "string"}), _json_value("Titan", {"type": "integer"})
    (5, '5', 'Titan')
    """
    kinds = schema.get("type", "string")
    if kinds == "string":
        return text
    value = decode_json(text.lower() if text in ("True", "False") else text)
    return text if value is None else value


@ENVIRONMENTS.register("mcp", form=dataclass_form(CallSettings), server=True)
def mcp(*, tool: str, offered: Sequence[OfferedTool], **_: Any) -> MakeEnvironment:
    """The tools of a configured MCP server, named as mcp:NAME."""
    return lambda: McpServerTools(tool, offered)
