"""Register the templates of a run's chain in MLflow's prompt registry: one version per text, linked to the run.

A prompt is named after its chain and action number (``my-chain.2``), so its versions are the templates that were
tried in that action. They keep rallebench's ``{question}`` instead of MLflow's ``{{question}}``.
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
"""MLflow's limit in characters; longer templates are only stored as artifacts of the run."""

LINKED = "mlflow.linkedPrompts"
"""The tag that links a run to its prompts on MLflow's page."""

_EXPERIMENTS = "_mlflow_experiment_ids"
"""The tag of a prompt that lists the experiments whose pages show it, as ``,1,2,``."""

_UNSUPPORTED = ("ENDPOINT_NOT_FOUND", "NOT_IMPLEMENTED", "FEATURE_DISABLED")
"""MLflow's error codes of servers without prompts; stores without them raise a RuntimeError."""

_without_prompts: set[str] = set()
"""Tracking URIs of servers without prompts."""


def templates(chain: Chain) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield (name, text, tags) for each template in a chain's retrieve and generate actions."""
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
    """Return a prompt name that MLflow accepts, with a checksum in place of forbidden characters.

    >>> prompt_name("read two", 2), prompt_name("東京", 1)
    ('read-two.2', 'chain-877460.1')
    """
    spaced = re.sub(r"\s+", "-", chain.strip())
    name = re.sub(r"[^a-zA-Z0-9_.-]", "", spaced)
    if name != spaced or not name:
        name = f"{name or 'chain'}-{digest(chain)[:6]}"
    return f"{name[:200]}.{number}"


def register(store: MlflowStore, chain: Chain | None) -> dict[str, str]:
    """Register new templates and return the tag that links a run to its prompts; {} if it has none.

    Failures are warnings, not errors, because the templates are also artifacts of the run. A server without prompts
    is not asked again.
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
    """Return the version with this text, among the newest hundred, or create it."""
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
    """Create a prompt and return None, or return the prompt if another run created it in the meantime."""
    try:
        client.create_prompt(name, tags={_EXPERIMENTS: f",{experiment_id},"})
    except Exception as error:
        if getattr(error, "error_code", "") != "RESOURCE_ALREADY_EXISTS":
            raise
        return client.get_prompt(name)
    return None
