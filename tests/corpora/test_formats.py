"""Corpora of every format: their content, their detection, and bad rows."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest

from rallebench.core.errors import BadFileError, MissingPackageError, NotFoundError
from rallebench.core.sources import Problems, Source
from rallebench.core.types import Passage
from rallebench.corpora import CORPORA
from rallebench.corpora.reading import corpus_form, read_corpus


def file(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def pdf(*pages: str, title: str = "") -> bytes:
    """A PDF with one line of text on each page; none if the line is ''."""
    kids = [4 + 2 * number for number in range(len(pages))]
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{' '.join(f'{kid} 0 R' for kid in kids)}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for kid, text in zip(kids, pages):
        drawn = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else ""
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {kid + 1} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    objects.append(f"<< /Title ({title}) >>")
    body, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n".encode()
    rows = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    table = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{rows}"
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R >>\n"
    return body + f"{table}{trailer}startxref\n{len(body)}\n%%EOF\n".encode()


# ── each format ──────────────────────────────────────────────────────────────


def test_a_beir_folder_and_its_file_give_the_same_passages(tmp_path: Path) -> None:
    rows = [
        {"_id": "d1", "title": "Titan", "text": "A moon.", "metadata": {"url": "x"}},
        {"_id": "d2", "title": "", "text": "月亮", "metadata": {}},
    ]
    corpus = file(
        tmp_path / "scifact" / "corpus.jsonl", "".join(json.dumps(row) + "\n" for row in rows)
    )
    expected = [Passage("d1", "A moon.", "Titan", "d1"), Passage("d2", "月亮", "", "d2")]
    assert corpus_form(corpus.parent) == "beir"
    assert list(read_corpus(corpus.parent)) == expected
    assert list(read_corpus(corpus)) == list(read_corpus(corpus, form="beir")) == expected
    (tmp_path / "README.md").write_text("A set.")
    assert corpus_form(tmp_path) == "beir" and list(read_corpus(tmp_path)) == expected
    file(tmp_path / "other" / "corpus.jsonl", "")
    with pytest.raises(BadFileError, match=r"contains no corpus\.jsonl"):
        list(read_corpus(tmp_path, form="beir"))


def test_beirs_questions_are_never_passages(tmp_path: Path) -> None:
    for name in ("one", "two"):
        file(tmp_path / name / "corpus.jsonl", '{"_id": "d1", "text": "A moon."}\n')
        file(tmp_path / name / "queries.jsonl", '{"_id": "q1", "text": "Which moon?"}\n')
    with pytest.raises(BadFileError, match="is a folder without documents"):
        list(read_corpus(tmp_path))


def test_a_text_file_is_a_document_unless_it_holds_rows(tmp_path: Path) -> None:
    text = "\n\nThe Danube is long.\nIt ends\tin a sea.\n"
    assert list(read_corpus(file(tmp_path / "danube.txt", text))) == [
        Passage("danube.txt", text.strip(), "danube", "danube.txt")
    ]
    rows = file(tmp_path / "rows.txt", "\ufeffd1\tA moon.\tTitan\n")
    assert list(read_corpus(rows)) == [Passage("d1", "A moon.", "Titan", "d1")]
    lines = file(tmp_path / "lines.txt", '{"id": "d1", "text": "A moon."}\n')
    assert corpus_form(lines) == "tsv"


def test_nan_is_neither_id_nor_title_and_a_whole_number_has_no_point(tmp_path: Path) -> None:
    rows = (
        '{"id": 7.0, "title": NaN, "text": "A moon."}\n{"id": NaN, "_id": "x", "text": "A sea."}\n'
    )
    assert list(read_corpus(file(tmp_path / "c.jsonl", rows))) == [
        Passage("7", "A moon.", "", "7"),
        Passage("x", "A sea.", "", "x"),
    ]


READ: dict[str, tuple[str, str, list[Passage]]] = {
    "RaLLe's table with its header row": (
        "c.tsv",
        "id\ttext\ttitle\n1\tTitan is a moon.\tTitan\n2\tA city.\tParis, Texas\n",
        [
            Passage("1", "Titan is a moon.", "Titan", "1"),
            Passage("2", "A city.", "Paris, Texas", "2"),
        ],
    ),
    "a table without a header": ("c.tsv", "1\ta\tT\n", [Passage("1", "a", "T", "1")]),
    "columns in any order": (
        "c.tsv",
        "title\tid\ttext\nT\tx-9\ta\n",
        [Passage("x-9", "a", "T", "x-9")],
    ),
    "a quoted field": (
        "c.tsv",
        'a\t"say ""hi"" now"\tT\n',
        [Passage("a", 'say "hi" now', "T", "a")],
    ),
    "a quote that begins a text": (
        "c.tsv",
        'a\t"Hi" she said\tT\n',
        [Passage("a", '"Hi" she said', "T", "a")],
    ),
    "quotes on both sides": (
        "c.tsv",
        'a\t"Hi", he, "there"\tT\n',
        [Passage("a", '"Hi", he, "there"', "T", "a")],
    ),
    "no title": ("c.tsv", "a\tno title\n", [Passage("a", "no title", "", "a")]),
    "no text": ("c.tsv", "a\t\tempty text\n", [Passage("a", "", "empty text", "a")]),
    "a table from Windows": (
        "c.tsv",
        "\ufeffid\ttext\ttitle\r\na\tb\tc\r\n",
        [Passage("a", "b", "c", "a")],
    ),
    "page ids of JSON lines": (
        "c.jsonl",
        '{"id": 1, "text": "a", "title": "A", "wikipedia_id": 77}\n{"_id": "b", "text": "b"}\n',
        [Passage("1", "a", "A", "77"), Passage("b", "b", "", "b")],
    ),
    "Pyserini's name of the text": (
        "c.jsonl",
        '{"id": "1", "title": "T", "contents": "a moon", "url": "u"}\n',
        [Passage("1", "a moon", "T", "1")],
    ),
    "BARAG's name of the text": (
        "c.csv",
        "id,title,content\n1,T,a\n",
        [Passage("1", "a", "T", "1")],
    ),
    "fields over several lines": (
        "c.csv",
        'id,text,title\na,"one\n""two"", three",T\nb,four,\n',
        [Passage("a", 'one\n"two", three', "T", "a"), Passage("b", "four", "", "b")],
    ),
    "no id": (
        "c.csv",
        "title,text\nT,a\nU,b\n",
        [Passage("1", "a", "T", "1"), Passage("2", "b", "U", "2")],
    ),
    "other columns": ("c.csv", "url,Text,ID,page_id\nx,a,7,p\n", [Passage("7", "a", "", "p")]),
    "semicolons": ("c.csv", "id;text\n1;a, b\n", [Passage("1", "a, b", "", "1")]),
    "a CSV file from Windows": (
        "c.csv",
        "\ufeffid,text\r\n1,天\r\n\r\n",
        [Passage("1", "天", "", "1")],
    ),
}


@pytest.mark.parametrize("case", READ)
def test_rows_are_read_as_they_were_meant(case: str, tmp_path: Path) -> None:
    name, content, expected = READ[case]
    assert list(read_corpus(file(tmp_path / name, content))) == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "c.csv",
            "id,abstract\n1,a\n",
            "line 1 names the columns id, abstract, and none is 'text'",
        ),
        ("c.csv", "id,text\n1,a\n2\n", "line 3 has 1 fields where the header names 2"),
        ("c.csv", 'id,text\n1,a\n2,"b\nc\nd\n', "line 3 is not a CSV row .* must be closed"),
        ("c.csv", "id,text\n1,a\n1,b\n", "line 3 repeats the id '1' of line 2"),
        ("c.csv", "", "contains no passages"),
        ("c.csv", "id,text\n", "contains no passages"),
        ("c.tsv", "", "contains no passages"),
        ("c.tsv", "id\ttext\ttitle\n", "contains no passages"),
        ("c.tsv", "1\ttext\ttitle\n1\tother\ttitle\n", "line 2 repeats the id '1' of line 1"),
        ("c.tsv", "just one column\n", "line 1 has one column"),
        ("c.tsv", "1\ta\tb\nbroken", "line 2 has one column"),
        ("c.tsv", "\ta\tb\n", "line 1 has an empty id"),
        ("c.tsv", b"1\tb\xff\xfe\tc\n", "line 1 is not UTF-8"),
        ("c.tsv", "1\ta\0b\tc\n", "line 1 holds binary data"),
        ("c.tsv", "1\täöü\tc\n".encode("utf-16")[:-1], "line 1 holds bytes that are not UTF-16"),
        ("c.jsonl", '{"id": "1"}\n', "line 1 needs 'id' and 'text'; it has id"),
        ("c.jsonl", '{"id": "1", "text": "a"}\n{"id": "2", "te', "line 2 is not valid JSON"),
        ("c.jsonl", "[1]\n", "record 1 is not a JSON object"),
        ("c.jsonl", "[" * 100_000 + "\n", "record 1 is not valid JSON"),
    ],
)
def test_a_bad_file_is_refused_with_the_line(
    name: str, content: str | bytes, message: str, tmp_path: Path
) -> None:
    with pytest.raises(BadFileError, match=message):
        list(read_corpus(file(tmp_path / name, content)))


def test_without_a_map_the_id_is_the_page_and_a_map_may_lack_one(tmp_path: Path) -> None:
    path = file(tmp_path / "c.tsv", "1\ta\tA\n2\tb\tB\n")
    assert [p.page_id for p in read_corpus(path)] == ["1", "2"]
    assert [p.page_id for p in read_corpus(path, {"1": "x"})] == ["x", ""]


def test_a_folder_is_read_recursively_in_the_order_of_names_with_titles(tmp_path: Path) -> None:
    file(tmp_path / "b.md", "intro\n\n## The *moon* ##\n\nText.")
    file(tmp_path / "a" / "x.txt", "\ufeffPlain text.\r\nSecond line.\r\n")
    file(
        tmp_path / "c.html",
        "<html><head><title> On\n Titan </title></head><body><p>A<b>B</b></p><p>C&amp;D</p></body>",
    )
    file(tmp_path / "d.pdf", pdf("First page.", "Second page.", title="On paper"))
    file(tmp_path / ".hidden" / "y.txt", "not read")
    file(tmp_path / "image.png", b"\x89PNG")
    assert corpus_form(tmp_path) == "folder"
    assert list(read_corpus(tmp_path)) == [
        Passage("a/x.txt", "Plain text.\nSecond line.", "x", "a/x.txt"),
        Passage("b.md", "intro\n\n## The *moon* ##\n\nText.", "The *moon*", "b.md"),
        Passage("c.html", "AB\nC&D", "On Titan", "c.html"),
        Passage("d.pdf", "First page.\n\nSecond page.", "On paper", "d.pdf"),
    ]


@pytest.mark.parametrize(
    ("page", "title", "text"),
    [
        (
            "<h1>标题</h1><script>var x=1;</script><ul><li>one</li><li>two</li></ul>three<br>four<style>p{}</style>",
            "标题",
            "标题\none\ntwo\nthree\nfour",
        ),
        (
            '<meta charset="gb2312"><title>天气</title><p>今天下雨。</p>'.encode("gb2312"),
            "天气",
            "今天下雨。",
        ),
    ],
    ids=["scripts and neighbouring blocks", "an older Chinese encoding"],
)
def test_html_is_read_as_is_shown(page: str | bytes, title: str, text: str, tmp_path: Path) -> None:
    path = file(tmp_path / "p.html", page)
    assert list(read_corpus(path)) == [Passage("p.html", text, title, "p.html")]


def test_files_that_cannot_be_read_are_named_and_the_others_are_kept(tmp_path: Path) -> None:
    file(tmp_path / "a.txt", "good")
    file(tmp_path / "b.txt", "день и ночь".encode("koi8-r"))
    file(tmp_path / "c.pdf", pdf(""))
    file(tmp_path / "d.pdf", b"%PDF-1.4 no more")
    file(tmp_path / "e.txt", b"a\0b")
    problems = Problems(skip=True)
    assert [p.doc_id for p in read_corpus(tmp_path, problems=problems)] == ["a.txt"]
    said = [problem.message.removeprefix(f"{tmp_path}/") for problem in problems.first]
    assert [message.split(" (")[0] for message in said] == [
        "b.txt is in an encoding that is not recognised; name it, or save the file as UTF-8.",
        "c.pdf contains only pictures, no text; run OCR on it first.",
        "d.pdf is not a PDF that can be read",
        "e.txt contains binary data; a text file is needed.",
    ]
    with pytest.raises(BadFileError, match=r"b\.txt is in an encoding"):
        list(read_corpus(tmp_path))


def test_an_absent_package_is_one_sentence_even_where_bad_rows_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(MissingPackageError, match="pip install"):
        list(read_corpus(file(tmp_path / "p.pdf", "x"), problems=Problems(skip=True)))


def test_news_with_an_article_on_every_line_are_read_by_article_or_by_file(tmp_path: Path) -> None:
    file(
        tmp_path / "documents_dup_part_1_part_1", "[ 2023 ] ，正文：一。\n\n[ 2023 ] ，正文：二。\n"
    )
    file(tmp_path / "documents_hallu.txt_part_1", "三。\n")
    assert [(p.doc_id, p.text) for p in read_corpus(tmp_path, form="lines")] == [
        ("documents_dup_part_1_part_1:1", "[ 2023 ] ，正文：一。"),
        ("documents_dup_part_1_part_1:3", "[ 2023 ] ，正文：二。"),
        ("documents_hallu.txt_part_1:1", "三。"),
    ]
    parts = list(read_corpus(tmp_path, form="parts"))
    ids = [p.doc_id for p in parts]
    assert ids == ["documents_dup_part_1_part_1", "documents_hallu.txt_part_1"]
    assert parts[0].text.count("正文") == 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c.tsv.gz", "id\ttext\ttitle\n1\ta\tT\n"),
        ("c.jsonl.gz", '{"id": 1, "text": "a", "title": "T"}\n'),
        ("c.csv.gz", "id,text,title\n1,a,T\n"),
    ],
)
def test_a_gzipped_file_is_read_like_a_plain_one(name: str, content: str, tmp_path: Path) -> None:
    path = file(tmp_path / name, gzip.compress(content.encode()))
    assert list(read_corpus(path)) == [Passage("1", "a", "T", "1")]
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(BadFileError, match="damaged gzip file"):
        list(read_corpus(path))


@pytest.mark.parametrize("encoding", ["gb18030", "cp1252", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("form", ["tsv", "jsonl", "csv", "list", "folder", "lines"])
def test_text_in_the_usual_encodings_is_read_and_a_guess_is_told(
    form: str, encoding: str, tmp_path: Path
) -> None:
    text = "Titan est la seule lune à posséder une atmosphère dense; l’été y dure sept années."
    if encoding != "cp1252":
        text = "泰坦是土星最大的卫星，也是太阳系第二大的卫星。它有浓厚的大气。"
    rows = {
        "tsv": f"1\t{text}\tT\n",
        "jsonl": json.dumps({"id": 1, "text": text}, ensure_ascii=False) + "\n",
        "csv": f'id,text\n1,"{text}"\n',
        "list": json.dumps([{"id": 1, "text": text}], ensure_ascii=False),
    }
    name = {"list": "c.json", "folder": "c.txt", "lines": "c.txt"}.get(form, f"c.{form}")
    path = file(tmp_path / name, rows.get(form, text).encode(encoding))
    problems = Problems()
    form = form if form in ("folder", "lines") else ""
    assert [p.text for p in read_corpus(path, form=form, problems=problems)] == [text]
    read_as = {"gb18030": "GB18030 (GBK)", "cp1252": "Windows-1252"}.get(encoding, "UTF-16")
    told = f"1 file read as {read_as}, since it is not UTF-8: {name}. If letters look wrong, import again and name the encoding."
    assert problems.warnings == ([] if encoding == "utf-16" else [told])
    again = Source(path, encoding=encoding)
    assert [p.text for p in read_corpus(path, form=form, source=again)] == [text]
    assert again.problems.warnings == [] and again.done == again.total


def test_a_wrong_encoding_is_an_error_of_the_row_or_the_file(tmp_path: Path) -> None:
    rows = file(tmp_path / "c.tsv", b"1\tone\n" + "2\t泰坦\n".encode() + b"3\t\xff\n")
    source = Source(rows, Problems(skip=True), encoding="gb18030")
    assert {p.doc_id for p in read_corpus(rows, source=source)} >= {"1"}
    assert source.problems.first[-1].message.endswith(
        "line 3 holds bytes that are not GB18030 (GBK); name the right encoding."
    )
    document = file(
        tmp_path / "docs" / "a.txt", "一\xff".encode("latin-1", "replace") + b"\xff\xfe"
    )
    with pytest.raises(BadFileError, match=r"a\.txt holds bytes that are not GB18030"):
        list(read_corpus(document, source=Source(document, encoding="gb18030")))
    listed = file(tmp_path / "c.json", b'[{"id": 1, "text": "\xff"}]')
    with pytest.raises(BadFileError, match="record 1 holds bytes that are not GB18030"):
        list(read_corpus(listed, source=Source(listed, encoding="gb18030")))


def test_in_a_folder_the_named_encoding_is_that_of_the_files_that_declare_none(
    tmp_path: Path,
) -> None:
    file(tmp_path / "a.txt", "день".encode("koi8-r"))
    file(tmp_path / "b.txt", "ночь")
    file(tmp_path / "c.txt", "утро".encode("utf-16"))
    file(tmp_path / "d.html", '<meta charset="windows-1251"><p>вечер'.encode("cp1251"))
    source = Source(tmp_path, encoding="koi8-r")
    texts = [p.text for p in read_corpus(tmp_path, source=source)]
    assert texts == ["день", "ночь", "утро", "вечер"] and source.problems.warnings == []


def test_files_in_one_guessed_encoding_share_a_sentence(tmp_path: Path) -> None:
    for name in "abcdefghij":
        file(tmp_path / f"{name}.txt", "Genève, café".encode("cp1252"))
    problems = Problems()
    assert len(list(read_corpus(tmp_path, problems=problems))) == 10
    [sentence] = problems.warnings
    assert sentence.startswith("10 files read as Windows-1252, since they are not UTF-8: a.txt, ")
    assert "h.txt, …." in sentence


# ── all formats ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("c.tsv", "tsv"),
        ("c", "tsv"),
        ("c.txt", "tsv"),
        ("C.JSONL", "jsonl"),
        ("c.ndjson", "jsonl"),
        ("c.csv", "csv"),
        ("c.pdf", "folder"),
        ("c.md", "folder"),
    ],
)
def test_a_file_is_recognised_by_its_name(name: str, form: str, tmp_path: Path) -> None:
    assert corpus_form(tmp_path / name) == form


def test_an_unknown_folder_format_or_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match="is a folder without documents"):
        list(read_corpus(tmp_path))
    with pytest.raises(NotFoundError, match=r"no corpus format 'orc'.*Known: arrow, beir, csv"):
        list(read_corpus(tmp_path, form="orc"))
    with pytest.raises(BadFileError, match="does not exist"):
        list(read_corpus(tmp_path / "none.tsv"))


def test_every_format_says_what_it_is() -> None:
    known = {"beir", "csv", "folder", "imported", "jsonl", "lines", "parts", "tsv"}
    assert known | {"arrow", "parquet"} == set(CORPORA.names())
    assert all(CORPORA.entry(name).about.endswith(".") for name in CORPORA.names())


BAD_TABLE = b"id\ttext\ttitle\n1\tone\tT\nbroken\n2\tcaf\x81\tT\n\tno id\tT\n3\ta\0b\tT\n1\tagain\tT\n4\tfour\n"


def test_bad_rows_are_skipped_counted_and_kept_with_their_lines_if_asked(tmp_path: Path) -> None:
    problems = Problems(skip=True)
    path = file(tmp_path / "c.tsv", BAD_TABLE)
    assert [p.doc_id for p in read_corpus(path, problems=problems)] == ["1", "4"]
    assert problems.count == 5
    assert [problem.line for problem in problems.first] == [3, 4, 5, 6, 7]
    assert (
        problems.first[4].message
        == f"{path}, line 7 repeats the id '1' of line 2; ids must be unique."
    )


def test_the_first_twenty_bad_rows_are_kept_and_all_are_counted(tmp_path: Path) -> None:
    problems = Problems(skip=True)
    path = file(tmp_path / "c.tsv", "".join(f"bad\n{n}\ttext\n" for n in range(500)))
    assert len(list(read_corpus(path, problems=problems))) == 500
    assert (problems.count, [p.line for p in problems.first]) == (500, [*range(1, 41, 2)])


def test_a_corpus_of_bad_rows_alone_is_refused_naming_the_first(tmp_path: Path) -> None:
    path = file(tmp_path / "c.tsv", "a\nb\n")
    sentence = r"contains no passages, only 2 bad rows; the first: .*line 1 has one column"
    with pytest.raises(BadFileError, match=sentence):
        list(read_corpus(path, problems=Problems(skip=True)))


def test_a_line_of_a_hundred_megabytes_is_a_bad_row_that_is_not_held(tmp_path: Path) -> None:
    path = tmp_path / "huge.tsv"
    with open(path, "wb") as handle:
        handle.write(b"1\ta\tb\n2\t")
        handle.seek(100 * 2**20)
        handle.write(b"\n3\tc\td\n")
    problems = Problems(skip=True)
    assert [p.doc_id for p in read_corpus(path, problems=problems)] == ["1", "3"]
    assert [problem.line for problem in problems.first] == [2]
    with pytest.raises(BadFileError, match="line 2 is longer than 64 MB"):
        list(read_corpus(path))


STRANGE = {
    "right to left": "שלום עולם، مرحبا بالعالم",
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 \U0001f9ff",
    "marks and separators": "a\u0301\u200f\u2028b\u00a0c\u3000d",
    "10 MB": "moon " * 2_000_000,
}


@pytest.mark.parametrize("case", STRANGE)
@pytest.mark.parametrize("form", ["tsv", "jsonl", "csv", "folder"])
def test_strange_text_comes_through_as_it_is(case: str, form: str, tmp_path: Path) -> None:
    text = STRANGE[case].strip()
    content = {
        "tsv": f"1\t{text}\tT\n",
        "jsonl": json.dumps({"id": 1, "text": text}) + "\n",
        "csv": f'id,text\n1,"{text}"\n',
        "folder": text,
    }[form]
    path = file(tmp_path / ("1.txt" if form == "folder" else f"c.{form}"), content)
    [passage] = read_corpus(path, form=form)
    assert passage.text == text


def test_an_empty_text_is_a_passage_unless_that_is_refused(tmp_path: Path) -> None:
    path = file(tmp_path / "c.tsv", "1\t\tT\n2\ttwo\n")
    assert [p.text for p in read_corpus(path)] == ["", "two"]
    with pytest.raises(BadFileError, match=r"line 1 has no text \(id '1'\)"):
        list(read_corpus(path, problems=Problems(refuse_empty=True)))


def test_how_many_bytes_are_read_can_be_followed(tmp_path: Path) -> None:
    path = file(tmp_path / "c.tsv", "".join(f"{n}\ttext {n}\tT\n" for n in range(20_000)))
    source = Source(path)
    seen = [source.done for _ in read_corpus(path, source=source)]
    assert source.total == path.stat().st_size == seen[-1]
    assert seen == sorted(seen)
    assert len(set(seen)) > 3


def test_only_as_much_is_read_as_is_asked_for(tmp_path: Path) -> None:
    path = file(tmp_path / "c.tsv", "".join(f"{n}\ttext\n" for n in range(1000)) + "broken\n")
    passages = read_corpus(path)
    assert next(passages).doc_id == "0"
    passages.close()
