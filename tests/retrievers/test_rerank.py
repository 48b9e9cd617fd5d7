"""Re-ranking with a cross-encoder: any folder with a sequence classification model of one label."""

from __future__ import annotations

import gc
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from listed import Listed, combined, ids, passage
from tiny_bert import save_cross_encoder

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.types import Passage
from rallebench.retrievers import _cross_encoder
from rallebench.retrievers.rerank import Reranked

CANDIDATES = Listed(
    (passage("a", "the old river"), 9.0),
    (passage("b", "the new city and the old river of the king"), 8.0),
    (passage("c", "city city"), 7.0),
    (passage("d", "the king"), 6.0),
    name="candidates",
)


class LongestFirst:
    """Scores by length, and records its texts."""

    fingerprint = "longest"

    def __init__(self) -> None:
        self.read: list[tuple[str, list[str]]] = []

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        self.read.append((query, [*texts]))
        return [float(len(text)) for text in texts]


def test_the_judges_order_replaces_the_retrievers_and_equal_scores_keep_it() -> None:
    hits = Reranked("r", CANDIDATES, LongestFirst(), depth=3, titles=False).search(["q"], 5)[0]
    assert ids(hits) == ["b", "a", "c"] and [hit.score for hit in hits] == [42.0, 13.0, 9.0]

    class Indifferent(LongestFirst):
        def score(self, query: str, texts: Sequence[str]) -> list[float]:
            return [0.0] * len(texts)

    same = Reranked("r", CANDIDATES, Indifferent(), depth=4, titles=True)
    assert ids(same.search(["q"], 4)[0]) == [*"abcd"]


def test_depth_hits_are_judged_whatever_k_is_and_none_of_a_blank_query() -> None:
    judge = LongestFirst()
    reranked = Reranked("r", CANDIDATES, judge, depth=3, titles=False)
    for k in (1, 2):
        reranked.search(["q", " "], k)
    assert [(query, len(texts)) for query, texts in judge.read] == [("q", 3), (" ", 0)] * 2


def test_the_judge_reads_titles_unless_told_not_to() -> None:
    judge = LongestFirst()
    part = Listed((passage("a"), 1.0), (Passage("b", "no title"), 0.5))
    Reranked("r", part, judge, depth=2, titles=True).search(["q"], 1)
    Reranked("r", Listed((passage("a"), 1.0)), judge, depth=2, titles=False).search(["q"], 1)
    assert [texts for _, texts in judge.read] == [["title a, text a", "no title"], ["text a"]]


# ── models ───────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_cross_encoder(tmp_path_factory.mktemp("models") / "cross-encoder")


def reranked(model: Path, *, over: Any = CANDIDATES, **settings: Any) -> Any:
    return combined("rerank", over, model=str(model), device="cpu", **settings)


def test_a_cross_encoder_orders_by_its_own_logits(model: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    bert = AutoModelForSequenceClassification.from_pretrained(model).eval()
    logits = {}
    for hit in CANDIDATES.hits:
        text = f"{hit.passage.title}, {hit.passage.text}"
        with torch.no_grad():
            logits[hit.passage.doc_id] = float(
                bert(**tokenizer("who the king", text, return_tensors="pt")).logits
            )
    hits = reranked(model).search(["who the king"], 4)[0]
    assert {hit.passage.doc_id: hit.score for hit in hits} == pytest.approx(logits, abs=1e-4)
    assert ids(hits) == sorted(logits, key=lambda doc_id: -logits[doc_id])


def test_a_model_is_loaded_once_and_shared_and_let_go_with_its_last_user(model: Path) -> None:
    one, two = reranked(model, depth=2), reranked(model, depth=4)
    assert one._scorer is two._scorer
    assert len(_cross_encoder._loaded) == 1
    del one, two
    gc.collect()
    assert not _cross_encoder._loaded


def test_the_fingerprint_names_a_models_content_not_its_place(model: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(model, tmp_path / "copied")
    assert reranked(model).fingerprint == reranked(copied).fingerprint
    prints = {
        reranked(model).fingerprint,
        reranked(model, depth=3).fingerprint,
        reranked(model, titles=False).fingerprint,
        reranked(model, dtype="bfloat16").fingerprint,
        reranked(model, max_length=16).fingerprint,
        reranked(model, over=Listed(name="other")).fingerprint,
        reranked(
            save_cross_encoder(tmp_path / "other", kind="BertForSequenceClassification", labels=1)
        ).fingerprint,
    }
    assert len(prints) == 6  # the model saved again is the same


def test_longer_pairs_than_the_model_reads_are_cut(model: Path) -> None:
    long = Listed((passage("long", "river " * 500), 1.0), name="long")
    for most in (0, 16, 512):
        assert len(reranked(model, over=long, max_length=most).search(["the " * 40], 1)[0]) == 1


@pytest.mark.parametrize(
    ("labels", "kind", "sentence"),
    [
        (
            3,
            "BertForSequenceClassification",
            "gives 3 numbers per pair, so it is not a cross-encoder",
        ),
        (1, "BertModel", "is a BertModel, so it is not a cross-encoder for re-ranking"),
    ],
)
def test_a_number_per_pair_is_needed(labels: int, kind: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=sentence):
        reranked(save_cross_encoder(tmp_path / "m", labels, kind))


def test_what_is_no_model_is_one_sentence(model: Path, tmp_path: Path) -> None:
    broken, odd = (shutil.copytree(model, tmp_path / name) for name in ("broken", "odd"))
    (broken / "model.safetensors").write_bytes(b"short")
    (odd / "config.json").write_text(json.dumps([]))
    for settings, sentence in (
        ({}, "needs the setting 'model'"),
        ({"model": str(tmp_path)}, "has no config.json, so it is not a complete model"),
        ({"model": "/no/such/folder"}, "the folder /no/such/folder does not exist"),
        ({"model": str(broken)}, "damaged, truncated"),
        ({"model": str(odd)}, "lacks model_type"),
        ({"model": str(model), "device": "nonsense"}, "could not be loaded"),
    ):
        with pytest.raises(RalleError, match=sentence) as refused:
            combined("rerank", CANDIDATES, **settings)
        assert "\n" not in str(refused.value)
