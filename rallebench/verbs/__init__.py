"""The verbs of the command line, one file per family: flags → one core call → a JSON-able value.

A verb is ``(args) -> value``, registered with what the command line needs to offer it: ``example``,
``order`` in the help, ``flags(parser)`` that adds its own flags to the common ones, and ``plain(value)``,
the value as a person reads it (JSON where it is absent).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rallebench.errors import UsageError
from rallebench.registry import Registry
from rallebench.workbench import Workbench

VERBS: Registry[Callable[[argparse.Namespace], Any]] = Registry("verb", "rallebench.verbs")


def workbench_of(args: argparse.Namespace) -> Workbench:
    """The workbench of this call; ``args.ending`` closes it when the verb has ended."""
    tracking_uri = getattr(args, "tracking_uri", None)
    workbench = Workbench(
        args.workspace, base_settings=args.base_settings, tracking_uri=tracking_uri,
        allow_python=getattr(args, "allow_python", False),
    )  # fmt: skip
    args.ending.callback(workbench.close)
    return workbench


def say(message: str) -> None:
    """Tell the user something on stderr: stdout belongs to the result."""
    print(message, file=sys.stderr, flush=True)


def drain(progress: Iterator[str]) -> None:
    """Follow work to its end, telling what it says."""
    for message in progress:
        say(message)


def checked_out(file: Path) -> Path:
    """A file to write. Raises UsageError for one that cannot be, before any work is done."""
    if file.is_dir():
        raise UsageError(f"--out {file} is a folder; name a file in it.")
    return file


def settings_flag(parser: argparse.ArgumentParser, help: str) -> None:
    """``--set KEY=VALUE``, as often as needed."""
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=help)
