"""BM25 equals Lucene's: tested against the formula, and against published page hits on real questions."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from building import built
from hypothesis import given, settings
from hypothesis import strategies as st

from rallebench.core.errors import UsageError
from rallebench.core.text import TOKENS, UNFOLDED, tokenize
from rallebench.retrievers.bm25 import K1, B, BM25Kind, best_rows
from rallebench.retrievers.composites import about_index
from rallebench.workspace.indexes.checks import is_made_by
from rallebench.workspace.indexes.recipes import index_recipe


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


@settings(max_examples=25)
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


@pytest.mark.parametrize("size", [1, 2, 7, 300, 5000])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.05, 1.0])
@pytest.mark.parametrize("different", [1, 3, 10_000])
def test_the_best_rows_are_those_of_a_full_sort(size: int, share: float, different: int) -> None:
    drawn = np.random.default_rng(size)
    scores = (drawn.integers(1, different + 1, size) * (drawn.random(size) < share)).astype(
        np.float32
    )
    for k in {1, 2, 5, 100, size} & set(range(1, size + 1)):
        assert best_rows(scores, k).tolist() == np.argsort(-scores, kind="stable")[:k].tolist()


# Page hits in the first 1 and 5 passages, published for these files with k1 .9, b .4, title + text.
REFERENCE = {
    "xquad_en": (0.966, 0.990),
    "xquad_zh": (0.983, 0.997),
    "newwiki": (0.908, 0.974),
    "qed_nq": (0.845, 0.945),
}


@pytest.mark.shared_data
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n == "newwiki" else []) for n in REFERENCE]
)
def test_page_hits_are_the_published_ones(name: str, shared_data: Path, tmp_path: Path) -> None:
    corpus = shared_data / "kilt" / f"{name}_corpus.tsv"
    pages = corpus.with_name(f"{name}_doc_id_to_wikipedia_id.json")
    manifest = built(tmp_path, name, corpus, "bm25", page_map=pages)
    lines = corpus.with_name(f"{name}_kilt.jsonl").read_text("utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line]
    index = BM25Kind().open(name, tmp_path / name, manifest)
    right = []  # per question, whether each hit is of a gold page
    for row, hits in zip(rows, index.search([row["input"] for row in rows], 5)):
        gold = {p["wikipedia_id"] for o in row["output"] for p in o.get("provenance", [])}
        right.append([hit.passage.page_id in gold for hit in hits])
    shares = [sum(any(hits[:k]) for hits in right) / len(rows) for k in (1, 5)]
    assert shares == pytest.approx(REFERENCE[name], abs=0.003)


def test_an_index_built_before_words_were_folded_is_searched_as_it_was_and_marked(
    tmp_path: Path,
) -> None:
    (tmp_path / "c.tsv").write_text(
        "1\tThe Wasser\u00adfall\tfalls\n2\tA river\trivers\n", encoding="utf-8"
    )
    indexes, settings = tmp_path / "indexes", {"tokens": UNFOLDED}
    before = built(indexes, "before", tmp_path / "c.tsv", "bm25", settings=settings)
    after = built(indexes, "after", tmp_path / "c.tsv", "bm25")
    opened = {m.name: BM25Kind().open(m.name, indexes / m.name, m) for m in (before, after)}

    def best(name: str, query: str) -> list[str]:
        return [hit.passage.doc_id for hit in opened[name].search([query], 2)[0] if hit.score]

    assert best("after", "wasserfall") == ["1"] and best("after", "WASSER") == []
    assert best("before", "wasserfall") == [] and best("before", "wasser") == ["1"]
    assert before.parameters["tokens"] == UNFOLDED and after.parameters["tokens"] == TOKENS
    assert before.fingerprint != after.fingerprint
    assert "not folded" in about_index(before) and "not folded" not in about_index(after)
    recipe = index_recipe(tmp_path / "c.tsv", "bm25")
    assert is_made_by(after, recipe, after.corpus_sha256)
    assert not is_made_by(before, recipe, before.corpus_sha256)
    with pytest.raises(UsageError, match=r"'before' exists already .*words not folded"):
        built(indexes, "before", tmp_path / "c.tsv", "bm25")
