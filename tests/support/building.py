"""Indexes built for a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rallebench.core.entries import Manifest
from rallebench.core.events import complete
from rallebench.workspace.indexes.build import build_index
from rallebench.workspace.indexes.recipes import index_recipe


def built(
    indexes: Path,
    name: str,
    corpus: Path,
    kind: str,
    *,
    encoder: Any = None,
    source: Path | None = None,
    ids: Path | None = None,
    **recipe: Any,
) -> Manifest:
    """The manifest of a new index. ``encoder``: an open one, or its reference; ``recipe``: see ``index_recipe``."""
    reference = encoder if isinstance(encoder, str) else getattr(encoder, "name", "minilm")
    opened = None if isinstance(encoder, str) else encoder
    made_of = index_recipe(corpus, kind, encoder=reference, **recipe)
    return complete(build_index(indexes, name, made_of, encoder=opened, source=source, ids=ids))
