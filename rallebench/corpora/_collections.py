"""Folders of row files, such as Pyserini's JsonCollection, read in the order of their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rallebench.core.errors import BadFileError
from rallebench.core.numbers import plural
from rallebench.core.sources import BESIDE, Problems, Source, files_in, has_suffix, table_files
from rallebench.core.streams import plain_name, with_packed
from rallebench.corpora import ID_NAMES, TEXT_NAMES, CorpusRow
from rallebench.corpora.document_files import is_document

JSON_FILES = (".jsonl", ".ndjson", ".json")
OF_OTHER_FORMATS = (*with_packed("corpus.jsonl"), "corpus.json", "qrels")
"""Files that mark BEIR folders and imported corpora."""
NAMED = 8
"""Maximum number of files that a warning names."""


def is_collection(path: Path) -> bool:
    """Return whether a folder holds JSON row files with id and text, and no documents except descriptions of the folder."""
    if not path.is_dir() or any((path / name).exists() for name in OF_OTHER_FORMATS):
        return False
    files = files_in(path)
    if any(plain_name(file.name) == "queries.jsonl" for file in files):
        return False  # these are questions, not passages
    rows = list(filter(has_suffix(*JSON_FILES), files))
    others = [file for file in files if file not in rows]
    documents = list(filter(is_document, others))
    if not rows or not all(file.name.lower().startswith(BESIDE) for file in documents):
        return False
    try:
        source = Source(rows[0], Problems(skip=True))
        row = source.document() or next((row for _, row in source.objects()), {})
        return bool(row.keys() & {*ID_NAMES} and row.keys() & {*TEXT_NAMES})
    except BadFileError:
        return False


def first_table(path: Path) -> Path | None:
    """Return the first file of a folder of CSV, TSV, Parquet or Arrow files, None for another; JSON has ``is_collection``."""
    return next(filter(lambda file: not has_suffix(*JSON_FILES)(file), table_files(path)), None)


def each_file(
    source: Source, read: Callable[[Source], Iterator[CorpusRow]], *suffixes: str
) -> Iterator[CorpusRow]:
    """Yield rows of a file, or of a folder's files with these suffixes, or of all its files if none has one.

    Rows are numbered across the folder. A damaged file counts as one bad row.
    """
    if not source.path.is_dir():
        yield from read(source)
        return
    files = files_in(source.path)
    chosen = list(filter(has_suffix(*suffixes), files)) or files
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


def row_id(root: Path, file: Path, number: int) -> str:
    """Return the id of a row without one: its number, in a folder behind the file's name."""
    return str(number) if file == root else f"{file.relative_to(root).as_posix()}:{number}"


def left_out(folder: Path, files: Sequence[Path], mend: str) -> list[str]:
    """Return one sentence about files of other kinds, counted by suffix; [] if there are none."""
    if not files:
        return []
    kinds = Counter(
        file.suffix.lower() or "without an ending" if file.is_file() else "link to no file"
        for file in files
    )
    counts = ", ".join(f"{number:,} {kind}" for kind, number in sorted(kinds.items()))
    return [
        f"{plural(len(files), 'file')} of other kinds left out of {folder.name}: {counts} ({first_names(folder, files)}). {mend}."
    ]


def first_names(folder: Path, files: Sequence[Path]) -> str:
    """Return the first paths inside a folder, for use in a sentence."""
    names = [file.relative_to(folder).as_posix() for file in files[:NAMED]]
    return ", ".join([*names, "…"] if len(files) > NAMED else names)
