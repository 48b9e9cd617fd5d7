"""``list``: list the names that other commands accept."""

from __future__ import annotations

import argparse

from rallebench.cli.flags import ARRANGED, MCP_SERVERS, flag
from rallebench.cli.verbs import VERBS, Result
from rallebench.core.errors import UsageError
from rallebench.views import lists


@VERBS.register(
    "list",
    about="what can be named",
    example="rallebench list metrics",
    order=1,
    flags=(
        flag(
            "kind",
            "KIND",
            "retrievers, encoders, indexes, llms, datasets, metrics, chains, …",
            nargs="?",
        ),
        flag(
            "names",
            "NAME",
            "metrics whose whole card is printed, as: list metrics em recall@7",
            nargs="*",
        ),
        *ARRANGED,
        MCP_SERVERS,
    ),
)
def list_names(args: argparse.Namespace) -> Result:
    """Return the usable names by kind, or the details of named metrics."""
    if args.names:
        if args.kind != "metrics":
            raise UsageError(
                f"Only metrics have a card; write: rallebench list metrics {' '.join(args.names)}"
            )
        cards = [lists.whole_card(name) for name in args.names]
        texts = (f"{card.text()}\n" for card in cards)
        return Result({"metrics": [card.to_json() for card in cards]}, ("metrics:", *texts))
    workspace = lists.open_workspace(args.workspace, args.base_settings, args.mcp_servers)
    kinds = lists.listing(workspace, args.kind, args.where, args.sort)
    lines: list[str] = []
    for kind, rows in kinds.items():
        lines += ["", f"{kind}:"] if lines else [f"{kind}:"]
        lines += [f"  {row['name']:<28} {row['about']}".rstrip() for row in rows]
    return Result(kinds, ("\n".join(lines),))
