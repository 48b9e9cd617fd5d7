"""The verbs of the command line, one file per family: flags → one core call → a JSON-able value.

A verb is ``(args) -> value``, registered with what the command line needs to offer it: ``example``,
``order`` in the help, ``flags(parser)`` that adds its own flags to the common ones, and ``plain(value)``,
the value as a person reads it (JSON where it is absent).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.registry import Registry
from rallebench.services.workbench import Workbench
from rallebench.workspace.paths import Workspace

VERBS: Registry[Callable[[argparse.Namespace], Any]] = Registry(
    "verb",
    "rallebench.cli",
    name="verbs",
    traits={
        "example": "a call, for the help",
        "order": "the place in the help",
        "flags": "(parser) → None: adds the verb's own flags",
        "plain": "(value) → text for people; JSON where it is absent",
    },
)
PACE = 2.0
"""Seconds between two lines of progress."""


def workbench_of(args: argparse.Namespace) -> Workbench:
    """The workbench of this call; ``args.ending`` closes it when the verb has ended."""
    tracking_uri = getattr(args, "tracking_uri", None)
    workbench = Workbench(
        args.workspace,
        base_settings=args.base_settings,
        tracking_uri=tracking_uri,
        allow_python=getattr(args, "allow_python", False),
    )
    args.ending.callback(workbench.close)
    return workbench


def allowed_host_flag(parser: argparse.ArgumentParser) -> None:
    """``--allowed-host``, of every verb that opens a server."""
    parser.add_argument(
        "--allowed-host",
        action="append",
        default=[],
        metavar="HOST[:PORT]",
        help="another name of this server, such as that of a proxy before it; may be given several times",
    )


def say(message: str) -> None:
    """Tell the user something on stderr: stdout belongs to the result."""
    print(message, file=sys.stderr, flush=True)


class Paced:
    """Tells how far something is, a line every ``PACE`` seconds at most; the first at once unless ``later``."""

    def __init__(self, *, later: bool = False) -> None:
        self._told = time.monotonic() if later else 0.0

    def say(self, message: str, *, always: bool = False) -> None:
        """Tell it if it is time to, or ``always``."""
        if always or time.monotonic() - self._told > PACE:
            self._told = time.monotonic()
            say(message)


def drain(progress: Iterator[str]) -> None:
    """Follow work to its end, telling what it says."""
    with interruptible(progress):
        for message in progress:
            say(message)


@contextlib.contextmanager
def interruptible(progress: Iterator[Any]) -> Iterator[None]:
    """A Ctrl-C that comes while a line of the work is printed reaches the work, too, which says how it ended."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if isinstance(progress, Generator):
            progress.throw(interrupt)
        raise


def checked_out(
    file: Path, workspace: Workspace, *, flag: str = "--out", read: Path | None = None
) -> Path:
    """A file to write. Raises UsageError for one that cannot be, before any work is done.

    ``read``: the file that it is made of. What the workspace holds of its own is not replaced either.
    """
    if file.is_dir():
        raise UsageError(f"{flag} {file} is a folder; name a file in it.")
    if file.exists():
        if not file.is_file():  # a device would be replaced by a file
            raise UsageError(f"{flag} {file} is no plain file; name a file to write.")
        if read is not None and os.path.samefile(file, read):
            raise UsageError(f"{flag} {file} is the file that is read; name another.")
        if any(folder in file.resolve().parents for folder in workspace.own_folders):
            raise UsageError(
                f"{flag} {file} belongs to the workspace and would be lost; name another file."
            )
    return file


def settings_flag(parser: argparse.ArgumentParser, help: str) -> None:
    """``--set KEY=VALUE``, as often as needed."""
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=help)


def written(pairs: Iterable[str]) -> dict[str, str]:
    """What ``--set`` was given, as it was written: whoever has a setting knows whether it is a number or a list."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set {pair!r} is not key=value.")
        found[key.strip()] = value
    return found


def loop_flags(parser: argparse.ArgumentParser) -> None:
    """How questions are asked."""
    parser.add_argument("--batch-size", type=int, default=20, metavar="B")
    parser.add_argument("--max-errors", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=0)


def mlflow_flags(parser: argparse.ArgumentParser) -> None:
    """Whether runs are logged, and where."""
    parser.add_argument("--no-mlflow", action="store_true")
    parser.add_argument("--tracking-uri", metavar="URI")


def described(registry: Registry[Any], name: str) -> dict[str, Any]:
    """A registered thing with its settings, JSON-able."""
    entry = registry.entry(name)
    settings = [
        {"name": key, "default": one.default, "about": one.about, "must_be": one.must_be}
        for key, one in entry.form.items()
    ]
    return {"name": name, "about": entry.about, "settings": settings}


def described_text(one: Mapping[str, Any]) -> str:
    """The same as a person reads it."""
    rows = [
        f"  {s['name']}={s['default']}".ljust(31) + f" {s['about'] or s['must_be']}"
        for s in one["settings"]
    ]
    return "\n".join([f"{one['name']}: {one['about']}", *rows])
