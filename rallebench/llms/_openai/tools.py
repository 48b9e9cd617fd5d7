"""Whether a server drops the tools that it is sent: a chat template without tools leaves them out without a word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from rallebench.core.errors import RalleError
from rallebench.core.types import Generate, Message
from rallebench.http.client import Connection
from rallebench.http.endpoint import is_openai
from rallebench.http.failures import Failure
from rallebench.llms._openai.requests import body_of
from rallebench.llms._openai.settings import Settings

SECONDS = 30.0
"""The longest wait for an answer; without one the server is trusted."""
PATH = "/chat/completions"
LEFT_OUT = ("response_format", "tool_choice", "tools")
"""Fields of ``extra_body`` that would change what the small request asks for, or need tools."""
TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Looks up a word in a dictionary and returns its definition.",
        "parameters": {
            "type": "object",
            "properties": {"word": {"type": "string", "description": "the word to look up"}},
            "required": ["word"],
        },
    },
}


def takes_tools(name: str, settings: Settings, key: str) -> bool:
    """Whether the model at this address reads the tools that it is sent; True if that cannot be determined.

    llama.cpp reports it in ``/props?model=…``. For any other server the prompt tokens of one small request are compared,
    with a tool and without: they are equal if the tool is dropped.
    """
    if is_openai(settings.base_url):
        return True
    supports = _capability(name, settings, key)
    if supports is not None:
        return supports
    request = Generate("", (Message("user", "Hi"),), max_tokens=1)
    try:
        body = body_of(name, request, settings)
    except RalleError:
        return True
    alone = {**{field: body[field] for field in body if field not in LEFT_OUT}, "stream": False}
    plain = _prompt_tokens(_answer(name, settings, key, "POST", PATH, alone))
    offered = _prompt_tokens(
        _answer(name, settings, key, "POST", PATH, {**alone, "tools": [TOOL]}) if plain else None
    )
    return not plain or not offered or offered != plain


def _capability(name: str, settings: Settings, key: str) -> bool | None:
    """What the server itself says; None if it says nothing."""
    root = replace(settings, base_url=settings.base_url.rstrip("/").removesuffix("/v1"))
    document = _answer(
        name, root, key, "GET", f"/props?model={quote(settings.model, safe='')}", None
    )
    capabilities = document.get("chat_template_caps") if isinstance(document, Mapping) else None
    supports = capabilities.get("supports_tools") if isinstance(capabilities, Mapping) else None
    return supports if isinstance(supports, bool) else None


def _prompt_tokens(document: Any) -> int:
    usage = document.get("usage") if isinstance(document, Mapping) else None
    count = usage.get("prompt_tokens") if isinstance(usage, Mapping) else None
    return count if isinstance(count, int) and not isinstance(count, bool) else 0


def _answer(
    name: str,
    settings: Settings,
    key: str,
    method: str,
    path: str,
    body: Mapping[str, Any] | None,
) -> Any:
    """The JSON of the server's answer, None if it does not answer."""
    brief = replace(settings, timeout=min(settings.timeout, SECONDS))
    connection = Connection(name, brief, key)
    try:
        return connection.document(method, path, body)[0]
    except (Failure, RalleError):
        return None
    finally:
        connection.close()
