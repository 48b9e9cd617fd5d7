"""A metric's card, from its docstring and the traits that the code itself relies on.

A docstring has this format; its first line is the definition, the sections come last, in this order; *Over all answers*
and *Option* are optional::

    1 if the answer equals an accepted answer, else 0.

    More about it, if there is more to say.

    Normalisation: none.
    Not scored: never.
    Over all answers: the same of all answers at once.
    Option: which tokens are compared.
    Source: author, year, place.
    Traps: caveats for the reader of a number.
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
    """Split a docstring into ``definition``, ``details`` and its sections, '' for a missing one.

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
    """Return the card of a registered metric, from its docstring and its traits."""
    words = parse(doc)
    words["definition"] = about or words["definition"]
    decided = ("needs", "wants", "tool", "higher_is_better", "unit", "range", "k", "declining")
    known: dict[str, Any] = {key: traits[key] for key in decided if key in traits}
    return Card(name, traits.get("label", name), **{**words, **known})
