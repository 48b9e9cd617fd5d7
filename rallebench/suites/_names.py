"""How a suite and its runs are called if nobody says."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

LONGEST_NAME, LONGEST_RUN = 60, 90


def run_name(name: str, label: str) -> str:
    """The name of a part's run; labels that differ never give one name.

    >>> run_name("night", "noise=0.2")
    'night noise=0.2'
    """
    return _folder_name(f"{name} {label}", LONGEST_RUN)


def default_name(suite: str, words: Sequence[str], limit: int | None) -> str:
    """What a suite's runs are called if nothing is said: the same request, the same name.

    >>> default_name("rgb-noise", ["en_fact", "my-llm"], 5)
    'rgb-noise en_fact my-llm first 5'
    """
    many = [] if limit is None else [f"first {limit}"]
    return _folder_name(" ".join(filter(None, [suite, *words, *many])), LONGEST_NAME)


def _folder_name(whole: str, most: int) -> str:
    """``whole`` if it can be a folder's name of ``most`` bytes; else what can, and a mark of the rest."""
    plain = re.sub(r"[^\w\-. ()+=,@]+", "-", whole).strip(" .")
    if plain == whole and len(plain.encode()) <= most:
        return plain
    mark = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:4]
    return f"{plain.encode()[: most - 5].decode('utf-8', 'ignore').rstrip(' .')} {mark}"
