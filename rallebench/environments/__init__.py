"""What an agent can act on: named verbs with observations, over local data only.

An environment is made anew for every episode and keeps what that episode opened (a page, a search). Its answers are
flows of their own: they yield what they need to ask (a ``Retrieve``, a ``UseTool``, a ``Note`` for the trace) and
return the observation, so that agents are batched, remembered and traced like anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, Protocol

from rallebench.core.registry import Registry
from rallebench.core.types import Reply, Request, ToolSpec

Observed = Generator[Request, Reply, str]


class Environment(Protocol):
    """What a workflow acts on. No method raises for what a model wrote: a wrong verb or argument is an observation.

    ``brackets``: how a text protocol writes an argument, ``"[]"`` or ``"()"``. ``tools``: the verbs, for tool calls and for
    programs, without the one that ends an episode.
    """

    brackets: str
    tools: tuple[ToolSpec, ...]

    def act(self, verb: str, argument: str) -> Observed:
        """The observation of one action as a text protocol writes it: ``Search[Ada Lovelace]``."""
        ...

    def call(self, name: str, arguments: Mapping[str, Any]) -> Observed:
        """The observation of a tool call; ``arguments`` by the names of the tool's JSON schema."""
        ...


MakeEnvironment = Callable[[], Environment]
"""A new environment, for one episode."""

ENVIRONMENTS: Registry[Callable[..., MakeEnvironment]] = Registry(
    "environment", "rallebench.environments"
)
"""Factories: ``factory(**settings) → MakeEnvironment``. Traits: ``settings``, name → Setting; ``retriever``: whether
one of them names a retriever (setting ``retriever``); ``table``: whether one names a scholar table (setting ``table``)."""
