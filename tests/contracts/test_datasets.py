"""Every dataset format keeps the same promises; a new file in ``datasets/`` is tested as soon as it exists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from importing import imported_dataset
from samples import write_sample
from small_workspace import CommandLine

from rallebench.core.errors import BadFileError
from rallebench.core.sources import Problems, Source
from rallebench.datasets import DATASETS
from rallebench.datasets.reading import dataset_form, read_examples, read_questions

forms = pytest.mark.parametrize("form", DATASETS.names())
ROWS = [
    *(
        "2wikimultihopqa",
        "alce",
        "beir",
        "boolq",
        "browsecomp",
        "copen-cic",
        "copen-cpj",
        "copen-csj",
        "csv",
        "dpr",
        "fever",
        "flashrag",
        "hotpotqa",
        "jsonl",
        "kilt",
        "kola",
        "kqapro",
        "musique",
        "r-eval",
        "r-eval-original",
        "search-r1",
        "soay-easy",
        "soay-hard",
        "squad",
        "strategyqa",
        "triviaqa",
    ),
]
"""Formats of rows, which are read one by one."""


@pytest.fixture
def sample(form: str, tmp_path: Path) -> Path:
    return write_sample(tmp_path / "sample", DATASETS.entry(form).traits["sample"])


@forms
def test_a_sample_is_read_as_examples_with_ids_of_their_own(form: str, sample: Path) -> None:
    examples = list(read_examples(sample, form=form))
    assert len(examples) >= 2
    assert len({example.question.qid for example in examples}) == len(examples)
    assert all(example.question.text.strip() for example in examples)
    assert any(example.gold.answers or example.gold.provenance for example in examples)


@forms
def test_a_record_is_in_kilts_form_so_that_it_is_read_again_alike(
    form: str, sample: Path, tmp_path: Path
) -> None:
    examples = list(read_examples(sample, form=form))
    lines = (json.dumps(dict(example.record)) + "\n" for example in examples)
    (tmp_path / "again.jsonl").write_text("".join(lines))
    assert list(read_examples(tmp_path / "again.jsonl", form="kilt")) == examples


@forms
def test_a_sample_is_recognised_as_its_own_format_or_named(form: str, sample: Path) -> None:
    traits = {name: DATASETS.entry(name).traits for name in DATASETS.names()}
    recognised = [
        name
        for name in traits
        if "recognises" in traits[name] and traits[name]["recognises"](sample)
    ]
    if "recognises" in traits[form]:
        assert recognised == [form] and dataset_form(sample) == form
        assert list(read_questions(sample)) == list(read_examples(sample, form=form))


@forms
def test_a_set_of_any_format_can_be_imported(form: str, sample: Path, tmp_path: Path) -> None:
    examples = list(read_examples(sample, form=form))
    imported = imported_dataset(tmp_path / "datasets", "mine", sample, form=form)
    assert (imported.form, imported.questions) == (form, len(examples))
    assert list(read_questions(imported.path)) == examples


@forms
def test_a_bad_row_is_named_or_counted_by_choice(form: str, sample: Path) -> None:
    spoil(sample)
    with pytest.raises(BadFileError):
        list(read_examples(sample, form=form))
    source = Source(sample, Problems(skip=True))
    try:
        list(read_examples(sample, form=form, source=source))
    except BadFileError:  # a format with one document has no rows to leave out
        return
    assert source.problems.count >= 1


@pytest.mark.parametrize("form", ROWS)
def test_rows_beside_a_bad_row_are_read(form: str, sample: Path) -> None:
    spoil(sample)
    source = Source(sample, Problems(skip=True))
    assert list(read_examples(sample, form=form, source=source))
    assert source.problems.count >= 1


def spoil(sample: Path) -> None:
    """Add a line that is not UTF-8 to a file."""
    file = min((path for path in sample.rglob("*") if path.is_file()), default=sample)
    file.write_bytes(file.read_bytes() + b"\xff\xfe\n")


@forms
def test_a_set_that_is_not_there_is_one_sentence(form: str, tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match="does not exist"):
        list(read_examples(tmp_path / "none", form=form))


@forms
def test_a_file_or_folder_of_any_recognised_format_can_be_run(
    form: str, sample: Path, cli: CommandLine
) -> None:
    if "recognises" not in DATASETS.entry(form).traits:
        pytest.skip("this format must be named, and is imported first")
    run = cli.json("run", "--chain", "closed", "--dataset", sample, "--name", "r", "--no-mlflow")
    examples = read_questions(sample)
    assert (run["n"], run["n_errors"]) == (len(examples), 0)
    again = cli.json(
        "run --chain closed --dataset", sample, "--name", "r", "--resume", "--no-mlflow"
    )
    assert again["metrics"] == run["metrics"]
