"""Word documents, EPUB books and spreadsheets for tests, made as zip archives of XML."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping

_TYPES = """<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="xml" ContentType="application/xml"/>{}</Types>"""
_RELATIONS = """<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
{}</Relationships>"""
_KIND = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def archive(files: Mapping[str, str | bytes]) -> bytes:
    """A zip archive, name → content."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return out.getvalue()


def paragraph(text: str, style: str = "") -> str:
    """A paragraph of a Word document."""
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{properties}<w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def item(text: str, level: int = 0) -> str:
    """A bullet of a list."""
    place = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="1"/></w:numPr>'
    return f"<w:p><w:pPr>{place}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def table(rows: Iterable[Iterable[str]]) -> str:
    """A table of a Word document."""
    cells = ("".join(f"<w:tc>{paragraph(text)}</w:tc>" for text in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


def docx(
    *body: str,
    doctype: str = "",
    relations: str = "",
    more: Mapping[str, str | bytes] | None = None,
) -> bytes:
    """A Word document. ``doctype``: before the document's root; ``relations``: of the document; ``more``: further files."""
    names = (("Title", "Title"), *((f"H{n}", f"heading {n}") for n in range(1, 4)))
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{key}"><w:name w:val="{name}"/></w:style>'
        for key, name in names
    )
    levels = "".join(f'<w:lvl w:ilvl="{n}"><w:numFmt w:val="bullet"/></w:lvl>' for n in range(3))
    numbering = (
        f'<w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    )
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    parts = f'<Override PartName="/word/document.xml" ContentType="{main}"/>'
    links = "".join(
        f'<Relationship Id="p{kind}" Type="{_KIND}/{kind}" Target="{kind}.xml"/>'
        for kind in ("styles", "numbering")
    )
    names_of = f'xmlns:w="{_WORD}" xmlns:r="{_KIND}" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    head = f'<?xml version="1.0" encoding="UTF-8"?>{doctype}'
    return archive(
        {
            "[Content_Types].xml": _TYPES.format(parts),
            "_rels/.rels": _RELATIONS.format(
                f'<Relationship Id="r1" Type="{_KIND}/officeDocument" Target="word/document.xml"/>'
            ),
            "word/_rels/document.xml.rels": _RELATIONS.format(links + relations),
            "word/styles.xml": f"<w:styles {names_of}>{styles}</w:styles>",
            "word/numbering.xml": f"<w:numbering {names_of}>{numbering}</w:numbering>",
            "word/document.xml": f"{head}<w:document {names_of}><w:body>{''.join(body)}</w:body></w:document>",
            **(more or {}),
        }
    )


def epub(
    *chapters: str, title: str = "A Book of Moons", more: Mapping[str, str | bytes] | None = None
) -> bytes:
    """An EPUB book; each chapter is the body of a page."""
    pages = {
        f"OEBPS/c{n}.xhtml": f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>{n}</title></head><body>{text}</body></html>'
        for n, text in enumerate(chapters)
    }
    manifest = "".join(
        f'<item id="i{n}" href="c{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="i{n}"/>' for n in range(len(chapters)))
    metadata = f"<dc:title>{title}</dc:title><dc:creator>Ada Lune</dc:creator><dc:identifier>urn:1</dc:identifier>"
    return archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OEBPS/content.opf"/></rootfiles></container>',
            "OEBPS/content.opf": f'<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>{metadata}</metadata>'
            f"<manifest>{manifest}</manifest><spine>{spine}</spine></package>",
            **pages,
            **(more or {}),
        }
    )


def xlsx(**sheets: Iterable[Iterable[object]]) -> bytes:
    """A spreadsheet, the name of a sheet → its rows."""
    import openpyxl

    book, out = openpyxl.Workbook(), io.BytesIO()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    if not sheets:
        book.create_sheet("Sheet")
    book.save(out)
    return out.getvalue()
