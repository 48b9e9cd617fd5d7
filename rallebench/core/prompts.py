"""Prompts as text files: shipped below ``prompts/``, or in a folder of one's own that may hold some of them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rallebench.core.errors import BadFileError


def prompts_folder() -> Path:
    """The shipped prompts: beside the package in a checkout, under the prefix when installed."""
    beside = Path(__file__).resolve().parents[2] / "prompts"
    return beside if beside.is_dir() else Path(sys.prefix) / "share" / "rallebench" / "prompts"


def prompt_text(below: str, name: str, own: str = "", fields: Sequence[str] = ()) -> str:
    """The file ``name`` of the folder ``own``, or of ``prompts/below`` where it has none, without its last line's end.

    ``fields``: what must stand in it in braces. Raises BadFileError.
    """
    folder = Path(own).expanduser()
    if own and not folder.is_dir():
        raise BadFileError(f"{own} is no folder of prompts; it may hold {name} and its kin.")
    path = folder / name if own and (folder / name).is_file() else prompts_folder() / below / name
    text = read_prompt(path).removesuffix("\n")
    for field in fields:
        if f"{{{field}}}" not in text:
            raise BadFileError(f"The prompt {path} lacks {{{field}}}.")
    return text


def check_own(own: str, names: Iterable[str]) -> None:
    """Raise BadFileError for a folder ``own`` that holds none of the prompts ``names``, those that are read: it would change nothing."""
    wanted, folder = list(dict.fromkeys(names)), Path(own).expanduser()
    if not own or not folder.is_dir() or any((folder / name).is_file() for name in wanted):
        return
    if not wanted:
        raise BadFileError(
            f"No prompt is read for what is asked, so {own} would change nothing; leave prompts out."
        )
    raise BadFileError(
        f"{own} holds none of the prompts that are read ({', '.join(wanted)}); name its files so, or leave prompts out."
    )


def read_prompt(path: Path, mend: str = "") -> str:
    """A prompt's file as it is. Raises BadFileError, whose sentence ends with ``mend``: what to do about it."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFileError(
            f"The prompt {path} cannot be read ({error}){mend and f'; {mend}'}."
        ) from None


def filled(template: str, values: Mapping[str, str]) -> str:
    """``{name}`` replaced by its value; what a value holds in braces is not looked at, other braces stay.

    >>> filled('{text} {"a": 1} {other}', {"text": "{other}"})
    '{other} {"a": 1} {other}'
    """
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), template)
