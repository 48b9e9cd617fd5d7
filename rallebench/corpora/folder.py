"""A folder of documents, read recursively in the order of their names: .txt, .md, .html, .pdf.

A document's id is its path inside the folder, its title the first heading, ``<title>`` or the file's name.
An unreadable file and a PDF without text are bad rows. The format ``parts`` reads every file as one plain
text, as CRUD-RAG's own chunker does: its news have one article a line in files of 4 MB, so chunks cross the
borders of articles. The format ``lines`` reads the same files article by article.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from rallebench.core.errors import BadFileError
from rallebench.core.files import MAX_LINE_BYTES
from rallebench.core.sources import Source, files_in
from rallebench.corpora import CORPORA, CorpusRow
from rallebench.corpora._documents import Document, UnreadableError, read_markdown, read_plain
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


def _recognises(path: Path) -> bool:
    if not path.is_dir():
        return path.suffix.lower() in READERS and path.suffix.lower() != ".txt"
    return any(file.suffix.lower() in READERS for file in files_in(path))


SAMPLE = {
    "documents/titan.md": "# Titan\n\nTitan is a moon of Saturn.\n",
    "documents/danube.txt": "The Danube flows into the Black Sea.\n",
}


@CORPORA.register("folder", recognises=_recognises, documents=True, sample=SAMPLE)
def read_folder(source: Source) -> Iterator[CorpusRow]:
    """A folder of .txt, .md, .html and .pdf files; each file is a document."""
    files = [file for file in files_in(source.path) if file.suffix.lower() in READERS]
    if not files:
        raise BadFileError(
            f"{source.path} holds no documents; a folder of {', '.join(READERS)} files is needed."
        )
    with contextlib.closing(PDFReader()) as pdfs:
        yield from _documents(source, files, lambda file: READERS[file.suffix.lower()](file, pdfs))


@CORPORA.register(
    "parts",
    documents=True,
    sample={"news/part-1": "Titan is a moon.\n", "news/part-2": "The Danube flows.\n"},
)
def read_parts(source: Source) -> Iterator[CorpusRow]:
    """A folder of text files, each of them one document (CRUD-RAG as it was run)."""
    files = files_in(source.path)
    if not files:
        raise BadFileError(f"{source.path} holds no file; text files are needed.")
    yield from _documents(source, files, read_plain)


def _documents(
    source: Source, files: list[Path], read: Callable[[Path], Document]
) -> Iterator[CorpusRow]:
    """A row for each readable file; the others are bad rows."""
    source.unit = "document"
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
            name = file.relative_to(folder).as_posix()
            yield CorpusRow(number, name, document.text, document.title or file.stem)
        source.done += size
