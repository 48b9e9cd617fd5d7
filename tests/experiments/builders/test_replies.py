"""Replies of models are read despite any text around their content, and are None if unclear."""

from __future__ import annotations

import pytest

from rallebench.core.types import Reply, ToolCall
from rallebench.experiments.builders.replies import read_boolean, read_questions
from rallebench.papers.barag.builder_asking import mentions_its_text
from rallebench.papers.barag.builder_stages import near_duplicates


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"recent": true}', True),
        ('```json\n{"recent": "false", "reason": "old"}\n```', False),
        ('I think so.\n{"Recent": "YES"} Hope this helps!', True),
        ("Yes, most of it is.", True),
        ("No.", False),
        ("是的", True),
        ("The answer is false.", False),
        ("yes or no?", None),
        ("true and false", None),
        ('{"recent": "partly"}', None),
        ('{"other": true}', True),
        ("I'm sorry, I cannot judge that.", None),
        ("There is no doubt that it is old.", None),
        ("", None),
    ],
)
def test_a_verdict_is_read_or_unknown(text: str, value: bool | None) -> None:
    assert read_boolean(Reply(text), "recent") is value


def test_a_verdict_may_be_a_tool_call() -> None:
    assert (
        read_boolean(Reply("", tool_calls=(ToolCall("1", "f", '{"recent": false}'),)), "recent")
        is False
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            '{"questions": [{"question": "Who?", "answer": "Ada"}, {"question": "Who?"}]}',
            [("Who?", ("Ada",))],
        ),
        ('Sure:\n[{"question": "Who?", "answer": ["Ada", 3]}] Enjoy', [("Who?", ("Ada", "3"))]),
        ('{"question": "\\"Who is \\"Ada\\"?\\""}', [('Who is "Ada"?', ())]),
        (
            "1. Who is Ada?\n2) Where is Rome?\n3. When?",
            [("Who is Ada?", ()), ("Where is Rome?", ())],
        ),
        ("Sure! Who is Ada?", [("Who is Ada?", ())]),
        ("Question: Who?\nAnswer: Ada", [("Who?", ("Ada",))]),
        ("艾达是谁？", [("艾达是谁？", ())]),
        ("Tell me about Ada.", []),
        ('{"questions": []}', []),
        ('{"questions": "none"}', [("none", ())]),
        ("", []),
    ],
)
def test_questions_are_read_in_any_wrapping_at_most_two(text: str, found: list[object]) -> None:
    assert read_questions(Reply(text), 2) == found


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Based on the text, who won?", "the text"),
        ("What does this article say?", "this article"),
        ("Who is mentioned in the passage?", "mentioned in the passage"),
        ("Who is it according to the document?", "according to the document"),
        ("文中提到了谁？", "文中"),
        ("Who wrote the text of the treaty?", ""),
        ("Which article of the constitution was changed?", ""),
        ("What did the document reveal about the mayor?", ""),
    ],
)
def test_a_question_that_points_at_its_text_is_noticed(question: str, words: str) -> None:
    assert mentions_its_text(question) == words


def test_near_duplicates_are_found_as_if_all_were_compared_with_all() -> None:
    words = ["who", "what", "wrote", "made", "emma", "rome", "the", "book", "city", "moon"]
    questions = [
        (str(n), " ".join(w for bit, w in enumerate(words) if n >> bit & 1))
        for n in range(1, 1024, 7)
    ]
    kept: list[tuple[str, set[str]]] = []
    expected = {}
    for name, text in questions:
        bag = set(text.split())
        first = next((other for other, its in kept if len(bag & its) >= 0.7 * len(bag | its)), None)
        if first is None:
            kept.append((name, bag))
        else:
            expected[name] = first
    assert near_duplicates(questions, 0.7) == expected and expected
