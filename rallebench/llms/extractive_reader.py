"""The built-in reader as a language model: extractive, offline, without a download.

It finds question and passages in the prompt, copies a span or whole sentences from them, and declines in RGB's words if
nothing fits. It never writes a sentence of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rallebench.checkpoints.memory import CONTEXT, READER, TOKEN, MemoryNeed, first_use, note_use
from rallebench.core.errors import BackendError, RalleError
from rallebench.core.settings import dataclass_form, declare
from rallebench.core.types import Generate, Reply
from rallebench.llms import LLMS, settings_from
from rallebench.llms._stops import cut_at
from rallebench.llms.load_progress import report_stage
from rallebench.reader import REFUSAL, ReaderAnswer, Task
from rallebench.reader.prompt import read_prompt
from rallebench.reader.spans import SpanReader, import_libraries, load, sizes

ABOUT = (
    "Built-in extractive reader (22M parameters, English): copies a short span from the retrieved passages or declines. "
    "It does not write, reason or know facts. Use a real LLM for anything you publish."
)


DTYPES = ("auto", "float32", "bfloat16")

LOADING = 24_000_000
"""Temporary bytes while the weights are assembled from the base model and the trained changes; measured."""


@dataclass(frozen=True)
class ReaderSettings:
    """Settings of the reader. ``decline_below``: by default the threshold of the model card, which is lower if the prompt does not say
    how to decline; 0 never declines if there is a span.
    """

    dtype: str = declare(
        str,
        "auto",
        choices=DTYPES,
        about="auto: bfloat16 if the processor supports it, else float32",
    )
    decline_below: float | None = declare(
        float, None, 0, 1, about="confidence below which it declines"
    )


def read_settings(name: str, /, **values: Any) -> ReaderSettings:
    """Return the settings of the model ``name``. Raises UsageError for the first invalid one."""
    return settings_from(ReaderSettings, name, values)


class ExtractiveReader:
    """Answers from the passages of a prompt, with a :class:`~rallebench.reader.spans.SpanReader`.

    A reply's ``confidence`` is the estimated probability that the best span is right, also in a refusal; ``note`` names the
    passage and sentence. Sampling settings have no effect: apart from timing, a request gets the same reply alone and in
    any batch.
    """

    temperature = 0.0

    def __init__(self, name: str, reader: SpanReader, decline_below: float | None = None) -> None:
        self.name = name
        self.about = ABOUT
        threshold = "" if decline_below is None else f"/below-{decline_below:g}"
        self.memory = reader.memory
        self.fingerprint = f"extractive-reader/{reader.fingerprint}{threshold}"
        self._decline_below = decline_below
        self._reader: SpanReader | None = reader
        self._lock = threading.Lock()  # the tokenizer's settings are not thread-safe

    context_window = None

    def count_tokens(self, request: Generate) -> int | None:
        """Return the tokens of a prompt; None while the reader is busy or closed."""
        if not self._lock.acquire(timeout=0.05):
            return None
        try:
            if self._reader is None:
                return None
            return self._reader.count_tokens(["\n".join(m.content for m in request.messages)])[0]
        finally:
            self._lock.release()

    def generate(self, batch: Sequence[Generate]) -> list[Reply | RalleError]:
        """Return one reply per request, in order; after ``close``, one error per request.

        A copied answer is available all at once, so first and last token share one time, after the whole batch.
        """
        start = time.monotonic()
        with self._lock:
            reader = self._reader
            if reader is None:
                closed = f"The extractive reader {self.name!r} was unloaded; load it again."
                return [BackendError(closed) for _ in batch]
            tasks = [
                replace(read_prompt(request), decline_below=self._decline_below)
                for request in batch
            ]
            spans = reader.read(tasks)
            prompts = reader.count_tokens(["\n".join(m.content for m in r.messages) for r in batch])
            replies = [
                _fit(
                    Reply(
                        span.text or REFUSAL,
                        confidence=round(min(1.0, max(0.0, span.confidence)), 4),
                        note=_note(task, span),
                    ),
                    request,
                    reader,
                )
                for request, task, span in zip(batch, tasks, spans)
            ]
            counts = reader.count_tokens([reply.text for reply in replies])
        first = time.monotonic() - start
        return [
            replace(reply, prompt_tokens=before, completion_tokens=after, first_token_seconds=first)
            for reply, before, after in zip(replies, prompts, counts)
        ]

    def stream(self, request: Generate) -> Iterator[str | Reply]:
        """Yield the whole answer as one piece (it is copied, not generated), then the Reply."""
        start = time.monotonic()
        (reply,) = self.generate([request])
        if isinstance(reply, RalleError):
            raise reply
        if reply.text:
            yield reply.text
        yield replace(reply, first_token_seconds=time.monotonic() - start)

    def close(self) -> None:
        with self._lock:
            self._reader = None


def _note(task: Task, span: ReaderAnswer) -> str:
    if task.kind == "say":
        return "Extractive reader: no passage was read."
    if not 0 <= span.passage < len(task.passages):
        return "Extractive reader: nothing in the prompt fits."
    title = task.passages[span.passage].title
    where = f"passage {span.passage + 1}" + (f" ({title})" if title else "")
    what = "taken from" if span.text else "declined; the nearest sentence is in"
    return f"Extractive reader: {what} {where}: {span.sentence}"


def _fit(reply: Reply, request: Generate, reader: SpanReader) -> Reply:
    """Cut the reply at the first stop string, and at a word so that it has at most ``max_tokens`` tokens."""
    text, _ = cut_at(reply.text, request.stop)
    limit = request.max_tokens
    if limit is None or reader.count_tokens([text])[0] <= limit:
        return replace(reply, text=text)
    words = text.split(" ")
    counts = reader.count_tokens([" ".join(words[:n]) for n in range(len(words))])
    fits = max((n for n, count in enumerate(counts) if count <= limit), default=0)
    return replace(reply, text=" ".join(words[:fits]), finish_reason="length")


def need(
    name: str, context: int | None = None, batch: int | None = None, /, **settings: Any
) -> MemoryNeed:
    """Return the estimated memory of the reader. It generates nothing, so it needs no key–value cache."""
    chosen = read_settings(name, **settings)
    parameters, weights, vocabulary = sizes(chosen.dtype)
    form = "float32" if weights == 4 * parameters else "bfloat16"
    return MemoryNeed(
        weights=weights,
        cache=0,
        loading=4 * parameters - weights + LOADING,
        parameters=parameters,
        form=form,
        device="cpu",
        context=context or CONTEXT,
        batch=batch or 1,
        first_use=first_use(READER),
        tokenizer=TOKEN[READER] * vocabulary,
    )


@LLMS.register(
    "extractive-reader",
    about=ABOUT,
    form=dataclass_form(ReaderSettings),
    settings=read_settings,
    need=need,
    copies=True,
    libraries=lambda **settings: import_libraries(),
)
def extractive_reader(name: str, /, **settings: Any) -> ExtractiveReader:
    """Built-in extractive reader: copies spans from the passages in the prompt, or declines."""
    chosen = read_settings(name, **settings)
    report_stage(f"loading {name}: reading its weights")
    reader = ExtractiveReader(name, load(chosen.dtype), chosen.decline_below)
    note_use(READER)
    return reader
