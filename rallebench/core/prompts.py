"""Prompts as text files: those shipped below ``prompts/``, and the user's own folder, which may replace some."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rallebench.core.errors import BadFileError


def prompts_folder() -> Path:
    """The folder of shipped prompts: beside the package in a checkout, under the prefix when installed."""
    beside = Path(__file__).resolve().parents[2] / "prompts"
    return beside if beside.is_dir() else Path(sys.prefix) / "share" / "rallebench" / "prompts"


def prompt_text(below: str, name: str, own: str = "", fields: Sequence[str] = ()) -> str:
    """The file ``name`` of the folder ``own``, or else of ``prompts/below``, without the last line's end.

    ``fields``: the names that it must hold in braces. Raises BadFileError.
    """
    folder = Path(own).expanduser()
    if own and not folder.is_dir():
        raise BadFileError(f"{own} is no folder of prompts; it may hold {name} and other prompts.")
    path = folder / name if own and (folder / name).is_file() else prompts_folder() / below / name
    text = read_prompt(path).removesuffix("\n")
    for field in fields:
        if f"{{{field}}}" not in text:
            raise BadFileError(f"The prompt {path} lacks {{{field}}}.")
    return text


def check_own(own: str, names: Iterable[str]) -> None:
    """Raise BadFileError for a folder ``own`` without any of the prompts ``names``: it would change nothing."""
    needed, folder = list(dict.fromkeys(names)), Path(own).expanduser()
    if not own or not folder.is_dir() or any((folder / name).is_file() for name in needed):
        return
    if not needed:
        raise BadFileError(
            f"This request reads no prompt, so {own} would change nothing; leave prompts out."
        )
    raise BadFileError(
        f"{own} holds none of the prompts of this request ({', '.join(needed)}); name its files so, or leave prompts out."
    )


def read_prompt(path: Path, mend: str = "") -> str:
    """The text of a prompt's file. Raises BadFileError, whose sentence ends with ``mend``."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFileError(
            f"The prompt {path} cannot be read ({error}){mend and f'; {mend}'}."
        ) from None


def filled(template: str, values: Mapping[str, str]) -> str:
    """The template with values for ``{name}``; braces inside a value and all other braces stay.

    >>> filled('{text} {"a": 1} {other}', {"text": "{other}"})
    '{other} {"a": 1} {other}'
    """
    return re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], match[0]), template)
