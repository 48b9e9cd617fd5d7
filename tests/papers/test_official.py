"""Printed figures are shown only beside the paper's own questions, recognised by digest rather than by name or length."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
from pathlib import Path

import pytest
from digests import own_digests

from rallebench.core.types import Example, Gold, Question
from rallebench.experiments.benchmarks import benchmarks
from rallebench.experiments.published.official import (
    ids_digest,
    questions_digest,
    why_unverified,
)

TEXTS = [f"Which river flows through town {n}?" for n in range(9)]


def examples(texts: list[str]) -> list[Example]:
    return [Example(Question(f"q{n}", text), Gold(), {}) for n, text in enumerate(texts)]


@pytest.fixture(autouse=True)
def known_digests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    content = b'{"query": "Who?"}\n'
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    sets = {
        "texts": {"questions": questions_digest(TEXTS)},
        "ids": {"ids": ids_digest(f"q{n}" for n in range(9))},
        "file": {"blob": blob},
        "sum": {"sha256": hashlib.sha256(content).hexdigest()},
    }
    own_digests(monkeypatch, tmp_path, "paper", sets)
    (tmp_path / "own.json").write_bytes(content)
    (tmp_path / "packed.json.gz").write_bytes(gzip.compress(content))
    (tmp_path / "changed.json").write_bytes(content + b"\n")


def test_the_papers_questions_are_recognised_in_any_order_and_white_space() -> None:
    shuffled = [f"  {text.replace(' ', '  ')}" for text in TEXTS]
    random.Random(1).shuffle(shuffled)
    assert why_unverified("paper", "texts", examples(shuffled)) == ""
    assert why_unverified("paper", "ids", examples(shuffled)) == ""


@pytest.mark.parametrize(
    "texts",
    [TEXTS[:-1], [*TEXTS, "Who?"], [TEXTS[0]] * 9, [*TEXTS[:-1], "Who?"], []],
    ids=["fewer", "more", "one of them nine times", "another among them", "none"],
)
def test_other_questions_are_not_the_papers(texts: list[str]) -> None:
    assert (
        why_unverified("paper", "texts", examples(texts))
        == "ours are not the questions of the paper's texts"
    )


@pytest.mark.parametrize("name", ["file", "sum"])
def test_a_file_is_recognised_by_its_content_packed_or_not(name: str, tmp_path: Path) -> None:
    for file in ("own.json", "packed.json.gz"):
        assert why_unverified("paper", name, file=tmp_path / file) == ""
    for file in ("changed.json", "absent.json"):
        assert why_unverified("paper", name, file=tmp_path / file)


def test_a_set_without_a_digest_is_not_taken_for_the_papers() -> None:
    assert (
        why_unverified("paper", "other", examples(TEXTS))
        == "no digest of the paper's other is known, so its questions cannot be recognised"
    )


def test_every_digest_is_whole() -> None:
    lengths = {"sha256": 64, "questions": 64, "ids": 64, "blob": 40}
    for sets in (value.question_sets() for value in benchmarks().values()):
        for entry in sets.values():
            assert entry and all(len(bytes.fromhex(v)) * 2 == lengths[k] for k, v in entry.items())


def test_published_articles_of_barag_are_told_from_a_part_of_them(shared_data: Path) -> None:
    lines = (shared_data / "barag" / "articles_A_r_first300.jsonl").read_text().splitlines()
    questions = [json.loads(line)["question"] for line in lines]
    assert why_unverified("barag", "A_r_first300", examples(questions))  # 207 of 300
