"""Equal ids are found at any distance, with eight bytes per id; ids that share only a hash are different."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rallebench.core.errors import BadFileError
from rallebench.core.sources import Problems
from rallebench.corpora import _seen
from rallebench.corpora.reading import read_corpus


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=5), max_size=12))
def test_every_id_that_was_seen_before_is_found_and_no_other(batches: list[list[str]]) -> None:
    seen, known = _seen.SeenIds(), set[str]()
    for batch in batches:
        expected = [n for n, doc_id in enumerate(batch) if doc_id in known or doc_id in batch[:n]]
        assert seen.add(batch) == expected
        known |= set(batch)


def test_the_levels_stay_few() -> None:
    seen = _seen.SeenIds()
    for start in range(0, 100_000, 100):
        assert seen.add([str(n) for n in range(start, start + 100)]) == []
    assert len(seen._levels) < 12
    assert sum(len(level) for level in seen._levels) == 100_000


def table(tmp_path: Path, ids: list[str]) -> Path:
    path = tmp_path / "c.tsv"
    path.write_text(
        "".join(f"{doc_id}\ttext {n}\tT\n" for n, doc_id in enumerate(ids)), encoding="utf-8"
    )
    return path


def test_an_id_that_returns_after_thousands_of_lines_is_refused_with_both(tmp_path: Path) -> None:
    path = table(tmp_path, [*map(str, range(30_000)), "17"])
    with pytest.raises(
        BadFileError, match=r"line 30001 repeats the id '17' of line 18; ids must be unique"
    ):
        list(read_corpus(path))


def test_rows_before_a_bad_one_are_judged_first(tmp_path: Path) -> None:
    path = tmp_path / "c.tsv"
    path.write_text("1\ta\n1\tb\nbroken\n", encoding="utf-8")
    with pytest.raises(BadFileError, match="line 2 repeats the id '1' of line 1"):
        list(read_corpus(path))


def test_ids_that_share_a_hash_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _seen.hashes
    monkeypatch.setattr(_seen, "hashes", lambda ids: whole(ids) % 7)
    path = table(tmp_path, [f"d{n}" for n in range(300)])
    assert len(list(read_corpus(path))) == 300
    path = table(tmp_path, [*(f"d{n}" for n in range(100)), "d5"])
    with pytest.raises(BadFileError, match="line 101 repeats the id 'd5' of line 6"):
        list(read_corpus(path))


def test_more_equal_ids_than_are_told_of_cost_no_further_reading(tmp_path: Path) -> None:
    path = table(tmp_path, [str(n % 1000) for n in range(50_000)])
    problems = Problems(skip=True)
    kept = list(read_corpus(path, problems=problems))
    assert [p.doc_id for p in kept] == [str(n) for n in range(1000)]
    assert kept[3].text == "text 3", "the first of equal ids stays"
    assert problems.count == 49_000
    assert [p.line for p in problems.first] == [*range(1001, 1021)]
