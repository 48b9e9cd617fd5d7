"""Text of a corpus is read correctly, or refused: columns, titles, elements of HTML, collections, encodings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rallebench.core.errors import BadFileError
from rallebench.core.events import complete
from rallebench.core.sources import Problems, Source
from rallebench.core.types import Passage
from rallebench.corpora import CORPORA
from rallebench.corpora._documents import UnreadableError, decode, markdown_title
from rallebench.corpora._html import BLOCKS, PARTING, read_page
from rallebench.corpora.imported import import_corpus
from rallebench.corpora.page_names import find_pages
from rallebench.corpora.reading import corpus_form, read_corpus


def file(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# columns without a header

MARCO = (
    "D1\thttps://example.org/a\tTitle A\tThe body about bridges.\n"
    "D2\thttps://example.org/b\tTitle B\tThe body about chapels.\n"
)


def test_ms_marcos_documents_are_read_and_known_by_their_address(tmp_path: Path) -> None:
    path = file(tmp_path / "docs.tsv", MARCO)
    assert list(read_corpus(path)) == [
        Passage("D1", "The body about bridges.", "Title A", "D1"),
        Passage("D2", "The body about chapels.", "Title B", "D2"),
    ]
    complete(import_corpus(tmp_path / "corpora", "docs", path))
    pages = find_pages(tmp_path / "corpora", ["http://www.example.org/b/"])
    assert pages == {"docs": {"http://www.example.org/b/": ["D2"]}}


LONG = "A text that is as long as texts are. " * 5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\ttext\ttitle\t2020\n", "has 4 columns and no header row"),
        ("1\tT\tx\ty\tz\n", "has 5 columns and no header row"),
        ("1\thttps://e.org/a\n", "has web addresses in its second column"),
        ("1\thttps://e.org/a\tText\n2\twww.e.org/b\tText\n", "has web addresses in its second"),
        (f"1\tA title\t{LONG}\n2\tOther\t{LONG}\n", "has its long texts in the third column"),
        ("docno\ttext\ttitle\n1\ta\tA\n", "names the columns docno, text, title, and none is 'id'"),
        ("docno\ttext\n1\ta\n", "names the columns docno, text, and none is 'id'"),
        (
            "id\ttitle\tabstract\n1\ta\tb\n",
            "names the columns id, title, abstract, and none is 'text'",
        ),
        ("1\ta\tA\n2\tb\tB\tmore\n", "line 2 has 4 columns instead of 3"),
        ("id\ttext\n1\ta\tb\n", "line 2 has 3 columns instead of 2"),
    ],
)
def test_columns_that_are_not_id_text_and_title_are_refused(
    content: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(BadFileError, match=message):
        list(read_corpus(file(tmp_path / "c.tsv", content)))


def test_a_header_may_name_contents_pages_and_addresses(tmp_path: Path) -> None:
    text = "docid\turl\tcontents\tpage_id\n1\thttps://e.org\ta moon\tp1\t\n"
    assert list(read_corpus(file(tmp_path / "c.tsv", text))) == [Passage("1", "a moon", "", "p1")]


def test_a_header_may_begin_with_a_number_sign(tmp_path: Path) -> None:
    path = file(tmp_path / "c.tsv", "#id\ttext\n1\ta moon\n")
    assert list(read_corpus(path)) == [Passage("1", "a moon", "", "1")]


@pytest.mark.parametrize("field", [{"title": ["A"]}, {"title": True}, {"id": True}])
def test_a_title_or_id_that_is_no_text_is_refused(field: dict[str, object], tmp_path: Path) -> None:
    row = json.dumps({"id": "1", "text": "a", **field})
    with pytest.raises(BadFileError, match="must be text"):
        list(read_corpus(file(tmp_path / "c.jsonl", row)))


def test_short_titles_and_texts_stay_in_their_columns(tmp_path: Path) -> None:
    text = f"1\tshort\tA longer title\n2\t{LONG}\tTitle\n"
    assert [p.title for p in read_corpus(file(tmp_path / "c.tsv", text))] == [
        "A longer title",
        "Title",
    ]


# titles


@pytest.mark.parametrize(
    ("contents", "title", "text"),
    [
        ('"Chapel"\nThe ceiling.', "Chapel", "The ceiling."),
        ('"""Heroes"" (song)"\nA song.', '"Heroes" (song)', "A song."),
        ("Chapel\nThe ceiling.", "", "Chapel\nThe ceiling."),
        ('"No," he said\nand left.', "", '"No," he said\nand left.'),
        ('"Only a quotation."', "", '"Only a quotation."'),
    ],
)
def test_a_quoted_first_line_of_contents_is_the_title(
    contents: str, title: str, text: str, tmp_path: Path
) -> None:
    path = file(tmp_path / "c.jsonl", json.dumps({"id": "1", "contents": contents}) + "\n")
    assert list(read_corpus(path)) == [Passage("1", text, title, "1")]
    row = {"id": "1", "title": "Own", "contents": contents}
    path = file(tmp_path / "d.jsonl", json.dumps(row) + "\n")
    assert list(read_corpus(path)) == [Passage("1", contents, "Own", "1")]
    path = file(tmp_path / "e.jsonl", json.dumps({"id": "1", "text": contents}) + "\n")
    assert list(read_corpus(path)) == [Passage("1", contents, "", "1")]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("```python\n# a comment\nx = 1\n```\n\n# Titan\n", "Titan"),
        ("~~~\n# a comment\n~~~\n\n## Titan\n", "Titan"),
        ("    # indented code\n\n# Titan\n", "Titan"),
        ("```\n# a comment\n", ""),
        ("<!--\n# a comment\n-->\n\n# Titan\n", "Titan"),
        ("> # quoted\n\n# Titan\n", "Titan"),
        ("#hashtag\n\n# Titan ##\n", "Titan"),
        ("# Titan \\#\n", "Titan \\#"),
        ("# C#\n", "C#"),
        ("The moon\n========\n\n# Titan\n", "The moon"),
        ("Titan\n-----\n", "Titan"),
        ("A paragraph\nof two lines\n---\n\n# Titan\n", "Titan"),
        ("---\ntitle: Titan\ntags: [a]\n---\n# Other\n", "Titan"),
        ("---\ntitle: 'Titan: a moon'  # why\n---\n", "Titan: a moon"),
        ("---\nTitle: 2001\n...\n# Other\n", "2001"),
        ("---\nlayout: post\n---\n\n# Titan\n", "Titan"),
        ("---\ntitle: [a, b]\n---\n# Titan\n", "Titan"),
        ("---\ntitle: {\n---\n# Titan\n", "Titan"),
        ('+++\ntitle = "Titan \\"VI\\""\ndraft = true\n+++\n# Other\n', 'Titan "VI"'),
        ("---\n\nText\n\n---\n\n# Titan\n", "Titan"),
        ("just text\n", ""),
        ("", ""),
    ],
)
def test_the_title_of_markdown_is_its_front_matter_or_its_first_heading(
    text: str, title: str
) -> None:
    assert markdown_title(text) == title


# HTML


@pytest.mark.parametrize("tag", sorted((BLOCKS | PARTING) - {"head", "html", "body", "frameset"}))
def test_elements_that_part_words_part_them(tag: str) -> None:
    page = f"<title>t</title><p>River<{tag}>Danube</{tag}>Ulm"
    assert "".join(read_page(page.encode()).text.split()) == "RiverDanubeUlm"
    assert read_page(page.encode()).text.split() == ["River", "Danube", "Ulm"]


@pytest.mark.parametrize(
    "tag", ["b", "i", "em", "strong", "span", "a", "sup", "sub", "mark", "code", "wbr"]
)
def test_elements_within_a_word_do_not_part_it(tag: str) -> None:
    assert read_page(f"<p>H<{tag}>2</{tag}>O".encode()).text == "H2O"


def test_a_row_of_a_table_is_a_line_with_its_cells() -> None:
    page = b"<table><tr><th>River<th>Mouth<tr><td>Danube</td><td>Black Sea</td></tr></table>"
    assert read_page(page).text == "River Mouth\nDanube Black Sea"


def test_a_heading_over_two_lines_is_a_title_with_its_words_parted() -> None:
    assert read_page(b"<h1>The <b>Black</b><br>Sea</h1><p>It is deep.").title == "The Black Sea"


# encodings


def test_text_without_a_declared_encoding_is_guessed_and_other_bytes_are_refused() -> None:
    assert decode("Café Genève".encode("cp1252")) == ("Café Genève", "cp1252")
    assert decode("“Quoted” text".encode("cp1252")) == ("“Quoted” text", "cp1252")
    assert decode("月亮是卫星".encode("gbk")) == ("月亮是卫星", "gb18030")
    assert decode("月".encode("gb2312"), "gb2312") == ("月", "")
    assert decode("镕".encode("gbk"), "gb2312") == ("镕", "")
    assert decode("月亮".encode("utf-16")) == ("月亮", "")
    for text, encoding in (("день и ночь", "cp1251"), ("つきはまるい", "shift-jis")):
        with pytest.raises(UnreadableError, match="in an encoding that is not recognised; name it"):
            decode(text.encode(encoding))
        assert decode(text.encode(encoding), named=encoding) == (text, "")
    for cut, name in ((b"\xff\xfe\x00\xd8 x", "UTF-16"), (b"\xef\xbb\xbfa\xff", "UTF-8")):
        with pytest.raises(UnreadableError, match=f"begins as {name} text but is not valid"):
            decode(cut)
    with pytest.raises(UnreadableError, match="binary"):
        decode(b"PK\x03\x04\0\0")


# JSON


def test_a_json_list_is_a_corpus(tmp_path: Path) -> None:
    path = file(tmp_path / "c.json", json.dumps([{"id": "1", "title": "A", "text": "b"}], indent=1))
    assert corpus_form(path) == "jsonl" and list(read_corpus(path)) == [Passage("1", "b", "A", "1")]


def test_a_folder_of_json_files_is_read_file_by_file(tmp_path: Path) -> None:
    folder = tmp_path / "collection"
    file(folder / "a.json", json.dumps({"id": "1", "contents": "one"}, indent=1))
    file(folder / "b.jsonl", '{"id": "2", "contents": "two"}\n{"id": "3", "contents": "three"}\n')
    file(folder / "c.json", '[{"id": "4", "contents": "four"}]')
    file(folder / "README.md", "# About it\n")
    assert corpus_form(folder) == "jsonl"
    assert [(p.doc_id, p.text) for p in read_corpus(folder)] == [
        ("1", "one"),
        ("2", "two"),
        ("3", "three"),
        ("4", "four"),
    ]
    file(folder / "d.jsonl", '{"id": "3", "contents": "again"}\n')
    with pytest.raises(BadFileError, match="row 5 repeats the id '3' of line 3"):
        list(read_corpus(folder))


def test_a_damaged_file_of_a_folder_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "collection"
    file(folder / "a.jsonl.gz", b"\x1f\x8b damaged")
    file(folder / "b.jsonl", '{"id": "2", "contents": "two"}\n{"id": \n')
    problems = Problems(skip=True)
    passages = list(read_corpus(folder, form="jsonl", problems=problems))
    assert [p.doc_id for p in passages] == ["2"] and problems.count == 2
    assert "a.jsonl.gz is a damaged gzip file" in problems.first[0].message
    assert "b.jsonl, line 2 is not valid JSON" in problems.first[1].message


def test_documents_beside_json_files_stay_documents(tmp_path: Path) -> None:
    file(tmp_path / "docs" / "titan.md", "# Titan\n")
    file(tmp_path / "docs" / "data.jsonl", '{"id": "2", "contents": "two"}\n')
    problems = Problems()
    passages = list(read_corpus(tmp_path / "docs", problems=problems))
    assert [p.doc_id for p in passages] == ["titan.md"]
    assert "1 .jsonl (data.jsonl)" in problems.warnings[0]


@pytest.mark.parametrize(
    ("name", "form", "content"),
    [
        ("c.txt", "jsonl", '{"id": "1", "text": "a moon"}\n'),
        ("c.csv", "tsv", "1\ta moon\t\n"),
        ("c.json", "csv", "id,text\n1,a moon\n"),
        ("folder/part-1", "tsv", "1\ta moon\t\n"),
        ("folder/part.txt", "csv", "id,text\n1,a moon\n"),
        ("folder/part.md", "jsonl", '{"id": "1", "text": "a moon"}\n'),
    ],
)
def test_a_format_given_by_hand_is_obeyed_whatever_the_ending(
    name: str, form: str, content: str, tmp_path: Path
) -> None:
    path = file(tmp_path / name, content)
    source = path.parent if "/" in name else path
    assert [(p.doc_id, p.text) for p in read_corpus(source, form=form)] == [("1", "a moon")]


def test_a_file_that_is_named_as_a_document_is_one_whatever_its_ending(tmp_path: Path) -> None:
    path = file(tmp_path / "notes.adoc", "= Titan\n")
    assert list(read_corpus(path, form="folder")) == [
        Passage("notes.adoc", "= Titan", "notes", "notes.adoc")
    ]


def test_an_office_document_is_refused_by_what_it_is(tmp_path: Path) -> None:
    path = file(tmp_path / "letter.pages", b"PK\x03\x04 packed\tx")
    with pytest.raises(BadFileError, match="is packed, as archives and Office documents are"):
        list(read_corpus(path))


def test_files_beside_rows_and_links_that_lead_nowhere_are_named(tmp_path: Path) -> None:
    file(tmp_path / "rows" / "a.jsonl", '{"id": "1", "text": "x"}\n')
    file(tmp_path / "rows" / "README.md", "# Rows")
    file(tmp_path / "rows" / "b.csv", "id,text\n2,y\n")
    source = Source(tmp_path / "rows", Problems())
    assert len(list(CORPORA["jsonl"](source))) == 1
    assert source.problems.warnings == [
        "2 files of other kinds left out of rows: 1 .csv, 1 .md (README.md, b.csv). Only .jsonl, .ndjson, .json files are read."
    ]
    file(tmp_path / "docs" / "a.txt", "alpha")
    (tmp_path / "docs" / "b.txt").symlink_to(tmp_path / "lost.txt")
    (tmp_path / "docs" / "more").symlink_to(tmp_path / "rows")
    source = Source(tmp_path / "docs", Problems())
    assert len(list(CORPORA["folder"](source))) == 1
    (warning,) = source.problems.warnings
    assert "2 link to no file (b.txt, more)" in warning
