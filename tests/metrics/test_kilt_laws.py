"""Laws that KILT's metrics obey on any episode."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rallebench.core.types import (
    Episode,
    Generate,
    Gold,
    Hit,
    Message,
    Note,
    Outcome,
    Passage,
    Reply,
    Retrieve,
    Step,
    UseTool,
)
from rallebench.metrics import metric
from rallebench.metrics.rank_list import rank_list

LAW = settings(database=None, max_examples=50)
ANSWERS = ["accuracy", "em", "f1", "rougel", "has_answer", "has_answer_all"]
PAGES = st.sampled_from(["1", "2", "3", "4", "5", "6"])
RANKS = st.lists(PAGES, max_size=12)
SETS = st.lists(st.frozensets(PAGES, min_size=1, max_size=3), max_size=5).map(tuple)
TEXTS = st.lists(
    st.sampled_from(["the", "Cat", "cat", "sat.", "on", "mat", "!"]), min_size=1, max_size=6
).map(" ".join)
ALIASES = st.lists(TEXTS, min_size=1, max_size=4, unique=True).map(tuple)


def episode(answer: str = "", *retrievals: list[str]) -> Episode:
    """An episode that retrieved these pages (one list per step) and gave this answer."""

    def retrieve(pages: list[str]) -> Step:
        passages = (Passage(f"{page}-{n}", "", page_id=page) for n, page in enumerate(pages))
        hits = tuple(Hit(passage, -n) for n, passage in enumerate(passages))
        return Step(Retrieve("r", "q", 5), Reply("", hits))

    return Episode("q", "chain", tuple(map(retrieve, retrievals)), Outcome(answer))


def value(name: str, said: Episode, gold: Gold) -> float:
    result = metric(name).value(said, gold)
    assert result is not None
    return float(result)


# ── answers ──────────────────────────────────────────────────────────────────


@LAW
@given(TEXTS, ALIASES)
def test_answer_metrics_are_ordered_from_zero_to_one(answer: str, aliases: tuple[str, ...]) -> None:
    values = {name: value(name, episode(answer), Gold(aliases)) for name in ANSWERS}
    assert all(0 <= v <= 1 for v in values.values())
    assert values["accuracy"] <= values["em"] <= values["has_answer"] == values["has_answer_all"]


@LAW
@given(ALIASES, st.data())
def test_an_accepted_answer_gets_full_marks(aliases: tuple[str, ...], data: st.DataObject) -> None:
    said = episode(f" {data.draw(st.sampled_from(aliases))}\n")
    assert value("accuracy", said, Gold(aliases)) == value("em", said, Gold(aliases)) == 1
    assert value("rougel", said, Gold(aliases)) == pytest.approx(1, abs=1e-8)


@LAW
@given(TEXTS, ALIASES, TEXTS, st.randoms())
def test_order_of_aliases_is_nothing_and_another_alias_never_hurts(
    answer: str, aliases: tuple[str, ...], more: str, random: Random
) -> None:
    shuffled = list(aliases)
    random.shuffle(shuffled)
    for name in ANSWERS:
        before = value(name, episode(answer), Gold(aliases))
        assert value(name, episode(answer), Gold(tuple(shuffled))) == before
        assert value(name, episode(answer), Gold((*aliases, more))) >= before


@LAW
@given(TEXTS, TEXTS)
def test_f1_does_not_care_who_is_gold(one: str, other: str) -> None:
    assert value("f1", episode(one), Gold((other,))) == value("f1", episode(other), Gold((one,)))


def test_an_empty_answer_scores_zero_and_has_answer_does_not_count_it() -> None:
    said, gold = episode("  ", ["1"]), Gold(("Rome",), provenance=(frozenset({"1"}),))
    for name in ANSWERS:
        values = [metric(n).value(said, gold) for n in (name, f"KILT-{name}")]
        assert values == [None if name == "has_answer" else 0] * 2


@LAW
@given(TEXTS, ALIASES, RANKS, SETS)
def test_a_kilt_metric_is_the_plain_one_where_r_precision_is_one_and_else_zero(
    answer: str, aliases: tuple[str, ...], pages: list[str], sets: tuple[frozenset[str], ...]
) -> None:
    said, gold = episode(answer, pages), Gold(aliases, provenance=sets)
    found = value("Rprec", said, gold) == 1
    for name in ANSWERS:
        assert value(f"KILT-{name}", said, gold) == (value(name, said, gold) if found else 0)


# ── retrieval ────────────────────────────────────────────────────────────────


@LAW
@given(RANKS, SETS, st.integers(1, 12))
def test_retrieval_metrics_stay_within_bounds_and_agree_with_each_other(
    pages: list[str], sets: tuple[frozenset[str], ...], k: int
) -> None:
    said, gold = episode("", pages), Gold(provenance=sets)
    precision, recall, success = (
        value(f"{name}@{k}", said, gold) for name in ("precision", "recall", "success_rate")
    )
    assert all(0 <= v <= 1 for v in (precision, recall, success, value("Rprec", said, gold)))
    assert (precision > 0) == (recall > 0) == (success == 1)
    assert precision * k == pytest.approx(recall * len(set(sets)))


@LAW
@given(RANKS, SETS)
def test_recall_and_success_never_fall(pages: list[str], sets: tuple[frozenset[str], ...]) -> None:
    said, gold = episode("", pages), Gold(provenance=sets)
    for name in ("recall", "success_rate"):
        values = [value(f"{name}@{k}", said, gold) for k in range(1, 14)]
        assert values == sorted(values)


@LAW
@given(SETS.filter(bool), RANKS)
def test_ranking_one_whole_evidence_set_first_gives_r_precision_one(
    sets: tuple[frozenset[str], ...], rest: list[str]
) -> None:
    assert value("Rprec", episode("", [*sorted(sets[0]), *rest]), Gold(provenance=sets)) == 1


@LAW
@given(RANKS, SETS, st.randoms())
def test_order_of_evidence_sets_is_nothing_to_r_precision_and_repetition_nothing_at_all(
    pages: list[str], sets: tuple[frozenset[str], ...], random: Random
) -> None:
    shuffled = list(sets)
    random.shuffle(shuffled)
    said, gold = episode("", pages), Gold(provenance=sets)
    assert value("Rprec", said, gold) == value("Rprec", said, Gold(provenance=tuple(shuffled)))
    for name in ("Rprec", "precision@3", "recall@3", "success_rate@3"):
        assert value(name, said, gold) == value(name, said, Gold(provenance=(*sets, *shuffled)))


def test_a_page_of_two_sets_adds_to_the_rank_in_the_order_of_the_gold() -> None:
    small, large = frozenset({"1", "5"}), frozenset({"1", "2", "5"})
    assert rank_list(["1", "3", "4", "5"], [small, large]) == [False, False, True, 1]
    assert rank_list(["1", "3", "4", "5"], [large, small]) == [False, False, 0, True]


@LAW
@given(RANKS, SETS)
def test_repeated_pages_and_passages_without_a_page_change_nothing(
    pages: list[str], sets: tuple[frozenset[str], ...]
) -> None:
    gold = Gold(provenance=sets)
    noisy = [again for page in pages for again in (page, "", f" {page} ")]
    for name in ("Rprec", "precision@2", "recall@2"):
        assert value(name, episode("", pages), gold) == value(name, episode("", noisy), gold)


@LAW
@given(RANKS, RANKS, SETS)
def test_the_pages_of_several_retrievals_are_joined_in_order(
    first: list[str], second: list[str], sets: tuple[frozenset[str], ...]
) -> None:
    gold = Gold(provenance=sets)
    apart, joined = episode("", first, second), episode("", first + second)
    for name in ("Rprec", "recall@3"):
        assert value(name, apart, gold) == value(name, joined, gold)


@LAW
@given(RANKS, st.lists(PAGES, min_size=1, max_size=5, unique=True))
def test_sets_of_one_page_rank_as_a_plain_list_of_pages(pages: list[str], gold: list[str]) -> None:
    distinct = list(dict.fromkeys(pages))
    assert rank_list(distinct, [{page} for page in gold]) == [page in gold for page in distinct]


def test_a_place_held_by_the_first_set_is_not_mistaken_for_a_miss() -> None:
    # Set 0 and set 1 are numbers in the rank; False == 0 and True == 1 must not be confused with them.
    assert rank_list(["9", "a", "b"], [{"a", "b"}]) == [False, True]
    rank = rank_list(["x", "a", "b"], [{"x"}, {"a", "b"}])
    assert [entry is True for entry in rank] == [True, True]


def test_without_gold_pages_retrieval_scores_zero() -> None:
    for name in ("Rprec", "precision@5", "recall@5", "success_rate@5"):
        assert value(name, episode("", ["1"]), Gold()) == 0


# ── passages and cost ────────────────────────────────────────────────────────


def passages(*texts: str) -> Episode:
    hits = tuple(Hit(Passage(str(n), text, page_id="1"), -n) for n, text in enumerate(texts))
    return Episode("q", "chain", (Step(Retrieve("r", "q", 5), Reply("", hits)),), Outcome(""))


def test_answers_in_passages_are_counted_by_passage_not_by_page() -> None:
    said, gold = passages("a party", "nothing", "modern  ART."), Gold(("art",))
    assert [value(f"answer_in_context@{k}", said, gold) for k in (1, 3)] == [1, 1]
    assert [value(f"answer_in_passage@{k}", said, gold) for k in (1, 2, 3)] == [0, 0, 1]


def test_the_gold_title_must_stand_in_the_passage_of_the_answer() -> None:
    gold = Gold(("1781",), provenance=(frozenset({"1"}),), titles={"1": "Uranus", "2": ""})
    apart = passages("Uranus is far", "found in 1781")
    together = passages("x", "The Uranus of 1781")
    assert value("entity_in_context@1", apart, gold) == 1
    assert value("answer_and_ent_in_context@5", apart, gold) == 0
    assert [value(f"answer_and_ent_in_context@{k}", together, gold) for k in (1, 2)] == [0, 1]
    assert metric("entity_in_context@1").value(apart, Gold(("1781",))) is None


def test_cost_is_the_sum_over_the_steps() -> None:
    request = Generate("m", (Message("user", "hi"),))
    first, second = (Reply("a", prompt_tokens=n, completion_tokens=m) for n, m in ((7, 2), (5, 1)))
    steps = (
        Step(Retrieve("r", "q", 5), Reply(""), seconds=0.25),
        Step(request, first, seconds=1.5, cached=True),
        Step(request, second, seconds=0.25),
    )
    said = Episode("q", "chain", steps, Outcome("b"))
    for name, expected in {"seconds": 2, "prompt_tokens": 12, "completion_tokens": 3}.items():
        assert value(name, said, Gold()) == expected


def test_only_retrievals_and_pages_that_were_opened_give_provenance() -> None:
    page, gold = Passage("1", "x", page_id="1"), Gold(provenance=(frozenset({"1"}),))
    stray = Step(UseTool("t", {}), Reply("", (Hit(page, 1.0),)))
    assert value("Rprec", Episode("q", "w", (stray,), Outcome("")), gold) == 0
    told = Note("Opened the page.", (page,))
    assert value("Rprec", Episode("q", "w", (Step(told, told.reply()),), Outcome("")), gold) == 1
