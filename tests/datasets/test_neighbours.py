"""Question sets of other projects are read as they are distributed; every unusable row is named."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from importing import imported_dataset
from samples import write_sample

from rallebench.core.json_lists import find_rows
from rallebench.core.sources import Problems, Source
from rallebench.core.types import Example
from rallebench.datasets import DATASETS
from rallebench.datasets.reading import dataset_form, read_examples, read_questions

Row = dict[str, Any]


def file_of(form: str, folder: Path) -> Path:
    sample = write_sample(folder, DATASETS.entry(form).traits["sample"])
    return next(sample.iterdir()) if sample.is_dir() else sample


def sample_row(form: str, folder: Path) -> Row:
    """The first row of a sample, as parsed JSON."""
    text = file_of(form, folder).read_text(encoding="utf-8")
    if text.startswith("["):
        value = json.loads(text)
    elif text.startswith('{"Data"'):
        value = json.loads(text)["Data"]
    elif text.startswith('{"version"'):
        article = json.loads(text)["data"][0]
        paragraph = article["paragraphs"][0]
        rest = {"title": article["title"], "context": paragraph["context"]}
        value = [{**question, **rest} for question in paragraph["qas"]]
    elif text.startswith('{"answers"'):
        value = find_rows(json.loads(text)) or []
    else:
        value = [json.loads(line) for line in text.splitlines()]
    first: Row = value[0]
    return first


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(path: Path, form: str = "") -> tuple[list[Example], list[str]]:
    """The examples of a file, and a sentence about each bad row."""
    source = Source(path, Problems(skip=True))
    examples = list(read_examples(path, form=form, source=source))
    return examples, [problem.message for problem in source.problems.first]


def sets(example: Example) -> list[set[str]]:
    return [set(pages) for pages in example.gold.provenance]


DOCUMENT = ["http://example.org/titan"]
FIRST: Mapping[str, tuple[str, tuple[str, ...], Sequence[set[str]]]] = {
    "alce": ("-1", ("Titan was discovered in 1655, Triton in 1846.",), [{"Titan (moon)"}]),
    "boolq": ("1", ("yes",), [{"Titan (moon)"}]),
    "dpr": ("1", ("Titan", "Saturn VI"), [{"Titan (moon)"}, {"Saturn"}]),
    "fever": (
        "91198",
        ("SUPPORTS",),
        [{"Titan_-LRB-moon-RRB-"}, {"Titan_-LRB-moon-RRB-", "Saturn"}],
    ),
    "flashrag": ("test_0", ("Titan", "Saturn VI"), []),
    "msmarco": ("11", ("Titan.", "Titan is the largest moon of Saturn."), [{*DOCUMENT}]),
    "search-r1": ("nq-0", ("Titan", "Saturn VI"), []),
    "squad": ("a1", ("Titan",), [{"Titan_(moon)"}]),
    "strategyqa": ("s1", ("yes",), [{"Ulm", "Danube"}, {"Ulm"}]),
    "triviaqa": ("tc_1", ("Titan (moon)", "Saturn VI"), [{"Titan (moon)"}, {"Saturn"}]),
}
"""Format → id, accepted answers and evidence sets of the first row of its sample."""


@pytest.mark.parametrize("form", FIRST)
def test_the_first_row_has_its_id_answers_and_evidence_sets(form: str, tmp_path: Path) -> None:
    first = read_questions(file_of(form, tmp_path))[0]
    assert (first.question.qid, first.gold.answers, sets(first)) == FIRST[form]


FIELD = {"boolq": "passage", "dpr": "positive_ctxs", "fever": "evidence", "strategyqa": "term"}
FIELD |= {"squad": "context", "triviaqa": "Answer", "alce": "question", "msmarco": "passages"}
FIELD |= {"flashrag": "golden_answers", "search-r1": "prompt"}
"""Format → a field without which a row is another version of the set."""


@pytest.mark.parametrize("form", FIRST)
def test_a_row_without_a_field_is_named_with_the_file_to_take(form: str, tmp_path: Path) -> None:
    good = sample_row(form, tmp_path)
    bad = {name: value for name, value in good.items() if name != FIELD[form]}
    _, (problem,) = read(lines(tmp_path / "rows.jsonl", bad), form)
    assert "rows.jsonl, line 1 has no" in problem and f"{FIELD[form]!r}" in problem
    if form not in ("flashrag", "search-r1"):  # of many sets
        assert "; take " in problem


NAN = float("nan")
HOSTILE: Sequence[tuple[str, Row, str]] = [
    ("alce", {"qa_pairs": [{"short_answers": "1655"}]}, "fields of another type than ALCE"),
    ("alce", {"qa_pairs": [{"question": "?"}]}, "fields of another type than ALCE"),
    ("alce", {"qa_pairs": [7]}, "fields of another type than ALCE"),
    ("alce", {"answer": NAN}, "fields of another type than ALCE"),
    (
        "alce",
        {"answer": None, "qa_pairs": []},
        "has no answer, like a test set; take a file of ALCE",
    ),
    ("alce", {"annotations": [{"long_answer": {}}]}, "fields of another type than ALCE"),
    ("boolq", {"answer": "yes"}, "fields of another type than BoolQ"),
    ("boolq", {"answer": NAN}, "fields of another type than BoolQ"),
    ("boolq", {"answer": 7}, "fields of another type than BoolQ"),
    ("boolq", {"answer": None}, "has no answer, like a test set; take dev.jsonl of BoolQ"),
    ("boolq", {"question": ["is it"]}, "has an 'input' that is a list"),
    ("boolq", {"question": " "}, "has an empty 'input'"),
    ("boolq", {"question": "土卫六是卫星吗" * 9}, "is not in English, but BoolQ is"),
    ("boolq", {"title": {"a": 1}}, "fields of another type than BoolQ"),
    ("dpr", {"positive_ctxs": {}, "answers": "Titan"}, "fields of another type than DPR's format"),
    ("dpr", {"positive_ctxs": ["Titan"]}, "fields of another type than DPR's format"),
    ("dpr", {"positive_ctxs": [{"title": "Titan"}]}, "fields of another type than DPR's format"),
    ("dpr", {"answers": [NAN]}, "fields of another type than DPR's format"),
    ("dpr", {"answers": [["Titan"]]}, "fields of another type than DPR's format"),
    ("dpr", {"question": None}, "has no 'input'"),
    ("fever", {"label": "MAYBE"}, "fields of another type than FEVER"),
    ("fever", {"label": ""}, "has no answer, like a test set; take train.jsonl"),
    ("fever", {"label": NAN}, "fields of another type than FEVER"),
    ("fever", {"evidence": [[["Titan"]]]}, "fields of another type than FEVER"),
    ("fever", {"evidence": [[[1, 2, {}, 0]]]}, "fields of another type than FEVER"),
    ("fever", {"evidence": "Titan"}, "fields of another type than FEVER"),
    ("fever", {"claim": 7}, "has an 'input' that is a number"),
    ("fever", {"id": [1]}, "has an 'id' that is a list"),
    ("flashrag", {"golden_answers": "Titan"}, "has no list 'golden_answers'"),
    ("flashrag", {"golden_answers": [["Titan"]]}, "an answer is a list inside a list"),
    (
        "flashrag",
        {"golden_answers": [2], "choices": ["a", "b"]},
        "answer 2 is not the number of one of",
    ),
    ("flashrag", {"question": 7}, "has no 'question' with the text"),
    ("msmarco", {"passages": 7}, "fields of another type than MS MARCO"),
    ("msmarco", {"passages": [{"url": "u"}]}, "fields of another type than MS MARCO"),
    ("msmarco", {"answers": [[]], "wellFormedAnswers": "[]"}, "has no answer, like a test set"),
    ("msmarco", {"answers": [{"a": 1}]}, "fields of another type than MS MARCO"),
    ("msmarco", {"query": None}, "has no 'input'"),
    ("search-r1", {"prompt": []}, "has no 'question' and no 'prompt' with the text"),
    ("search-r1", {"prompt": [{"content": 7}]}, "has no 'question' and no 'prompt'"),
    ("search-r1", {"reward_model": {"ground_truth": {"target": {}}}}, "an answer is an object"),
    (
        "search-r1",
        {"reward_model": {"ground_truth": {"target": True}}},
        "an answer is true without",
    ),
    ("squad", {"answers": []}, "has no answer, like a test set; take dev-v2.0.json"),
    ("squad", {"answers": None}, "fields of another type than SQuAD"),
    ("squad", {"answers": [{"text": NAN}]}, "fields of another type than SQuAD"),
    ("squad", {"answers": ["Titan"]}, "fields of another type than SQuAD"),
    ("squad", {"answers": {"text": 7}}, "fields of another type than SQuAD"),
    ("squad", {"is_impossible": "true"}, "fields of another type than SQuAD"),
    ("squad", {"title": ["Titan"]}, "fields of another type than SQuAD"),
    ("squad", {"id": [1]}, "has an 'id' that is a list"),
    ("strategyqa", {"answer": "true"}, "fields of another type than StrategyQA"),
    ("strategyqa", {"answer": None}, "has no answer, like a test set; take strategyqa_train.json"),
    ("strategyqa", {"evidence": 7}, "fields of another type than StrategyQA"),
    ("strategyqa", {"evidence": [[7]]}, "fields of another type than StrategyQA"),
    ("strategyqa", {"evidence": [[[["Ulm-1"], [{}]]]]}, "fields of another type than StrategyQA"),
    ("triviaqa", {"Answer": None}, "has no answer, like a test set; take a train or dev file"),
    ("triviaqa", {"Answer": {"Value": "<unk>"}}, "has no answer, like a test set"),
    ("triviaqa", {"Answer": {"Value": 7}}, "fields of another type than TriviaQA"),
    ("triviaqa", {"Answer": ["Titan"]}, "fields of another type than TriviaQA"),
    ("triviaqa", {"Answer": {"Aliases": 7}}, "fields of another type than TriviaQA"),
    ("triviaqa", {"EntityPages": [7]}, "fields of another type than TriviaQA"),
    ("triviaqa", {"Question": ""}, "has an empty 'input'"),
]


@pytest.mark.parametrize(("form", "change", "fault"), HOSTILE)
def test_a_bad_row_is_named_by_its_line_and_the_others_are_read(
    form: str, change: Row, fault: str, tmp_path: Path
) -> None:
    good = sample_row(form, tmp_path)
    path = lines(tmp_path / "rows.jsonl", {**good, **change}, good)
    examples, (problem,) = read(path, form)
    assert len(examples) == 1
    assert "rows.jsonl, line 1" in problem and fault in problem


@pytest.mark.parametrize("form", [form for form in FIRST if form not in ("boolq", "dpr")])
def test_a_repeated_id_is_a_bad_row(form: str, tmp_path: Path) -> None:
    good = sample_row(form, tmp_path)
    examples, (problem,) = read(lines(tmp_path / "rows.jsonl", good, good), form)
    assert len(examples) == 1 and "line 2 repeats the id" in problem


@pytest.mark.parametrize("form", FIRST)
def test_a_hundred_levels_and_a_million_letters_end_in_a_sentence_or_are_read(
    form: str, tmp_path: Path
) -> None:
    good = sample_row(form, tmp_path)
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    path = lines(
        tmp_path / "rows.jsonl",
        {**good, FIELD[form]: deep},
        {**good, FIELD[form]: "x" * 10**6},
        good,
    )
    examples, problems = read(path, form)
    assert len(examples) + len(problems) == 3 and examples


# ── other forms of the same sets ─────────────────────────────────────────────


def test_boolq_of_superglue_has_its_label_as_a_truth_value_or_a_number(tmp_path: Path) -> None:
    rows = [
        {"question": f"is it {label!r}", "passage": "Yes.", "idx": n, "label": label}
        for n, label in enumerate((True, False, 1, 0, -1))
    ]
    path = lines(tmp_path / "val.jsonl", *rows)
    examples, (problem,) = read(path)
    assert dataset_form(path) == "boolq"
    assert [e.gold.answers[0] for e in examples] == ["yes", "no", "yes", "no"]
    assert "line 5 has no answer, like a test set" in problem


def test_questions_about_a_passage_that_ask_for_no_truth_are_not_boolq(tmp_path: Path) -> None:
    path = lines(tmp_path / "q.jsonl", {"question": "Who?", "passage": "Ada.", "answer": "Ada"})
    assert dataset_form(path) == "jsonl"


def test_triviaqa_on_hugging_face_has_columns_of_pages(tmp_path: Path) -> None:
    row = {
        "question": "Which moon did Huygens discover?",
        "question_id": "tc_1",
        "question_source": "http://example.org/",
        "entity_pages": {
            "doc_source": ["TagMe"],
            "filename": ["Titan.txt"],
            "title": ["Titan (moon)"],
            "wiki_context": ["…"],
        },
        "search_results": {"title": [], "url": []},
        "answer": {
            "aliases": ["Saturn VI"],
            "normalized_aliases": ["saturn vi", "titan satellite"],
            "normalized_value": "titan moon",
            "value": "Titan (moon)",
        },
    }
    path = lines(tmp_path / "validation.jsonl", row)
    (example,) = read_questions(path)
    assert dataset_form(path) == "triviaqa"
    assert example.gold.answers == ("Titan (moon)", "Saturn VI", "titan satellite")
    assert sets(example) == [{"Titan (moon)"}]


def test_a_triviaqa_file_is_read_in_pieces_whatever_its_size(tmp_path: Path) -> None:
    row = sample_row("triviaqa", tmp_path)
    rows = [{**row, "QuestionId": f"q{n}", "Notes": "x" * 10**5} for n in range(30)]
    path = tmp_path / "unfiltered-web-dev.json"
    path.write_text(json.dumps({"Data": rows, "Domain": "Web"}))
    source = Source(path)
    stream = read_examples(path, source=source)
    next(stream)
    assert dataset_form(path) == "triviaqa" and 0 < source.done < path.stat().st_size / 2
    assert len(list(stream)) == 29


def test_fever_on_hugging_face_has_a_row_for_each_sentence(tmp_path: Path) -> None:
    def sentence(claim: int, numbers: tuple[int, int], page: str, line: int, label: str) -> Row:
        return {
            "id": claim,
            "label": label,
            "claim": f"Claim {claim}.",
            "evidence_annotation_id": numbers[0],
            "evidence_id": numbers[1],
            "evidence_wiki_url": page,
            "evidence_sentence_id": line,
        }

    path = lines(
        tmp_path / "train.jsonl",
        sentence(1, (10, 20), "Titan", 0, "SUPPORTS"),
        sentence(1, (11, 21), "Titan", 2, "SUPPORTS"),
        sentence(1, (11, 21), "Saturn", 1, "SUPPORTS"),
        sentence(2, (12, -1), "", -1, "NOT ENOUGH INFO"),
    )
    first, second = read_questions(path)
    assert dataset_form(path) == "fever"
    assert (first.question.qid, sets(first)) == ("1", [{"Titan"}, {"Titan", "Saturn"}])
    assert (second.gold.answers, second.gold.provenance) == (("NOT ENOUGH INFO",), ())


def test_the_titles_of_fevers_pages_are_readable(tmp_path: Path) -> None:
    first = read_questions(file_of("fever", tmp_path))[0]
    assert first.gold.titles["Titan_-LRB-moon-RRB-"] == "Titan (moon)"


def test_the_passages_of_dpr_are_gold_passages_also_without_answers(tmp_path: Path) -> None:
    row = {**sample_row("dpr", tmp_path), "answers": []}
    (example,) = read_questions(lines(tmp_path / "rows.jsonl", row))
    assert example.gold.passages == (frozenset({"7"}), frozenset({"9"}))
    assert example.gold.answers == () and example.gold.pages == {"Titan (moon)", "Saturn"}


def test_the_paragraphs_of_strategyqa_are_gold_passages(tmp_path: Path) -> None:
    first = read_questions(file_of("strategyqa", tmp_path))[0]
    assert first.gold.passages == (
        frozenset({"Ulm-1", "Danube-2", "Danube-3"}),
        frozenset({"Ulm-4"}),
    )


# ── SQuAD ────────────────────────────────────────────────────────────────────


def article(*questions: Row, title: str = "Titan_(moon)", **more: Any) -> Row:
    return {"title": title, "paragraphs": [{"context": "A moon.", "qas": [*questions], **more}]}


def question(name: str, *answers: str, **more: Any) -> Row:
    texts = [{"text": text, "answer_start": 0} for text in answers]
    return {"id": name, "question": f"Which {name}?", "answers": texts, **more}


def write_articles(path: Path, *articles: Any, **more: Any) -> Path:
    path.write_text(json.dumps({"version": "v2.0", "data": [*articles], **more}))
    return path


def test_an_impossible_question_of_squad_is_unanswerable_and_has_its_page(tmp_path: Path) -> None:
    impossible, *_ = [
        e for e in read_questions(file_of("squad", tmp_path)) if e.question.qid == "a2"
    ]
    assert impossible.gold.unanswerable and impossible.gold.answers == ()
    assert impossible.gold.titles == {"Titan_(moon)": "Titan (moon)"}


def test_squad_1_has_no_impossible_questions_and_its_answers_are_kept_once(tmp_path: Path) -> None:
    path = write_articles(
        tmp_path / "dev-v1.1.json", article(question("a", "Titan", "Titan", "it"))
    )
    (example,) = read_questions(path)
    assert (dataset_form(path), example.gold.answers) == ("squad", ("Titan", "it"))
    assert not example.gold.unanswerable


def test_squad_on_hugging_face_has_a_row_per_question_impossible_without_answers(
    tmp_path: Path,
) -> None:
    row = {"title": "Titan", "context": "A moon.", "question": "Which?"}
    rows = [
        {**row, "id": "a", "answers": {"text": ["Titan"], "answer_start": [0]}},
        {**row, "id": "b", "answers": {"text": [], "answer_start": []}},
    ]
    for name, content in (("rows.jsonl", None), ("rows.json", json.dumps(rows))):
        path = lines(tmp_path / name, *rows)
        if content:
            path.write_text(content)
        first, second = read_questions(path)
        assert dataset_form(path) == "squad"
        assert (first.gold.answers, second.gold.unanswerable) == (("Titan",), True)


def test_sets_in_squads_form_may_be_in_any_language(tmp_path: Path) -> None:
    path = write_articles(tmp_path / "cmrc.json", article(question("甲", "土卫六"), title="土卫六"))
    (example,) = read_questions(path)
    assert (example.gold.answers, example.gold.pages) == (("土卫六",), {"土卫六"})


def test_a_broken_article_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    broken: list[Any] = [
        {"title": "x", "paragraphs": [{"qas": 7}]},
        {"title": "x", "paragraphs": 7},
    ]
    path = write_articles(
        tmp_path / "dev.json", article(question("a", "x")), *broken, article(question("b", "y"))
    )
    examples, problems = read(path, "squad")
    assert [e.question.qid for e in examples] == ["a", "b"]
    assert "dev.json, article 2 has no paragraphs with context and qas" in problems[0]
    assert "article 3" in problems[1]


def test_a_question_of_squad_is_named_by_its_number(tmp_path: Path) -> None:
    path = write_articles(tmp_path / "dev.json", article(question("a", "x"), question("a", "y")))
    _, (problem,) = read(path, "squad")
    assert "dev.json, question 2 repeats the id 'a' of question 1" in problem


def test_a_file_of_articles_is_read_in_pieces(tmp_path: Path) -> None:
    articles = [article(question(f"q{n}", "x"), more="x" * 10**5) for n in range(40)]
    path = write_articles(tmp_path / "dev.json", *articles)
    source = Source(path)
    stream = read_examples(path, source=source)
    next(stream)
    assert 0 < source.done < path.stat().st_size / 2
    assert len(list(stream)) == 39


# ── FlashRAG and Search-R1 ───────────────────────────────────────────────────


def test_the_golden_answer_of_a_multiple_choice_is_the_text_of_its_choice(tmp_path: Path) -> None:
    _, second = read_questions(file_of("flashrag", tmp_path))
    assert (second.gold.answers, sets(second)) == (("Danube",), [{"Ulm"}])
    row = {
        "id": "a",
        "question": "Which?",
        "golden_answers": [0, 1],
        "metadata": {"choices": ["x", "y"]},
    }
    made = imported_dataset(tmp_path / "datasets", "mine", lines(tmp_path / "dev.jsonl", row))
    assert read_questions(made.path)[0].gold.answers == ("x", "y") and made.warnings == ()


def test_a_truth_value_of_flashrag_is_yes_or_no(tmp_path: Path) -> None:
    rows = [{"id": n, "question": "Is it?", "golden_answers": [n == 1]} for n in (1, 2)]
    answers = [e.gold.answers for e in read_questions(lines(tmp_path / "dev.jsonl", *rows))]
    assert answers == [("yes", "true"), ("no", "false")]


def test_the_question_of_search_r1_is_in_its_prompt_and_sources_share_ids(tmp_path: Path) -> None:
    first, second = read_questions(file_of("search-r1", tmp_path))
    assert first.question.text == "which moon did huygens discover?"
    assert (second.question.qid, sets(second)) == ("hotpotqa-train_0", [{"Danube"}])
    rag = (
        "Answer with context. Question: Which Question: is it? Context: Doc 1(Title: x) Question: y"
    )
    plain = [{"role": "system", "content": "s"}, {"role": "user", "content": "How many moons?"}]
    row = {"data_source": "nq", "reward_model": {"ground_truth": "72"}}
    rows = [{**row, "id": 1, "prompt": [{"content": rag}]}, {**row, "id": 2, "prompt": plain}]
    first, second = read_questions(lines(tmp_path / "rag.jsonl", *rows))
    assert (second.question.text, second.gold.answers) == ("How many moons?", ("72",))
    assert first.question.text == "Which Question: is it?"


def test_search_r1_is_read_as_parquet(tmp_path: Path) -> None:
    row = sample_row("search-r1", tmp_path)
    path = tmp_path / "train.parquet"
    pq.write_table(pa.Table.from_pylist([row]), path)
    (example,) = read_questions(path)
    assert dataset_form(path) == "search-r1" and example.gold.answers == ("Titan", "Saturn VI")


# ── MS MARCO ─────────────────────────────────────────────────────────────────


def test_no_answer_present_makes_a_question_unanswerable(tmp_path: Path) -> None:
    _, second = read_questions(file_of("msmarco", tmp_path))
    assert second.gold.unanswerable and not second.gold.answers and not second.gold.pages


@pytest.mark.parametrize("ending", ["json", "json.gz"])
def test_the_columns_of_ms_marco_are_read_packed_or_not(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"dev_v2.1.{ending}"
    content = file_of("msmarco", tmp_path).read_bytes()
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    assert dataset_form(path) == "msmarco" and len(read_questions(path)) == 2


def test_ms_marco_on_hugging_face_has_columns_of_passages(tmp_path: Path) -> None:
    row = sample_row("msmarco", tmp_path)
    passages = {name: [p[name] for p in row["passages"]] for name in row["passages"][0]}
    path = lines(
        tmp_path / "validation.jsonl", {**row, "passages": passages}, {**row, "query_id": 0}
    )
    first, second = read_questions(path)
    assert dataset_form(path) == "msmarco" and sets(first) == sets(second) == [{*DOCUMENT}]
    assert second.question.qid == "0"


def test_the_public_test_set_of_ms_marco_has_no_answers(tmp_path: Path) -> None:
    columns = {name: {"0": value} for name, value in sample_row("msmarco", tmp_path).items()}
    path = tmp_path / "eval_v2.1_public.json"
    path.write_text(json.dumps({n: c for n, c in columns.items() if "nswers" not in n}))
    _, (problem,) = read(path)
    assert "record 1 has no 'answers'; take train_v2.1.json or dev_v2.1.json" in problem


# ── ALCE ─────────────────────────────────────────────────────────────────────


def test_the_sets_of_alce_require_short_answers_and_accept_long_ones(tmp_path: Path) -> None:
    asqa, qampari, eli5 = read_questions(file_of("alce", tmp_path))
    assert asqa.gold.required == (("1655", "25 March 1655"), ("1846",))
    assert qampari.gold.required == (("Titania", "Uranus III"), ("Oberon",))
    assert (qampari.gold.answers, eli5.gold.answers) == (("Titania, Oberon",), ("It is cold.",))
    assert eli5.record["claims"] == ["Titan is cold.", "Cold gas is slow."]
    assert eli5.gold.required == ()


def test_asqa_on_hugging_face_has_long_answers_and_their_pages(tmp_path: Path) -> None:
    row = sample_row("alce", tmp_path)
    name = row.pop("question")
    long = [
        {"knowledge": [{"content": "x", "wikipage": "Triton"}], "long_answer": "In 1655 and 1846."},
        {"knowledge": [{"content": "x", "wikipage": None}], "long_answer": "1655; 1846."},
    ]
    path = lines(tmp_path / "dev.jsonl", {**row, "ambiguous_question": name, "annotations": long})
    (example,) = read_questions(path)
    assert dataset_form(path) == "alce"
    assert example.gold.answers == ("In 1655 and 1846.", "1655; 1846.")
    assert sets(example) == [{"Titan (moon)"}, {"Triton"}]


def test_required_answers_of_another_form_are_a_bad_row(tmp_path: Path) -> None:
    for value in ("1655", ["1655"], [[1655]], {"a": ["b"]}):
        path = lines(tmp_path / "q.jsonl", {"id": "a", "input": "?", "required": value})
        _, (problem,) = read(path)
        assert "line 1: 'required' should be a list of lists of texts" in problem
