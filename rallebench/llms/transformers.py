"""Models in this process through Hugging Face transformers, in full precision or quantised by bitsandbytes.

Causal and encoder–decoder models, from a folder or the hub. Decoding is greedy, or sampled with a seed per request; a
request gives the same reply alone and in a batch. The sampling defaults in a model's generation_config.json are not
used: only the settings of a run count.

Tools go through the model's chat template, and its calls are parsed from its text. A JSON schema is added to the prompt,
and the answer is checked against it; the reply's note says both.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rallebench.core.errors import BackendError, BackendMemoryError, Hint, NotFoundError, RalleError
from rallebench.core.memory import Memory, release
from rallebench.core.settings import form_of
from rallebench.core.structured import in_form
from rallebench.core.types import Generate, Reply, ToolCall
from rallebench.llms import LLMS
from rallebench.llms._calls_in_text import before_calls, calls_of
from rallebench.llms._stops import cut_at
from rallebench.llms._transformers.fixed import fingerprint, places, quantization, set_token_rules
from rallebench.llms._transformers.prompts import PreparedPrompt, Prompter
from rallebench.llms._transformers.settings import (
    QUANTIZATIONS,
    DecodingRules,
    TransformersSettings,
    settings_of,
)

if TYPE_CHECKING:
    from rallebench.checkpoints.memory import MemoryNeed
    from rallebench.llms._transformers.decoding import TokenQueue
    from rallebench.llms._transformers.loading import LoadedModel

STALL_SECONDS = 600.0
"""Seconds after which a stream without a new token has failed."""

STOP_PATIENCE = 10.0
"""Seconds that closing a stream waits for the present token."""

SORTED_BATCHES = 8
"""The number of batches sorted together by length; more gain little, and a killed run would lose more."""

COLDEST = 1e-4
"""Below this temperature decoding is greedy: dividing by less overflows."""


class TransformersLLM:
    """A loaded model. ``memory``: the memory that it took; ``freed``: the memory that ``close`` released.

    ``preferred_batch``: the best number of requests for a call, None if it does not matter: they are sorted by length
    into batches of ``batch_size``, and few requests leave little to sort.
    """

    concurrency = 1

    def __init__(self, name: str, settings: TransformersSettings, loaded: LoadedModel) -> None:
        self.name = name
        self.batch_size = settings.batch_size
        self.preferred_batch = settings.batch_size and SORTED_BATCHES * settings.batch_size
        self.temperature = settings.temperature
        self.seed = settings.seed
        self.memory = loaded.memory
        self.freed = Memory()
        self._threads = settings.threads
        self._model, self._tokenizer, self._device = loaded.model, loaded.tokenizer, loaded.device
        self._encoder_decoder = bool(self._model.config.is_encoder_decoder)
        self._prompter: Prompter | None = Prompter(
            name, settings, self._tokenizer, self._model.config
        )
        self.context_window = self._prompter.window
        self.calls_tools = self._prompter.calls_tools
        self._pad, self._ends = set_token_rules(self._model, self._tokenizer)
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self.fingerprint = fingerprint(settings, loaded, self._prompter.chat)
        quantized = quantization(settings)
        form = loaded.dtype if quantized == "none" else f"{quantized}, {loaded.dtype}"
        window = f"window {self.context_window} tokens" if self.context_window else "no window"
        where = places(self._model, loaded.device)
        tools = "" if self.calls_tools else ", takes no tools: functions are called in text"
        self.about = (
            f"{type(self._model).__name__} ({form}) on {where}, {window}, took {self.memory}{tools}"
        )

    def generate(self, batch: Sequence[Generate]) -> list[Reply | RalleError]:
        """One result per request, in order. Raises BackendMemoryError if the batch does not fit."""
        results: dict[int, Reply | RalleError] = {}
        groups: defaultdict[DecodingRules, list[tuple[int, PreparedPrompt]]] = defaultdict(list)
        for place, request in enumerate(batch):
            try:
                prompt = self._prepare(request)
                groups[prompt.decoding].append((place, prompt))
            except RalleError as error:
                results[place] = error
        with self._lock:
            for rows in groups.values():
                # Similar lengths need little padding; with the longest first, a lack of memory shows at once.
                rows.sort(key=lambda row: -len(row[1].tokens))
                step = self.batch_size or len(rows)
                for start in range(0, len(rows), step):
                    part = rows[start : start + step]
                    replies = self._answer([prompt for _, prompt in part])
                    results.update(zip((place for place, _ in part), replies, strict=True))
        return [results[place] for place in range(len(batch))]

    def stream(self, request: Generate) -> Iterator[str | Reply]:
        """Yield pieces of text, then the Reply. Closing the iterator stops the model."""
        from rallebench.llms._transformers.decoding import GrowingText, TokenQueue

        started = time.perf_counter()
        prompt = self._prepare(request)
        text = GrowingText(
            _decoder(self._tokenizer),
            prompt.stop,
            lambda written: _certain(prompt, written),
            lambda written: _read(prompt, written)[0],
        )
        tokens, cancelled = TokenQueue(), threading.Event()
        done: list[Reply] = []
        worker = threading.Thread(
            target=self._work, args=(prompt, tokens, cancelled, done), daemon=True
        )
        first = None
        worker.start()
        try:
            while (token := self._next(tokens, worker)) is not None:
                first = first or time.perf_counter() - started
                if token not in self._ends and (piece := text.add(token)):
                    yield piece
            if piece := text.end():
                yield piece
            yield replace(done[0], text=text.text, first_token_seconds=first)
        finally:
            cancelled.set()
            worker.join(STOP_PATIENCE)

    def close(self) -> None:
        """Stop the running answer and release the memory; ``freed`` says how much."""
        self._closed.set()
        with self._lock:
            before = Memory.now()
            self._model = self._tokenizer = self._prompter = None
            release()
            self.freed = before - Memory.now()

    # ── many prompts ─────────────────────────────────────────────────────────

    def _prepare(self, request: Generate) -> PreparedPrompt:
        prompter = self._prompter
        if prompter is None:
            raise self._unloaded()
        return prompter.prepare(request)

    def _answer(
        self,
        prompts: Sequence[PreparedPrompt],
        streamer: TokenQueue | None = None,
        cancelled: threading.Event | None = None,
    ) -> list[Reply]:
        """Replies to prompts of one ``decoding``; the caller holds the lock."""
        import torch

        from rallebench.checkpoints.failures import is_out_of_memory
        from rallebench.llms._transformers.decoding import StopRows

        if self._closed.is_set():
            raise self._unloaded()
        if self._threads:
            torch.set_num_threads(self._threads)
        started = time.perf_counter()
        decoding = prompts[0].decoding
        ids, mask = self._padded([prompt.tokens for prompt in prompts])
        start = 1 if self._encoder_decoder else ids.shape[1]
        events = [self._closed] + ([cancelled] if cancelled else [])
        watch = StopRows(
            _decoder(self._tokenizer), [prompt.stop for prompt in prompts], start, events
        )
        processors, keeper = _processors(prompts, None if self._encoder_decoder else mask)
        try:
            output = self._model.generate(
                input_ids=ids,
                attention_mask=mask,
                max_new_tokens=decoding.max_tokens,
                do_sample=False,  # DrawRows leaves one token to choose from
                logits_processor=processors,
                stopping_criteria=[watch],
                streamer=streamer,
            )
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            error.with_traceback(None)  # its frames hold the batch
            release()
            raise BackendMemoryError(
                f"{self.name!r} ran out of memory with {len(prompts)} prompts of up to {ids.shape[1]} "
                "tokens; use a smaller batch size, shorter prompts, or quantization 4bit."
            ) from None
        if self._closed.is_set():
            raise self._unloaded()
        first = watch.first_token_at - started if watch.first_token_at else None
        logprobs = keeper.rows(output) if keeper else [[]] * len(prompts)
        rows = zip(prompts, output[:, start:].tolist(), logprobs, watch.ends, strict=True)
        return [self._reply(*row, first) for row in rows]

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[Any, Any]:
        """int64 tokens and mask (rows, longest), padded on the left; for an encoder on the right."""
        import torch

        width = max(map(len, rows))
        ids = torch.full((len(rows), width), self._pad)
        mask = torch.zeros((len(rows), width), dtype=torch.int64)
        for row, tokens in enumerate(rows):
            where = (
                slice(len(tokens)) if self._encoder_decoder else slice(width - len(tokens), width)
            )
            ids[row, where] = torch.tensor(tokens)
            mask[row, where] = 1
        return ids.to(self._device), mask.to(self._device)

    def _reply(
        self,
        prompt: PreparedPrompt,
        tokens: list[int],
        logprobs: list[float],
        cut: int | None,
        first: float | None,
    ) -> Reply:
        """The reply of a row up to its end; other rows of the batch may be longer."""
        tokens = tokens[:cut]
        end = next((place for place, token in enumerate(tokens) if token in self._ends), None)
        tokens = tokens if end is None else tokens[: end + 1]
        text, stopped = cut_at(_decoder(self._tokenizer)(tokens), prompt.stop)
        finished = stopped or end is not None
        text, calls, note = _read(prompt, text)
        return Reply(
            text,
            tool_calls=calls,
            prompt_tokens=len(prompt.tokens),
            completion_tokens=len(tokens),
            finish_reason="tool_calls" if calls else "stop" if finished else "length",
            first_token_seconds=first,
            logprobs=tuple(logprobs[: len(tokens)]) if prompt.logprobs else (),
            note=" ".join(
                filter(None, (*prompt.notes, "" if finished else prompt.room_note, note))
            ),
        )

    # ── streaming ────────────────────────────────────────────────────────────

    def _work(
        self,
        prompt: PreparedPrompt,
        tokens: TokenQueue,
        cancelled: threading.Event,
        done: list[Reply],
    ) -> None:
        """Generate in a separate thread; errors travel through the queue."""
        while not self._lock.acquire(timeout=0.1):
            if cancelled.is_set():
                return
        try:
            tokens.begun.set()
            done += self._answer([prompt], tokens, cancelled)
            tokens.queue.put(None)
        except Exception as error:
            tokens.queue.put(error)
        finally:
            self._lock.release()

    def _next(self, tokens: TokenQueue, worker: threading.Thread) -> int | None:
        """The next token, None at the end. Raises the worker's error, and BackendError if it hangs."""
        deadline = time.monotonic() + STALL_SECONDS
        while True:
            try:
                token = tokens.queue.get(timeout=1.0)
            except queue.Empty:
                if not tokens.begun.is_set():  # the model is busy with other requests
                    deadline = time.monotonic() + STALL_SECONDS
                if worker.is_alive() and time.monotonic() < deadline:
                    continue
                raise BackendError(
                    f"{self.name!r} wrote nothing for {STALL_SECONDS:.0f} seconds; use a smaller model or a "
                    "shorter prompt, or unload the model and load it again."
                ) from None
            if isinstance(token, Exception):
                raise token
            return token

    def _unloaded(self) -> NotFoundError:
        return NotFoundError(f"{self.name!r} was unloaded.", hint=Hint("load", self.name))


# ── the text of a reply ──────────────────────────────────────────────────────


def _read(prompt: PreparedPrompt, text: str) -> tuple[str, tuple[ToolCall, ...], str]:
    """The text of the reply, the tool calls in it, and the note about both."""
    text, calls = calls_of(text) if prompt.calls else (text, ())
    if calls or prompt.schema is None:
        return text, calls, ""
    text, note = in_form(text, prompt.schema)
    return text, (), note


def _certain(prompt: PreparedPrompt, text: str) -> str:
    """The part of an unfinished text that will surely be in the reply."""
    if prompt.schema is not None:
        return ""
    return before_calls(text) if prompt.calls else text


# ── decoding ─────────────────────────────────────────────────────────────────


def _decoder(tokenizer: Any) -> Callable[[Sequence[int]], str]:
    """Tokens → text, without special tokens and with all spaces."""

    def decode(tokens: Sequence[int]) -> str:
        return str(
            tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        )

    return decode


def _processors(
    prompts: Sequence[PreparedPrompt], mask: Any | None
) -> tuple[list[Any], Any | None]:
    """The processors of the scores, and the one of them that keeps log-probabilities."""
    from rallebench.llms._transformers.decoding import DrawRows, KeepLogProbs, PenaliseRepeats

    decoding = prompts[0].decoding
    keeper = KeepLogProbs() if any(prompt.logprobs for prompt in prompts) else None
    processors: list[Any] = [keeper] if keeper else []
    if decoding.repetition_penalty not in (None, 1):
        processors.append(PenaliseRepeats(float(decoding.repetition_penalty or 1), mask))
    if decoding.temperature >= COLDEST:
        seeds = [prompt.seed for prompt in prompts]
        limits = (decoding.top_k, decoding.top_p, decoding.min_p)
        processors.append(DrawRows(seeds, decoding.temperature, *limits))
    return processors, keeper


# ── the backend ──────────────────────────────────────────────────────────────


def loading(name: str, /, **settings: Any) -> Iterator[str | TransformersLLM]:
    """Load a model: yield a line per step, and finally the model.

    Weights and downloads also draw tqdm bars on stderr. Other loaded models stay. Raises RalleError.
    """
    from rallebench.llms._transformers.loading import load

    values = settings_of(name, **settings)
    for step in load(name, values):
        if isinstance(step, str):
            yield step
            continue
        llm = TransformersLLM(name, values, step)
        yield f"Loaded {name!r}: {llm.about}"
        yield llm


def need(
    name: str, context: int | None = None, batch: int | None = None, /, **settings: Any
) -> MemoryNeed | None:
    """The memory that a model will need; see :mod:`rallebench.checkpoints.memory`."""
    from rallebench.llms._transformers import loading

    return loading.need(name, context, batch, **settings)


@LLMS.register(
    "transformers",
    form=form_of(TransformersSettings),
    settings=settings_of,
    loading=loading,
    need=need,
    quantizations=QUANTIZATIONS,
)
def transformers(name: str, /, **settings: Any) -> TransformersLLM:
    """A model in this process (Hugging Face folder or id; 8bit and 4bit on CPU or CUDA)."""
    for step in loading(name, **settings):
        if isinstance(step, TransformersLLM):
            return step
    raise AssertionError("loading ends with a model")
