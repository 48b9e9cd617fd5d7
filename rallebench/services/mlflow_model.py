"""A chain that was logged to MLflow as a model, opened over a workspace: it answers as Chat does."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rallebench.chains.saved import chain_from_json
from rallebench.core.events import complete
from rallebench.core.types import Chain, Episode, Message
from rallebench.engine.store import RunFolder
from rallebench.services.workbench import Workbench
from rallebench.tracking.models import log_model

WORKSPACE_VARIABLE = "RALLEBENCH_WORKSPACE"
"""The environment variable that names the workspace where the model's config does not."""


def log_chain(workbench: Workbench, folder: RunFolder, run_id: str) -> str:
    """Log the chain of a run as a model of its MLflow run; the model's address. Raises RalleError."""
    model = log_model(
        folder.path,
        run_id,
        f"{open_chain.__module__}:{open_chain.__qualname__}",
        workspace=workbench.workspace.path,
        tracking_uri=workbench.tracking_uri,
    )
    return f"models:/{model}"


def open_chain(
    chain: Mapping[str, Any], config: Mapping[str, Any]
) -> Callable[[str, Sequence[Mapping[str, str]]], dict[str, Any]]:
    """Load all that the chain names; returns (question, earlier messages) → ``answer``, ``error``, ``pages``.

    ``config``: ``workspace`` ('' = the environment's RALLEBENCH_WORKSPACE, or else the current folder) and
    ``base_settings``, RaLLe's file of models and retrievers. Raises RalleError for what is not there.
    """
    folder = config.get("workspace") or os.environ.get(WORKSPACE_VARIABLE) or "."
    base = config.get("base_settings")
    workbench = Workbench(Path(folder), base_settings=Path(base) if base else None)
    loaded = chain_from_json(chain)
    lease = workbench.models.lease(
        f"the MLflow model of the chain {loaded.name!r}"
    )  # for as long as the process lives
    complete(lease.load_for(loaded.llms, loaded.retrievers))
    return partial(_ask, workbench, loaded)


def _ask(
    workbench: Workbench, chain: Chain, question: str, history: Sequence[Mapping[str, str]]
) -> dict[str, Any]:
    earlier = [Message(message["role"], message["content"]) for message in history]
    *_, episode = workbench.asking.chat(chain, earlier, question)
    assert isinstance(episode, Episode)
    pages = dict.fromkeys(hit.passage.page_id or hit.passage.doc_id for hit in episode.hits)
    return {
        "answer": "" if episode.error else episode.answer,
        "error": episode.error,
        "pages": list(pages),
    }
