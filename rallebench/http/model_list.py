"""List of a server's models: one ``GET /v1/models``, whose answer is not trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rallebench.core.errors import BackendError
from rallebench.http.client import Server
from rallebench.http.endpoint import Endpoint, check_endpoint, key_from_environment, without_keys
from rallebench.http.failures import NOT_OPENAI, Failure, timeout_failure
from rallebench.http.reported import require_success

BACKEND = "openai_compatible"
SECONDS = 10.0
"""Seconds to wait; short, because a person waits for the list."""

MAX_NAMES, MAX_NAME_CHARACTERS = 1000, 300
"""Maximum number of names in a list, and of characters in a name."""


def served_models(
    base_url: str, api_key_env: str | None = None, *, timeout: float = SECONDS
) -> tuple[str, ...]:
    """Return the sorted names of the models at ``base_url``; empty if the server has none.

    ``api_key_env`` names the variable with the key, as for every endpoint. Raises UsageError for an invalid
    address or variable, BackendError for a server that does not answer with a list of models.
    """
    endpoint = Endpoint(base_url=base_url, api_key_env=api_key_env, timeout=timeout, concurrency=1)
    check_endpoint(BACKEND, endpoint)
    key = key_from_environment(BACKEND, endpoint)
    server = Server(BACKEND, endpoint, key)
    try:
        document, headers = server.document("GET", "/models")
        if isinstance(document, Mapping):
            require_success(document, endpoint, key, headers)
        return _names(document, key)
    except Failure as failure:
        fault, mend = failure.fault, failure.mend
        if failure.status in (404, 405):
            fault = "has no list of models" + (f" ({failure.message})" if failure.message else "")
            mend = "Check its address (it usually ends in /v1), or type the model's name."
        elif fault == timeout_failure(timeout).fault:  # the user cannot set this time-out
            mend = "Check that the server is working, and try again."
        raise BackendError(f"The server at {base_url} {fault}. {mend}".rstrip()) from None
    finally:
        server.close()


def _names(document: Any, key: str) -> tuple[str, ...]:
    """Return the ids in ``{"data": [{"id": …}]}``. Raises Failure for any other document."""
    rows = document.get("data") if isinstance(document, Mapping) else None
    if rows is None and isinstance(document, Mapping) and document.get("object") == "list":
        rows = []  # Ollama returns null when no model is installed
    if not isinstance(rows, list):
        raise Failure("answered with JSON that is not a list of models", NOT_OPENAI)
    ids = [row.get("id") for row in rows[:MAX_NAMES] if isinstance(row, Mapping)]
    return tuple(sorted({name for name in ids if isinstance(name, str) and _is_name(name, key)}))


def _is_name(name: str, key: str) -> bool:
    """Return whether a name is safe to show and to save: a server may send anything, even the key."""
    has_key = "***" in without_keys(name, key)
    return (
        not has_key
        and bool(name.strip())
        and len(name) <= MAX_NAME_CHARACTERS
        and name.isprintable()
    )
