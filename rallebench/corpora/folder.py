"""A folder of documents, read recursively in the order of their names (``document_files.SUFFIXES``).

A document's id is its path inside the folder, with ``#`` and the sheet's name in a spreadsheet; its title comes from the front
matter, the first heading, ``<title>`` or the file's name. An unreadable file or a PDF without text is a bad row; files of other kinds are named and counted. The format
``parts`` reads every file as one plain text, as CRUD-RAG's own chunker does: its news files of 4 MB have one article per line,
so chunks span articles. The format ``lines`` reads the same files article by article.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from pathlib import Path

from rallebench.core.errors import BadFileError
from rallebench.core.files import MAX_LINE_BYTES
from rallebench.core.numbers import plural
from rallebench.core.sources import Problems, Source, files_in
from rallebench.corpora import CORPORA, CorpusRow
from rallebench.corpora._collections import first_names, first_table, is_collection, left_out
from rallebench.corpora._documents import Document, UnreadableError, read_plain
from rallebench.corpora._guarded import GuardedReader, missing_package
from rallebench.corpora.document_files import SUFFIXES, is_document, read_document

ROW = re.compile(r"[^\t]*\t|\s*[\[{]")
"""Beginning of a table row or of JSON."""


def _recognises(path: Path) -> bool:
    if path.suffix.lower() == ".txt" and not path.is_dir():
        return path.is_file() and not _holds_rows(path)
    if not path.is_dir():
        return is_document(path)
    rows = is_collection(path) or first_table(path)
    return any(map(is_document, files_in(path))) and not rows


def _holds_rows(path: Path) -> bool:
    """Return whether the first non-blank line of a text file is a row of a table or of JSON."""
    try:
        lines = Source(path, Problems(skip=True), peeking=True).lines()
        return any(ROW.match(line) for _, line in islice(filter(itemgetter(1), lines), 1))
    except BadFileError:
        return True


SAMPLE = {
    "documents/titan.md": "# Titan\n\nTitan is a moon of Saturn.\n",
    "documents/danube.txt": "The Danube flows into the Black Sea.\n",
}


@CORPORA.register("folder", recognises=_recognises, documents=True, sample=SAMPLE)
def read_folder(source: Source) -> Iterator[CorpusRow]:
    """A folder of text, Markdown, reStructuredText, HTML, PDF, Word, EPUB and Excel files; each file or sheet is a document."""
    every = files_in(source.path)
    files = every if source.path.is_file() else _readable(source, every)
    if not files:
        raise BadFileError(
            f"{source.path} contains no documents; a folder of {', '.join(SUFFIXES)} files is needed."
        )
    links = [path for path in source.path.rglob("*") if path.is_symlink() and not path.is_file()]
    others = [*(file for file in every if not (is_document(file) or file in files)), *sorted(links)]
    mend = "Save them as text, HTML or PDF to include them"
    source.problems.warnings += left_out(source.path, others, mend)
    with contextlib.closing(GuardedReader()) as guarded:
        yield from _documents(
            source, files, lambda file: read_document(file, guarded, source.encoding)
        )


def _readable(source: Source, every: Sequence[Path]) -> list[Path]:
    """Return the documents of a folder that can be read; a warning names the others, whose package is missing.

    Raises MissingPackageError if none are left.
    """
    files = list(filter(is_document, every))
    errors = {suffix: missing_package(suffix) for suffix in {file.suffix.lower() for file in files}}
    readable = [file for file in files if errors[file.suffix.lower()] is None]
    for suffix, error in sorted(errors.items()):
        if error is not None:
            if not readable:
                raise error
            lost = [file for file in files if file.suffix.lower() == suffix]
            names = first_names(source.path, lost)
            source.problems.warnings.append(
                f"{plural(len(lost), f'{suffix} file')} left out of {source.path.name} ({names}): {error}"
            )
    return readable


@CORPORA.register(
    "parts",
    documents=True,
    sample={"news/part-1": "Titan is a moon.\n", "news/part-2": "The Danube flows.\n"},
)
def read_parts(source: Source) -> Iterator[CorpusRow]:
    """A folder of text files, each one a document (as in CRUD-RAG's experiments)."""
    files = files_in(source.path)
    if not files:
        raise BadFileError(f"{source.path} contains no files; text files are needed.")
    yield from _documents(source, files, lambda file: [read_plain(file, source.encoding)])


def _documents(
    source: Source, files: Sequence[Path], read: Callable[[Path], list[Document]]
) -> Iterator[CorpusRow]:
    """Yield a row for each document of the readable files; the others are bad rows."""
    source.unit = "document"
    folder = source.path if source.path.is_dir() else source.path.parent
    for number, file in enumerate(files, 1):
        size = file.stat().st_size
        try:
            if size > MAX_LINE_BYTES:
                raise UnreadableError(f"is larger than {MAX_LINE_BYTES // 2**20} MB; divide it.")
            documents = read(file)
        except OSError as error:
            source.problems.add(number, f"{file} cannot be read: {error.strerror or error}.")
        except UnreadableError as error:
            source.problems.add(number, f"{file} {error}")
        else:
            name = file.relative_to(folder).as_posix()
            for document in documents:
                if document.guessed:
                    source.problems.add_guess(document.guessed, name)
                part = f"#{document.part}" if document.part else ""
                yield CorpusRow(number, name + part, document.text, document.title or file.stem)
        source.done += size
