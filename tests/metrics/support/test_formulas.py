"""Citation precision and recall, RAGChecker's ratios and nuggets against transcriptions of the published code."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_support import answer_pair

from rallebench.core.scoring import Pair
from rallebench.core.types import Gold, GoldClaim
from rallebench.metrics import metric
from rallebench.metrics.support import formulas
from rallebench.metrics.support.checker import SupportPair
from rallebench.metrics.support.matrix import (
    CITATIONS,
    CLAIMS,
    GOLD_TEXT,
    AnswerMatrix,
    fill_matrix,
    play,
    read_answer,
)

EVERY = frozenset({CITATIONS, CLAIMS, GOLD_TEXT})
ORACLE_MARGIN = 0.9


def letters(text: str) -> set[str]:
    """The facts of a text: its single capital letters."""
    return {
        word.strip(".,")
        for word in text.split()
        if len(word.strip(".,")) == 1 and word[0].isupper()
    }


def oracle(pairs: Sequence[SupportPair]) -> list[float]:
    """Passages support a claim if together they hold all its facts."""
    scores = []
    for pair in pairs:
        held = set().union(*(letters(passage.text) for passage in pair.premise))
        scores.append(ORACLE_MARGIN if letters(pair.claim.text) <= held else 0.1)
    return scores


def filled_matrix(pair: Pair) -> AnswerMatrix:
    (matrix,) = play([fill_matrix(read_answer(pair), EVERY, 0.5)], oracle)
    return matrix


@dataclass
class Drawn:
    """A random answer: (facts, cited numbers) of each sentence; facts of each passage; facts of each gold claim."""

    sentences: list[tuple[set[str], list[int]]]
    passages: list[set[str]]
    claims: list[set[str]]

    def pair(self) -> Pair:
        texts = [f"Passage {i} says {' '.join(sorted(p))}" for i, p in enumerate(self.passages, 1)]
        marks = ["".join(f"[{n}]" for n in cited) for _, cited in self.sentences]
        answer = " ".join(
            f"Facts {' '.join(sorted(facts))} hold {mark}."
            for (facts, _), mark in zip(self.sentences, marks)
        )
        claims = tuple(
            GoldClaim(f"Claim {i} is {' '.join(sorted(c))}.", i % 2 == 0)
            for i, c in enumerate(self.claims)
        )
        return answer_pair(answer, texts, gold=Gold(claims=claims))


def draw(seed: int, wrong: bool = True) -> Drawn:
    rng = random.Random(seed)
    facts = "ABCDE"
    count = rng.randint(1, 5)
    passages = [set(rng.sample(facts, rng.randint(1, 3))) for _ in range(count)]
    highest = count + (1 if wrong else 0)
    sentences = [
        (
            set(rng.sample(facts, rng.randint(1, 2))),
            [rng.randint(1, highest) for _ in range(rng.randint(0, 5))],
        )
        for _ in range(rng.randint(1, 4))
    ]
    claims = [set(rng.sample(facts, rng.randint(1, 2))) for _ in range(rng.randint(1, 3))]
    return Drawn(sentences, passages, claims)


def published_autoais(drawn: Drawn, at_most: int = 3) -> tuple[float, float]:
    """ALCE's compute_autoais (princeton-nlp/ALCE, eval.py) for one answer: recall and precision."""

    def entails(numbers: Sequence[int], facts: set[str]) -> int:
        return int(facts <= set().union(*(drawn.passages[n] for n in numbers)))

    entail = entail_prec = total_citations = 0
    for facts, cited in drawn.sentences:
        ref = [number - 1 for number in cited]
        flag = -1
        if not ref or any(number >= len(drawn.passages) for number in ref):
            flag = 0
        else:
            ref = ref[:at_most]
            total_citations += len(ref)
        if flag == -1:
            flag = entails(ref, facts)
        entail += flag
        if flag and len(ref) > 1:
            for number in ref:
                result = entails([number], facts)
                if not result:
                    rest = [*ref]
                    rest.remove(number)
                    entail_prec += 0 if entails(rest, facts) else 1
                else:
                    entail_prec += 1
        elif flag:
            entail_prec += flag
    precision = entail_prec / total_citations if total_citations > 0 else 0.0
    return entail / len(drawn.sentences), precision


@pytest.mark.parametrize("seed", range(300))
def test_citations_equal_the_published_code(seed: int) -> None:
    drawn = draw(seed)
    matrix = filled_matrix(drawn.pair())
    recall, precision = published_autoais(drawn)
    assert formulas.citation_recall(matrix).value == pytest.approx(recall)
    assert formulas.citation_precision(matrix).value == pytest.approx(precision)


def published_ragchecker(drawn: Drawn) -> dict[str, float]:
    """RAGChecker's computation.py over boolean matrices."""
    gold = set().union(*drawn.claims)
    everything = set().union(*(facts for facts, _ in drawn.sentences))
    answer2response = np.array([facts <= gold for facts, _ in drawn.sentences])
    response2answer = np.array([claim <= everything for claim in drawn.claims])
    retrieved2answer = np.array([[claim <= p for p in drawn.passages] for claim in drawn.claims])
    retrieved2response = np.array(
        [[facts <= p for p in drawn.passages] for facts, _ in drawn.sentences]
    )
    precision, recall = np.mean(answer2response), np.mean(response2answer)
    claim_recalled = np.max(retrieved2answer, axis=1)
    used = claim_recalled & response2answer
    relevant = np.max(retrieved2answer, axis=0, keepdims=True)
    relevant_faithful = np.max(relevant & retrieved2response, axis=1)
    irrelevant_faithful = np.max(~relevant & retrieved2response, axis=1) & ~relevant_faithful
    unfaithful = ~np.max(retrieved2response, axis=1)
    values: dict[str, Any] = {
        "claim_precision": precision,
        "nugget_recall": recall,
        "claim_f1": 2 * precision * recall / (precision + recall)
        if precision > 0 and recall > 0
        else 0.0,
        "claim_recall": np.mean(claim_recalled),
        "context_precision": np.mean(np.max(retrieved2answer, axis=0)),
        "context_utilization": np.sum(used) / np.sum(claim_recalled)
        if np.sum(claim_recalled) > 0
        else 0.0,
        "noise_sensitivity_relevant": np.mean(relevant_faithful & ~answer2response),
        "noise_sensitivity_irrelevant": np.mean(irrelevant_faithful & ~answer2response),
        "hallucination": np.mean(unfaithful & ~answer2response),
        "self_knowledge": np.mean(unfaithful & answer2response),
        "faithfulness": np.mean(np.max(retrieved2response, axis=1)),
    }
    return {name: float(value) for name, value in values.items()}


@pytest.mark.parametrize("seed", range(100))
def test_ratios_equal_the_published_code(seed: int) -> None:
    drawn = draw(seed)
    matrix = filled_matrix(drawn.pair())
    for name, expected in published_ragchecker(drawn).items():
        compute = metric(name).traits["support"].compute
        assert compute(matrix).value == pytest.approx(expected), name


@pytest.mark.parametrize("seed", range(50))
def test_nuggets_weigh_by_importance(seed: int) -> None:
    """Vital counts alone, and a weight of 1 against 1/2 (Pradeep et al. 2025, arXiv:2504.15068)."""
    drawn = draw(seed)
    matrix = filled_matrix(drawn.pair())
    everything = set().union(*(facts for facts, _ in drawn.sentences))
    held = [claim <= everything for claim in drawn.claims]
    vital, okay = held[::2], held[1::2]
    assert formulas.vital_recall(matrix).value == pytest.approx(sum(vital) / len(vital))
    weighted = (sum(vital) + 0.5 * sum(okay)) / (len(vital) + 0.5 * len(okay))
    assert formulas.weighted_recall(matrix).value == pytest.approx(weighted)


seeds = st.integers(0, 100_000)


@given(seeds, st.integers(0, 3))
def test_an_irrelevant_citation_never_raises_precision_or_changes_recall(
    seed: int, at: int
) -> None:
    drawn = draw(seed, wrong=False)
    drawn.passages.append({"Z"})
    before = filled_matrix(drawn.pair())
    _, cited = drawn.sentences[at % len(drawn.sentences)]
    cited.append(len(drawn.passages))
    after = filled_matrix(drawn.pair())
    assert formulas.citation_precision(after).value <= formulas.citation_precision(before).value  # type: ignore[operator]
    if len(cited) > 1:
        assert formulas.citation_recall(after) == formulas.citation_recall(before)


@given(seeds, st.integers(0, 3))
def test_a_wrong_citation_never_raises_recall(seed: int, at: int) -> None:
    drawn = draw(seed)
    before = filled_matrix(drawn.pair())
    drawn.sentences[at % len(drawn.sentences)][1].append(len(drawn.passages) + 1)
    after = filled_matrix(drawn.pair())
    assert formulas.citation_recall(after).value <= formulas.citation_recall(before).value  # type: ignore[operator]


@given(seeds)
def test_a_further_passage_never_lowers_support(seed: int) -> None:
    drawn = draw(seed, wrong=False)
    before = filled_matrix(drawn.pair())
    drawn.passages.append({"A", "B"})
    after = filled_matrix(drawn.pair())
    for compute in (formulas.supported_share, formulas.faithfulness, formulas.claim_recall):
        assert compute(after).value >= compute(before).value  # type: ignore[operator]


@given(seeds)
def test_shares_of_wrong_and_right_sentences_add_up(seed: int) -> None:
    """Unfaithful sentences are hallucinated or known; all shares lie between 0 and 1."""
    matrix = filled_matrix(draw(seed).pair())
    parts = [formulas.faithfulness, formulas.hallucination, formulas.self_knowledge]
    assert sum(compute(matrix).value or 0.0 for compute in parts) == pytest.approx(1.0)
    assert all(0 <= (compute(matrix).value or 0.0) <= 1 for compute in parts)


def test_values_that_are_0_by_definition_say_so() -> None:
    nothing_cited = filled_matrix(answer_pair("Fact A holds.", ["It says A."]))
    assert formulas.citation_precision(nothing_cited) == (
        0.0,
        "0 by ALCE's definition: the answer cites no passage",
    )
    gold = Gold(claims=(GoldClaim("It is B."),))
    unused = filled_matrix(answer_pair("Fact A holds.", ["It says A."], gold=gold))
    assert "0 by RAGChecker's definition" in formulas.context_utilization(unused).note
    okay = Gold(claims=(GoldClaim("It is B.", vital=False),))
    assert formulas.vital_recall(filled_matrix(answer_pair("A.", ["A."], gold=okay))) == (
        None,
        "no gold claim is vital",
    )
