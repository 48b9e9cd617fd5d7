"""Word documents, EPUB books, spreadsheets and reStructuredText: their text with its structure, and files made to do harm."""

from __future__ import annotations

import datetime
import importlib.util
import io
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from office_files import archive, docx, epub, item, paragraph, table, xlsx

from rallebench.core.errors import BadFileError, MissingPackageError
from rallebench.core.events import complete
from rallebench.core.sources import Problems
from rallebench.corpora import _office
from rallebench.corpora._documents import UnreadableError
from rallebench.corpora._guarded import GuardedReader
from rallebench.corpora.chunking import chunk, default_chunking
from rallebench.corpora.imported import import_corpus
from rallebench.corpora.page_names import find_pages
from rallebench.corpora.reading import corpus_form, read_corpus

pytest.importorskip("markitdown")


@pytest.fixture(scope="module")
def guarded() -> Iterator[GuardedReader]:
    """One child for the module: it takes seconds to import the libraries."""
    reader = GuardedReader()
    yield reader
    reader.close()


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


LETTER = docx(
    paragraph("Moons of Saturn", "Title"),
    paragraph("Titan", "H1"),
    paragraph("Titan is the <w:t/>largest_moon *of* Saturn.".replace("<w:t/>", "")),
    item("thick air"),
    item("lakes"),
    item("of methane", 1),
    paragraph("Numbers", "H2"),
    table([("Moon", "Radius"), ("Titan", "2574"), ("Rhea", "763")]),
    paragraph("泰坦是卫星。"),
)


def test_a_word_document_keeps_headings_lists_and_tables(
    tmp_path: Path, guarded: GuardedReader
) -> None:
    [document] = guarded.read(write(tmp_path / "letter.docx", LETTER))
    assert document.title == "Moons of Saturn"
    assert document.text.split("\n\n") == [
        "# Moons of Saturn",
        "# Titan",
        "Titan is the largest_moon *of* Saturn.",
        "* thick air\n* lakes\n  + of methane",
        "## Numbers",
        "|  |  |\n| --- | --- |\n| Moon | Radius |\n| Titan | 2574 |\n| Rhea | 763 |",
        "泰坦是卫星。",
    ]


def test_a_book_is_read_by_chapters_with_its_title_and_author(
    tmp_path: Path, guarded: GuardedReader
) -> None:
    content = epub(
        '<h1>Titan</h1><p>A <a href="x">moon</a>.</p><script>no</script>',
        "<h1>Rhea</h1><ul><li>ice</li></ul><table><tr><th>km</th></tr><tr><td>763</td></tr></table>",
    )
    [document] = guarded.read(write(tmp_path / "moons.epub", content))
    assert document.title == "A Book of Moons"
    assert document.text.split("\n\n") == [
        "**Title:** A Book of Moons\n**Authors:** Ada Lune",
        "# Titan",
        "A moon.",
        "# Rhea",
        "* ice",
        "| km |\n| --- |\n| 763 |",
    ]


def test_every_sheet_with_text_is_a_document_and_every_row_names_its_columns(
    tmp_path: Path, guarded: GuardedReader
) -> None:
    day = datetime.datetime(1655, 3, 25)
    content = xlsx(
        Moons=[
            ("Moon", "km", "Seen"),
            ("Titan", 5149.5, day),
            (),
            ("Rhea", 1527.0),
            ("Io", None, True),
        ],
        Empty=[],
        Notes=[("Only a remark,\nin two lines",)],
    )
    path = write(tmp_path / "moons.xlsx", content)
    moons, notes = guarded.read(path)
    assert (moons.part, moons.title, notes.part) == ("Moons", "Moons", "Notes")
    assert moons.text.split("\n\n") == [
        "Moon: Titan; km: 5149.5; Seen: 1655-03-25",
        "Moon: Rhea; km: 1527",
        "Moon: Io; Seen: True",
    ]
    assert notes.text == "Only a remark, in two lines"
    assert [(p.doc_id, p.title) for p in read_corpus(path)] == [
        ("moons.xlsx#Moons", "Moons"),
        ("moons.xlsx#Notes", "Notes"),
    ]


def test_a_folder_of_all_kinds_is_a_corpus_that_gold_can_name(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    write(docs / "a.docx", LETTER)
    write(docs / "b.epub", epub("<h1>One</h1><p>Text.</p>"))
    write(docs / "c.xlsx", xlsx(Moons=[("Moon",), ("Titan",)]))
    write(docs / "d.rst", b".. _top:\n\n=====\nTitan\n=====\n\nA :ref:`moon <m>`.\n")
    write(docs / "e.txt", b"plain")
    assert corpus_form(docs) == "folder"
    passages = list(read_corpus(docs))
    assert [(p.doc_id, p.title) for p in passages] == [
        ("a.docx", "Moons of Saturn"),
        ("b.epub", "A Book of Moons"),
        ("c.xlsx#Moons", "Moons"),
        ("d.rst", "Titan"),
        ("e.txt", "e"),
    ]
    assert "A :ref:`moon <m>`." in passages[3].text
    complete(import_corpus(tmp_path / "corpora", "docs", docs))
    pages = find_pages(
        tmp_path / "corpora", ["c.xlsx", "https://e.org/files/a.docx", "c.xlsx#Moons"]
    )
    assert pages == {
        "docs": {
            "c.xlsx": ["c.xlsx#Moons"],
            "https://e.org/files/a.docx": ["a.docx"],
            "c.xlsx#Moons": ["c.xlsx#Moons"],
        }
    }


def test_the_rows_of_a_sheet_are_never_cut_within(tmp_path: Path) -> None:
    rows = [("Moon", "About"), *((f"Moon {n}", "A body of ice and rock") for n in range(80))]
    path = write(tmp_path / "moons.xlsx", xlsx(Moons=rows))
    pieces = [p.text for p, _ in chunk(read_corpus(path), default_chunking("minilm"))]
    assert len(pieces) > 3 and all(piece.startswith("Moon: Moon ") for piece in pieces)
    assert all(piece.endswith("About: A body of ice and rock") for piece in pieces)


# files made to do harm, and damaged ones

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512)
BOMB = archive({"word/document.xml": b" " * (_office.MAX_UNPACKED + 1)})
DEEP = "<w:tbl><w:tr><w:tc>" * 3000 + "</w:tc></w:tr></w:tbl>" * 3000
LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "lol"}">' for n in range(10))
RIGHTS = {"META-INF/rights.xml": "<rights/>"}
CRYPT = {"META-INF/encryption.xml": '<CipherReference URI="OEBPS/c0.xhtml"/>'}


def _encrypt(content: bytes) -> bytes:
    """A zip archive whose entries claim to be encrypted."""
    data = bytearray(content)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(mark)
        while at >= 0:
            (flags,) = struct.unpack_from("<H", data, at + offset)
            struct.pack_into("<H", data, at + offset, flags | 1)
            at = data.find(mark, at + 4)
    return bytes(data)


REFUSED: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "a password": ("a.docx", lambda: OLE, "is protected by a password, or in an older format"),
    "a password on a sheet": ("a.xlsx", lambda: OLE, "save it without a password as .xlsx"),
    "an encrypted archive": ("a.docx", lambda: _encrypt(LETTER), "encrypted"),
    "another kind": ("a.docx", lambda: b"%PDF-1.4", "is not a .docx file, whatever its name"),
    "empty": ("a.epub", lambda: b"", "is not a .epub file"),
    "a sheet named as a document": ("a.docx", lambda: xlsx(A=[("x",)]), "an archive without word/"),
    "a document named as a sheet": ("a.xlsx", lambda: LETTER, "is not a spreadsheet that can be"),
    "half a file": ("a.docx", lambda: LETTER[:-200], "is not a Word document that can be read"),
    "half a sheet": ("a.xlsx", lambda: xlsx(A=[("x",)])[:900], "is not a spreadsheet that can be"),
    "no text": ("a.docx", lambda: docx(), "contains no text"),
    "an empty sheet": ("a.xlsx", lambda: xlsx(), "is a spreadsheet without any text"),
    "a bomb": ("a.docx", lambda: BOMB, "unpacks to more than 256 MB"),
    "a book with rights": ("a.epub", lambda: epub("x", more=RIGHTS), "protected against copying"),
    "an encrypted book": ("a.epub", lambda: epub("x", more=CRYPT), "protected against copying"),
    "no container": ("a.epub", lambda: archive({"a": "b"}), "an archive without META-INF/"),
    "broken XML": ("a.docx", lambda: docx("<w:p>"), "contains no text"),
    "entities of entities": (
        "a.docx",
        lambda: docx(paragraph("&l9;"), doctype=f"<!DOCTYPE d [{LAUGHS}]>"),
        "is not a Word document that can be read|more than",
    ),
    "entities in a book": (
        "a.epub",
        lambda: epub("x", more={"META-INF/container.xml": f"<!DOCTYPE d [{LAUGHS}]><d>&l9;</d>"}),
        "is not a book that can be read",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_cannot_be_read_is_one_sentence(
    case: str, tmp_path: Path, guarded: GuardedReader
) -> None:
    name, content, sentence = REFUSED[case]
    with pytest.raises(UnreadableError, match=sentence) as refusal:
        guarded.read(write(tmp_path / name, content()))
    assert str(refusal.value).endswith(".") and "\n" not in str(refusal.value)


def test_deep_nesting_is_read_or_refused_and_the_next_file_is_read(
    tmp_path: Path, guarded: GuardedReader
) -> None:
    try:
        guarded.read(write(tmp_path / "deep.docx", docx(DEEP, paragraph("below"))))
    except UnreadableError as error:
        assert str(error).endswith(".")
    assert guarded.read(write(tmp_path / "good.docx", LETTER))[0].title == "Moons of Saturn"


def test_nothing_outside_a_file_is_read(tmp_path: Path, guarded: GuardedReader) -> None:
    """External entities, and pictures and styles that are linked from elsewhere."""
    secret = write(tmp_path / "secret.txt", b"TOP-SECRET")
    entity = f'<!DOCTYPE d [<!ENTITY x SYSTEM "{secret.as_uri()}">]>'
    picture = '<w:p><w:r><w:drawing><a:blip r:link="rIdX"/></w:drawing></w:r></w:p>'
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/image"
    link = (
        f'<Relationship Id="rIdX" Type="{kind}" Target="{secret.as_uri()}" TargetMode="External"/>'
    )
    made = {
        "entity.docx": docx(paragraph("a &x; b"), doctype=entity),
        "link.docx": docx(paragraph("a b"), picture, relations=link),
        "entity.epub": epub("x", more={"OEBPS/c0.xhtml": f"{entity}<p>a &x; b</p>"}),
        "entity.xlsx": _with_shared_text(f"{entity}<sst><si><t>a &x; b</t></si></sst>"),
    }
    for name, content in made.items():
        try:
            documents = guarded.read(write(tmp_path / name, content))
        except UnreadableError as error:
            assert "TOP-SECRET" not in str(error)
        else:
            assert "TOP-SECRET" not in str(documents)


def _with_shared_text(content: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(xlsx(A=[("x", "y"), ("z", "w")]))) as book:
        files: dict[str, str | bytes] = {name: book.read(name) for name in book.namelist()}
    return archive({**files, "xl/sharedStrings.xml": content})


def test_a_sheet_that_claims_all_columns_is_read_by_its_cells(
    tmp_path: Path, guarded: GuardedReader
) -> None:
    with zipfile.ZipFile(io.BytesIO(xlsx(A=[("Moon", "km"), ("Titan", 5149)]))) as book:
        files: dict[str, str | bytes] = {name: book.read(name) for name in book.namelist()}
    name = "xl/worksheets/sheet1.xml"
    files[name] = bytes(files[name], "utf-8") if isinstance(files[name], str) else files[name]
    files[name] = files[name].replace(b'ref="A1:B2"', b'ref="A1:XFD1048576"')  # type: ignore[union-attr,arg-type]
    [sheet] = guarded.read(write(tmp_path / "a.xlsx", archive(files)))
    assert sheet.text == "Moon: Titan; km: 5149"


@pytest.mark.slow
def test_a_sheet_of_a_million_rows_is_read_within_the_limit_or_refused_with_the_way_out(
    tmp_path: Path,
) -> None:
    rows = b"".join(b'<row r="%d"><c><v>%d</v></c></row>' % (n, n) for n in range(1, 1_000_001))
    with zipfile.ZipFile(io.BytesIO(xlsx(A=[("x",)]))) as book:
        files: dict[str, str | bytes] = {name: book.read(name) for name in book.namelist()}
    space = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    sheet = b'<worksheet xmlns="%s"><sheetData>%s</sheetData></worksheet>' % (space, rows)
    path = write(tmp_path / "a.xlsx", archive({**files, "xl/worksheets/sheet1.xml": sheet}))
    reader = GuardedReader(seconds=3.0)
    try:
        with pytest.raises(
            UnreadableError, match=r"longer than 3 seconds .*save its sheets as CSV"
        ):
            reader.read(path)
    finally:
        reader.close()


def test_without_its_package_a_file_is_refused_and_a_folder_names_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    absent = {"mammoth", "openpyxl"}
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in absent else find(name)
    )
    word = write(tmp_path / "docs" / "a.docx", LETTER)
    with pytest.raises(
        MissingPackageError, match=r"markitdown is not installed .*for Word documents"
    ):
        list(read_corpus(word, problems=Problems(skip=True)))
    with pytest.raises(MissingPackageError, match="for Word documents: pip install"):
        list(read_corpus(word.parent))
    write(word.parent / "b.txt", b"plain")
    write(word.parent / "c.xlsx", b"")
    problems = Problems()
    assert [p.doc_id for p in read_corpus(word.parent, problems=problems)] == ["b.txt"]
    assert [warning.split(" is not installed")[0] for warning in problems.warnings] == [
        "1 .docx file left out of docs (a.docx): markitdown",
        "1 .xlsx file left out of docs (c.xlsx): openpyxl",
    ]


def test_bad_documents_are_bad_rows_and_the_others_are_kept(tmp_path: Path) -> None:
    write(tmp_path / "a.docx", OLE)
    write(tmp_path / "b.xlsx", xlsx(A=[("x", "y"), ("1", "2")]))
    problems = Problems(skip=True)
    assert [p.doc_id for p in read_corpus(tmp_path, problems=problems)] == ["b.xlsx#A"]
    [problem] = problems.first
    assert problem.message.startswith(f"{tmp_path}/a.docx is protected by a password")
    with pytest.raises(BadFileError, match=r"a\.docx is protected"):
        list(read_corpus(tmp_path))
