"""Random articles from a MediaWiki API; no other dataset builder goes online.

As the API's documentation asks, requests are sequential, identify the program, and wait while the server is busy: ``maxlag``,
``ratelimited``, the statuses 429, 502, 503 and 504, and ``Retry-After``.
"""

from __future__ import annotations

import http.client
import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rallebench import __version__
from rallebench.core.errors import BackendError
from rallebench.core.stopping import stop_of_thread
from rallebench.experiments.builders._source import SourceArticle

SECONDS = 30.0
DRAW = 500
"""The most random pages per API reply."""
DRAWS = 5
"""Consecutive draws without a new page before the wiki counts as exhausted."""
LAG = "5"
"""Highest accepted replication lag, in seconds; the server refuses requests above it as busy."""
TRIES, WAIT, MOST_WAIT = 4, 5.0, 60.0
"""Tries with a busy server, the default seconds between them, and the longest wait in seconds."""
BUSY = frozenset((429, 502, 503, 504))
BUSY_CODES = frozenset(("maxlag", "ratelimited", "readonly"))
GONE, EMPTY = "no longer there", "without text"


def random_articles(
    api: str,
    number: int,
    known: Iterable[str] = (),
    passed_over: Counter[str] | None = None,
    notes: list[str] | None = None,
) -> Iterator[SourceArticle]:
    """``number`` articles of namespace 0, dated by their first revision; ``known`` ids are skipped.

    ``passed_over`` counts pages without text; ``notes`` reports a wiki with too few pages. Raises BackendError if the API
    cannot be reached.
    """
    seen = set(known)
    number += len(seen)
    passed_over = Counter() if passed_over is None else passed_over
    for page in _drawn_pages(api, number, seen):
        article = _article(api, page)
        if isinstance(article, str):
            passed_over[article] += 1
        else:
            yield article
    if len(seen) < number and notes is not None:
        notes.append(
            f"{api} gave {number - len(seen)} articles fewer than the limit: {DRAWS} draws in a row brought none that was new."
        )


def _drawn_pages(api: str, number: int, seen: set[str]) -> Iterator[str]:
    """Ids of up to ``number`` new pages; each is added to ``seen``."""
    in_vain = 0
    while len(seen) < number and in_vain < DRAWS:
        most = str(min(DRAW, number - len(seen)))
        reply = _query(api, {"list": "random", "rnnamespace": "0", "rnlimit": most})
        pages = [str(page["id"]) for page in _entries(reply, "random") if "id" in page]
        new = [page for page in dict.fromkeys(pages) if page not in seen]
        in_vain = 0 if new else in_vain + 1
        for page in new:
            seen.add(page)
            yield page


def _article(api: str, page: str) -> SourceArticle | str:
    """The article, or the reason for its absence. A reply may deliver the text only in a continuation."""
    options = {
        "prop": "extracts|revisions|info",
        "explaintext": "1",
        "rvdir": "newer",
        "rvlimit": "1",
        "rvprop": "timestamp",
        "inprop": "url",
        "pageids": page,
    }
    entry: dict[str, Any] = {}
    more: Mapping[str, Any] = {}
    for _ in range(TRIES):
        reply = _query(api, {**options, **more})
        entry = {**next(iter(_entries(reply, "pages")), {}), **entry}
        more = reply.get("continue") or {}
        if "extract" in entry or "excontinue" not in more:
            break
    if entry.get("missing"):
        return GONE
    if not str(entry.get("extract") or "").strip():
        return EMPTY
    date = next((str(revision.get("timestamp", "")) for revision in entry.get("revisions", [])), "")
    title, text, url = (str(entry.get(key, "")) for key in ("title", "extract", "fullurl"))
    return SourceArticle(page, title, text, url, date)


def _entries(reply: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects of a list in the reply; old wikis send a single object instead."""
    query = reply.get("query")
    value = query.get(name) if isinstance(query, dict) else None
    values = value.values() if isinstance(value, dict) else value or ()
    return [entry for entry in values if isinstance(entry, dict)]


def _query(api: str, query: Mapping[str, str]) -> dict[str, Any]:
    """The reply, requested again while the server is busy. Raises BackendError."""
    fixed = {"action": "query", "format": "json", "formatversion": "2", "maxlag": LAG}
    address = f"{api}?{urllib.parse.urlencode({**fixed, **query})}"
    why = ""
    for tries_left in reversed(range(TRIES)):
        wait, reply = _request(api, address)
        if isinstance(reply, dict):
            _check_warnings(api, reply)
            return reply
        why = reply
        if tries_left:
            _pause(wait)
    raise BackendError(
        f"{api} is busy ({why}); start it again later, and the articles that came are kept."
    )


def _request(api: str, address: str) -> tuple[float, dict[str, Any] | str]:
    """(seconds to wait, the reply, or the reason to ask again). Raises BackendError."""
    try:
        if urllib.parse.urlsplit(api).scheme not in ("http", "https"):
            raise ValueError("it is not an http address")
        request = urllib.request.Request(
            address, headers={"User-Agent": f"rallebench/{__version__}"}
        )
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            wait, content = _wait(answer.headers.get("Retry-After")), answer.read()
    except urllib.error.HTTPError as error:
        if error.code not in BUSY:
            raise BackendError(
                f"{api} refuses the request (HTTP {error.code} {error.reason}). Give articles from a file instead."
            ) from None
        return _wait(error.headers.get("Retry-After")), f"HTTP {error.code} {error.reason}"
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error or type(error).__name__
        raise BackendError(
            f"{api} cannot be asked ({reason}); source=mediawiki needs the network. Give articles from a file instead."
        ) from None
    return wait, _read(api, content)


def _read(api: str, content: bytes) -> dict[str, Any] | str:
    """The reply, or the message of a busy server. Raises BackendError for other errors and for invalid replies."""
    try:
        reply = json.loads(content)
    except ValueError:
        reply = None
    if not isinstance(reply, dict):
        raise BackendError(
            f"{api} does not answer as the API of a MediaWiki; api is the address of its api.php."
        )
    error = reply.get("error")
    if error is None:
        return reply
    code, info = (
        str(error.get(key, "")) if isinstance(error, dict) else str(error)
        for key in ("code", "info")
    )
    if code in BUSY_CODES:
        return info or code
    raise BackendError(
        f"{api} answers with an error ({code}: {info.rstrip('.')}). Give articles from a file instead."
    )


def _check_warnings(api: str, reply: Mapping[str, Any]) -> None:
    """Raise BackendError if the wiki cannot deliver article text."""
    warnings = json.dumps(reply.get("warnings") or "")
    if "nrecognized value" in warnings and "extracts" in warnings:
        raise BackendError(
            f"{api} gives no plain text, as its MediaWiki lacks the extension TextExtracts. Give articles from its dump instead."
        )


def _wait(retry_after: str | None) -> float:
    """The seconds in a ``Retry-After`` header, within bounds.

    >>> _wait("7"), _wait("soon"), _wait("9000"), _wait(None)
    (7.0, 5.0, 60.0, 5.0)
    """
    seconds = str(retry_after or "").strip()
    return min(float(seconds), MOST_WAIT) if seconds.isdecimal() else WAIT


def _pause(seconds: float) -> None:
    """Wait ``seconds``. Raises StoppedError if the work is stopped meanwhile."""
    stop, woken = stop_of_thread(), threading.Event()
    with stop.waking(woken.set):
        woken.wait(seconds)
    stop.check()
