"""Index builds as their progress and their manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rallebench.core.entries import Manifest
from rallebench.corpora.chunking import choose
from rallebench.workspace.indexes.build import Building

if TYPE_CHECKING:
    from rallebench.services.workbench import Workbench


def build(
    workbench: Workbench,
    name: str,
    corpus: str,
    kind: str,
    *,
    chunk: Mapping[str, Any],
    **settings: Any,
) -> Iterator[Building | dict[str, Any]]:
    """Build an index: yields progress, last the manifest as JSON. ``chunk``: as ``corpora.chunking.choose`` takes it.

    Raises UsageError.
    """
    for event in workbench.data.build_index(
        name, corpus, kind, chunking=choose(**chunk), **settings
    ):
        yield event.model_dump() if isinstance(event, Manifest) else event
