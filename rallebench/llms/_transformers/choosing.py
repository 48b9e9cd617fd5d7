"""Forced choice: the log-probability of each option after a prompt, by the model itself, before penalty and temperature.

The prompt is read once, as for one new token. Options of one token need nothing more; of the others, the rest is read in
one pass that continues the prompt's cache. An option that another one continues ("no" and "not sure" may begin alike)
counts with the end of the text after it, so that the options exclude each other.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from rallebench.core.choices import IN_PROCESS, weigh_options
from rallebench.core.choosing import choice_reply
from rallebench.core.errors import BackendError, RalleError
from rallebench.core.types import Reply
from rallebench.llms._transformers.decoding import pad_rows
from rallebench.llms._transformers.prompts import PreparedPrompt

Tokens = tuple[int, ...]

TAIL = 16
"""Tokens at the end of a prompt that may change the tokens of an option."""


def option_tokens(
    tokenizer: Any, prompt: Sequence[int], options: Sequence[str], *, chat: bool, name: str
) -> tuple[Tokens, ...]:
    """Return the tokens of each option as the continuation of a prompt; after a prompt without a chat template, a space
    separates them. Raises BackendError for options that the model cannot tell apart.
    """
    tail = tokenizer.decode(
        prompt[-TAIL:], skip_special_tokens=False, clean_up_tokenization_spaces=False
    )
    space = "" if chat or tail[-1:].isspace() else " "
    before = _encode(tokenizer, tail)
    rows: dict[Tokens, str] = {}
    for option in options:
        after = _encode(tokenizer, tail + space + option)
        joined = after[: len(before)] == before and len(after) > len(before)
        tokens = after[len(before) :] if joined else _encode(tokenizer, option)
        if not tokens:
            raise BackendError(
                f"For {name!r} the option {option!r} has no tokens, so it cannot be chosen; use another word for it."
            )
        if tokens in rows:
            raise BackendError(
                f"For {name!r} the options {rows[tokens]!r} and {option!r} have the same tokens, so neither can be chosen; use "
                "other words for them."
            )
        rows[tokens] = option
    return tuple(rows)


def _encode(tokenizer: Any, text: str) -> Tokens:
    return tuple(tokenizer(text, add_special_tokens=False, verbose=False).input_ids)


class OptionScorer:
    """Scores options by a loaded model. ``ends``: its end-of-text tokens; ``pad``: its padding token; ``chat``: True if its
    chat template is used.
    """

    def __init__(
        self,
        name: str,
        model: Any,
        tokenizer: Any,
        ends: frozenset[int],
        pad: int,
        device: str,
        chat: bool,
    ) -> None:
        self._name, self._model, self._tokenizer = name, model, tokenizer
        self._ends, self._pad, self._device, self._chat = sorted(ends), pad, device, chat
        self._encoder_decoder = bool(model.config.is_encoder_decoder)
        self._keeps = "logits_to_keep" in inspect.signature(model.forward).parameters

    def choose(
        self, prompts: Sequence[PreparedPrompt], choices: Sequence[tuple[str, ...]]
    ) -> list[Reply | RalleError | None]:
        """Return the choice among the ``choices`` of each prompt in one batch; None for scores that are not numbers."""
        results: list[Reply | RalleError | None] = [None] * len(prompts)
        rows: dict[int, tuple[Tokens, ...]] = {}
        for place, (prompt, options) in enumerate(zip(prompts, choices, strict=True)):
            try:
                rows[place] = self._tokens(prompt, options)
            except RalleError as error:
                results[place] = error
        if not rows:
            return results
        tokens = [prompts[place].tokens for place in rows]
        ids, mask = pad_rows(tokens, self._pad, self._device, right=self._encoder_decoder)
        for place, logprobs in zip(rows, self.score(ids, mask, [*rows.values()]), strict=True):
            if not any(map(math.isnan, logprobs)):
                reply = Reply("", prompt_tokens=len(prompts[place].tokens))
                results[place] = self._reply(reply, choices[place], rows[place], logprobs)
        return results

    def _tokens(self, prompt: PreparedPrompt, options: Sequence[str]) -> tuple[Tokens, ...]:
        rows = option_tokens(
            self._tokenizer, prompt.tokens, options, chat=self._chat, name=self._name
        )
        room, longest = prompt.decoding.max_tokens, max(map(len, rows))
        if longest > room:
            raise BackendError(
                f"The options for {self._name!r} have up to {longest} tokens, but its context window leaves room for {room}; "
                "shorten the prompt."
            )
        return rows

    def _reply(
        self,
        reply: Reply,
        options: tuple[str, ...],
        rows: Sequence[Tokens],
        logprobs: Sequence[float],
    ) -> Reply | RalleError:
        """Return the reply with its choice, whose tokens count as generated."""
        try:
            choice = weigh_options(options, logprobs, IN_PROCESS)
        except RalleError as error:
            return error
        written = len(rows[options.index(choice.chosen)])
        return choice_reply(choice, replace(reply, completion_tokens=written))

    def score(self, ids: Any, mask: Any, rows: Sequence[Sequence[Tokens]]) -> list[list[float]]:
        """Return log-probabilities, one for each option of each prompt. ``ids``, ``mask``: padded prompts (rows, longest)."""
        with torch.inference_mode():
            if self._encoder_decoder:
                return self._score_by_decoder(ids, mask, rows)
            return self._score_by_cache(ids, mask, rows)

    def _score_by_cache(
        self, ids: Any, mask: Any, rows: Sequence[Sequence[Tokens]]
    ) -> list[list[float]]:
        """Read the prompts once, and continue the cache of each one by its options."""
        output = self._model.generate(
            input_ids=ids,
            attention_mask=mask,
            max_new_tokens=1,
            do_sample=False,
            return_dict_in_generate=True,
            output_logits=True,
        )
        first = torch.log_softmax(output.logits[0].float(), dim=-1)
        cache = output.past_key_values
        return [
            self._sum(self._continue(cache, row, prompt[keep.bool()], options, first[row]), options)
            for row, (prompt, keep, options) in enumerate(zip(ids, mask, rows))
        ]

    def _continue(
        self, cache: Any, row: int, prompt: Any, options: Sequence[Tokens], first: Any
    ) -> Any:
        """Return log-probabilities (options, longest, vocabulary) of the token at each place after the prompt."""
        inputs = self._inputs(options)
        if not inputs.shape[1]:
            return first.expand(len(options), 1, -1)
        shared = _row_cache(cache, row, len(prompt), len(options))
        if shared is not None:
            logits = self._model(input_ids=inputs, past_key_values=shared, use_cache=True).logits
            rest = torch.log_softmax(logits.float(), dim=-1)
            return torch.cat([first.expand(len(options), 1, -1), rest], dim=1)
        whole = torch.cat([prompt.expand(len(options), -1), inputs], dim=1)
        places = inputs.shape[1] + 1
        more = {"logits_to_keep": places} if self._keeps else {}
        logits = self._model(input_ids=whole, use_cache=False, **more).logits[:, -places:]
        return torch.log_softmax(logits.float(), dim=-1)

    def _score_by_decoder(
        self, ids: Any, mask: Any, rows: Sequence[Sequence[Tokens]]
    ) -> list[list[float]]:
        """Read the prompts by the encoder once, and the options by the decoder."""
        from transformers.modeling_outputs import BaseModelOutput

        states = self._model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
        begin = self._model.config.decoder_start_token_id
        scores = []
        for row, options in enumerate(rows):
            count, inputs = len(options), self._inputs(options)
            start = torch.full_like(inputs[:, :1], self._pad if begin is None else begin)
            logits = self._model(
                encoder_outputs=BaseModelOutput(states[row].expand(count, -1, -1)),
                attention_mask=mask[row].expand(count, -1),
                decoder_input_ids=torch.cat([start, inputs], dim=1),
                use_cache=False,
            ).logits
            scores.append(self._sum(torch.log_softmax(logits.float(), dim=-1), options))
        return scores

    def _inputs(self, options: Sequence[Tokens]) -> Any:
        """Return the tokens to read after a prompt (options, longest): an option without its last token, unless another
        option continues it. A causal model does not look at the padding behind them.
        """
        read = [option if _is_continued(option, options) else option[:-1] for option in options]
        width = max(map(len, read))
        padded = [[*tokens, *[self._pad] * (width - len(tokens))] for tokens in read]
        return torch.tensor(padded, dtype=torch.int64, device=self._device)

    def _sum(self, table: Any, options: Sequence[Tokens]) -> list[float]:
        """Return the log-probability of each option. ``table``: as ``_continue`` gives it."""
        sums = []
        for row, option in enumerate(options):
            value = table[row, range(len(option)), option].sum()
            if _is_continued(option, options) and len(self._ends):
                value = value + table[row, len(option), self._ends].logsumexp(0)
            sums.append(value)
        values: list[float] = torch.stack(sums).tolist()
        return values


def _is_continued(option: Tokens, options: Sequence[Tokens]) -> bool:
    return any(other[: len(option)] == option and other != option for other in options)


def _row_cache(cache: Any, row: int, length: int, count: int) -> Any:
    """Return ``count`` copies of the cache of one prompt, without its padding; None for a cache of another kind."""
    from transformers.cache_utils import DynamicCache, DynamicLayer

    if type(cache) is not DynamicCache or any(
        type(layer) is not DynamicLayer for layer in cache.layers
    ):
        return None
    copies = DynamicCache()
    for place, layer in enumerate(cache.layers):
        if layer.keys is None or layer.keys.shape[-2] < length:
            return None
        keys, values = (
            states[row, None, :, -length:].expand(count, -1, -1, -1)
            for states in (layer.keys, layer.values)
        )
        copies.update(keys, values, place)
    return copies
