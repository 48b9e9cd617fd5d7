"""Environments of an agent: named verbs that return observations, over local data or the tools of a configured server.

Each episode has its own environment, which holds the open page or the last search. Its verbs are flows: they yield
requests (``Retrieve``, ``UseTool``, or a ``Note`` for the trace) and return the observation, so agents are batched,
cached and traced like chains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from rallebench.core.errors import NotFoundError
from rallebench.core.registry import Entry, Registry, unknown
from rallebench.core.types import Json, SubFlow, ToolSpec

Observed = SubFlow[str]
"""The flow of a verb; it returns the observation."""


class Environment(Protocol):
    """The verbs of one episode. A model's wrong verb or argument leads to an observation, not to an error.

    ``brackets``: the pair around an argument in a text protocol, ``"[]"`` or ``"()"``. ``tools``: the verbs for tool
    calls and programs, without the verb that ends the episode. An environment may have
    ``explanations``: verb → a line about its arguments for prompts in text; the published prompts only name them.
    """

    brackets: str
    tools: tuple[ToolSpec, ...]

    def act(self, verb: str, argument: str) -> Observed:
        """Return the observation of an action of a text protocol, such as ``Search[Ada Lovelace]``."""
        ...

    def call(self, name: str, arguments: Json) -> Observed:
        """Return the observation of a tool call; ``arguments`` have the names of the tool's JSON schema."""
        ...


MakeEnvironment = Callable[[], Environment]
"""Makes a new environment, for one episode."""

ENVIRONMENTS: Registry[Callable[..., MakeEnvironment]] = Registry(
    "environment",
    "rallebench.environments",
    expects="a function (**settings) → a function () that makes an Environment",
    traits={
        "retriever": "True if its setting retriever names an index to search",
        "pages": "True if it is given the page stores of its retriever",
        "table": "True if its setting table names a scholar table",
        "server": "True if it is named with a configured server, as mcp:NAME",
    },
)
"""Factories: ``factory(**settings) → MakeEnvironment``."""


def environment_entry(name: str) -> Entry[Callable[..., MakeEnvironment]]:
    """Return the entry of an environment, also of one that is named with a server. Raises NotFoundError."""
    kind, _, server = name.partition(":")
    entry = ENVIRONMENTS.entry(kind) if kind in ENVIRONMENTS else None
    if entry is None or bool(entry.traits.get("server")) != bool(server) or name.endswith(":"):
        raise NotFoundError(unknown("environment", name, environment_names(["NAME"])))
    return entry


def environment_names(servers: Iterable[str]) -> tuple[str, ...]:
    """Return the names of all environments, with those of the configured servers."""
    listings = ENVIRONMENTS.listings()
    local = (name for name, item in listings.items() if not item.traits.get("server"))
    remote = (name for name, item in listings.items() if item.traits.get("server"))
    return (*local, *(f"{name}:{server}" for name in remote for server in servers))
