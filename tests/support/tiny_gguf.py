"""Tiny GGUF files: a random Llama with known tensors, and a tokenizer of bytes and a few words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rallebench.checkpoints.gguf import CONVERTED, SOURCE

HIDDEN, LAYERS, HEADS, KEY_HEADS, WINDOW = 32, 2, 4, 2, 64
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["t h", "th e", "Ġ the", "r i", "v e", "ri ve", "rive r"]
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def byte_letters() -> list[str]:
    """GPT-2's letter for each byte, in the order of the bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def vocabulary() -> list[str]:
    return [*SPECIAL, *byte_letters(), *(merge.replace(" ", "") for merge in MERGES)]


def weights(seed: int = 7) -> dict[str, np.ndarray[Any, Any]]:
    """Name in transformers → float32 tensor, of a Llama with tied embeddings."""
    random = np.random.default_rng(seed)
    key = HIDDEN // HEADS * KEY_HEADS
    shapes = {
        "model.embed_tokens.weight": (len(vocabulary()), HIDDEN),
        "model.norm.weight": (HIDDEN,),
    }
    for layer in range(LAYERS):
        start = f"model.layers.{layer}"
        shapes |= {
            f"{start}.input_layernorm.weight": (HIDDEN,),
            f"{start}.post_attention_layernorm.weight": (HIDDEN,),
            f"{start}.self_attn.q_proj.weight": (HIDDEN, HIDDEN),
            f"{start}.self_attn.k_proj.weight": (key, HIDDEN),
            f"{start}.self_attn.v_proj.weight": (key, HIDDEN),
            f"{start}.self_attn.o_proj.weight": (HIDDEN, HIDDEN),
            f"{start}.mlp.gate_proj.weight": (2 * HIDDEN, HIDDEN),
            f"{start}.mlp.up_proj.weight": (2 * HIDDEN, HIDDEN),
            f"{start}.mlp.down_proj.weight": (HIDDEN, 2 * HIDDEN),
        }
    return {
        name: (1.0 if len(shape) == 1 else 0.0) + 0.1 * random.standard_normal(shape).astype("f4")
        for name, shape in shapes.items()
    }


_PARTS = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def name_in_gguf(name: str) -> str:
    """``model.layers.0.mlp.up_proj.weight`` → ``blk.0.ffn_up.weight``."""
    stem = name.removesuffix(".weight")
    if stem in _PARTS:
        return f"{_PARTS[stem]}.weight"
    _, _, layer, part = stem.split(".", 3)
    return f"blk.{layer}.{_PARTS[part]}.weight"


def _interleaved(tensor: np.ndarray[Any, Any], heads: int) -> np.ndarray[Any, Any]:
    """llama.cpp rotates pairs of neighbours, transformers rotates halves."""
    rows, columns = tensor.shape
    halves = tensor.reshape(heads, 2, rows // heads // 2, columns)
    return halves.swapaxes(1, 2).reshape(rows, columns)


def save_gguf(
    path: Path,
    *,
    stored: str = "F32",
    template: str | None = CHAT_TEMPLATE,
    architecture: str = "llama",
    fields: Mapping[str, Any] | None = None,
    tokenizer: bool = True,
    without: str = "",
    seed: int = 7,
) -> Path:
    """Write a Llama in the type ``stored`` of its matrices; ``fields``: further metadata; ``without``: a tensor to leave out."""
    import gguf

    writer = gguf.GGUFWriter(str(path), architecture)
    writer.add_name("tiny")
    writer.add_context_length(WINDOW)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(2 * HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    if tokenizer:
        _add_tokenizer(writer, template)
    for name, value in (fields or {}).items():
        add = writer.add_string if isinstance(value, str) else writer.add_uint32
        add(name, value)
    kind = gguf.GGMLQuantizationType[stored]
    for name, tensor in weights(seed).items():
        if name_in_gguf(name) == without:
            continue
        if "q_proj" in name or "k_proj" in name:
            tensor = _interleaved(tensor, HEADS if "q_proj" in name else KEY_HEADS)
        if tensor.ndim == 1 or stored == "F32":
            writer.add_tensor(name_in_gguf(name), tensor)
        else:
            writer.add_tensor(name_in_gguf(name), gguf.quantize(tensor, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_tokenizer(writer: Any, template: str | None) -> None:
    words = vocabulary()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(words)
    writer.add_token_types([3 if word in SPECIAL else 1 for word in words])
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    if template:
        writer.add_chat_template(template)


def write_converted(cache: Path, file: Path) -> Path:
    """A folder in the cache like the converted file's, with 2 MB."""
    folder = cache / CONVERTED / "0-1"
    folder.mkdir(parents=True)
    (folder / SOURCE).write_text(json.dumps({"file": str(file)}))
    (folder / "model.safetensors").write_bytes(bytes(2_000_000))
    return folder
