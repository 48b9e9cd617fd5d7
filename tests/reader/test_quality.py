"""How often it is right. Floors lie five points below what was measured, so that a slip is seen.

Measured over the whole sets with MiniLM's five passages: see the figures in each test.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from rallebench.corpora.tables import read_corpus, read_page_map
from rallebench.reader import Task
from rallebench.reader.spans import SpanReader
from rallebench.types import Passage

STARTER = Path(__file__).resolve().parents[2] / "rallebench" / "starter"


def records(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def answers(record: dict[str, object]) -> list[str]:
    return [o["answer"] for o in record["output"] if o.get("answer")]  # type: ignore[attr-defined]


def same(guess: str, gold: list[str]) -> bool:
    def bare(text: str) -> str:
        words = "".join(c for c in text.lower() if c.isalnum() or c.isspace()).split()
        return " ".join(w for w in words if w not in ("a", "an", "the"))

    return any(bare(guess) == bare(g) for g in gold)
