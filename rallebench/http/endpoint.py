"""An endpoint: valid values of ``base_url``, the server it names, and the key for that server.

A key comes from the environment or was typed for this process; it never appears in a text or a file.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from rallebench.core import hosts
from rallebench.core.errors import UsageError
from rallebench.core.settings import declare

OPENAI_VARIABLE = "OPENAI_API_KEY"
OPENAI = "https://api.openai.com/v1"
MUST_LOOK = "it must look like http://127.0.0.1:8000/v1"
_ACCOUNT = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
_SECRET = re.compile(r"\b(?:(?i:bearer)\s+\S{12,}|(?:sk|gsk|xai|hf)[-_](?=\S*[\d*])[\w*.-]{8,})")

MAX_RATE = 1e9
"""Highest limit that can be set, in requests or tokens per minute."""

MAX_PAUSE = 60.0
"""Longest pause of our own choice between two attempts, in seconds."""

_TYPED: dict[str, str] = {}
"""Variable → typed key: kept in memory only, never in the environment, until the process ends."""


def hold_key(variable: str, key: str) -> None:
    """Use ``key`` instead of the value of ``variable``; '' forgets it. Raises UsageError."""
    check_variable("key", variable)
    key = key.strip()
    if not all("!" <= character <= "~" for character in key):
        raise UsageError(
            "The key contains characters that no key has (a space, a line end or an accent); copy it again."
        )
    if key:
        _TYPED[variable] = key
    else:
        _TYPED.pop(variable, None)


def key_in(variable: str) -> str:
    """Return the key typed for a variable, else the one in the environment; '' if there is none."""
    return _TYPED.get(variable) or os.environ.get(variable, "").strip()


def is_typed(variable: str) -> bool:
    """Return whether a key was typed for a variable."""
    return variable in _TYPED


@dataclass(frozen=True)
class Endpoint:
    """The settings of one model at one server; ``concurrency`` and the two rates apply to all models at one address.

    ``api_key_env``: by default OPENAI_API_KEY, which goes only to OpenAI and to this machine.
    """

    model: str = declare(str, "", about="the model's name on the server")
    base_url: str = declare(str, OPENAI, about="the server's address, which usually ends in /v1")
    api_key_env: str | None = declare(object, None, about="the environment variable with the key")
    timeout: float = declare(float, 120.0, 0.01, 86_400, about="seconds until an answer")
    concurrency: int = declare(int, 16, 1, 256, about="concurrent requests")
    max_retries: int = declare(int, 6, 0, 100, about="maximum retries of a failed request")
    backoff: float = declare(
        float, 0.5, 0, MAX_PAUSE, about="seconds before the first retry; doubled each time"
    )
    requests_per_minute: float | None = declare(float, None, 0.01, MAX_RATE, about="null: no limit")
    tokens_per_minute: float | None = declare(
        float, None, 0.01, MAX_RATE, about="of prompts and answers; null: no limit"
    )

    @property
    def address(self) -> str:
        """Host, port and path, which identify the server in a fingerprint."""
        parts = urlsplit(self.base_url)
        return f"{parts.netloc}{parts.path.rstrip('/')}"


def check_endpoint(name: str, endpoint: Endpoint) -> None:
    """Raise UsageError unless ``base_url`` is http(s) with a host, and without user name and query, and
    ``api_key_env`` can be a variable."""
    base_url = endpoint.base_url
    try:
        parts = urlsplit(base_url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or re.search(r"\s", base_url):
        raise no_address(name)
    if parts.username is not None or parts.query or parts.fragment:
        # not echoed: it may contain a secret
        raise UsageError(
            f"{name!r}: the address contains a user name or a query; {MUST_LOOK}, and the key is set separately."
        )
    if endpoint.api_key_env is not None:
        check_variable(name, endpoint.api_key_env)


def no_address(name: str) -> UsageError:
    """Return the error for a ``base_url`` that names no server."""
    return UsageError(f"{name!r}: the address (base_url) does not name a server; {MUST_LOOK}.")


def is_openai(base_url: str) -> bool:
    """Return whether this is OpenAI's own server, over an encrypted connection.

    >>> [is_openai(url) for url in (OPENAI, "http://api.openai.com/v1", "https://api.openai.com.example/v1")]
    [True, False, False]
    """
    openai, address = urlsplit(OPENAI), urlsplit(base_url)
    return (address.scheme, address.hostname) == (openai.scheme, openai.hostname)


def is_loopback(base_url: str) -> bool:
    """Return whether the server runs on this machine.

    >>> [is_loopback(f"http://{host}/v1") for host in ("localhost:8000", "127.0.0.2", "[::1]", "10.0.0.1")]
    [True, True, True, False]
    """
    host = urlsplit(base_url).hostname or ""
    return hosts.is_loopback(host) or host.endswith(".localhost")


def account_headers(base_url: str) -> dict[str, str]:
    """Return the headers for the account to charge; for OpenAI's own server only."""
    if not is_openai(base_url):
        return {}
    values = {header: os.environ.get(name, "").strip() for header, name in _ACCOUNT.items()}
    return {
        header: value
        for header, value in values.items()
        if value.isascii() and value.isprintable() and value
    }


def key_variable(base_url: str, api_key_env: str | None) -> str:
    """Return the environment variable that holds the key for this server; '' if there is none.

    OPENAI_API_KEY goes to another server only if the user names it in ``api_key_env``.
    """
    if api_key_env is not None:
        return api_key_env
    return OPENAI_VARIABLE if is_openai(base_url) or is_loopback(base_url) else ""


def check_variable(name: str, variable: object) -> None:
    """Raise UsageError unless ``variable`` can be the name of an environment variable."""
    # Capitals only. The value is not echoed: it may be the key itself.
    if not isinstance(variable, str) or not re.fullmatch(r"[A-Z_][A-Z0-9_]*", variable):
        raise UsageError(
            f"{name!r}: api_key_env must be the name of an environment variable in capitals, such as "
            "OPENAI_API_KEY; the key itself belongs in that variable, not here."
        )


def key_from_environment(name: str, endpoint: Endpoint) -> str:
    """Return the key; '' if there is none, as many local servers need no key."""
    variable = key_variable(endpoint.base_url, endpoint.api_key_env)
    key = key_in(variable) if variable else ""
    if not key and is_openai(endpoint.base_url):
        raise UsageError(
            f"{name!r} needs a key for {OPENAI}: type it on the page, set the environment variable {variable}, "
            "or give the address of your own server."
        )
    if not all("!" <= character <= "~" for character in key):
        raise UsageError(
            f"{name!r}: the environment variable {variable} contains characters that no key has "
            "(a space, a line end or an accent); set it again."
        )
    return key


def how_to_set(endpoint: Endpoint, key: str) -> str:
    """Return a sentence that explains how to replace a refused key."""
    variable = key_variable(endpoint.base_url, endpoint.api_key_env)
    if not variable:
        return (
            "Type its key on the page, or name the environment variable with it (api_key_env); "
            f"{OPENAI_VARIABLE} is only sent to OpenAI and to this machine by default."
        )
    unset = "" if key else f"{variable} is not set. "
    return f"{unset}Give a valid key: typed on the page, or in the environment variable {variable}."


def without_keys(text: str, key: str) -> str:
    """Return ``text`` with ``key``, and anything that looks like a key, redacted.

    >>> without_keys("neither plain nor Bearer abcdefghijklmnop", "plain")
    'neither *** nor ***'
    """
    return _SECRET.sub("***", text.replace(key, "***") if key else text)
