"""Errors in words for other programs: the sentence of the lower layer, then its mend as arguments, or as a command on the server."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import ValidationError

from rallebench.core.errors import Hint, RalleError

CLAUSES: Mapping[str, Callable[[Hint], str]] = {
    "allow-python": lambda hint: "its server must be started with --allow-python",
    "build-index": lambda hint: (
        f"on the server, 'rallebench index --chunk-preset {hint.name}' builds one"
    ),
    "choose": lambda hint: f"name one in the argument {hint.name.replace('-', '_')}",
    "find-models": lambda hint: "on the server, 'rallebench models find' lists them",
    "free-space": lambda hint: "free space on the server",
    "leave-out": lambda hint: f"leave the argument {hint.name.replace('-', '_')} empty",
    "list": lambda hint: f"list_names({hint.name!r}) lists them",
    "load": lambda hint: f"load {hint.name!r} on the server first",
    "raise-max-errors": lambda hint: "permit more failed questions on the server",
    "rename": lambda hint: "choose another name",
    "resume": lambda hint: "choose another name, or continue it on the server",
    "set": lambda hint: f"set {hint.name} on the server",
    "skip-bad": lambda hint: "leave bad rows out when you import the file on the server",
    "start-again": lambda hint: "start it again under the same name to continue",
    "track": lambda hint: f"on the server, 'rallebench track {hint.name}' logs it later",
    "unload": lambda hint: f"unload {hint.name!r} on the server first",
}


def wrong_argument(error: ValidationError) -> str:
    """The sentence about the first argument of a wrong type."""
    first = error.errors(include_url=False)[0]
    name, value = first["loc"][0] if first["loc"] else "?", str(first["input"])[:60]
    return f"The argument {name} is {value!r}; {first['msg'][0].lower()}{first['msg'][1:]}."


def word_error(error: RalleError) -> str:
    """The sentence of an error with its mend.

    >>> from rallebench.core.errors import UsageError
    >>> word_error(UsageError("The chain needs a language model.", hint=Hint("choose", "llm")))
    'The chain needs a language model; name one in the argument llm.'
    """
    return error.hint.after(str(error), CLAUSES) if error.hint else str(error)
