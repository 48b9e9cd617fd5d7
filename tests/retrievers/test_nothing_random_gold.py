"""Baselines of a chain: no passages, random passages, the passages of the gold pages."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from listed import Listed, ids

from rallebench.core.entries import Combination
from rallebench.core.errors import UsageError
from rallebench.core.types import Example, Gold, Passage, Question
from rallebench.corpora.store import PassageStore, write_store
from rallebench.retrievers.composites import check_settings
from rallebench.retrievers.references import random_order
from rallebench.workspace.opening import open_combination

PASSAGES = (
    Passage("a1", "Titan was named later.", "Titan", "pa"),
    Passage("b1", "Saturn is a planet.", "Saturn", "pb"),
    Passage("a2", "Huygens found Titan in 1655.", "Titan", "pa"),
    Passage("b2", "Huygens looked at Saturn.", "Saturn", "pb"),
    Passage("c1", "Rome is a city.", "Rome", "pc"),
)


def asked(
    text: str, pages: Sequence[str] = (), answers: Sequence[str] = (), passages: Sequence[str] = ()
) -> Example:
    gold = Gold(
        tuple(answers),
        provenance=(frozenset(pages),) if pages else (),
        titles=dict.fromkeys(pages, ""),
        passages=(frozenset(passages),) if passages else (),
    )
    return Example(Question(text, text), gold)


QUESTIONS = (
    asked("Who found Titan?", ["pb", "pa"], ["Huygens"]),
    asked("Where is Rome?", ["pc", "lost"], ["Italy"]),
    asked("What is Atlantis?", ["lost"], ["nothing"]),
    asked("Which line?", ["pa"], ["no such answer"], ["a2", "c1"]),
    asked("Without pages?", passages=["c1"]),
)


@pytest.fixture
def index(tmp_path: Path) -> Any:
    write_store(tmp_path, PASSAGES)
    return SimpleNamespace(
        name="mine", titled=True, fingerprint="f", passages=PassageStore(tmp_path)
    )


def opened(kind: str, *parts: Any, examples: Sequence[Example] = QUESTIONS, **settings: Any) -> Any:
    settings |= {"questions": "my-qa"} if kind == "gold" else {}
    entry = Combination(kind=kind, of=[part.name for part in parts], settings=settings)
    entry = entry.model_copy(update={"settings": check_settings("line", entry)})
    return open_combination("line", entry, parts, examples=examples)


def found(retriever: Any, query: str, k: int = 10) -> list[str]:
    return ids(retriever.search([query], k)[0])


def test_nothing_finds_nothing_and_still_hands_out_passages_as_its_index_does(index: Any) -> None:
    nothing = opened("nothing", index)
    assert nothing.search(["Who found Titan?"], 5) == [()] and nothing.titled


def test_gold_gives_passages_with_an_answer_first_in_order_of_the_corpus(index: Any) -> None:
    gold = opened("gold", index)
    assert found(gold, "Who found Titan?") == ["b2", "a2", "b1", "a1"]
    hits = gold.search(["Who found Titan?"], 2)[0]
    assert ids(hits) == ["b2", "a2"] and [hit.score for hit in hits] == [1.0, 0.5]


@pytest.mark.parametrize(
    ("question", "passages"),
    [
        (" Where is Rome? ", ["c1"]),  # the corpus lacks the other page
        ("What is Atlantis?", []),
        ("Which line?", ["a2", "a1"]),  # passages named by the gold come first on its pages
        ("Without pages?", ["c1"]),
    ],
)
def test_gold_gives_what_the_corpus_has_of_what_the_gold_names(
    index: Any, question: str, passages: list[str]
) -> None:
    assert found(opened("gold", index), question) == passages


def test_questions_of_one_text_share_their_gold(index: Any) -> None:
    twice = [asked("Which?", ["pa"], ["Titan"]), asked("Which?", ["pc"], ["Rome"])]
    assert found(opened("gold", index, examples=twice), "Which?") == ["a1", "a2", "c1"]


def test_a_query_that_is_no_question_is_a_sentence_and_a_blank_one_no_hits(index: Any) -> None:
    gold = opened("gold", index)
    assert gold.search(["", " \n"], 3) == [(), ()]
    with pytest.raises(
        UsageError, match="'titan' is not a question of 'my-qa', so its gold pages are unknown"
    ):
        gold.search(["titan"], 3)


def test_a_dataset_without_provenance_is_refused(index: Any) -> None:
    with pytest.raises(UsageError, match="The dataset 'my-qa' names no gold pages"):
        opened("gold", index, examples=[asked("Who?", answers=["me"])])


def test_gold_remembers_by_what_the_questions_name(index: Any) -> None:
    prints = [
        opened("gold", index, examples=examples).fingerprint
        for examples in (QUESTIONS, QUESTIONS, QUESTIONS[:1])
    ]
    assert prints[0] == prints[1] != prints[2]


def test_random_draws_the_same_for_a_query_and_seed_and_others_for_others(index: Any) -> None:
    drawn = opened("random", index)
    queries = [f"query {number}" for number in range(30)]
    assert drawn.search(queries, 2) == opened("random", index).search(queries, 2)
    assert len({tuple(ids(hits)) for hits in drawn.search(queries, 2)}) > 5
    other = opened("random", index, seed=1)
    assert (
        other.search(queries, 2) != drawn.search(queries, 2)
        and other.fingerprint != drawn.fingerprint
    )


def test_random_draws_evenly_and_no_passage_twice(index: Any) -> None:
    drawn = opened("random", index)
    assert sorted(found(drawn, "q", 99)) == ["a1", "a2", "b1", "b2", "c1"]
    firsts = Counter(found(drawn, f"query {number}", 1)[0] for number in range(500))
    assert set(firsts) == {p.doc_id for p in PASSAGES} and min(firsts.values()) > 60
    assert [found(drawn, "q", k) for k in (1, 2, 3)] == [found(drawn, "q")[:k] for k in (1, 2, 3)]


@pytest.mark.parametrize("n", [0, 1, 2, 50])
def test_a_shuffle_holds_every_number_once(n: int) -> None:
    assert sorted(random_order(n, random.Random(n))) == list(range(n))


def test_a_passage_of_two_indexes_comes_once(index: Any) -> None:
    both = SimpleNamespace(name="both", titled=False, fingerprint="g", parts=(index, index))
    assert sorted(found(opened("random", both, index), "q", 99)) == ["a1", "a2", "b1", "b2", "c1"]
    assert found(opened("gold", both), "Who found Titan?") == ["b2", "a2", "b1", "a1"]


def test_an_index_whose_passages_cannot_be_read_is_refused() -> None:
    with pytest.raises(
        UsageError, match="needs an index whose passages can be read; 'listed' has none"
    ):
        opened("random", Listed())
