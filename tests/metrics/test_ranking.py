"""The measures over a ranked list equal those of ir_measures (trec_eval), over pages and over passages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from project import PROJECT

from rallebench.core.types import (
    Episode,
    Example,
    Gold,
    Hit,
    Outcome,
    Passage,
    Reply,
    Retrieve,
    Step,
)
from rallebench.datasets.kilt import read_gold
from rallebench.datasets.reading import read_questions
from rallebench.metrics import metric

STARTER = PROJECT / "rallebench" / "starter"
LAW = settings(database=None, max_examples=40)
IDS = st.sampled_from(["1", "2", "3", "4", "5", "6", "7"])

REFERENCE = {
    "success@1": "Success@1",
    "success@5": "Success@5",
    "mrr": "RR",
    "mrr@3": "RR@3",
    "ndcg@5": "nDCG@5",
    "ndcg@10": "nDCG@10",
    "map": "AP",
    "map@5": "AP@5",
    "page_precision@5": "P@5",
    "page_precision@20": "P@20",
    "page_recall@1": "R@1",
    "page_recall@5": "R@5",
}
"""Our name for pages → ir_measures' name; our names for passages begin with ``passage_``."""


def for_passages(name: str) -> str:
    return "passage_" + name.removeprefix("page_")


def episode(hits: Sequence[Hit], answer: str = "") -> Episode:
    return Episode(
        "q", "chain", (Step(Retrieve("r", "q", 20), Reply("", tuple(hits))),), Outcome(answer)
    )


def listed(*ids: str) -> Episode:
    """An episode that retrieved these ids; each is a passage and also a page."""
    return episode([Hit(Passage(i, "", page_id=i), -n) for n, i in enumerate(ids)])


def reference(
    rankings: Sequence[Sequence[str]], relevant: Sequence[frozenset[str]]
) -> dict[str, list[float]]:
    """ir_measures' name → its value for each question, from a run of distinct ids, best first."""
    ir = pytest.importorskip("ir_measures")
    run = [
        ir.ScoredDoc(str(q), i, -float(n))
        for q, ids in enumerate(rankings)
        for n, i in enumerate(ids)
    ]
    qrels = [ir.Qrel(str(q), i, 1) for q, ids in enumerate(relevant) for i in ids]
    measures = {str(measure): measure for measure in map(ir.parse_measure, REFERENCE.values())}
    found: dict[str, dict[str, float]] = {name: {} for name in measures}
    for row in ir.iter_calc(list(measures.values()), qrels, run):
        found[str(row.measure)][row.query_id] = row.value
    return {name: [rows[str(q)] for q in range(len(relevant))] for name, rows in found.items()}


def compare(
    rankings: Any, relevant: Any, said: Sequence[Episode], golds: Sequence[Gold], passages: bool
) -> None:
    expected = reference(rankings, relevant)
    for name, theirs in REFERENCE.items():
        ours = metric(for_passages(name) if passages else name)
        values = [ours.value(e, g) for e, g in zip(said, golds)]
        assert values == pytest.approx(expected[theirs], abs=1e-9), name


@LAW
@given(st.lists(IDS, max_size=7, unique=True), st.frozensets(IDS, min_size=1))
def test_any_ranking_scores_as_in_ir_measures(ids: list[str], relevant: frozenset[str]) -> None:
    if not ids:  # trec_eval ignores a question with an empty run
        assert metric("mrr").value(listed(), Gold(provenance=(relevant,))) == 0
        return
    gold = Gold(provenance=(relevant,), passages=(relevant,))
    compare([ids], [relevant], [listed(*ids)], [gold], passages=False)
    compare([ids], [relevant], [listed(*ids)], [gold], passages=True)


@LAW
@given(
    st.lists(IDS, min_size=1, max_size=7, unique=True),
    st.dictionaries(IDS, st.integers(1, 4), min_size=1),
)
def test_graded_judgements_score_as_in_ir_measures(ids: list[str], grades: dict[str, int]) -> None:
    ir = pytest.importorskip("ir_measures")
    run = [ir.ScoredDoc("0", i, -float(n)) for n, i in enumerate(ids)]
    qrels = [ir.Qrel("0", i, grade) for i, grade in grades.items()]
    gold = Gold(provenance=tuple(frozenset({i}) for i in grades), grades=grades)
    for row in ir.iter_calc([ir.nDCG @ 5, ir.nDCG @ 10, ir.R @ 5], qrels, run):
        ours = {"nDCG@5": "ndcg@5", "nDCG@10": "ndcg@10", "R@5": "page_recall@5"}[str(row.measure)]
        assert metric(ours).value(listed(*ids), gold) == pytest.approx(row.value, abs=1e-9)


@pytest.mark.parametrize(
    "name", [name for name in REFERENCE if name in ("mrr", "map")] + ["ndcg@5"]
)
def test_judged_pages_that_are_all_irrelevant_score_0_as_in_ir_measures(name: str) -> None:
    ir = pytest.importorskip("ir_measures")
    measure = ir.parse_measure(REFERENCE[name])
    run = [ir.ScoredDoc(q, "1", -1.0) for q in ("0", "1")]
    qrels = [ir.Qrel("0", "1", 1), ir.Qrel("1", "1", 0)]
    golds = [Gold(provenance=(frozenset("1"),)), Gold(grades={"1": 0.0})]
    ours = [metric(name).value(listed("1"), gold) for gold in golds]
    assert ours == [1.0, 0.0]
    assert sum(filter(None, ours)) / 2 == ir.calc_aggregate([measure], qrels, run)[measure]
    assert metric(name).value(listed("1"), Gold()) is None


def bm25_run(
    rows: Sequence[tuple[str, str, str, str]], asked: Sequence[Example], k: int = 20
) -> list[Episode]:
    """Return the hits of bm25s itself among (id, text, title, page) for each question."""
    import bm25s

    from rallebench.core.text import tokenize

    index = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    index.index(
        [tokenize(f"{title} {text}") or [""] for _, text, title, _ in rows], show_progress=False
    )
    queries = [tokenize(example.question.text) or [""] for example in asked]
    found, scores = index.retrieve(queries, k=k, show_progress=False)
    return [
        episode([Hit(Passage(*rows[i]), float(score)) for i, score in zip(*pair)])
        for pair in zip(found, scores)
    ]


def corpus(path: Path, page_map: Path) -> list[tuple[str, str, str, str]]:
    pages = json.loads(page_map.read_text(encoding="utf-8"))
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    return [(i, text, title, str(pages[i])) for i, text, title, *_ in lines]


def check_real_run(rows: list[tuple[str, str, str, str]], asked: Sequence[Example]) -> None:
    golds = [example.gold for example in asked]
    said = bm25_run(rows, asked)
    pages = [list(dict.fromkeys(hit.passage.page_id for hit in e.hits)) for e in said]
    compare(pages, [gold.pages for gold in golds], said, golds, passages=False)
    with_passages = [(e, g) for e, g in zip(said, golds) if g.passages]
    if with_passages:
        said, golds = [e for e, _ in with_passages], [g for _, g in with_passages]
        relevant = [frozenset().union(*gold.passages) for gold in golds]
        rankings = [[hit.passage.doc_id for hit in e.hits] for e in said]
        compare(rankings, relevant, said, golds, passages=True)


def test_bm25_over_the_starter_scores_as_in_ir_measures() -> None:
    files = sorted((STARTER / "questions").glob("*.jsonl"))
    asked = [e for path in files for e in read_questions(path) if e.gold.pages]
    assert len(asked) > 400
    check_real_run(corpus(STARTER / "corpus.tsv", STARTER / "page_map.json"), asked)


@pytest.mark.shared_data
def test_bm25_over_real_pages_scores_as_ir_measures_by_page_and_passage(shared_data: Path) -> None:
    folder = shared_data / "kilt"
    pages = folder / "newwiki_doc_id_to_wikipedia_id.json"
    asked = read_questions(folder / "newwiki_kilt.jsonl", 200)
    assert all(example.gold.passages for example in islice(asked, 100))
    check_real_run(corpus(folder / "newwiki_corpus.tsv", pages), asked)


# ── cases outside the reference ──────────────────────────────────────────────


def test_a_page_of_any_evidence_set_is_relevant_where_kilt_asks_for_a_whole_set() -> None:
    gold = Gold(provenance=(frozenset({"1", "2"}),))
    assert metric("success@5").value(listed("1"), gold) == 1
    assert metric("success_rate@5").value(listed("1"), gold) == 0
    assert metric("page_recall@5").value(listed("1"), gold) == 0.5
    assert metric("recall@5").value(listed("1"), gold) == 0


def test_each_gold_page_has_its_own_reciprocal_rank_in_crud_rags_mrr() -> None:
    gold = Gold(provenance=(frozenset({"1", "2"}), frozenset({"3"})))
    assert metric("mrr_each").value(listed("9", "1", "8", "2"), gold) == pytest.approx(
        (1 / 2 + 1 / 4 + 0) / 3
    )
    assert metric("mrr").value(listed("9", "1", "8", "2"), gold) == 0.5


def test_without_gold_pages_or_passages_nothing_is_scored() -> None:
    pages_only = Gold(provenance=(frozenset({"1"}),))
    for name in REFERENCE:
        assert metric(name).value(listed("1"), Gold()) is None
        assert metric(for_passages(name)).value(listed("1"), pages_only) is None


def test_gold_passages_are_the_doc_ids_of_a_record_whatever_they_look_like() -> None:
    items = [
        {"wikipedia_id": "1", "doc_id": 7},
        {"wikipedia_id": "1", "doc_id": " 8 "},
        {"wikipedia_id": "2", "doc_id": 1.5},
        {"wikipedia_id": "2", "doc_id": None},
    ]
    record = {
        "id": "q",
        "input": "?",
        "output": [{"provenance": items}, {"provenance": [{"wikipedia_id": "3"}]}],
    }
    gold = read_gold(record, "here")
    assert gold.passages == (frozenset({"7", "8"}),)
    assert gold.provenance == (frozenset({"1", "2"}), frozenset({"3"}))
