"""Any server with OpenAI's embeddings API: OpenAI, vLLM, text-embeddings-inference, Ollama, llama.cpp …

Keys, connections and retries work as in the chat backend: OPENAI_API_KEY goes to OpenAI and to this machine only; any
other server gets the key from the variable in ``api_key_env``, or none.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

import numpy as np

from rallebench.core.settings import check_values, dataclass_form, declare
from rallebench.core.stopping import obey, stop_of_thread
from rallebench.core.types import digest
from rallebench.encoders import ENCODERS, Batches, Vectors
from rallebench.encoders._engine import collect_rows
from rallebench.encoders.checking import VectorCheck, unit
from rallebench.http.client import Server
from rallebench.http.endpoint import MAX_RATE, Endpoint, check_endpoint, key_from_environment
from rallebench.http.failures import (
    NOT_OPENAI,
    SEE_LOG,
    Failure,
    estimated_tokens,
    reported_tokens,
)
from rallebench.http.limiter import Permit
from rallebench.http.refusals import find_refusal
from rallebench.http.reported import require_success

PATH = "/embeddings"
MOST_COUNTS = 10_000
"""Number of recent queries whose token counts are remembered."""
BROKEN = "See the server's log, and load the model there in another numeric type (float32 or bfloat16) or without quantization."
TOO_LONG = (400, 413, 422)
"""Statuses for a text that is too long, or too many texts at once."""

_RATE = (0.0, 0, MAX_RATE)
_RATE_ABOUT = "shared by all that ask this server; 0 = no limit"


@dataclass(frozen=True)
class EmbeddingSettings(Endpoint):
    """Settings of one model at one server."""

    model: str = declare(str, "", required=True, about="the model's name on the server")
    api_key_env: str | None = declare(str, None, about="the environment variable with the key")
    dimensions: int = declare(
        int, 0, 0, 65_536, about="ask for shorter vectors; 0 = the model's own length"
    )
    query_prompt: str = declare(str, "", about="text before each query")
    passage_prompt: str = declare(str, "", about="text before each passage")
    max_characters: int = declare(int, 0, 0, 10_000_000, about="longer texts are cut; 0 = never")
    batch: int = declare(int, 64, 1, 4096, about="texts per request")
    concurrency: int = declare(int, 8, 1, 256, about="concurrent requests")
    requests_per_minute: float = declare(float, *_RATE, about=_RATE_ABOUT)
    tokens_per_minute: float = declare(float, *_RATE, about=_RATE_ABOUT)


SETTINGS = dataclass_form(EmbeddingSettings)


class OpenAIEmbeddings:
    """One model at one endpoint. Thread-safe; ``concurrency`` requests may be in flight."""

    dtype = "float32"
    fast_dtypes: tuple[str, ...] = ()

    def __init__(self, settings: EmbeddingSettings, key: str) -> None:
        self.name = f"openai_embeddings:{settings.model}"
        self.settings = settings
        self.fingerprint = _fingerprint(settings)
        self._server = Server(self.name, settings, key)
        self._dim = settings.dimensions
        self._names_form = True
        self._lock = threading.Lock()
        self._check = VectorCheck(self.name, "")
        self._counts: OrderedDict[str, int | None] = OrderedDict()

    @property
    def dim(self) -> int:
        """Dimensions; without the setting, the server is asked once."""
        if not self._dim:
            self.encode(["dimensions"], role="query")
        return self._dim

    def close(self) -> None:
        """Close the connections and wake threads that wait for a retry."""
        self._server.close()

    def encode(
        self, texts: Sequence[str], *, role: Literal["query", "passage"] = "passage"
    ) -> Vectors:
        """Return float32 (n, dim), unit length. Raises BackendError, naming the server, after the last retry."""
        batches = list(
            self._batches(texts, role)
        )  # the first answer tells the number of dimensions
        return collect_rows(len(texts), self.dim, iter(batches))

    def count_tokens(self, queries: Sequence[str]) -> list[int | None]:
        """Return the server's token counts from the last encoding of these queries; None if it counted none.

        The server counts a whole request. Each text gets a share by its length; the shares add up to the server's
        count.
        """
        with self._lock:
            return [self._counts.get(text) for text in queries]

    def bulk(self, dtype: str) -> Callable[[Sequence[str]], Batches]:
        """See ``BulkEncoder``; the server chooses the numeric type."""
        return lambda texts: self._batches(texts, "passage")

    def _batches(self, texts: Sequence[str], role: Literal["query", "passage"]) -> Batches:
        """Yield (rows, vectors) of each request, in the order of the answers."""
        own = self.settings
        prompt = own.query_prompt if role == "query" else own.passage_prompt
        # servers refuse an empty text
        sent = [
            (prompt + (text[: own.max_characters] if own.max_characters else text)) or " "
            for text in texts
        ]
        starts = range(0, len(sent), own.batch)
        threads = min(own.concurrency, len(starts) or 1)
        pool = ThreadPoolExecutor(threads, "embeddings", obey, (stop_of_thread(),))
        try:
            starts_of = {
                pool.submit(self._request, sent[start : start + own.batch]): start
                for start in starts
            }
            for answer in as_completed(starts_of):
                (vectors, tokens), start = answer.result(), starts_of[answer]
                stop = start + len(vectors)
                self._keep(role, texts[start:stop], sent[start:stop], tokens)
                yield np.arange(start, stop), vectors
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _keep(
        self, role: str, texts: Sequence[str], sent: Sequence[str], tokens: int | None
    ) -> None:
        """Remember the server's token count for queries; ``sent``: the texts with prompts."""
        if role != "query":
            return
        sizes = [len(text.encode("utf-8", "replace")) for text in sent]
        with self._lock:
            self._counts.update(
                zip(texts, [None] * len(texts) if tokens is None else shares(tokens, sizes))
            )
            while len(self._counts) > MOST_COUNTS:
                self._counts.popitem(last=False)

    def _request(self, texts: Sequence[str]) -> tuple[Vectors, int | None]:
        """Return the vectors of one request and its token count, with retries."""
        tokens = sum(map(estimated_tokens, texts))
        (answer,) = self._server.attempts(lambda permit: self._ask(texts, permit), tokens)
        return answer

    def _ask(self, texts: Sequence[str], permit: Permit) -> Iterator[tuple[Vectors, int | None]]:
        own = self.settings
        body = {"model": own.model, "input": list(texts)}
        more = {"dimensions": own.dimensions} if own.dimensions else {}
        form = {"encoding_format": "float"} if self._names_form else {}
        try:
            answer, headers = self._server.document("POST", PATH, {**body, **form, **more})
            document = require_success(answer, own, self._server.key, headers)
        except Failure as failure:
            if form and find_refusal(failure, form, body) is not None:
                self._names_form, failure.at_once = (
                    False,
                    True,
                )  # all servers send numbers by default
            if failure.status in TOO_LONG:
                failure.mend = "Set max_characters if a text is too long, batch if there are too many, or the setting in the message."
            raise
        self._server.limiter.read_headers(headers, permit)
        vectors = read_vectors(
            document, len(texts), lambda rows: self._check.find_fault(texts, rows)
        )
        with self._lock:
            if self._dim and vectors.shape[1] != self._dim:
                raise Failure(
                    f"gave vectors of {vectors.shape[1]} dimensions instead of {self._dim}",
                    "Set dimensions to a size that the model supports, or to 0 for its default.",
                )
            self._dim = vectors.shape[1]
        yield vectors, reported_tokens(document.get("usage"), "prompt_tokens") or None


def read_vectors(
    document: Mapping[str, Any],
    count: int,
    find_fault: Callable[[Vectors], str] = lambda vectors: "",
) -> Vectors:
    """Return the vectors of an answer in the order of the request, float32 (count, dim), unit length. Raises Failure.

    ``find_fault``: describes their fault, '' without one.
    """
    rows = document.get("data")
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise Failure("answered without a list of embeddings", NOT_OPENAI)
    places = [row.get("index", number) for number, row in enumerate(rows)]
    if sorted(places, key=str) != sorted(range(count), key=str):
        raise Failure(
            f"answered {len(rows)} embeddings to {count} texts, or numbered them wrongly", SEE_LOG
        )
    try:
        with np.errstate(over="ignore"):  # infinite in float32, which is refused below
            vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
        _, dim = vectors.shape
    except (KeyError, TypeError, ValueError):
        dim = 0
    if not dim:
        raise Failure(
            "answered with embeddings that are not lists of numbers of one length", NOT_OPENAI
        )
    if not np.isfinite(vectors).all():
        raise Failure("answered with embeddings that hold infinite or undefined values", BROKEN)
    vectors = vectors[np.argsort(places)]
    if fault := find_fault(vectors):
        raise Failure(f"gave {fault}", BROKEN)
    return unit(vectors)


def shares(total: int, sizes: Sequence[int]) -> list[int]:
    """Split a total into whole shares in proportion to sizes; their sum is the total.

    >>> shares(10, [1, 1, 2]), shares(2, [5, 5, 5])
    ([2, 3, 5], [0, 1, 1])
    """
    before, parts, of = 0, [], sum(sizes) or 1
    for size in accumulate(sizes):
        parts.append(total * size // of - before)
        before += parts[-1]
    return parts


def _fingerprint(settings: EmbeddingSettings) -> str:
    prompts = [settings.query_prompt, settings.passage_prompt]
    what = digest([settings.dimensions, *prompts, settings.max_characters])[:12]
    return f"openai_embeddings/{settings.model}@{settings.address}/{what}"


@ENCODERS.register("openai_embeddings", needs_model=True, form=SETTINGS)
def openai_embeddings(**settings: Any) -> OpenAIEmbeddings:
    """An OpenAI-compatible embeddings endpoint: openai_embeddings:MODEL?base_url=…; key from the environment."""
    values = EmbeddingSettings(**check_values("encoder 'openai_embeddings'", SETTINGS, settings))
    name = f"openai_embeddings:{values.model}"
    check_endpoint(name, values)
    return OpenAIEmbeddings(values, key_from_environment(name, values))
