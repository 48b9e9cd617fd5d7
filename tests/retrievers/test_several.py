"""One retriever over several indexes."""

from __future__ import annotations

import pytest
from listed import Listed, combined, ids, passage, scores

from rallebench.core.errors import UsageError

ONE = Listed(("a", 0.9), ("b", 0.3), name="one", scale="inner product, minilm")
TWO = Listed(("c", 0.7), ("d", 0.5), name="two", scale="inner product, minilm")
WORDS = Listed(("w", 12.0), ("v", 3.0), name="words", scale="bm25")


def test_indexes_that_score_on_one_scale_are_merged_by_score() -> None:
    merged = combined("several", ONE, TWO)
    assert scores(merged.search(["q"], 3)[0]) == {"a": 0.9, "c": 0.7, "d": 0.5}
    assert merged.scale == "inner product, minilm"


def test_others_are_merged_by_rank_the_first_of_each_then_the_second() -> None:
    hits = combined("several", ONE, WORDS, TWO).search(["q"], 5)[0]
    assert ids(hits) == ["a", "w", "c", "b", "v"]
    assert [hit.score for hit in hits] == [1.0, 1.0, 1.0, 0.5, 0.5]


def test_merging_by_rank_can_be_asked_for_and_by_score_is_refused_across_scales() -> None:
    assert ids(combined("several", ONE, TWO, merge="rank").search(["q"], 2)[0]) == ["a", "c"]
    with pytest.raises(
        UsageError, match="score on different scales; use merge=rank, or merge=auto"
    ):
        combined("several", ONE, WORDS, merge="score")
    with pytest.raises(UsageError, match="score on different scales"):
        combined("several", Listed(name="x"), Listed(name="y"), merge="score")


def test_merged_retrievers_of_one_scale_merge_by_score_again() -> None:
    inner = combined("several", ONE, TWO)
    third = Listed(("e", 0.6), name="third", scale="inner product, minilm")
    assert ids(combined("several", inner, third).search(["q"], 4)[0]) == ["a", "c", "e", "d"]


def test_a_passage_that_two_indexes_hold_comes_once_and_keeps_its_page() -> None:
    shared = passage("s", page="p7")
    left = Listed((shared, 0.9), ("a", 0.1), name="left", scale="x")
    right = Listed((shared, 0.8), ("b", 0.2), name="right", scale="x")
    hits = combined("several", left, right).search(["q"], 3)[0]
    assert ids(hits) == ["s", "b", "a"]
    assert hits[0].passage.page_id == "p7" and hits[0].score == 0.9
    assert combined("several", left, right).page_ids() == {"p7", "page a", "page b"}


def test_passages_of_two_corpora_with_one_id_are_two() -> None:
    left = Listed((passage("1", "of the left"), 0.9), name="left", scale="x")
    right = Listed((passage("1", "of the right"), 0.8), name="right", scale="x")
    assert len(combined("several", left, right).search(["q"], 9)[0]) == 2


def test_a_smaller_k_is_a_prefix_where_it_is_for_the_parts() -> None:
    graph = Listed(name="graph", scale="x", prefix_stable=False)
    assert not combined("several", ONE, graph).prefix_stable
    merged = combined("several", ONE, TWO, merge="rank")
    deep = merged.search(["q"], 4)[0]
    assert [merged.search(["q"], k)[0] for k in (1, 2, 3)] == [deep[:k] for k in (1, 2, 3)]


def test_how_lists_are_merged_is_part_of_the_fingerprint() -> None:
    auto, score, rank = (
        combined("several", ONE, TWO, merge=merge).fingerprint
        for merge in ("auto", "score", "rank")
    )
    assert auto == score != rank
