"""Errors in words for other programs: the sentence of the lower layer, then its mend as arguments, or as a command on the server."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

from pydantic import ValidationError, validate_call

from rallebench.core.errors import Hint, RalleError

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

CLAUSES: Mapping[str, Callable[[Hint], str]] = {
    "allow-python": lambda hint: "its server must be started with --allow-python",
    "build-index": lambda hint: (
        f"on the server, 'rallebench index --chunk-preset {hint.name}' builds one"
    ),
    "choose": lambda hint: f"name one in the argument {hint.name.replace('-', '_')}",
    "columns": lambda hint: f"import it on the server with --columns {hint.name}=COLUMN",
    "common": lambda hint: "compare runs that were asked the same questions",
    "find-models": lambda hint: "on the server, 'rallebench models find' lists them",
    "free-space": lambda hint: "free space on the server",
    "import": lambda hint: f"import {hint.name!r} on the server first",
    "leave-out": lambda hint: f"leave the argument {hint.name.replace('-', '_')} empty",
    "list": lambda hint: f"list_names({hint.name!r}) lists them",
    "load": lambda hint: f"a call of ask or search with {hint.name!r} loads it",
    "mcp-servers": lambda hint: "its server must be started with --mcp-servers FILE",
    "raise-max-errors": lambda hint: "permit more failed questions on the server",
    "rename": lambda hint: "choose another name",
    "resume": lambda hint: "choose another name, or continue it on the server",
    "set": lambda hint: f"set {hint.name} on the server",
    "skip-bad": lambda hint: "leave bad rows out when you import the file on the server",
    "start-again": lambda hint: "start it again under the same name to continue",
    "track": lambda hint: f"on the server, 'rallebench track {hint.name}' logs it later",
    "unload": lambda hint: f"unload {hint.name!r} on the server first",
}


class CallError(Exception):
    """A failed call; ``str(error)`` is one sentence for its client."""


def in_one_sentence(call: Callable[P, T], failure: Callable[[str], Exception]) -> Callable[P, T]:
    """Wrap a call so that it checks its arguments, and every error is a ``failure`` of one sentence. A bug is logged and
    named by its type.
    """
    checked = validate_call(call)

    @wraps(call)
    def answer(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return checked(*args, **kwargs)
        except ValidationError as error:
            raise failure(wrong_argument(error)) from None
        except RalleError as error:
            raise failure(word_error(error)) from None
        except Exception as error:
            log.exception("The call %s met an unexpected error.", call.__name__)
            name = type(error).__name__
            raise failure(
                f"rallebench met an unexpected error ({name}); its log has more."
            ) from None

    # Gradio cannot evaluate postponed annotations.
    answer.__signature__ = inspect.signature(call, eval_str=True)  # type: ignore[attr-defined]
    return answer


def wrong_argument(error: ValidationError) -> str:
    """The sentence about the first wrong argument."""
    first = error.errors(include_url=False)[0]
    place, fault, message = first["loc"], first["type"], first["msg"]
    name, value = str(place[0] if place else "?")[:60], str(first["input"])[:60]
    if fault == "missing_argument":
        return f"The argument {name} is missing."
    if fault == "unexpected_keyword_argument":
        return f"There is no argument {name!r}."
    return f"The argument {name} is {value!r}; {message[0].lower()}{message[1:]}."


def word_error(error: RalleError) -> str:
    """The sentence of an error with its mend.

    >>> from rallebench.core.errors import UsageError
    >>> word_error(UsageError("The chain needs a language model.", hint=Hint("choose", "llm")))
    'The chain needs a language model; name one in the argument llm.'
    """
    sentence = " ".join(str(error).splitlines())
    return error.hint.after(sentence, CLAUSES) if error.hint else sentence
