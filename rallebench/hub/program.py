"""The program that fetches a dataset of the hub: ``python -m rallebench.hub.program NAME``.

It prints JSON lines, which ``fetching`` reads: ``{"message", "done", "total"}`` while it works; at the end ``{"files", "origin",
"partial"}``, or ``{"error", "kind"}``. SIGTERM ends it at once; a file that is not whole is then removed.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from rallebench.core.errors import BackendError, NotFoundError, RalleError, UsageError
from rallebench.core.files import free_bytes
from rallebench.core.hub_names import HubName, parse_hub_name
from rallebench.core.memory import size
from rallebench.core.types import Json
from rallebench.hub.choosing import (
    DatasetCard,
    RepoFile,
    SplitFiles,
    choose_files,
    is_safe,
    read_card,
)
from rallebench.hub.failures import ENDPOINT, TOKEN, Failures

CONVERTED = "refs/convert/parquet"
"""Branch on which the hub keeps the rows of a dataset as Parquet."""
CARD = "README.md"
SILENT_SECONDS = 60.0
"""Seconds without a byte after which the hub has stopped answering."""
REPORT_SECONDS = 0.3
PIECE = 2**18
"""Bytes that are read at once; the library's own pieces of 10 MB would hide the progress."""
SPARE = 2**26
"""Bytes of the disk that stay free."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class RepoListing:
    """The files of a repository at a commit. ``revision``: as asked for, '' for the newest."""

    revision: str
    commit: str
    files: tuple[RepoFile, ...]
    card: DatasetCard


class Hub:
    """The hub at its address, asked for one dataset. Every error is a RalleError."""

    def __init__(self, name: HubName) -> None:
        from huggingface_hub import HfApi, constants

        self.name = name
        self.address = os.environ.get(ENDPOINT, "").rstrip("/") or constants.ENDPOINT
        self.token = os.environ.get(TOKEN) or False
        self.offline = constants.is_offline_mode()
        self.seconds = constants.HF_HUB_ETAG_TIMEOUT
        self.cache = Path(constants.HF_HUB_CACHE)
        self._api = HfApi(endpoint=self.address, token=self.token)
        safe_address = re.sub(r"//[^/@]*@", "//", self.address)  # without a password
        self._words = Failures(name.repo, safe_address, self.cache, has_token=bool(self.token))

    def choose(self) -> tuple[RepoListing, SplitFiles]:
        """Return what the name means: files of the repository, or of its conversion to Parquet."""
        listing = self.list_files(self.name.revision)
        choice = self._choose_in(listing)
        if choice is None and not self.name.revision:
            with contextlib.suppress(NotFoundError):
                converted = self.list_files(CONVERTED)
                listing, choice = converted, self._choose_in(converted)
        if choice is None:
            raise self._without_tables([file.path for file in listing.files])
        return listing, choice

    def _choose_in(self, listing: RepoListing) -> SplitFiles | None:
        try:
            return choose_files(listing.files, listing.card, self.name)
        except NotFoundError:
            if self.offline:  # the hub may have what the cache has not
                raise self._incomplete(self.name.split or self.name.config or "a part") from None
            raise

    def list_files(self, revision: str) -> RepoListing:
        """Return the files of a revision, '' for the newest."""
        if self.offline:
            return self._list_cached(revision)
        with self._words.about(revision):
            info = self._api.dataset_info(
                self.name.repo,
                revision=revision or None,
                files_metadata=True,
                timeout=self.seconds,
            )
            if not _COMMIT.fullmatch(str(info.sha)):
                raise TypeError("no commit")
            files = (RepoFile(x.rfilename, int(x.size or 0)) for x in info.siblings or ())
            return RepoListing(
                revision,
                str(info.sha),
                tuple(x for x in files if is_safe(x.path)),
                read_card(vars(info.card_data) if info.card_data else {}),
            )

    def _list_cached(self, revision: str) -> RepoListing:
        from huggingface_hub import metadata_load, snapshot_download
        from huggingface_hub.errors import LocalEntryNotFoundError

        try:
            snapshot = snapshot_download(
                self.name.repo,
                repo_type="dataset",
                revision=revision or None,
                local_files_only=True,
            )
        except LocalEntryNotFoundError:
            raise NotFoundError(
                f"{self.name} is not in the cache of this machine, and the hub is not asked because HF_HUB_OFFLINE is set; unset it, "
                "or give the files of the dataset."
            ) from None
        folder = Path(snapshot)
        paths = (path for path in folder.rglob("*") if path.is_file())
        files = [RepoFile(p.relative_to(folder).as_posix(), p.stat().st_size) for p in paths]
        card = DatasetCard()
        if (folder / CARD).is_file():
            with contextlib.suppress(Exception):  # any YAML; without a card the names decide
                card = read_card(metadata_load(folder / CARD))
        return RepoListing(revision, folder.name, tuple(x for x in files if is_safe(x.path)), card)

    def download(self, listing: RepoListing, choice: SplitFiles) -> list[Path]:
        """Return the local files in order, printing the bytes. A file that is here already is not asked for."""
        from huggingface_hub import try_to_load_from_cache

        cards = [
            file for file in listing.files if file.path == CARD
        ]  # for later use without the network
        files = [*cards, *choice.files]
        cached = {
            file.path: try_to_load_from_cache(
                self.name.repo, file.path, revision=listing.commit, repo_type="dataset"
            )
            for file in files
        }
        missing = [file for file in files if not isinstance(cached[file.path], str)]
        self._check_room(sum(file.size for file in missing))
        meter = Meter(sum(file.size for file in missing))
        # The first file also records the commit of a branch in the cache.
        revision = listing.revision or "main"
        for number, file in enumerate(missing, 1):
            if self.offline:
                raise self._incomplete(file.path)
            meter.begin(f"{self.name.repo}: {file.path} ({number} of {len(missing)})")
            with self._words.about(listing.revision):
                path = self._download_file(file.path, revision, meter)
                if (
                    f"{os.sep}{listing.commit}{os.sep}" not in path
                ):  # the branch has moved meanwhile
                    path = self._download_file(file.path, listing.commit, meter)
            cached[file.path], revision = path, listing.commit
        return [Path(str(cached[file.path])) for file in choice.files]

    def _check_room(self, needed: int) -> None:
        free = free_bytes(self.cache)
        if needed + SPARE > free:
            raise BackendError(
                f"{self.name} takes {size(needed)}, and {size(free)} are free on the disk of {self.cache}; free space, or set "
                "HF_HOME to a folder on another disk."
            )

    def _download_file(self, path: str, revision: str, meter: Meter) -> str:
        from huggingface_hub import hf_hub_download

        with watch(SILENT_SECONDS):
            return str(
                hf_hub_download(
                    self.name.repo,
                    path,
                    repo_type="dataset",
                    revision=revision,
                    endpoint=self.address,
                    token=self.token,
                    etag_timeout=self.seconds,
                    tqdm_class=meter.bar,
                )
            )

    def _without_tables(self, paths: Sequence[str]) -> RalleError:
        repo = self.name.repo
        script = f"{repo.rpartition('/')[2]}.py"
        if self.offline:
            return self._incomplete(CARD)
        if script in paths:
            return UsageError(
                f"{repo} is made by a script ({script}), which is never run here, and the hub has no Parquet copy of it; download the "
                "original files, and import them."
            )
        named = ", ".join(paths[:8]) or "nothing"
        return UsageError(
            f"{repo} has no table that is read here (Parquet, Arrow, JSON, CSV, TSV); it has {named}. Name a file with file=, or "
            "download it yourself."
        )

    def _incomplete(self, path: str) -> RalleError:
        return NotFoundError(
            f"{self.name} is only in part in the cache of this machine ({path} is missing), and the hub is not asked because "
            "HF_HUB_OFFLINE is set; unset it."
        )


class Meter:
    """The bytes of all files, printed from time to time. ``bar`` takes the place of the library's progress bar."""

    def __init__(self, total: int) -> None:
        self._done, self._total, self._reported, self._message = 0, total, 0.0, ""
        meter = self

        class Bar:
            def __init__(self, *_: Any, initial: int = 0, **__: Any) -> None:
                meter.add(initial)

            def update(self, n: float | None = 1) -> None:
                meter.add(int(n or 0))

            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: Any) -> None: ...

            def __getattr__(self, name: str) -> Any:
                return lambda *_, **__: None  # close, refresh, set_postfix_str …

        self.bar = Bar

    def begin(self, message: str) -> None:
        self._message, self._reported = message, 0.0
        self.add(0)

    def add(self, count: int) -> None:
        self._done += count
        extend_watch()
        if time.monotonic() - self._reported >= REPORT_SECONDS or self._done == self._total:
            self._reported = time.monotonic()
            tell({"message": self._message, "done": self._done, "total": self._total})


def tell(value: Json) -> None:
    """Print a line for the parent. If it has ended, this program ends, too."""
    try:
        print(json.dumps(value), flush=True)
    except BrokenPipeError:
        raise KeyboardInterrupt from None


# ── silence ──────────────────────────────────────────────────────────────────

_patience = 0.0


@contextlib.contextmanager
def watch(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the block after so many seconds without ``extend_watch``. Not on Windows."""
    global _patience
    _patience = seconds
    extend_watch()
    try:
        yield
    finally:
        _patience = 0.0
        extend_watch()


def extend_watch() -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, _patience)


def _alarm(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("silence")


def _terminate(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def fetch(name: HubName) -> None:
    """Fetch a dataset, printing lines."""
    tell({"message": f"asking for {name.repo}", "done": 0, "total": 0})
    hub = Hub(name)
    listing, choice = hub.choose()
    paths = hub.download(listing, choice)
    pinned = HubName(name.repo, choice.config, choice.split, listing.commit, name.file)
    files = [[file.path, str(path)] for file, path in zip(choice.files, paths)]
    tell({"files": files, "origin": str(pinned), "partial": choice.partial})


def main() -> int:
    """Fetch the dataset named by the argument; return the exit code."""
    from huggingface_hub import constants

    signal.signal(signal.SIGTERM, _terminate)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, _alarm)
    constants.DOWNLOAD_CHUNK_SIZE = PIECE
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    try:
        fetch(parse_hub_name(sys.argv[1]))
    except RalleError as error:
        tell({"error": str(error), "kind": type(error).__name__})
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
