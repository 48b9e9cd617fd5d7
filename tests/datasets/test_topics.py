"""Questions of retrieval programs are read as they are, with the judgements beside them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from rallebench.core.errors import BadFileError
from rallebench.core.sources import Problems, Source
from rallebench.datasets.reading import dataset_form, read_examples, read_questions

TABLE = "q1\tWhich moon?\nq2\tWhich sea?\n"
JSONL = '{"qid": "q1", "title": "Which moon?"}\n{"_id": 2, "text": "Which sea?"}\n'
TREC = "q1 0 d1 2\nq1 0 d2 1\nq1 0 d3 0\n"
BEIR = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t1\nq1\td3\t0\n"


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", ["queries.tsv", "topics.dl19-passage.txt", "msmarco.topics.tsv"])
def test_a_file_of_ids_and_texts_is_questions_without_gold(name: str, tmp_path: Path) -> None:
    write(tmp_path, **{name: TABLE})
    assert dataset_form(tmp_path / name) == "topics"
    examples = read_questions(tmp_path / name)
    assert [(e.question.qid, e.question.text) for e in examples] == [
        ("q1", "Which moon?"),
        ("q2", "Which sea?"),
    ]
    assert not any(e.gold.pages or e.gold.answers for e in examples)


def test_json_lines_and_packed_files_are_read_alike(tmp_path: Path) -> None:
    write(tmp_path, topics__jsonl=JSONL)
    (tmp_path / "queries.tsv.gz").write_bytes(gzip.compress(TABLE.encode()))
    assert [e.question.qid for e in read_questions(tmp_path / "topics.jsonl")] == ["q1", "2"]
    assert [e.question.qid for e in read_questions(tmp_path / "queries.tsv.gz")] == ["q1", "q2"]


@pytest.mark.parametrize("judgements", [TREC, TREC.replace(" ", "\t"), BEIR])
@pytest.mark.parametrize("place", ["folder", "file"])
def test_judgements_beside_them_are_the_gold(judgements: str, place: str, tmp_path: Path) -> None:
    write(tmp_path, **{"queries.dev.tsv": TABLE, "qrels.dev.tsv": judgements})
    source = tmp_path if place == "folder" else tmp_path / "queries.dev.tsv"
    assert dataset_form(source) == "topics"
    (example,) = read_questions(source)
    assert example.gold.judgements == {"d1": 2.0, "d2": 1.0}


def test_of_several_judgements_those_of_the_same_name_count(tmp_path: Path) -> None:
    write(tmp_path, **{"topics.dev.tsv": TABLE, "qrels.dev.txt": "q1 0 d1 1\n"})
    write(tmp_path, **{"qrels.test.txt": "q2 0 d7 1\n"})
    assert [e.question.qid for e in read_questions(tmp_path / "topics.dev.tsv")] == ["q1"]
    (tmp_path / "qrels.dev.txt").rename(tmp_path / "qrels.train.txt")
    source = Source(tmp_path / "topics.dev.tsv", Problems(skip=True))
    assert len(list(read_examples(source.path, source=source))) == 2
    assert "Several files of judgements lie beside topics.dev.tsv" in source.problems.warnings[0]


def test_judged_questions_that_lack_are_named(tmp_path: Path) -> None:
    write(tmp_path, **{"topics.tsv": TABLE, "qrels.txt": "q1 0 d1 1\nq9 0 d1 1\n"})
    source = Source(tmp_path / "topics.tsv", Problems(skip=True))
    list(read_examples(source.path, source=source))
    assert "Not in topics.tsv though judged in qrels.txt" in source.problems.warnings[0]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("queries.tsv", "q1\tWhich moon?\nq2\n", "line 2 is not id<TAB>question"),
        ("queries.tsv", "q1\tWhich moon?\nq2\ta\tb\n", "line 2 is not id<TAB>question"),
        ("queries.tsv", "q1\tWhich moon?\n\tWhich sea?\n", "line 2 is not id<TAB>question"),
        ("queries.tsv", f"q1\tWhich?\n{'x' * 101}\tWhich?\n", "line 2 is not id<TAB>question"),
        ("queries.tsv", "q1\tWhich moon?\nq1\tWhich sea?\n", "line 2"),
        ("queries.tsv", "q1\tWhich moon?\nq2\tWhich \0 sea?\n", "line 2 holds binary data"),
        ("topics.jsonl", JSONL + '{"qid": "q3"}\n', "line 3 needs an id ('qid') and a text"),
        ("topics.jsonl", JSONL + '{"qid": [1], "title": "x"}\n', "line 3 needs an id ('qid')"),
        ("topics.jsonl", JSONL + '{"qid": NaN, "title": "x"}\n', "line 3 needs an id ('qid')"),
        ("topics.jsonl", JSONL + "{\n", "line 3 is not valid JSON"),
    ],
)
def test_a_bad_row_is_one_sentence(name: str, text: str, sentence: str, tmp_path: Path) -> None:
    write(tmp_path, **{name: text})
    with pytest.raises(BadFileError) as refusal:
        list(read_examples(tmp_path / name, form="topics"))
    assert sentence in str(refusal.value) and len(str(refusal.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("judgements", "sentence"),
    [
        ("q1 0 d1 high\n", "qrels.txt, line 1 is not query-id<TAB>corpus-id<TAB>score"),
        ("q1 0 d1 nan\n", "qrels.txt, line 1 is not query-id<TAB>corpus-id<TAB>score"),
        ("q1 0 d1 1\nq1 0 d1 2\n", "line 2 gives 'd1' a different score for 'q1' than before"),
    ],
)
def test_bad_judgements_are_one_sentence(judgements: str, sentence: str, tmp_path: Path) -> None:
    write(tmp_path, **{"topics.tsv": TABLE, "qrels.txt": judgements})
    with pytest.raises(BadFileError, match=r"qrels\.txt") as refusal:
        read_questions(tmp_path / "topics.tsv")
    assert sentence in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("corpus.tsv", TABLE),
        ("queries.tsv", "id\tquestion\tanswer\nq1\tWhich moon?\tTitan\n"),
        ("queries.jsonl", json.dumps({"question": "Which moon?", "answer": "Titan"}) + "\n"),
        ("queries.jsonl", json.dumps({"id": "1", "query": "Which?", "answers": ["Titan"]}) + "\n"),
    ],
)
def test_other_files_are_not_taken_for_them(name: str, text: str, tmp_path: Path) -> None:
    write(tmp_path, **{name: text})
    assert dataset_form(tmp_path / name) != "topics"


def test_a_folder_with_two_files_of_questions_must_be_named(tmp_path: Path) -> None:
    write(tmp_path, **{"queries.dev.tsv": TABLE, "queries.test.tsv": TABLE, "qrels.txt": TREC})
    with pytest.raises(BadFileError, match="name the file of questions"):
        list(read_examples(tmp_path, form="topics"))
