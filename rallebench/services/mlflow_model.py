"""Open a chain that was logged to MLflow as a model; it answers as in Chat."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from rallebench.chains.saved import chain_from_json
from rallebench.core.types import Json
from rallebench.engine.store import RunFolder
from rallebench.services.standalone import LoadedChain
from rallebench.tracking.models import Ask, ChainAnswer, log_model
from rallebench.workspace.paths import WorkspaceFolder

WORKSPACE_VARIABLE = "RALLEBENCH_WORKSPACE"
"""Environment variable that names the workspace if the model's config does not."""


def log_chain(
    workspace: WorkspaceFolder, tracking_uri: str | None, folder: RunFolder, run_id: str
) -> str:
    """Log the chain of a run as a model of its MLflow run; return the model's address. Raises RalleError."""
    model = log_model(
        folder.path,
        run_id,
        f"{open_chain.__module__}:{open_chain.__qualname__}",
        workspace=workspace.path,
        tracking_uri=tracking_uri,
    )
    return f"models:/{model}"


def open_chain(chain: Json, config: Json) -> Ask:
    """Load everything the chain uses; return a function (question, earlier messages) → ``answer``, ``error``,
    ``pages``.

    ``config``: ``workspace`` ('' = the environment's RALLEBENCH_WORKSPACE, or else the current folder) and
    ``base_settings``, RaLLe's file of models and retrievers. Raises RalleError for a missing model or index.
    """
    folder = config.get("workspace") or os.environ.get(WORKSPACE_VARIABLE) or "."
    base = config.get("base_settings")
    loaded = LoadedChain(chain_from_json(chain), folder, Path(base) if base else None)
    return partial(_ask, loaded)


def _ask(chain: LoadedChain, question: str, history: Sequence[Mapping[str, str]]) -> ChainAnswer:
    episode = chain.episode(question, [(turn["role"], turn["content"]) for turn in history])
    pages = dict.fromkeys(hit.passage.page_id or hit.passage.doc_id for hit in episode.hits)
    answer = "" if episode.error else episode.answer
    return {"answer": answer, "error": episode.error, "pages": list(pages)}
