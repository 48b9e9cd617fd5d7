"""What stands beside our rows from RaLLe's tables (Hoshi et al. 2023, arXiv:2308.10633), as shares: KILT's dev files over
all of Wikipedia."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rallebench.experiments.published import Row, published_table

READER = "RaLLe: Llama2-70B, e5 flat, top 5"
SYSTEM = "e5 + Llama2-70B"
AVERAGE = "Avg"
"""The column of a mean over all eleven sets, in the tables that print one."""
TABLES: Mapping[str, str] = {"Rprec": "ralle_table3", "recall@5": "ralle_table8"}
"""Metric of retrieval → the table that prints it."""


def answers(block: str, *, has_answer: bool = False) -> dict[str, float]:
    """Label of a set → score of RaLLe's chain, or its ``has_answer``. ``block``: ``downstream``, or ``KILT`` for KILT's variant."""
    table = published_table("ralle_table2")
    return table.shares(table.row(SYSTEM, block=block), brackets=has_answer)


def retrieval(metric: str, linking: bool) -> Iterator[tuple[str, dict[str, float]]]:
    """(retriever, label of a set → share) of RaLLe's own retrievers; ``linking``: also without REWRITE-EL, which changes the
    entity-linking sets only."""
    table = published_table(TABLES[metric])
    for row in table.rows:
        if "retriever" in row.settings and (linking or row.settings["rewrite_el"]):
            yield row.system, table.shares(row)


def speeds() -> Iterator[tuple[str, Row, float | None]]:
    """(retriever, its row of seconds a question per set, GB of memory or None where none is printed), 22.2 million passages."""
    seconds = published_table("ralle_table9")
    for row in published_table("ralle_table4").rows:
        if row.settings["block"] == "retrieval":
            yield row.system, seconds.row(row.system, block="retrieval"), row.values["Memory"]
