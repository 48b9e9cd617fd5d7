"""Answers that decline, in the words of models, of papers and of published sets."""

from __future__ import annotations

import pytest

from rallebench.core.declining import declines

DECLINING = [
    *(
        "",
        " ",
        "...",
        "unanswerable",
        "Unanswerable.",
        "No answer.",
        "noanswer",
        "unknown",
    ),
    "No Answer Present.",
    "Not enough information",
    "I can not answer the question because of the insufficient information in documents.",
    "信息不足，无法基于提供的文档回答该问题。",
    "我不知道。",
    "文中没有提到这件事。",
    "I don't know.",
    "I don’t know who that was.",
    "I'm not sure.",
    "It is not known to me.",
    "The date is unknown.",
    "The passages do not mention her husband.",
    "The context does not provide enough information to answer this.",
    "The text doesn't say.",
    "There is no information about his children in the passages.",
    "No answer can be given.",
    "I'm sorry, but I couldn't find any information regarding a story.",
    "As an AI, I am unable to answer that.",
    "It cannot be said; I cannot determine the year.",
    "There is not enough evidence.",
]
ANSWERING = [
    *("Rome.", "no", "No.", "none", "NA", "0", "The Who", "Not enough"),
    "The Unknown Soldier",
    "She knows his name better than Ada.",
    "He does not have children.",
    "It was not far from Rome.",
    "the answer song",
    "信息论",
    "It is Titan, as the first passage says. " * 12 + "The second passage does not mention it.",
]


@pytest.mark.parametrize("answer", DECLINING)
def test_an_answer_that_gives_none_declines(answer: str) -> None:
    assert declines(answer)


@pytest.mark.parametrize("answer", ANSWERING)
def test_an_answer_that_gives_one_does_not_decline(answer: str) -> None:
    assert not declines(answer)
