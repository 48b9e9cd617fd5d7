"""Errors in the wording of the page: the error's own sentence, then its hint as fields and buttons."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rallebench.core.errors import Hint, RalleError


def _fields(pairs: str) -> str:
    return " and ".join(map(_field, pairs.split()))


_CLAUSES: Mapping[str, Callable[[Hint], str]] = {
    "allow-python": lambda hint: "allow it by opening this page with app.py --allow-python",
    "build-index": lambda hint: f"build one in Data with the chunking {hint.name}",
    "choose": lambda hint: (
        f"choose one, or do without: {_fields(hint.value)}" if hint.value else "choose one"
    ),
    "columns": lambda hint: f"choose the column of the {hint.name} under Columns",
    "common": lambda hint: "compare runs that were asked the same questions",
    "find-models": lambda hint: "press Find models",
    "free-space": lambda hint: "free space, or open the page with another workspace",
    "import": lambda hint: "import it in Data first",
    "leave-out": lambda hint: (
        f"leave the field {hint.name.replace('llm', 'language model').replace('-', ' ')} empty"
    ),
    "list": lambda hint: f"on a command line 'rallebench list {hint.name}' tells more",
    "load": lambda hint: "load it in Models",
    "mcp-servers": lambda hint: (
        "open this page with app.py --mcp-servers FILE, and describe it there"
    ),
    "raise-max-errors": lambda hint: "permit more failed questions",
    "rename": lambda hint: "choose another name",
    "resume": lambda hint: "choose another name, or open that run in Runs and resume it",
    "set": lambda hint: _fields(hint.name),
    "skip-bad": lambda hint: "tick the field that leaves bad rows out",
    "start-again": lambda hint: "start it again with the same name to continue",
    "track": lambda hint: "log it later: Export, Log the run",
    "unload": lambda hint: "unload it in Models",
}


def on_page(text: object) -> str:
    """Return an error or a sentence in the page's wording, with an error's remedy last.

    >>> on_page(RalleError("It needs a language model.", hint=Hint("choose", "llm", "questions=0 answerable=false")))
    'It needs a language model; choose one, or do without: set Questions to 0 and untick Answerable.'
    """
    hint = text.hint if isinstance(text, RalleError) else None
    return hint.after(str(text), _CLAUSES) if hint else str(text)


def _field(pair: str) -> str:
    """Return the advice about the field of ``name=value``; an upper-case value stands for the user's own."""
    name, _, value = pair.partition("=")
    label = name.replace("_", " ").capitalize()
    boxes = {"false": f"untick {label}", "true": f"tick {label}"}
    fill = f"fill in the field {label}" if value.isupper() else f"set {label} to {value}"
    return boxes.get(value, fill)
