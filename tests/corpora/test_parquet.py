"""Corpora as Parquet and Arrow files: only the columns of a passage are read, and shards are one corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rallebench.core.errors import BadFileError
from rallebench.core.events import complete
from rallebench.core.sources import Problems, Source
from rallebench.corpora.imported import import_corpus
from rallebench.corpora.reading import corpus_form, read_corpus


def write(path: Path, columns: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def test_a_dump_of_articles_is_read_without_its_embeddings(tmp_path: Path) -> None:
    damaged = pa.array([1, 10**15], pa.timestamp("s"))  # no calendar has the second
    columns = {
        "id": [12, 13],
        "url": ["https://x/12", None],
        "title": ["Titan", None],
        "at": damaged,
    }
    file = write(tmp_path / "train.parquet", {**columns, "text": ["A moon.", "A sea."]})
    addresses: dict[str, str] = {}
    passages = list(read_corpus(file, addresses=addresses))
    assert [(p.doc_id, p.title, p.text) for p in passages] == [("12", "Titan", "A moon."), ("13", "", "A sea.")]  # fmt: skip
    assert addresses == {"12": "https://x/12"}


def test_shards_without_ids_are_one_corpus_with_the_numbers_of_its_rows(tmp_path: Path) -> None:
    for number, texts in enumerate((["a", "b"], ["c", " "])):
        write(tmp_path / "wiki" / f"train-0000{number}.parquet", {"text": texts})
    (tmp_path / "wiki" / "README.md").write_text("# Wikipedia")
    assert corpus_form(tmp_path / "wiki") == "parquet"
    source = Source(tmp_path / "wiki", Problems(skip=True, refuse_empty=True))
    passages = list(read_corpus(source.path, source=source))
    assert [(p.doc_id, p.text) for p in passages] == [("1", "a"), ("2", "b"), ("3", "c")]
    assert "train-00001.parquet, row 2 has no text" in source.problems.first[0].message


@pytest.mark.parametrize(
    "columns, sentence",
    [
        ({"abstract": ["a"]}, r"has the columns abstract, and none is 'text'"),
        ({"id": ["1", "1"], "text": ["a", "b"]}, r"row 2 repeats the id '1' of line 1"),
        ({"id": [b"\xff"], "text": ["a"]}, r"row 1: an id must be text or a number"),
        ({"id": ["1"], "text": [b"\xff"]}, r"row 1 needs 'text' as text; it has id, text"),
        ({"id": ["1"], "text": [{"en": "a"}]}, r"row 1 needs 'text' as text; it has id, text"),
        ({"id": ["1"], "text": [None]}, r"row 1 needs 'text' as text"),
    ],
)
def test_a_column_of_another_kind_is_one_sentence(
    columns: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "x.parquet", columns)
    with pytest.raises(BadFileError, match=sentence):
        complete(import_corpus(tmp_path / "corpora", "x", file))
    assert not list((tmp_path / "corpora").iterdir())
