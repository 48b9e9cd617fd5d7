"""Which models a server has: ``GET /v1/models``, asked once, its answer read without trust."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rallebench.core.errors import BackendError
from rallebench.http import Endpoint
from rallebench.http.addresses import OPENAI, check_address
from rallebench.http.client import Connection
from rallebench.http.failures import NOT_OPENAI, Failure, Refusal, refused, timed_out
from rallebench.http.keys import check_variable, key_from_environment, without_keys
from rallebench.http.reading import parsed

WHO = "openai_compatible"
SECONDS = 10.0
"""A person waits for the list; a server that is well sends it at once."""

MOST, LONGEST = 1000, 300
"""Names that are read of a list, and characters of a name that can be meant."""


@dataclass(frozen=True)
class Asked:
    """An endpoint whose models are asked for; see :class:`Endpoint`."""

    base_url: str = OPENAI
    api_key_env: str | None = None
    timeout: float = SECONDS
    model: str = ""
    max_retries: int = 0
    backoff: float = 0.0


def served_models(
    base_url: str, api_key_env: str | None = None, *, timeout: float = SECONDS
) -> tuple[str, ...]:
    """The names by which the server at ``base_url`` knows its models, sorted; none if it has none.

    The key is that of the variable that ``api_key_env`` names, as for every endpoint. Raises UsageError for an
    address or a variable that cannot be, BackendError for a server that does not answer with a list of models.
    """
    check_address(WHO, base_url)
    if api_key_env is not None:
        check_variable(WHO, api_key_env)
    asked = Asked(base_url, api_key_env, timeout)
    key = key_from_environment(WHO, asked)
    connection = Connection(WHO, asked, key)
    try:
        return _names(_asked_once(connection, asked, key), key)
    except Failure as failure:
        late = failure.what == timed_out(timeout).what  # nobody can raise this time-out
        mend = "Check that the server is well, and try again." if late else failure.mend
        raise BackendError(f"The server at {base_url} {failure.what}. {mend}".rstrip()) from None
    finally:
        connection.close()


def _asked_once(connection: Connection, asked: Endpoint, key: str) -> Any:
    def turned_away(error: Refusal, said: str) -> Failure:
        if error.status_code in (404, 405):
            told = f" ({said})" if said else ""
            return Failure(
                f"has no list of models{told}",
                "Check that base_url is right (it usually ends in /v1), or type the model's name.",
            )
        return refused(error, said, asked, key)

    with connection.request("GET", "/models", None, turned_away) as response:
        whole = response.read()
    return parsed(whole, key)


def _names(document: Any, key: str) -> tuple[str, ...]:
    """The ids in ``{"data": [{"id": …}]}``; raises Failure where there is no such list."""
    rows = document.get("data") if isinstance(document, Mapping) else None
    if rows is None and isinstance(document, Mapping) and document.get("object") == "list":
        rows = []  # Ollama says so of an empty shelf
    if not isinstance(rows, list):
        raise Failure("answered with JSON that is no list of models", NOT_OPENAI)
    ids = [row.get("id") for row in rows[:MOST] if isinstance(row, Mapping)]
    return tuple(sorted({name for name in ids if isinstance(name, str) and _is_name(name, key)}))


def _is_name(name: str, key: str) -> bool:
    """Whether this can be shown and saved: a server may send anything back, the key too."""
    shown = "***" not in without_keys(name, key)  # what a key becomes
    return shown and bool(name.strip()) and len(name) <= LONGEST and name.isprintable()
