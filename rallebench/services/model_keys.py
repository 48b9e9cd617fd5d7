"""A key that is typed for a server: it is held in memory until the program ends, and no file or log has it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rallebench.core.errors import UsageError
from rallebench.http.endpoint import OPENAI, hold_key, is_typed
from rallebench.services.model_entries import key_of

if TYPE_CHECKING:
    from rallebench.services.workbench import Workbench


def with_key(settings: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The settings of a server that is sent the typed ``key``; '' leaves them as they are.

    The entry names a variable as always: that which the server has, else one made of its address, so that the same
    entry finds its key in the environment later. Raises UsageError for what can be no key.
    """
    settings = dict(settings)
    if not key.strip():
        return settings
    variable = key_of(settings).variable
    if not variable:
        variable = variable_for(str(settings.get("base_url") or OPENAI))
        settings["api_key_env"] = variable
    hold_key(variable, key)
    return settings


def variable_for(base_url: str) -> str:
    """The name of a variable for the key of a server.

    >>> variable_for("https://api.example.com:8443/v1"), variable_for("http://10.0.0.7/v1")
    ('API_EXAMPLE_COM_KEY', 'SERVER_10_0_0_7_KEY')
    """
    host = re.sub(r"[^A-Z0-9]+", "_", (urlsplit(base_url).hostname or "server").upper()).strip("_")
    return f"{'SERVER_' if host[:1].isdigit() else ''}{host}_KEY"


def set_key(workbench: Workbench, name: str, key: str) -> str:
    """Hold a typed key for a model of the workspace, or forget it ('' as key); returns a sentence.

    The model is unloaded, so that its next answer is asked with the new key. Raises UsageError while it is in use.
    """
    entry = workbench.models.entry(name)
    if entry.backend != "openai_compatible":
        raise UsageError(f"{name!r} runs in this program and needs no key.")
    if workbench.models.is_loaded(name):
        workbench.models.unload(name)
    if not key.strip():
        variable = key_of(entry.settings).variable
        if variable:
            hold_key(variable, "")
        return f"The key of {name} is forgotten."
    settings = with_key(entry.settings, key)
    if settings != entry.settings:
        workbench.models.add(name, entry.model_copy(update={"settings": settings}), replace=True)
    return f"The key is kept in memory until rallebench ends; {name} uses it from now on."


def typed(settings: Mapping[str, Any]) -> bool:
    """Whether the key of a server was typed in this process."""
    variable = key_of(settings).variable
    return bool(variable) and is_typed(variable)
