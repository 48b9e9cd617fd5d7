"""Any server that speaks OpenAI's embeddings: OpenAI, vLLM, text-embeddings-inference, Ollama, llama.cpp …

Keys, connections and trying again are those of the chat backend: OPENAI_API_KEY goes to OpenAI and to this
machine only, any other server gets the key of the variable that ``api_key_env`` names, or none.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from rallebench.core.errors import UsageError
from rallebench.core.settings import Setting, checked
from rallebench.core.types import digest
from rallebench.encoders import ENCODERS
from rallebench.encoders._engine import unit
from rallebench.http import MAX_RATE
from rallebench.http.addresses import OPENAI, check_address
from rallebench.http.client import Connection
from rallebench.http.failures import NOT_OPENAI, SEE_LOG, Failure, Refusal, parsed, refused, short
from rallebench.http.keys import check_variable, key_from_environment
from rallebench.http.limiter import LimiterClient, Permit
from rallebench.http.retry import MAX_PAUSE, attempts

if TYPE_CHECKING:
    from rallebench.encoders import Batches, Vectors

SETTINGS = {
    "model": Setting(str, "", about="the name that the server knows the model by"),
    "base_url": Setting(str, OPENAI, about="the server's address, which usually ends in /v1"),
    "api_key_env": Setting(str, None, about="the environment variable that holds the key"),
    "dimensions": Setting(int, 0, 0, 65_536, about="ask for shorter vectors; 0 = the model's own"),
    "query_prompt": Setting(str, "", about="stands before each query"),
    "passage_prompt": Setting(str, "", about="stands before each passage"),
    "max_characters": Setting(int, 0, 0, 10_000_000, about="longer texts are cut; 0 = never"),
    "batch": Setting(int, 64, 1, 4096, about="texts in a request"),
    "concurrency": Setting(int, 8, 1, 256, about="requests at once"),
    "requests_per_minute": Setting(
        float, 0.0, 0, MAX_RATE, about="by all that ask this server; 0 = no limit"
    ),
    "tokens_per_minute": Setting(
        float, 0.0, 0, MAX_RATE, about="by all that ask this server; 0 = no limit"
    ),
    "timeout": Setting(float, 120.0, 0.01, 86_400, about="seconds for an answer"),
    "max_retries": Setting(int, 6, 0, 100),
    "backoff": Setting(
        float, 0.5, 0, MAX_PAUSE, about="seconds before the second try; doubled each time"
    ),
}
PATH = "/embeddings"
MOST_COUNTS = 10_000
"""Queries whose tokens are remembered, the last ones."""
TOO_LONG = (400, 413, 422)
"""Statuses by which servers refuse what is too long, or too much at once."""


@dataclass(frozen=True)
class Settings:
    """SETTINGS, checked."""

    model: str
    base_url: str
    api_key_env: str | None
    dimensions: int
    query_prompt: str
    passage_prompt: str
    max_characters: int
    batch: int
    concurrency: int
    requests_per_minute: float
    tokens_per_minute: float
    timeout: float
    max_retries: int
    backoff: float


class OpenAIEmbeddings:
    """One model at one endpoint. Thread-safe; ``concurrency`` requests may be in flight."""

    dtype = "float32"
    fast_dtypes: tuple[str, ...] = ()

    def __init__(self, settings: Settings, key: str) -> None:
        self.name = f"openai_embeddings:{settings.model}"
        self.settings = settings
        self.fingerprint = _fingerprint(settings)
        self._key = key
        self._connection = Connection(self.name, settings, key)
        self._limiter = LimiterClient(
            self.name, settings.base_url, settings, self._connection.closed
        )
        self._dim = settings.dimensions
        self._lock = threading.Lock()
        self._counts: OrderedDict[str, int | None] = OrderedDict()

    @property
    def dim(self) -> int:
        """Dimensions; where the settings do not say, the server is asked once."""
        if not self._dim:
            self.encode(["dimensions"], role="query")
        return self._dim

    def close(self) -> None:
        """Close the connections and wake what waits for another try."""
        self._connection.close()
        self._limiter.close()

    def encode(
        self, texts: Sequence[str], *, role: Literal["query", "passage"] = "passage"
    ) -> Vectors:
        """Float32 (n, dim), unit length. Raises BackendError, naming the server, if it fails for good."""
        import numpy as np

        found = list(self._batches(texts, role))
        out = np.zeros((len(texts), self.dim), dtype=np.float32)
        for rows, vectors in found:
            out[rows] = vectors
        return out

    def count_tokens(self, queries: Sequence[str]) -> list[int | None]:
        """The tokens that the server counted when these queries were last encoded; None where it counted none.

        It counts a request as a whole: each of its texts has the share of its length, so that the sum is the server's.
        """
        with self._lock:
            return [self._counts.get(text) for text in queries]

    def bulk(self, dtype: str) -> Callable[[Sequence[str]], Batches]:
        """See ``BulkEncoder``; the numeric type is the server's affair."""
        return lambda texts: self._batches(texts, "passage")

    def _batches(self, texts: Sequence[str], role: Literal["query", "passage"]) -> Batches:
        """(rows, vectors) of each request as it is answered."""
        import numpy as np

        ours = self.settings
        prompt = ours.query_prompt if role == "query" else ours.passage_prompt
        # Servers refuse an empty text.
        sent = [
            (prompt + (text[: ours.max_characters] if ours.max_characters else text)) or " "
            for text in texts
        ]
        starts = range(0, len(sent), ours.batch)
        if len(starts) == 1:
            vectors, tokens = self._asked(sent)
            self._keep(role, texts, sent, tokens)
            yield np.arange(len(sent)), vectors
            return
        pool = ThreadPoolExecutor(
            min(ours.concurrency, len(starts) or 1), thread_name_prefix="embeddings"
        )
        try:
            asked = {
                pool.submit(self._asked, sent[start : start + ours.batch]): start
                for start in starts
            }
            for answer in as_completed(asked):
                (vectors, tokens), start = answer.result(), asked[answer]
                stop = start + len(vectors)
                self._keep(role, texts[start:stop], sent[start:stop], tokens)
                yield np.arange(start, stop), vectors
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _keep(
        self, role: str, texts: Sequence[str], sent: Sequence[str], tokens: int | None
    ) -> None:
        """Remember what the server counted of queries; ``sent`` is them as they were sent."""
        if role != "query":
            return
        sizes = [len(text.encode("utf-8", "replace")) for text in sent]
        with self._lock:
            self._counts.update(
                zip(texts, [None] * len(texts) if tokens is None else shares(tokens, sizes))
            )
            while len(self._counts) > MOST_COUNTS:
                self._counts.popitem(last=False)

    def _asked(self, texts: Sequence[str]) -> tuple[Vectors, int | None]:
        """The vectors of one request and the tokens it was counted for, tried again where that may help."""
        tokens = sum(len(text.encode("utf-8", "replace")) for text in texts) / 4
        kind = f"{PATH} {self.settings.model}"
        (answer,) = attempts(
            lambda permit: self._ask(texts, permit),
            self.settings,
            self._limiter,
            kind=kind,
            tokens=tokens,
        )
        return answer

    def _ask(self, texts: Sequence[str], permit: Permit) -> Iterator[tuple[Vectors, int | None]]:
        permit.work = 10 + permit.expected
        with self._connection.request("POST", PATH, self._body(texts), self._refused) as answer:
            permit.headers(answer.headers)
            body = answer.read()
        document = parsed(body, self._key)
        vectors = vectors_of(document, len(texts), self._key)
        with self._lock:
            if self._dim and vectors.shape[1] != self._dim:
                raise Failure(
                    f"gave vectors of {vectors.shape[1]} dimensions instead of {self._dim}",
                    "Set dimensions to what the model can give, or to 0 for its own.",
                )
            self._dim = vectors.shape[1]
        yield vectors, tokens_of(document)

    def _body(self, texts: Sequence[str]) -> dict[str, Any]:
        more = {"dimensions": self.settings.dimensions} if self.settings.dimensions else {}
        return {
            "model": self.settings.model,
            "input": list(texts),
            "encoding_format": "float",
            **more,
        }

    def _refused(self, error: Refusal, said: str) -> Failure:
        failure = refused(error, said, self.settings, self._key)
        if error.status_code in TOO_LONG:
            failure.mend = "Set max_characters if a text is too long, batch if there are too many, or what it names."
        return failure


def vectors_of(document: Any, count: int, key: str) -> Vectors:
    """The vectors of an answer in the asked order, float32 (count, dim), unit length; raises Failure."""
    import numpy as np

    if not isinstance(document, Mapping):
        raise Failure("answered with JSON that is not an object", NOT_OPENAI)
    if document.get("error"):
        raise Failure(f"reported an error: {short(document, key)}", SEE_LOG)
    rows = document.get("data")
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise Failure("answered without a list of embeddings", NOT_OPENAI)
    places = [row.get("index", number) for number, row in enumerate(rows)]
    if sorted(places, key=str) != sorted(range(count), key=str):
        raise Failure(
            f"answered {len(rows)} embeddings to {count} texts, or numbered them wrongly", SEE_LOG
        )
    try:
        found = np.array([row["embedding"] for row in rows], dtype=np.float32)
    except (KeyError, TypeError, ValueError):
        raise Failure(
            "answered with embeddings that are not lists of numbers of one length", NOT_OPENAI
        ) from None
    if found.ndim != 2 or not found.shape[1]:
        raise Failure(
            "answered with embeddings that are not lists of numbers of one length", NOT_OPENAI
        )
    if not np.isfinite(found).all():
        raise Failure("answered with embeddings that hold values which are no numbers", SEE_LOG)
    return unit(found[np.argsort(places)])


def tokens_of(document: Mapping[str, Any]) -> int | None:
    """The tokens that an answer says it read; None if it says nothing of them."""
    usage = document.get("usage")
    tokens = usage.get("prompt_tokens") if isinstance(usage, Mapping) else None
    return (
        tokens if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0 else None
    )


def shares(total: int, sizes: Sequence[int]) -> list[int]:
    """Whole shares of a total in proportion to sizes; their sum is the total.

    >>> shares(10, [1, 1, 2]), shares(2, [5, 5, 5])
    ([2, 3, 5], [0, 1, 1])
    """
    before, found, of = 0, [], sum(sizes) or 1
    for size in accumulate(sizes):
        found.append(total * size // of - before)
        before += found[-1]
    return found


def _fingerprint(ours: Settings) -> str:
    address = urlsplit(ours.base_url)
    what = [ours.dimensions, ours.query_prompt, ours.passage_prompt, ours.max_characters]
    where = f"{address.netloc}{address.path.rstrip('/')}"
    return f"openai_embeddings/{ours.model}@{where}/{digest(what)[:12]}"


@ENCODERS.register("openai_embeddings", needs_model=True, settings=SETTINGS)
def openai_embeddings(**settings: Any) -> OpenAIEmbeddings:
    """An OpenAI-compatible embeddings endpoint: openai_embeddings:MODEL?base_url=…; key from the environment."""
    given = Settings(**checked("encoder 'openai_embeddings'", SETTINGS, settings))
    name = f"openai_embeddings:{given.model}"
    if not given.model.strip():
        raise UsageError(
            "The encoder 'openai_embeddings' needs a model: the name the server knows it by."
        )
    check_address(name, given.base_url)
    if given.api_key_env is not None:
        check_variable(name, given.api_key_env)
    return OpenAIEmbeddings(given, key_from_environment(name, given))
