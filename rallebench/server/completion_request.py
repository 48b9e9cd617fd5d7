"""Parse the body of a chat completion request. Every field is either honoured or refused by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from rallebench.core.types import Chain, Message
from rallebench.services.conversations import answering

MOST_TOKENS = 100_000
MOST_CHARACTERS = 200_000
"""Maximum characters of all messages together; longer questions exceed any model and would delay other requests."""

ROLES = frozenset({"user", "assistant", "system", "developer"})

REFUSED: Mapping[str, tuple[tuple[Any, ...], str]] = {
    "tools": (([],), "a chain calls no tools of its clients"),
    "tool_choice": (("none",), "a chain calls no tools of its clients"),
    "parallel_tool_calls": ((), "a chain calls no tools of its clients"),
    "functions": (([],), "a chain calls no functions of its clients"),
    "function_call": (("none",), "a chain calls no functions of its clients"),
    "response_format": (
        ({"type": "text"},),
        "the chain's own prompts decide the form of its answer",
    ),
    "logprobs": ((False,), "an answer comes without log-probabilities"),
    "top_logprobs": ((0,), "an answer comes without log-probabilities"),
    "logit_bias": (({},), "a chain is not steered token by token"),
    "presence_penalty": ((0, 0.0), "only max_tokens, temperature, top_p, seed and stop can be set"),
    "frequency_penalty": (
        (0, 0.0),
        "only max_tokens, temperature, top_p, seed and stop can be set",
    ),
    "reasoning_effort": ((), "only max_tokens, temperature, top_p, seed and stop can be set"),
    "verbosity": ((), "only max_tokens, temperature, top_p, seed and stop can be set"),
    "modalities": ((["text"],), "a chain answers in text"),
    "audio": ((), "a chain answers in text"),
    "prediction": ((), "a chain takes no predicted text"),
    "web_search_options": ((), "a chain searches its own indexes"),
    "service_tier": (("auto", "default"), "there is one tier"),
    "store": ((False,), "answers are not stored"),
    "metadata": (({},), "answers are not stored"),
}
"""OpenAI fields that no chain supports → (values without effect, reason for refusing other values)."""

REFUSED_IN_MESSAGES = ("tool_calls", "function_call", "tool_call_id", "audio")
READ_IN_MESSAGES = frozenset({"role", "content", "name", "refusal", "annotations"})


class RequestError(Exception):
    """A request to answer with ``status`` and one sentence. ``param``: the invalid field."""

    def __init__(
        self,
        status: int,
        message: str,
        kind: str = "invalid_request_error",
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.kind = status, message, kind
        self.param, self.code, self.headers = param, code, headers

    def body(self) -> dict[str, Any]:
        """Return the error in OpenAI's format."""
        error = {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}
        return {"error": error}


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A question to a chain configured with the client's settings. ``name``: the name under which the chain is
    served.
    """

    name: str
    chain: Chain
    history: tuple[Message, ...]
    question: str
    stream: bool = False
    include_usage: bool = False


class _Fields(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _StreamOptions(_Fields):
    include_usage: bool | None = None
    include_obfuscation: Literal[False] | None = None


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class CompletionBody(_Fields):
    """The body of a request. ``user`` and the two fields after it identify the client or a cache and do not affect
    the answer.
    """

    model: str | None = None
    messages: list[Any]
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    n: Literal[1] | None = None
    max_tokens: int | None = Field(None, ge=1, le=MOST_TOKENS)
    max_completion_tokens: int | None = Field(None, ge=1, le=MOST_TOKENS)
    temperature: float | None = Field(None, ge=0, le=2, allow_inf_nan=False)
    top_p: float | None = Field(None, gt=0, le=1, allow_inf_nan=False)
    seed: int | None = Field(None, ge=0, lt=2**63)
    stop: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=1000)]] | None, BeforeValidator(_as_list)
    ] = Field(None, max_length=16)
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None

    def generation(self) -> dict[str, Any]:
        """Return the given settings for the model that writes the answer."""
        settings = {
            "max_tokens": self.max_tokens or self.max_completion_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "seed": self.seed,
            "stop": self.stop or None,
        }
        return {name: value for name, value in settings.items() if value is not None}


def parse_body(text: bytes) -> Any:
    """Parse a JSON body. Raises RequestError, also for NaN and for half of a surrogate pair."""
    try:
        body = json.loads(text, parse_constant=_refuse_constant)
        json.dumps(body, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise RequestError(
            400,
            f"The body holds half of a surrogate pair ({half!r}), which is not text; correct it.",
        ) from None
    except (ValueError, RecursionError):
        raise RequestError(400, "The body is not valid JSON.") from None
    return body


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def read_request(body: Any, chains: Mapping[str, Chain]) -> CompletionRequest:
    """Parse a request for one of the chains, by default the first. Raises RequestError."""
    if not isinstance(body, dict):
        raise RequestError(400, "The body must be a JSON object with 'model' and 'messages'.")
    parsed = _validate(
        {name: value for name, value in body.items() if not _is_refused(name, value)}
    )
    name = next(iter(chains)) if parsed.model is None else parsed.model
    if name not in chains:
        raise no_such_model(name, chains)
    if parsed.max_tokens and parsed.max_completion_tokens:
        raise _bad(
            "max_tokens", "was given together with max_completion_tokens; give only one of them."
        )
    if parsed.stream_options is not None and not parsed.stream:
        raise _bad("stream_options", "needs 'stream': true.")
    history, question = _conversation(parsed.messages)
    return CompletionRequest(
        name,
        _with_generation(chains[name], parsed.generation()),
        history,
        question,
        bool(parsed.stream),
        bool(parsed.stream_options and parsed.stream_options.include_usage),
    )


def no_such_model(name: str, chains: Mapping[str, Chain]) -> RequestError:
    """Return the error for a model that is not served."""
    message = f"There is no chain {_short(name)} here; served: {', '.join(chains)}."
    return RequestError(404, message, param="model", code="model_not_found")


def _bad(field: str, fault: str, code: str = "invalid_value") -> RequestError:
    return RequestError(400, f"{_short(field)} {fault}", param=field[:100], code=code)


def _short(text: str) -> str:
    """Quote a name sent by the client, shortened if it is long."""
    return repr(text if len(text) <= 80 else text[:79] + "…")


def _is_refused(field: str, value: Any) -> bool:
    """Return whether the field is unsupported but its value has no effect. Raises RequestError if the value would
    have one.
    """
    if field not in REFUSED:
        return False
    harmless, why = REFUSED[field]
    if value is not None and not any(
        type(value) is type(other) and value == other for other in harmless
    ):
        raise _bad(field, f"is not supported here: {why}. Leave it out.", "unsupported_parameter")
    return True


def _validate(fields: Mapping[str, Any]) -> CompletionBody:
    try:
        return CompletionBody.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    names = [str(part) for part in first["loc"]]
    field, kind = ".".join(names), first["type"]
    if kind == "extra_forbidden":
        raise _bad(field, "is not known here. Leave it out.", "unknown_parameter")
    if kind == "missing":
        raise _bad(field, "is missing: it is a list with at least one user message.")
    if kind == "bool_type":
        raise _bad(field, "must be true or false, without quotes.")
    if field == "n":
        raise _bad(field, "must be 1: a chain gives one answer.")
    message = str(first["msg"])
    raise _bad(field, f"is wrong ({message[:1].lower()}{message[1:]}).")


def _with_generation(chain: Chain, settings: Mapping[str, Any]) -> Chain:
    """Return the chain with the client's settings applied to its last action, which writes the answer. The action's
    own token limit still holds.
    """
    if not settings:
        return chain
    index = answering(chain)
    if index is None:
        name = next(iter(settings))
        why = f"no model writes the last step of the chain {chain.name!r}"
        raise _bad(name, f"cannot be honoured: {why}. Leave it out.", "unsupported_parameter")
    own = chain.actions[index].generation
    merged = {**own, **settings}
    if own.get("max_tokens") and settings.get("max_tokens"):
        merged["max_tokens"] = min(own["max_tokens"], settings["max_tokens"])
    if "stop" in settings:
        merged["stop"] = [*(own.get("stop") or ()), *settings["stop"]]
    return chain.replace_action(index, generation=merged)


def _conversation(messages: list[Any]) -> tuple[tuple[Message, ...], str]:
    """Return the earlier turns and the question."""
    if not messages:
        raise _bad("messages", "must be a list with at least one user message.")
    turns = [_message(message, number) for number, message in enumerate(messages, 1)]
    length = sum(len(turn.content) for turn in turns)
    if length > MOST_CHARACTERS:
        fault = f"has {length:,} characters; a chain reads at most {MOST_CHARACTERS:,}."
        raise _bad("messages", fault, "context_length_exceeded")
    spoken = [turn for turn in turns if turn.role in ("user", "assistant")]
    if not spoken or spoken[-1].role != "user" or not spoken[-1].content.strip():
        raise RequestError(400, "The last message must be a user's question.", param="messages")
    return tuple(spoken[:-1]), spoken[-1].content


def _message(message: Any, number: int) -> Message:
    place = f"messages[{number - 1}]"

    def bad(fault: str, field: str = "") -> RequestError:
        param = f"{place}.{field[:60]}" if field else place
        return RequestError(400, f"Message {number} {fault}", param=param, code="invalid_value")

    if not isinstance(message, dict):
        raise bad("is not a JSON object with 'role' and 'content'.")
    for field in REFUSED_IN_MESSAGES:
        if message.get(field) not in (None, []):
            raise bad(f"has {field!r}, and a chain calls no tools. Leave it out.", field)
    for field in message:
        if field not in READ_IN_MESSAGES and message[field] not in (None, []):
            raise bad(f"has the field {_short(field)}, which is not known here.", field)
    role = message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise bad("has no known role; give user or assistant.", "role")
    content = message.get("content")
    if isinstance(content, list):
        parts = [
            part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
            for part in content
        ]
        if not all(isinstance(part, str) for part in parts):
            raise bad("holds something other than text; a chain reads text only.", "content")
        content = "".join(part for part in parts if part)
    if not isinstance(content, (str, type(None))):
        raise bad("has a 'content' that is not text.", "content")
    return Message(role, content or "")
