"""The tabs of the page, one file each: ``build(workbench, session)`` draws inside a ``gr.Tab``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rallebench.core.registry import Registry

TABS: Registry[Callable[..., Any]] = Registry(
    "tab", "rallebench.gui.tabs", traits={"label": "its title", "order": "its place"}
)
