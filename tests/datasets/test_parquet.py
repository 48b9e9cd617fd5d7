"""Questions as Parquet and Arrow files: a file, shards in a folder, a published set, and files of another form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from importing import imported_dataset
from small_workspace import CommandLine

from rallebench.core.errors import BadFileError
from rallebench.core.sources import Problems, Source, table_files
from rallebench.core.types import Example
from rallebench.datasets.reading import dataset_form, read_examples, read_questions

SQUAD: list[dict[str, Any]] = [
    {
        "id": "56be85543aeaaa14008c9063",
        "title": "Titan",
        "context": "Titan, also Saturn VI, is the largest moon of Saturn.",
        "question": "Which is the largest moon of Saturn?",
        "answers": {"text": ["Titan", "Saturn VI", "Titan"], "answer_start": [0, 12, 0]},
    },
    {
        "id": "5a8d7bf7df8bba001a0f9ab1",
        "title": "Titan",
        "context": "Titan, also Saturn VI, is the largest moon of Saturn.",
        "question": "Which is the largest moon of Mars?",
        "answers": {"text": [], "answer_start": []},
    },
]
"""Rows of SQuAD 2.0 as the Hugging Face hub distributes them."""


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def same_as_json(path: Path, rows: list[dict[str, Any]]) -> tuple[list[Example], list[Example]]:
    """The examples of a file, and those of the same rows as JSON lines."""
    lines = path.with_name("as.jsonl")
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return list(read_questions(path)), list(read_questions(lines))


def test_squad_as_parquet_is_read_as_its_json_is(tmp_path: Path) -> None:
    file = write(tmp_path / "validation-00000-of-00001.parquet", SQUAD)
    assert dataset_form(file) == "squad"
    read, as_json = same_as_json(file, SQUAD)
    assert read == as_json
    assert [example.gold.answers for example in read] == [("Titan", "Saturn VI"), ()]


def test_a_published_set_as_parquet_is_read_in_its_own_format(tmp_path: Path) -> None:
    row = {
        "id": "h1",
        "question": "Which moon?",
        "answer": "Titan",
        "type": "bridge",
        "level": "hard",
    }
    row |= {"supporting_facts": {"title": ["Titan"], "sent_id": [0]}}
    row |= {"context": {"title": ["Titan"], "sentences": [["Titan is a moon."]]}}
    read, as_json = same_as_json(write(tmp_path / "dev.parquet", [row]), [row])
    assert read == as_json and read[0].gold.pages == {"Titan"}
    kilt = {"id": "k1", "input": "Which moon?", "output": [{"answer": "Titan", "meta": {"score": 0}, "provenance": [{"wikipedia_id": "1", "title": "Titan"}]}]}  # fmt: skip
    read, as_json = same_as_json(write(tmp_path / "kilt.parquet", [kilt]), [kilt])
    assert read == as_json and dataset_form(tmp_path / "kilt.parquet") == "kilt"


def test_shards_in_a_folder_are_one_dataset_whose_rows_are_named_by_their_shard(
    tmp_path: Path, cli: CommandLine
) -> None:
    rows = [{"question": f"Which moon {n}?", "answer": f"moon {n}"} for n in range(5)]
    folder = tmp_path / "moons"
    write(folder / "train-00000-of-00002.parquet", rows[:3])
    write(folder / "train-00001-of-00002.parquet", [*rows[3:], {"question": " ", "answer": "x"}])
    (folder / "README.md").write_text("# Moons")
    assert dataset_form(folder) == "parquet" and len(table_files(folder)) == 2
    with pytest.raises(
        BadFileError, match=r"train-00001-of-00002\.parquet, row 3 has no 'question'"
    ):
        read_questions(folder)
    source = Source(folder, Problems(skip=True))
    read = list(read_examples(folder, source=source))
    assert [example.question.qid for example in read] == ["1", "2", "3", "4", "5"]
    assert source.done == source.total - len("# Moons") and source.problems.count == 1
    (folder / "train-00001-of-00002.parquet").unlink()
    ran = cli.json("run", "--chain", "closed", "--dataset", folder, "--name", "r", "--no-mlflow")
    assert (ran["n"], ran["n_errors"]) == (3, 0)


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_shards_of_other_tables_are_one_dataset_too(suffix: str, tmp_path: Path) -> None:
    texts = {
        ".jsonl": ['{"question": "Which moon?", "answer": "Titan"}\n', '{"question": "Which sea?"}\n{}\n'],
        ".csv": ["question,answer\nWhich moon?,Titan\n", "answer,question\n,Which sea?\nx\n"],
    }[suffix]  # fmt: skip
    for number, text in enumerate(texts):
        (tmp_path / "set").mkdir(exist_ok=True)
        (tmp_path / "set" / f"part-{number}{suffix}").write_text(text)
    source = Source(tmp_path / "set", Problems(skip=True))
    read = list(read_examples(source.path, form=dataset_form(source.path), source=source))
    assert [(x.question.qid, x.question.text) for x in read] == [("1", "Which moon?"), ("2", "Which sea?")]  # fmt: skip
    line = 2 if suffix == ".jsonl" else 3
    assert f"part-1{suffix}, line {line} has" in source.problems.first[0].message


def test_a_file_without_questions_names_its_columns(tmp_path: Path) -> None:
    write(tmp_path / "x.parquet", [{"q": "Which moon?", "a": "Titan"}])
    with pytest.raises(BadFileError, match=r"has the columns q, a, and none is 'question'"):
        imported_dataset(tmp_path / "datasets", "x", tmp_path / "x.parquet", skip_bad=True)
    assert not list(tmp_path.glob("datasets/*"))


def test_binary_data_in_a_column_that_is_not_used_is_no_fault_and_in_an_answer_a_bad_row(
    tmp_path: Path,
) -> None:
    rows = [{"question": "Which moon?", "answer": "Titan", "image": {"bytes": b"\x89PNG\xff"}}]
    assert len(read_questions(write(tmp_path / "a.parquet", rows))) == 1
    bad = [{"question": "Which moon?", "answer": b"\x89PNG\xff"}]
    with pytest.raises(BadFileError, match=r"row 1: an answer is binary data"):
        read_questions(write(tmp_path / "b.parquet", bad))
