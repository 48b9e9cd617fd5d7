"""Contract of every combination of retrievers, whatever its kind."""

from __future__ import annotations

from typing import Any

import pytest
from in_memory import InMemory
from listed import Listed, ids
from tiny_bert import save_cross_encoder
from tiny_retrieval import save_colbert

from rallebench.core.entries import Combination
from rallebench.core.types import Example, Gold, Passage, Question
from rallebench.llms.scripted import Scripted
from rallebench.retrievers import COMBINATIONS
from rallebench.retrievers.composites import check_settings
from rallebench.workspace.opening import open_combination

NAMES = ("Titan", "Rhea", "Triton", "Io", "Europa")
PLANETS = ("Saturn", "Saturn", "Neptune", "Jupiter", "Jupiter")
MOONS = [
    Passage(str(n), f"{name} is a moon of {planet}", name, f"p{n}")
    for n, (name, planet) in enumerate(zip(NAMES, PLANETS))
]
PARTS = [InMemory(MOONS, "words"), InMemory(MOONS[::-1], "backwards")]
QUERIES = ["moon of Saturn", "", "Triton", "moon", " \n\t", "nothing of it"]
GOLD = Gold(("Saturn",), provenance=(frozenset(["p0", "p1", "p3"]),))
EXAMPLES = tuple(Example(Question(query, query), GOLD) for query in QUERIES if query.strip())


@pytest.fixture(scope="module")
def needed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Kind → the required settings."""
    model = save_cross_encoder(tmp_path_factory.mktemp("models") / "cross-encoder")
    late = save_colbert(tmp_path_factory.mktemp("models") / "colbert", text=" ".join(NAMES))
    return {
        "late-rerank": {"model": str(late), "device": "cpu"},
        "gold": {"questions": "my-qa"},
        "llm-rerank": {"llm": "judge"},
        **{kind: {"llm": "judge"} for kind in ("hyde", "multi-query", "step-back", "decompose")},
        "rerank": {"model": str(model), "device": "cpu"},
    }


@pytest.fixture(params=COMBINATIONS.names())
def make(request: pytest.FixtureRequest, needed: dict[str, dict[str, Any]]) -> Any:
    """``make(*parts)`` → a combination of this kind over as many of them as it accepts."""
    kind = request.param
    most = COMBINATIONS.entry(kind).traits["parts"][1]

    def opened(*parts: Any) -> Any:
        names = [part.name for part in parts[:most]]
        entry = Combination(kind=kind, of=names, settings=needed.get(kind, {}))
        entry = entry.model_copy(update={"settings": check_settings("combined", entry)})
        llm = Scripted(default="[2] > [1]")
        return open_combination("combined", entry, parts[:most], llm, EXAMPLES)

    return opened


def test_a_batch_equals_one_by_one_in_any_order_and_a_blank_query_has_no_hits(make: Any) -> None:
    combined = make(*PARTS)
    alone = [combined.search([query], 2)[0] for query in QUERIES]
    assert combined.search(QUERIES, 2) == alone
    assert combined.search(QUERIES[::-1], 2) == alone[::-1]
    assert alone[1] == alone[4] == ()


def test_hits_come_best_first_at_most_k_and_no_passage_twice(make: Any) -> None:
    for k in (1, 3, 100):
        hits = make(*PARTS).search(["moon of Saturn"], k)[0]
        assert len(hits) <= k and len(set(ids(hits))) == len(hits)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_a_smaller_k_is_a_prefix_where_the_combination_says_so(make: Any) -> None:
    combined = make(*PARTS)
    if not combined.prefix_stable:
        pytest.skip("this kind does not promise it")
    deep = combined.search(["moon of Saturn"], 5)[0]
    assert [combined.search(["moon of Saturn"], k)[0] for k in range(1, 5)] == [
        deep[:k] for k in range(1, 5)
    ]


def test_titles_pages_and_fingerprint_follow_from_the_parts(make: Any) -> None:
    combined = make(*PARTS)
    assert combined.page_ids() == {passage.page_id for passage in MOONS} and not combined.titled
    titled = Listed(("a", 1.0), name="titled", titled=True, passages=MOONS)
    assert make(titled, titled).titled
    assert combined.fingerprint == make(*PARTS).fingerprint != make(titled, PARTS[1]).fingerprint
