"""Damaged archives and arrays: one sentence each, whatever the libraries raise."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import struct
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_workspace import CommandLine

from rallebench.core.arrays import load_array
from rallebench.core.errors import BadFileError, RalleError
from rallebench.core.sources import Problems, Source
from rallebench.datasets.reading import dataset_form
from rallebench.services import uploads
from rallebench.workspace.paths import WorkspaceFolder

METHODS = {
    "stored": zipfile.ZIP_STORED,
    "deflate": zipfile.ZIP_DEFLATED,
    "bzip2": zipfile.ZIP_BZIP2,
    "lzma": zipfile.ZIP_LZMA,
}
TEXT = b"".join(b"Line %d about moon %d.\n" % (n, n * n) for n in range(300))


def zipped(method: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("docs/moons.txt", TEXT)
    return out.getvalue()


def tarred(mode: Any, name: str = "docs/moons.txt") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        info = tarfile.TarInfo(name)
        info.size = len(TEXT)
        archive.addfile(info, io.BytesIO(TEXT))
    return out.getvalue()


ARCHIVES = {f"{name}.zip": zipped(method) for name, method in METHODS.items()} | {
    "plain.tar": tarred("w:"),
    "packed.tar.gz": tarred("w:gz"),
    "packed.tar.bz2": tarred("w:bz2"),
    "packed.tar.xz": tarred("w:xz"),
    "packed.tar.zst": zstandard.ZstdCompressor(write_checksum=True).compress(tarred("w:")),
}


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> WorkspaceFolder:
    return WorkspaceFolder(tmp_path_factory.mktemp("archives"))


def unpack(space: WorkspaceFolder, name: str, content: bytes) -> Path:
    path = space.path / name
    path.write_bytes(content)
    return uploads.unpack_upload(space, path)


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_of_any_method_is_unpacked(space: WorkspaceFolder, name: str) -> None:
    folder = unpack(space, name, ARCHIVES[name])
    (file,) = [folder] if folder.is_file() else folder.rglob("*.txt")
    assert file.read_bytes() == TEXT


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(name=st.sampled_from(list(ARCHIVES)), data=st.data())
def test_a_changed_or_cut_archive_is_refused_in_one_sentence(
    space: WorkspaceFolder, name: str, data: st.DataObject
) -> None:
    content = bytearray(ARCHIVES[name])
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=4)):
        content[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    try:
        unpack(space, name, bytes(content[:cut]))
    except RalleError as error:
        assert "\n" not in str(error) and str(error).endswith(".")


@pytest.mark.parametrize("method", [9, 12, 93, 95, 99])
def test_a_zip_of_a_method_that_is_not_known_says_so(space: WorkspaceFolder, method: int) -> None:
    content = bytearray(zipped(zipfile.ZIP_STORED))
    for mark, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        struct.pack_into("<H", content, content.index(mark) + offset, method)
    with pytest.raises(BadFileError, match=r"odd\.zip is"):
        unpack(space, "odd.zip", bytes(content))


@pytest.mark.parametrize("name", ["a\0b.txt", "x" * 300, "docs/" * 900 + "a", "\udcff.txt"])
def test_an_odd_name_in_a_tar_is_refused_or_unpacked(space: WorkspaceFolder, name: str) -> None:
    header = tarred("w:", "docs/moons.txt")
    content = header.replace(b"docs/moons.txt", b"a\0b/moons.txt\0") if "\0" in name else b""
    try:
        unpack(space, "odd.tar", content or tarred("w:", name))
    except RalleError as error:
        assert "\n" not in str(error)


def test_a_null_byte_in_a_long_name_of_a_tar_is_refused(space: WorkspaceFolder) -> None:
    content = tarred("w:", "docs/" + "n" * 200 + ".txt").replace(
        b"n" * 200, b"n" * 99 + b"\0" * 2 + b"n" * 99
    )
    try:
        unpack(space, "null.tar", content)
    except RalleError as error:
        assert "null.tar" in str(error)


def test_an_encrypted_zip_needs_a_password(space: WorkspaceFolder) -> None:
    content = bytearray(zipped(zipfile.ZIP_STORED))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        struct.pack_into("<H", content, content.index(mark) + offset, 1)
    with pytest.raises(BadFileError, match="needs a password; unpack it yourself"):
        unpack(space, "secret.zip", bytes(content))


# gzip


@pytest.mark.parametrize("end", [5, 12, -9, -4, -1])
def test_a_cut_gzip_file_is_refused_in_one_sentence(tmp_path: Path, end: int) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id": "1", "text": "moon"}\n' * 50)[:end])
    with pytest.raises(BadFileError, match=r"rows\.jsonl\.gz is a damaged gzip file"):
        list(Source(path).objects())


def test_other_packers_behind_the_name_of_a_gzip_file_are_known_by_their_content(
    tmp_path: Path,
) -> None:
    for pack in (bz2.compress, lzma.compress):
        (tmp_path / "rows.jsonl.gz").write_bytes(pack(b'{"id": "1"}\n'))
        assert list(Source(tmp_path / "rows.jsonl.gz").objects()) == [(1, {"id": "1"})]


def test_a_format_is_recognised_without_reading_behind_a_line_that_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rallebench.core.sources.MAX_LINE_BYTES", 10_000)
    path = tmp_path / "questions.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"input": "' + b"x" * 20_000_000 + b'"}\n' + b'{"a": 1}\n'))
    sizes: list[int] = []
    read = gzip.GzipFile.read

    def counted(self: gzip.GzipFile, size: int | None = -1) -> bytes:
        piece = read(self, size)
        sizes.append(len(piece))
        return piece

    monkeypatch.setattr(gzip.GzipFile, "read", counted)
    readline = gzip.GzipFile.readline

    def counted_line(self: gzip.GzipFile, size: int | None = -1) -> bytes:
        line = readline(self, size)
        sizes.append(len(line))
        return line

    monkeypatch.setattr(gzip.GzipFile, "readline", counted_line)
    assert dataset_form(path) == "kilt"
    assert sum(sizes) < 3_000_000, "all formats together read the long line to its end"
    problems = Problems(skip=True)
    assert [row for _, row in Source(path, problems).objects()] == [{"a": 1}]
    assert problems.count == 1


# arrays


def saved(array: Any, **more: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **more)
    return out.getvalue()


def with_header(header: str) -> bytes:
    text = header.encode("latin-1") + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + b"\0" * 64


HEADERS = (
    "", "{", "(((", "{'descr': '<f4'", "[1, 2", "'", "\x00", "0" * 9000, "{}" * 50, "None", "{'descr': 5}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 4)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (10**18, 4)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (999999999999999999999999, 4)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': 'x'}",
    "{'descr': '|O', 'fortran_order': False, 'shape': (2,)}",
    "{'descr': 'nonsense', 'fortran_order': False, 'shape': (2, 2)}",
    "{'descr': [('a', '<f4')], 'fortran_order': 3, 'shape': (2, 2)}",
)  # fmt: skip


@pytest.mark.parametrize("header", HEADERS)
def test_an_array_with_a_damaged_header_is_refused_in_one_sentence(
    tmp_path: Path, header: str
) -> None:
    path = tmp_path / "vectors.npy"
    path.write_bytes(with_header(header))
    with pytest.raises(BadFileError, match=r"vectors\.npy is not a complete array"):
        load_array(path)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_changed_array_is_loaded_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(saved(np.ones((4, 3), dtype=np.float32)))
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
        content[place] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "changed.npy"
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        load_array(path, "<f4", 2)
    except BadFileError as error:
        assert "changed.npy" in str(error) and "\n" not in str(error)


def test_an_array_of_another_type_or_shape_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    for array, more in (
        (np.array([{"a": 1}], dtype=object), {"allow_pickle": True}),
        (np.ones((2, 2)), {}),
        (np.ones(4, dtype=np.float32), {}),
        (np.float32(3), {}),
        (np.array(["x"]), {}),
    ):
        path.write_bytes(saved(array, **more))
        with pytest.raises(BadFileError, match=r"a\.npy"):
            load_array(path, "<f4", 2)
    path.write_bytes(saved(np.ones((2, 2), dtype=np.float32)))
    assert load_array(path, "<f4", 2).shape == (2, 2)


def test_vectors_with_a_damaged_header_build_no_index(cli: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "vectors.npy"
    path.write_bytes(with_header("{'descr': '<f4', 'shape': ("))
    corpus = cli.workspace / "corpus.tsv"
    words = ("--corpus", corpus, "--name", "theirs", "--encoder", "hashing", "--from", path)
    ran = cli("index --kind flat", *words)
    assert ran.code == 2 and "vectors.npy is not a complete array" in ran.last
    assert "Traceback" not in ran.err and json.dumps("theirs") not in ran.out
