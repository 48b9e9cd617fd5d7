"""Errors that a server reports, by status or inside an answer with status 200: one wording, advice and retry policy."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rallebench.http.endpoint import Endpoint, how_to_set
from rallebench.http.failures import NOT_OPENAI, SEE_LOG, Failure, retry_after, short

TOO_MANY_REQUESTS = 429
THROTTLED = (408, 503, 529)
"""Statuses, besides 429, of an overloaded server."""

_CODES = ("code", "status", "status_code", "http_status", "http_code", "error_code")
_KINDS = ("code", "type", "error_type", "status", "error_code", "name")
_STATUS_OF_WORD = (
    (402, r"insufficient_?(quota|credit|balance|fund)|payment|billing|arrear"),
    (429, r"rate_?limit|too_?many_?requests|resource_?exhausted|throttl"),
    (503, r"overload|unavailable|no_?capacity"),
    (504, r"time_?d?_?out|deadline"),
    (401, r"auth|api_?key|permission|forbidden"),
    (404, r"not_?found"),
    (400, r"invalid|bad_?request|context_?length|unsupported|validation"),
    (500, r"server_?error|internal|bad_?gateway|upstream|provider"),
)
"""HTTP status → words of an error's ``code`` or ``type`` that mean it; the first match counts."""
_IN_MESSAGE = re.compile(r"\b(?:code|status|error)\W{0,4}(429|5\d\d)\b|\b(429) too many", re.I)

_OVERFLOW = re.compile(
    r"context.?(length|window|size|limit)|context.{0,12}overflow|range of input length|maximum model length|max_model_len|max_seq_len"
    r"|(prompt|input|messages?) (is |are |was )?too long|too many (input )?tokens|maximum (number of )?(input )?tokens"
    r"|reduce the length|input length (and|exceeds)|exceeds? the (available )?context|max_(new|total)_tokens.{0,9}must be <=",
    re.I,
)
_FAILED = re.compile("error|fail", re.I)
_UNPAID = re.compile(
    r"insufficient (quota|credit|balance|fund)|out of credit|add (more )?credit|credit balance is too low|payment required",
    re.I,
)


def status_failure(
    status: int, headers: Mapping[str, str], text: bytes, endpoint: Endpoint, key: str
) -> Failure:
    """Return the failure for a status other than 2xx; ``text``: the beginning of the answer."""
    body: Any = text.decode("utf-8", "replace")
    with contextlib.suppress(ValueError, RecursionError):
        body = json.loads(text)
    failure = _build_failure(status, body, headers, endpoint, key)
    failure.headers = headers
    return failure


def require_success(
    document: Any, endpoint: Endpoint, key: str, headers: Mapping[str, str] = {}
) -> Mapping[str, Any]:
    """Return the JSON object of an answer or of a piece of a stream. Raises Failure for any other value, and for an object that
    reports an error anywhere, as if the server had sent the status named by the error.
    """
    if not isinstance(document, Mapping):
        raise Failure("answered with JSON that is not an object", NOT_OPENAI)
    for error in _errors_in(document):
        words = quote_error(error, key)
        status = _error_status(error) or _error_status(document)
        # without a code, the message decides
        status = status or (402 if _UNPAID.search(words) else 400 if is_overflow(words) else 0)
        if status:
            raise _build_failure(status, error, headers, endpoint, key)
        raise Failure(f"reported an error: {words}", SEE_LOG)
    return document


def _errors_in(document: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the errors that an answer reports: at the top level, in a choice, in a message or in a part of one. An answer with a
    message but without choices is an error, too.
    """
    if document.get("object") == "error" or document.get("type") == "error":
        yield document.get("error") or document
    if (error := document.get("error")) and error is not True:
        yield error
    choices = document.get("choices")
    for part in [document, *_parts(choices if isinstance(choices, list) else [])]:
        if part is not document and part.get("error"):
            yield part["error"]
        if (errors := part.get("errors")) and isinstance(errors, (list, Mapping)):
            yield errors[0] if isinstance(errors, list) else errors
    base = document.get("base_resp")  # MiniMax
    if isinstance(base, Mapping) and base.get("status_code"):
        yield {"message": base.get("status_msg") or "error", "code": base["status_code"]}
    failed = _FAILED.match(str(document.get("status") or "")) or document.get("success") is False
    if error is True or failed:  # the message is a sibling of the flag
        yield {key: value for key, value in document.items() if key not in ("choices", "status")}
    answered = any(document.get(name) for name in ("choices", "data", "usage"))
    words = any(document.get(name) for name in ("message", "detail", "msg"))
    if words and not answered:
        yield document


def _parts(choices: list[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the choices of an answer, their messages, and the message parts that are errors."""
    for choice in choices:
        if not isinstance(choice, Mapping):
            continue
        yield choice
        for message in (choice.get("message"), choice.get("delta")):
            if not isinstance(message, Mapping):
                continue
            yield message
            content = message.get("content")
            for part in content if isinstance(content, list) else ():
                if isinstance(part, Mapping):
                    own = "error" in part or part.get("type") != "error"
                    yield part if own else {"error": part}


def _error_status(error: Any) -> int:
    """Return the HTTP status that an error names by number or by word; 0 for none.

    >>> _error_status({"code": "503"}), _error_status({"type": "overloaded_error"}), _error_status("Error code: 429 - slow")
    (503, 503, 429)
    """
    if isinstance(error, str):
        match = _IN_MESSAGE.search(error)
        return int(match[1] or match[2]) if match else 0
    if not isinstance(error, Mapping):
        return 0
    for name in _CODES:
        value = error.get(name)
        number = int(value) if isinstance(value, str) and value.isdecimal() else value
        if isinstance(number, int) and 400 <= number < 600:
            return number
    for name in _KINDS:
        if isinstance(value := error.get(name), str):
            word = re.sub(r"(?<=[a-z])(?=[A-Z])|[\s-]", "_", value).lower()
            for status, pattern in _STATUS_OF_WORD:
                if re.search(pattern, word):
                    return status
    message = error.get("message")
    return _error_status(message) if isinstance(message, str) else 0


def quote_error(error: Any, key: str) -> str:
    """Return the message of an error, with that of the provider behind the server (``metadata.raw``), if any."""
    words = short(error, key)
    inner = error.get("error") if isinstance(error, Mapping) else None
    error = inner if isinstance(inner, Mapping) else error
    metadata = error.get("metadata") if isinstance(error, Mapping) else None
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    with contextlib.suppress(TypeError, ValueError, RecursionError):
        raw = json.loads(raw)  # type: ignore[arg-type]
    more = short(raw, key) if raw else ""
    return f"{words}: {more}" if more and more not in words else words


def is_overflow(message: str) -> bool:
    """Return whether a server says that the prompt, or the prompt with its answer, is longer than the model's context.

    >>> is_overflow("This model's maximum context length is 4096 tokens."), is_overflow("'stop' is too long")
    (True, False)
    """
    return bool(_OVERFLOW.search(message))


def _build_failure(
    status: int, error: Any, headers: Mapping[str, str], endpoint: Endpoint, key: str
) -> Failure:
    message = quote_error(error, key)
    inner = error.get("error") if isinstance(error, Mapping) else None
    inner = inner if isinstance(inner, Mapping) else error
    spent = isinstance(inner, Mapping) and inner.get("code") == "insufficient_quota"
    pause = retry_after(headers)
    if pause is None and isinstance(inner, Mapping):
        pause = retry_after({"retry-after": str(inner.get("retry_after", ""))})
    kinds = " ".join(str(inner.get(name)) for name in _KINDS) if isinstance(inner, Mapping) else ""
    overflow = is_overflow(f"{message} {kinds}")
    failure = _describe_failure(status, message, pause, spent, overflow, endpoint, key)
    failure.status, failure.message, failure.error = status, message, error
    return failure


def _describe_failure(
    status: int,
    message: str,
    pause: float | None,
    spent: bool,
    overflow: bool,
    endpoint: Endpoint,
    key: str,
) -> Failure:
    quotation = f"({status}: {message})" if message else f"({status})"
    if 300 <= status < 400:
        return Failure(
            f"redirects elsewhere ({status})",
            "Keys are not sent to another host: give the final address.",
        )
    if status == 402 or (status in (400, 403) and _UNPAID.search(message)):
        return Failure(
            f"asks for payment {quotation}",
            "Add credit to the account of this key, or choose another model or server.",
        )
    if status in (401, 403):
        return Failure(f"refused the key {quotation}", how_to_set(endpoint, key))
    if status == 404:
        return Failure(
            f"does not know the model {endpoint.model!r}, or this address {quotation}",
            f"Correct model. {NOT_OPENAI}",
        )
    if status == TOO_MANY_REQUESTS:
        return Failure(
            f"{'has no quota left for this key' if spent else 'limits the rate'} {quotation}",
            "Raise the quota." if spent else "Lower concurrency, or try again later.",
            retries=0 if spent else None,
            pause=pause,
            throttled=not spent,
        )
    if overflow and status in (400, 413, 422, 500):
        return Failure(
            f"cannot hold the prompt and its answer in the model's context {quotation}",
            "Shorten the prompt (fewer or shorter passages), lower max_tokens, or give the server a longer context.",
        )
    if status >= 500 or status == 408:
        return Failure(
            f"had an internal error {quotation}",
            SEE_LOG,
            retries=None,
            pause=pause,
            throttled=status in THROTTLED,
        )
    return Failure(
        f"refused the request {quotation}",
        "Change the setting that it names, or shorten the prompt.",
    )
