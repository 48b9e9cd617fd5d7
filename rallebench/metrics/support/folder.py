"""Support models from folders, loaded: batches of similar lengths, long passages in windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rallebench.checkpoints.failures import is_out_of_memory, loading_failed
from rallebench.checkpoints.files import token_positions
from rallebench.checkpoints.memory import mapped_device
from rallebench.checkpoints.packages import need_packages
from rallebench.core.errors import BackendError, BackendMemoryError, BadFileError
from rallebench.core.support import AnswerClaim
from rallebench.core.text import sentences
from rallebench.encoders.batches import cuts
from rallebench.encoders.half_precision import has_bfloat16, to_half_precision
from rallebench.metrics.support.checker import SupportPair
from rallebench.metrics.support.formats import (
    choose_layout,
    first_word,
    label_probability,
    premise_texts,
    weakest_token,
)
from rallebench.metrics.support.models import HHEM, LETTUCEDETECT, SupportModel

CPU_TOKENS, GPU_TOKENS = 2048, 65_536
"""Tokens of a batch, padding included."""
MOST_PAIRS = 512
T5_TOKENS, UNKNOWN_TOKENS = 2048, 512
"""Tokens of a pair for a T5, which has no limit of its own, and for a model that names none."""
SURROGATES = ("utf-8", "replace")

Texts = tuple[str, "str | None"]


class FolderChecker:
    """A loaded support model."""

    def __init__(self, plan: SupportModel, tokenizer: Any, model: Any) -> None:
        self.name, self.threshold = plan.option, plan.threshold
        self._plan, self._tokenizer, self._model = plan, tokenizer, model
        self._writes = plan.architecture.endswith("ForConditionalGeneration")
        end = tokenizer.eos_token or tokenizer.sep_token or "</s>"
        self._layout = choose_layout(plan.format, writes=self._writes, end=end)
        self._words = [self._first_id(word) for word in "01"] if self._writes else []
        self.max_length = _longest(plan, tokenizer, model)

    def refuses(self, claim: AnswerClaim) -> str:
        """Return the reason for a claim that fills more than half of the model's input."""
        (length,) = self._lengths([self._layout((), claim)])
        if length <= self.max_length // 2:
            return ""
        return f"a sentence takes {length} of the {self.max_length} tokens that the model reads; set max_length if it reads more"

    def score(self, pairs: Sequence[SupportPair]) -> list[float]:
        """Return the probability of support of each pair, of a long passage by its best window."""
        owners, inputs = self._windows(pairs)
        best = [0.0] * len(pairs)
        lengths = self._lengths(inputs)
        order = sorted(range(len(inputs)), key=lambda i: -lengths[i])
        budget = CPU_TOKENS if self._model.device.type == "cpu" else GPU_TOKENS
        for start, stop in cuts([lengths[i] for i in order], budget, MOST_PAIRS):
            rows = order[start:stop]
            for i, value in zip(rows, self._probabilities([inputs[i] for i in rows])):
                best[owners[i]] = max(best[owners[i]], value)
        return best

    def _windows(self, pairs: Sequence[SupportPair]) -> tuple[list[int], list[Texts]]:
        """Return the number of the pair of each window, and the windows."""
        whole = [self._layout(premise_texts(pair.premise), pair.claim) for pair in pairs]
        owners, inputs = [], []
        for number, (pair, texts, length) in enumerate(zip(pairs, whole, self._lengths(whole))):
            parts = [texts] if length <= self.max_length else self._cut(pair)
            owners += [number] * len(parts)
            inputs += parts
        return owners, inputs

    def _cut(self, pair: SupportPair) -> list[Texts]:
        (fixed,) = self._lengths([self._layout(("",), pair.claim)])
        room = max(16, self.max_length - fixed - 2)
        pieces = [
            piece
            for text in premise_texts(pair.premise)
            for sentence in sentences(text)
            for piece in self._pieces(sentence, room)
        ]
        windows: list[str] = []
        used = room + 1
        for piece, length in zip(pieces, self._lengths([(piece, None) for piece in pieces])):
            if used + length > room:
                windows.append("")
                used = 0
            windows[-1] += piece
            used += length
        return [self._layout((window,), pair.claim) for window in windows]

    def _pieces(self, sentence: str, room: int) -> list[str]:
        """Return a sentence, halved until each piece fits."""
        (length,) = self._lengths([(sentence, None)])
        if length <= room or len(sentence) < 2:
            return [sentence]
        middle = sentence.rfind(" ", 1, len(sentence) // 2 + 1)
        middle = middle if middle > 0 else len(sentence) // 2
        return [*self._pieces(sentence[:middle], room), *self._pieces(sentence[middle:], room)]

    def _lengths(self, inputs: Sequence[Texts]) -> list[int]:
        return [len(ids) for ids in self._tokens(inputs)["input_ids"]] if inputs else []

    def _tokens(self, inputs: Sequence[Texts], **more: Any) -> Any:
        first = [_clean(text) for text, _ in inputs]
        second = [_clean(text) for _, text in inputs if text is not None]
        return self._tokenizer(first, second or None, verbose=False, **more)

    def _first_id(self, word: str) -> int:
        return int(self._tokenizer(word, add_special_tokens=False)["input_ids"][0])

    def _probabilities(self, inputs: Sequence[Texts]) -> list[float]:
        import torch

        cut = "only_first" if inputs[0][1] is not None else True
        encoded = self._tokens(
            inputs, padding=True, truncation=cut, max_length=self.max_length, return_tensors="pt"
        )
        answer = self._answer_mask(encoded) if self._plan.format == LETTUCEDETECT else None
        features = {key: value.to(self._model.device) for key, value in encoded.items()}
        try:
            with torch.inference_mode():
                values = self._read(features, answer).float().cpu().tolist()
        except (RuntimeError, MemoryError, IndexError) as error:
            raise self._reading_error(error, encoded["input_ids"].shape) from None
        if not all(map(math.isfinite, values)):
            raise BackendError(
                f"The support model {self.name} computed scores that are not numbers: it is damaged, or does not work in its "
                "numeric type; set dtype=float32, or download it again."
            )
        return [float(value) for value in values]

    def _read(self, features: dict[str, Any], answer: Any) -> Any:
        if self._writes:
            import torch

            rows = features["input_ids"].shape[0]
            start = int(self._model.config.decoder_start_token_id or 0)
            begin = torch.full((rows, 1), start, device=self._model.device)
            logits = self._model(**features, decoder_input_ids=begin).logits
            return first_word(logits, *self._words)
        logits = self._model(**features).logits
        place = self._plan.place
        if answer is not None:
            return weakest_token(logits, answer.to(logits.device), place)
        return label_probability(logits[:, 0] if self._plan.format == HHEM else logits, place)

    def _answer_mask(self, encoded: Any) -> Any:
        import torch

        rows = range(len(encoded["input_ids"]))
        return torch.tensor([[side == 1 for side in encoded.sequence_ids(row)] for row in rows])

    def _reading_error(self, error: BaseException, shape: Sequence[int]) -> BackendError:
        if is_out_of_memory(error):
            return BackendMemoryError(
                f"The support model {self.name} ran out of memory with {shape[0]} pairs of {shape[1]} tokens; set a smaller "
                "max_length, or device=cpu."
            )
        reason = " ".join(str(error).split())[-200:]
        return BackendError(
            f"The support model {self.name} failed on a pair of {shape[1]} tokens ({reason}); if it reads fewer, set max_length."
        )


def open_support_model(plan: SupportModel) -> FolderChecker:
    """Load a support model. Raises RalleErrors, also for a folder without the weights of its labels."""
    need_packages(("torch", "transformers"), "none", "a support model needs it")
    try:
        tokenizer, model = _load(plan)
    except Exception as error:
        raise loading_failed(error, plan.option, str(plan.folder)) from None
    if not tokenizer.is_fast and plan.format == LETTUCEDETECT:
        raise BadFileError(
            f"{plan.folder} has no tokenizer.json, which tells the tokens of the answer apart; download the model again."
        )
    device = mapped_device(None) if plan.settings.device == "auto" else plan.settings.device
    model = model.to(device).eval()
    half = plan.settings.dtype == "bfloat16" or (
        plan.settings.dtype == "auto" and has_bfloat16(model.device)
    )
    return FolderChecker(plan, tokenizer, to_half_precision(model) if half else model)


def _load(plan: SupportModel) -> tuple[Any, Any]:
    import torch
    import transformers
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(plan.base), **local)
    if plan.format == HHEM:
        return tokenizer, _load_hhem(plan)
    kinds = {
        "ForConditionalGeneration": transformers.AutoModelForSeq2SeqLM,
        "ForTokenClassification": transformers.AutoModelForTokenClassification,
        "ForSequenceClassification": transformers.AutoModelForSequenceClassification,
    }
    kind = next(kind for end, kind in kinds.items() if plan.architecture.endswith(end))
    model, info = kind.from_pretrained(
        str(plan.folder), output_loading_info=True, dtype=torch.float32, **local
    )
    _check_complete(plan, info["missing_keys"])
    return tokenizer, model


def _load_hhem(plan: SupportModel) -> Any:
    """Load HHEM-2.1 into the class of transformers that its own code wraps."""
    from safetensors.torch import load_file
    from transformers import AutoConfig, T5ForTokenClassification

    config = AutoConfig.from_pretrained(str(plan.base), local_files_only=True, num_labels=2)
    model = T5ForTokenClassification(config)
    file = plan.folder / "model.safetensors"
    if not file.is_file():
        raise BadFileError(f"{plan.folder} has no model.safetensors; download the model again.")
    state = {name.removeprefix("t5."): tensor for name, tensor in load_file(file).items()}
    missing = model.load_state_dict(state, strict=False).missing_keys
    _check_complete(plan, [name for name in missing if "embed_tokens" not in name])
    return model


def _check_complete(plan: SupportModel, missing: Sequence[str]) -> None:
    if missing:
        raise BadFileError(
            f"The weights in {plan.folder} lack {sorted(missing)[0]}, so its labels would be random; download the model again."
        )


def _longest(plan: SupportModel, tokenizer: Any, model: Any) -> int:
    """Return the tokens of a pair that the model reads."""
    if plan.settings.max_length:
        return plan.settings.max_length
    if "t5" in str(model.config.model_type):
        return T5_TOKENS
    limits = [int(tokenizer.model_max_length), token_positions(model.config)]
    return min((limit for limit in limits if 0 < limit < 1_000_000), default=UNKNOWN_TOKENS)


def _clean(text: str) -> str:
    """Return a text without lone surrogates, which tokenizers refuse."""
    return text.encode(*SURROGATES).decode("utf-8")
