"""The key: where it comes from, which server may see it, and how it stays out of every text."""

from __future__ import annotations

import os
import re

from rallebench.core.errors import UsageError
from rallebench.http import Endpoint
from rallebench.http.addresses import OPENAI, is_loopback, is_openai

OPENAI_VARIABLE = "OPENAI_API_KEY"

_SECRET = re.compile(r"\b(?:(?i:bearer)\s+\S{12,}|(?:sk|gsk|xai|hf)[-_](?=\S*[\d*])[\w*.-]{8,})")


def variable_of(given: Endpoint) -> str:
    """The environment variable whose key this server may see, '' if there is none.

    OPENAI_API_KEY is lent to a stranger's server only by a user who names it.
    """
    if given.api_key_env is not None:
        return given.api_key_env
    known = is_openai(given.base_url) or is_loopback(given.base_url)
    return OPENAI_VARIABLE if known else ""


def check_variable(name: str, variable: object) -> None:
    """Raise UsageError unless ``variable`` can be the name of an environment variable."""
    # Capitals only: what looks like a key is refused here and never printed.
    if not isinstance(variable, str) or not re.fullmatch(r"[A-Z_][A-Z0-9_]*", variable):
        raise UsageError(
            f"{name!r}: api_key_env must be the name of an environment variable in capitals, such as "
            "OPENAI_API_KEY; the key itself belongs into that variable, not here."
        )


def key_from_environment(name: str, given: Endpoint) -> str:
    """The key, '' if there is none; many servers in one's own network need none."""
    variable = variable_of(given)
    key = os.environ.get(variable, "").strip() if variable else ""
    if not key and is_openai(given.base_url):
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


def how_to_set(given: Endpoint, key: str) -> str:
    """How to mend a key that the server refused."""
    variable = variable_of(given)
    if not variable:
        return (
            "Name the environment variable with its key in api_key_env; "
            f"{OPENAI_VARIABLE} by itself is shown to OpenAI and to this machine only."
        )
    return f"Set the environment variable {variable} to a valid key{'.' if key else '; it is not set now.'}"


def without_keys(text: str, key: str) -> str:
    """``text`` with ``key``, and whatever else looks like one, blotted out.

    >>> without_keys("plain is no key, nor is Bearer abcdefghijklmnop", "plain")
    '*** is no key, nor is ***'
    """
    return _SECRET.sub("***", text.replace(key, "***") if key else text)
