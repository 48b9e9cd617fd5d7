"""A task's passages as overlapping windows of tokens after the question, ready for the network."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rallebench.reader.text import clean

WINDOW = 200
"""Passage tokens per window."""

OVERLAP = 80
"""Tokens shared by adjacent windows, so that a span cut by one is complete in the next."""

MAX_QUESTION = 64
"""Maximum tokens of a question; only the end of a longer one is kept, since it contains the actual question."""

MAX_TOKENS = 8000
"""Maximum tokens read per task; beyond it, only the windows that share most rare tokens with the question."""

BATCH_TOKENS = 1024
"""Tokens per batch; more do not fit into a processor's cache."""


@dataclass(frozen=True, slots=True)
class Window:
    """Tokens from ``first`` of passage number ``passage``.

    ``ids``: the whole sequence, ``[CLS] question [SEP] window [SEP]``; ``context``: index of the window's first token in
    it; ``offsets``: character range of each of its tokens in the passage's text.
    """

    passage: int
    first: int
    ids: tuple[int, ...]
    context: int
    offsets: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of windows. ``rows``: their numbers; the arrays are int64 (windows, tokens)."""

    rows: tuple[int, ...]
    ids: NDArray[np.int64]
    types: NDArray[np.int64]
    mask: NDArray[np.int64]


def make_windows(question: str, texts: Sequence[str], tokenizer: Any) -> list[Window]:
    """Return the windows of all passages, in order; none if question or passages have no tokens."""
    encoded = tokenizer(
        [clean(question), *(clean(text) for text in texts)],
        add_special_tokens=False,
        return_offsets_mapping=True,
        truncation=False,
        verbose=False,
    )
    query, *bodies = encoded["input_ids"]
    query = query[-MAX_QUESTION:]
    if not query:
        return []
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    windows = []
    for number, ids in enumerate(bodies):
        offsets = encoded["offset_mapping"][number + 1]
        for first in range(0, max(1, len(ids) - OVERLAP), WINDOW - OVERLAP):
            cut = ids[first : first + WINDOW]
            if cut:
                sequence = (cls, *query, sep, *cut, sep)
                places = tuple(offsets[first : first + WINDOW])
                windows.append(Window(number, first, sequence, len(query) + 2, places))
    return _nearest(query, windows)


def _nearest(query: Sequence[int], windows: list[Window]) -> list[Window]:
    """Keep at most MAX_TOKENS, in order, preferring windows with rare tokens of the question; ties: the earlier."""
    if sum(len(w.ids) for w in windows) <= MAX_TOKENS:
        return windows
    held = [set(w.ids[w.context : -1]) for w in windows]
    common = Counter(token for tokens in held for token in tokens)
    rarity = {t: math.log(1 + len(windows) / common[t]) for t in set(query) if common[t]}
    values = [sum(rarity[t] for t in tokens if t in rarity) for tokens in held]
    room, chosen = MAX_TOKENS, []
    for i in sorted(range(len(windows)), key=lambda i: (-values[i], i)):
        room -= len(windows[i].ids)
        if room < 0:
            break
        chosen.append(i)
    return [windows[i] for i in sorted(chosen)]


def make_batches(windows: Sequence[Window], tokens: int = BATCH_TOKENS) -> list[Batch]:
    """Return batches of similar lengths, at most ``tokens`` with padding."""
    order = sorted(range(len(windows)), key=lambda i: (-len(windows[i].ids), i))
    batches = []
    while order:
        width = len(windows[order[0]].ids)
        rows = order[: max(1, tokens // width)]
        order = order[len(rows) :]
        batches.append(_batch(rows, [windows[i] for i in rows], width))
    return batches


def _batch(rows: Sequence[int], windows: Sequence[Window], width: int) -> Batch:
    ids, types, mask = (np.zeros((len(windows), width), dtype=np.int64) for _ in range(3))
    for row, window in enumerate(windows):
        n = len(window.ids)
        ids[row, :n], mask[row, :n] = window.ids, 1
        types[row, window.context : n] = 1
    return Batch(tuple(rows), ids, types, mask)
