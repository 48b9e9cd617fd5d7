"""Any server that speaks OpenAI's chat completions: OpenAI, vLLM, llama.cpp, Ollama, LM Studio …

The ``openai`` client builds and sends the request; this module decides what to try again, reads
the answer without trusting it, and turns every failure into a sentence. The key is read from the
environment and goes into the Authorization header, nowhere else.

Messages with the role ``tool`` are sent as ``user`` messages: the format ties a tool message to the
id of a call, which our messages do not carry. Azure is reached through its ``/openai/v1`` address.
"""

from __future__ import annotations

import contextlib
import email.utils
import ipaddress
import itertools
import json
import math
import os
import random
import re
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from rallebench.errors import BackendError, MissingPackageError, RalleError, UsageError
from rallebench.llms import DEFAULT_MAX_TOKENS, DEFAULT_TEMPERATURE, LLMS, checked_number, settings_from
from rallebench.types import Generate, Reply, ToolCall, ToolSpec, digest

OPENAI = "https://api.openai.com/v1"
CONNECT_SECONDS = 10.0
MAX_BODY_BYTES = 32 * 2**20
MAX_PAUSE = 60.0
MAX_RETRY_AFTER = 120.0
TIMEOUT_RETRIES = 2
"""A time-out costs ``timeout`` seconds each, so it is not worth all of ``max_retries``."""

OURS = frozenset({"messages", "model", "n", "stream", "stream_options"})
"""Fields of the request that ``extra_body`` and a request's options may not set."""

# ── settings ─────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Settings:
    """Seconds for ``timeout`` (silence in a stream, the whole answer otherwise) and ``backoff``
    (the first pause before another try; doubled each time, with jitter, at most a minute).

    ``temperature``, ``max_tokens``, ``top_p``: null leaves them to the server.
    """

    model: str
    base_url: str = OPENAI
    api_key_env: str = "OPENAI_API_KEY"
    timeout: float = 120.0
    concurrency: int = 16
    max_retries: int = 6
    backoff: float = 0.5
    max_tokens: int | None = DEFAULT_MAX_TOKENS
    temperature: float | None = DEFAULT_TEMPERATURE
    top_p: float | None = None
    system: str = ""
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    max_tokens_field: str = "auto"


def _check(name: str, given: Settings) -> None:
    for setting in ("model", "base_url", "api_key_env", "system", "max_tokens_field"):
        if not isinstance(getattr(given, setting), str):
            raise UsageError(f"{name!r}: {setting} must be a text.")
    if not given.model.strip():
        raise UsageError(f"{name!r}: model is empty; it must be the name the server knows the model by.")
    _check_address(name, given.base_url)
    # Capitals only: what looks like a key is refused here and never printed.
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", given.api_key_env):
        raise UsageError(
            f"{name!r}: api_key_env must be the name of an environment variable in capitals, such as "
            "OPENAI_API_KEY; the key itself belongs into that variable, not here."
        )
    checked_number(name, "timeout", given.timeout, 0.01, 86_400)
    checked_number(name, "concurrency", given.concurrency, 1, 256, whole=True)
    checked_number(name, "max_retries", given.max_retries, 0, 100, whole=True)
    checked_number(name, "backoff", given.backoff, 0, MAX_PAUSE)
    checked_number(name, "max_tokens", given.max_tokens, 1, 10_000_000, whole=True, optional=True)
    checked_number(name, "temperature", given.temperature, 0, 5, optional=True)
    checked_number(name, "top_p", given.top_p, 0, 1, optional=True)
    if given.max_tokens_field not in ("auto", "max_tokens", "max_completion_tokens"):
        raise UsageError(f"{name!r}: max_tokens_field must be auto, max_tokens or max_completion_tokens.")
    if not isinstance(given.extra_body, Mapping):
        raise UsageError(f"{name!r}: extra_body must be an object of request fields.")
    _check_fields(name, "extra_body", given.extra_body)


_ADDRESS = "it must look like http://127.0.0.1:8000/v1"


def _check_address(name: str, base_url: str) -> None:
    try:
        parts = urlsplit(base_url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or re.search(r"\s", base_url):
        raise UsageError(f"{name!r}: base_url is not an address of a server; {_ADDRESS}.")
    if parts.username is not None or parts.query or parts.fragment:
        # Not echoed: it may hold a secret.
        raise UsageError(
            f"{name!r}: base_url holds a user name or a query; {_ADDRESS}, and a key belongs into an "
            "environment variable that api_key_env names."
        )


def _check_fields(name: str, where: str, fields: Mapping[str, Any]) -> None:
    if taken := sorted(OURS.intersection(fields)):
        raise UsageError(f"{name!r}: {where} may not set {', '.join(taken)}; rallebench sets that itself.")
    try:
        json.dumps(dict(fields), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name!r}: {where} cannot be sent as JSON ({error}).") from None


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def _key_from_environment(name: str, given: Settings) -> str:
    """The key, '' if there is none; many servers in one's own network need none."""
    key = os.environ.get(given.api_key_env, "").strip()
    if not key and urlsplit(given.base_url).hostname == urlsplit(OPENAI).hostname:
        raise UsageError(
            f"{name!r} needs a key for {OPENAI}: set the environment variable {given.api_key_env}, "
            "or set base_url to your own server."
        )
    if not all("!" <= character <= "~" for character in key):
        raise UsageError(
            f"{name!r}: the environment variable {given.api_key_env} holds characters that no key has "
            "(a space, a line end or an accent); set it again."
        )
    return key


_NOT_OPENAI = "Check that base_url is that of an OpenAI-compatible server (it usually ends in /v1)."
_DROPPED = "Check that the server is well, and try again."

# ── one failed try ───────────────────────────────────────────────────────────


class _Failure(Exception):
    """What went wrong with one try, and whether another may help.

    ``retries``: how many more tries this kind deserves at most (None: ``max_retries``).
    ``pause``: seconds the server asked to wait. ``at_once``: ask again, differently, for free.
    """

    def __init__(
        self,
        what: str,
        mend: str = "",
        *,
        retries: int | None = 0,
        pause: float | None = None,
        at_once: bool = False,
    ) -> None:
        super().__init__(what)
        self.what, self.mend, self.retries, self.pause, self.at_once = what, mend, retries, pause, at_once


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds asked for by ``retry-after-ms`` or ``Retry-After`` (seconds or an HTTP date)."""
    for header, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(header, "")
        with contextlib.suppress(ValueError):
            seconds = float(value) * unit
            return max(0.0, seconds) if math.isfinite(seconds) else None
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    return None


_SECRET = re.compile(r"\b(?:(?i:bearer)\s+\S{12,}|(?:sk|gsk|xai|hf)[-_](?=\S*[\d*])[\w*.-]{8,})")


def _short(body: Any, key: str, limit: int = 300) -> str:
    """What a server said, as one line of at most ``limit`` characters, without keys."""
    for name in ("error", "message", "detail", "msg"):
        if isinstance(body, Mapping) and body.get(name):
            body = body[name]
    text = body if isinstance(body, str) else "" if body is None else json.dumps(body, default=str)
    if re.match(r"\s*<(!doctype|html)", text, re.IGNORECASE):
        title = re.search(r"<title[^>]*>([^<]*)", text, re.IGNORECASE)
        text = "a web page" + (f" titled {title[1].strip()!r}" if title and title[1].strip() else "")
    text = text.replace(key, "***") if key else text
    text = _SECRET.sub("***", " ".join("".join(c if c.isprintable() else " " for c in text).split()))
    return text if len(text) <= limit else text[: limit - 1] + "…"


# ── what a server answers, read without trust ────────────────────────────────


def _count(usage: Any, name: str) -> int:
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _text(value: Any, what: str) -> str:
    """A message's content: a text, a list of text parts, or nothing."""
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(part, Mapping) for part in value):
        value = "".join(str(part.get("text") or "") for part in value)
    if not isinstance(value, str):
        raise _Failure(f"answered with a {what} that is not a text", _NOT_OPENAI)
    return value


def _tool_call(value: Any, index: int) -> ToolCall:
    call = value.get("function") if isinstance(value, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        raise _Failure("answered with a malformed tool call", _NOT_OPENAI)
    arguments = call.get("arguments") or "{}"
    if not isinstance(arguments, str):  # some servers send the object itself
        arguments = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(str(value.get("id") or f"call_{index}"), call["name"], arguments)


def _logprobs(choice: Mapping[str, Any]) -> tuple[float, ...]:
    found = choice.get("logprobs")
    tokens = found.get("content") if isinstance(found, Mapping) else None
    if not isinstance(tokens, list):
        return ()
    values = [token.get("logprob") if isinstance(token, Mapping) else None for token in tokens]
    return tuple(float(v) for v in values if isinstance(v, (int, float)))


def _choice(document: Any, key: str) -> Mapping[str, Any]:
    """The first choice of an answer or of a stream's piece; raises _Failure if there is none."""
    if not isinstance(document, Mapping):
        raise _Failure("answered with JSON that is not an object", _NOT_OPENAI)
    if document.get("error"):
        raise _Failure(f"reported an error: {_short(document, key)}", "See the server's log and try again.")
    choices = document.get("choices")
    if choices == [] or choices is None:
        raise _Failure(
            "answered without any choice, so there is no text", "See the server's log and try again."
        )
    if not isinstance(choices, list) or not isinstance(choices[0], Mapping):
        raise _Failure("answered with choices that are not a list of objects", _NOT_OPENAI)
    return choices[0]


def _reply(document: Any, key: str) -> Reply:
    """A whole chat completion as a Reply; raises _Failure where it is not one."""
    choice = _choice(document, key)
    message = choice.get("message")
    if not isinstance(message, Mapping) or not {"content", "tool_calls", "refusal"} & message.keys():
        raise _Failure("answered with a choice that holds no message", _NOT_OPENAI)
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise _Failure("answered with tool calls that are not a list", _NOT_OPENAI)
    text, refusal = _text(message.get("content"), "message"), message.get("refusal")
    reason = choice.get("finish_reason")
    if not text and isinstance(refusal, str) and refusal:
        text, reason = refusal, "refusal"
    usage = document.get("usage")
    return Reply(
        text=text,
        tool_calls=tuple(_tool_call(call, index) for index, call in enumerate(calls)),
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
        finish_reason=reason if isinstance(reason, str) and reason else "stop",
        logprobs=_logprobs(choice),
    )


def _json(text: bytes, key: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        shown = _short(text[:2000].decode("utf-8", "replace"), key, 80)
        raise _Failure(
            f"answered with something that is not JSON ({shown or 'nothing'})", _NOT_OPENAI
        ) from None


def _events(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The ``data`` of server-sent events. Lines end at LF only: JSON text may hold U+2028."""
    rest, data = b"", []
    for piece in itertools.chain(pieces, (b"\n\n",)):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            line = line.rstrip(b"\r")
            if line.startswith(b"data:"):
                data.append(line[5:].strip())
            elif not line and data:
                yield b"\n".join(data)
                data = []


class _Gathered:
    """The pieces of a stream, put together in the form of a whole chat completion."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.refusal: list[str] = []
        self.calls: dict[int, dict[str, str]] = {}
        self.logprobs: list[Any] = []
        self.finish_reason: str | None = None
        self.usage: Any = None

    def add(self, document: Any, key: str) -> str:
        """Take one piece in and return its text, '' if it has none."""
        if isinstance(document, Mapping) and not document.get("error"):
            self.usage = document.get("usage") or self.usage
            if not document.get("choices"):  # the piece with the usage, or a greeting
                return ""
        choice = _choice(document, key)
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        if isinstance(logprobs := choice.get("logprobs"), Mapping):
            self.logprobs += logprobs.get("content") or []
        delta = choice.get("delta") or {}
        if not isinstance(delta, Mapping):
            raise _Failure("answered with a piece that is not an object", _NOT_OPENAI)
        for call in delta.get("tool_calls") or []:
            self._add_call(call)
        self.refusal.append(_text(delta.get("refusal"), "refusal"))
        text = _text(delta.get("content"), "piece")
        self.text.append(text)
        return text

    def _add_call(self, piece: Any) -> None:
        """A call comes in pieces: id and name first, then its arguments bit by bit."""
        function = piece.get("function") if isinstance(piece, Mapping) else None
        if not isinstance(function, Mapping):
            raise _Failure("answered with a malformed tool call", _NOT_OPENAI)
        index = piece.get("index")
        if not isinstance(index, int):  # some servers leave it out and send whole calls
            index = len(self.calls) if piece.get("id") else max(len(self.calls) - 1, 0)
        call = self.calls.setdefault(index, {"id": "", "name": "", "arguments": ""})
        call["id"] = call["id"] or str(piece.get("id") or "")
        for part in ("name", "arguments"):
            call[part] += _text(function.get(part), "tool call")

    def document(self) -> dict[str, Any]:
        """What the server would have answered without streaming."""
        calls = [{"id": call["id"], "function": call} for _, call in sorted(self.calls.items())]
        message = {"content": "".join(self.text), "refusal": "".join(self.refusal), "tool_calls": calls}
        choice = {"message": message, "finish_reason": self.finish_reason}
        return {"choices": [{**choice, "logprobs": {"content": self.logprobs}}], "usage": self.usage}


# ── the backend ──────────────────────────────────────────────────────────────


class OpenAICompatible:
    """One model at one endpoint. Thread-safe; ``concurrency`` requests may be in flight."""

    def __init__(self, name: str, settings: Settings, key: str) -> None:
        try:
            import httpx2
            import openai
        except ImportError:
            raise MissingPackageError("openai", f"and {name!r} needs it") from None
        self.name = name
        self.settings = settings
        self.concurrency = settings.concurrency
        self.about = f"{settings.model} at {settings.base_url}"
        self.fingerprint = _fingerprint(settings)
        self._key = key
        self._limit_field = settings.max_tokens_field.replace("auto", "max_tokens")
        self._ask_for_usage = True
        self._reached = False
        self._closed = threading.Event()
        self._status_error, self._connection_error = openai.APIStatusError, openai.APIConnectionError
        self._timeout_errors = (openai.APITimeoutError, httpx2.TimeoutException)
        # The client wraps what fails before the body, not what fails while it is read.
        self._dropped_errors = (openai.APIConnectionError, httpx2.HTTPError, OSError)
        self._not_connected = httpx2.ConnectError
        try:
            self._client = _client(openai, settings, key)
        except (httpx2.InvalidURL, UnicodeError):
            raise UsageError(f"{name!r}: base_url is not an address of a server; {_ADDRESS}.") from None

    def __repr__(self) -> str:
        return f"<{self.fingerprint}>"

    def close(self) -> None:
        """Close the connections and wake what waits for another try."""
        self._closed.set()
        self._client.close()

    def generate(self, batch: Sequence[Generate]) -> list[Reply | RalleError]:
        """Answer all requests, ``concurrency`` at a time: the next starts as soon as one is done."""
        if len(batch) <= 1 or self.concurrency == 1:
            return [self._answer(request) for request in batch]
        pool = ThreadPoolExecutor(min(self.concurrency, len(batch)), thread_name_prefix=f"llm-{self.name}")
        try:
            return list(pool.map(self._answer, batch))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def stream(self, request: Generate) -> Iterator[str | Reply]:
        """Yield pieces of text, then the Reply. A stream that breaks off raises BackendError."""
        return self._ask(request, stream=True)

    def _answer(self, request: Generate) -> Reply | RalleError:
        try:
            *_, reply = self._ask(request, stream=False)
        except RalleError as error:
            return error
        assert isinstance(reply, Reply)
        return reply

    def _ask(self, request: Generate, *, stream: bool) -> Iterator[str | Reply]:
        """Try, and try again while nothing was handed out and the failure deserves it."""
        body = self._body(request)
        tries = 0
        while True:
            begun = False
            try:
                for piece in self._try(body, stream):
                    begun = True
                    yield piece
                return
            except _Failure as caught:
                failure = caught
            if not (failure.at_once and not begun):
                tries += 1
                self._pause(failure, tries, begun)

    def _pause(self, failure: _Failure, tries: int, begun: bool) -> None:
        """Wait before the next try, or raise the BackendError if there is to be none."""
        if self._closed.is_set():  # then every failure comes from that
            raise self._unloaded()
        most = self.settings.max_retries
        allowed = most if failure.retries is None else min(failure.retries, most)
        too_long = failure.pause is not None and failure.pause > MAX_RETRY_AFTER
        if begun or tries > allowed or too_long:
            often = f" (tried {tries} times)" if tries > 1 else ""
            wait = f" and asks to wait {failure.pause:.0f} s" if too_long else ""
            lost = " What came before is incomplete and was not kept." if begun else ""
            raise BackendError(f"{self._who} {failure.what}{wait}{often}.{lost} {failure.mend}".rstrip())
        backoff = min(MAX_PAUSE, self.settings.backoff * 2.0 ** (tries - 1))
        # Jitter, so that many threads turned away together do not come back together.
        pause = (failure.pause or 0.0) + backoff * random.uniform(0.5, 1.0)
        if self._closed.wait(pause):
            raise self._unloaded()

    @property
    def _who(self) -> str:
        return f"{self.name!r} at {self.settings.base_url}"

    def _unloaded(self) -> BackendError:
        return BackendError(f"{self.name!r} was unloaded; load it again to ask it.")

    def _body(self, request: Generate) -> dict[str, Any]:
        """The request's own settings over its options over ``extra_body`` over our defaults."""
        ours = self.settings
        _check_fields(self.name, "the generation options", request.options)
        body: dict[str, Any] = {"temperature": ours.temperature, "top_p": ours.top_p, "seed": request.seed}
        body |= {**ours.extra_body, **request.options}
        if request.max_tokens is not None or not {"max_tokens", "max_completion_tokens"} & body.keys():
            body.pop("max_completion_tokens", None)
            body["max_tokens"] = ours.max_tokens if request.max_tokens is None else request.max_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.seed is not None:
            body["seed"] = request.seed
        if request.stop:
            body["stop"] = list(request.stop)
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        body = {name: value for name, value in body.items() if value is not None}
        return {"model": ours.model, "messages": _messages(request, ours.system), **body}

    def _try(self, body: Mapping[str, Any], stream: bool) -> Iterator[str | Reply]:
        """One request. A server that answers a streaming request as a whole is understood, too."""
        if self._closed.is_set():
            raise self._unloaded()
        sent = dict(body)
        if "max_tokens" in sent and self._limit_field != "max_tokens":
            sent[self._limit_field] = sent.pop("max_tokens")
        if stream and self._ask_for_usage:
            sent["stream_options"] = {"include_usage": True}
        start = time.monotonic()
        with self._translated(sent), self._send(sent, stream) as response:
            self._reached = True
            kind = response.headers.get("content-type", "").lower()
            if stream and "event-stream" in kind:
                yield from self._read_stream(self._pieces(response, math.inf), start)
                return
            whole = b"".join(self._pieces(response, start + self.settings.timeout))
            if stream and whole.lstrip().startswith((b"data:", b"event:", b":")):  # a stream, mislabelled
                yield from self._read_stream(iter([whole]), start)
                return
            reply = _reply(_json(whole, self._key), self._key)
            if stream and reply.text:
                yield reply.text
            yield reply

    def _send(self, sent: Mapping[str, Any], stream: bool) -> Any:
        extra = {name: value for name, value in sent.items() if name not in ("model", "messages")}
        return self._client.chat.completions.with_streaming_response.create(
            model=sent["model"], messages=sent["messages"], stream=stream, extra_body=extra
        )

    def _pieces(self, response: Any, deadline: float) -> Iterator[bytes]:
        """The body as it comes; bounded in bytes, and in time where ``deadline`` is finite."""
        size = 0
        for piece in response.iter_bytes():
            size += len(piece)
            if size > MAX_BODY_BYTES:
                raise _Failure(f"answered with more than {MAX_BODY_BYTES // 2**20} MB", _NOT_OPENAI)
            if time.monotonic() > deadline:
                raise self._timed_out()
            yield piece

    def _read_stream(self, pieces: Iterator[bytes], start: float) -> Iterator[str | Reply]:
        gathered = _Gathered()
        first = None
        done = False
        try:
            for data in _events(pieces):
                if data == b"[DONE]":
                    done = True
                    break
                if text := gathered.add(_json(data, self._key), self._key):
                    first = time.monotonic() - start if first is None else first
                    yield text
        except (*self._timeout_errors, *self._dropped_errors):
            # Once the server has said why it stopped, the text is whole; only the usage is lost.
            if gathered.finish_reason is None:
                raise
        if not done and gathered.finish_reason is None:
            written = sum(map(len, gathered.text))
            raise _Failure(f"broke off its answer after {written} characters", _DROPPED, retries=None)
        yield replace(_reply(gathered.document(), self._key), first_token_seconds=first)

    @contextlib.contextmanager
    def _translated(self, sent: Mapping[str, Any]) -> Iterator[None]:
        """Turn the client's exceptions into _Failure."""
        try:
            yield
        except self._status_error as error:
            self._reached = True
            raise self._refused(error, sent) from None
        except self._timeout_errors:
            raise self._timed_out() from None
        except self._dropped_errors as error:
            raise self._dropped(error) from None
        except UnicodeEncodeError:
            raise _Failure(
                "was not asked: the prompt holds broken Unicode (half of a surrogate pair)", "Mend the text."
            ) from None
        except RuntimeError:
            if self._closed.is_set():  # the client says so when it was closed meanwhile
                raise self._unloaded() from None
            raise

    def _timed_out(self) -> _Failure:
        return _Failure(
            f"gave no answer within {self.settings.timeout:g} s",
            "Check that the server is well, raise timeout, or lower concurrency.",
            retries=TIMEOUT_RETRIES,
        )

    def _dropped(self, error: Exception) -> _Failure:
        cause = error.__cause__ if isinstance(error, self._connection_error) and error.__cause__ else error
        why = _short(str(cause), self._key, 120) or type(cause).__name__
        if isinstance(cause, self._not_connected):
            # A server that never answered is not running; one that did may be starting again.
            return _Failure(
                f"cannot be reached ({why})",
                "Start the server, or correct base_url.",
                retries=None if self._reached else 0,
            )
        return _Failure(f"dropped the connection ({why})", _DROPPED, retries=None)

    def _refused(self, error: Any, sent: Mapping[str, Any]) -> _Failure:
        """A status other than 2xx."""
        status, said = int(error.status_code), _short(error.body, self._key)
        told = f"({status}: {said})" if said else f"({status})"
        if status in (400, 422) and self._adapted(said, sent):
            return _Failure("asks for other fields", at_once=True)
        if 300 <= status < 400:
            return _Failure(
                f"redirects elsewhere ({status})",
                "Keys are not carried along: set base_url to the final address.",
            )
        if status in (401, 403):
            variable = self.settings.api_key_env
            mend = f"Set the environment variable {variable} to a valid key"
            return _Failure(
                f"refused the key {told}", f"{mend}{'.' if self._key else '; it is not set now.'}"
            )
        if status == 404:
            model = self.settings.model
            return _Failure(
                f"knows no model {model!r}, or not this address {told}", f"Correct model. {_NOT_OPENAI}"
            )
        if status == 429:
            spent = getattr(error, "code", None) == "insufficient_quota"
            return _Failure(
                f"{'has no quota left for this key' if spent else 'limits the rate'} {told}",
                "Raise the quota." if spent else "Lower concurrency, or try again later.",
                retries=0 if spent else None,
                pause=_retry_after(error.response.headers),
            )
        if status >= 500 or status == 408:
            pause = _retry_after(error.response.headers)
            mend = "See the server's log and try again."
            return _Failure(f"failed by itself {told}", mend, retries=None, pause=pause)
        return _Failure(f"refused the request {told}", "Change the setting or shorten the prompt it names.")

    def _adapted(self, said: str, sent: Mapping[str, Any]) -> bool:
        """Remember what this server does not take; True if the request can now be asked differently."""
        if "stream_options" in sent and "stream_options" in said:
            self._ask_for_usage = False
            return True
        automatic = self.settings.max_tokens_field == "auto" and "max_tokens" in sent
        if automatic and "max_completion_tokens" in said:
            self._limit_field = "max_completion_tokens"
            return True
        return False


def _messages(request: Generate, system: str) -> list[dict[str, str]]:
    messages = [
        {"role": "user" if m.role == "tool" else m.role, "content": m.content} for m in request.messages
    ]
    if system and all(message["role"] != "system" for message in messages):
        messages.insert(0, {"role": "system", "content": system})
    return messages


def _tool(tool: ToolSpec) -> dict[str, Any]:
    parameters = dict(tool.parameters)
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


def _fingerprint(settings: Settings) -> str:
    address = urlsplit(settings.base_url)
    defaults = {
        "max_tokens": settings.max_tokens,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "system": settings.system,
        "extra_body": dict(settings.extra_body),
    }
    where = f"{address.netloc}{address.path.rstrip('/')}"
    return f"openai_compatible/{settings.model}@{where}/{digest(defaults)[:12]}"


def _client(openai: Any, settings: Settings, key: str) -> Any:
    """One keep-alive client. Proxies of the environment never stand before a loopback server;
    redirects are refused, so that key and prompt stay with the host the user named."""
    address = urlsplit(settings.base_url)
    loopback = _is_loopback(address.hostname or "")
    timeout = openai.Timeout(settings.timeout, connect=min(settings.timeout, CONNECT_SECONDS))
    # Reading the certificates takes 25 ms that plain HTTP to oneself can do without: trust nobody.
    plain = loopback and address.scheme == "http"
    client = openai.OpenAI(
        api_key=key or "none",
        base_url=settings.base_url,
        timeout=timeout,
        max_retries=0,
        # Named here so that OPENAI_CUSTOM_HEADERS cannot send another key in its place.
        default_headers={"Authorization": f"Bearer {key or 'none'}"},
        http_client=openai.DefaultHttpxClient(
            timeout=timeout,
            follow_redirects=False,
            trust_env=not loopback,
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True,
        ),
    )
    if address.hostname != urlsplit(OPENAI).hostname:
        client.organization = client.project = None  # read from the environment, and meant for OpenAI
    return client


@LLMS.register("openai_compatible")
def openai_compatible(name: str, /, **settings: Any) -> OpenAICompatible:
    """Any OpenAI-compatible endpoint (OpenAI, vLLM, llama.cpp, Ollama …); key from the environment."""
    given = settings_from(Settings, name, settings)
    _check(name, given)
    return OpenAICompatible(name, given, _key_from_environment(name, given))
