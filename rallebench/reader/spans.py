"""The extractive reader: MiniLM with a trained difference searches every passage for an answer span.

Short and long answers come from the network. Claims and titles, which a span cannot answer, are
compared by the unchanged encoder (``comparing``), which is loaded on first use.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rallebench.core.errors import BackendError
from rallebench.core.memory import Memory
from rallebench.reader import REFUSAL, ReaderAnswer, Task, delta
from rallebench.reader.choice import Best, best_span, confidence
from rallebench.reader.comparing import Comparer
from rallebench.reader.span_features import Signs
from rallebench.reader.text import Rarity, clean, sentences, weight_share, words
from rallebench.reader.verdict import is_yes_or_no
from rallebench.reader.windows import Window, make_batches, make_windows

WEIGHTS = Path(__file__).with_name("weights.safetensors")

OFF_TOPIC_THRESHOLD = 0.3
"""Minimum confidence for a passage without any word of the question. The confidence was fitted on passages that do share
words; of 500 development questions only 10 have no word in common with their own paragraph.
"""


class SpanReader:
    """Reads tasks with a network; ``about``: metadata of its weights.

    ``dtype``: number format of the layers; the head and all sums stay float32.
    """

    def __init__(
        self, network: Any, tokenizer: Any, about: dict[str, Any], fingerprint: str
    ) -> None:
        self.fingerprint = fingerprint
        self.about = about
        self.memory: Memory | None = None
        self._network = network
        self._tokenizer = tokenizer
        self._rarity = Rarity(tokenizer.get_vocab())
        self._comparer = Comparer(self._rarity)
        vocabulary = tokenizer.get_vocab()
        self._pieces = np.zeros(max(vocabulary.values()) + 1, dtype=bool)
        self._pieces[[i for token, i in vocabulary.items() if token.startswith("##")]] = True

    def read(self, tasks: Sequence[Task]) -> list[ReaderAnswer]:
        """Return one result per task, in order. Tasks are never batched, so a result depends only on its task."""
        return [self._find(task) for task in tasks]

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of WordPiece tokens per text, without [CLS] and [SEP]."""
        if not texts:
            return []
        encoded = self._tokenizer(
            [clean(text) for text in texts],
            add_special_tokens=False,
            truncation=False,
            verbose=False,
        )
        return [len(ids) for ids in encoded["input_ids"]]

    def best(self, task: Task) -> Best | None:
        """Return the best span of a task's passages, however unlikely, with all its features."""
        texts = [clean(p.text) for p in task.passages]
        telling = {
            w.stem: self._rarity(w.low)
            for w in words(task.question)
            if w.is_word and self._rarity(w.low) > 0
        }
        covered = [_coverage(telling, f"{p.title} {text}") for p, text in zip(task.passages, texts)]
        windows = self.windows(task)
        signs = [Signs(telling, text) for text in texts]
        best = best_span(
            windows,
            self.scores(windows),
            texts,
            self._pieces,
            task.max_words,
            covered,
            lambda i, *place: signs[i].weight(*place),
        )
        if best is None:
            return None
        around = texts[best.passage][max(0, best.start - 150) : best.end + 150]
        features = {
            **best.features,
            "near": _coverage(telling, around),
            "passage": covered[best.passage],
            "question": min(len(telling), 12) / 12,
        }
        return Best(best.passage, best.start, best.end, features)

    def windows(self, task: Task) -> list[Window]:
        """Return the network's input windows for a task, in order."""
        return make_windows(task.question, [p.text for p in task.passages], self._tokenizer)

    def scores(self, windows: Sequence[Window]) -> list[NDArray[np.float32]]:
        """Return (tokens, 2) start and end scores for every window, in order. Raises BackendError if they are not numbers."""
        import torch

        scores: list[Any] = [None] * len(windows)
        for batch in make_batches(windows):
            with torch.inference_mode():
                output = self._network(
                    *(torch.from_numpy(x) for x in (batch.ids, batch.types, batch.mask))
                )
            for row, values in zip(batch.rows, output.numpy()):
                scores[row] = values
            if not np.isfinite(output.numpy()).all():
                raise BackendError(
                    "The extractive reader computed scores that are not numbers, so it has no answer; load it with dtype "
                    "float32, or install rallebench again if its weights are damaged."
                )
        return scores

    def _find(self, task: Task) -> ReaderAnswer:
        if task.kind == "say":
            return ReaderAnswer("" if task.question == REFUSAL else task.question, 0.0)
        if task.kind == "title" and task.titles:
            return self._comparer.title(task)
        if not task.passages:
            return ReaderAnswer("", 0.0)
        if task.kind == "verdict" or (task.kind == "short" and is_yes_or_no(task.question)):
            return self._comparer.verdict(task)
        best = self.best(task)
        if best is None:
            return ReaderAnswer("", 0.0)
        sure = confidence(best.features, self.about["confidence"])
        text = clean(task.passages[best.passage].text)
        spots = sentences(text)
        at = next((i for i, (a, b) in enumerate(spots) if a <= best.start < b), 0)
        sentence = text[slice(*spots[at])] if spots else text
        if sure < self._refusal_threshold(task, best):
            return ReaderAnswer("", sure, best.passage, sentence)
        if task.kind == "long":
            return ReaderAnswer(
                _surrounding(text, spots, at, task.sentences), sure, best.passage, sentence
            )
        return ReaderAnswer(text[best.start : best.end], sure, best.passage, sentence)

    def _refusal_threshold(self, task: Task, best: Best) -> float:
        """Return the confidence below which an answer is withheld; lower unless the prompt allows declining."""
        if task.decline_below is not None:
            return task.decline_below
        thresholds: dict[str, float] = self.about["refuse_below"]
        threshold = thresholds[
            "plain" if task.kind == "short" and not task.may_decline else task.kind
        ]
        return threshold if best.features["passage"] > 0 else max(threshold, OFF_TOPIC_THRESHOLD)


def _coverage(telling: dict[str, float], text: str) -> float:
    """Return the share, by weight, of the question's content words in a text, 0..1."""
    return weight_share(telling, {w.stem for w in words(text)})


def _surrounding(text: str, spots: Sequence[tuple[int, int]], at: int, count: int) -> str:
    """Return ``count`` sentences around number ``at``, adding following sentences first, then preceding ones."""
    last = min(len(spots), at + count)
    first = max(0, min(at, last - count))
    return " ".join(text[a:b] for a, b in spots[first:last])


def sizes(dtype: str = "auto") -> tuple[int, int, int]:
    """Return parameters, bytes of weights and vocabulary size of the shipped reader, from the header of its base model."""
    from safetensors import safe_open

    from rallebench.encoders.half_precision import has_bfloat16_here
    from rallebench.encoders.minilm import installed_folder
    from rallebench.reader.network import TABLE

    half = dtype == "bfloat16" or (dtype == "auto" and has_bfloat16_here())
    parameters = weights = vocabulary = 0
    with safe_open(installed_folder() / "model.safetensors", "numpy") as base:
        for name in base.keys():  # noqa: SIM118 - not a mapping
            shape = base.get_slice(name).get_shape()
            if name.startswith("pooler."):
                continue
            count = math.prod(shape)
            parameters += count
            weights += count * (2 if half and "embed" not in name and len(shape) == 2 else 4)
            vocabulary = shape[0] if name == TABLE else vocabulary
    return parameters, weights, vocabulary


def import_libraries() -> None:
    """Import the libraries that ``load`` needs, which takes longer than loading the reader."""
    from rallebench.checkpoints.packages import import_class
    from rallebench.encoders.minilm import installed_folder

    import_class(str(installed_folder()))


def load(dtype: str = "auto", weights: Path = WEIGHTS) -> SpanReader:
    """Load the shipped reader. ``dtype``: float32, bfloat16, or auto (bfloat16 if the processor supports it natively).

    Raises if the base model or the weights are missing, damaged or do not match.
    """
    import torch
    from transformers import AutoTokenizer

    from rallebench.checkpoints.packages import import_class
    from rallebench.core.files import sha256_file
    from rallebench.core.memory import pages_of_their_own, read_mapped, release
    from rallebench.encoders.half_precision import has_bfloat16, to_half_precision
    from rallebench.encoders.minilm import WEIGHTS_SHA256, model_folder
    from rallebench.reader.network import build, use_onednn

    folder = model_folder()
    import_class(str(folder))
    before = Memory.now()
    with pages_of_their_own():
        difference, about = delta.read(weights, WEIGHTS_SHA256)
        network = build(folder, difference).eval()
        del difference
        if dtype == "auto":
            dtype = "bfloat16" if has_bfloat16(torch.device("cpu")) else "float32"
        network.bert = (
            to_half_precision(network.bert) if dtype == "bfloat16" else use_onednn(network.bert)
        )
    tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    fingerprint = f"extractive-trained/{sha256_file(weights)[:12]}/{dtype}"
    reader = SpanReader(network, tokenizer, about, fingerprint)
    read_mapped(network)
    release()
    reader.memory = Memory.now() - before
    return reader
