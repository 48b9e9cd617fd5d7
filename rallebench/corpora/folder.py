"""A folder of documents, read recursively in the order of their names: .txt, .md, .html, .pdf.

A document's id is its path inside the folder, its title the first heading, ``<title>`` or the file's
name. A file that cannot be read, and a PDF without text, is a bad row that is named.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from rallebench.core.errors import BadFileError
from rallebench.core.files import MAX_LINE_BYTES
from rallebench.core.sources import Source, files_in
from rallebench.corpora import CORPORA, Row
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


@CORPORA.register("folder", recognises=_recognises, sample=SAMPLE)
def read_folder(source: Source) -> Iterator[Row]:
    """A folder of .txt, .md, .html and .pdf files; each file is a document."""
    files = [file for file in files_in(source.path) if file.suffix.lower() in READERS]
    if not files:
        raise BadFileError(
            f"{source.path} holds no documents; a folder of {', '.join(READERS)} files is needed."
        )
    with contextlib.closing(PDFReader()) as pdfs:
        yield from documents(source, files, lambda file: READERS[file.suffix.lower()](file, pdfs))


def documents(source: Source, files: list[Path], read: Callable[[Path], Document]) -> Iterator[Row]:
    """A row for each file that can be read; the others are bad rows."""
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
            yield Row(number, name, document.text, document.title or file.stem)
        source.done += size
