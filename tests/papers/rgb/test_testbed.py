"""A user's own testbed: an index, and a dataset or questions from a model, become records in RGB's form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_workspace import CommandLine, add_llm, read_lines, write_lines

from rallebench.papers.rgb.builder import (
    answer_shape,
    false_answers,
    replace_answer,
    with_documents,
)
from rallebench.papers.rgb.records import RgbRecord, write_required
from rallebench.papers.rgb.writing import read_question

REPLIES = {
    "Titan is the largest": 'Sure: {"question": "What is Saturn\'s largest moon?", "answer": "Titan"}',
    "Triton is the largest": '{"question": "What is Neptune\'s largest moon?", "answer": "Nereid"}',
    "The Danube": "No.",
    "Charon": '{"question": "What moon has which planet?", "answers": ["Charon", "Pluto"]}',
    "Huygens discovered": '{"question": "Who found Titan?", "answer": "Huygens"}',
}


@pytest.fixture
def workspace(workspace: Path) -> Path:
    add_llm(workspace, "writer", replies=REPLIES)
    return workspace


def make_bed(cli: CommandLine, run: str, *pairs: str, llm: str = "") -> Any:
    return cli.report("rgb-testbed", "index=tiny", "k=6", *pairs, run=run, llm=llm)


# from an index


@pytest.mark.parametrize(
    ("required", "texts", "groups", "negative"),
    [
        (
            (("art", "arts"),),
            ["A party.", "The Arts grew.", "The Arts grew.", "Art!"],
            (("The Arts grew.", "Art!"),),
            ("A party.",),
        ),
        (
            (("Rome",), ("1990",)),
            ["In Rome in 1990.", "It was 1990.", "In 19901."],
            (("In Rome in 1990.",), ("It was 1990.",)),
            ("In 19901.",),
        ),
        (
            (("Rome",), ("1990",)),
            ["In Rome in 1990.", "Rome, 1990!"],
            (("In Rome in 1990.",), ("Rome, 1990!",)),
            (),
        ),
        ((("Rome",), ("1990",)), ["In Rome."], (("In Rome.",), ()), ()),
    ],
)
def test_documents_are_sorted_by_the_answers_at_word_boundaries_each_once(
    required: Any, texts: list[str], groups: Any, negative: Any
) -> None:
    record = with_documents(RgbRecord("1", "?", "", required), texts)
    assert (record.positive, record.negative) == (groups, negative)


def test_a_false_copy_has_every_occurrence_replaced_and_the_rest_as_it_was() -> None:
    assert (
        replace_answer("Titan, TITAN and titanic.", ("Titan",), "Rhea") == "Rhea, Rhea and titanic."
    )
    assert replace_answer("第六届共有70个议席。", ("70",), "90") == "第六届共有90个议席。"


def test_a_false_answer_looks_like_the_true_one_and_differs_from_it() -> None:
    answers: Any = {
        "a": (("Tampa",),),
        "b": (("Paris",),),
        "c": (("1990",),),
        "d": (("New Paris",),),
        "e": (("Rome",), ("1991",)),
    }
    questions = [RgbRecord(qid, "?", "", required) for qid, required in answers.items()]
    questions.append(RgbRecord("f", "?", "", (("1955",),), fake="1066"))
    fakes = false_answers(questions)
    assert (
        fakes == {"a": "Paris", "b": "Tampa", "c": "1955", "f": "1066"} == false_answers(questions)
    )
    assert answer_shape("12 May 1999") == "99 A 9999"
    assert write_required((("a",), ("b", "c"))) == ["a", ["b", "c"]]


def test_an_index_becomes_files_that_the_tests_take(cli: CommandLine) -> None:
    question = {"id": "s", "input": "Which moons have Saturn and Pluto?", "output": []}
    several = {**question, "answer": ["Titan", "Charon"]}
    path = cli.workspace / "datasets" / "tiny-qa.jsonl"
    write_lines(path, [*read_lines(path), several, {"id": "n", "input": "Who?", "output": []}])
    bed = make_bed(cli, "bed", "data=tiny-qa")
    assert (bed["questions"], bed["unanswered"]) == (9, 1)
    assert bed["records"] == {"en": 8, "en_int": 1, "en_fact": 8}
    folder = Path(bed["folder"])
    first = read_lines(folder / "en_fact.jsonl")[0]
    assert (first["answer"], len(first["positive"])) == ("Titan", 2)
    assert all("Titan" in text for text in first["positive"])
    assert not any("Titan" in text for text in first["negative"] + first["positive_wrong"])
    assert all(first["fakeanswer"] in text for text in first["positive_wrong"])
    more = make_bed(cli, "more", "data=tiny-qa", "positives=2")
    assert more["too_few_positives"] > 0
    assert more["records"]["en"] == bed["records"]["en"] - more["too_few_positives"]
    assert all(len(row["positive"]) >= 2 for row in read_lines(Path(more["folder"]) / "en.jsonl"))
    facts = cli.report("rgb-counterfactual", f"data={folder}", llm="titan", run="c")
    assert facts["dataset"] == "en_fact" and facts["acc"] == 0.125
    parts = cli.report("rgb-integration", f"data={folder}", llm="titan", run="i")
    assert parts["dataset"] == "en_int"
    known = make_bed(cli, "known", "data=tiny-qa", "known=c without documents")
    assert known["records"]["en_fact"] == 1 and known["not_known"] == 7


def test_questions_in_rgbs_form_keep_their_false_answers(cli: CommandLine) -> None:
    aliases = [["Christiaan Huygens", "Huygens"]]
    row = {"id": 1, "query": "Who discovered Titan?", "answer": aliases, "fakeanswer": "Ada"}
    path = write_lines(cli.workspace / "datasets" / "own.jsonl", [row])
    bed = make_bed(cli, "own", f"data={path}")
    (row,) = read_lines(Path(bed["folder"]) / "en_fact.jsonl")
    assert row["positive_wrong"][0].startswith("Ada discovered Titan")
    assert "nowhere" in cli.refused("rgb-testbed", f"data={path}", "index=nowhere")


# from articles


ARTICLE = "Ada came to Paris on 3 May, with twelve others."


@pytest.mark.parametrize(
    ("reply", "parts", "answers", "fault"),
    [
        ('{"event": "x", "question": "Who came?", "answer": "Ada"}', 1, ["Ada"], ""),
        ('Here:\n```json\n{"Question": "When?", "Answer": "3 May"}\n```\nMore?', 1, ["3 May"], ""),
        ('{"query": "Where?", "key_information": ["Paris"]}', 1, ["Paris"], ""),
        ('{"question": "Who and when?", "answers": ["Ada", "3 May"]}', 2, ["Ada", "3 May"], ""),
        ('{"question": "Who, when?", "answers": ["Ada", "Ada"]}', 2, ["Ada"], "too_few_parts"),
        ('{"question": "Who?", "answer": "Ad"}', 1, ["Ad"], "not_in_article"),
        ('{"question": "Who?", "answer": ["Ada", "Bob"]}', 1, ["Ada", "Bob"], "not_in_article"),
        ('{"question": "", "answer": "Ada"}', 1, ["Ada"], "unread"),
        ('{"question": "Who?", "answer": null}', 1, [], "unread"),
        ('{"question": "Who?", "answer": {"name": "Ada"}}', 1, [], "unread"),
        ("I'm sorry, but I cannot help with that.", 1, [], "unread"),
        ("[1, 2]", 1, [], "unread"),
        ("", 1, [], "unread"),
    ],
)
def test_a_reply_counts_if_it_has_as_many_answers_as_parts_and_all_stand_in_the_article(
    reply: str, parts: int, answers: list[str], fault: str
) -> None:
    (_, read), why = read_question(reply, ARTICLE, parts)
    assert (read, why) == (answers, fault)


def test_articles_become_questions_and_these_a_testbed(cli: CommandLine, workspace: Path) -> None:
    bed = make_bed(cli, "bed", f"articles={workspace / 'corpus.tsv'}", llm="writer")
    assert [part["label"] for part in bed["parts"]] == ["questions", "documents"]
    counts = {"articles": 6, "unread": 1, "not_in_article": 1, "not_written": 1, "questions": 3}
    assert {name: bed[name] for name in counts} == counts
    assert bed["parts"][0]["metrics"]["usable"]["value"] == pytest.approx(3 / 5)
    # Both answers of the third are in one passage, so there is nothing to integrate.
    assert bed["records"] == {"en": 2, "en_int": 0, "en_fact": 2}
    assert bed["without_positives"] == 1
    assert "1 of 6 questions have an answer that does not stand in the article." in bed["notes"]
    file = Path(bed["folder"]) / "questions.jsonl"
    page = [{"wikipedia_id": "1", "title": "Titan (moon)"}]
    assert read_lines(file)[0] == {
        "id": "1",
        "input": "What is Saturn's largest moon?",
        "output": [{"answer": "Titan", "provenance": page}],
    }
    assert make_bed(cli, "again", f"data={file}")["records"] == bed["records"]
    prompt = cli.episodes("bed questions")[0]["steps"][0]["messages"][0]["content"]
    assert "Titan is the largest moon" in prompt and "{ARTICLE}" not in prompt


@pytest.mark.parametrize(
    ("llm", "more", "code", "sentence"),
    [
        ("", "", 2, "name one with --llm"),
        ("writer", "data=tiny-qa", 2, "A testbed needs a dataset"),
        ("writer", "articles=nowhere", 2, "nowhere does not exist"),
        ("writer", "prompts=/", 2, "the prompts of this request (question-one-en.txt)"),
        ("writer", "known=r", 2, "known goes with questions"),
        ("titan", "", 1, "None of the 6 articles gave a question"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(
    cli: CommandLine, llm: str, more: str, code: int, sentence: str
) -> None:
    articles = f"articles={cli.workspace / 'corpus.tsv'}"
    ran = cli.suite("rgb-testbed", "index=tiny", articles, *more.split(), llm=llm)
    assert (ran.code, sentence in ran.last) == (code, True), ran.last
