"""Text of Word documents, EPUB books and spreadsheets, which are zip archives of XML.

markitdown turns documents and books into Markdown. Its conversion of spreadsheets goes through pandas, which fills empty
cells with NaN and names columns "Unnamed: 0", so these are read by openpyxl itself, row by row.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING

from rallebench.corpora._documents import CHARACTERS, Document, UnreadableError, markdown_title

if TYPE_CHECKING:
    from markitdown import DocumentConverter

MAX_UNPACKED = 2**28
"""Bytes to which the files of a document may unpack, without pictures and sounds."""
MAX_MEMBERS = 100_000

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_MEDIA = re.compile(
    r"\.(png|jpe?g|gif|bmp|tiff?|emf|wmf|svgz?|mp[34]|m4[av]|wav|ogg|webp|[ot]tf|woff2?)$", re.I
)
_PLAIN = {"strip": ["a", "img"], "escape_asterisks": False, "escape_underscores": False}
"""Options of the Markdown: text alone of links and pictures, and words as they are."""
_TITLE_STYLES = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => h2:fresh"
_IDENTIFIER = re.compile(r"\A((?:\*\*\w+:\*\* .*\n)*?)\*\*Identifier:\*\* .*\n?")


def read_word(path: Path) -> list[Document]:
    """Return a Word document as Markdown with its headings, lists, tables and formulas; pictures are left out."""
    from markitdown.converters import DocxConverter

    _check_archive(path, "word/document.xml")
    return [_markdown(DocxConverter(), path, style_map=_TITLE_STYLES)]


def read_book(path: Path) -> list[Document]:
    """Return an EPUB book as Markdown, chapter by chapter; title and authors come first."""
    from markitdown.converters import EpubConverter

    names = _check_archive(path, "META-INF/container.xml")
    if "META-INF/rights.xml" in names or _has_encrypted_text(path, names):
        raise UnreadableError("is protected against copying; use a book without this protection.")
    document = _markdown(EpubConverter(), path)
    return [document._replace(text=_IDENTIFIER.sub(r"\1", document.text).strip())]


def _markdown(converter: DocumentConverter, path: Path, **options: object) -> Document:
    from markitdown import StreamInfo

    info = StreamInfo(extension=path.suffix.lower(), filename=path.name)
    with open(path, "rb") as handle:
        result = converter.convert(handle, info, **_PLAIN, **options)
    text = result.markdown.strip()
    if not text:
        raise UnreadableError("contains no text.")
    return Document(text, (result.title or "").strip() or markdown_title(text))


def _has_encrypted_text(path: Path, names: Iterable[str]) -> bool:
    """Return whether a book's chapters are encrypted; encrypted fonts are usual."""
    if "META-INF/encryption.xml" not in names:
        return False
    with zipfile.ZipFile(path) as archive:
        return bool(re.search(rb"\.x?html?\"", archive.read("META-INF/encryption.xml")))


def read_spreadsheet(path: Path) -> list[Document]:
    """Return a document for each sheet with text: a paragraph for each row, with the columns' names if the first row has them.

    Values are those that were last saved, also of formulas.
    """
    import openpyxl

    _check_archive(path, "[Content_Types].xml")
    book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
    documents, length = [], 0
    for sheet in book.worksheets:
        sheet.reset_dimensions()  # a file may claim sixteen thousand columns
        rows: list[str] = []
        for row in _paragraphs(map(_texts, sheet.iter_rows(values_only=True))):
            rows.append(row)
            length += len(row)
            if length > CHARACTERS:
                raise UnreadableError(
                    f"is a spreadsheet with more than {CHARACTERS // 2**20} million characters of text; save its sheets as CSV."
                )
        if rows:
            documents.append(Document("\n\n".join(rows), sheet.title, part=sheet.title))
    if not documents:
        raise UnreadableError("is a spreadsheet without any text.")
    return documents


def _texts(row: Sequence[object]) -> list[str]:
    cells = [_text(cell) for cell in row]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _text(cell: object) -> str:
    """Return a cell as text, as a spreadsheet shows it.

    >>> _text(2.0), _text(None), _text(datetime(2024, 5, 1)), _text(" two\\nlines ")
    ('2', '', '2024-05-01', 'two lines')
    """
    if cell is None:
        return ""
    if isinstance(cell, datetime) and cell.time() == time():
        cell = cell.date()
    if isinstance(cell, (date, time)):
        return cell.isoformat() if not isinstance(cell, datetime) else cell.isoformat(" ")
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        cell = int(cell)
    return " ".join(str(cell).split())


def _paragraphs(rows: Iterator[list[str]]) -> Iterator[str]:
    """Yield the rows with text. The first row names the columns if it has several cells, all different texts.

    >>> list(_paragraphs(iter([["Moon", "km"], [], ["Titan", "5149"], ["Rhea"]])))
    ['Moon: Titan; km: 5149', 'Moon: Rhea']
    >>> list(_paragraphs(iter([["Moons"], ["Titan", "5149"]])))
    ['Moons', 'Titan; 5149']
    """
    filled = filter(any, rows)
    first = next(filled, [])
    is_header = len(first) > 1 and all(first) and len({*first}) == len(first)
    is_header = is_header and not any(map(_is_number, first))
    second = next(filled, None) if is_header else None
    if is_header and second is None:
        is_header = False
    if not is_header and first:
        yield "; ".join(filter(None, first))
    if second is not None:
        yield _name_cells(first, second)
    for row in filled:
        yield _name_cells(first if is_header else [], row)


def _name_cells(names: Sequence[str], row: Sequence[str]) -> str:
    pairs = ((names[at] if at < len(names) else "", cell) for at, cell in enumerate(row) if cell)
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in pairs)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?[\d.,:/-]+%?", text) is not None


def _check_archive(path: Path, needed: str) -> list[str]:
    """Return the names of the files inside. Raises UnreadableError for another kind of file and for one that unpacks to far more
    than text."""
    with open(path, "rb") as handle:
        mark = handle.read(len(_OLE))
    if mark == _OLE:
        raise UnreadableError(
            f"is protected by a password, or in an older format of Office; save it without a password as {path.suffix.lower()}."
        )
    if not mark.startswith(b"PK"):
        raise UnreadableError(f"is not a {path.suffix.lower()} file, whatever its name.")
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    texts = sum(member.file_size for member in members if not _MEDIA.search(member.filename))
    if len(members) > MAX_MEMBERS or texts > MAX_UNPACKED:
        raise UnreadableError(f"unpacks to more than {MAX_UNPACKED // 2**20} MB; divide it.")
    names = [member.filename for member in members]
    if needed not in names:
        raise UnreadableError(
            f"is an archive without {needed}, so it is not a {path.suffix.lower()} file."
        )
    return names
