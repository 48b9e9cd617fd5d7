"""The window of an encoder is the part of a passage that it really reads, counted in its own tokens, without loading the
model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_bert import save_bert

from rallebench.core.errors import UsageError
from rallebench.encoders.references import open_encoder
from rallebench.encoders.windows import STRETCH, encoder_window, passage_window

ENGLISH = "the river danube in paris , texas ; saturn won two moons . " * 40
CHINESE = "多瑙河流入黑海。泰坦是土星的卫星！" * 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(tmp_path_factory.mktemp("models") / "tiny", prompts={"document": "passage : "})


@pytest.mark.parametrize("text", [ENGLISH, CHINESE])
@pytest.mark.parametrize("reference", ["minilm", "tiny", "tiny?max_tokens=9&passage_prompt="])
def test_an_encoder_reads_the_tokens_of_its_window_and_no_more(
    folder: Path, reference: str, text: str
) -> None:
    reference = reference.replace("tiny", f"sentence_transformers:{folder}")
    window = encoder_window(reference)
    assert window is not None
    end, before = (window.starts(text)[window.tokens + more] for more in (0, -1))
    encoder = open_encoder(reference)
    whole, inside, shorter = encoder.encode([text, text[:end], text[:before]], role="passage")
    np.testing.assert_allclose(whole, inside, atol=2e-6)
    assert not np.allclose(inside, shorter, atol=2e-6)
    assert window.exceeded_by(text) and window.exceeded_by(text[: end + 1])
    assert not window.exceeded_by(text[:end])


def test_an_unknown_window_is_that_of_the_default_encoder() -> None:
    server = "openai_embeddings:nomic?base_url=http://127.0.0.1:9/v1"
    for reference in ("hashing", server, "sentence_transformers:not/here"):
        assert encoder_window(reference) is None
        assert passage_window(reference).encoder == "minilm"
    with pytest.raises(UsageError):
        encoder_window("nothing")


def test_a_text_of_a_book_has_the_same_tokens_as_its_parts() -> None:
    window = passage_window("")
    part = "Titan orbits Saturn. "
    text = part * (STRETCH // len(part) * 3)
    once = len(window.starts(part))
    starts = window.starts(text)
    assert len(starts) == once * (len(text) // len(part))
    assert starts == sorted(starts) and starts[-once] == len(text) - len(part)
