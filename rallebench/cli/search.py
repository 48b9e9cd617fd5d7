"""``search``: retrieve passages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rallebench.cli.flags import flag
from rallebench.cli.printing import drain, say
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.errors import UsageError
from rallebench.core.sources import Source
from rallebench.core.types import Hit
from rallebench.views.answers import hits_json, search_queries


@VERBS.register(
    "search",
    about="retrieve passages",
    example='rallebench search --index starter-bm25 -k 5 "Who discovered Titan?"',
    order=3,
    flags=(
        flag("query", "QUERY", nargs="*"),
        flag("--index", "N", required=True),
        flag("-k", type=int, default=5),
        flag("--queries", "FILE", "UTF-8, one query per line; -: standard input", type=Path),
    ),
)
def search(args: argparse.Namespace) -> Result:
    """Return the hits of every query."""
    if args.k < 1:
        raise UsageError(f"-k is {args.k}; it must be at least 1.")
    queries = [*args.query]
    if args.queries == Path("-"):
        queries += _standard_input()
    elif args.queries:
        queries += [line for _, line in Source(args.queries).lines()]
    if not queries:
        raise UsageError("No query was given; write one after the flags, or use --queries FILE.")
    workbench = open_workbench(args)
    drain(workbench.models.load(args.index, "retriever"))
    hits, warnings = search_queries(workbench.models.backends, args.index, queries, args.k)
    for sentence in warnings:
        say(f"Warning: {sentence}")
    value = [{"query": query, "hits": hits_json(row)} for query, row in zip(queries, hits)]
    return Result(value, ("\n\n".join(map(_text, queries, hits)),))


def _standard_input() -> list[str]:
    """Read the lines of stdin. Raises UsageError if they are not UTF-8."""
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(f"Standard input is not UTF-8 (byte {error.start}); convert it.") from None


def _text(query: str, hits: Sequence[Hit]) -> str:
    lines = [
        f"{rank:>3}. [{hit.score:.3f}] {hit.passage.title} (page {hit.passage.page_id})\n     {hit.passage.text}"
        for rank, hit in enumerate(hits, 1)
    ]
    return "\n".join([query, *(lines or ["  nothing found"])])
