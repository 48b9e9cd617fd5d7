"""What went wrong with one try, as the words of a sentence, and whether another try may help."""

from __future__ import annotations

import contextlib
import email.utils
import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rallebench.core.errors import BackendError
from rallebench.http import Endpoint
from rallebench.http.keys import how_to_set, without_keys

TIMEOUT_RETRIES = 2
"""A time-out costs ``timeout`` seconds each, so it is not worth all of ``max_retries``."""

NOT_OPENAI = "Check that base_url is that of an OpenAI-compatible server (it usually ends in /v1)."
DROPPED = "Check that the server is well, and try again."
SEE_LOG = "See the server's log and try again."


class Failure(Exception):
    """``what`` went wrong (it follows the server's name in the sentence) and how to ``mend`` it.

    ``retries``: how many more tries this kind deserves at most (None: ``max_retries``).
    ``pause``: seconds the server asked to wait. ``at_once``: ask again, differently, for free.
    ``crowded``: the server has more to do than it can, so fewer requests at once may help.
    """

    def __init__(
        self,
        what: str,
        mend: str = "",
        *,
        retries: int | None = 0,
        pause: float | None = None,
        at_once: bool = False,
        crowded: bool = False,
    ) -> None:
        super().__init__(what)
        self.what, self.mend, self.retries = what, mend, retries
        self.pause, self.at_once, self.crowded = pause, at_once, crowded


@dataclass(frozen=True)
class Refusal:
    """An answer with a status other than 2xx; names of headers in lower case, ``body`` parsed if it is JSON."""

    status_code: int
    headers: Mapping[str, str]
    body: Any

    @property
    def code(self) -> str:
        """The server's own word for what is wrong, '' if it has none."""
        error = self.body.get("error") if isinstance(self.body, Mapping) else None
        code = error.get("code") if isinstance(error, Mapping) else None
        return code if isinstance(code, str) else ""


def unloaded(name: str) -> BackendError:
    """What whoever asks a closed backend is told."""
    return BackendError(f"{name!r} was unloaded; load it again to ask it.")


def timed_out(seconds: float) -> Failure:
    """No answer within ``seconds``."""
    return Failure(
        f"gave no answer within {seconds:g} s",
        "Check that the server is well, raise timeout, or lower concurrency.",
        retries=TIMEOUT_RETRIES,
        crowded=True,
    )


CROWDED = (408, 503, 529)
"""Statuses, besides 429, of a server with more to do than it can."""


def refused(error: Refusal, said: str, given: Endpoint, key: str) -> Failure:
    """A status other than 2xx; ``said`` is the server's own words."""
    status = error.status_code
    told = f"({status}: {said})" if said else f"({status})"
    if 300 <= status < 400:
        return Failure(
            f"redirects elsewhere ({status})",
            "Keys are not carried along: set base_url to the final address.",
        )
    if status in (401, 403):
        return Failure(f"refused the key {told}", how_to_set(given, key))
    if status == 404:
        return Failure(
            f"knows no model {given.model!r}, or not this address {told}",
            f"Correct model. {NOT_OPENAI}",
        )
    if status == 429:
        spent = error.code == "insufficient_quota"
        return Failure(
            f"{'has no quota left for this key' if spent else 'limits the rate'} {told}",
            "Raise the quota." if spent else "Lower concurrency, or try again later.",
            retries=0 if spent else None,
            pause=retry_after(error.headers),
            crowded=not spent,
        )
    if status >= 500 or status == 408:
        pause, crowded = retry_after(error.headers), status in CROWDED
        return Failure(
            f"failed by itself {told}", SEE_LOG, retries=None, pause=pause, crowded=crowded
        )
    return Failure(
        f"refused the request {told}", "Change the setting or shorten the prompt it names."
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds asked for by ``retry-after-ms`` or ``Retry-After`` (seconds or an HTTP date).

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


def short(body: Any, key: str, limit: int = 300) -> str:
    """What a server said, as one line of at most ``limit`` characters, without keys.

    >>> short({"error": {"message": "no such model"}}, "")
    'no such model'
    """
    for name in ("error", "message", "detail", "msg"):
        if isinstance(body, Mapping) and body.get(name):
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
