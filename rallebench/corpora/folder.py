"""A folder of documents, read recursively in the order of their names: .txt, .md, .html, .pdf.

A document's id is its path inside the folder; its title comes from the front matter, the first heading, ``<title>`` or the
file's name. An unreadable file or a PDF without text is a bad row; files of other kinds are named and counted. The format
``parts`` reads every file as one plain text, as CRUD-RAG's own chunker does: its news files of 4 MB have one article per line,
so chunks span articles. The format ``lines`` reads the same files article by article.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from rallebench.core.errors import BadFileError
from rallebench.core.files import MAX_LINE_BYTES
from rallebench.core.numbers import plural
from rallebench.core.sources import Source, files_in
from rallebench.corpora import CORPORA, CorpusRow
from rallebench.corpora._collections import first_names, is_collection, left_out
from rallebench.corpora._documents import (
    WESTERN,
    Document,
    UnreadableError,
    read_markdown,
    read_plain,
)
from rallebench.corpora._html import read_page
from rallebench.corpora._pdf import PDFReader

READERS: dict[str, Callable[[Path, PDFReader], Document]] = {
    ".txt": lambda path, _: read_plain(path),
    ".md": lambda path, _: read_markdown(path),
    ".markdown": lambda path, _: read_markdown(path),
    ".html": lambda path, _: read_page(path.read_bytes()),
    ".htm": lambda path, _: read_page(path.read_bytes()),
    ".pdf": lambda path, pdfs: pdfs.read(path),
}


ROW = re.compile(r"[^\t]*\t|\s*[\[{]")
"""Beginning of a table row or of JSON."""


def _recognises(path: Path) -> bool:
    if path.suffix.lower() == ".txt" and not path.is_dir():
        return path.is_file() and not _holds_rows(path)
    if not path.is_dir():
        return path.suffix.lower() in READERS
    return any(map(_is_document, files_in(path))) and not is_collection(path)


def _holds_rows(path: Path) -> bool:
    """Return whether the first non-blank line of a text file is a row of a table or of JSON."""
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return bool(ROW.match(handle.read(FIRST).lstrip("\ufeff\r\n ").partition("\n")[0]))
    except OSError:
        return True


def _is_document(file: Path) -> bool:
    return file.suffix.lower() in READERS


FIRST = 2**16
"""Characters that are searched for the first line of a text file."""
SAMPLE = {
    "documents/titan.md": "# Titan\n\nTitan is a moon of Saturn.\n",
    "documents/danube.txt": "The Danube flows into the Black Sea.\n",
}


@CORPORA.register("folder", recognises=_recognises, documents=True, sample=SAMPLE)
def read_folder(source: Source) -> Iterator[CorpusRow]:
    """A folder of .txt, .md, .html and .pdf files; each file is a document."""
    every = files_in(source.path)
    files = every if source.path.is_file() else list(filter(_is_document, every))
    if not files:
        raise BadFileError(
            f"{source.path} contains no documents; a folder of {', '.join(READERS)} files is needed."
        )
    links = [path for path in source.path.rglob("*") if path.is_symlink() and not path.is_file()]
    others = [file for file in every if file not in files]
    mend = "Save them as text, HTML or PDF to include them"
    source.problems.warnings += left_out(source.path, [*others, *sorted(links)], mend)
    with contextlib.closing(PDFReader()) as pdfs:

        def read(file: Path) -> Document:
            reader = READERS.get(
                file.suffix.lower()
            )  # a file that is named directly is read as text, whatever its suffix
            return reader(file, pdfs) if reader else read_plain(file)

        yield from _documents(source, files, read)


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
    yield from _documents(source, files, read_plain)


def _documents(
    source: Source, files: list[Path], read: Callable[[Path], Document]
) -> Iterator[CorpusRow]:
    """Yield a row for each readable file; the others are bad rows."""
    source.unit = "document"
    guessed: list[Path] = []
    folder = source.path if source.path.is_dir() else source.path.parent
    for number, file in enumerate(files, 1):
        size = file.stat().st_size
        try:
            if size > MAX_LINE_BYTES:
                raise UnreadableError(f"is larger than {MAX_LINE_BYTES // 2**20} MB; divide it.")
            document = read(file)
        except OSError as error:
            source.problems.add(number, f"{file} cannot be read: {error.strerror or error}.")
        except UnreadableError as error:
            source.problems.add(number, f"{file} {error}")
        else:
            guessed += [file] if document.guessed else []
            name = file.relative_to(folder).as_posix()
            yield CorpusRow(number, name, document.text, document.title or file.stem)
        source.done += size
    if guessed:
        source.problems.warnings.append(
            f"{plural(len(guessed), 'file')} read as {WESTERN}, since they are not UTF-8: {first_names(folder, guessed)}. Save "
            "files that look wrong as UTF-8."
        )
