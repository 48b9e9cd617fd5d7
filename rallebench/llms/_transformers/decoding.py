"""The steps of decoding: stop strings, sampling, penalties, log-probabilities, streamed text.

Imported only with a loaded model, because it needs torch and transformers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from transformers import (
    LogitsProcessor,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    StoppingCriteria,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from rallebench.checkpoints.failures import is_out_of_memory
from rallebench.core.errors import BackendMemoryError
from rallebench.core.memory import release
from rallebench.core.thinking import thought_marks
from rallebench.llms import LOWEST_LOGPROB
from rallebench.llms._stops import cut_at
from rallebench.llms._transformers.forcing import ForceRows
from rallebench.llms._transformers.prompts import PreparedPrompt

Decode = Callable[[Sequence[int]], str]

COLDEST = 1e-4
"""Temperatures below this decode greedily: dividing by a smaller number overflows."""

OVERHANG = 8
"""Tokens to decode beyond the length of a stop string, for skipped tokens and split characters."""


def decoder(tokenizer: Any) -> Decode:
    """Return a function that turns tokens into text with all spaces, keeping only the special tokens that mark thoughts."""
    special = {
        number: str(token)
        for number, token in tokenizer.added_tokens_decoder.items()
        if token.special
    }
    marks = thought_marks(special.values())
    decode = partial(tokenizer.decode, clean_up_tokenization_spaces=False)
    if not marks:
        return partial(decode, skip_special_tokens=True)
    dropped = {number for number, token in special.items() if token not in marks}

    def decode_marked(tokens: Sequence[int]) -> str:
        kept_tokens = [token for token in tokens if token not in dropped]
        return str(decode(kept_tokens, skip_special_tokens=False))

    return decode_marked


def pad_rows(
    rows: Sequence[Sequence[int]], pad: int, device: str, *, right: bool
) -> tuple[Any, Any]:
    """Return int64 tokens and mask (rows, longest), padded on the left, or for an encoder on the right."""
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), pad)
    mask = torch.zeros((len(rows), width), dtype=torch.int64)
    for row, tokens in enumerate(rows):
        where = slice(len(tokens)) if right else slice(width - len(tokens), width)
        ids[row, where] = torch.tensor(tokens)
        mask[row, where] = 1
    return ids.to(device), mask.to(device)


@contextmanager
def watch_memory(name: str, prompts: Sequence[PreparedPrompt]) -> Iterator[None]:
    """Raise BackendMemoryError for a batch of prompts that does not fit."""
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        error.with_traceback(None)  # its frames hold the batch
        release()
        longest = max(len(prompt.tokens) for prompt in prompts)
        raise BackendMemoryError(
            f"{name!r} ran out of memory with {len(prompts)} prompts of up to {longest} tokens; use a smaller batch size, "
            "shorter prompts, or quantization 4bit."
        ) from None


def processors(
    prompts: Sequence[PreparedPrompt], mask: Any | None
) -> tuple[list[Any], CheckNumbers, KeepLogProbs | None]:
    """Return the logits processors, and among them the one that checks numbers and the one that keeps log-probabilities."""
    rules = prompts[0].decoding
    check = CheckNumbers()
    keeper = KeepLogProbs() if any(prompt.logprobs for prompt in prompts) else None
    steps: list[Any] = [check, keeper] if keeper else [check]
    if rules.repetition_penalty not in (None, 1):
        steps.append(PenaliseRepeats(float(rules.repetition_penalty or 1), mask))
    matchers = [prompt.matcher for prompt in prompts]
    if any(matchers):
        steps.append(ForceRows(matchers))
    if rules.temperature >= COLDEST:
        seeds = [prompt.seed for prompt in prompts]
        steps.append(DrawRows(seeds, rules.temperature, rules.top_k, rules.top_p, rules.min_p))
    return steps, check, keeper


class CheckNumbers(LogitsProcessor):  # type: ignore[misc]
    """Detects rows whose scores are no longer numbers: the largest is NaN or infinite.

    Float16 overflow and damaged weights cause this, and any later processor would turn it into a valid choice, so this
    one comes first. ``good[row]``: number of tokens to keep; all of them if the scores stayed numbers to the end.
    """

    def __init__(self) -> None:
        self._steps = 0
        self._good: Any = None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        numbers = torch.isfinite(scores.amax(dim=-1))
        if self._good is None:
            self._good = torch.zeros_like(numbers, dtype=torch.int64)
        self._good += numbers & (self._good == self._steps)
        self._steps += 1
        return scores

    @property
    def good(self) -> list[int]:
        rows: list[int] = [] if self._good is None else self._good.tolist()
        return rows

    def broken_rows(self) -> Any:
        """Rows whose scores are no longer numbers: bool (rows,)."""
        return self._good < self._steps


class StopRows(StoppingCriteria):  # type: ignore[misc]
    """Ends each row at its own stop strings or where ``check`` finds no numbers, and all rows if an event of
    ``cancelled`` is set.

    transformers' own ``stop_strings`` also searches the prompt, has one list for the whole batch, and walks the vocabulary
    for every new list (an agent has a new list per step).

    ``stops``: for each row, the beginning of the answer in its prompt, and its stop strings. Thoughts before an answer are
    not searched. ``listener`` receives every new token of the first row. ``ends[row]``: number of tokens up to the end of a
    stop string, else None.
    """

    def __init__(
        self,
        decode: Decode,
        stops: Sequence[tuple[str, tuple[str, ...]]],
        start: int,
        check: CheckNumbers,
        cancelled: Sequence[threading.Event],
        listener: Callable[[int], None] | None = None,
    ) -> None:
        self.decode, self.stops, self.start, self.cancelled = decode, stops, start, cancelled
        self.check, self.listener = check, listener
        self.ends: list[int | None] = [None] * len(stops)
        self.first_token_at: float | None = None
        longest = max((len(stop.encode()) for _, row in stops for stop in row), default=0)
        self.tail = longest + OVERHANG if longest else 0

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        self.first_token_at = self.first_token_at or time.perf_counter()
        broken = self.check.broken_rows()
        if self.listener and not bool(broken[0]):
            self.listener(int(input_ids[0, -1]))
        if any(event.is_set() for event in self.cancelled):
            return torch.ones(len(self.stops), dtype=torch.bool, device=input_ids.device)
        if self.tail:
            count = input_ids.shape[1] - self.start
            for row, tokens in enumerate(input_ids[:, self.start :].tolist()):
                if self.ends[row] is None and self._stopped(row, tokens):
                    self.ends[row] = count
        stopped = torch.tensor([end is not None for end in self.ends], device=input_ids.device)
        return stopped | broken.to(input_ids.device)

    def _stopped(self, row: int, tokens: Sequence[int]) -> bool:
        """Return whether a row's answer contains a stop string; the whole row is decoded only if one is near."""
        begun, stops = self.stops[row]
        if not stops or not cut_at(self.decode(tokens[-self.tail :]), stops)[1]:
            return False
        return cut_at(begun + self.decode(tokens), stops)[1]


class DrawRows(LogitsProcessor):  # type: ignore[misc]
    """Samples each row's next token with the row's own random numbers; greedy decoding then picks it.

    A uniform number per token selects from the cumulative distribution, so a request gives the same text alone and in any
    batch, and torch's global generator is not used. Temperature, top-k, top-p (Holtzman et al. 2020, arXiv:1904.09751)
    and min-p (Nguyen et al. 2024, arXiv:2407.01082) apply in this order.
    """

    def __init__(
        self,
        seeds: Sequence[int],
        temperature: float,
        top_k: int | None,
        top_p: float | None,
        min_p: float | None = None,
    ) -> None:
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self.warpers: list[Any] = [TemperatureLogitsWarper(temperature)]
        if top_k:
            self.warpers.append(TopKLogitsWarper(top_k))
        if top_p is not None and top_p < 1:
            self.warpers.append(TopPLogitsWarper(top_p))
        if min_p:
            self.warpers.append(MinPLogitsWarper(min_p))

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        for warper in self.warpers:
            scores = warper(input_ids, scores)
        drawn = torch.stack(
            [torch.rand(1, generator=g, dtype=torch.float64) for g in self.generators]
        )
        ladder = torch.softmax(scores.double(), dim=-1).cumsum(dim=-1)
        # right=True takes the first step above the number, whose probability is never 0.
        token = torch.searchsorted(ladder, drawn.to(ladder.device) * ladder[:, -1:], right=True)
        token = token.clamp(max=scores.shape[-1] - 1)
        return torch.full_like(scores, -torch.inf).scatter_(1, token, 0.0)


class PenaliseRepeats(LogitsProcessor):  # type: ignore[misc]
    """A penalty on tokens of the prompt and of the answer so far (Keskar et al. 2019, arXiv:1909.05858).

    The library's own penalty also counts padding, and so penalises an end token that doubles as padding.
    ``mask``: (rows, prompt), 0 at padding; None if the rows hold no prompt (encoder–decoder).
    """

    def __init__(self, penalty: float, mask: Any | None) -> None:
        self.penalise = RepetitionPenaltyLogitsProcessor(penalty)
        self.mask = mask

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        if self.mask is not None:
            # the last token of a left-padded prompt is never padding
            width = self.mask.shape[1]
            prompt = input_ids[:, :width]
            prompt = torch.where(self.mask.bool(), prompt, prompt[:, -1:])
            input_ids = torch.cat([prompt, input_ids[:, width:]], dim=1)
        return self.penalise(input_ids, scores)


class KeepLogProbs(LogitsProcessor):  # type: ignore[misc]
    """Log-probabilities of the generated tokens under the model itself, before penalty and temperature.

    It must be the first processor. It keeps only each step's chosen token, not the whole vocabulary.
    """

    def __init__(self) -> None:
        self._step: Any = None
        self._taken: list[Any] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        self._take(input_ids)
        self._step = torch.log_softmax(scores.float(), dim=-1)
        return scores

    def rows(self, sequences: Any) -> list[list[float]]:
        """Return one number per generated token and row; ``sequences``: the result of ``generate``."""
        self._take(sequences)
        self._step = None
        if not self._taken:
            return []
        table: list[list[float]] = torch.cat(self._taken, dim=1).clamp(min=LOWEST_LOGPROB).tolist()
        return table

    def _take(self, sequences: Any) -> None:
        if self._step is not None:
            self._taken.append(self._step.gather(1, sequences[:, -1:].to(self._step.device)))


class GrowingText:
    """Turns tokens into text as soon as the text is certain.

    A token cannot be decoded alone, because its leading space or half a character belongs to its neighbours. So a few
    tokens are decoded with and without the new token; the difference is the new text.
    """

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._tokens: list[int] = []
        self._from = self._read = 0

    def add(self, token: int) -> str:
        """Return the text that this token makes certain, often ''."""
        self._tokens.append(token)
        piece = self.rest()
        if piece.endswith("\N{REPLACEMENT CHARACTER}") or not piece:
            return ""
        self._from, self._read = self._read, len(self._tokens)
        return piece

    def rest(self) -> str:
        """Return the text of the tokens that are not certain yet."""
        recent = self._tokens[self._from :]
        return self._decode(recent)[len(self._decode(recent[: self._read - self._from])) :]
