"""The question sets of R-Eval's tasks are read as they are published; a wrong file is one sentence that names the right one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from samples import write_sample

from rallebench.core.errors import BadFileError
from rallebench.core.sources import Problems, Source
from rallebench.core.types import Gold
from rallebench.datasets import DATASETS
from rallebench.datasets.reading import (
    answerable_questions,
    dataset_form,
    read_examples,
    read_questions,
)

SETS = {
    "hotpotqa": "hotpot_dev_distractor_v1.json",
    "2wikimultihopqa": "dev.json of 2WikiMultihopQA",
    "musique": "musique_ans_v1.0_dev.jsonl",
    "kqapro": "val.json of KQA Pro",
    "copen-csj": "task1/iid/dev.json of COPEN",
    "copen-cpj": "task2/iid/dev.json of COPEN",
    "copen-cic": "task3/iid/dev.json of COPEN",
    "kola": "Sample_Data",
    "soay-easy": "soayBench_v1-2",
    "soay-hard": "soayBench_v1-2",
}
FIELD = {"hotpotqa": "context", "2wikimultihopqa": "evidences", "musique": "paragraphs"}
FIELD |= {"copen-csj": "query", "copen-cpj": "label", "copen-cic": "entity", "kola": "instance"}
FIELD |= {"soay-easy": "Query_en", "soay-hard": "Query_en"}
"""Form → a field of every record, by default the question."""
ANSWER = {"copen-csj": "y", "copen-cpj": "label", "copen-cic": "my_label", "soay-easy": "Answer"}
FIRST = {
    "hotpotqa": ("h1", ("Black Sea",), {"Ulm", "Danube"}),
    "2wikimultihopqa": ("w1", ("The Hague",), {"Titan", "Christiaan Huygens"}),
    "musique": ("2hop__1_2", ("Huygens", "Christiaan Huygens"), {"Saturn", "Titan"}),
    "kqapro": ("1", ("Danube",), set()),
    "copen-csj": ("1", ("Triton",), set()),
    "copen-cpj": ("1", ("true",), set()),
    "copen-cic": ("1", ("River",), set()),
    "kola": ("1", ("Titan",), set()),
    "soay-easy": ("1-1", ("Looms; Numbers",), set()),
    "soay-hard": ("8-1", ("Looms; Numbers",), set()),
}
every = pytest.mark.parametrize("form", SETS)


def file_of(form: str, folder: Path) -> Path:
    sample = write_sample(folder, DATASETS.entry(form).traits["sample"])
    return next(sample.iterdir()) if sample.is_dir() else sample


def rows_of(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    return list(map(json.loads, text.splitlines())) if path.suffix == ".jsonl" else json.loads(text)


def write_rows(path: Path, rows: Any) -> None:
    lines = path.suffix == ".jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows) if lines else json.dumps(rows))


def records(rows: Any) -> list[dict[str, Any]]:
    return rows["request_states"] if isinstance(rows, dict) else rows


def refused(path: Path, form: str) -> str:
    with pytest.raises(BadFileError) as caught:
        list(read_examples(path, form=form))
    return str(caught.value)


@every
def test_the_first_record_has_its_id_answers_and_gold_pages(form: str, tmp_path: Path) -> None:
    first, second = read_examples(
        write_sample(tmp_path, DATASETS.entry(form).traits["sample"]), form=form
    )
    qid, answers, pages = FIRST[form]
    assert (first.question.qid, first.gold.answers, first.gold.pages) == (qid, answers, pages)
    assert len(first.gold.provenance) <= 1  # all pages are needed together
    assert first.record["environment"] == ("aminer" if "soay" in form else "wiki")
    assert second.question.text != first.question.text


@every
def test_half_a_file_keeps_whole_records_and_says_it_is_cut(form: str, tmp_path: Path) -> None:
    path = file_of(form, tmp_path)
    path.write_bytes(path.read_bytes().rstrip()[:-20])
    assert "download or copy it again" in refused(path, form)
    source = Source(path, Problems(skip=True))
    assert len(list(read_examples(path, form=form, source=source))) == 1
    assert source.problems.count == 1


@every
def test_another_version_without_a_field_names_the_file_to_take(form: str, tmp_path: Path) -> None:
    path = file_of(form, tmp_path)
    rows = rows_of(path)
    for row in records(rows):
        row["other"] = row.pop(FIELD.get(form, "question"))
    write_rows(path, rows)
    message = refused(path, form)
    assert SETS[form] in message and "whose records have" in message


@every
def test_a_field_of_another_form_names_the_file_to_take(form: str, tmp_path: Path) -> None:
    path = file_of(form, tmp_path)
    rows = rows_of(path)
    field = "context" if form == "2wikimultihopqa" else FIELD.get(form, "question")
    records(rows)[0][field] = 7
    write_rows(path, rows)
    message = refused(path, form)
    assert SETS[form] in message or "has an 'input' that is a number" in message


@every
def test_a_file_in_another_language_is_refused_and_named_as_such(form: str, tmp_path: Path) -> None:
    path = file_of(form, tmp_path)
    text = path.read_text(encoding="utf-8")
    for word in (
        "Which",
        "Are",
        "Where",
        "Who",
        "How",
        "Rivers have beds",
        "Titan",
        "Interests of",
    ):
        text = text.replace(word, "多瑙河流入哪个海洋的问题" * 9)
    path.write_text(text, encoding="utf-8")
    if form == "copen-cic":
        path.write_text(text.replace("He rowed on the", "他在河上" * 30), encoding="utf-8")
    message = refused(path, form)
    assert "is not in English" in message and SETS[form] in message


@every
def test_a_test_split_without_answers_names_the_file_with_them(form: str, tmp_path: Path) -> None:
    path = file_of(form, tmp_path)
    rows = rows_of(path)
    for row in records(rows):
        if form == "kola":
            row["instance"]["references"] = []
        elif form == "copen-csj":
            row["y"] = {"id": 0, "name": " "}
        else:
            row[ANSWER.get(form, "Answer" if "soay" in form else "answer")] = None
    write_rows(path, rows)
    message = refused(path, form)
    assert "has no answer, like a test set" in message and SETS[form] in message


def test_the_unanswerable_twin_of_a_question_is_kept_and_left_out_for_r_eval(
    tmp_path: Path,
) -> None:
    path = file_of("musique", tmp_path)
    first, second = rows_of(path)
    write_rows(path, [{**first, "answerable": False}, first, second])
    twin, *others = read_questions(path)
    assert (twin.question.qid, twin.gold) == ("2hop__1_2-unanswerable", Gold(unanswerable=True))
    assert [e.question.qid for e in others] == ["2hop__1_2", "2hop__3_4"]
    assert list(answerable_questions(path)) == others
    write_rows(path, [{**first, "answerable": "no"}])
    assert "has fields of another type than MuSiQue" in refused(path, "musique")


def test_easy_and_hard_are_told_apart_by_the_number_of_the_template(tmp_path: Path) -> None:
    line = '{"Query_en": "Interests of Ada?", "Answer": "Looms"}\n'
    for number in (1, 7, 8, 44):
        (tmp_path / f"{number}.jsonl").write_text(line)
    (tmp_path / "base_q_en.txt").write_text("Interests of XXX\n")

    def ids(form: str) -> list[str]:
        return [example.question.qid for example in read_examples(tmp_path, form=form)]

    assert (ids("soay-easy"), ids("soay-hard")) == (["1-1", "7-1"], ["8-1", "44-1"])
    (tmp_path / "8.jsonl").rename(tmp_path / "8.txt")
    (tmp_path / "44.jsonl").rename(tmp_path / "44.txt")
    assert "name the folder soayBench_v1-2" in refused(tmp_path, "soay-hard")


def test_a_question_that_aminer_could_not_answer_is_left_out(tmp_path: Path) -> None:
    line = '{"Query_en": "Interests of Ada?", "Answer": %s}\n'
    path = tmp_path / "1.jsonl"
    path.write_text("".join(line % answer for answer in ("[]", '""', '["Looms"]')))
    assert [e.question.qid for e in read_examples(path, form="soay-easy")] == ["1-3"]


def test_candidates_stand_in_one_order_always_and_not_the_answer_first(tmp_path: Path) -> None:
    path = tmp_path / "dev.json"
    others = [{"id": n, "name": f"name {n}"} for n in range(9)]
    rows = [
        {"query": {"id": 1, "name": f"q{n}"}, "y": {"id": 2, "name": "the answer"}, "n": others}
        for n in range(9)
    ]
    write_rows(path, rows)
    texts = [example.question.text for example in read_questions(path)]
    places = {text.split(": ")[1].rstrip("?").split(", ").index("the answer") for text in texts}
    assert len(places) > 2
    write_rows(path, [{**row, "n": others[::-1]} for row in rows])
    assert [example.question.text for example in read_questions(path)] == texts


def test_a_list_in_one_line_is_read_in_pieces(tmp_path: Path) -> None:
    paragraph = [["Ulm", ["On the Danube. " * 8000]]]
    row = {"question": "Which river?", "answer": "Danube", "context": paragraph}
    rows = [{**row, "_id": f"q{n}", "supporting_facts": [["Ulm", 0]]} for n in range(30)]
    path = tmp_path / "hotpot.json"
    path.write_text(json.dumps(rows))  # 3.6 MB: a piece has 1 MB
    source = Source(path)
    assert dataset_form(path) == "hotpotqa"
    stream = read_examples(path, form="hotpotqa", source=source)
    next(stream)
    assert 0 < source.done < path.stat().st_size / 2
    assert len(list(stream)) == 29 and source.done == path.stat().st_size


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[{"_id": "a", "question": "Which?", "context": [], "answer": "x"} {}]', "is missing"),
        ("[1, 2]", "record 1 is not a JSON object but int"),
        ("[{'_id': 1}]", "record 1 is not valid JSON"),
        ('[{"_id": "a", "question": "Which?", "context": [], "answer": "x"}] []', "behind the end"),
        ('[{"_id": "a", "question": "Which?", "context": [], "answer": "x"}, {"_i', "cut off"),
    ],
)
def test_a_broken_list_is_one_sentence(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "hotpot.json"
    path.write_text(text)
    assert why in refused(path, "hotpotqa")


def test_an_empty_list_holds_no_question(tmp_path: Path) -> None:
    path = tmp_path / "hotpot.json"
    path.write_text("[ ]\n")
    assert list(read_examples(path, form="hotpotqa")) == []
    with pytest.raises(BadFileError, match="contains no question"):
        read_questions(path)
