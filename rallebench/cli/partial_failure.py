"""Work of several parts, some of which failed: the others' results are printed, and the exit code is 1."""

from __future__ import annotations

import argparse
from collections.abc import Collection

from rallebench.core.errors import BackendError


def fail_at_end(args: argparse.Namespace, sentence: str) -> None:
    """Once the result is printed, end with this sentence on stderr and exit code 1."""
    args.ending.callback(_fail, sentence)


def tell_failed(
    args: argparse.Namespace, what: str, failed: Collection[str], total: int, mend: str
) -> None:
    """``fail_at_end`` if any ``failed`` of the ``total`` ``what``: how many, which, and ``mend``, how to go on."""
    if failed:
        fail_at_end(args, f"{len(failed)} of {total} {what} failed: {', '.join(failed)}. {mend}")


def _fail(sentence: str) -> None:
    raise BackendError(sentence)
