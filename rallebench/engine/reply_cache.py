"""The cache of replies: request + backend fingerprint → reply, in one SQLite file.

After an edit of a chain's last prompt only the last step is computed again. After a killed run every finished answer is
reused. A key holds everything that changes the answer. Sampled generations are cached only with a seed; replies of tools,
which act on the world, never.
"""

from __future__ import annotations

import json
import logging
import re
import sqlite3
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from rallebench.core.backends import LLM, Backends
from rallebench.core.errors import BackendError
from rallebench.core.types import Generate, Reply, Request, Retrieve, Step, digest
from rallebench.engine.perform import trim
from rallebench.engine.record import reply_from_json, reply_to_json, request_to_json

log = logging.getLogger(__name__)

WRITE_LOCK_SECONDS = 30.0
"""Seconds for which one process waits for another's write."""
_SCHEMA = "CREATE TABLE IF NOT EXISTS memo (key TEXT PRIMARY KEY, depth INTEGER, seconds REAL, reply TEXT) WITHOUT ROWID"
_SELECT = "SELECT depth, seconds, reply FROM memo WHERE key = ?"


class UnwritableError(BackendError):
    """The file of the cache can be neither created nor written."""


class CachedReply(NamedTuple):
    """A reply with the cost of its original request: its share of the seconds of a ``batch`` (number of requests)."""

    reply: Reply
    seconds: float
    batch: int = 1

    def step(self, request: Request) -> Step:
        """The step of the request, with the cached reply."""
        return Step(request, self.reply, self.seconds, cached=True, batch=self.batch)


class ReplyCache:
    """Cached replies. Safe for several threads, and for several processes (SQLite's WAL).

    ``warning``: one sentence for the user if the replies are only in memory; '' if they are in a file.
    """

    warning = ""

    def __init__(self, path: Path | None) -> None:
        """Open the file ``path``; None: keep the replies in memory only."""
        self._lock = threading.Lock()
        self._damaged = False
        try:
            if path is not None:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(
                str(path or ":memory:"), check_same_thread=False, timeout=WRITE_LOCK_SECONDS
            )
            weakref.finalize(self, self._db.close)
            _write_ahead(self._db)
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute(_SCHEMA)
            self._db.commit()
        except (sqlite3.Error, OSError) as error:
            unwritable = re.search("readonly|read-only|unable to open", str(error))
            if isinstance(error, OSError) or unwritable:
                raise UnwritableError(
                    f"The memory {path} cannot be written ({getattr(error, 'strerror', None) or error}), so replies are "
                    "neither taken from it nor kept; make its folder writable, or use another workspace."
                ) from None
            mend = "free space" if isinstance(error, sqlite3.OperationalError) else "delete it"
            raise BackendError(
                f"The memory {path} cannot be opened ({error}); {mend}, or use another workspace."
            ) from None

    @staticmethod
    def open(path: Path) -> ReplyCache:
        """Open the cache in ``path``. If that cannot be written, keep replies in memory, with a ``warning``.

        Raises BackendError for a damaged file.
        """
        try:
            return ReplyCache(path)
        except UnwritableError as error:
            cache = ReplyCache(None)
            cache.warning = str(error)
            return cache

    def get(
        self, request: Request, backends: Backends, *, key: str | None = None
    ) -> CachedReply | None:
        """The cached reply and its cost, or None. ``key``: the ``cache_key`` of the request, if it is known."""
        key = key or cache_key(request, backends)
        if key is None:
            return None
        row = self._find(key)
        if row is None:
            return None
        depth, (reply, seconds, batch) = row
        if isinstance(request, Retrieve):
            if depth < request.k and len(reply.hits) >= depth:
                return None
            reply = trim(reply, request.k, backends.of(request).titled)
        return CachedReply(reply, seconds, batch)

    def _find(self, key: str) -> tuple[int, CachedReply] | None:
        """The row of ``key``. A damaged file has none: that costs time but loses no answer."""
        try:
            with self._lock, closing(self._db.execute(_SELECT, (key,))) as rows:
                row = rows.fetchone()
            if row is None:
                return None
            value = json.loads(row[2])
            return int(row[0]), CachedReply(
                reply_from_json(value), float(row[1]), int(value.get("batch", 1))
            )
        except (sqlite3.Error, LookupError, TypeError, ValueError, AttributeError) as error:
            if not self._damaged:
                log.warning("The memory is damaged (%s); lost replies are asked again.", error)
            self._damaged = True
            return None

    def put(
        self,
        answered: Sequence[tuple[Request, Reply, float]],
        backends: Backends,
        *,
        batch: int = 1,
        keys: Sequence[str | None] = (),
    ) -> None:
        """Cache the replies of a batch, each with its seconds. For equal queries the deepest retrieval stays.

        ``keys``: the ``cache_key`` of each request, if they are known. A full disk costs cached replies, not the run.
        """
        rows = []
        shared = {"batch": batch} if batch > 1 else {}
        keys = keys or [cache_key(request, backends) for request, _, _ in answered]
        for key, (request, reply, seconds) in zip(keys, answered):
            if key is not None:
                depth = request.k if isinstance(request, Retrieve) else 0
                text = json.dumps({**reply_to_json(reply), **shared}, ensure_ascii=False)
                # Half a surrogate pair, which SQLite cannot hold, stays escaped as in JSON.
                text = text.encode("utf-8", "backslashreplace").decode("utf-8")
                rows.append((key, depth, seconds, text))
        if not rows:
            return
        with self._lock:
            try:
                self._db.executemany(
                    "INSERT INTO memo VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET depth = excluded.depth, "
                    "seconds = excluded.seconds, reply = excluded.reply WHERE excluded.depth >= memo.depth",
                    rows,
                )
                self._db.commit()
            except sqlite3.Error:
                with suppress(sqlite3.Error):
                    self._db.rollback()

    def close(self) -> None:
        with self._lock:
            self._db.close()


def _write_ahead(db: sqlite3.Connection) -> None:
    """Let readers and one writer work at once. If two processes request this at the same moment in a new file, SQLite
    refuses one of them without waiting; that process tries again."""
    deadline = time.monotonic() + WRITE_LOCK_SECONDS
    db.execute(
        "PRAGMA busy_timeout=0"
    )  # SQLite's own wait might be for the other process, which waits for us
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute(f"PRAGMA busy_timeout={WRITE_LOCK_SECONDS * 1000:.0f}")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def cache_key(request: Request, backends: Backends) -> str | None:
    """sha256 over everything that changes the reply; None if the reply must not be cached.

    The k of a retrieval is left out if the hits for a smaller k are the first of those for a larger k.
    """
    if isinstance(request, Retrieve):
        retriever = backends.of(request)
        k = 0 if retriever.prefix_stable else request.k
        return digest(["retrieve, tokens counted", retriever.fingerprint, request.query, k])
    if isinstance(request, Generate):
        llm = backends.of(request)
        if default_seed(request, llm) is None and temperature(request, llm) > 0:
            return None
        content = {key: value for key, value in request_to_json(request).items() if key != "llm"}
        return digest(["generate", llm.fingerprint, content, _evidence(request)])
    return None


def default_seed(request: Generate, llm: LLM) -> int | None:
    """Return the seed of a request, or else that of its model."""
    seed: int | None = request.seed if request.seed is not None else getattr(llm, "seed", None)
    return seed


def temperature(request: Generate, llm: LLM) -> float:
    """Return the temperature of a request, or else that of its model; above 0 it samples."""
    own = request.temperature
    return float(own if own is not None else getattr(llm, "temperature", 0.0) or 0.0)


def _evidence(request: Generate) -> Any:
    if request.evidence is None:
        return None
    return [request.evidence.question, [[p.doc_id, p.title] for p in request.evidence.passages]]
