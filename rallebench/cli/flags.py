"""Flags as values, including the flags shared by several verbs."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.deciding import CONFIDENCE
from rallebench.core.deciding import MARGIN as LOSS


@dataclass(frozen=True, slots=True)
class Flag:
    """An ``argparse`` argument with one or more names."""

    names: tuple[str, ...]
    options: Mapping[str, Any]

    def add(self, parser: argparse.ArgumentParser, **options: Any) -> None:
        """Add the argument to a parser; ``options`` override its own options."""
        parser.add_argument(*self.names, **{**self.options, **options})


def flag(name: str, metavar: str = "", help: str | None = None, **options: Any) -> Flag:
    """Return a flag or positional argument; without ``metavar``, help shows its choices, if any."""
    if metavar:
        options["metavar"] = metavar
    return Flag((name,), {"help": help, **options})


def switch(name: str, help: str | None = None) -> Flag:
    """Return a flag without a value."""
    return Flag((name,), {"help": help, "action": "store_true"})


def many(name: str, metavar: str, help: str | None = None, alias: str = "") -> Flag:
    """Return a repeatable flag, with ``alias`` as its second name."""
    options: dict[str, Any] = {"help": help, "metavar": metavar, "action": "append", "default": []}
    return Flag(tuple(filter(None, (name, alias))), options)


def settings(help: str) -> Flag:
    """Return the repeatable flag ``--set KEY=VALUE``."""
    return many("--set", "KEY=VALUE", help)


COMMON = (
    flag(
        "--workspace", "DIR", "holds indexes/, runs/, … (default: .)", type=Path, default=Path(".")
    ),
    switch("--json", "print exactly one JSON document on stdout"),
    flag("--base-settings", "DIR", "folder with RaLLe's base settings (llms.json, …)", type=Path),
)
LOOP = (
    flag("--batch-size", "B", type=int, default=20),
    flag("--max-errors", "N", type=int),
    flag("--seed", type=int, default=0),
)
"""Flags that control how questions are asked."""
LIMIT = (
    flag("--limit", "N", "the first N questions of the dataset", type=int),
    flag(
        "--sample", "N", "N questions drawn by --seed; those of 30 are among those of 100", type=int
    ),
)
"""Flags that select part of a dataset; see :func:`arguments.read_part`."""
COLUMNS = flag(
    "--columns",
    "ROLE=COLUMN,…",
    "of a table whose names do not tell, such as question=q,answer=a,page=source or text=body,id=key; nested: answers.text",
    default="",
)
"""Flag that gives the columns of a table their roles; see :func:`core.columns.parse_columns`."""
MAX_USD = flag(
    "--max-usd",
    "USD",
    "stop once new calls of models have cost so many US dollars; what was answered is kept, and it can be resumed",
    type=float,
)
"""Flag that limits spending; see :func:`arguments.read_budget`."""
REPEATS = (
    flag(
        "--repeats",
        "N",
        "ask every question N times where a model samples; scores are means, with pass@k and pass^k",
        type=int,
        default=1,
    ),
    many(
        "--threshold",
        "METRIC=SCORE",
        "with --repeats: the score from which an answer passes, of a metric other than 0 and 1",
    ),
)
"""Flags that repeat questions; see :func:`arguments.read_repeats`."""
MLFLOW = (switch("--no-mlflow"), flag("--tracking-uri", "URI"))
"""Flags for logging to MLflow."""
OVERRIDES = (
    flag("--llm", "L", "use this model in every generate action"),
    flag("--retriever", "R", "use this retriever in every retrieve action"),
    settings("k=10, temperature=0.2, 2.max_tokens=32 …"),
)
"""Flags that change a chain before it runs."""
ARRANGED = (
    flag(
        "--where",
        "FILTER",
        "only names that fit, such as 'em<50 chain:starter -tag:night' (docs/page.md has the terms)",
        default="",
    ),
    flag("--sort", "COLUMN", "in this order; --sort=-em puts the largest first", default=""),
)
"""Flags that filter and sort a list; see :mod:`core.list_filter`."""
MCP_SERVERS = flag(
    "--mcp-servers",
    "FILE",
    "MCP servers whose tools agents may call, as environments mcp:NAME (docs/agents.md has the format)",
    type=Path,
)
"""Flag that names the file of MCP servers."""
AGENT = (
    flag(
        "--workflow",
        "W",
        "in place of --chain: react, pal, dfsdt …, see 'rallebench list workflows'",
    ),
    flag("--env", "E", "what the workflow acts on, see 'rallebench list environments'", default=""),
    switch(
        "--allow-python",
        "let a workflow run programs that the model writes (docs/agents.md says what holds them)",
    ),
    MCP_SERVERS,
)
"""Flags that select an agent instead of a chain."""
ALLOWED_HOST = many(
    "--allowed-host",
    "HOST[:PORT]",
    "another name of this server, such as that of a proxy before it; may be given several times",
)

MARGIN = (
    flag(
        "--metric",
        "M",
        "default: the first of em, accuracy, f1, … that both have, or of their suite's own",
        default="",
    ),
    flag(
        "--margin",
        help="the greatest tolerated loss, in the metric's units (default: %(default)s)",
        type=float,
        default=LOSS,
    ),
    flag(
        "--confidence",
        help="of the two-sided interval (default: %(default)s)",
        type=float,
        default=CONFIDENCE,
    ),
)
"""Flags of the decision whether a run is worse than another."""

SLICE = flag(
    "--slice",
    "S",
    "compare only a group of the base's questions, meaning-2 or word-who, as 'rallebench why' lists them",
    default="",
)
"""Flag that restricts a comparison to a group of questions."""

UNTIL_DECIDED = (
    switch("--until-decided", "end once the comparison with the run --against is decided"),
    flag("--against", "BASE", "the run that it must not be worse than", default=""),
    *MARGIN,
)
"""Flags of a run that may end early; see :func:`arguments.read_stopping_rule`."""
