"""``list``: what can be named."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from rallebench.listing import listing
from rallebench.verbs import VERBS, workbench_of


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kind",
        nargs="?",
        metavar="KIND",
        help="retrievers, encoders, indexes, llms, datasets, metrics, chains, …",
    )


def _plain(value: Mapping[str, Any]) -> str:
    return "\n\n".join(f"{kind}:\n" + "\n".join(_row(row) for row in rows) for kind, rows in value.items())


def _row(row: Mapping[str, Any]) -> str:
    return f"  {row['name']:<28} {row['about']}".rstrip()


@VERBS.register(
    "list", about="what can be named", example="rallebench list metrics", order=1, flags=_flags, plain=_plain
)
def list_names(args: argparse.Namespace) -> dict[str, Any]:
    """Kind → the names that can be used here."""
    return listing(workbench_of(args).workspace, args.kind)
