"""Passages are left out of an overlong prompt; words stand for tokens here."""

from __future__ import annotations

import pytest

from rallebench.core.types import Evidence, Message, Passage
from rallebench.llms._transformers.cutting import shorten

QUESTION = "who won ?"
PASSAGES = tuple(
    Passage(f"p{number}", " ".join(f"{letter}{word}" for word in range(10)), f"Title {letter}")
    for number, letter in enumerate("abcde", 1)
)
INTRO = "Read this: "
JOINED = INTRO + "; ".join(f"{p.title}, {p.text}" for p in PASSAGES) + f"\n\nQuestion: {QUESTION}"


def cut(
    limit: int, text: str = JOINED, passages: tuple[Passage, ...] = PASSAGES
) -> tuple[tuple[Message, ...], str] | None:
    messages = (Message("system", "Be brief."), Message("user", text))
    evidence = Evidence(QUESTION, passages)
    return shorten(messages, evidence, lambda some: len(some[-1].content.split()) <= limit)


def shown(found: tuple[tuple[Message, ...], str] | None) -> str:
    assert found is not None
    assert found[0][0] == Message("system", "Be brief.")
    return found[0][1].content


def test_whole_passages_leave_from_the_end_with_their_titles_and_separators() -> None:
    # 2 words before, 4 after, 12 per passage with its title
    found = cut(2 + 4 + 3 * 12)
    assert shown(found) == INTRO + "; ".join(f"{p.title}, {p.text}" for p in PASSAGES[:3]) + (
        f"\n\nQuestion: {QUESTION}"
    )
    assert found is not None
    assert found[1] == "2 of 5 passages were left out of the prompt: p4 (Title d), p5 (Title e)."


def test_as_many_passages_stay_as_fit() -> None:
    kept = [
        sum(p.text in shown(cut(limit)) for p in PASSAGES)
        for limit in (53, 54, 65, 66 - 12, 30, 29)
    ]
    assert kept == [3, 4, 4, 4, 2, 1]


def test_the_end_of_the_first_passage_is_cut_only_when_it_stands_alone() -> None:
    found = cut(2 + 4 + 7)
    assert shown(found) == f"{INTRO}Title a, a0 a1 a2 a3 a4\n\nQuestion: {QUESTION}"
    assert found is not None
    assert found[1] == (
        "4 of 5 passages were left out of the prompt: p2 (Title b), p3 (Title c), p4 (Title d), p5 (Title e), "
        "and of p1 (Title a) only the first 14 of 29 characters were kept."
    )


def test_a_lone_passage_is_cut_at_its_end() -> None:
    found = cut(8, f"{PASSAGES[0].text} {QUESTION}", PASSAGES[:1])
    assert shown(found) == f"a0 a1 a2 a3 a4 {QUESTION}"
    assert found is not None
    assert found[1] == "Of p1 (Title a) only the first 14 of 29 characters were kept."


@pytest.mark.parametrize("limit", [1, 6, 8])
def test_question_and_instructions_are_never_cut(limit: int) -> None:
    assert cut(limit) is None


def test_without_passages_in_the_prompt_nothing_is_cut() -> None:
    assert cut(5, "a b c d e f g", ()) is None
    assert shorten((Message("user", "a b c"),), None, lambda _: False) is None


def test_numbers_and_marks_between_passages_leave_with_them() -> None:
    text = (
        "\n".join(f"<doc id={n}>{p.text}</doc>" for n, p in enumerate(PASSAGES, 1))
        + f"\n{QUESTION}"
    )
    assert shown(cut(25, text)) == (
        f"<doc id=1>{PASSAGES[0].text}</doc>\n<doc id=2>{PASSAGES[1].text}</doc>\n{QUESTION}"
    )


def test_a_question_between_two_passages_stays() -> None:
    text = f"{PASSAGES[0].text} {QUESTION} {PASSAGES[1].text}"
    assert shown(cut(14, text, PASSAGES[:2])) == f"{PASSAGES[0].text} {QUESTION} "


def test_a_passage_that_stands_twice_leaves_twice_and_one_inside_another_counts_as_it() -> None:
    inner = Passage("inner", "b2 b3")
    text = f"{PASSAGES[0].text}; {PASSAGES[1].text}\n\n{PASSAGES[0].text}; {PASSAGES[1].text}\n\n{QUESTION}"
    found = cut(25, text, (inner, *PASSAGES[:2]))
    assert shown(found) == f"{PASSAGES[0].text}\n\n{PASSAGES[0].text}\n\n{QUESTION}"
    assert found is not None and found[1].startswith("1 of 2 passages was left out")


def test_text_without_spaces_is_cut_between_characters() -> None:
    passage = Passage("zh", "布加勒斯特是罗马尼亚的首都" * 5)
    messages = (Message("user", f"{passage.text}\n谁?"),)
    found = shorten(messages, Evidence("谁?", (passage,)), lambda some: len(some[0].content) <= 20)
    assert found is not None
    assert found[0][0].content == f"{passage.text[:17]}\n谁?"
