"""BM25 is Lucene's: against the formula, and against published page hits on real questions."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest
from building import built
from hypothesis import given, settings
from hypothesis import strategies as st

from rallebench.core.text import tokenize
from rallebench.retrievers.bm25 import K1, B, BM25Kind


def lucene_scores(texts: list[str], query: str, k1: float = K1, b: float = B) -> list[float]:
    """Lucene's BM25 (Robertson et al. 1994, with Lucene's idf), written out."""
    documents = [tokenize(text) for text in texts]
    mean = sum(map(len, documents)) / len(documents)
    frequency = Counter(token for document in documents for token in set(document))
    scores = []
    for document in documents:
        count = Counter(document)
        score = 0.0
        for token in tokenize(query):
            if token in frequency:
                idf = math.log(1 + (len(texts) - frequency[token] + 0.5) / (frequency[token] + 0.5))
                score += (
                    idf * count[token] / (count[token] + k1 * (1 - b + b * len(document) / mean))
                )
        scores.append(score)
    return scores


WORDS = st.lists(
    st.sampled_from(
        ["moon", "saturn", "titan", "river", "city", "large", "small", "old", "new", "blue"]
    ),
    min_size=1,
    max_size=12,
).map(" ".join)


@settings(max_examples=25, deadline=None)
@given(texts=st.lists(WORDS, min_size=1, max_size=12), query=WORDS)
def test_scores_and_order_are_lucenes(
    texts: list[str], query: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("bm25")
    (folder / "c.tsv").write_text(
        "".join(f"{i}\t{text}\ttitle{i}\n" for i, text in enumerate(texts))
    )
    manifest = built(folder / "indexes", "x", folder / "c.tsv", "bm25")
    found = BM25Kind().open("x", folder / "indexes" / "x", manifest).search([query], len(texts))[0]
    expected = lucene_scores([f"title{i}, {text}" for i, text in enumerate(texts)], query)
    known = any(score > 0 for score in expected)
    assert {int(h.passage.doc_id) for h in found} == (set(range(len(texts))) if known else set())
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
    assert [h.score for h in found] == pytest.approx(
        [expected[int(h.passage.doc_id)] for h in found], rel=1e-5
    )


# Page hit in the first 1 and 5 passages, published for these files with k1 .9, b .4, title + text.
REFERENCE = {
    "xquad_en": (0.966, 0.990),
    "xquad_zh": (0.983, 0.997),
    "newwiki": (0.908, 0.974),
    "qed_nq": (0.845, 0.945),
}


@pytest.mark.shared_data
@pytest.mark.parametrize("name", REFERENCE)
def test_page_hits_on_real_questions_are_the_published_ones(
    name: str, shared_data: Path, tmp_path: Path
) -> None:
    data = shared_data / "kilt"
    manifest = built(
        tmp_path,
        name,
        data / f"{name}_corpus.tsv",
        "bm25",
        page_map=data / f"{name}_doc_id_to_wikipedia_id.json",
    )
    rows = [
        json.loads(line)
        for line in (data / f"{name}_kilt.jsonl").read_text("utf-8").split("\n")
        if line
    ]
    found = (
        BM25Kind().open(name, tmp_path / name, manifest).search([row["input"] for row in rows], 5)
    )
    gold = [
        {p["wikipedia_id"] for o in row["output"] for p in o.get("provenance", [])} for row in rows
    ]
    at1 = sum(
        bool(hits) and hits[0].passage.page_id in pages for hits, pages in zip(found, gold)
    ) / len(rows)
    at5 = sum(
        any(h.passage.page_id in pages for h in hits) for hits, pages in zip(found, gold)
    ) / len(rows)
    assert (at1, at5) == pytest.approx(REFERENCE[name], abs=0.003)
