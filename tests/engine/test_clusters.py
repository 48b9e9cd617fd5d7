"""Questions that share an article are one cluster, however long the chain of shared gold pages."""

from __future__ import annotations

from typing import Any

from rallebench.core.types import Example, Gold, Question
from rallebench.engine.clusters import clusters_of


def example(qid: str, *pages: str, **record: Any) -> Example:
    provenance = (frozenset(pages),) if pages else ()
    return Example(Question(qid, f"{qid}?"), Gold(provenance=provenance), record)


def test_questions_that_a_chain_of_shared_gold_pages_links_are_one_cluster() -> None:
    pages = {"a": "1", "b": "3", "c": "12", "d": "24", "e": "3"}
    clusters = clusters_of([example(qid, *of_question) for qid, of_question in pages.items()])
    of = clusters.of
    assert of["a"] == of["c"] == of["d"] != of["b"] == of["e"]
    assert clusters.as_json() == {"by": "gold pages", "n": 2, "largest": 3}


def test_without_gold_pages_the_group_field_counts_and_else_every_question() -> None:
    grouped = [example("a", group="x"), example("b", meta={"group": "x"}), example("c", group=7)]
    assert clusters_of(grouped).as_json() == {"by": "group", "n": 2, "largest": 2}
    alone = [example("a"), example("b")]
    assert clusters_of(alone).as_json() == {"by": "question", "n": 2, "largest": 1}
    assert clusters_of([]).as_json() == {"by": "question", "n": 0, "largest": 0}


def test_a_group_and_a_page_of_one_name_are_two_clusters() -> None:
    assert (
        clusters_of([example("a", "x"), example("b", group="x"), example("x")]).as_json()["n"] == 3
    )


def test_a_long_chain_of_pages_takes_steps_in_proportion() -> None:
    chain = [example(f"q{i}", f"p{i}", f"p{i + 1}") for i in range(10_000)]
    assert clusters_of(chain).as_json() == {"by": "gold pages", "n": 1, "largest": 10_000}
