"""The page's address behind a proxy: a path prefix, or a Hugging Face Space that shows the page in a frame."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from rallebench.core.errors import UsageError

SPACE_ID, SPACE_HOST = "SPACE_ID", "SPACE_HOST"
"""Variables that a Hugging Face Space sets: its name, and the host name of its page."""

SPACE_FRAMES = ("https://huggingface.co",)
"""Pages that may show the page of a Space in a frame."""

SPACE_PORT = 7860
SPACE_DISK = Path("/data")
"""The folder that a Space keeps when it restarts, if it has a disk."""

_PATH = re.compile(r"(/[A-Za-z0-9_.~-]+)+")


@dataclass(frozen=True, slots=True)
class Hosting:
    """The place of the page. ``root_path``: its prefix or public address, '' without one; ``allowed``: further host names;
    ``frames``: pages that may show it in a frame; ``needs_login``: no proxy before it asks for a login."""

    host: str
    port: int
    workspace: Path
    root_path: str = ""
    allowed: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    needs_login: bool = True

    @property
    def public_address(self) -> str:
        """The address that visitors use, '' if only a path is known."""
        return self.root_path if "://" in self.root_path else ""


def read_hosting(args: argparse.Namespace) -> Hosting:
    """Return the place that the flags of ``ui`` name. Raises UsageError."""
    root_path = check_root_path(args.root_path)
    allowed = tuple(args.allowed_host)
    if "://" in root_path:
        allowed += (urlsplit(root_path).netloc,)
    if args.spaces:
        return read_space(os.environ, args, root_path, allowed)
    return Hosting(args.host, args.port, args.workspace, root_path, allowed)


def check_root_path(text: str) -> str:
    """Return a path prefix or public address without a trailing slash. Raises UsageError for anything else.

    >>> check_root_path("/bench/"), check_root_path("https://lab.example.org/bench"), check_root_path("")
    ('/bench', 'https://lab.example.org/bench', '')
    """
    trimmed = text.strip().rstrip("/")
    if not trimmed or _is_prefix(trimmed):
        return trimmed
    try:
        parts = urlsplit(trimmed)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        plain = parts.username is None and not parts.query and not parts.fragment
    except ValueError:
        whole = plain = False
    if whole and plain and (not parts.path or _is_prefix(parts.path)):
        return trimmed
    raise UsageError(
        f"--root-path {text!r} is neither a path such as /bench nor an address such as https://lab.example.org/bench."
    )


def _is_prefix(path: str) -> bool:
    names = path.split("/")
    return _PATH.fullmatch(path) is not None and not {".", ".."} & set(names)


def read_space(
    environment: Mapping[str, str],
    args: argparse.Namespace,
    root_path: str,
    allowed: tuple[str, ...],
    disk: Path = SPACE_DISK,
) -> Hosting:
    """Return the place of a page in a Hugging Face Space, on its disk if it has one. Raises UsageError outside of a Space."""
    host = environment.get(SPACE_HOST, "")
    if not environment.get(SPACE_ID) or not host:
        raise UsageError(
            f"--spaces is for a Hugging Face Space, which sets {SPACE_ID} and {SPACE_HOST}; leave it out elsewhere."
        )
    workspace = args.workspace
    if workspace == Path(".") and disk.is_dir() and os.access(disk, os.W_OK):
        workspace = disk
    return Hosting(
        "0.0.0.0",
        SPACE_PORT,
        workspace,
        root_path or f"https://{host}",
        (*allowed, host),
        SPACE_FRAMES,
        needs_login=False,
    )
