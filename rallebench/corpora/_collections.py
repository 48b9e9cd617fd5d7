"""Folders of files of rows, such as Pyserini's JsonCollection: read file by file in the order of their names."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError
from rallebench.core.numbers import plural
from rallebench.core.sources import BESIDE, Problems, Source, files_in, named
from rallebench.corpora import ID_NAMES, TEXT_NAMES, CorpusRow

JSON_FILES = (".jsonl", ".ndjson", ".json")
OF_OTHER_FORMATS = ("corpus.jsonl", "corpus.jsonl.gz", "corpus.json", "qrels")
"""Files by which BEIR's folders and imported corpora are known."""
NAMED = 8
"""Files that a warning names."""


LARGEST_OBJECT = 2**24
"""Bytes of the largest file that holds a single object over several lines."""


def is_collection(path: Path) -> bool:
    """Return whether a folder holds files of JSON rows that have an id and a text, and no documents but those that describe it."""
    if not path.is_dir() or any((path / name).exists() for name in OF_OTHER_FORMATS):
        return False
    files = files_in(path)
    if any(file.name.removesuffix(".gz") == "queries.jsonl" for file in files):
        return False  # questions are no passages
    rows = list(filter(named(*JSON_FILES), files))
    others = [file for file in files if file not in rows]
    documents = [x for x in others if named(".txt", ".md", ".markdown", ".html", ".htm", ".pdf")(x)]
    if not rows or not all(file.name.lower().startswith(BESIDE) for file in documents):
        return False
    try:
        first = islice(Source(rows[0], Problems(skip=True)).objects(), 1)
        row = single_object(rows[0]) or next((row for _, row in first), {})
        return bool(row.keys() & {*ID_NAMES} and row.keys() & {*TEXT_NAMES})
    except BadFileError:
        return False


def each_file(
    source: Source, read: Callable[[Source], Iterator[CorpusRow]], *suffixes: str
) -> Iterator[CorpusRow]:
    """The rows of a file, or of the files of a folder: of those with these endings, or of all if none has one.

    The rows of a folder are numbered through. A damaged file of it is a bad row.
    """
    if not source.path.is_dir():
        yield from read(source)
        return
    files = files_in(source.path)
    chosen = list(filter(named(*suffixes), files)) or files
    if not chosen:
        raise BadFileError(f"{source.path} holds no file; name a folder of {suffixes[0]} files.")
    source.problems.warnings += left_out(
        source.path,
        [file for file in files if file not in chosen],
        f"Only {', '.join(suffixes)} files are read",
    )
    source.unit = "row"
    number = before = 0
    for file in chosen:
        part = replace(source, path=file, done=0, total=0, unit="line")
        try:
            for row in read(part):
                number += 1
                source.done = before + part.done
                yield row._replace(line=number)
        except BadFileError as error:
            if not source.problems.skip:
                raise
            source.problems.add(0, str(error))
        before += part.total
        source.done = before


def left_out(folder: Path, files: Sequence[Path], mend: str) -> list[str]:
    """A sentence on the files of other kinds, counted by their endings; [] for none."""
    if not files:
        return []
    kinds = Counter(
        file.suffix.lower() or "without an ending" if file.is_file() else "link to no file"
        for file in files
    )
    counts = ", ".join(f"{number:,} {kind}" for kind, number in sorted(kinds.items()))
    return [
        f"{plural(len(files), 'file')} of other kinds left out of {folder.name}: {counts} ({names_of(folder, files)}). {mend}."
    ]


def names_of(folder: Path, files: Sequence[Path]) -> str:
    """The first paths inside a folder, for a sentence."""
    names = [file.relative_to(folder).as_posix() for file in files[:NAMED]]
    return ", ".join([*names, "…"] if len(files) > NAMED else names)


def single_object(path: Path) -> dict[str, Any] | None:
    """The object of a ``.json`` file that is neither a list nor JSON lines, None for any other file."""
    if path.suffix.lower() != ".json" or not path.is_file() or path.stat().st_size > LARGEST_OBJECT:
        return None
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError, OSError):
        return None
    return value if isinstance(value, dict) else None
