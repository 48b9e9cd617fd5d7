"""The sample of a format as a file or folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path


def write_sample(folder: Path, sample: Mapping[str, str | Callable[[], bytes]]) -> Path:
    """Write the files of a sample (name → text, or a function that makes the bytes) below ``folder``; return the path to read, the first part of their
    names."""
    tops = set()
    for name, content in sample.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content())
        tops.add(name.split("/")[0])
    assert len(tops) == 1, "the files of a sample lie in one folder"
    return folder / tops.pop()
