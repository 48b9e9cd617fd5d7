"""Packed and encoded text files: the same rows as from plain UTF-8, or one sentence."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from rallebench.core import streams
from rallebench.core.encodings import NAMEABLE, check_encoding, guess_encoding
from rallebench.core.errors import BadFileError, MissingPackageError, UsageError
from rallebench.core.sources import Problems, Source

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
packed = pytest.mark.parametrize("ending", PACKERS)
CHINESE = "泰坦是土星最大的卫星，也是太阳系第二大的卫星。它有浓厚的大气。\n"
FRENCH = "Titan est la seule lune à posséder une atmosphère dense; l’été y dure sept années.\n"


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def lines(path: Path, encoding: str = "", problems: Problems | None = None) -> list[str]:
    return [text for _, text in Source(path, problems or Problems(), encoding=encoding).lines()]


@packed
def test_a_packed_file_is_read_like_a_plain_one_and_its_bytes_are_counted(
    ending: str, tmp_path: Path
) -> None:
    rows = [f"row {n} {CHINESE.strip()}" for n in range(3000)]
    path = write(tmp_path / f"c.{ending}", PACKERS[ending]("\n".join(rows).encode()))
    source = Source(path)
    assert [text for _, text in source.lines()] == rows
    assert source.done == source.total == path.stat().st_size


@packed
def test_packed_text_in_another_encoding_is_unpacked_then_decoded(
    ending: str, tmp_path: Path
) -> None:
    for encoding in ("gb18030", "utf-16", "utf-16-be"):
        path = write(tmp_path / f"c.{ending}", PACKERS[ending]((CHINESE * 99).encode(encoding)))
        assert lines(path) == [CHINESE.strip()] * 99


@packed
def test_a_packed_file_that_is_cut_off_or_changed_is_one_sentence(
    ending: str, tmp_path: Path
) -> None:
    data = PACKERS[ending](os.urandom(20_000).hex().encode() + b"\nend\n")
    kind = {"gz": "gzip", "bz2": "bzip2", "xz": "xz", "zst": "Zstandard"}[ending]
    for spoilt in (data[:-6], data[: len(data) // 2], data[:200] + b"\0" * 64 + data[264:]):
        with pytest.raises(BadFileError, match=f"is a damaged {kind} file .*; copy or download"):
            lines(write(tmp_path / f"c.{ending}", spoilt))


@packed
def test_files_packed_one_after_another_are_one_text(ending: str, tmp_path: Path) -> None:
    data = PACKERS[ending](b"one\n") + PACKERS[ending](b"two\n")
    assert lines(write(tmp_path / f"c.{ending}", data)) == ["one", "two"]


@packed
def test_a_bomb_is_refused_by_its_limit(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_UNPACKED", 2**20)
    path = write(tmp_path / f"c.{ending}", PACKERS[ending]((b" " * 4095 + b"\n") * 2**13))
    with pytest.raises(BadFileError, match="unpacks to more than 200 times its size"):
        lines(path, problems=Problems(skip=True))


def test_a_bomb_of_zstandard_never_has_more_than_64_mb_in_memory(tmp_path: Path) -> None:
    path = write(tmp_path / "c.zst", PACKERS["zst"](bytes(2**28)))
    with open(path, "rb") as raw:
        file = streams._ZstdFile(raw)
        assert len(file.read(10)) == 10 and len(file._held) <= 2**26


def test_text_that_looks_like_a_packed_file_is_text(tmp_path: Path) -> None:
    assert lines(write(tmp_path / "a", b"BZh9 is a name\n")) == ["BZh9 is a name"]
    assert lines(write(tmp_path / "b", b"\xfd7zXZ")) != []


def test_zstandard_without_its_package_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingPackageError, match=r"zstandard is not installed .*pip install"):
        lines(write(tmp_path / "c.zst", PACKERS["zst"](b"one\n")))


# encodings


def test_utf_8_is_passed_on_unchanged_and_never_guessed(tmp_path: Path) -> None:
    for text in ("", "a", "é", CHINESE, "\ufeffa", FRENCH * 9000, "a" * 2**18 + "é\n" * 9):
        problems = Problems()
        expected = text.removeprefix("\ufeff").splitlines()
        assert lines(write(tmp_path / "c", text.encode()), problems=problems) == expected
        assert problems.warnings == []


def test_one_damaged_line_of_utf_8_is_a_bad_row_and_not_another_encoding(tmp_path: Path) -> None:
    problems = Problems(skip=True)
    data = CHINESE.encode() * 3 + b"caf\xe9\n" + FRENCH.encode()
    assert len(lines(write(tmp_path / "c", data), problems=problems)) == 4
    assert "line 4 is not UTF-8 (byte 3 of the line)" in problems.first[0].message
    assert problems.warnings == []


@pytest.mark.parametrize("before", [0, 2**18 - 1, 2**18, 2**19 + 7])
@pytest.mark.parametrize(("text", "encoding"), [(CHINESE, "gb18030"), (FRENCH, "cp1252")])
def test_the_first_bytes_beyond_ascii_decide_wherever_they_are(
    text: str, encoding: str, before: int, tmp_path: Path
) -> None:
    ascii = ("x" * 63 + "\n") * (before // 64) + "y" * (before % 64)
    path = write(tmp_path / "c", (ascii + text * 3000).encode(encoding))
    assert lines(path) == (ascii + text * 3000).splitlines()


def test_a_pipe_is_decoded_in_one_pass(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    data = (CHINESE * 20_000).encode("gb18030")
    writer = threading.Thread(target=lambda: path.write_bytes(data))
    writer.start()
    assert lines(path) == [CHINESE.strip()] * 20_000
    writer.join()


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([*NAMEABLE, "utf-7", "utf-32", "hz", ""]))
def test_any_bytes_in_any_encoding_are_text_or_bad_rows(data: bytes, encoding: str) -> None:
    raw = io.BufferedReader(io.BytesIO(data))  # type: ignore[arg-type]
    stream = streams.TextStream(Path("c"), raw, encoding)
    for line in io.BufferedReader(stream):
        line.decode("utf-8", "replace").encode("utf-8")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Käse", "cp1252"),
        ("834–1", "cp1252"),
        ("“Où?” dit-elle. – Là-bas, à côté de l’étang «bleu».", "cp1252"),
        ("opção, função e lições", "cp1252"),
        ("联通公司", "gb18030"),
        ("我", "gb18030"),
        ("id,text\n1,月亮\n", "gb18030"),
        ("id,text\n1,泰坦\n", "utf-16-le"),
        ("id,text\n1,Titan\n", "utf-16-be"),
        ("泰坦是土星最大的卫星", "utf-16-be"),
        ("день и ночь", "utf-16-le"),
    ],
)
def test_short_texts_are_guessed(text: str, encoding: str) -> None:
    assert guess_encoding(text.encode(encoding)) == encoding


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("День и ночь над тихой рекой, как в детстве." * 2, "cp1251"),
        ("День и ночь над тихой рекой, как в детстве." * 2, "koi8-r"),
        ("月は地球の衛星であり、太陽系で五番目に大きい。" * 2, "euc_jp"),
        ("月は地球の衛星であり、太陽系で五番目に大きい。" * 2, "shift_jis"),
        ("달은 지구의 유일한 자연 위성이다. 태양계에서 다섯째로 크다." * 2, "euc_kr"),
        ("月球是地球唯一的天然衛星，並且是太陽系中第五大的衛星。" * 2, "big5"),
    ],
)
def test_other_scripts_are_never_read_as_chinese_or_western(text: str, encoding: str) -> None:
    assert guess_encoding(text.encode(encoding)) == ""


@pytest.mark.parametrize("name", ["klingon", "rot13", "base64", "idna", "unicode_escape", "utf\0"])
def test_an_encoding_that_no_file_has_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"There is no text encoding .*name one such as utf-8"):
        check_encoding(name)
    assert [check_encoding(known) != "" for known in NAMEABLE] == [True] * len(NAMEABLE)


def test_a_first_damaged_byte_does_not_decide_on_the_encoding_of_utf_8_behind_it(
    tmp_path: Path,
) -> None:
    problems = Problems(skip=True)
    data = b"caf\xe9\n" + b"plain\n" * 40_000 + CHINESE.encode() * 9
    read = lines(write(tmp_path / "c", data), problems=problems)
    assert read[-9:] == [CHINESE.strip()] * 9 and problems.count == 1
    assert problems.warnings == []


def test_a_few_control_characters_do_not_make_text_binary(tmp_path: Path) -> None:
    text = FRENCH * 20 + "field\x1ffield\x1a"
    assert lines(write(tmp_path / "c", text.encode("cp1252"))) == text.split("\n")
