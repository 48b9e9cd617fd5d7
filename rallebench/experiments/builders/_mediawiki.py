"""Random articles from a MediaWiki's API, where somebody asks for them by name: nothing else here goes online."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator
from typing import Any

from rallebench import __version__
from rallebench.core.errors import BackendError
from rallebench.experiments.builders.articles import SourceArticle

SECONDS = 30.0
DRAW = 500
"""The API gives at most so many random pages at once."""


def random_articles(api: str, number: int, known: Iterable[str] = ()) -> Iterator[SourceArticle]:
    """``number`` articles of namespace 0, not those that are ``known``, with the time of their first revision; a page without
    text is passed over.

    Raises BackendError if the API cannot be reached.
    """
    seen = set(known)
    number += len(seen)
    while len(seen) < number:
        reply = _query(
            api,
            {"list": "random", "rnnamespace": "0", "rnlimit": str(min(DRAW, number - len(seen)))},
        )
        pages = reply.get("query", {}).get("random", [])
        new = [str(page["id"]) for page in pages if str(page.get("id", "")) not in seen]
        if not new:
            return
        for page in new:
            seen.add(page)
            article = _article(api, page)
            if article is not None:
                yield article


def _article(api: str, page: str) -> SourceArticle | None:
    options = {
        "prop": "extracts|revisions|info",
        "explaintext": "1",
        "rvdir": "newer",
        "rvlimit": "1",
        "rvprop": "timestamp",
        "inprop": "url",
    }
    pages = _query(api, {**options, "pageids": page}).get("query", {}).get("pages", [])
    entry = pages[0] if isinstance(pages, list) and pages else {}
    if not entry.get("extract"):
        return None
    date = next((str(revision.get("timestamp", "")) for revision in entry.get("revisions", [])), "")
    title, text, url = (str(entry.get(key, "")) for key in ("title", "extract", "fullurl"))
    return SourceArticle(page, title, text, url, date)


def _query(api: str, query: dict[str, str]) -> dict[str, Any]:
    address = f"{api}?{urllib.parse.urlencode({'action': 'query', 'format': 'json', 'formatversion': '2', **query})}"
    try:
        request = urllib.request.Request(
            address, headers={"User-Agent": f"rallebench/{__version__}"}
        )
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            value = json.loads(answer.read())
    except (OSError, ValueError, urllib.error.URLError) as error:
        reason = getattr(error, "reason", None) or error
        raise BackendError(
            f"{api} cannot be asked ({reason}); source=mediawiki needs the network: give articles from a file with --articles instead."
        ) from None
    return value if isinstance(value, dict) else {}
