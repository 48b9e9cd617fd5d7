"""Models in this process through Hugging Face transformers, in full precision or quantised by bitsandbytes.

Causal and encoder–decoder models, from a folder, a GGUF file or the hub. Decoding is greedy, or sampled with a seed per
request; a request gives the same reply alone and in a batch. The sampling defaults in a model's generation_config.json
are not used: only the settings of a run count.

Tools go through the model's chat template, and its calls are parsed from its text. The format of an answer (a JSON schema,
choices, a regular expression, a grammar, a required call) is enforced during generation. If that is turned off, or the
tokenizer cannot be used, the format is described in the prompt and the answer is checked; the reply's note says both.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Union

from rallebench.checkpoints.memory import MemoryNeed
from rallebench.core.choosing import Choose, read_choices
from rallebench.core.errors import BackendError, Hint, NotFoundError, RalleError
from rallebench.core.memory import Memory, release
from rallebench.core.settings import dataclass_form
from rallebench.core.types import Generate, Reply
from rallebench.llms import DEFAULT_MAX_TOKENS, LLMS
from rallebench.llms._stops import cut_at, cut_stream
from rallebench.llms._transformers.loading import LoadedModel, load, places, set_token_rules
from rallebench.llms._transformers.prompts import PreparedPrompt, Prompter
from rallebench.llms._transformers.settings import (
    QUANTIZATIONS,
    DecodingRules,
    TransformersSettings,
    fingerprint,
    need_of_settings,
    quantization,
    read_settings,
)

Rows = list[tuple[int, PreparedPrompt]]
"""Prompts with the places of their requests."""

Tokens = queue.SimpleQueue[Union[int, Reply, Exception]]

STALL_SECONDS = 600.0
"""Seconds without a new token after which a stream has failed."""

STOP_PATIENCE = 10.0
"""Seconds that closing a stream waits for the current token."""

SORTED_BATCHES = 8
"""Number of batches sorted together by length; more gain little, and a killed run would lose more."""


class TransformersLLM:
    """A loaded model. ``memory``: its memory; ``freed``: the memory that ``close`` released.

    ``preferred_batch``: best number of requests per call, None if it does not matter: requests are sorted by length into
    batches of ``batch_size``, and few requests leave little to sort.
    """

    concurrency = 1

    def __init__(self, name: str, settings: TransformersSettings, loaded: LoadedModel) -> None:
        self.name = name
        self.batch_size = settings.batch_size
        self.preferred_batch = settings.batch_size and SORTED_BATCHES * settings.batch_size
        self.temperature = settings.temperature
        self.seed = settings.seed
        room = settings.max_tokens
        self.insists = {} if room == DEFAULT_MAX_TOKENS else {"max_tokens": room}
        self.memory = loaded.memory
        self.freed = Memory()
        self._threads = settings.threads
        self._model, self._tokenizer, self._device = loaded.model, loaded.tokenizer, loaded.device
        self._encoder_decoder = bool(self._model.config.is_encoder_decoder)
        self._pad, self._ends = set_token_rules(self._model, self._tokenizer)
        self._prompter: Prompter | None = Prompter(
            name, settings, self._tokenizer, self._model.config, self._ends
        )
        self.context_window = self._prompter.window
        self.calls_tools = self._prompter.calls_tools
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self.fingerprint = fingerprint(settings, loaded.source, loaded.dtype, self._prompter.chat)
        quantized = quantization(settings)
        form = loaded.dtype if quantized == "none" else f"{quantized}, {loaded.dtype}"
        self._form = form
        window = f"window {self.context_window} tokens" if self.context_window else "no window"
        where = places(self._model, loaded.device)
        tools = "" if self.calls_tools else ", takes no tools: functions are called in text"
        self.about = (
            f"{type(self._model).__name__} ({form}) on {where}, {window}, took {self.memory}{tools}"
        )

    @property
    def forces_formats(self) -> bool:
        """True if the format of an answer is enforced; the first use reads the tokenizer, which takes a second or two."""
        return self._prompter is not None and self._prompter.forcing is not None

    def count_tokens(self, request: Generate) -> int | None:
        """Return the tokens of a prompt, with the chat template. Raises RalleError if it does not fit the window."""
        return len(self._prepare(request).tokens)

    def generate(self, batch: Sequence[Generate]) -> list[Reply | RalleError]:
        """Return one result per request, in order. Raises BackendMemoryError if the batch does not fit."""
        results: dict[int, Reply | RalleError] = {}
        groups: defaultdict[DecodingRules, Rows] = defaultdict(list)
        for place, request in enumerate(batch):
            try:
                prompt = self._prepare(request)
                groups[prompt.decoding].append((place, prompt))
            except RalleError as error:
                results[place] = error
        with self._lock:
            for part in chain.from_iterable(map(self._batches, groups.values())):
                replies = self._answer([prompt for _, prompt in part])
                results.update(zip((place for place, _ in part), replies, strict=True))
        return [results[place] for place in range(len(batch))]

    def choose(self, batch: Sequence[Choose]) -> list[Reply | RalleError]:
        """Return the choice of each request by the log-probabilities of its options, in order. A prompt that begins the
        model's thoughts is answered by a text, which is read.
        """
        results: dict[int, Reply | RalleError] = {}
        rows: Rows = []
        thoughtful: dict[int, Choose] = {}
        for place, request in enumerate(batch):
            try:
                prompt = self._prepare(request.as_generation())
            except RalleError as error:
                results[place] = error
                continue
            if prompt.begun:
                thoughtful[place] = request
            else:
                rows.append((place, prompt))
        with self._lock:
            for part in self._batches(rows):
                choices = [batch[place].choices for place, _ in part]
                replies = self._weigh([prompt for _, prompt in part], choices)
                results.update(zip((place for place, _ in part), replies, strict=True))
        why = f"{self.name!r} thinks before it answers, so its text was read."
        read = read_choices(self, [*thoughtful.values()], self.name, why)
        results.update(zip(thoughtful, read, strict=True))
        return [results[place] for place in range(len(batch))]

    def _batches(self, rows: Rows) -> Iterator[Rows]:
        """Yield the rows in batches. Similar lengths need little padding; with the longest first, a lack of memory shows at
        once.
        """
        rows = sorted(rows, key=lambda row: -len(row[1].tokens))
        step = self.batch_size or max(1, len(rows))
        yield from (rows[start : start + step] for start in range(0, len(rows), step))

    def stream(self, request: Generate) -> Iterator[str | Reply]:
        """Yield pieces of text, then the Reply. Closing the iterator stops the model."""
        from rallebench.llms._transformers.decoding import GrowingText, decoder

        started = time.perf_counter()
        prompt = self._prepare(request)
        text = GrowingText(decoder(self._tokenizer))
        tokens: Tokens = queue.SimpleQueue()
        begun, cancelled = threading.Event(), threading.Event()

        def work() -> None:
            """Generate in a separate thread; errors travel through the queue."""
            while not self._lock.acquire(timeout=0.1):
                if cancelled.is_set():
                    return
            try:
                begun.set()
                (reply,) = self._answer([prompt], tokens.put, cancelled)
                tokens.put(reply)
            except Exception as error:
                tokens.put(error)
            finally:
                self._lock.release()

        worker = threading.Thread(target=work, daemon=True)

        def pieces() -> Iterator[str | Reply]:
            first = None
            yield prompt.begun
            while not isinstance(token := self._next(tokens, begun, worker), Reply):
                first = first or time.perf_counter() - started
                if token not in self._ends:
                    yield text.add(token)
            yield text.rest()
            yield replace(token, first_token_seconds=first)

        worker.start()
        written = yielded = ""
        try:
            for piece in cut_stream(pieces(), prompt.stop):
                if isinstance(piece, Reply):
                    whole = prompt.read(written)[0]
                    if tail := whole[len(yielded) :]:
                        yield tail
                    yield replace(piece, text=yielded + tail)
                    return
                written += piece
                if new := prompt.certain(written)[len(yielded) :]:
                    yielded += new
                    yield new
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

    def _prepare(self, request: Generate) -> PreparedPrompt:
        prompter = self._prompter
        if prompter is None:
            raise self._unloaded_error()
        return prompter.prepare(request)

    def _answer(
        self,
        prompts: Sequence[PreparedPrompt],
        listener: Callable[[int], None] | None = None,
        *cancelled: threading.Event,
    ) -> list[Reply | RalleError]:
        """Return replies to prompts with equal ``decoding``; the caller holds the lock. ``listener``: see
        :class:`StopRows`.

        A row whose scores are not numbers is an error.
        """
        from rallebench.llms._transformers import decoding

        self._begin()
        started = time.perf_counter()
        decode = decoding.decoder(self._tokenizer)
        tokens = [prompt.tokens for prompt in prompts]
        ids, mask = decoding.pad_rows(tokens, self._pad, self._device, right=self._encoder_decoder)
        start = 1 if self._encoder_decoder else ids.shape[1]
        stops = [(prompt.begun, prompt.stop) for prompt in prompts]
        steps, check, keeper = decoding.processors(prompts, None if self._encoder_decoder else mask)
        watch = decoding.StopRows(decode, stops, start, check, [self._closed, *cancelled], listener)
        with decoding.watch_memory(self.name, prompts):
            output = self._model.generate(
                input_ids=ids,
                attention_mask=mask,
                max_new_tokens=prompts[0].decoding.max_tokens,
                do_sample=False,  # DrawRows leaves one token to choose from
                logits_processor=steps,
                stopping_criteria=[watch],
            )
        if self._closed.is_set():
            raise self._unloaded_error()
        first = watch.first_token_at - started if watch.first_token_at else None
        logprobs = keeper.rows(output) if keeper else [[]] * len(prompts)
        rows = zip(prompts, output[:, start:].tolist(), logprobs, watch.ends, strict=True)
        replies = [self._reply(decode, *row, first) for row in rows]
        return [
            reply if reply.completion_tokens <= good else self._no_numbers()
            for reply, good in zip(replies, check.good, strict=True)
        ]

    def _begin(self) -> None:
        """Prepare the process for a batch. Raises NotFoundError for an unloaded model."""
        import torch

        if self._closed.is_set():
            raise self._unloaded_error()
        if self._threads:
            torch.set_num_threads(self._threads)

    def _weigh(
        self, prompts: Sequence[PreparedPrompt], choices: Sequence[tuple[str, ...]]
    ) -> list[Reply | RalleError]:
        """Return the choice among the ``choices`` of each prompt; the caller holds the lock."""
        from rallebench.llms._transformers.choosing import OptionScorer
        from rallebench.llms._transformers.decoding import watch_memory

        self._begin()
        chat = bool(self._prompter and self._prompter.chat)
        scorer = OptionScorer(
            self.name, self._model, self._tokenizer, self._ends, self._pad, self._device, chat
        )
        with watch_memory(self.name, prompts):
            return [
                reply if reply is not None else self._no_numbers()
                for reply in scorer.choose(prompts, choices)
            ]

    def _reply(
        self,
        decode: Callable[[Sequence[int]], str],
        prompt: PreparedPrompt,
        tokens: list[int],
        logprobs: list[float],
        cut: int | None,
        first: float | None,
    ) -> Reply:
        """Return the reply of a row up to its end; other rows of the batch may be longer."""
        tokens = tokens[:cut]
        end = next((place for place, token in enumerate(tokens) if token in self._ends), None)
        tokens = tokens if end is None else tokens[: end + 1]
        text, stopped = cut_at(prompt.begun + decode(tokens), prompt.stop)
        finished = stopped or end is not None
        text, calls, note = prompt.read(text, finished)
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

    def _next(
        self, tokens: Tokens, begun: threading.Event, worker: threading.Thread
    ) -> int | Reply:
        """Return the next token, or the Reply at the end. Raises the worker's error, and BackendError if it hangs.

        ``begun``: set once this request uses the model.
        """
        deadline = time.monotonic() + STALL_SECONDS
        while True:
            try:
                token = tokens.get(timeout=1.0)
            except queue.Empty:
                if not begun.is_set():  # the model is busy with other requests
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

    def _no_numbers(self) -> BackendError:
        return BackendError(
            f"{self.name!r} computed scores that are not numbers, so it has no answer; loaded as {self._form}, it overflows or "
            "its files are damaged: choose dtype float32 or bfloat16 and no quantization, or download it again."
        )

    def _unloaded_error(self) -> NotFoundError:
        return NotFoundError(f"{self.name!r} was unloaded.", hint=Hint("load", self.name))


# ── the backend ──────────────────────────────────────────────────────────────


def loading(
    name: str, cache: Path | None = None, /, **settings: Any
) -> Iterator[str | TransformersLLM]:
    """Load a model: yield a line per step, and finally the model. ``cache``: folder for converted GGUF files.

    Weights and downloads also draw tqdm bars on stderr. Other loaded models stay. Raises RalleError.
    """
    values = read_settings(name, **settings)
    llm = TransformersLLM(name, values, (yield from load(name, values, cache)))
    yield f"Loaded {name!r}: {llm.about}"
    yield llm


def need(
    name: str, context: int | None = None, batch: int | None = None, /, **settings: Any
) -> MemoryNeed | None:
    """Estimate the memory need; see ``need_of_settings``."""
    return need_of_settings(name, read_settings(name, **settings), context, batch)


@LLMS.register(
    "transformers",
    form=dataclass_form(TransformersSettings),
    settings=read_settings,
    loading=loading,
    need=need,
    quantizations=QUANTIZATIONS,
)
def transformers(name: str, /, **settings: Any) -> TransformersLLM:
    """A model in this process (folder, GGUF file or Hugging Face id; 8bit and 4bit on CPU or CUDA)."""
    for step in loading(name, **settings):
        if isinstance(step, TransformersLLM):
            return step
    raise AssertionError("loading ends with a model")
