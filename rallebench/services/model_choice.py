"""The entry of a language model, or the settings of its server, from a preset, a backend or a stored entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rallebench.core.entries import LLMEntry
from rallebench.llms import presets

if TYPE_CHECKING:
    from rallebench.services.workbench import Workbench


def entry_of(
    workbench: Workbench,
    settings: Mapping[str, Any],
    *,
    preset: str = "",
    backend: str = "",
    changes: str = "",
) -> LLMEntry:
    """The entry of a preset or a backend with ``settings``; else the stored entry ``changes`` with these settings changed.

    Raises NotFoundError.
    """
    if preset:
        return presets.entry_of(preset, dict(settings))
    if backend:
        return LLMEntry(backend=backend, settings=dict(settings))
    before = workbench.models.entry(changes)
    return LLMEntry(backend=before.backend, settings={**before.settings, **settings})


def server_settings(
    workbench: Workbench,
    settings: Mapping[str, Any],
    *,
    preset: str = "",
    model: str = "",
    base_url: str = "",
    api_key_env: str = "",
) -> dict[str, Any]:
    """The settings that reach a server: of a preset or a model, then ``settings``, then its address and the variable of its key."""
    base: Mapping[str, Any] = {}
    if preset:
        base = presets.entry_of(preset).settings
    elif model:
        base = workbench.workspace.llm(model).settings
    own = {"base_url": base_url, "api_key_env": api_key_env}
    return {**base, **settings, **{name: value for name, value in own.items() if value}}
