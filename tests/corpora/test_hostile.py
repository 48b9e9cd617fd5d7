"""Files that would exhaust the machine, made on purpose or by accident: each is refused within its limits, and other files
are read."""

from __future__ import annotations

import gzip
import os
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from rallebench.core import sources, streams
from rallebench.core.errors import BadFileError
from rallebench.core.sources import Problems
from rallebench.corpora import _guarded, _html
from rallebench.corpora._documents import UnreadableError
from rallebench.corpora._guarded import GuardedReader
from rallebench.corpora._html import read_page
from rallebench.corpora.reading import read_corpus


def pdf(content: bytes, pages: int = 1) -> bytes:
    """A PDF of ``pages`` pages that all show ``content``, a packed stream of PDF operators."""
    packed = zlib.compress(content)
    kids = " ".join(f"{n} 0 R" for n in range(5, 5 + pages))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {pages}>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(packed), packed),
        *[b"<</Type/Page/Parent 2 0 R/Resources<</Font<</F1 3 0 R>>>>/Contents 4 0 R>>"] * pages,
    ]
    body, places = b"%PDF-1.4\n", b""
    for number, content in enumerate(objects, 1):
        places += b"%010d 00000 n \n" % len(body)
        body += b"%d 0 obj%s endobj\n" % (number, content)
    size = len(objects) + 1
    head = b"xref\n0 %d\n0000000000 65535 f \n" % size
    table = head + b"%strailer<</Root 1 0 R/Size %d>>\n" % (places, size)
    return body + table + b"startxref\n%d\n%%%%EOF" % len(body)


WORDS = b"BT /F1 12 Tf (Saturn has rings.) Tj ET\n"


def lines_run(call: Callable[[], object]) -> int:
    """Number of lines of Python that ``call`` runs: its work, independent of the load of the machine."""
    count = 0

    def trace(frame: object, event: str, arg: object) -> object:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        call()
    finally:
        sys.settrace(before)
    return count


PAGES = {
    "nested": ("<div>", "</div>"),
    "left open": ("<b>", ""),
    "titles": ("<title>", ""),
    "hidden": ("<svg>", "</svg>"),
    "quotes": ('<a title="', ""),
    "comments": ("<!--", ""),
    "signs": ("<", ""),
    "scripts": ("<script>", ""),
}


@pytest.mark.parametrize("kind", PAGES)
def test_four_times_as_much_html_is_four_times_as_much_work(kind: str) -> None:
    first, last = PAGES[kind]
    pages = [(first * n + "text" + last * n).encode() for n in (500, 2000)]
    quarter, whole = (lines_run(lambda page=page: read_page(page)) for page in pages)
    assert whole < 4.2 * quarter


@pytest.mark.parametrize("kind", PAGES)
def test_html_looks_for_what_is_never_closed_only_once(kind: str) -> None:
    """Searches run in C, which a count of lines misses; quadratic work would take 16 times the processor time."""
    first, last = PAGES[kind]
    pages = [(first * n + "text" + last * n).encode() for n in (10_000, 40_000)]
    quarter, whole = (min(_processor_seconds(page) for _ in range(3)) for page in pages)
    assert whole < 8 * quarter + 0.02


def _processor_seconds(page: bytes) -> float:
    started = time.process_time()
    read_page(page)
    return time.process_time() - started


def test_40000_nested_tags_keep_their_text() -> None:
    assert read_page(b"<div>" * 40_000 + b"deep" + b"</div>" * 40_000).text == "deep"


def test_html_beyond_its_limits_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnreadableError, match=r"more than 16 MB; divide it"):
        read_page(b"x" * (_html.MAX_BYTES + 1))
    monkeypatch.setattr(_html, "SECONDS", 0.0)
    with pytest.raises(UnreadableError, match=r"takes longer than 0 seconds to read; divide it"):
        read_page(b"<b>" * 10_000)


@pytest.mark.slow
def test_a_pdf_that_takes_too_long_is_refused_and_the_next_one_is_read(tmp_path: Path) -> None:
    slow, good = tmp_path / "slow.pdf", tmp_path / "good.pdf"
    slow.write_bytes(pdf(WORDS * 100_000, pages=1000))
    good.write_bytes(pdf(WORDS))
    reader = GuardedReader(seconds=1.5)
    try:
        with pytest.raises(
            UnreadableError, match=r"takes longer than 1\.5 seconds to read; divide it"
        ):
            reader.read(slow)
        assert reader.read(good)[0].text == "Saturn has rings."
    finally:
        reader.close()


@pytest.mark.slow
def test_pdfs_that_unpack_to_gigabytes_or_say_too_much_are_that_files_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf(b"\0" * 2**27))
    (tmp_path / "b.pdf").write_bytes(pdf(WORDS))
    (tmp_path / "c.txt").write_text("good")
    problems = Problems(skip=True)
    assert [p.doc_id for p in read_corpus(tmp_path, problems=problems)] == ["b.pdf", "c.txt"]
    assert [problem.message.split(" (")[0] for problem in problems.first] == [
        f"{tmp_path}/a.pdf is not a PDF that can be read"
    ]
    monkeypatch.setattr(_guarded, "CHARACTERS", 10)
    assert "more than" in _guarded._read(tmp_path / "b.pdf")["error"]


@pytest.mark.skipif(os.name != "posix", reason="the alarm is the system's")
def test_the_child_that_reads_pdfs_ends_by_itself_where_nobody_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "slow.pdf"
    path.write_bytes(pdf(WORDS * 100_000, pages=1000))
    child = _guarded._start()
    with child:
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(f'["{path}", -0.5]\n'.encode())
        child.stdin.flush()
        assert child.stdout.readline() == b""
        assert child.wait(10) == -14


def test_a_gzip_bomb_is_refused_by_its_limit_and_the_other_files_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_UNPACKED", 2**20)
    (tmp_path / "a").write_bytes(gzip.compress((b" " * 4095 + b"\n") * 2**13))
    (tmp_path / "b").write_text("good\n")
    sentence = r"a is a gzip file that unpacks to more than 200 times its size.*unpack it yourself"
    with pytest.raises(BadFileError, match=sentence):
        list(read_corpus(tmp_path, form="lines"))
    problems = Problems(skip=True)
    assert [p.text for p in read_corpus(tmp_path, form="lines", problems=problems)] == ["good"]
    assert "200 times its size" in problems.first[0].message


def test_a_gzip_bomb_of_one_line_is_refused_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_UNPACKED", 2**20)
    monkeypatch.setattr(sources, "MAX_LINE_BYTES", 2**16)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b"x" * 2**24))
    with pytest.raises(BadFileError, match="200 times its size"):
        list(read_corpus(path, problems=Problems(skip=True)))


def test_ordinary_repetitive_text_is_far_from_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_UNPACKED", 2**16)
    path = tmp_path / "a.jsonl.gz"
    rows = (b'{"id": "%d", "text": "The same again."}\n' % n for n in range(20_000))
    path.write_bytes(gzip.compress(b"".join(rows)))
    assert len(list(read_corpus(path))) == 20_000
