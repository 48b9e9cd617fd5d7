"""Prompts as files below ``prompts/making``, or one's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from rallebench.errors import BadFileError
from rallebench.workspace import prompts_folder


def read_prompt(maker: str, name: str, own: str = "", fields: tuple[str, ...] = ()) -> str:
    """The file ``name`` of the folder ``own``, or the shipped one where it has none. Raises BadFileError.

    ``fields``: what must stand in it in braces.
    """
    if own and not Path(own).expanduser().is_dir():
        raise BadFileError(f"{own} is no folder of prompts; it may hold {name} and its kin.")
    path = Path(own).expanduser() / name
    if not own or not path.is_file():
        path = prompts_folder() / "making" / maker / name
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadFileError(f"The prompt {path} cannot be read ({error}).") from None
    for field in fields:
        if f"{{{field}}}" not in text:
            raise BadFileError(f"The prompt {path} lacks {{{field}}}.")
    return text


def filled(template: str, values: Mapping[str, str]) -> str:
    """``{NAME}`` replaced by its value; what a value holds in braces is not looked at.

    >>> filled('{ARTICLE} {"a": 1}', {"ARTICLE": "{NAME}"})
    '{NAME} {"a": 1}'
    """
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), template)
