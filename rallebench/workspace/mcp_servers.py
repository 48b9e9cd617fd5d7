"""The file of MCP servers that agents may use. The user names it when starting the program; it is never taken from a workspace,
because a folder received from others must not start programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rallebench.core.entries import McpServerEntry, parse_entry
from rallebench.core.errors import BadFileError, Hint, NotFoundError
from rallebench.core.files import read_json
from rallebench.core.own_files import is_too_deep
from rallebench.core.registry import unknown

MAX_NAME = 64
"""Maximum characters of a server's name."""


@dataclass(frozen=True, slots=True)
class McpServers:
    """The configured servers. ``file``: None if no file is named."""

    file: Path | None = None
    servers: Mapping[str, McpServerEntry] = field(default_factory=dict, repr=False)

    def server(self, name: str) -> McpServerEntry:
        """Return a server by name. Raises NotFoundError."""
        if name in self.servers:
            return self.servers[name]
        sentence = unknown("MCP server", name, list(self.servers))
        if self.file is not None:
            sentence = f"{self.file}: {sentence}"
        raise NotFoundError(sentence, hint=Hint("mcp-servers"))

    def abouts(self) -> dict[str, str]:
        """Name → description, without the command or address, which may hold keys."""
        return {
            name: f"Tools of the MCP server {name}, {'over HTTP' if server.url else 'a program'}."
            for name, server in self.servers.items()
        }


def read_mcp_servers(path: Path) -> McpServers:
    """Read a file ``{"mcpServers": {NAME: {"command": …} or {"url": …}}}``. Raises BadFileError, which quotes no value."""
    value = read_json(path)
    servers = value.get("mcpServers") if isinstance(value, dict) else None
    if not isinstance(servers, dict) or is_too_deep(servers):
        raise BadFileError(
            f'{path} is not a file of MCP servers; it holds {{"mcpServers": {{"NAME": {{"command": …}}}}}}.'
        )
    entries = {}
    for name, server in servers.items():
        place = f"{path}, MCP server {name[:MAX_NAME]!r}"
        if not 0 < len(name) <= MAX_NAME or not name.isprintable() or name != name.strip():
            raise BadFileError(
                f"{place}: a name has 1 to {MAX_NAME} characters that can be printed; rename it."
            )
        entries[name] = parse_entry(McpServerEntry, server, place)
    return McpServers(path, entries)
