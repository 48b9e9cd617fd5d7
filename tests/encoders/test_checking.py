"""Broken vectors of an encoder are refused, whatever the cause; unusual texts do not count as a broken encoder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("httpcore2", reason="httpcore2 is not installed")
from loopback import Handler, Loopback, send_json
from tiny_bert import save_bert

from rallebench.core.errors import BackendError, BadFileError
from rallebench.core.types import Passage
from rallebench.encoders.checking import VectorCheck
from rallebench.encoders.hashing import Hashing
from rallebench.encoders.references import open_encoder
from rallebench.workspace.indexes.encoding import encode_passages
from rallebench.workspace.indexes.importing import recognise, take_over

MOONS = ["Titan is a moon of Saturn.", "Triton is a moon of Neptune.", "Io is a moon of Jupiter."]


def numbers(*rows: list[float]) -> Any:
    return np.array(rows, dtype=np.float32)


@pytest.mark.parametrize(
    ("vectors", "fault"),
    [
        (numbers([1, 0], [0, np.nan], [0, 1]), "not numbers for 'Triton is"),
        (numbers([1, 0], [0, 1], [0, -np.inf]), "not numbers for 'Io is"),
        (numbers([0, 0], [0, 0], [0, 0]), "a vector of zeros for 'Titan is"),
        (numbers([1, 0], [0, 0], [0, 1]), "a vector of zeros for 'Triton is"),
        (
            numbers([3, 4], [3, 4], [3, 4]),
            "the same vector for 'Titan is a moon of Saturn.' and 'Tri",
        ),
        (numbers([3, 4], [6, 8], [0.3, 0.4]), "the same vector"),
    ],
)
def test_broken_vectors_are_a_fault_that_names_a_text(vectors: Any, fault: str) -> None:
    assert fault in VectorCheck("e", "").find_fault(MOONS, vectors)


def test_equal_vectors_are_noticed_over_several_batches_until_two_texts_were_told_apart() -> None:
    check, same = VectorCheck("e", ""), numbers([1, 0])
    assert check.find_fault(MOONS[:1], same) == ""
    assert "the same vector" in check.find_fault(MOONS[1:2], same)
    check = VectorCheck("e", "")
    assert check.find_fault(MOONS[:2], numbers([1, 0], [0, 1])) == ""
    assert check.find_fault(["北京", "上海"], numbers([1, 0], [1, 0])) == ""


def test_texts_that_an_encoder_may_read_alike_have_equal_vectors_without_a_fault() -> None:
    for texts in (["Titan?", "titan"], ["Titan", " Titan\n"], ["é", "e\u0301"], ["—", "…", ""]):
        assert VectorCheck("e", "").find_fault(texts, numbers(*[[1, 0]] * len(texts))) == "", texts
    assert VectorCheck("e", "").find_fault(["…", "Io"], numbers([0, 0], [1, 0])) == ""


Answer = Callable[[Handler], None]


def constant(row: list[Any]) -> Answer:
    def behave(handler: Handler) -> None:
        data = [{"index": i, "embedding": row} for i, _ in enumerate(handler.body["input"])]
        send_json({"data": data})(handler)

    return behave


@pytest.mark.parametrize("batch", [1, 64])
@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ([0.0] * 8, "gave a vector of zeros for"),
        ([0.5] * 8, "gave the same vector for"),
        ([None] * 8, "infinite or undefined"),
        ([1e39] * 8, "infinite or undefined"),
    ],
)
def test_a_server_without_real_embeddings_builds_no_index(
    tmp_path: Path, row: list[Any], fault: str, batch: int
) -> None:
    passages = [Passage(str(n), text) for n, text in enumerate(MOONS)]
    with Loopback(constant(row)) as server:
        encoder = open_encoder(
            f"openai_embeddings:m?base_url={server.url}&batch={batch}&concurrency=1&backoff=0.01"
        )
        with pytest.raises(BackendError, match=f"{fault}.*numeric type.*quantization") as caught:
            list(encode_passages(tmp_path, passages, "0", encoder))
        assert server.url in str(caught.value)
        with pytest.raises(BackendError):
            encoder.encode(MOONS, role="query")


@pytest.mark.parametrize(
    ("weight", "fault"), [(float("nan"), "not numbers"), (0.0, "a vector of zeros")]
)
def test_a_model_with_broken_weights_gives_no_vectors(
    tmp_path: Path, weight: float, fault: str
) -> None:
    encoder: Any = open_encoder(f"sentence_transformers:{save_bert(tmp_path / 'm')}?device=cpu")
    (layer, *_) = [m for n, m in encoder.model.named_modules() if n.endswith("output.LayerNorm")][
        -1:
    ]
    layer.weight.data.fill_(weight)
    layer.bias.data.zero_()
    with pytest.raises(BackendError, match=f"{fault} for 'titan'.*dtype=float32"):
        encoder.encode(["titan"], role="query")
    with pytest.raises(BackendError, match=fault):
        list(encoder.bulk("float32")(["titan", "triton"]))


def test_a_model_that_reads_nothing_gives_the_same_vector_and_is_refused(tmp_path: Path) -> None:
    encoder: Any = open_encoder(f"sentence_transformers:{save_bert(tmp_path / 'm')}?device=cpu")
    (layer, *_) = [m for n, m in encoder.model.named_modules() if n.endswith("output.LayerNorm")][
        -1:
    ]
    layer.weight.data.zero_()
    layer.bias.data.fill_(1.0)
    with pytest.raises(BackendError, match="the same vector for 'titan' and 'neptune'"):
        for text in ("titan", "neptune"):
            encoder.encode([text], role="query")


def test_an_encoder_of_a_plug_in_is_checked_where_passages_are_encoded(tmp_path: Path) -> None:
    class Broken(Hashing):
        name = "plugged"

        def encode(self, texts: Any, *, role: Any = "passage") -> Any:
            return np.full((len(texts), self.dim), 0.5, dtype=np.float32)

    passages = [Passage(str(n), text) for n, text in enumerate(MOONS)]
    with pytest.raises(
        BackendError, match="'plugged' gave the same vector for the passage '0' and"
    ) as caught:
        list(encode_passages(tmp_path, passages, "0", Broken()))
    assert "does not know their words" in str(caught.value)
    assert "or another encoder" in str(caught.value)


@pytest.mark.parametrize(
    ("vectors", "fault"),
    [(numbers([1, 0], [0, 0], [0, 1]), "zeros for row 2 of 3"), (numbers(*[[1, 2]] * 3), "same")],
)
def test_vectors_of_another_program_are_checked_before_they_become_an_index(
    tmp_path: Path, vectors: Any, fault: str
) -> None:
    np.save(tmp_path / "moons.npy", vectors)
    passages: Any = [Passage(str(n), text) for n, text in enumerate(MOONS)]
    foreign = recognise(tmp_path / "moons.npy")
    with pytest.raises(BadFileError, match=fault):
        list(take_over(foreign, "flat", tmp_path, passages, {}))
