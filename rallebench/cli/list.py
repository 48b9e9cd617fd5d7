"""``list``: what can be named."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from rallebench.cli.verbs import VERBS, workbench_of
from rallebench.core.errors import UsageError
from rallebench.experiments.papers import SUITES
from rallebench.metrics import card, read_card
from rallebench.workspace.catalog import listing


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kind",
        nargs="?",
        metavar="KIND",
        help="retrievers, encoders, indexes, llms, datasets, metrics, chains, …",
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="metrics whose whole card is printed, as: list metrics em recall@7",
    )


def _plain(value: Mapping[str, Any]) -> str:
    return "\n\n".join(
        f"{kind}:\n" + "\n".join(_row(row) for row in rows) for kind, rows in value.items()
    )


def _row(row: Mapping[str, Any]) -> str:
    if "definition" in row:
        return read_card(row["name"]).text() + "\n"
    return f"  {row['name']:<28} {row['about']}".rstrip()


@VERBS.register(
    "list",
    about="what can be named",
    example="rallebench list metrics",
    order=1,
    flags=_flags,
    plain=_plain,
)
def list_names(args: argparse.Namespace) -> dict[str, Any]:
    """Kind → the names that can be used here; of metrics that are named, the card."""
    if args.names:
        if args.kind != "metrics":
            raise UsageError(
                f"Only metrics have a card; write: rallebench list metrics {' '.join(args.names)}"
            )
        return {"metrics": [card(name) for name in args.names]}
    return listing(workbench_of(args).workspace, args.kind, {"suites": SUITES})
