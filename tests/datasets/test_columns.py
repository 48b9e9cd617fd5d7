"""Tables whose names do not tell: columns are given roles by hand, alike in every tabular format and front end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from importing import imported_dataset
from small_workspace import CommandLine

from rallebench import RalleError, load_dataset
from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.events import complete
from rallebench.corpora.cards import read_card
from rallebench.corpora.imported import import_corpus
from rallebench.corpora.reading import read_corpus
from rallebench.datasets.import_notes import read_notes
from rallebench.datasets.reading import read_questions

ROWS: list[dict[str, Any]] = [
    {"key": "a", "q": "Which moon?", "a": "Titan", "source": "p1", "answer": "not this", "topic": "moons"},
    {"key": "b", "q": "Which sea?", "a": "Black Sea", "source": "p2", "answer": "nor this", "topic": "seas"},
]  # fmt: skip
COLUMNS = {"question": "q", "answer": "a", "page": "source", "id": "key", "group": "topic"}
FLAG = "question=q,answer=a,page=source,id=key,group=topic"
SUFFIXES = ("csv", "tsv", "jsonl", "json", "parquet", "arrow")
tables = pytest.mark.parametrize("suffix", SUFFIXES)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    suffix, names = path.suffix[1:], list(rows[0])
    mark = "\t" if suffix == "tsv" else ","
    table = pa.Table.from_pylist(rows)
    if suffix in ("csv", "tsv"):
        lines = [mark.join(names), *(mark.join(map(str, row.values())) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
    elif suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif suffix == "json":
        path.write_text(json.dumps({"version": 1, "data": rows}))
    elif suffix == "parquet":
        pq.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    return path


@tables
def test_a_dataset_has_the_gold_of_the_given_columns_and_their_roles_are_kept(
    suffix: str, tmp_path: Path
) -> None:
    source = write(tmp_path / f"q.{suffix}", ROWS)
    made = imported_dataset(tmp_path / "datasets", "mine", source, columns=COLUMNS)
    first, second = read_questions(made.path)
    assert (first.question.qid, first.question.text) == ("a", "Which moon?")
    assert (first.gold.answers, first.gold.pages) == (("Titan",), {"p1"})
    assert (second.gold.answers, second.record["group"]) == (("Black Sea",), "seas")
    assert read_notes(made.path).columns == COLUMNS
    assert load_dataset(source, columns=COLUMNS)[1].gold.answers == ("Black Sea",)


@tables
def test_a_corpus_has_the_passages_of_the_given_columns(suffix: str, tmp_path: Path) -> None:
    rows = [{"key": f"k{n}", "body": f"Moon {n}.", "head": f"M{n}", "text": "no"} for n in range(3)]
    columns = {"id": "key", "text": "body", "title": "head"}
    source = write(tmp_path / f"c.{suffix}", rows)
    complete(import_corpus(tmp_path, "mine", source, columns=columns))
    passages = list(read_corpus(tmp_path / "mine"))
    assert [(p.doc_id, p.title, p.text) for p in passages][2] == ("k2", "M2", "Moon 2.")
    assert read_card(tmp_path / "mine").columns == columns
    other = complete(
        import_corpus(tmp_path, "other", source, columns={"text": "head", "id": "key"})
    )
    assert other.stamp != read_card(tmp_path / "mine").stamp


@tables
def test_a_wrong_column_names_those_that_there_are(suffix: str, tmp_path: Path) -> None:
    source = write(tmp_path / f"q.{suffix}", ROWS)
    with pytest.raises(
        BadFileError, match=rf"q\.{suffix} has no column 'answr'; it has .*key, q, a"
    ):
        imported_dataset(tmp_path / "datasets", "mine", source, columns={"answer": "answr"})
    with pytest.raises(BadFileError, match=r"has no column 'body'; it has .*key, q, a"):
        complete(import_corpus(tmp_path / "corpora", "mine", source, columns={"text": "body"}))
    assert not list(tmp_path.glob("datasets/*")) and not list(tmp_path.glob("corpora/*"))


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_nested_columns_are_named_with_dots(suffix: str, tmp_path: Path) -> None:
    rows = [{"q": {"text": "Which moon?"}, "a": {"text": ["Titan", "Saturn VI"]}, "docs": [{"id": "p1"}, {"id": "p2"}]}]  # fmt: skip
    columns = {"question": "q.text", "answer": "a.text", "page": "docs.id"}
    [example] = load_dataset(write(tmp_path / f"q.{suffix}", rows), columns=columns)
    assert example.gold.answers == ("Titan", "Saturn VI") and example.gold.pages == {"p1", "p2"}


def test_columns_are_given_on_the_command_line_and_a_run_imports_its_table(
    cli: CommandLine, workspace: Path, tmp_path: Path
) -> None:
    source = write(tmp_path / "their.csv", ROWS)
    failed = cli("import", source, "--kind", "dataset", "--name", "mine")
    assert failed.code == 2 and "and none is 'question'" in failed.last
    assert failed.last.endswith("import it with --columns question=COLUMN.")
    made = cli.json("import", source, "--kind", "dataset", "--name", "mine", "--columns", FLAG)
    assert (made["gold"]["answers"], made["gold"]["pages"]) == (2, 2)
    notes = json.loads((workspace / "datasets" / "mine.import.json").read_text())
    assert notes["columns"] == COLUMNS
    run = ("run", "--chain", "closed", "--dataset", source, "--columns", FLAG, "--no-mlflow", "--name", "r")  # fmt: skip
    assert cli.json(*run)["n"] == 2 and (workspace / "datasets" / "their.jsonl").exists()
    assert cli.json(*run, "--resume")["n"] == 2


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (("--columns", "question"), "'question' is not ROLE=COLUMN"),
        (("--columns", "qestion=q"), "There is no role 'qestion'"),
        (("--columns", FLAG, "--format", "kilt"), "The format 'kilt' has its own names"),
    ],
)
def test_wrong_columns_are_refused_on_the_command_line(
    arguments: tuple[str, ...], sentence: str, cli: CommandLine, tmp_path: Path
) -> None:
    source = write(tmp_path / "their.csv", ROWS)
    failed = cli("import", source, "--kind", "dataset", "--name", "mine", *arguments)
    assert failed.code == 2 and sentence in failed.last
    assert "--columns belongs to --kind" in cli("import", source, "--kind", "scholars", "--name", "x", "--columns", FLAG).last  # fmt: skip


def test_columns_of_a_list_are_refused_in_python() -> None:
    with pytest.raises(UsageError, match="Columns belong to a file"):
        load_dataset([{"q": "Who?"}], columns={"question": "q"})
    with pytest.raises(RalleError, match="no role 'q'"):
        load_dataset("starter-qa", columns={"q": "question"})
