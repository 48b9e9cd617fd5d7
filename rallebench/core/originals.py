"""The prompts of a paper's own repository, read from a copy on the user's disk.

``originals.json`` beside shipped prompts declares them::

    {"repository": "https://…", "commit": "…", "texts": {NAME: {"in": FILE, "at": PLACE, "fields": {THEIRS: OURS}, …}}}

``NAME`` is the shipped prompt that the text replaces. ``in``: the file in the repository; ``at``: the place in it, as
``en.system`` of YAML, or ``Class.function.variable`` of a Python source; without it the text is the whole file. ``fields``: the
text is a template of ``str.format``; its field → the replacement here: a text, or another place of the repository.
``ends``: the end that the flow writes itself. ``sha256``: of the text at ``commit``, with its fields as they stand here. A source is parsed, never run.
"""

from __future__ import annotations

import ast
import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

from rallebench.core.errors import BadFileError
from rallebench.core.files import read_object

DECLARATION = "originals.json"
LEVELS_UP = 3
"""The most levels between the root of a repository and a named folder inside it."""


def _key(name: str) -> str:
    """The JSON key of a field."""
    return "in" if name == "file" else name


@dataclass(frozen=True, slots=True)
class OriginalPlace:
    """The place of a text in a repository, as ``originals.json`` declares it; see the module."""

    __pydantic_config__: ClassVar[dict[str, Callable[[str], str]]] = {"alias_generator": _key}

    file: str
    at: str = ""
    fields: Mapping[str, str | OriginalPlace] | None = None
    ends: str = ""
    sha256: str = ""

    @property
    def files(self) -> Iterator[str]:
        """The files of the text and of its fields."""
        yield self.file
        for ours in (self.fields or {}).values():
            if isinstance(ours, OriginalPlace):
                yield ours.file


@dataclass(frozen=True, slots=True)
class Declaration:
    """The content of ``originals.json``. ``texts``: the name of a shipped prompt → the place of its original."""

    repository: str = ""
    commit: str = ""
    texts: Mapping[str, OriginalPlace] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Original:
    """A text of an original repository. ``known``: True if it is the text of the declared commit."""

    text: str
    known: bool


@dataclass(frozen=True, slots=True)
class OriginalCopy:
    """A user's copy of an original repository below ``root``."""

    root: Path
    declared: Declaration

    def __contains__(self, name: object) -> bool:
        return name in self.declared.texts

    def path(self, name: str) -> Path:
        """The file with the text for the prompt ``name``."""
        return self.root / self.declared.texts[name].file

    def read(self, name: str) -> Original:
        """Read the text that replaces the prompt ``name``, which must be declared. Raises BadFileError."""
        place = self.declared.texts[name]
        text = self._raw(place)
        if place.fields is not None:
            text = self._template(text, place, place.fields)
        known, ends = sha256(text.encode()).hexdigest() == place.sha256, place.ends
        if not text.endswith(ends):
            raise self._differs(place, f"does not end with {ends.strip()!r}")
        return Original(text[: len(text) - len(ends)], known)

    def _raw(self, place: OriginalPlace) -> str:
        """A text as it is in the repository."""
        path, at = self.root / place.file, place.at
        if not path.is_file():
            raise BadFileError(
                f"{self.root} is a copy of {self.declared.repository} without {place.file}; get the whole repository."
            )
        try:
            whole = path.read_text(encoding="utf-8")
            text = _READERS[path.suffix](whole, at) if at else whole
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError) as error:
            lines = str(error).splitlines() or ["too deeply nested"]  # a MemoryError has no message
            raise self._differs(place, f"cannot be read ({lines[0]})") from None
        if text is None or not text.strip():
            raise self._differs(place, f"holds no text {at}".rstrip())
        return text

    def _template(
        self, text: str, place: OriginalPlace, fields: Mapping[str, str | OriginalPlace]
    ) -> str:
        """A template of ``str.format`` with the field names of our flows."""
        pieces: list[str] = []
        try:
            parsed = list(string.Formatter().parse(text))
        except ValueError as error:
            raise self._differs(place, f"breaks off in a field ({error})") from None
        have = {name for _, name, _, _ in parsed if name is not None}
        if lacking := fields.keys() - have:
            raise self._differs(place, f"lacks {{{min(lacking)}}}")
        if strange := have - fields.keys():
            raise self._differs(place, f"has the field {{{min(strange)}}}")
        for literal, name, _, _ in parsed:
            ours = "" if name is None else fields[name]
            pieces += [literal, ours if isinstance(ours, str) else self._raw(ours)]
        return "".join(pieces)

    def _differs(self, place: OriginalPlace, how: str) -> BadFileError:
        return BadFileError(
            f"{self.root / place.file} {how}, so it is half a file or another version; "
            f"get {self.declared.repository} at commit {self.declared.commit[:12]}."
        )


@cache
def _read_declaration(folder: Path) -> Declaration:
    from rallebench.core.own_files import parse

    path = folder / DECLARATION
    mend = "install rallebench again"
    return parse(read_object(path), Declaration, path, mend) if path.is_file() else Declaration()


def copy_in(own: Path, prompts: Path) -> OriginalCopy | None:
    """Return the copy of the repository for ``prompts``, if ``own`` is one or a folder in one."""
    declared = _read_declaration(prompts)
    files = {path for place in declared.texts.values() for path in place.files}
    inside = any((own / Path(path).name).is_file() for path in files)
    for root in (own, *(own.parents[:LEVELS_UP] if inside else ())):
        if any((root / path).is_file() for path in files):
            return OriginalCopy(root, declared)
    return None


def text_in_yaml(source: str, at: str) -> str | None:
    """A text of a YAML document, None if there is none at that place. Raises ValueError.

    >>> text_in_yaml("en: {system: Be brief.}", "en.system")
    'Be brief.'
    """
    import yaml

    try:
        value = yaml.safe_load(source)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
    for key in at.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


def literal_in_python(source: str, at: str) -> str | None:
    """A text assigned in a Python source, None if there is none at that place. An f-string becomes a template. Raises
    SyntaxError.

    >>> literal_in_python("class A:\\n def __init__(self):\\n  self.rule = 'Be brief.'", "A.__init__.rule")
    'Be brief.'
    >>> literal_in_python("def ask(query):\\n prompt = f'Q: {query}'", "ask.prompt")
    'Q: {query}'
    """
    *scopes, name = at.split(".")
    body: list[ast.stmt] = ast.parse(source).body
    for scope in scopes:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        named = [node for node in body if isinstance(node, kinds) and node.name == scope]
        body = named[0].body if named else []
    for node in body:
        targets = node.targets if isinstance(node, ast.Assign) else ()
        if name in {getattr(target, "id", getattr(target, "attr", "")) for target in targets}:
            return _literal_text(node.value)  # type: ignore[attr-defined]
    return None


def _literal_text(value: ast.expr) -> str | None:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    if not isinstance(value, ast.JoinedStr):
        return None
    pieces = []
    for part in value.values:
        if isinstance(part, ast.Constant):
            pieces.append(str(part.value).replace("{", "{{").replace("}", "}}"))
        elif isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name):
            pieces.append(f"{{{part.value.id}}}")
        else:
            return None
    return "".join(pieces)


_READERS: Mapping[str, Callable[[str, str], str | None]] = {
    ".py": literal_in_python,
    ".yaml": text_in_yaml,
}
