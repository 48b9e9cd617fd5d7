"""Rows in the page's lists of language models, encoders and retrievers, with state, memory and price; and model tests."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from urllib.parse import urlsplit

from rallebench.checkpoints.gguf import PACKAGE
from rallebench.core import memory
from rallebench.core.entries import LLMEntry
from rallebench.core.errors import RalleError, StoppedError, UsageError
from rallebench.core.events import Operation, Progress
from rallebench.core.memory import size
from rallebench.core.starter import READER
from rallebench.core.types import Step
from rallebench.encoders.references import encoders
from rallebench.http.endpoint import OPENAI
from rallebench.metrics.cost import step_completion_tokens, step_prompt_tokens
from rallebench.reader.delta import description
from rallebench.reader.spans import WEIGHTS
from rallebench.retrievers import needs_encoder
from rallebench.services.asking import Asking
from rallebench.services.jobs import Job, JobManager, start_thread
from rallebench.services.loaded import LoadedBackend
from rallebench.services.model_entries import ELSEWHERE, is_key_typed, server_key
from rallebench.services.models import ModelManager
from rallebench.workspace.paths import WorkspaceFolder

STARTER_ENCODER = "minilm"
PROMPT = (
    'Referring to the following document, answer "On which river does Tbilisi stand?" in 5 words or less.'
    "\n\nTbilisi, the capital of Georgia, stands on the Kura River.\n\nAnswer: "
)


@dataclass(frozen=True, slots=True)
class ModelLine:
    """A language model. ``state``: ``loaded``, ``loading``, ``waiting``, ``cancelling``, ``testing``, ``failed``,
    ``answers`` (its server passed the last test) or ``ready``. ``news``: progress of a load, or why it failed.
    ``prices``: US dollars per million tokens; None if unknown or local. ``test``: job of the last test.
    ``converted``: size in bytes of the converted copy of its GGUF file.
    """

    name: str
    backend: str
    about: str
    state: str
    news: str | RalleError
    memory: str
    local: bool
    own: bool
    prices: Mapping[str, float] | None
    test: Job | None
    loaded: bool = False
    converted: int = 0


@dataclass(frozen=True, slots=True)
class PartLine:
    """An encoder or a retriever. ``memory``: "" if unknown; ``kind``: ``encoder`` or ``retriever``."""

    name: str
    kind: str
    state: str
    memory: str
    about: str


def about(entry: LLMEntry) -> str:
    """Describe an entry in one line.

    >>> about(LLMEntry(backend="transformers", settings={"model": "/models/qwen3-4b", "quantization": "4bit"}))
    'Folder /models/qwen3-4b · 4-bit'
    >>> about(LLMEntry(backend="transformers", settings={"model": "/models/qwen3-4b.gguf"}))
    'GGUF file /models/qwen3-4b.gguf'
    """
    settings = entry.settings
    if entry.backend == ELSEWHERE:
        address = str(settings.get("base_url") or OPENAI)
        host = urlsplit(address).netloc or address
        return f"Server {host} · {settings.get('model', '')} · {_key(entry)}"
    if entry.backend == READER:
        return "Built in · extractive: copies a short span, no GPU"
    if entry.backend == "transformers":
        model = str(settings.get("model", ""))
        where = "Folder" if model.startswith(("/", ".", "~")) else "Hugging Face"
        if model.startswith(PACKAGE):
            where, model = "Package", model.removeprefix(PACKAGE)
        elif model.lower().endswith(".gguf"):
            where = "GGUF file"
        form = {"4bit": " · 4-bit", "8bit": " · 8-bit"}.get(str(settings.get("quantization")), "")
        return f"{where} {model}{form}"
    return entry.about or f"Backend {entry.backend}"


def _key(entry: LLMEntry) -> str:
    try:
        key = server_key(entry.settings)
        if not key.variable:
            return "no key"
        if is_key_typed(entry.settings):
            return "key typed, in memory"
        if key.is_set:
            return f"key from {key.variable}"
        named = not key.local or entry.settings.get("api_key_env")
        return f"{key.variable} is not set" if named else "no key"
    except RalleError:
        return "no key"


def memory_in_use(held: LoadedBackend) -> str:
    """Describe the memory used by a loaded model or retriever."""
    total = memory.Memory(held.ram, held.vram)
    return str(total) if total.ram + total.vram >= 1_000_000 else "less than 1 MB"


@dataclass(frozen=True, slots=True)
class BorderFigures:
    """The effect of a threshold ``below`` which the reader declines to answer, as shares of answers."""

    below: float
    right_kept: float
    absent_declined: float
    given_right: float


@dataclass(frozen=True, slots=True)
class ReaderBorders:
    """The reader's default thresholds for declining: ``with_advice`` if the prompt says what to do without an
    answer, otherwise ``plain``.

    ``figures``: other thresholds, measured on ``prompts`` prompts.
    """

    with_advice: float
    plain: float
    prompts: int
    figures: tuple[BorderFigures, ...]


def reader_borders() -> ReaderBorders:
    """Return the thresholds of the built-in reader."""
    about = description(WEIGHTS)["about"]
    names = ("below", "right_kept", "absent_declined", "given_right")
    figures = tuple(BorderFigures(*(row[name] for name in names)) for row in about["trade_off"])
    usual, prompts = about["refuse_below"], about["calibration"]["prompts"]
    return ReaderBorders(usual["short"], usual["plain"], prompts, figures)


@lru_cache(maxsize=1)
def has_gpu() -> bool:
    """Return whether this machine has a GPU. Cached, because the check may start a program."""
    return bool(memory.free_vram_bytes())


def memory_line() -> str:
    """Describe the used and total memory, and whether there is a GPU."""
    held, free = memory.Memory.now(), memory.free_ram_bytes()
    vram = f"{size(held.vram)} of GPU memory" if held.vram else ""
    gpu = vram or ("GPU free" if has_gpu() else "no GPU")
    return f"{size(held.ram)} of {size(held.ram + free)} memory in use · {gpu}"


# model tests


@dataclass(frozen=True, slots=True)
class Tested:
    """A model's answer to a test. ``seconds``: without loading; tokens are None if not counted."""

    prompt: str
    answer: str
    seconds: float
    prompt_tokens: int | None
    completion_tokens: int | None

    @property
    def speed(self) -> float | None:
        """Completion tokens per second."""
        return (
            self.completion_tokens / self.seconds
            if self.completion_tokens and self.seconds
            else None
        )


WAIT = 0.5
"""Seconds between checks for a stop while waiting for a server."""


class ModelLines:
    """Lists of models, encoders and retrievers for the page, and model tests."""

    def __init__(
        self, workspace: WorkspaceFolder, models: ModelManager, jobs: JobManager, asking: Asking
    ) -> None:
        self._workspace, self._models, self._jobs, self._asking = workspace, models, jobs, asking

    def models(self) -> list[ModelLine]:
        """Return all readable language models, loaded ones first."""
        own = self._models.own()
        lines = [
            self._model(name, entry, name in own) for name, entry in self._workspace.llms().items()
        ]
        return sorted(lines, key=lambda line: (line.name != READER, line.state != "loaded"))

    def _model(self, name: str, entry: LLMEntry, own: bool) -> ModelLine:
        test = self._jobs.get("test", name)
        state, news = self._state(name, entry, test)
        return ModelLine(
            name,
            entry.backend,
            about(entry),
            state,
            news,
            self._memory(name, entry),
            entry.backend != ELSEWHERE,
            own,
            entry.prices,
            test,
            self._models.is_loaded(name),
            self._models.converted_bytes(name),
        )

    def _state(self, name: str, entry: LLMEntry, test: Job | None) -> tuple[str, str | RalleError]:
        going = self._models.loading().get(name)
        if going is not None:
            word = "cancelling" if going.cancelled else "waiting" if going.waiting else "loading"
            return word, "waits for the loads before it" if going.waiting else going.message
        ended = self._models.load_outcomes().get(name)
        failed = (
            ended if isinstance(ended, RalleError) and not isinstance(ended, StoppedError) else None
        )
        if test is not None and test.done and not isinstance(test.error, StoppedError):
            if test.error is not None:
                return "failed", test.error
            if entry.backend == ELSEWHERE:
                return "answers", ""
        if test is not None and not test.done:
            return "testing", test.message
        if self._models.is_loaded(name):
            return ("ready" if entry.backend == ELSEWHERE else "loaded"), ""
        return ("failed", failed) if failed else ("ready", "")

    def _memory(self, name: str, entry: LLMEntry) -> str:
        loaded = next((line for line in self._models.status() if line.name == name), None)
        if entry.backend == ELSEWHERE:
            return ""
        return memory_in_use(loaded) if loaded is not None else self._memory_need(name)

    def _memory_need(self, name: str, loaded: bool = False) -> str:
        """Estimated memory of a model or an encoder; "" if unknown. Before a load, also whether it fits."""
        with suppress(RalleError):
            room = self._models.room(name)
            if room is not None:
                fits = "" if loaded else ", fits" if room.fits else ", does not fit"
                return f"{size(room.need.total)}{fits}"
        return ""

    def encoders(self) -> list[PartLine]:
        """Return the encoders that are loaded or used by an index. Raises RalleError."""
        manifests = self._workspace.manifests()
        users: dict[str, list[str]] = {STARTER_ENCODER: []}
        for index, manifest in manifests.items():
            if needs_encoder(manifest.kind):
                users.setdefault(manifest.encoder_name, []).append(index)
        known, loaded = encoders(), set(self._models.encoders.names)
        lines = []
        for name in dict.fromkeys([*users, *loaded]):
            with_ = ", ".join(users.get(name, []))
            line = known.get(name.partition("?")[0], "")
            about = f"{line} Used by {with_}." if with_ else line
            # An encoder's measured memory counts with the index loaded first, so this is an estimate.
            is_loaded = name in loaded
            state, need = "loaded" if is_loaded else "ready", self._memory_need(name, is_loaded)
            lines.append(PartLine(name, "encoder", state, need, about))
        return lines

    def retrievers(self, states: Mapping[str, str]) -> list[PartLine]:
        """Return all retrievers. ``states``: states other than ready. Raises RalleError."""
        status = {line.name: line for line in self._models.status()}
        return [
            PartLine(
                name,
                "retriever",
                states.get(name) or "ready",
                memory_in_use(status[name]) if name in status else "",
                about,
            )
            for name, about in self._workspace.retrievers().items()
        ]

    def other_encoders(self) -> dict[str, str]:
        """Encoder → description, for encoders not used by any index."""
        used = {line.name.partition("?")[0] for line in self.encoders()}
        return {name: line for name, line in encoders().items() if name not in used}

    def start_test(self, name: str, prompt: str = PROMPT) -> Job:
        """Start testing a model as a job. Raises RalleError at once if the name is unknown."""
        if not prompt.strip():
            raise UsageError("The prompt is empty; type a question.")
        self._workspace.llm(name)
        return self._jobs.submit(
            "test",
            name,
            prompt,
            lambda job: self._test(name, prompt),
            failure=f"{name} failed",
            record={},
        )

    def _answer(self, name: str, prompt: str) -> Operation[Step]:
        """Ask a model. If the test is stopped, stop waiting for a silent server."""
        yield Progress("", message=f"asking {name}")
        if self._workspace.llm(name).backend != ELSEWHERE:
            return self._asking.ask_model(name, prompt)
        answer: Future[Step] = Future()
        start_thread(partial(self._fulfil, answer, name, prompt), f"test of {name}")
        begun = time.monotonic()
        while not wait([answer], WAIT).done:
            passed = time.monotonic() - begun
            if passed >= 2:
                yield Progress("", message=f"no answer yet, {passed:.0f} s")
            else:
                yield Progress("", message=f"asking {name}")
        return answer.result()

    def _fulfil(self, answer: Future[Step], name: str, prompt: str) -> None:
        try:
            answer.set_result(self._asking.ask_model(name, prompt))
        except BaseException as error:  # passed on to the thread that waits for the answer
            answer.set_exception(error)

    def _test(self, name: str, prompt: str) -> Operation[Tested]:
        with self._models.lease(f"the test of {name!r}") as lease:
            for message in lease.load(name, "language model"):
                yield Progress("", message=message)
            step = yield from self._answer(name, prompt)
        return Tested(
            prompt,
            step.reply.text,
            step.seconds,
            step_prompt_tokens(step),
            step_completion_tokens(step),
        )

    def first_model(self) -> str:
        """Return the most recently loaded model, otherwise the workspace's first; "" if there is none. A model whose
        last test failed is skipped.
        """
        tests = {name: self._jobs.get("test", name) for name in self._workspace.llms()}
        models = [name for name, test in tests.items() if test is None or test.status == "finished"]
        loaded = [row.name for row in self._models.status() if row.name in models]
        return loaded[-1] if loaded else next(iter(models), "")
