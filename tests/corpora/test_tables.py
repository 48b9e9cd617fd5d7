"""Corpus files: what is read, and what is refused with the line that is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.types import Passage
from rallebench.corpora.chunking import Chunking, chunk, spans
from rallebench.corpora.page_maps import read_page_map
from rallebench.corpora.reading import read_corpus
from rallebench.corpora.store import PassageStore, write_store


def file(tmp_path: Path, content: str | bytes, name: str = "corpus.tsv") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_ralles_table_with_its_header_row_is_read(tmp_path: Path) -> None:
    path = file(
        tmp_path, "id\ttext\ttitle\n1\tTitan is a moon.\tTitan\n2\tParis is a city.\tParis, Texas\n"
    )
    assert list(read_corpus(path, {"1": "p1", "2": "p2"})) == [
        Passage("1", "Titan is a moon.", "Titan", "p1"),
        Passage("2", "Paris is a city.", "Paris, Texas", "p2"),
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("1\ttext\ttitle\n", Passage("1", "text", "title", "1")),
        ("title\tid\ttext\nT\tx-9\tbody\n", Passage("x-9", "body", "T", "x-9")),
        ('a\t"say ""hi"" now"\tT\n', Passage("a", 'say "hi" now', "T", "a")),
        ('a\t"Hi" she said\tT\n', Passage("a", '"Hi" she said', "T", "a")),
        ('a\t"Hi", she said, "there"\tT\n', Passage("a", '"Hi", she said, "there"', "T", "a")),
        ("a\tno title\n", Passage("a", "no title", "", "a")),
        ("\ufeffid\ttext\ttitle\r\na\tb\tc\r\n", Passage("a", "b", "c", "a")),
        ("a\t\tempty text\n", Passage("a", "", "empty text", "a")),
    ],
)
def test_rows_are_read_as_they_were_meant(tmp_path: Path, content: str, expected: Passage) -> None:
    assert list(read_corpus(file(tmp_path, content))) == [expected]


def test_without_a_map_the_passage_id_is_the_page_id_and_a_map_that_lacks_it_gives_none(
    tmp_path: Path,
) -> None:
    path = file(tmp_path, "1\ta\tA\n2\tb\tB\n")
    assert [p.page_id for p in read_corpus(path)] == ["1", "2"]
    assert [p.page_id for p in read_corpus(path, {"1": "x"})] == ["x", ""]


def test_jsonl_keeps_its_own_page_ids(tmp_path: Path) -> None:
    rows = [{"id": 1, "text": "a", "title": "A", "wikipedia_id": 77}, {"_id": "b", "text": "b"}]
    path = file(tmp_path, "".join(json.dumps(r) + "\n" for r in rows), "c.jsonl")
    assert list(read_corpus(path)) == [Passage("1", "a", "A", "77"), Passage("b", "b", "", "b")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no passages"),
        (b"id\ttext\ttitle\n", "holds no passages"),
        (b"1\ttext\ttitle\n1\tother\ttitle\n", "line 2 repeats the id '1' of line 1"),
        (b"just one column\n", "line 1 has one column"),
        (b"1\ta\tb\nbroken", "line 2 has one column"),
        (b"\ta\tb\n", "line 1 has an empty id"),
        (b"1\tb\xff\xfe\tc\n", "line 1 is not UTF-8"),
        (b"1\ta\0b\tc\n", "line 1 holds binary data"),
        ("1\täöü\tc\n".encode("utf-16"), "line 1"),
    ],
)
def test_a_bad_table_is_refused_with_the_line(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(BadFileError, match=message):
        list(read_corpus(file(tmp_path, content)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"id": "1"}\n', "line 1 needs 'id' and 'text'; it has id"),
        ('{"id": "1", "text": "a"}\n{"id": "2", "te', "line 2 is not valid JSON"),
        ("[1]\n", "line 1 is not a JSON object"),
        ("[" * 100_000 + "\n", "line 1 is not valid JSON"),
    ],
)
def test_bad_json_lines_are_refused_with_the_line(
    tmp_path: Path, content: str, message: str
) -> None:
    with pytest.raises(BadFileError, match=message):
        list(read_corpus(file(tmp_path, content, "c.jsonl")))


def test_a_line_of_a_hundred_megabytes_is_refused_without_being_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "huge.tsv"
    with open(path, "wb") as handle:
        handle.write(b"1\ta\tb\n2\t")
        handle.seek(100 * 2**20)
        handle.write(b"x")
    with pytest.raises(BadFileError, match="line 2 is longer than 64 MB"):
        list(read_corpus(path))


@pytest.mark.parametrize("content", ["[1]", '{"1": [2]}', "{", ""])
def test_a_bad_page_map_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(BadFileError, match=r"map\.json"):
        read_page_map(file(tmp_path, content, "map.json"))


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match="does not exist"):
        list(read_corpus(tmp_path / "none.tsv"))


# ── chunks ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("unit", ["words", "tokens", "characters"])
@pytest.mark.parametrize(("size", "overlap"), [(1, 0), (3, 0), (3, 2), (7, 3), (1000, 0)])
def test_chunks_cover_the_text_in_order_and_keep_their_size(
    unit: str, size: int, overlap: int
) -> None:
    text = "One two, three (four) 五六七 eight!  Nine\nten."
    cut = spans(text, Chunking(size, overlap, unit))  # type: ignore[arg-type]
    covered = set().union(*(range(a, b) for a, b in cut))
    assert {i for i, c in enumerate(text) if not c.isspace()} <= covered
    assert cut == sorted(cut)
    if unit == "words":
        assert all(len(text[a:b].split()) <= size for a, b in cut)
    if unit == "characters":
        assert all(b - a <= size for a, b in cut)


def test_neighbouring_chunks_share_exactly_the_overlap() -> None:
    words = [f"w{i}" for i in range(20)]
    text = " ".join(words)
    parts = [text[a:b].split() for a, b in spans(text, Chunking(6, 2, "words"))]
    assert all(left[-2:] == right[:2] for left, right in zip(parts, parts[1:]))


def test_a_cut_document_keeps_title_and_page_and_numbers_its_chunks() -> None:
    document = Passage("d", "one two three", "T", "p")
    assert [p for p, _ in chunk([document], Chunking(2))] == [
        Passage("d#0", "one two", "T", "p"),
        Passage("d#1", "three", "T", "p"),
    ]
    assert [p for p, _ in chunk([document], Chunking(3))] == [document]


@pytest.mark.parametrize(
    ("size", "overlap", "unit"),
    [(0, 0, "words"), (3, 3, "words"), (3, -1, "words"), (3, 0, "pages")],
)
def test_impossible_chunking_is_refused(size: int, overlap: int, unit: str) -> None:
    with pytest.raises(UsageError, match="chunk"):
        Chunking(size, overlap, unit)  # type: ignore[arg-type]


# ── the store ────────────────────────────────────────────────────────────────


def test_the_store_gives_back_every_passage_by_row(tmp_path: Path) -> None:
    passages = [
        Passage(str(i), f"text {i} \u2028 \U0001f600", f"title {i}", f"p{i}") for i in range(50)
    ]
    count, sha = write_store(tmp_path, passages)
    store = PassageStore(tmp_path)
    assert (count, len(store), list(store)) == (50, 50, passages)
    assert store[17] == passages[17]
    store.close()
    (tmp_path / "b").mkdir()
    assert write_store(tmp_path / "b", [*passages[:-1], Passage("49", "changed")])[1] != sha


def test_a_store_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    write_store(tmp_path, [Passage("1", "a"), Passage("2", "b")])
    data = (tmp_path / "passages.jsonl").read_bytes()
    (tmp_path / "passages.jsonl").write_bytes(data[:-3])
    with pytest.raises(BadFileError, match="build the index again"):
        PassageStore(tmp_path)
