"""Hybrid retrieval: lists fused by rank, by score, or sampled from their union."""

from __future__ import annotations

from typing import Any

import pytest
from listed import Listed, combined, ids, passage, scores

from rallebench.core.errors import UsageError

SPARSE = Listed(("a", 9.0), ("b", 5.0), ("c", 1.0), name="sparse")
DENSE = Listed(("b", 0.9), ("d", 0.8), ("a", 0.1), name="dense")
KINDS = ("rrf", "scores", "union")


def test_rank_fusion_adds_the_weight_over_60_plus_the_rank() -> None:
    hits = combined("rrf", SPARSE, DENSE).search(["q"], 10)[0]
    expected = {"a": 0.5 / 61 + 0.5 / 63, "b": 0.5 / 62 + 0.5 / 61, "c": 0.5 / 63, "d": 0.5 / 62}
    assert ids(hits) == ["b", "a", "d", "c"]
    assert scores(hits) == pytest.approx(expected, abs=1e-12)


def test_weights_decide_between_the_parts_and_may_be_a_list_or_a_text() -> None:
    for weights in ([1, 0], "1,0", "1, 0"):
        fused = combined("rrf", SPARSE, DENSE, weights=weights).search(["q"], 3)[0]
        assert ids(fused) == ["a", "b", "c"]
    assert ids(combined("rrf", SPARSE, DENSE, weights="0,1").search(["q"], 1)[0]) == ["b"]


def test_the_constant_decides_how_much_a_first_rank_is_worth() -> None:
    first = Listed(("x", 2.0), ("y", 1.0), name="first")
    others = [Listed(("z", 2.0), ("y", 1.0), name=str(n)) for n in range(2)]
    assert ids(combined("rrf", first, *others, constant=60).search(["q"], 1)[0]) == ["y"]
    assert ids(combined("rrf", first, *others, constant=0).search(["q"], 1)[0]) == ["z"]


def test_ties_go_to_the_earlier_part() -> None:
    one, two = Listed(("a", 1.0), name="one"), Listed(("b", 1.0), name="two")
    assert ids(combined("rrf", one, two).search(["q"], 2)[0]) == ["a", "b"]
    assert ids(combined("rrf", two, one).search(["q"], 2)[0]) == ["b", "a"]


def test_score_fusion_adds_scores_scaled_from_0_to_1_per_list() -> None:
    found = scores(combined("scores", SPARSE, DENSE).search(["q"], 10)[0])
    assert found == pytest.approx({"a": 0.5, "b": 0.5 * 0.5 + 0.5, "c": 0.0, "d": 0.5 * 0.875})


def test_score_fusion_by_z_gives_what_a_list_lacks_that_lists_lowest_value() -> None:
    one, two = (
        Listed(("a", 3.0), ("b", 1.0), name="one"),
        Listed(("a", 5.0), ("c", 1.0), name="two"),
    )
    found = scores(combined("scores", one, two, normalise="z").search(["q"], 10)[0])
    assert found == pytest.approx({"a": 1.0, "b": -1.0, "c": -1.0})


def test_a_list_of_equal_scores_and_an_empty_list_divide_by_nothing() -> None:
    flat, empty = Listed(("a", 2.0), ("b", 2.0), name="flat"), Listed(name="empty")
    assert scores(combined("scores", flat, empty).search(["q"], 9)[0]) == {"a": 0.5, "b": 0.5}
    fused = combined("scores", flat, empty, normalise="z").search(["q"], 9)[0]
    assert scores(fused) == {"a": 0.0, "b": 0.0}


def test_a_union_is_sampled_from_what_the_parts_return_for_k() -> None:
    union = combined("union", SPARSE, DENSE)
    assert set(ids(union.search(["q"], 2)[0])) <= {"a", "b", "d"}
    drawn = [frozenset(ids(union.search([f"question {n}"], 2)[0])) for n in range(60)]
    assert set(drawn) == {frozenset("ab"), frozenset("ad"), frozenset("bd")}
    assert max(drawn.count(pair) for pair in set(drawn)) < 40


def test_another_seed_draws_another_sample_and_the_same_seed_the_same() -> None:
    queries = [f"question {n}" for n in range(20)]
    again = [combined("union", SPARSE, DENSE, seed=seed).search(queries, 2) for seed in (0, 0, 1)]
    assert again[0] == again[1] != again[2]


def test_the_depth_is_what_each_part_is_asked_for_while_it_holds_enough() -> None:
    parts = [Listed(*((str(n), -float(n)) for n in range(30)), name=name) for name in "ab"]
    combined("rrf", *parts, depth=10).search(["q"], 10)
    combined("rrf", *parts).search(["q"], 3)
    combined("union", *parts).search(["q"], 3)
    assert parts[0].depths == parts[1].depths == [10, 100, 3]


def deep_parts() -> list[Listed]:
    """500 passages ascending from 0 and 300 descending from 700: the lists meet far below the default depth."""
    upward = Listed(*((str(n), 1000.0 - n) for n in range(500)), name="upward")
    return [upward, Listed(*((str(700 - n), 1.0 - n / 1000) for n in range(300)), name="downward")]


@pytest.mark.parametrize("kind", KINDS)
def test_more_than_the_parts_were_asked_for_comes_where_they_have_it(kind: str) -> None:
    parts = deep_parts()
    settings = {"depth": 100} if kind == "union" else {}
    hybrid = combined(kind, *parts, **settings)
    for k in (150, 201, 450, 700):
        found = hybrid.search(["q"], k)[0]
        assert len(found) == len(set(ids(found))) == k
        assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert len(hybrid.search(["q"], 5000)[0]) == 701, (
        "all that both have together, numbers 0 to 700"
    )


@pytest.mark.parametrize("kind", ["rrf", "scores"])
def test_a_smaller_k_is_a_prefix_also_beyond_the_depth(kind: str) -> None:
    deep = combined(kind, *deep_parts()).search(["q"], 700)[0]
    for k in (5, 199, 200, 201, 333, 699):
        assert combined(kind, *deep_parts()).search(["q"], k)[0] == deep[:k]


def test_only_a_query_that_is_short_and_a_part_that_has_more_are_asked_again() -> None:
    upward, few = deep_parts()[0], Listed(("x", 1.0), name="few")
    assert len(combined("rrf", upward, few).search(["q", " "], 350)[0]) == 350
    assert upward.depths == [100, 200, 400] and few.depths == [100]
    assert upward.asked == [("q", " "), ("q",), ("q",)]


def test_equal_id_and_text_make_one_item_and_the_text_alone_where_it_is_asked_for() -> None:
    here, there = (
        Listed((passage("1", "same"), 1.0), name="x"),
        Listed((passage("2", "same"), 1.0), name="y"),
    )
    assert len(combined("rrf", here, there).search(["q"], 9)[0]) == 2
    assert ids(combined("rrf", here, there, equal="text").search(["q"], 9)[0]) == ["1"]


def test_an_item_that_a_list_names_twice_counts_once_at_its_better_rank() -> None:
    twice = Listed((passage("1", "same"), 3.0), (passage("2", "same"), 2.0), name="twice")
    fused = combined("rrf", twice, Listed(name="empty"), equal="text", weights="1,1")
    found = fused.search(["q"], 9)[0]
    assert [hit.score for hit in found] == [1 / 61]


def test_what_a_part_fills_up_with_without_a_match_gets_no_rank() -> None:
    filled = Listed(("a", 2.0), ("b", 0.0), ("c", 0.0), name="filled", no_match=0.0)
    assert ids(combined("rrf", filled, DENSE).search(["q"], 9)[0]) == ["a", "b", "d"]
    fused = combined("rrf", filled, DENSE).search(["q"], 9)[0]
    assert scores(fused)["b"] == pytest.approx(0.5 / 61)


def test_the_fingerprint_changes_with_the_parts_their_order_the_way_and_each_setting() -> None:
    other = Listed(("a", 1.0), name="other")
    made: list[Any] = [
        combined("rrf", SPARSE, DENSE),
        combined("rrf", DENSE, SPARSE),
        combined("rrf", SPARSE, other),
        combined("rrf", SPARSE, DENSE, weights="0.6,0.4"),
        combined("rrf", SPARSE, DENSE, constant=10),
        combined("rrf", SPARSE, DENSE, depth=50),
        combined("rrf", SPARSE, DENSE, equal="text"),
        combined("scores", SPARSE, DENSE),
        combined("scores", SPARSE, DENSE, normalise="z"),
        combined("union", SPARSE, DENSE),
        combined("union", SPARSE, DENSE, seed=1),
    ]
    assert len({retriever.fingerprint for retriever in made}) == len(made)
    assert combined("rrf", SPARSE, DENSE, weights="0.5,0.5").fingerprint == made[0].fingerprint


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"weights": "1,2,3"}, "weights has 3 numbers for 2 retrievers; give one each"),
        ({"weights": "a,b"}, "it must be a list of numbers from 0 up, not all 0, as in 0.7,0.3"),
        ({"weights": "0,0"}, "not all 0"),
        ({"weights": "-1,2"}, "numbers from 0 up"),
        ({"weights": "nan,1"}, "numbers from 0 up"),
        ({"depth": 0}, "depth must be a whole number from 1 to 10000"),
        ({"equal": "page"}, "equal must be one of passage, text"),
        ({"wieghts": "1,2"}, "has no setting 'wieghts'"),
    ],
)
def test_a_wrong_setting_is_a_sentence(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        combined("rrf", SPARSE, DENSE, **settings)
