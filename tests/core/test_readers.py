"""A reader that lets an error through refuses the file in one sentence, and does not hide other formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from distributions import Install, installing  # noqa: F401 - a fixture
from small_workspace import CommandLine

from rallebench.core.errors import BadFileError, NotFoundError
from rallebench.core.readers import read_rows
from rallebench.core.sources import Source
from rallebench.corpora import CORPORA
from rallebench.datasets import DATASETS
from rallebench.experiments.scorers import SCORERS

Rows = Iterator[tuple[int, Any]]


def whole(source: Source) -> Rows:
    yield from enumerate(json.loads(source.path.read_text("utf-8"))["rows"], 1)


def lines(source: Source) -> Rows:
    for number, text in enumerate(source.path.read_text("utf-8").splitlines(), 1):
        row = json.loads(text)
        yield number, (row["question"].strip(), float(row["year"]))


def error_of(read: Callable[[Source], Rows], path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(BadFileError) as raised:
        list(read_rows(read, Source(path), "moons"))
    assert raised.value.__cause__ is not None, "the author of the reader sees where it failed"
    return str(raised.value).removeprefix(str(path))


GOOD = b'{"question": "Which moon?", "year": 1}\n'
END = "; check the file, or its format (moons)."


@pytest.mark.parametrize(
    ("read", "content", "sentence"),
    [
        (whole, b'{"rows":\n[1,', ", line 2 is not valid JSON (Expecting value)"),
        (whole, b'{"rows": "\xff"}', " is not UTF-8 (byte 10)"),
        (whole, b'{"lines": []}', " lacks the field 'rows'"),
        (whole, b"[" * 100_000, " is not valid JSON (too deeply nested)"),
        (
            whole,
            b"[]",
            " has another form (TypeError: list indices must be integers or slices, not str)",
        ),
        (
            lines,
            GOOD + b'{"question"',
            ", after line 1 is not valid JSON (Expecting ':' delimiter)",
        ),
        (lines, GOOD * 3 + b"{}", ", after line 3 lacks the field 'question'"),
        (
            lines,
            GOOD + b'{"question": 7}',
            ", after line 1 has another form (AttributeError: 'int' object has no attribute 'strip')",
        ),
        (
            lines,
            b'{"question": "Which?", "year": "MDCX"}',
            " has another form (ValueError: could not convert string to float: 'MDCX')",
        ),
    ],
)
def test_an_error_of_a_reader_names_the_file_the_place_and_the_format(
    read: Callable[[Source], Rows], content: bytes, sentence: str, tmp_path: Path
) -> None:
    assert error_of(read, tmp_path / "moons.json", content) == sentence + END


def test_a_folder_in_place_of_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match=r"cannot be read \(Is a directory\)"):
        list(read_rows(whole, Source(tmp_path), "moons"))


def test_a_sentence_of_the_reader_and_a_bug_of_another_kind_stay_as_they_are(
    tmp_path: Path,
) -> None:
    def refuses(source: Source) -> Rows:
        raise NotFoundError("There is no such moon.")
        yield

    def fails(source: Source) -> Rows:
        raise ZeroDivisionError("a bug")
        yield

    with pytest.raises(NotFoundError, match=r"^There is no such moon\.$"):
        list(read_rows(refuses, Source(tmp_path), "moons"))
    with pytest.raises(ZeroDivisionError):
        list(read_rows(fails, Source(tmp_path), "moons"))


QUESTIONS = '''
"""One JSON document of questions."""

import json

from rallebench.datasets import DATASETS


def recognises(path):
    return json.loads(path.read_text("utf-8"))["kind"] == "moons"


@DATASETS.register("a-moons", recognises=recognises, sample={"moons.json": ""})
def read_moons(source):
    """Questions on moons."""
    for number, row in enumerate(json.loads(source.path.read_text("utf-8"))["rows"], 1):
        yield number, {"id": row["id"], "input": row["question"], "output": []}
'''
PASSAGES = '''
"""One JSON document of passages."""

import json

from rallebench.corpora import CORPORA, CorpusRow


def recognises(path):
    return json.loads(path.read_text("utf-8"))["kind"] == "passages"


@CORPORA.register("a-passages", recognises=recognises, sample={"moons.json": ""})
def read_passages(source):
    """Passages on moons."""
    for number, row in enumerate(json.loads(source.path.read_text("utf-8"))["rows"], 1):
        yield CorpusRow(number, row["id"], row["text"])
'''
PREDICTIONS = '''
"""Predictions as one JSON document."""

import json

from rallebench.experiments.scorers import SCORERS


@SCORERS.register("a-document")
def score_document(guess, gold=None):
    """One JSON document."""
    return {"n": len(json.loads(guess.read_text("utf-8"))["rows"])}
'''


def test_a_dataset_format_of_an_author_is_refused_in_a_sentence_by_every_verb(
    install: Install, cli: CommandLine, tmp_path: Path
) -> None:
    install(DATASETS, "moons_format", QUESTIONS)
    path = tmp_path / "moons.json"
    path.write_text('{"kind": "moons", "rows": [{"id": "1"}]}')
    sentence = f"{path} lacks the field 'question'; check the file, or its format (a-moons)."
    for call in (
        ("run", "--chain", "closed", "--dataset", path, "--no-mlflow"),
        ("import", path, "--kind", "dataset", "--name", "m"),
        ("import", path, "--kind", "dataset", "--name", "m", "--skip-bad"),
    ):
        ran = cli(*call)
        assert ran.code == 2 and sentence in ran.err and "Traceback" not in ran.err, ran.err


def test_a_format_whose_recogniser_fails_keeps_no_other_from_its_files(
    install: Install, cli: CommandLine, tmp_path: Path
) -> None:
    install(DATASETS, "moons_format", QUESTIONS)
    install(CORPORA, "passages_format", PASSAGES)
    path = tmp_path / "kilt.jsonl"
    path.write_bytes(b'{"id": "1", "input": "Which moon?"}\n' * 1)
    run = cli.json("run", "--chain", "closed", "--dataset", path, "--no-mlflow", "--name", "r")
    assert run["n"] == 1
    corpus = tmp_path / "c.tsv"
    corpus.write_text("d1\tTitan is a moon.\n")
    assert cli.json("import", corpus, "--kind", "corpus", "--name", "c")["rows"] == 1


def test_a_corpus_format_of_an_author_is_refused_in_a_sentence(
    install: Install, cli: CommandLine, tmp_path: Path
) -> None:
    install(CORPORA, "passages_format", PASSAGES)
    path = tmp_path / "moons.json"
    path.write_text('{"kind": "passages", "rows": [{"id": "1", "text": "Titan"}, {"id": "2"}]}')
    ran = cli("index", "--corpus", path, "--name", "m", "--kind", "bm25")
    assert ran.code == 2 and "Traceback" not in ran.err
    assert f"{path}, after line 1 lacks the field 'text'" in ran.err


def test_a_form_of_predictions_of_an_author_is_refused_in_a_sentence(
    install: Install, cli: CommandLine, tmp_path: Path
) -> None:
    install(SCORERS, "document_predictions", PREDICTIONS)
    path = tmp_path / "guess.json"
    path.write_text("[1, 2")
    ran = cli("score", "--suite", "a-document", "--guess", path)
    assert ran.code == 2 and f"{path}, line 1 is not valid JSON" in ran.err
