"""What a server answers, read without trust."""

from __future__ import annotations

import json
from typing import Any

from rallebench.http.failures import NOT_OPENAI, Failure, short

LONG_KEY = 12
"""A shorter key is a word such as ``none`` or ``ollama``, by which servers that need none are asked."""


def parsed(text: bytes, key: str) -> Any:
    """JSON text as a value; raises Failure. A server that sends the key back is not quoted."""
    if len(key) >= LONG_KEY and key.encode() in text:
        text = text.replace(key.encode(), b"***")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        shown = short(text[:2000].decode("utf-8", "replace"), key, 80)
        raise Failure(
            f"answered with something that is not JSON ({shown or 'nothing'})", NOT_OPENAI
        ) from None
