"""Prompts as text files: the shipped ones below ``prompts/``, and the user's own folder, which may replace some.

The folder uses the names of the shipped files, or is a copy of the paper's own repository (``core.originals``).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from rallebench.core.errors import BadFileError
from rallebench.core.json_values import JsonValue
from rallebench.core.originals import copy_in
from rallebench.core.types import Json


def prompts_folder() -> Path:
    """The folder of shipped prompts: beside the package in a checkout, in a folder ``share`` after an installation.

    ``share`` lies in the environment; after ``pip install --user`` or ``--target`` it lies above or beside the package.
    """
    root = Path(__file__).resolve().parents[2]
    if (root / "prompts").is_dir():
        return root / "prompts"
    places = [above / "share" / "rallebench" / "prompts" for above in (root, *root.parents[:3])]
    prefix = Path(sys.prefix) / "share" / "rallebench" / "prompts"
    return next((place for place in places if place.is_dir()), prefix)


REWORDED, ORIGINAL, OWN = "reworded", "original", "own"
"""The source of a request's wording: us, the paper's repository, or the user."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The wording of a request. ``sha256``: of the texts of the user's folder, '' without one. ``shipped``: the prompts
    that use our text because the folder has none; ``unknown``: prompts with another text than in the known commit."""

    whose: str = REWORDED
    sha256: str = ""
    shipped: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def original(self) -> bool:
        """True if every text from the paper's repository is sent unchanged."""
        return self.whose == ORIGINAL

    def note(self) -> str:
        """The note about the prompts for a table with printed figures."""
        if self.whose == REWORDED:
            return "Prompts reworded."
        mark = f"sha256 {self.sha256[:12]}"
        if self.whose == OWN:
            ours = f"; reworded, as the folder has none: {', '.join(self.shipped)}"
            return f"Prompts of the user's own ({mark}), not the paper's{ours if self.shipped else ''}."
        sentence = f"Original prompts ({mark})"
        if self.unknown:
            sentence += f", of {', '.join(self.unknown)} a version that is not known here"
        if self.shipped:
            sentence += f"; reworded, as the repository has none: {', '.join(self.shipped)}"
        return f"{sentence}."

    def to_json(self) -> dict[str, JsonValue]:
        return asdict(self)

    @property
    def run_settings(self) -> Json:
        """Its entry in the settings of a run; {} for the shipped prompts."""
        return {"wording": {"whose": self.whose, "sha256": self.sha256}} if self.sha256 else {}


SHIPPED = Wording()
"""The wording of a request without a user's folder."""


def prompt_text(below: str, name: str, own: str = "", fields: Sequence[str] = ()) -> str:
    """The prompt ``name`` from the folder ``own``, or else from ``prompts/below``, without the final line end.

    ``own``: a folder with a file of that name, or a copy of the paper's repository; ``fields``: the names that the text
    must contain in braces. Raises BadFileError.
    """
    folder = Path(own).expanduser()
    if own and not folder.is_dir():
        raise BadFileError(
            f"{own} is not a folder of prompts; choose one with {name} and other prompts."
        )
    shipped = prompts_folder() / below
    copy = copy_in(folder.resolve(), shipped) if own else None
    if copy is not None and name in copy:
        return copy.read(name).text
    mine = own and copy is None and _has(folder, name)
    path = folder / name if mine else shipped / name
    text = read_prompt(path).removesuffix("\n")
    for field in fields:
        if f"{{{field}}}" not in text:
            raise BadFileError(f"The prompt {path} lacks {{{field}}}.")
    return text


def find_wording(own: str, prompts: Iterable[tuple[str, str]], *, demanded: bool = True) -> Wording:
    """The wording of a request that reads these ``prompts``: (folder below ``prompts/``, name) of each.

    Raises BadFileError if ``own`` is not a folder, and, if ``demanded``, also if it has none of the prompts: it would
    change nothing.
    """
    needed, folder = list(dict.fromkeys(prompts)), Path(own).expanduser()
    if not own:
        return SHIPPED
    texts: dict[str, str] = {}
    unknown: list[str] = []
    whose = OWN
    for below, name in needed:
        copy = copy_in(folder.resolve(), prompts_folder() / below) if folder.is_dir() else None
        if copy is not None and name in copy:
            whose, read = ORIGINAL, copy.read(name)
            texts[f"{below}/{name}"] = read.text
            unknown += [] if read.known else [name]
        elif copy is None and _has(folder, name):
            texts[f"{below}/{name}"] = prompt_text(below, name, own)
    names = [name for _, name in needed]
    if not texts and (demanded or not folder.is_dir()):
        raise BadFileError(_without(own, names))
    shipped = [name for below, name in needed if f"{below}/{name}" not in texts]
    return wording(whose, texts, shipped, unknown) if texts else Wording(shipped=tuple(shipped))


def _has(folder: Path, name: str) -> bool:
    """Return whether a folder has an entry of this name. If it is unreadable, the error comes later."""
    return os.path.lexists(folder / name)


def wording(
    whose: str, texts: Mapping[str, str], shipped: Iterable[str] = (), unknown: Iterable[str] = ()
) -> Wording:
    """The wording of a request that sends these ``texts`` (name → text)."""
    lines = "\0".join(f"{name}\0{texts[name]}" for name in sorted(texts))
    return Wording(whose, sha256(lines.encode()).hexdigest(), tuple(shipped), tuple(unknown))


def _without(own: str, names: Sequence[str]) -> str:
    if not Path(own).expanduser().is_dir():
        return f"{own} is not a folder of prompts; choose one with {', '.join(names)}."
    if not names:
        return f"This request reads no prompt, so {own} would change nothing; leave prompts out."
    return (
        f"{own} holds none of the prompts of this request ({', '.join(names)}) and is not a copy of the paper's repository "
        "with them; name its files so, or leave prompts out."
    )


def read_prompt(path: Path, mend: str = "") -> str:
    """The text of a prompt's file. Raises BadFileError with a sentence that ends with ``mend``."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        why = f"it is not UTF-8 text, byte {error.start}"
    except OSError as error:
        why = error.strerror or str(error)
    else:
        if "\0" not in text:
            return text
        why = "it holds binary data, or text that is not UTF-8"
    raise BadFileError(f"The prompt {path} cannot be read ({why}){mend and f'; {mend}'}.")


def fill_template(template: str, values: Mapping[str, str]) -> str:
    """Fill in values for ``{name}``. Braces inside a value and all other braces stay.

    >>> fill_template('{text} {"a": 1} {other}', {"text": "{other}"})
    '{other} {"a": 1} {other}'
    """
    return re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], match[0]), template)
