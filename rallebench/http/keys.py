"""Keys: which variable holds the key of a server, and how a key stays out of every text."""

from __future__ import annotations

import os
import re

from rallebench.core.errors import UsageError
from rallebench.http import Endpoint
from rallebench.http.addresses import OPENAI, is_loopback, is_openai

OPENAI_VARIABLE = "OPENAI_API_KEY"

_SECRET = re.compile(r"\b(?:(?i:bearer)\s+\S{12,}|(?:sk|gsk|xai|hf)[-_](?=\S*[\d*])[\w*.-]{8,})")


def variable_of(endpoint: Endpoint) -> str:
    """The environment variable with the key for this server, '' if there is none.

    OPENAI_API_KEY goes to another server only if the user names it in ``api_key_env``.
    """
    if endpoint.api_key_env is not None:
        return endpoint.api_key_env
    known = is_openai(endpoint.base_url) or is_loopback(endpoint.base_url)
    return OPENAI_VARIABLE if known else ""


def check_variable(name: str, variable: object) -> None:
    """Raise UsageError unless ``variable`` can be the name of an environment variable."""
    # Capitals only, and the value is not echoed: it may be the key itself.
    if not isinstance(variable, str) or not re.fullmatch(r"[A-Z_][A-Z0-9_]*", variable):
        raise UsageError(
            f"{name!r}: api_key_env must be the name of an environment variable in capitals, such as "
            "OPENAI_API_KEY; the key itself belongs into that variable, not here."
        )


def key_from_environment(name: str, endpoint: Endpoint) -> str:
    """The key, '' if there is none: many local servers need no key."""
    variable = variable_of(endpoint)
    key = os.environ.get(variable, "").strip() if variable else ""
    if not key and is_openai(endpoint.base_url):
        raise UsageError(
            f"{name!r} needs a key for {OPENAI}: set the environment variable {variable}, "
            "or set base_url to your own server."
        )
    if not all("!" <= character <= "~" for character in key):
        raise UsageError(
            f"{name!r}: the environment variable {variable} holds characters that no key has "
            "(a space, a line end or an accent); set it again."
        )
    return key


def how_to_set(endpoint: Endpoint, key: str) -> str:
    """The mend for a key that the server refused."""
    variable = variable_of(endpoint)
    if not variable:
        return (
            "Name the environment variable with its key in api_key_env; "
            f"{OPENAI_VARIABLE} by itself is shown to OpenAI and to this machine only."
        )
    return f"Set the environment variable {variable} to a valid key{'.' if key else '; it is not set now.'}"


def without_keys(text: str, key: str) -> str:
    """``text`` with ``key``, and anything else like a key, blotted out.

    >>> without_keys("plain is no key, nor is Bearer abcdefghijklmnop", "plain")
    '*** is no key, nor is ***'
    """
    return _SECRET.sub("***", text.replace(key, "***") if key else text)
