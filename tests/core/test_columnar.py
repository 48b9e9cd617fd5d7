"""Rows of Parquet and Arrow files: plain JSON values, bounded memory, and one sentence for a file that cannot be read."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rallebench.core import columnar
from rallebench.core.columnar import column_names, columnar_kind, columnar_rows
from rallebench.core.errors import BadFileError, RalleError
from rallebench.core.json_lists import Broken
from rallebench.datasets.reading import read_examples

Write = Callable[[pa.Table, Path], None]


def write_parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path)


def write_arrow(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def write_stream(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


def write_feather(table: pa.Table, path: Path) -> None:
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with (
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_file(file, table.schema, options=options) as writer,
    ):
        writer.write_table(table)


WRITERS: dict[str, Write] = {
    "x.parquet": write_parquet,
    "x.arrow": write_arrow,
    "x.arrows": write_stream,
    "x.feather": write_feather,
}
written = pytest.mark.parametrize("name", WRITERS)
SQUAD = pa.struct([("text", pa.list_(pa.string())), ("answer_start", pa.list_(pa.int32()))])
NAMES = pa.table({"question": ["Who?", "Where?", "When?"], "n": [1, 2, 3]})


def rows(path: Path) -> list[Any]:
    return [row for row, _ in columnar_rows(path)]


@written
def test_rows_come_in_order_with_the_share_that_is_read(name: str, tmp_path: Path) -> None:
    table = pa.table({"n": list(range(3000)), "text": [f"row {n}" for n in range(3000)]})
    WRITERS[name](table, tmp_path / name)
    read = list(columnar_rows(tmp_path / name))
    assert [row for row, _ in read] == table.to_pylist()
    shares = [share for _, share in read]
    assert shares == sorted(shares) and shares[-1] == pytest.approx(1.0, abs=0.01)
    assert column_names(tmp_path / name) == ["n", "text"]
    assert [row for row, _ in columnar_rows(tmp_path / name, {"n"})][2999] == {"n": 2999}


VALUES: list[tuple[pa.Array, list[Any]]] = [
    (pa.array([{"text": ["a"], "answer_start": [3]}, None], SQUAD), [{"text": ["a"], "answer_start": [3]}, None]),
    (pa.array([[{"title": "A"}], []]), [[{"title": "A"}], []]),
    (pa.array([[("en", "Titan"), ("de", "Titan")], []], pa.map_(pa.string(), pa.string())), [{"en": "Titan", "de": "Titan"}, []]),
    (pa.array(["Titan", "Titan"]).dictionary_encode(), ["Titan", "Titan"]),
    (pa.array(["Titan", None], pa.large_string()), ["Titan", None]),
    (pa.array([Decimal("3.50"), Decimal("7.00")]), ["3.50", 7]),
    (pa.array([datetime(1655, 3, 25, 12, tzinfo=timezone.utc)], pa.timestamp("us", "UTC")), ["1655-03-25T12:00:00+00:00"]),
    (pa.array([1], pa.timestamp("ns")), ["1970-01-01T00:00:00.000000001"]),
    (pa.array([date(1655, 3, 25)]), ["1655-03-25"]),
    (pa.array([time(1, 2)]), ["01:02:00"]),
    (pa.array([timedelta(minutes=1)]), [60.0]),
    (pa.array([b"Titan", b"\xff\x00"]), ["Titan", b"\xff\x00"]),
    (pa.array([[b"Titan"]], pa.list_(pa.binary(), 1)), [["Titan"]]),
]  # fmt: skip


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow"])
@pytest.mark.parametrize(
    "column, values", VALUES, ids=lambda value: str(getattr(value, "type", ""))
)
def test_nested_and_typed_columns_become_plain_values(
    name: str, column: pa.Array, values: list[Any], tmp_path: Path
) -> None:
    WRITERS[name](pa.table({"c": column}), tmp_path / name)
    assert [row["c"] for row in rows(tmp_path / name)] == values


def test_a_value_that_cannot_be_read_spoils_its_row_alone(tmp_path: Path) -> None:
    offsets, data = pa.array([0, 2, 4], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xfeok")
    texts = pa.Array.from_buffers(pa.string(), 2, [None, offsets, data])
    write_arrow(pa.table({"text": texts}), tmp_path / "x.arrow")
    assert rows(tmp_path / "x.arrow") == [
        Broken(" is not UTF-8; save the file with UTF-8 texts."),
        {"text": "ok"},
    ]
    write_arrow(pa.table({"at": pa.array([10**15, 0], pa.timestamp("s"))}), tmp_path / "y.arrow")
    broken, row = rows(tmp_path / "y.arrow")
    assert "has a value that cannot be read" in broken.fault and row == {
        "at": "1970-01-01T00:00:00"
    }


def cut(path: Path, content: bytes) -> None:
    path.write_bytes(content[: len(content) // 2])


def spoil_middle(path: Path, content: bytes) -> None:
    path.write_bytes(content[:8] + bytes(60) + content[68:])


FAULTS: list[tuple[str, Callable[[Path, bytes], object], str]] = [
    ("x.parquet", cut, "is a damaged Parquet file"),
    ("x.arrow", cut, "is a damaged Arrow file"),
    ("x.arrows", cut, "is a damaged Arrow file"),
    ("x.parquet", spoil_middle, "is a damaged Parquet file"),
    ("x.parquet", lambda path, content: path.write_bytes(content[:-4] + b"PARE"), "is encrypted; save it without"),
    ("x.parquet", lambda path, _: path.write_bytes(b""), "is empty; download it again"),
    ("x.parquet", lambda path, _: path.write_text("<html>Sign in</html>"), "is not one of Parquet files, despite its name"),
    ("x.arrow", lambda path, _: path.write_text("id,text"), "is not one of Arrow files, despite its name"),
    ("x.arrow", lambda path, _: path.write_bytes(b"FEA1" + bytes(99)), "is Feather of version 1, which is not read"),
    ("x.parquet", lambda path, _: path.write_text("version https://git-lfs.github.com/spec/v1\n"), "is a pointer of Git LFS"),
    ("x.arrows", lambda path, content: path.write_bytes(content + b"more"), "4 bytes behind its end"),
]  # fmt: skip


@pytest.mark.parametrize("name, spoil, sentence", FAULTS, ids=[fault[2] for fault in FAULTS])
def test_a_file_that_is_not_whole_is_one_sentence(
    name: str, spoil: Callable[[Path, bytes], object], sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    WRITERS[name](NAMES, path)
    spoil(path, path.read_bytes())
    with pytest.raises(BadFileError, match=sentence) as caught:
        rows(path)
    assert str(path) in str(caught.value) and str(caught.value).count("\n") == 0


def test_a_file_of_another_kind_that_is_named_as_one_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("question\nWho?\n")
    for form in ("parquet", "arrow"):
        with pytest.raises(BadFileError, match="is neither a Parquet nor an Arrow file"):
            list(read_examples(tmp_path / "x.csv", form=form))


def test_damage_behind_good_rows_names_the_last_good_row(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    texts = [random.Random(n).randbytes(40).hex() for n in range(4000)]
    pq.write_table(pa.table({"text": texts}), path, row_group_size=2000, use_dictionary=False)
    second = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    content = path.read_bytes()
    path.write_bytes(content[:second] + bytes(40) + content[second + 40 :])
    with pytest.raises(BadFileError, match=r"x\.parquet, after row 2,000, is a damaged"):
        rows(path)


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.arrows"])
def test_changed_bytes_end_in_rows_or_in_one_sentence(name: str, tmp_path: Path) -> None:
    path, chance = tmp_path / name, random.Random(5)
    WRITERS[name](NAMES, path)
    content = path.read_bytes()
    for _ in range(100):
        changed = bytearray(content)
        for _ in range(chance.choice((1, 3, 20))):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        path.write_bytes(bytes(changed))
        try:
            rows(path)
        except RalleError as error:
            assert "\n" not in str(error)


# bombs: small files of huge content


def repeat_row(path: Path) -> None:
    """A million equal rows in 4 KB."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 10**6, pa.int32()), pa.array(["Who?"]))
    pq.write_table(pa.table({"question": text}), path, compression="zstd")


def repeat_letter(path: Path) -> None:
    """One cell of 3 MB in 1 KB."""
    table = pa.table({"question": ["a" * 3_000_000]})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)


@pytest.mark.parametrize("make", [repeat_row, repeat_letter])
def test_a_bomb_is_refused_before_it_unpacks(
    make: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columnar, "LARGEST_GROUP", 2**21)
    monkeypatch.setattr(columnar, "MAX_UNPACKED", 2**24)
    make(tmp_path / "x.parquet")
    with pytest.raises(BadFileError, match="unpacks to more than 200 times its size"):
        next(columnar_rows(tmp_path / "x.parquet"))


def test_rows_that_repeat_a_long_text_are_converted_a_few_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columnar, "BATCH_BYTES", 2**20)
    text = random.Random(1).randbytes(2**16).hex()
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 500, pa.int32()), pa.array([text]))
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": column}), path, dictionary_pagesize_limit=2**26)
    assert columnar._batch_rows(pq.ParquetFile(path).metadata.row_group(0)) <= 8
    unpacked = tmp_path / "x.arrow"
    write_arrow(pa.table({"text": column}), unpacked)
    assert next(columnar_rows(unpacked))[0] == {"text": text}


def test_a_large_row_group_is_read_in_little_memory(tmp_path: Path) -> None:
    texts = [f"{n} " * 100 for n in range(50_000)]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": texts}), path, row_group_size=50_000)
    assert pq.read_metadata(path).row_group(0).total_byte_size > 2**24
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in columnar_rows(path)]
    assert len(held) == 50_000 and max(held) < 2**23


def test_the_kind_of_a_file_is_told_by_its_first_bytes_then_by_its_name(tmp_path: Path) -> None:
    for name, kind in (("x.parquet", "parquet"), ("x.feather", "arrow"), ("x.arrows", "arrow")):
        WRITERS[name](NAMES, tmp_path / name)
        assert columnar_kind(tmp_path / name) == kind
    write_parquet(NAMES, tmp_path / "download")
    assert columnar_kind(tmp_path / "download") == "parquet"
    (tmp_path / "x.jsonl").write_text("{}")
    assert columnar_kind(tmp_path / "x.jsonl") == columnar_kind(tmp_path / "none") == ""
