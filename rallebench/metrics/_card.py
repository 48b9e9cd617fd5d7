"""A metric's card: what its docstring says in words, beside the traits that the code itself decides on.

A docstring has this form; its first line is the definition, the sections come last, in this order, and
*Over all answers* and *Option* only where there is such a thing::

    1 if the answer equals an accepted answer, else 0.

    More about it, if there is more to say.

    Normalisation: none.
    Not scored: never.
    Over all answers: the same of all answers at once.
    Option: which tokens are compared.
    Source: Who, year, where.
    Traps: What a reader of the number should know.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

from rallebench.core.cards import Card

SECTIONS = {
    "Normalisation": "normalisation",
    "Not scored": "not_scored",
    "Over all answers": "over_all",
    "Option": "option",
    "Source": "source",
    "Traps": "traps",
}
_SECTION = re.compile(rf"^({'|'.join(SECTIONS)}): *", re.MULTILINE)


def parse(doc: str) -> dict[str, str]:
    """The words of a docstring: ``definition``, ``details`` and its sections, '' where one is absent.

    >>> words = parse("One.\\n\\nMore.\\n\\nNormalisation: none.\\nTraps: a long\\n    one.")
    >>> words["definition"], words["details"], words["traps"], words["source"]
    ('One.', 'More.', 'a long one.', '')
    """
    text = inspect.cleandoc(doc)
    heads = list(_SECTION.finditer(text))
    definition, _, details = text[: heads[0].start() if heads else None].strip().partition("\n")
    words = {
        "definition": definition,
        "details": details.strip(),
        **dict.fromkeys(SECTIONS.values(), ""),
    }
    for head, after in zip(heads, [*heads[1:], None]):
        body = text[head.end() : after.start() if after else None]
        words[SECTIONS[head[1]]] = " ".join(body.split())
    return words


def make_card(name: str, about: str, doc: str, traits: Mapping[str, Any]) -> Card:
    """The card of a registered metric, from its docstring and its traits."""
    words = parse(doc)
    words["definition"] = about or words["definition"]
    decided = ("needs", "wants", "tool", "higher_is_better", "unit", "range", "k")
    known: dict[str, Any] = {key: traits[key] for key in decided if key in traits}
    return Card(name, traits.get("label", name), **{**words, **known})
