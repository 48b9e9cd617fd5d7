"""Digests for the questions of a benchmark, as if they were its paper's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from rallebench.core.registry import Entry
from rallebench.experiments.benchmarks import BENCHMARKS


def own_digests(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    benchmark: str,
    sets: Mapping[str, Mapping[str, str]],
) -> None:
    """Replace the digests of a benchmark, or add one of that name. ``sets``: set → kind of digest → digest."""
    (folder / "official.json").write_text(json.dumps({"sets": sets}))
    known = BENCHMARKS[benchmark if benchmark in BENCHMARKS else BENCHMARKS.names()[0]]
    if benchmark == known.name:
        (folder / "published").symlink_to(known.folder / "published")
    value = replace(known, name=benchmark, folder=folder)
    monkeypatch.setitem(BENCHMARKS._entries, benchmark, Entry(benchmark, value))
