"""The templates of a run's chain in MLflow's prompt registry: a version per text, linked from the run.

A prompt is named after its chain and the number of its action (``my-chain.2``), so the versions of one prompt are
what was tried there. Templates are kept as they stand: with rallebench's ``{question}``, not MLflow's ``{{question}}``.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rallebench.core.types import digest
from rallebench.tracking.connection import without_credentials
from rallebench.tracking.content import clean

log = logging.getLogger(__name__)

MAX_TEMPLATE = 100_000
"""MLflow's limit, in characters; a longer template stays an artifact of the run alone."""

LINKED = "mlflow.linkedPrompts"
"""The tag by which MLflow's page links a run to its prompts."""

_EXPERIMENTS = "_mlflow_experiment_ids"
"""A prompt's tag: the experiments in which MLflow's page lists it, as ``,1,2,``."""

_NEVER = ("ENDPOINT_NOT_FOUND", "NOT_IMPLEMENTED", "FEATURE_DISABLED")
"""MLflow's words for what a server does not have."""

_given_up: set[str] = set()


@dataclass(frozen=True, slots=True)
class Template:
    """A template that is to be registered."""

    name: str
    text: str
    tags: Mapping[str, str]


def templates(chain: Mapping[str, Any]) -> list[Template]:
    """The templates of the retrieve and generate actions of ``run.json``'s chain."""
    found = []
    for number, action in enumerate(chain.get("actions", ()), 1):
        text = clean(str(action.get("template", "")))
        if (
            action.get("kind") in ("retrieve", "generate")
            and text.strip()
            and len(text) <= MAX_TEMPLATE
        ):
            told = {key: str(action[key]) for key in ("kind", "dialect") if action.get(key)}
            tags = {f"rallebench.{key}": value for key, value in told.items()}
            found.append(Template(prompt_name(str(chain.get("name", "")), number), text, tags))
    return found


def prompt_name(chain: str, number: int) -> str:
    """A name that MLflow accepts; one that had to lose letters is kept apart from others by a sum.

    >>> prompt_name("read two", 2), prompt_name("東京", 1)
    ('read-two.2', 'chain-877460.1')
    """
    spaced = re.sub(r"\s+", "-", chain.strip())
    name = re.sub(r"[^a-zA-Z0-9_.-]", "", spaced)
    if name != spaced or not name:
        name = f"{name or 'chain'}-{digest(chain)[:6]}"
    return f"{name[:200]}.{number}"


def register(client: Any, uri: str, experiment_id: str, chain: Mapping[str, Any]) -> dict[str, str]:
    """Register what is new and return the tag that links a run to its prompts, {} if there are none.

    Whatever fails is a warning and never an error, for the templates are artifacts of the run in any case; a server
    that knows no prompts is not asked again.
    """
    if uri in _given_up:
        return {}
    try:
        linked = [
            {"name": one.name, "version": _version(client, experiment_id, one)}
            for one in templates(chain)
        ]
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        if isinstance(error, NotImplementedError) or getattr(error, "error_code", "") in _NEVER:
            _given_up.add(uri)
        log.warning(
            "The prompt registry of MLflow at %s cannot be used, so templates are artifacts of their runs only: %s",
            without_credentials(uri),
            lines[0].replace(uri, without_credentials(uri))[:200],
        )
        return {}
    return {LINKED: json.dumps(linked)} if linked else {}


def _version(client: Any, experiment_id: str, one: Template) -> str:
    """The version that holds this text (of the newest hundred), made if there is none."""
    known = client.get_prompt(one.name)
    if known is None:
        client.create_prompt(one.name, tags={_EXPERIMENTS: f",{experiment_id},"})
    else:
        there = known.tags.get(_EXPERIMENTS, "").strip(",")
        if experiment_id not in there.split(","):
            listed = f",{there},{experiment_id}," if there else f",{experiment_id},"
            client.set_prompt_tag(one.name, _EXPERIMENTS, listed)
        for version in client.search_prompt_versions(one.name):
            if version.template == one.text:
                return str(version.version)
    return str(client.create_prompt_version(one.name, one.text, tags=dict(one.tags)).version)
