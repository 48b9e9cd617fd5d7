"""The gold pages of a published set get the ids of the corpus that has them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest
from importing import imported_dataset
from samples import write_sample
from small_workspace import CommandLine

from rallebench.datasets import DATASETS
from rallebench.datasets.importing import ImportedDataset
from rallebench.datasets.reading import read_questions

WIKI = {
    "Titan (moon)": ["77"],
    "Saturn": ["12"],
    "Titan": ["77"],
    "Ulm": ["5", "6"],
    "Danube": ["9"],
}


def finder(pages: Mapping[str, list[str]]) -> Any:
    def find(names: Collection[str]) -> dict[str, dict[str, list[str]]]:
        return {"wiki": {n: pages[n] for n in names if n in pages}, "other": {}}

    return find


def imported(form: str, folder: Path, pages: Mapping[str, list[str]] = WIKI) -> ImportedDataset:
    sample = write_sample(folder / "sample", DATASETS.entry(form).traits["sample"])
    file = next(sample.iterdir()) if sample.is_dir() else sample
    return imported_dataset(folder / "datasets", form, file, form=form, find_pages=finder(pages))


def pages_of(made: ImportedDataset) -> list[list[set[str]]]:
    return [[set(ids) for ids in e.gold.provenance] for e in read_questions(made.path)]


def test_titles_become_the_ids_of_the_corpus_set_by_set(tmp_path: Path) -> None:
    made = imported("fever", tmp_path)
    assert pages_of(made) == [[{"77"}, {"77", "12"}], []]
    first = read_questions(made.path)[0]
    assert first.gold.titles == {"77": "Titan (moon)", "12": "Saturn"}
    assert made.notes[0] == (
        "The gold pages of 1 of 1 questions are pages of the corpus 'wiki' by their id, title or address; its ids are used."
    )
    assert made.warnings == ()


def test_a_title_of_several_pages_makes_each_an_evidence_set(tmp_path: Path) -> None:
    made = imported("hotpotqa", tmp_path)
    assert pages_of(made)[0] == [{"5"}, {"6"}, {"9"}]
    first = read_questions(made.path)[0]
    assert first.gold.answers == ("Black Sea",)


def test_pages_that_the_corpus_lacks_keep_their_names_and_are_told(tmp_path: Path) -> None:
    made = imported("triviaqa", tmp_path, {"Saturn": ["12"]})
    assert pages_of(made) == [[{"Titan (moon)"}, {"12"}], []]
    assert made.warnings == (
        "Not in the corpus 'wiki': 1 gold page, such as 'Titan (moon)'; no search of it can find them.",
    )


@pytest.mark.parametrize("pages", [{}, {"Titan (moon)": ["Titan (moon)"], "Saturn": ["Saturn"]}])
def test_without_a_corpus_or_with_its_own_ids_a_set_stays_as_it_is(
    pages: dict[str, list[str]], tmp_path: Path
) -> None:
    made = imported("triviaqa", tmp_path, pages)
    assert pages_of(made) == [[{"Titan (moon)"}, {"Saturn"}], []]
    assert (made.notes, made.warnings) == ((), ())


def test_a_corpus_with_fewer_than_half_of_the_questions_is_another(tmp_path: Path) -> None:
    made = imported("hotpotqa", tmp_path, {"Ulm": ["5"], "Danube": ["9"]})
    assert pages_of(made)[0] == [{"5", "9"}]
    other = tmp_path / "other"
    rows = [
        {
            "title": t,
            "context": "x",
            "question": f"{t}?",
            "id": t,
            "answers": {"text": ["a"], "answer_start": [0]},
        }
        for t in "abc"
    ]
    file = tmp_path / "squad.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = imported_dataset(other, "s", file, find_pages=finder({"a": ["1"]}))
    assert made.form == "squad" and pages_of(made) == [[{"a"}], [{"b"}], [{"c"}]]


def test_the_command_finds_the_pages_of_an_imported_corpus(
    cli: CommandLine, tmp_path: Path
) -> None:
    corpus = ("import", cli.workspace / "corpus.tsv", "--kind", "corpus", "--name", "moons")
    cli.json(*corpus, "--page-map", cli.workspace / "pages.json")
    row = {
        "question": "is titan a moon",
        "title": "Titan (moon)",
        "passage": "Yes.",
        "answer": True,
    }
    (tmp_path / "dev.jsonl").write_text(json.dumps(row) + "\n")
    value = cli.json("import", tmp_path / "dev.jsonl", "--kind", "dataset", "--name", "yes")
    assert value["notes"][0].startswith(
        "The gold pages of 1 of 1 questions are pages of the corpus"
    )
    (example,) = read_questions(cli.workspace / "datasets" / "yes.jsonl")
    assert example.gold.pages == {"p1"}
