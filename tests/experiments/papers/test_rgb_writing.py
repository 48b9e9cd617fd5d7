"""A testbed whose questions a language model writes from articles: what is read from its replies, and what is counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_workspace import CommandLine, make_workspace, read_lines

from rallebench.experiments.papers.rgb.writing import read_question

ARTICLE = "Ada came to Paris on 3 May, with twelve others."


@pytest.mark.parametrize(
    ("reply", "answers", "fault"),
    [
        ('{"event": "x", "question": "Who came?", "answer": "Ada"}', ["Ada"], ""),
        (
            'Here you are:\n```json\n{"Question": "When?", "Answer": "3 May"}\n```\nAnything else?',
            ["3 May"],
            "",
        ),
        (
            '<think>{"question": "no"}</think>{"query": "Where?", "key_information": ["Paris"]}',
            ["Paris"],
            "",
        ),
        ('{"question": "Who?", "answer": "Ad"}', ["Ad"], "not_in_article"),
        ('{"question": "Who?", "answer": ["Ada", "Bob"]}', ["Ada", "Bob"], "not_in_article"),
        ('{"question": "", "answer": "Ada"}', ["Ada"], "unread"),
        ('{"question": "Who?", "answer": null}', [], "unread"),
        ('{"question": "Who?", "answer": {"name": "Ada"}}', [], "unread"),
        ("I'm sorry, but I cannot help with that.", [], "unread"),
        ("[1, 2]", [], "unread"),
        ("", [], "unread"),
    ],
)
def test_a_reply_counts_if_its_answers_stand_in_the_article(
    reply: str, answers: list[str], fault: str
) -> None:
    found = read_question(reply, ARTICLE)
    assert found[0][1] == answers and found[1] == fault


def test_a_question_of_two_parts_needs_two_answers() -> None:
    assert (
        read_question('{"question": "Who and when?", "answers": ["Ada", "Ada"]}', ARTICLE, 2)[1]
        == "too_few_parts"
    )
    assert read_question(
        '{"question": "Who and when?", "answers": ["Ada", "3 May"]}', ARTICLE, 2
    ) == (("Who and when?", ["Ada", "3 May"]), "")


REPLIES = {
    "Titan is the largest": 'Sure: {"question": "What is Saturn\'s largest moon?", "answer": "Titan"}',
    "Triton is the largest": '{"question": "What is Neptune\'s largest moon?", "answer": "Nereid"}',
    "The Danube": "No.",
    "Charon": '{"question": "What moon has which planet?", "answers": ["Charon", "Pluto"]}',
    "Huygens discovered": '{"question": "Who found Titan?", "answer": "Huygens"}',
}


@pytest.fixture
def rallebench(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    folder = make_workspace(tmp_path / "workspace")
    models = json.loads((folder / "llms.json").read_text())
    models["writer"] = {"backend": "scripted", "settings": {"replies": REPLIES}}
    (folder / "llms.json").write_text(json.dumps(models))
    return CommandLine(capfd, folder)


def test_articles_become_questions_and_these_a_testbed_and_the_rest_is_counted(
    rallebench: CommandLine,
) -> None:
    folder = rallebench.workspace
    made = rallebench.report(
        "rgb-testbed",
        f"articles={folder / 'corpus.tsv'}",
        "index=tiny",
        "k=6",
        llm="writer",
        run="bed",
    )
    assert [part["label"] for part in made["parts"]] == ["questions", "documents"]
    counts = {"articles": 6, "unread": 1, "not_in_article": 1, "not_written": 1, "questions": 3}
    assert {name: made[name] for name in counts} == counts
    assert made["parts"][0]["metrics"]["usable"]["value"] == pytest.approx(3 / 5)
    # Both answers of the third stand in one passage, so there is nothing to integrate.
    assert made["records"] == {"en": 2, "en_int": 0, "en_fact": 2}
    assert made["without_positives"] == 1
    assert "1 of 6 questions have an answer that does not stand in the article." in made["notes"]
    bed = Path(made["folder"])
    assert read_lines(bed / "questions.jsonl")[0] == {
        "id": "1",
        "input": "What is Saturn's largest moon?",
        "output": [
            {"answer": "Titan", "provenance": [{"wikipedia_id": "1", "title": "Titan (moon)"}]}
        ],
    }
    again = rallebench.report(
        "rgb-testbed", f"data={bed / 'questions.jsonl'}", "index=tiny", "k=6", run="again"
    )
    assert again["records"] == made["records"]
    asked = read_lines(folder / "runs" / "bed questions" / "episodes.jsonl")[0]["steps"][0][
        "messages"
    ][0]["content"]
    assert "Titan is the largest moon" in asked and "{ARTICLE}" not in asked


@pytest.mark.parametrize(
    ("llm", "more", "code", "sentence"),
    [
        ("", "", 2, "name one with --llm"),
        ("writer", "data=tiny-qa", 2, "needs a question set and an index"),
        ("writer", "articles=nowhere", 2, "nowhere does not exist"),
        (
            "writer",
            "prompts=/",
            2,
            "/ holds none of the prompts of this request (question-one-en.txt)",
        ),
        ("writer", "known=r", 2, "--set known goes with questions"),
        ("titan", "", 1, "None of the 6 articles gave a question"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(
    rallebench: CommandLine, llm: str, more: str, code: int, sentence: str
) -> None:
    articles = f"articles={rallebench.workspace / 'corpus.tsv'}"
    ran = rallebench.suite("rgb-testbed", "index=tiny", articles, *more.split(), llm=llm)
    assert (ran.code, sentence in ran.last) == (code, True), ran.last
