"""The templates of a run's chain in MLflow's prompt registry: a version per text, linked from the run.

A prompt is named after its chain and the number of its action (``my-chain.2``), so its versions are the
templates tried in that action. They keep rallebench's ``{question}``, not MLflow's ``{{question}}``.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from typing import Any

from rallebench.core.types import Chain, digest
from rallebench.tracking.connection import MlflowStore, first_line, without_credentials
from rallebench.tracking.content import clean

log = logging.getLogger(__name__)

MAX_TEMPLATE = 100_000
"""MLflow's limit, in characters; a longer template is an artifact of the run only."""

LINKED = "mlflow.linkedPrompts"
"""The tag that links a run to its prompts on MLflow's page."""

_EXPERIMENTS = "_mlflow_experiment_ids"
"""A prompt's tag: the experiments whose pages list it, as ``,1,2,``."""

_UNSUPPORTED = ("ENDPOINT_NOT_FOUND", "NOT_IMPLEMENTED", "FEATURE_DISABLED")
"""MLflow's error codes of a server without prompts; a store without them raises a RuntimeError."""

_without_prompts: set[str] = set()
"""The tracking URIs of servers without prompts."""


def templates(chain: Chain) -> Iterator[tuple[str, str, dict[str, str]]]:
    """(name, text, tags) of the templates of a chain's retrieve and generate actions."""
    for number, action in enumerate(chain.actions, 1):
        text = clean(action.template)
        is_prompt = action.kind in ("retrieve", "generate") and text.strip()
        if is_prompt and len(text) <= MAX_TEMPLATE:
            tags: dict[str, str] = {
                "rallebench.kind": action.kind,
                "rallebench.dialect": action.dialect,
            }
            yield prompt_name(chain.name, number), text, tags


def prompt_name(chain: str, number: int) -> str:
    """A name that MLflow accepts; a checksum replaces the characters that it does not.

    >>> prompt_name("read two", 2), prompt_name("東京", 1)
    ('read-two.2', 'chain-877460.1')
    """
    spaced = re.sub(r"\s+", "-", chain.strip())
    name = re.sub(r"[^a-zA-Z0-9_.-]", "", spaced)
    if name != spaced or not name:
        name = f"{name or 'chain'}-{digest(chain)[:6]}"
    return f"{name[:200]}.{number}"


def register(store: MlflowStore, chain: Chain | None) -> dict[str, str]:
    """Register new templates and return the tag that links a run to its prompts, {} if it has none.

    A failure is a warning and never an error, because the templates are artifacts of the run too. A
    server without prompts is not asked again.
    """
    if chain is None or store.uri in _without_prompts:
        return {}
    try:
        linked = [
            {"name": name, "version": _version(store, name, text, tags)}
            for name, text, tags in templates(chain)
        ]
    except Exception as error:
        if isinstance(error, RuntimeError) or getattr(error, "error_code", "") in _UNSUPPORTED:
            _without_prompts.add(store.uri)
        log.warning(
            "The prompt registry of MLflow at %s cannot be used, so templates are artifacts of their "
            "runs only: %s",
            without_credentials(store.uri),
            first_line(error, store.uri)[:200],
        )
        return {}
    return {LINKED: json.dumps(linked)} if linked else {}


def _version(store: MlflowStore, name: str, text: str, tags: dict[str, str]) -> str:
    """The version with this text (of the newest hundred), created if there is none."""
    client, experiment_id = store.client, store.experiment_id
    prompt = client.get_prompt(name) or _create(client, name, experiment_id)
    if prompt is not None:
        ids = [known for known in prompt.tags.get(_EXPERIMENTS, "").split(",") if known]
        if experiment_id not in ids:
            client.set_prompt_tag(name, _EXPERIMENTS, f",{','.join([*ids, experiment_id])},")
        for version in client.search_prompt_versions(name):
            if version.template == text:
                return str(version.version)
    return str(client.create_prompt_version(name, text, tags=tags).version)


def _create(client: Any, name: str, experiment_id: str) -> Any:
    """Create a prompt: None, or the prompt where another run has created it since it was looked for."""
    try:
        client.create_prompt(name, tags={_EXPERIMENTS: f",{experiment_id},"})
    except Exception as error:
        if getattr(error, "error_code", "") != "RESOURCE_ALREADY_EXISTS":
            raise
        return client.get_prompt(name)
    return None
