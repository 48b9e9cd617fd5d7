"""The price of using a workspace's language models."""

from __future__ import annotations

from collections.abc import Mapping

from rallebench.core.entries import LLMEntry
from rallebench.core.prices import FREE
from rallebench.llms import LLMS
from rallebench.workspace.paths import WorkspaceFolder


def prices_of_use(workspace: WorkspaceFolder) -> dict[str, Mapping[str, float] | None]:
    """Language model → its ``price_of_use``."""
    return {name: price_of_use(entry) for name, entry in workspace.llms().items()}


def price_of_use(entry: LLMEntry) -> Mapping[str, float] | None:
    """The price of using a model, by its entry alone. A model behind a server has the prices of its entry, even if the
    server runs on this machine, because that may be a proxy; without prices they are unknown. Any other model is free."""
    is_server = entry.backend not in LLMS or "base_url" in LLMS.entry(entry.backend).form
    return entry.prices or (None if is_server else FREE)
