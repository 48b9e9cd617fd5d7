"""Sentences of lower layers in the words of the page, which has fields in place of flags. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from rallebench.core.errors import Hint, RalleError

_RULES: tuple[tuple[str, str], ...] = (
    (r"\bquestion set", "dataset"),
    (
        r"Name a model that writes with --llm; rallebench list presets shows small ones",
        "Choose a model that writes; the Models tab offers small ones",
    ),
    (r"name them with (--set \w+=\S+) or one with --llm", r"name them with \1 or choose one"),
    (r"name (?:one|it) with --llm", "choose one"),
    (r"; name --llm\.", "; choose one."),
    (r" \(--llm\)", ""),
    (r" --llm L\b", " and choose a model"),
    (r"--llm", "the language model"),
    (
        r"rallebench index --chunk-preset (\w+) makes one",
        r"Data → Build an index makes one, with the cutting \1",
    ),
    (r"See 'rallebench list (\w+)'", r"On a command line 'rallebench list \1' tells more"),
    (
        r"choose another --name, or add --resume",
        "choose another name, or open that one in Runs to go on with it",
    ),
    (r"\b(same|another) --name\b", r"\1 name"),
    (
        r"Set the environment variable (\w+) to a valid key(?:; it is not set now)?\.",
        r"Type the server’s key under Key in Models, or set the variable \1 before rallebench starts.",
    ),
    (
        r"Name the environment variable with its key in api_key_env; .*$",
        "Type the server’s key under Key in Models.",
    ),
    (
        r"set the environment variable (\w+), or set base_url to your own server",
        r"type the key under Key in Models, or set the variable \1 before rallebench starts",
    ),
    (r"Check that base_url is that of", "Check that the address is that of"),
    (r"Check that base_url is right", "Check that the address is right"),
    (r"\b([Cc])orrect base_url\b", r"\1orrect the address"),
    (r"\bset base_url to the final address", "change the address to the final one"),
    (r"\bbase_url (is|holds) ", r"the address \1 "),
    (
        r"No articles are given: --articles PATH takes",
        "No articles are given: the field Articles takes",
    ),
    (r"--articles\b", "the field Articles"),
    (r"--limit is", "the number is"),
    (r"--limit\b", "the number asked for"),
)
"""Pattern → what the page says instead; the first rules are the narrower ones."""
_MARKS = ("--", "rallebench", "question set", "base_url", "environment variable")
"""A sentence without any of these is left as it is."""
_SET = re.compile(r"--set [\w.]+=\S+(?: --set [\w.]+=\S+)*")


_LABELS: Mapping[str, str] = {"llm": "language model"}
"""What is chosen → the field's label, where that is another word."""


def _label(name: str) -> str:
    return _LABELS.get(name, name.replace("-", " "))


def _fields(pairs: str) -> str:
    return ", ".join(map(_field, pairs.split()))


def _choose(hint: Hint) -> str:
    without = f", or do without: {_fields(hint.value)}" if hint.value else ""
    return f"choose one{without}"


_CLAUSES: Mapping[str, Callable[[Hint], str]] = {
    "allow-python": lambda hint: "allow it by opening this page with app.py --allow-python",
    "build-index": lambda hint: f"build one in Data with the chunking {hint.name}",
    "choose": _choose,
    "find-models": lambda hint: "press Find models",
    "free-space": lambda hint: "free space, or open the page with another workspace",
    "leave-out": lambda hint: f"leave the field {_label(hint.name)} empty",
    "list": lambda hint: f"on a command line 'rallebench list {hint.name}' tells more",
    "load": lambda hint: "load it in Models",
    "raise-max-errors": lambda hint: "permit more failed questions",
    "rename": lambda hint: "choose another name",
    "resume": lambda hint: "choose another name, or open that run in Runs and resume it",
    "set": lambda hint: f"fill in {_fields(hint.name)}",
    "skip-bad": lambda hint: "tick the field that leaves bad rows out",
    "start-again": lambda hint: "start it again with the same name to continue",
    "track": lambda hint: "log it later: Export, Log the run",
    "unload": lambda hint: "unload it in Models",
}


def on_page(text: object) -> str:
    """An error or a sentence in the words of the page; the mend of an error comes last."""
    sentence = _without_flags(str(text))
    hint = text.hint if isinstance(text, RalleError) else None
    return hint.after(sentence, _CLAUSES) if hint else sentence


def _without_flags(text: str) -> str:
    """A sentence without flags of the command line; settings are called as their fields are.

    >>> _without_flags("It needs a language model; name one with --llm, or do without: --set questions=0 --set answerable=false.")
    'It needs a language model; choose one, or do without: questions=0, answerable not ticked.'
    """
    if not any(mark in text for mark in _MARKS):
        return text
    for pattern, words in _RULES:
        text = re.sub(pattern, words, text)
    text = _SET.sub(
        lambda found: ", ".join(map(_field, found[0].removeprefix("--set ").split(" --set "))), text
    )
    return text.replace("--set ", "")


def _field(pair: str) -> str:
    """``name=value`` as a field; ``answerable=false.`` keeps what ends the sentence."""
    name, _, value = pair.partition("=")
    for said, words in (("false", "not ticked"), ("true", "ticked")):
        if (rest := value.removeprefix(said)) != value and not rest.strip(".,;:)"):
            return f"{name} {words}{rest}"
    return pair
