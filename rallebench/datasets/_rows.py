"""JSON-lines rows with line numbers, from a plain or a gzipped file."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rallebench.errors import BadFileError
from rallebench.files import MAX_LINE_BYTES, json_problem, read_jsonl


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number from 1, object) of a JSON-lines file; gzip is recognised by its first bytes.

    Blank lines are skipped. Raises BadFileError for a file or line that cannot be read.
    """
    path = Path(path)
    yield from _read_gzip(path) if _is_gzip(path) else read_jsonl(path)


def _is_gzip(path: Path) -> bool:
    try:
        with open(path, "rb") as handle:
            return handle.read(2) == b"\x1f\x8b"
    except OSError:
        return False  # read_jsonl says what is wrong


def _read_gzip(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with gzip.open(path, "rb") as handle:
            number = 0
            while raw := handle.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(raw) > MAX_LINE_BYTES:
                    raise BadFileError(f"{path}, line {number} is longer than {MAX_LINE_BYTES // 2**20} MB.")
                if raw.strip():
                    yield number, _parse(path, number, raw)
    except (EOFError, OSError, zlib.error) as error:
        raise BadFileError(f"{path} is a damaged gzip file ({error}); copy or download it again.") from None


def _parse(path: Path, number: int, raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw.decode("utf-8-sig" if number == 1 else "utf-8"))
    except UnicodeDecodeError:
        raise BadFileError(
            f"{path}, line {number} is not UTF-8; save the file as UTF-8 and try again."
        ) from None
    except (ValueError, RecursionError) as error:
        raise BadFileError(f"{path}, line {number} is not valid JSON ({json_problem(error)}).") from None
    if not isinstance(value, dict):
        raise BadFileError(f"{path}, line {number} is not a JSON object but {type(value).__name__}.")
    return value
