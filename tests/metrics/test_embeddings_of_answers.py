"""Similarity by an encoder, and BERTScore by a model's token embeddings."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from scored import score
from tiny_bert import save_bert

from rallebench.core.errors import BackendError, NotFoundError, UsageError
from rallebench.core.types import Episode, Gold, Outcome
from rallebench.metrics import metric, read_card

ANSWERS = ["Titan is the largest moon of Saturn.", "red", "The year was 1998, in May."]
GOLDS = [("Saturn's largest moon is Titan.", "Io"), ("blue",), ("It happened in May 1998.",)]


def said(answer: str) -> Episode:
    return Episode("q", "chain", (), Outcome(answer))


class Counting:
    """An encoder of three dimensions that records its texts."""

    name, dim, fingerprint = "counting", 3, "0"

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def encode(self, texts: Sequence[str], *, role: Literal["query", "passage"]) -> Any:
        self.calls.append(list(texts))
        rows = np.array(
            [[text.count("a"), text.count("b"), 1.0] for text in texts], dtype=np.float32
        )
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_all_answers_of_a_run_are_encoded_at_once_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, opened = Counting(), []

    def open_once(name: str) -> Counting:
        opened.append(name)
        return encoder

    monkeypatch.setattr("rallebench.metrics.similarity._open", open_once)
    pairs = [
        (said("aa"), Gold(("aa", "b"))),
        (said("b"), Gold(("aa",))),
        (said(""), Gold(("b",))),
        (said("b"), Gold()),
        (Episode("q", "chain", (), None, "the model is down"), Gold(("b",))),
    ]
    found = score(["similarity:hashing"], pairs)["similarity:hashing"]
    assert opened == ["hashing"] and [sorted(texts) for texts in encoder.calls] == [["aa", "b"]]
    assert found.values == pytest.approx((1.0, 1 / np.sqrt(5 * 2), 0.0, None, None))
    assert found.notes == ("", "", "", "no gold answers", "the model is down")


def test_similarity_by_a_named_encoder_is_its_cosine_with_the_nearest_answer() -> None:
    from rallebench.encoders.references import open_encoder

    encoder = open_encoder("hashing")
    rows = encoder.encode([ANSWERS[0], *GOLDS[0]], role="passage")
    expected = max(float(rows[0] @ rows[1]), float(rows[0] @ rows[2]))
    assert metric("similarity:hashing").value(said(ANSWERS[0]), Gold(GOLDS[0])) == pytest.approx(
        expected, abs=1e-6
    )


def test_an_encoder_or_model_folder_that_is_not_there_is_refused_before_a_run() -> None:
    with pytest.raises(NotFoundError, match="There is no encoder 'nobody'"):
        metric("similarity:nobody")
    with pytest.raises(NotFoundError, match="There is no folder '/nowhere' with a model"):
        metric("bertscore:/nowhere?layer=9")
    with pytest.raises(UsageError, match=r"is not FOLDER or FOLDER\?layer=N"):
        metric("bertscore:/nowhere?layers=9")
    assert read_card("similarity").requirements == "accepted answers, an encoder"


@pytest.mark.slow
def test_similarity_by_the_embedded_encoder_prefers_what_means_the_same() -> None:
    found = score(["similarity"], [(said(a), Gold(g)) for a, g in zip(ANSWERS, GOLDS)])[
        "similarity"
    ]
    near, far, _ = found.values
    assert near is not None and far is not None and near > 0.9 > far


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("layer", [3, 6])
def test_bertscore_is_that_of_the_package(layer: int) -> None:
    package = pytest.importorskip("bert_score")
    assert importlib.metadata.version("bert-score").startswith("0.3.")
    from rallebench.encoders.minilm import model_folder

    folder = str(model_folder())
    _, _, f = package.score(
        ANSWERS, [list(g) for g in GOLDS], model_type=folder, num_layers=layer, device="cpu"
    )
    name = f"bertscore:{folder}?layer={layer}"
    found = score([name], [(said(a), Gold(g)) for a, g in zip(ANSWERS, GOLDS)])[name]
    assert found.values == pytest.approx(tuple(f.tolist()), abs=1e-5)
    assert metric("bertscore").value(said(""), Gold(("Io",))) == 0
    assert metric("bertscore").value(said("Io"), Gold(("Io",))) == pytest.approx(1, abs=1e-5)
    with pytest.raises(UsageError, match="has 6 layers, not 7"):
        metric(f"bertscore:{folder}?layer=7").value(said("Io"), Gold(("Io",)))


def test_bertscore_of_a_model_whose_embeddings_are_not_numbers_is_refused(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    weights = save_bert(tmp_path / "bert", bare=True) / "model.safetensors"
    state = load_file(weights)
    name = next(name for name in state if name.endswith("word_embeddings.weight"))
    save_file(state | {name: torch.full_like(state[name], float("inf"))}, weights)
    with pytest.raises(BackendError, match="embeddings that are not numbers"):
        metric(f"bertscore:{weights.parent}").value(said("titan"), Gold(("moon",)))
