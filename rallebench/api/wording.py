"""Errors in the words of Python: the original sentence, then its hint as arguments and methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

from rallebench.core.errors import Hint, RalleError

P = ParamSpec("P")
T = TypeVar("T")


def _argument(name: str) -> str:
    return name.replace("-", "_")


def _pairs(pairs: str) -> str:
    """Settings as arguments.

    >>> _pairs("data=FILE search=true k=3")
    "data='FILE', search=True, k=3"
    """
    return ", ".join(
        f"{name}={_literal(value)}" for name, _, value in (p.partition("=") for p in pairs.split())
    )


def _literal(value: str) -> str:
    if value in ("true", "false"):
        return value.capitalize()
    return value if value.replace(".", "", 1).isdigit() else repr(value)


def _choose(hint: Hint) -> str:
    without = f", or do without: {_pairs(hint.value)}" if hint.value else ""
    return f"name one with {_argument(hint.name)}={without}"


_CLAUSES: Mapping[str, Callable[[Hint], str]] = {
    "allow-python": lambda hint: "allow it with Workspace(…, allow_python=True)",
    "build-index": lambda hint: f"build_index(…, chunking={hint.name!r}) builds one",
    "choose": _choose,
    "columns": lambda hint: f"name the right one with columns={{{hint.name!r}: 'COLUMN'}}",
    "common": lambda hint: "compare these alone with common=True",
    "find-models": lambda hint: "'rallebench models find' on a command line lists them",
    "free-space": lambda hint: "free space, or open a Workspace in another folder",
    "import": lambda hint: f"import it first with import_{hint.value}({hint.name!r}, name=…)",
    "leave-out": lambda hint: f"leave the argument {_argument(hint.name)} out",
    "list": lambda hint: f"list({hint.name!r}) of the workspace shows them",
    "load": lambda hint: f"load it with load({hint.name!r}) of the workspace",
    "mcp-servers": lambda hint: "describe it in the file of Workspace(…, mcp_servers=FILE)",
    "raise-max-errors": lambda hint: "permit more with max_errors=",
    "rename": lambda hint: "choose another name=",
    "resume": lambda hint: "choose another name=, or continue it with resume=True",
    "set": lambda hint: f"give {_pairs(hint.name)}",
    "skip-bad": lambda hint: "leave bad rows out with skip_bad=True",
    "start-again": lambda hint: "call it again with the same name= to continue",
    "track": lambda hint: f"log it later with log({hint.name!r}) of the workspace",
    "unload": lambda hint: f"unload it with unload({hint.name!r}) of the workspace",
}


def reword(error: RalleError) -> RalleError:
    """The same kind of error, with the mend at the end of its sentence.

    >>> from rallebench.core.errors import UsageError
    >>> str(reword(UsageError("The suite needs a language model.", hint=Hint("choose", "llm"))))
    'The suite needs a language model; name one with llm=.'
    """
    if error.hint is None:
        return error
    other = error.saying(error.hint.after(str(error), _CLAUSES))
    other.hint = None  # so that no caller adds it again
    return other


def in_python(call: Callable[P, T]) -> Callable[P, T]:
    """Wrap a function so that its errors are worded for Python."""

    @wraps(call)
    def worded_call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        except RalleError as error:
            raise reword(error) from None

    return worded_call
