"""The address of the page behind a proxy: a path prefix, or a Hugging Face Space that shows the page in a frame."""

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
"""Environment variables set by a Hugging Face Space: the Space's name, and the host name of its page."""

SPACE_FRAMES = ("https://huggingface.co",)
"""Sites that may show a Space's page in a frame."""

SPACE_PORT = 7860
SPACE_DISK = Path("/data")
"""The folder of a Space that survives restarts, if it has a disk."""

_PATH = re.compile(r"(/[A-Za-z0-9_.~-]+)+")


@dataclass(frozen=True, slots=True)
class Hosting:
    """The address and access rules of the page. ``root_path``: path prefix or public address, '' if none;
    ``allowed``: additional host names; ``frames``: sites that may show it in a frame; ``needs_login``: True if no
    proxy asks for a login first.
    """

    host: str
    port: int
    workspace: Path
    root_path: str = ""
    allowed: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    needs_login: bool = True

    @property
    def public_address(self) -> str:
        """The address used by visitors; '' if only a path is known."""
        return self.root_path if "://" in self.root_path else ""


def read_hosting(args: argparse.Namespace) -> Hosting:
    """Read the hosting from the flags of ``ui``. Raises UsageError."""
    root_path = check_root_path(args.root_path)
    if args.share and (root_path or args.spaces):
        other = "--root-path" if root_path else "--spaces"
        raise UsageError(f"A shared link has an address of its own; leave out --share or {other}.")
    allowed = tuple(args.allowed_host)
    if "://" in root_path:
        allowed += (urlsplit(root_path).netloc,)
    if args.spaces:
        return read_space(os.environ, args, root_path, allowed)
    return Hosting(args.host, args.port, args.workspace, root_path, allowed)


def check_root_path(text: str) -> str:
    """Return a path prefix or public address without its trailing slash. Raises UsageError for anything else.

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
    """Return the hosting in a Hugging Face Space, using its disk if it has one. Raises UsageError outside a Space."""
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
