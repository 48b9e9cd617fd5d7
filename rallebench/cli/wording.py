"""Errors in the wording of the command line: the error's own sentence, then its hint as a flag or verb. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping

from rallebench.core.errors import Hint, RalleError

_FLAGS: Mapping[str, str] = {"environment": "--env"}
"""Kind of choice → its flag, if that differs from ``--`` and the kind's name."""


def _flag(name: str) -> str:
    return _FLAGS.get(name, f"--{name}")


def _pairs(pairs: str) -> str:
    return " ".join(f"--set {pair}" for pair in pairs.split())


def _choose(hint: Hint) -> str:
    without = f", or do without: {_pairs(hint.value)}" if hint.value else ""
    return f"name one with {_flag(hint.name)}{without}"


_CLAUSES: Mapping[str, Callable[[Hint], str]] = {
    "allow-python": lambda hint: "allow it with --allow-python",
    "build-index": lambda hint: f"rallebench index --chunk-preset {hint.name} builds one",
    "choose": _choose,
    "columns": lambda hint: f"import it with --columns {hint.name}=COLUMN",
    "common": lambda hint: "compare these alone with --common",
    "find-models": lambda hint: "rallebench models find lists them",
    "free-space": lambda hint: "free space or choose another --workspace",
    "import": lambda hint: (
        f"import it first: rallebench import {shlex.quote(hint.name)} --kind {hint.value} --name N"
    ),
    "leave-out": lambda hint: f"leave {_flag(hint.name)} out",
    "list": lambda hint: f"see 'rallebench list {hint.name}'",
    "load": lambda hint: "name it with --llm, --retriever or in a chain; it is then loaded",
    "mcp-servers": lambda hint: "describe it in a file named by --mcp-servers FILE",
    "raise-max-errors": lambda hint: "permit more with --max-errors",
    "rename": lambda hint: "choose another --name",
    "resume": lambda hint: "choose another --name, or add --resume",
    "set": lambda hint: f"give {_pairs(hint.name)}",
    "skip-bad": lambda hint: "leave bad rows out with --skip-bad",
    "start-again": lambda hint: "start it again with the same --name to continue",
    "track": lambda hint: f"log it later: rallebench track {shlex.quote(hint.name)}",
    "unload": lambda hint: "stop the process that has loaded it",
}


def word_error(error: RalleError) -> str:
    """Return an error as one line that ends with the remedy.

    >>> from rallebench.core.errors import UsageError
    >>> word_error(UsageError("The workflow 'react' needs a language model.", hint=Hint("choose", "llm")))
    "The workflow 'react' needs a language model; name one with --llm."
    """
    sentence = " ".join(str(error).splitlines())
    return error.hint.after(sentence, _CLAUSES) if error.hint else sentence
