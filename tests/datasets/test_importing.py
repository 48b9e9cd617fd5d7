"""Datasets in a workspace: any format becomes KILT's, checked, whole or not at all."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from importing import imported_dataset

from rallebench.core.errors import BadFileError, NotFoundError, UsageError
from rallebench.datasets.importing import ImportedDataset
from rallebench.datasets.reading import dataset_form, read_examples, read_questions

RECORD = {
    "id": "q1",
    "input": "Who?",
    "output": [{"answer": "Huygens", "provenance": [{"wikipedia_id": "p1"}]}],
}


@pytest.fixture
def datasets(tmp_path: Path) -> Path:
    return tmp_path / "workspace" / "datasets"


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def lines(*records: Any) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def test_kilts_records_are_kept_as_they_are_also_gzipped(datasets: Path, tmp_path: Path) -> None:
    records = [RECORD, {"id": 2, "input": "什么？", "meta": {"x": [1]}}]
    for number, content in enumerate(
        (lines(*records).encode(), gzip.compress(lines(*records).encode()))
    ):
        made = imported_dataset(datasets, f"set{number}", write(tmp_path / "q.jsonl", content))
        assert made == ImportedDataset(
            f"set{number}", datasets / f"set{number}.jsonl", "kilt", 2, 0, (), 1, 1, 1
        )
        assert [
            json.loads(line) for line in made.path.read_text(encoding="utf-8").splitlines()
        ] == records
        assert [example.gold.answers for example in read_questions(made.path)] == [("Huygens",), ()]


def beir(folder: Path, **qrels: str) -> Path:
    rows = ({"_id": f"q{n}", "text": f"Question {n}?", "metadata": {}} for n in range(4))
    write(folder / "queries.jsonl", lines(*rows))
    for split, content in qrels.items():
        write(folder / "qrels" / f"{split}.tsv", content)
    return folder


def test_beirs_questions_get_a_page_for_relevant_passages_and_lost_ones_are_named(
    datasets: Path, tmp_path: Path
) -> None:
    qrels = "query-id\tcorpus-id\tscore\nq1\td7\t1\nq1\td9\t2\nq2\td7\t0\nq2\td8\t0\nq3\td1\t1\nq9\td1\t1\n"
    folder = beir(tmp_path / "scifact", test=qrels, train="q0\td1\t1\n")
    made = imported_dataset(datasets, "scifact", folder)
    assert (made.form, made.questions, made.pages, made.neither) == ("beir", 3, 2, 1)
    first, irrelevant, second = read_questions(made.path)
    assert (first.question.qid, first.question.text) == ("q1", "Question 1?")
    assert first.gold.provenance == (frozenset({"d7"}), frozenset({"d9"}))
    assert second.gold.pages == {"d1"}
    assert first.gold.page_grades == {"d7": 1.0, "d9": 2.0} and second.gold.page_grades == {
        "d1": 1.0
    }
    assert tuple(read_examples(folder)) == (first, irrelevant, second)
    assert (irrelevant.question.qid, irrelevant.gold.pages) == ("q2", frozenset())
    assert irrelevant.gold.judgements == {"d7": 0.0, "d8": 0.0}
    assert made.warnings == (
        "Not in queries.jsonl though judged in test.tsv, so not scored: 1 id (q9).",
        "Only judged 0 in test.tsv, so scored 0 as by trec_eval: 1 question (q2).",
        "None of 3 questions has an answer: only retrieval can be scored.",
    )


def test_another_split_of_a_beir_folder_is_read_by_its_file(tmp_path: Path, datasets: Path) -> None:
    header = "query-id\tcorpus-id\tscore\n"
    folder = beir(
        tmp_path / "scifact",
        test=f"{header}q1\td7\t1\n",
        train=f"{header}q2\td7\t2\nq3\td1\t1\n",
    )
    made = imported_dataset(datasets, "train", folder / "qrels" / "train.tsv")
    assert (made.form, [e.question.qid for e in read_questions(made.path)]) == (
        "beir",
        ["q2", "q3"],
    )
    assert [e.question.qid for e in read_questions(folder)] == ["q1"]
    (folder / "queries.jsonl").unlink()
    assert dataset_form(folder / "qrels" / "train.tsv") != "beir"


@pytest.mark.parametrize(
    ("qrels", "message"),
    [
        ({}, "is not a folder with queries.jsonl and qrels"),
        ({"other": ""}, "contains no test.tsv"),
        ({"test": "q1 d1 1\n"}, r"line 1 is not query-id<TAB>corpus-id<TAB>score"),
        ({"test": "zz\td\t1\n"}, "contains no question"),
        ({"test": "q1\td\tnan\n"}, "line 1 is not query-id"),
        ({"test": "q1\td\tinf\n"}, "line 1 is not query-id"),
        ({"test": "q1\t\t1\n"}, "line 1 is not query-id"),
        ({"test": "\td\t1\n"}, "line 1 is not query-id"),
        (
            {"test": "q1\td\t1\nq1\td\t0\n"},
            "line 2 gives 'd' a different score for 'q1' than before",
        ),
    ],
)
def test_a_bad_beir_folder_is_refused(
    qrels: dict[str, str], message: str, datasets: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadFileError, match=message):
        imported_dataset(datasets, "x", beir(tmp_path / "b", **qrels), form="beir")
    assert not datasets.exists() or list(datasets.iterdir()) == []


def test_csv_questions_with_answers_ids_and_pages(datasets: Path, tmp_path: Path) -> None:
    content = 'Question,Answer,page_id\n"Who, and\nwhen?","[""Huygens"", ""C. Huygens""]",p1\nWhere?,Saturn,\nWhy?,,p9\n'
    made = imported_dataset(datasets, "mine", write(tmp_path / "q.csv", content))
    assert made.form == "csv"
    found = read_questions(made.path)
    questions = [(e.question.qid, e.question.text) for e in found]
    assert questions == [("1", "Who, and\nwhen?"), ("2", "Where?"), ("3", "Why?")]
    assert [e.gold.answers for e in found] == [("Huygens", "C. Huygens"), ("Saturn",), ()]
    assert [set(e.gold.pages) for e in found] == [{"p1"}, set(), {"p9"}]
    assert tuple(read_examples(tmp_path / "q.csv")) == found


def test_json_lines_with_the_names_that_most_files_use(datasets: Path, tmp_path: Path) -> None:
    rows = (
        {
            "id": "o1",
            "question": "北京大学成立于哪一年？",
            "answers": ["1898年", 1898],
            "page_id": "p1",
        },
        {"question": "Which sea?", "answer": "Black Sea"},
        {"query": "Why?"},
    )
    made = imported_dataset(datasets, "mine", write(tmp_path / "q.jsonl", lines(*rows)))
    assert made.form == "jsonl"
    found = read_questions(made.path)
    assert [e.question.qid for e in found] == ["o1", "2", "3"]
    assert [e.gold.answers for e in found] == [("1898年", "1898"), ("Black Sea",), ()]
    assert [set(e.gold.pages) for e in found] == [{"p1"}, set(), set()]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.csv", "id,text\n1,a\n", "line 1 names the columns id, text, and none is 'question'"),
        ("q.csv", "id,question\n1,a,b\n", "line 2 has 3 fields where the header names 2"),
        ("q.csv", "id,question\n1,a\n1,b\n", "line 3 repeats the id '1' of line 2"),
        ("q.csv", "", "contains no question"),
        ("q.jsonl", lines(RECORD, {"id": "q2"}), "line 2 has no 'input'"),
        ("q.jsonl", lines({"question": "Who?"}, {"answer": "Ada"}), "line 2 has no 'question'"),
        ("q.jsonl", lines({"question": "Who?", "answer": {}}), "should be a text or a list"),
    ],
)
def test_a_bad_question_stops_the_import_and_nothing_appears(
    name: str, content: str, message: str, datasets: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadFileError, match=message):
        imported_dataset(datasets, "x", write(tmp_path / name, content))
    assert list(datasets.iterdir()) == []


def test_bad_questions_are_skipped_and_counted_by_choice(datasets: Path, tmp_path: Path) -> None:
    content = (
        lines(RECORD, {"id": "q2"}, RECORD, {"id": "q3", "input": "x", "output": [{"answer": 7}]})
        + "{\n"
        + lines({"id": "q4", "input": "y"})
    )
    made = imported_dataset(datasets, "x", write(tmp_path / "q.jsonl", content), skip_bad=True)
    assert (made.questions, made.skipped) == (2, 4)
    assert [problem.line for problem in made.problems] == [2, 3, 4, 5]


def test_the_same_questions_stay_and_others_are_refused(datasets: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "q.jsonl", lines(RECORD))
    first = imported_dataset(datasets, "x", source)
    before = first.path.stat()
    assert imported_dataset(datasets, "x", source) == first
    source.write_text(lines({**RECORD, "id": "other"}))
    with pytest.raises(UsageError, match="A dataset 'x' with other questions exists already"):
        imported_dataset(datasets, "x", source)
    after = first.path.stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)
    assert [p.name for p in datasets.iterdir()] == ["x.jsonl"]


def test_a_name_file_or_format_that_cannot_be_is_refused(datasets: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "q.jsonl", lines(RECORD))
    with pytest.raises(UsageError, match="dataset name 'a/b' cannot be"):
        imported_dataset(datasets, "a/b", source)
    with pytest.raises(BadFileError, match="does not exist"):
        imported_dataset(datasets, "x", tmp_path / "none.jsonl")
    with pytest.raises(NotFoundError, match="no dataset format 'xml'"):
        imported_dataset(datasets, "x", source, form="xml")
    assert not datasets.exists()
