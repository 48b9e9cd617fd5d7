"""Failures of a request, worded as part of a sentence, and the parsing of untrusted answers."""

from __future__ import annotations

import contextlib
import email.utils
import json
import math
import re
import time
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from rallebench.core.errors import BackendError
from rallebench.http.endpoint import without_keys

TIMEOUT_RETRIES = 2
"""Retries after a time-out: each costs ``timeout`` seconds, so there are fewer than ``max_retries``."""

MOST_TOKENS = 2**40
"""Largest credible token count; a larger one is a server error."""

LONG_KEY = 12
"""Minimum length of a real key; a shorter one is a placeholder such as ``none`` or ``ollama``."""

NOT_OPENAI = (
    "Check that the address is that of an OpenAI-compatible server (it usually ends in /v1)."
)
DROPPED = "Check that the server is working, and try again."
SEE_LOG = "See the server's log and try again."


class Failure(Exception):
    """A failed request: its ``fault`` (the words after the server's name) and its ``mend`` (advice for the user).

    ``retries``: maximum number of retries (None: ``max_retries``). ``pause``: seconds that the server asks to wait.
    ``at_once``: a changed request follows immediately and does not count as an attempt. ``throttled``: the server is
    overloaded, so fewer concurrent requests may help. For an error reported by the server: its ``status``, ``message``,
    complete ``error``, and ``headers`` (names in lower case).
    """

    status, message = 0, ""
    error: Any = None
    headers: Mapping[str, str] = MappingProxyType({})

    def __init__(
        self,
        fault: str,
        mend: str = "",
        *,
        retries: int | None = 0,
        pause: float | None = None,
        at_once: bool = False,
        throttled: bool = False,
    ) -> None:
        super().__init__(fault)
        self.fault, self.mend, self.retries = fault, mend, retries
        self.pause, self.at_once, self.throttled = pause, at_once, throttled


def unloaded_error(name: str) -> BackendError:
    """Return the error for a request to a closed backend."""
    return BackendError(f"{name!r} was unloaded; load it again to use it.")


def timeout_failure(seconds: float) -> Failure:
    """Return the failure for a server that did not answer within ``seconds``."""
    return Failure(
        f"gave no answer within {seconds:g} s",
        "Check that the server is working, raise timeout, or lower concurrency.",
        retries=TIMEOUT_RETRIES,
        throttled=True,
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds given by ``retry-after-ms`` or ``Retry-After`` (seconds or an HTTP date).

    >>> retry_after({"retry-after": "2"}), retry_after({"retry-after": "soon"})
    (2.0, None)
    """
    for header, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(header, "")
        with contextlib.suppress(ValueError):
            seconds = float(value) * unit
            return max(0.0, seconds) if math.isfinite(seconds) else None
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    return None


def remainder(headers: Mapping[str, str], unit: str) -> tuple[float, float] | None:
    """Return the units that a server still allows and the seconds until it allows more; None unless it gives both.

    Read from ``x-ratelimit-remaining-requests`` (or ``-tokens``) and ``…-reset-…``; some servers write ``ratelimit-…`` or
    drop the ``-requests`` ending.

    >>> remainder({"x-ratelimit-remaining-tokens": "12", "x-ratelimit-reset-tokens": "6m0s"}, "tokens")
    (12.0, 360.0)
    """
    names = [("x-ratelimit-", f"-{unit}")]
    if unit == "requests":
        names += [("x-ratelimit-", ""), ("ratelimit-", "")]
    for start, end in names:
        amount, reset = headers.get(f"{start}remaining{end}"), headers.get(f"{start}reset{end}")
        with contextlib.suppress(ValueError, TypeError):
            seconds = _seconds(str(reset).strip()) if reset is not None else None
            if amount is not None and seconds is not None and float(amount) >= 0:
                return float(amount), seconds
    return None


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhd]))+")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")


def _seconds(text: str) -> float | None:
    """Return seconds from now for ``1s``, ``6m0s``, ``20ms``, seconds, a Unix time (also in ms), or an ISO date.

    >>> [_seconds(text) for text in ("1s", "6m0.5s", "20ms", "7", "soon")]
    [1.0, 360.5, 0.02, 7.0, None]
    """
    if _DURATION.fullmatch(text):
        return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    with contextlib.suppress(ValueError):
        value = float(text)
        if value > 1e12:
            value /= 1000
        seconds = value - time.time() if value > 1e9 else value
        return max(0.0, seconds) if seconds == seconds and abs(seconds) != float("inf") else None
    with contextlib.suppress(ValueError):
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return max(0.0, moment.timestamp() - time.time()) if moment.tzinfo else None
    return None


def parse_json(text: bytes, key: str) -> Any:
    """Return the value of a JSON text, with the key redacted. Raises Failure."""
    if len(key) >= LONG_KEY and key.encode() in text:
        text = text.replace(key.encode(), b"***")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        quoted = short(text[:2000].decode("utf-8", "replace"), key, 80) or "nothing"
        raise Failure(f"answered with something that is not JSON ({quoted})", NOT_OPENAI) from None


def estimated_tokens(text: str) -> float:
    """Return the estimated number of tokens of a text in any language: about 4 bytes of UTF-8 each."""
    return len(text.encode("utf-8", "replace")) / 4


_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"([{_CJK}])|[^\W_{_CJK}]+")


def fewest_tokens(text: str) -> float:
    """Return a lower bound of the tokens of a text: one per word, and per three Chinese, Japanese or Korean characters.

    >>> fewest_tokens("Who wrote it?"), fewest_tokens("三体三")
    (3.0, 1.0)
    """
    words = _WORD.findall(text)
    characters = sum(map(bool, words))
    return len(words) - characters + characters / 3


def reported_tokens(usage: Any, name: str) -> int:
    """Return the tokens that a server reports in ``usage``; 0 if it reports none."""
    value = usage.get(name) if isinstance(usage, Mapping) else None
    number = value if isinstance(value, int) and not isinstance(value, bool) else 0
    return number if 0 < number < MOST_TOKENS else 0


def reported_prompt_tokens(usage: Any, timings: Any = None) -> int:
    """Return the reported tokens of a prompt, including cached tokens that the server counts separately.

    ``timings``: llama.cpp's own report, which may be the only one with its cache.

    >>> reported_prompt_tokens({"prompt_tokens": 100, "prompt_cache_hit_tokens": 900})
    1000
    >>> reported_prompt_tokens({"prompt_tokens": 100}, {"prompt_n": 100, "cache_n": 900})
    1000
    """
    tokens = reported_tokens(usage, "prompt_tokens")
    details = usage.get("prompt_tokens_details") if isinstance(usage, Mapping) else None
    read, written = (
        reported_tokens(usage, f"cache_{name}_input_tokens") for name in ("read", "creation")
    )
    hits = (
        reported_tokens(usage, "prompt_cache_hit_tokens"),
        reported_tokens(details, "cached_tokens"),
    )
    cached = max(read + written, *hits)
    # most servers include cached tokens; if these exceed the total, the server counts them separately
    tokens = tokens + cached if tokens and cached > tokens else tokens
    return max(tokens, reported_tokens(timings, "prompt_n") + reported_tokens(timings, "cache_n"))


def short(body: Any, key: str, limit: int = 300) -> str:
    """Return a server's message as one line of at most ``limit`` characters, without keys.

    >>> short({"error": {"message": "no such model"}}, "")
    'no such model'
    """
    for name in ("error", "message", "detail", "msg", "error_msg", "reason", "title"):
        if isinstance(body, Mapping) and body.get(name) and body[name] is not True:
            body = body[name]
    text = body if isinstance(body, str) else "" if body is None else json.dumps(body, default=str)
    if re.match(r"\s*<(!doctype|html)", text, re.IGNORECASE):
        title = re.search(r"<title[^>]*>([^<]*)", text, re.IGNORECASE)
        text = "a web page" + (
            f" titled {title[1].strip()!r}" if title and title[1].strip() else ""
        )
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    line = without_keys(line, key)
    return line if len(line) <= limit else line[: limit - 1] + "…"
