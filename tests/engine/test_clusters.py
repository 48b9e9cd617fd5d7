"""Questions that share an article are one cluster, however long the chain of shared gold pages."""

from __future__ import annotations

from typing import Any

from rallebench.core.report import ClusterCounts
from rallebench.core.types import Example, Gold, Question
from rallebench.engine.clusters import find_clusters


def example(qid: str, *pages: str, **record: Any) -> Example:
    provenance = (frozenset(pages),) if pages else ()
    return Example(Question(qid, f"{qid}?"), Gold(provenance=provenance), record)


def test_questions_that_a_chain_of_shared_gold_pages_links_are_one_cluster() -> None:
    pages = {"a": "1", "b": "3", "c": "12", "d": "24", "e": "3"}
    clusters = find_clusters([example(qid, *of_question) for qid, of_question in pages.items()])
    of = clusters.of
    assert of["a"] == of["c"] == of["d"] != of["b"] == of["e"]
    assert clusters.counts == ClusterCounts("gold pages", 2, 3)


def test_without_gold_pages_the_group_field_counts_and_else_every_question() -> None:
    grouped = [example("a", group="x"), example("b", meta={"group": "x"}), example("c", group=7)]
    assert find_clusters(grouped).counts == ClusterCounts("group", 2, 2)
    alone = [example("a"), example("b")]
    assert find_clusters(alone).counts == ClusterCounts("question", 2, 1)
    assert find_clusters([]).counts == ClusterCounts("question", 0, 0)


def test_a_group_and_a_page_of_one_name_are_two_clusters() -> None:
    assert find_clusters([example("a", "x"), example("b", group="x"), example("x")]).counts.n == 3


def test_a_long_chain_of_pages_takes_steps_in_proportion() -> None:
    chain = [example(f"q{i}", f"p{i}", f"p{i + 1}") for i in range(10_000)]
    assert find_clusters(chain).counts == ClusterCounts("gold pages", 1, 10_000)
