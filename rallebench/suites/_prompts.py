"""A suite's prompts: files that ship with the project, or a folder of one's own that may hold some of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from rallebench.errors import BadFileError
from rallebench.workspace import prompts_folder


def prompt_text(suite: str, name: str, own: str = "", fields: Sequence[str] = ()) -> str:
    """The file ``name`` of the folder ``own``, or the shipped one of ``suite`` where it has none.

    ``fields``: what must stand in it in braces. Raises BadFileError.
    """
    folder = Path(own).expanduser()
    if own and not folder.is_dir():
        raise BadFileError(f"{own} is no folder of prompts; it may hold {name} and its kin.")
    path = folder / name if own and (folder / name).is_file() else prompts_folder() / "suites" / suite / name
    try:
        text = path.read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFileError(f"The prompt {path} cannot be read ({error}).") from None
    missing = [field for field in fields if f"{{{field}}}" not in text]
    if missing:
        raise BadFileError(f"The prompt {path} lacks {{{missing[0]}}}.")
    return text


def filled(template: str, values: Mapping[str, str]) -> str:
    """``{name}`` replaced by its value; what a value holds in braces is not looked at, other braces stay.

    >>> filled('{text} {"a": 1} {other}', {"text": "{other}"})
    '{other} {"a": 1} {other}'
    """
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), template)
