"""Which addresses ``base_url`` may hold, whose server it names, and OpenAI's own headers."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

from rallebench.core import hosts
from rallebench.core.errors import UsageError

OPENAI = "https://api.openai.com/v1"
MUST_LOOK = "it must look like http://127.0.0.1:8000/v1"
_ACCOUNT = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}


def check_address(name: str, base_url: str) -> None:
    """Raise UsageError unless ``base_url`` is http(s) with a host, and without user name and query."""
    try:
        parts = urlsplit(base_url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or re.search(r"\s", base_url):
        raise no_address(name)
    if parts.username is not None or parts.query or parts.fragment:
        # Not echoed: it may hold a secret.
        raise UsageError(
            f"{name!r}: base_url holds a user name or a query; {MUST_LOOK}, and a key belongs into an "
            "environment variable that api_key_env names."
        )


def no_address(name: str) -> UsageError:
    """The error for a ``base_url`` that names no server."""
    return UsageError(f"{name!r}: base_url is not an address of a server; {MUST_LOOK}.")


def is_openai(base_url: str) -> bool:
    """Whether this is OpenAI's own server, over an encrypted connection.

    >>> [is_openai(url) for url in (OPENAI, "http://api.openai.com/v1", "https://api.openai.com.example/v1")]
    [True, False, False]
    """
    openai, address = urlsplit(OPENAI), urlsplit(base_url)
    return (address.scheme, address.hostname) == (openai.scheme, openai.hostname)


def is_loopback(base_url: str) -> bool:
    """Whether the server runs on this machine.

    >>> [is_loopback(f"http://{host}/v1") for host in ("localhost:8000", "127.0.0.2", "[::1]", "10.0.0.1")]
    [True, True, True, False]
    """
    host = urlsplit(base_url).hostname or ""
    return hosts.is_loopback(host) or host.endswith(".localhost")


def account_headers(base_url: str) -> dict[str, str]:
    """The account that a request is charged to; for OpenAI's own server only."""
    if not is_openai(base_url):
        return {}
    values = {header: os.environ.get(name, "").strip() for header, name in _ACCOUNT.items()}
    return {
        header: value
        for header, value in values.items()
        if value.isascii() and value.isprintable() and value
    }
