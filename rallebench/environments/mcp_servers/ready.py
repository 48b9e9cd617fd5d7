"""A configured server with its variables filled in, and texts of the server without these values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Template

from rallebench.core.entries import McpServerEntry
from rallebench.core.errors import UsageError

SHORTEST_SECRET = 6
"""Characters of the shortest value that is hidden; shorter ones occur in ordinary text."""
HIDDEN = "…"


@dataclass(frozen=True, slots=True)
class ReadyServer:
    """A server that can be connected to. ``env``, ``headers``: filled in; ``secrets``: the values of the variables in them."""

    name: str
    entry: McpServerEntry
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def hide_secrets(self, text: str) -> str:
        """Return a text of the server without the values of variables, because texts are stored in runs."""
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        return text


def fill_in(name: str, entry: McpServerEntry) -> ReadyServer:
    """Fill in every ``$VARIABLE`` of an entry's ``env`` and ``headers``. Raises UsageError for a variable that is not set."""
    env, of_env = _fill(name, "the variable", entry.env)
    headers, of_headers = _fill(name, "the header", entry.headers)
    secrets = {value for value in (*of_env, *of_headers) if len(value) >= SHORTEST_SECRET}
    longest_first = tuple(sorted(secrets, key=len, reverse=True))
    return ReadyServer(name, entry, env, headers, longest_first)


def _fill(name: str, kind: str, values: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return (the values with variables filled in, the values of these variables)."""
    filled, used = {}, []
    for key, value in values.items():
        template = Template(value)
        try:
            filled[key] = template.substitute(os.environ)
        except KeyError as error:
            raise UsageError(
                f"The MCP server {name!r} takes {kind} {key!r} from {error.args[0]}; set that environment variable."
            ) from None
        except ValueError:
            raise UsageError(
                f"The MCP server {name!r}: {kind} {key!r} has a $ without the name of a variable; write $$ for the sign."
            ) from None
        used += [os.environ[variable] for variable in _variables(template)]
    return filled, used


def _variables(template: Template) -> list[str]:
    """Return the variables of a template; ``Template.get_identifiers`` needs Python 3.11."""
    matches = template.pattern.finditer(template.template)
    return [name for match in matches if (name := match["named"] or match["braced"])]
