"""Options of metrics: the name of a model of the workspace, or a folder."""

from __future__ import annotations

import re


def names_language_model(option: str) -> bool:
    """Return whether the option of a support metric names a language model of the workspace, not a folder or hub id.

    >>> [names_language_model(text) for text in ("", "my-llm", "/models/nli?above=0.7", "owner/model", "scripted:?a/b")]
    [False, True, False, False, True]
    """
    head = option.strip().partition("?")[0]
    is_path = head.startswith(("/", ".", "~")) or "\\" in head
    is_hub_id = bool(re.fullmatch(r"[\w.-]+/[\w.-]+", head))
    return bool(option.strip()) and not is_path and not is_hub_id
