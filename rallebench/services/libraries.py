"""Import the libraries of a load in advance; for a small model this takes longer than the load itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rallebench.core.errors import RalleError
from rallebench.core.starter import STARTER_INDEXES
from rallebench.encoders.references import resolve
from rallebench.llms import LLMS
from rallebench.retrievers import needs_encoder
from rallebench.workspace.indexes.recipes import starter_recipe
from rallebench.workspace.paths import WorkspaceFolder

ABOUT = "importing PyTorch and transformers"
"""Message shown while they are imported."""


def importer(workspace: WorkspaceFolder, name: str, kind: str) -> Callable[[], None] | None:
    """Return a function that imports the libraries of a load in advance; None if there are none.

    ``kind``: ``retriever`` or ``language model``.
    """
    if kind == "retriever":
        reference = find_encoder(workspace, name)
        if not reference:
            return None
        entry, settings = resolve(reference)
        traits = entry.traits
    else:
        llm = workspace.llm(name)
        traits = LLMS.entry(llm.backend).traits if llm.backend in LLMS else {}
        settings = dict(llm.settings)
    work = traits.get("libraries")
    return partial(work, **settings) if work else None


def is_light(workspace: WorkspaceFolder, name: str, kind: str) -> bool:
    """Return whether a load is small and, apart from importing libraries, short, so that it may run beside others."""
    try:
        if kind == "language model":
            backend = workspace.llm(name).backend
            return backend in LLMS and "loading" not in LLMS.entry(backend).traits
        if workspace.retriever(name) is not None:
            return False
        return not find_encoder(workspace, name) or importer(workspace, name, kind) is not None
    except RalleError:  # the load itself reports the problem
        return False


def find_encoder(workspace: WorkspaceFolder, index: str) -> str:
    """Return the encoder of an index, including starter indexes not built yet; '' if it has none."""
    manifest = workspace.manifests().get(index)
    if manifest is not None:
        return manifest.encoder_name if needs_encoder(manifest.kind) else ""
    return starter_recipe(index).encoder if index in STARTER_INDEXES else ""
