"""BERTScore (Zhang et al. 2020, arXiv:1904.09675) with a model from a folder.

Each token is matched with the most similar token of the other text, by the cosine of their contextual embeddings. The
tests compare it with the package bert-score 0.3.13, which would download models by name.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.errors import BackendError, BadFileError, NotFoundError, UsageError
from rallebench.encoders.minilm import model_folder
from rallebench.metrics import METRICS, Pairs
from rallebench.metrics._reading import final_answer
from rallebench.metrics._single import single

TEXTS_AT_ONCE = 32
_tokenizing = threading.Lock()


def parse_option(option: str) -> tuple[str, int | None]:
    """Parse ``FOLDER?layer=N`` into folder and layer; None is the last layer.

    >>> parse_option("/models/roberta-large?layer=17"), parse_option("")
    (('/models/roberta-large', 17), ('', None))
    """
    folder, _, setting = option.partition("?")
    if not setting:
        return folder, None
    key, _, value = setting.partition("=")
    if key != "layer" or not value.isascii() or not value.isdigit():
        raise UsageError(f"BERTScore's {option!r} is not FOLDER or FOLDER?layer=N.")
    return folder, int(value)


def check_option(option: str) -> None:
    """Raise UsageError unless ``option`` is FOLDER or FOLDER?layer=N with a model's folder."""
    folder, _ = parse_option(option)
    if folder and not (Path(folder) / "config.json").is_file():
        raise NotFoundError(
            f"There is no folder {folder!r} with a model; give one that holds its config.json."
        )


@METRICS.register_batch(
    "bertscore", label="BERTScore", range=(-1, 1), tool="model", check=check_option
)
def bertscore(pairs: Pairs, option: str = "") -> list[float | None]:
    """F-measure of greedily matched contextual token embeddings with the best-fitting accepted answer.

    Without idf weights and without rescaling. An empty answer scores 0.

    Normalisation: none; texts are cut at the model's maximum length.
    Not scored: the gold has no answers.
    Option: a folder with a Hugging Face model, and the layer, as in FOLDER?layer=17; by default the embedded MiniLM and its
    last layer.
    Source: Zhang et al. 2020, arXiv:1904.09675.
    Traps: Published values use roberta-large, layer 17 (Chinese: bert-base-chinese, layer 8); values of other
    models and layers cannot be compared. Unrelated texts score far above 0. CRUD-RAG's "bertScore" is
    similarity, not this.
    """
    best_scores: list[float | None] = [0.0 if gold.answers else None for _, gold in pairs]
    comparisons = [
        (number, final_answer(episode), alias)
        for number, (episode, gold) in enumerate(pairs)
        if final_answer(episode)
        for alias in gold.answers
    ]
    if not comparisons:
        return best_scores
    # similar lengths together, so that little is padded; longest first, so that a lack of memory shows at once
    comparisons.sort(key=lambda row: (-max(len(row[1]), len(row[2])), row))
    model = _model(*parse_option(option))
    scores: dict[int, list[float]] = {}
    for start in range(0, len(comparisons), TEXTS_AT_ONCE):
        rows = comparisons[start : start + TEXTS_AT_ONCE]
        values = model.scores([answer for _, answer, _ in rows], [alias for _, _, alias in rows])
        for (number, _, _), value in zip(rows, values):
            scores.setdefault(number, []).append(value)
    for number, values_of in scores.items():
        best_scores[number] = max(values_of)
    return best_scores


@dataclass(frozen=True)
class _Model:
    tokenizer: Any
    model: Any
    layer: int
    longest: int

    def scores(self, answers: Sequence[str], references: Sequence[str]) -> Iterator[float]:
        texts = list(dict.fromkeys((*answers, *references)))
        vectors = dict(zip(texts, self._embed(texts)))
        for answer, reference in zip(answers, references):
            yield _f(vectors[answer], vectors[reference])

    def _embed(self, texts: Sequence[str]) -> list[tuple[Any, Any]]:
        """Return per text float32 (tokens, dim) unit vectors, and a mask of the tokens that are not special."""
        import torch

        clean = [text.strip().encode("utf-8", "replace").decode("utf-8") for text in texts]
        special = {self.tokenizer.sep_token_id, self.tokenizer.cls_token_id}
        with _tokenizing:  # a fast tokenizer stores its truncation and padding settings in itself
            features = self.tokenizer(
                clean, padding=True, truncation=True, max_length=self.longest, return_tensors="pt"
            ).to(self.model.device)
        with torch.inference_mode():
            hidden = (
                self.model(**features, output_hidden_states=True)
                .hidden_states[self.layer]
                .float()
                .cpu()
            )
        if not bool(torch.isfinite(hidden).all()):
            raise BackendError(
                "BERTScore's model computed embeddings that are not numbers: it is damaged, or does not work in its numeric "
                "type; download it again, or name another model."
            )
        embedded = []
        for row, (ids, mask) in enumerate(
            zip(features["input_ids"].cpu(), features["attention_mask"].cpu())
        ):
            real = mask.bool()
            unit = torch.nn.functional.normalize(hidden[row][real], dim=-1)
            counts = torch.tensor([int(i) not in special for i in ids[real]], dtype=torch.bool)
            embedded.append((unit, counts))
        return embedded


def _f(answer: tuple[Any, Any], reference: tuple[Any, Any]) -> float:
    # As in the package, special tokens are not averaged, but other tokens may match them.
    (left, left_counts), (right, right_counts) = answer, reference
    if not left_counts.any() or not right_counts.any():
        return 0.0
    cosines = left @ right.T
    precision = float(cosines.max(dim=1).values[left_counts].mean())
    recall = float(cosines.max(dim=0).values[right_counts].mean())
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


@single
def _model(folder: str, layer: int | None) -> _Model:
    check_option(folder)
    path = Path(folder) if folder else model_folder()
    import torch
    from transformers import AutoModel, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(str(path), local_files_only=True)
        model = AutoModel.from_pretrained(str(path), local_files_only=True).eval()
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())[:200]
        raise BadFileError(
            f"The folder {path} holds no model that can be loaded: {reason}"
        ) from None
    layers = int(model.config.num_hidden_layers)
    if layer is not None and layer > layers:
        raise UsageError(f"The model in {path} has {layers} layers, not {layer}.")
    if torch.cuda.is_available():
        model = model.to("cuda")
    longest = int(tokenizer.model_max_length)
    if (
        longest > 1_000_000
    ):  # the tokenizer does not say; RoBERTa's positions include two that no token can have
        longest = int(getattr(model.config, "max_position_embeddings", 512)) - 2
    return _Model(tokenizer, model, layers if layer is None else layer, longest)
