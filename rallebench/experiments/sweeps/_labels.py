"""Names of runs made of a sweep's name and a variant's values."""

from __future__ import annotations

import hashlib
import re

LONGEST = 90


def label_of(sweep: str, label: str) -> str:
    """A name that can be a folder's; values that differ never give one name.

    >>> label_of("night", "k=5, retriever=rrf:a,b")
    'night k=5, retriever=rrf-a,b deb0'
    >>> label_of("night", "k=5")
    'night k=5'
    """
    plain = re.sub(r"[^\w\-. ()+=,@]+", "-", label).strip(" .")
    name = f"{sweep} {plain}"
    if plain == label and len(name.encode()) <= LONGEST:
        return name
    mark = hashlib.sha256(label.encode("utf-8", "surrogatepass")).hexdigest()[:4]
    return f"{name.encode()[: LONGEST - 5].decode('utf-8', 'ignore').rstrip(' .')} {mark}"
