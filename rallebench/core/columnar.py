"""Rows of Parquet, Arrow and Feather files, one batch in memory at a time.

Nested columns become JSON values: structs and maps are objects, lists are lists, decimals and times are text. Only the
bytes of a binary column that are not UTF-8 stay bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rallebench.core.archives import MAX_RATIO, MAX_UNPACKED, unpacking
from rallebench.core.errors import BadFileError
from rallebench.core.json_lists import Broken
from rallebench.core.numbers import plural
from rallebench.core.types import Json

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ColumnChunkMetaData, RowGroupMetaData

PARQUET, ARROW = "parquet", "arrow"
NOUNS = {PARQUET: "Parquet file", ARROW: "Arrow file"}
_SUFFIXES = {
    PARQUET: (".parquet", ".pq"),
    ARROW: (".arrow", ".arrows", ".feather", ".ipc"),
}
SUFFIXES = tuple(suffix for suffixes in _SUFFIXES.values() for suffix in suffixes)
_MARKS = {b"PAR1": PARQUET, b"PARE": PARQUET, b"ARRO": ARROW, b"FEA1": ARROW}
_FILE_MARK, _OLD_FEATHER, _LFS = b"ARROW1", b"FEA1", b"version https://git-lfs"
_STREAM_MARK = b"\xff\xff\xff\xff"

BATCH_ROWS, BATCH_BYTES = 1024, 2**26
"""Limits of the rows that are converted at once."""
READ_AHEAD = 2**20
"""Bytes of a column that are read at once, instead of a whole row group."""
LARGEST_GROUP = 2**28
"""Bytes to which a row group may unpack if they are more than ``MAX_RATIO`` times the size of the file."""
ROW_BYTES = 100
"""Least size of a row in memory; columns that repeat one value take nothing in the file."""

Batch = tuple["pa.RecordBatch", float]
"""Rows, and the share of the file up to their end."""


def columnar_kind(path: Path) -> str:
    """Return "parquet" or "arrow" by the first bytes or the name of a file, "" for any other file or a folder."""
    if not os.path.isfile(path):
        return ""
    try:
        with open(path, "rb") as handle:
            mark = handle.read(4)
    except OSError:  # the reader reports it
        mark = b""
    name = Path(path).name.lower()
    named = (kind for kind, suffixes in _SUFFIXES.items() if name.endswith(suffixes))
    return _MARKS.get(mark) or next(named, "")


def column_names(path: Path) -> list[str]:
    """Return the names of a file's columns. Raises BadFileError."""
    with ExitStack() as files:
        return _open(path, columnar_kind(path), None, files)[0]


def columnar_rows(
    path: Path, names: Collection[str] | None = None
) -> Iterator[tuple[Json | Broken, float]]:
    """Yield (row, share of the file that is read), with a Broken for each row that cannot be read.

    ``names``: the only columns to read. Raises BadFileError for a file that is damaged, encrypted, or unpacks to far more
    than its size.
    """
    kind = columnar_kind(path)
    allowed = max(MAX_UNPACKED, MAX_RATIO * os.path.getsize(path))
    count = unpacked = 0
    with ExitStack() as files:
        read, batches = _open(path, kind, names, files)
        while True:
            place = f"{path}, after row {count:,}," if count else str(path)
            with unpacking(place, NOUNS[kind]):
                batch, share = next(batches, (None, 1.0))
            if batch is None:
                return
            unpacked += max(batch.nbytes, ROW_BYTES * batch.num_rows)
            if unpacked > allowed:
                raise _bomb(path)
            count += batch.num_rows
            for row in _rows(batch, read):
                yield row, share


def _bomb(path: Path) -> BadFileError:
    return BadFileError(
        f"{path} unpacks to more than {MAX_RATIO} times its size; save it as JSON lines if it is what you want."
    )


# ── opening ──────────────────────────────────────────────────────────────────


def _open(
    path: Path, kind: str, names: Collection[str] | None, files: ExitStack
) -> tuple[list[str], Iterator[Batch]]:
    """Return the names of the columns to read, and the batches of a file, which ``files`` closes."""
    try:
        with open(path, "rb") as handle:
            beginning = handle.read(len(_LFS))
    except OSError as error:
        raise BadFileError(f"{path} cannot be read: {error.strerror or error}.") from None
    _check_beginning(path, kind, beginning)
    with unpacking(path, NOUNS[kind]):
        try:
            if kind == PARQUET:
                return _open_parquet(path, names, files)
            return _open_arrow(path, beginning, names, files)
        except OSError as error:
            if "crypt" not in str(error):
                raise
            raise BadFileError(f"{path} is encrypted; save it without encryption.") from None


def _check_beginning(path: Path, kind: str, beginning: bytes) -> None:
    """Raise BadFileError for a file that only has the name of its kind, or is an old one."""
    if not kind:
        raise BadFileError(f"{path} is neither a Parquet nor an Arrow file; name its format.")
    noun = NOUNS[kind]
    if beginning.startswith(_LFS):
        raise BadFileError(
            f"{path} is a pointer of Git LFS, not the file itself; get it with git lfs pull."
        )
    if beginning.startswith(_OLD_FEATHER):
        raise BadFileError(f"{path} is Feather of version 1, which is not read; save it again.")
    whole = _MARKS.get(beginning[:4]) == kind or (
        kind == ARROW and beginning.startswith(_STREAM_MARK)
    )
    if not whole:
        state = "is empty" if not beginning else f"is not one of {noun}s, despite its name"
        raise BadFileError(f"{path} {state}; download it again, or correct its name.")


def _open_parquet(
    path: Path, names: Collection[str] | None, files: ExitStack
) -> tuple[list[str], Iterator[Batch]]:
    import pyarrow.parquet as pq

    file = files.enter_context(pq.ParquetFile(path, buffer_size=READ_AHEAD, pre_buffer=False))
    meta, known = file.metadata, list(file.schema_arrow.names)
    groups = [meta.row_group(number).total_byte_size for number in range(meta.num_row_groups)]
    whole, size = max(sum(groups), ROW_BYTES * meta.num_rows), os.path.getsize(path)
    if whole > max(MAX_UNPACKED, MAX_RATIO * size) or max(groups, default=0) > max(
        LARGEST_GROUP, MAX_RATIO * size
    ):
        raise _bomb(path)
    chosen = [name for name in known if names is None or name in names]

    def batches() -> Iterator[Batch]:
        count = 0
        for group in range(meta.num_row_groups):
            first_row = file.iter_batches(1, row_groups=[group], columns=chosen, use_threads=False)
            if next(first_row, None) is None:
                continue
            # Only after a row was read, because pyarrow aborts the process for a column that cannot be described.
            at_once = _batch_rows(meta.row_group(group))
            steps = file.iter_batches(
                at_once, row_groups=[group], columns=chosen, use_threads=False
            )
            for batch in steps:
                count += batch.num_rows
                yield batch, count / meta.num_rows

    return chosen, batches()


def _batch_rows(group: RowGroupMetaData) -> int:
    """Return the number of rows at once: fewer if rows, or the values that a column repeats, are large."""
    repeated = (_dictionary_bytes(group.column(number)) for number in range(group.num_columns))
    largest = max(group.total_byte_size // group.num_rows, *repeated)
    return int(max(1, min(BATCH_ROWS, BATCH_BYTES // max(1, largest))))


def _dictionary_bytes(chunk: ColumnChunkMetaData) -> int:
    """Return the estimated size of the values that a column repeats; any of its rows may hold all of them."""
    begin = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
    if begin is None:
        return 0
    packing: float = chunk.total_uncompressed_size / max(1, chunk.total_compressed_size)
    size: int = chunk.data_page_offset - begin
    return round(size * max(1.0, packing))


def _open_arrow(
    path: Path, beginning: bytes, names: Collection[str] | None, files: ExitStack
) -> tuple[list[str], Iterator[Batch]]:
    import pyarrow as pa

    size = os.path.getsize(path)
    raw = files.enter_context(pa.memory_map(str(path)))
    is_stream = not beginning.startswith(_FILE_MARK)
    reader = files.enter_context((pa.ipc.open_stream if is_stream else pa.ipc.open_file)(raw))
    chosen = [name for name in list(reader.schema.names) if names is None or name in names]

    def whole() -> Iterator[Batch]:
        if not is_stream:
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number), (number + 1) / reader.num_record_batches
            return
        for batch in reader:
            yield batch, raw.tell() / size
        if left := size - raw.tell():
            raise ValueError(f"{plural(left, 'byte')} behind its end")

    def batches() -> Iterator[Batch]:
        for batch, share in whole():
            batch = batch if names is None else batch.select(chosen)
            row = max(1, batch.nbytes // max(1, batch.num_rows))
            step = max(1, min(BATCH_ROWS, BATCH_BYTES // row))
            for begin in range(0, batch.num_rows, step):
                yield batch.slice(begin, step), share

    return chosen, batches()


# ── values ───────────────────────────────────────────────────────────────────


def _rows(batch: pa.RecordBatch, names: Sequence[str]) -> Iterator[Json | Broken]:
    """Yield the rows of a batch. If a column cannot be converted, each row is tried alone."""
    try:
        batch.validate(full=True)  # wrong offsets in an Arrow file would end the process
        columns: dict[str, list[Any]] = {}
        for name, column in zip(names, batch.columns):
            if name not in columns:  # the first of two columns with one name counts
                columns[name] = _values(column)
    except (ValueError, OverflowError, RecursionError, NotImplementedError) as error:
        reason = " ".join(str(error).split())[:120]
        fault = (
            " is not UTF-8; save the file with UTF-8 texts."
            if "UTF8" in reason
            else f" has a value that cannot be read ({reason})."
        )
    else:
        yield from (dict(zip(columns, values)) for values in zip(*columns.values()))
        return
    if batch.num_rows == 1:
        yield Broken(fault)
        return
    for number in range(batch.num_rows):
        yield from _rows(batch.slice(number, 1), names)


def _values(column: pa.Array) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return values if _is_plain(column.type) else [_plain(value) for value in values]


def _is_plain(kind: pa.DataType) -> bool:
    """Return whether the values of a type are JSON already."""
    from pyarrow import types

    simple: tuple[Callable[[pa.DataType], bool], ...] = (
        types.is_string,
        types.is_large_string,
        types.is_integer,
        types.is_floating,
        types.is_boolean,
        types.is_null,
    )
    if types.is_struct(kind) or types.is_list(kind) or types.is_large_list(kind):
        return all(_is_plain(kind.field(number).type) for number in range(kind.num_fields))
    return any(is_simple(kind) for is_simple in simple)


def _plain(value: Any) -> Any:
    """Return a value as JSON; bytes that are not UTF-8 stay bytes.

    >>> _plain(Decimal("7.00")), _plain(date(1655, 3, 25)), _plain([("a", b"b")]), _plain(timedelta(minutes=1))
    (7, '1655-03-25', {'a': 'b'}, 60.0)
    """
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return value
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        if value and all(type(pair) is tuple and len(pair) == 2 for pair in value):  # a map
            return {str(_plain(name)): _plain(inner) for name, inner in value}
        return [_plain(inner) for inner in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else str(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    return value.total_seconds() if isinstance(value, timedelta) else str(value)


def columnar_sample(kind: str, rows: Sequence[Json]) -> Callable[[], bytes]:
    """Return a function that makes a small file of these rows, for the sample of a format."""

    def content() -> bytes:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table, file = pa.Table.from_pylist(list(rows)), pa.BufferOutputStream()
        if kind == PARQUET:
            pq.write_table(table, file)
        else:
            with pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
        return bytes(file.getvalue())

    return content
