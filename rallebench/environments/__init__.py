"""Environments of an agent: named verbs that return observations, over local data only.

Each episode has its own environment, which holds the open page or the last search. Its verbs are flows: they yield
requests (``Retrieve``, ``UseTool``, or a ``Note`` for the trace) and return the observation, so agents are batched,
cached and traced like chains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rallebench.core.registry import Registry
from rallebench.core.types import Json, SubFlow, ToolSpec

Observed = SubFlow[str]
"""The flow of a verb; it returns the observation."""


class Environment(Protocol):
    """The verbs of one episode. A model's wrong verb or argument leads to an observation, not to an error.

    ``brackets``: the pair around an argument in a text protocol, ``"[]"`` or ``"()"``. ``tools``: the verbs for tool
    calls and programs, without the verb that ends the episode.
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
    },
)
"""Factories: ``factory(**settings) → MakeEnvironment``."""
