"""How a question is answered: one published way of acting per file, each a flow.

A workflow is a generator function ``workflow(question, **settings) → Flow``. It knows the question, a language model's
name and an environment of its own, never the gold.
"""

from __future__ import annotations

from collections.abc import Callable

from rallebench.registry import Registry
from rallebench.types import Flow

WORKFLOWS: Registry[Callable[..., Flow]] = Registry("workflow", "rallebench.workflows")
"""Flows: ``workflow(question, *, llm, env, shots, limits, **settings)``. Traits: ``settings``, name → Setting; ``needs_env``;
``needs_python``: whether it runs programs; ``paper``."""
