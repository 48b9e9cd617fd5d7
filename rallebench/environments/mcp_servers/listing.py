"""The tools that a server lists, as tools for a model: names that every workflow can write, checked schemas, digests."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rallebench.core.errors import UsageError
from rallebench.core.own_files import is_too_deep
from rallebench.core.registry import unknown
from rallebench.core.structured import schema_fault
from rallebench.core.terminal import visible_line
from rallebench.core.text import split_names
from rallebench.core.types import Json, ToolSpec, digest

MAX_OFFERED = 128
"""Maximum tools in a prompt; OpenAI takes as many functions."""
MAX_SCHEMA = 50_000
"""Maximum characters of a tool's JSON schema."""
MAX_DESCRIPTION = 4_000
"""Maximum characters of a description in a prompt."""
MAX_NAME = 64
"""Maximum characters of a tool's name in a prompt, and of an argument's name; OpenAI takes no longer function names."""
LONGEST_ABOUT = 300
"""Maximum characters of an argument's description in a text."""
RESERVED = frozenset({"finish", *keyword.kwlist})
"""Names that end an episode, or that a program cannot call."""


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool as the server lists it."""

    name: str
    description: str
    schema: Json

    @property
    def digest(self) -> str:
        """12 hex digits that change with the name, the description and the schema."""
        return digest([self.name, self.description, self.schema])[:12]


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as it is offered to a model. ``listed``: the server's own description of it."""

    spec: ToolSpec
    listed: ListedTool


def choose(server: str, tools: Sequence[ListedTool], names: str) -> tuple[OfferedTool, ...]:
    """Return the tools ``names`` (with commas; '' for all) of a server. Raises UsageError if one cannot be offered."""
    chosen, known = split_names(names), [tool.name for tool in tools]
    for name in chosen:
        if name not in known:
            readable = [visible_line(other)[:MAX_NAME] for other in known]
            raise UsageError(f"The MCP server {server!r}: {unknown('tool', name, readable)}")
    offered = [tool for tool in tools if not chosen or tool.name in chosen]
    if not offered:
        raise UsageError(f"The MCP server {server!r} lists no tools, so an agent cannot use it.")
    if len(offered) > MAX_OFFERED:
        raise UsageError(
            f"The MCP server {server!r} lists {len(offered):,} tools, and at most {MAX_OFFERED} can be offered; "
            "name some with the setting tools=A,B."
        )
    spellings: set[str] = set()
    return tuple(_offer(server, tool, known, spellings) for tool in offered)


def _offer(server: str, tool: ListedTool, known: Sequence[str], spellings: set[str]) -> OfferedTool:
    readable = visible_line(tool.name)[:MAX_NAME]
    about = visible_line(" ".join(tool.description.split()))
    if len(about) > MAX_DESCRIPTION:
        about = f"{about[:MAX_DESCRIPTION]} …"
    name = _spelling(tool.name, spellings)
    spec = ToolSpec(name, about or f"The tool {readable}.", tool.schema)
    if fault := "it is listed twice" if known.count(tool.name) > 1 else _fault(spec):
        raise UsageError(
            f"The tool {readable!r} of the MCP server {server!r} cannot be offered: {fault}; mend the server, or name "
            "other tools with the setting tools=A,B."
        )
    spellings.add(name.lower())
    return OfferedTool(replace(spec, parameters=_object(spec)), tool)


def _spelling(name: str, others: set[str]) -> str:
    """Return a name of letters, digits and ``_``, which text protocols and programs can write, unlike any of ``others``.

    >>> _spelling("read-file", set()), _spelling("read.file", {"read_file"}), _spelling("finish", set())
    ('read_file', 'read_file_2', 'finish_')
    """
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)[: MAX_NAME - 4]
    plain = f"_{plain}" if not plain or plain[0].isdigit() else plain
    plain = f"{plain}_" if plain.lower() in RESERVED or plain in RESERVED else plain
    spelling, number = plain, 2
    while spelling.lower() in others:
        spelling, number = f"{plain}_{number}", number + 1
    return spelling


def _fault(spec: ToolSpec) -> str:
    """Return the reason why calls of a tool cannot be written, or ''."""
    if is_too_deep(spec.parameters):
        return "its schema is nested too deeply"
    try:
        length = len(json.dumps(spec.parameters, allow_nan=False))
    except ValueError:
        return "its schema holds a number that JSON does not have"
    if length > MAX_SCHEMA:
        return f"its schema has {length:,} characters, more than {MAX_SCHEMA:,}"
    if fault := schema_fault(spec.parameters):
        return f"its schema is not a JSON schema ({fault})"
    for name in spec.arguments:
        if not name.isprintable() or not 0 < len(name) <= MAX_NAME:
            return (
                f"its argument {visible_line(name)[:MAX_NAME]!r} has a name that cannot be written"
            )
    return ""


def _object(spec: ToolSpec) -> Json:
    """Return the schema of an object with all of its parts; ``true`` as an argument's schema becomes ``{}``."""
    plain = {
        name: schema if isinstance(schema, Mapping) else {}
        for name, schema in spec.properties.items()
    }
    required = [name for name in spec.required_names if name in plain]
    return {**spec.parameters, "type": "object", "properties": plain, "required": required}


def explain_arguments(spec: ToolSpec) -> str:
    """Describe the arguments of a tool by its schema, in one line.

    >>> schema = {"properties": {"a": {"type": "integer", "description": "a moon"}, "b": {}}, "required": ["a"]}
    >>> explain_arguments(ToolSpec("orbit", "", schema))
    'Arguments: a (integer): a moon; b (optional).'
    """
    parts = []
    for name, schema in spec.properties.items():
        kind, about = schema.get("type", ""), schema.get("description", "")
        marks = [
            kind if isinstance(kind, str) else "",
            "" if name in spec.required_names else "optional",
        ]
        noted = f" ({', '.join(filter(None, marks))})" if any(marks) else ""
        words = visible_line(" ".join(str(about).split()))[:LONGEST_ABOUT].removesuffix(".")
        parts.append(f"{name}{noted}: {words}" if words else f"{name}{noted}")
    return f"Arguments: {'; '.join(parts)}."
