"""Postings made in pieces equal those of bm25s, file by file."""

from __future__ import annotations

import filecmp
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as some

from rallebench.core.events import complete
from rallebench.core.types import Passage
from rallebench.retrievers._postings import TOKEN_BYTES, Postings
from rallebench.retrievers.bm25 import SETTINGS, BM25Kind, write_scores

WORDS = some.lists(some.integers(0, 12), max_size=15)
TINY = TOKEN_BYTES
"""Memory for one token: every passage becomes a piece."""


def build_by_bm25s(folder: Path, passages: Sequence[Sequence[int]], vocabulary: int) -> Path:
    import bm25s

    words = {str(number): number for number in range(vocabulary)}
    tokens = bm25s.tokenization.Tokenized(ids=[list(words) for words in passages], vocab=words)
    model = bm25s.BM25(method="lucene", k1=0.9, b=0.4, backend="numpy")
    model.index(tokens, show_progress=False, create_empty_token=False)
    model.save(str(folder), show_progress=False)
    return folder


def build_in_pieces(
    folder: Path, passages: Sequence[Sequence[int]], vocabulary: int, memory: int
) -> Path:
    folder.mkdir()
    postings = Postings(folder.with_name(f"{folder.name}-pieces"), memory)
    for tokens in passages:
        postings.add(tokens)
    postings.write_piece()
    words = {str(number): number for number in range(vocabulary)}
    for _ in write_scores(folder, postings, words, 0.9, 0.4):
        pass
    return folder


@given(passages=some.lists(WORDS, min_size=1, max_size=12), memory=some.integers(1, 40))
@settings(deadline=None, max_examples=40)
def test_pieces_of_any_size_give_the_files_of_bm25s(
    passages: list[list[int]], memory: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assume(any(passages))
    folder = tmp_path_factory.mktemp("indexes")
    vocabulary = 1 + max((token for tokens in passages for token in tokens), default=0)
    theirs = build_by_bm25s(folder / "bm25s", passages, vocabulary)
    ours = build_in_pieces(folder / "pieces", passages, vocabulary, memory * TOKEN_BYTES)
    for path in theirs.iterdir():
        assert filecmp.cmp(path, ours / path.name, shallow=False), path.name


def test_the_temporary_files_are_gone_and_memory_is_no_part_of_the_index(tmp_path: Path) -> None:
    passages = [Passage(str(n), f"word{n % 7} and word{n % 11}", "title") for n in range(50)]
    built = []
    for memory in (1, 256):
        folder = tmp_path / str(memory)
        folder.mkdir()
        chosen = {name: setting.default for name, setting in SETTINGS.items()} | {"memory": memory}
        built.append(complete(BM25Kind().build(folder, passages, None, chosen)))
        assert [path.name for path in folder.iterdir()] == ["bm25"]
    assert built[0] == built[1] == {"k1": 0.9, "b": 0.4, "tokens": built[0]["tokens"]}
