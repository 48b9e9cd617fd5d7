"""Scores are read from a call, from JSON in any wrapping, or from words; an unclear reply is unparsed, with the reason."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rallebench.core.types import Reply, ToolCall
from rallebench.metrics.judges._reading import read_scores

NAMES = ("truthfulness", "relevance")

READ = {
    '{"truthfulness": 4, "relevance": 5}': (4, 5),
    'Sure!\n```json\n{"Truthfulness": "4/5", "RELEVANCE": 5}\n```\nAnything else?': (4, 5),
    'See [1]: {"truthfulness": 4.5, "relevance": 5} as asked.': (4.5, 5),
    '{"scores": {"truthfulness": {"score": 4}, "relevance": {"score": 5}}}': (4, 5),
    "{truthfulness: 4, relevance: 5}": (4, 5),
    "Truthfulness: 4/5\nRelevance: 5/5": (4, 5),
    "**Truthfulness (1-5):** 4\n**Relevance (1-5):** 3": (4, 3),
    "Truthfulness - 4, relevance - 3": (4, 3),
    "On a scale from 1 to 5, truthfulness is 3 and relevance is 2.": (3, 2),
    "I give 4 for truthfulness and 5 out of 5 for relevance.": (4, 5),
    "Truthfulness: four. Relevance: five.": (4, 5),
    "truthfulness: 4,5; relevance: 4-5": (4.5, 4.5),
    "Relevance: 1\nThe answer from 2021 is right.\nTruthfulness: 5": (5, 1),
    "Truthfulness=5, relevance=4": (5, 4),
    "4 and 5": (4, 5),
    "1 and 5": (1, 5),
    "4 (truthfulness) and 3 (relevance)": (4, 3),
    "4/5 truthfulness, 2/5 relevance": (4, 2),
    "Truthfulness: 4 because it is right. Relevance (to question 2): 5": (4, 5),
    "The truthfulness of the answer is 4; I'd rate relevance as 3.5.": (4, 3.5),
    "Between 1 and 5, truthfulness is 2, relevance 1": (2, 1),
    "[4,5]": (4, 5),
    "5/5, 4/5": (5, 4),
    "{'truthfulness': 4, 'relevance': 5}": (4, 5),
    "Sure: {'reason': \"It's right\", 'truthfulness': 4, 'relevance': 5,} as asked [1].": (4, 5),
    "<truthfulness>4</truthfulness><relevance>5</relevance>": (4, 5),
    "<evaluation>\n<truthfulness>\n4\n</truthfulness>\n<relevance> 5/5 </relevance>\n</evaluation>": (
        4,
        5,
    ),
    "<Truthfulness><score>4</score><reason>Right.</reason></Truthfulness><Relevance><score>3</score></Relevance>": (
        4,
        3,
    ),
    '<score name="truthfulness">4</score> <score name="relevance">5</score>': (4, 5),
    "## Truthfulness\n4\n\n## Relevance\n5": (4, 5),
    "**Truthfulness:**\n\n4/5\n\n**Relevance:**\n\n**5**": (4, 5),
    "1. Truthfulness (1-5)\nThe date of 1912 is right.\nScore: 4\n\n2. Relevance\nIt answers.\n- Rating: 2 out of 5": (
        4,
        2,
    ),
    "Truthfulness\nfour\nRelevance\nthree": (4, 3),
    "| Truthfulness | Relevance |\n|---|---|\n| 4 | 5 |": (4, 5),
    "relevance,truthfulness\n2,3": (3, 2),
}
UNREAD = {
    "": "The reply is empty.",
    "I can not judge that.": "The reply contains no score for truthfulness.",
    '{"truthfulness": 4}': "The reply contains no score for relevance.",
    '{"truthfulness": null, "relevance": 3}': "The reply contains no score for truthfulness.",
    '{"truthfulness": true, "relevance": 3}': "truthfulness is 'true', which is not a number on the scale.",
    '{"truthfulness": 9, "relevance": 3}': "truthfulness is 9, which is not from 1 to 5.",
    "Truthfulness: 5, relevance: -1": "relevance is -1, which is not from 1 to 5.",
    "Truthfulness 8/10, relevance 9/10": "truthfulness is '8/10', which is not a number on the scale.",
    "Truthfulness: 80 %, relevance: 5": "truthfulness is '80 %', which is not a number on the scale.",
    "Truthfulness: 2-5, relevance: 5": "truthfulness is '2-5', which is not a number on the scale.",
    "Truthfulness: 3. No, truthfulness: 4. Relevance: 2": "truthfulness has several scores: 3, 4.",
    "4": "The reply contains no score for truthfulness.",
    "4 5 3": "The reply contains no score for truthfulness.",
    "Both go from 1 to 5.": "The reply contains no score for truthfulness.",
    "Truthfulness: This one is a 4. Relevance: 5": "The reply contains no score for truthfulness.",
    "Truthfulness: one factual error, so I give 3. Relevance: 5": "The reply contains no score for truthfulness.",
    "Truthfulness: 2 minor errors, so 4/5. Relevance: 5": "The reply contains no score for truthfulness.",
    "Truthfulness: 5. Relevance: the answer is a good one, 5.": "The reply contains no score for relevance.",
    "Truthfulness: 3½, relevance: 4": "The reply contains no score for truthfulness.",
    "Truthfulness:\n1. The date is right.\nRelevance: 4": "The reply contains no score for truthfulness.",
    "## Truthfulness\n3\n4\n## Relevance\n5": "truthfulness has several scores: 3, 4.",
    "## Truthfulness\n8/10\n## Relevance\n5": "truthfulness is '8/10', which is not a number on the scale.",
    "## Truthfulness\n4\n## Relevance\nIt answers.": "The reply contains no score for truthfulness.",
    "<truthfulness>9</truthfulness><relevance>3</relevance>": "truthfulness is 9, which is not from 1 to 5.",
    "[" * 5000: "The reply contains no score for truthfulness.",
}


@pytest.mark.parametrize("text", READ)
def test_scores_are_read_from_json_and_from_words(text: str) -> None:
    found = read_scores(Reply(text), NAMES)
    assert (found.failure, dict(found.values)) == ("", dict(zip(NAMES, READ[text])))


@pytest.mark.parametrize("text", UNREAD)
def test_what_is_not_clear_is_unparsed_and_says_why(text: str) -> None:
    found = read_scores(Reply(text), NAMES)
    assert found.failure == UNREAD[text] and found.values == {}


def test_a_tool_call_counts_before_the_text_and_in_any_order_of_names() -> None:
    call = ToolCall("1", "setEvaluation", '{"relevance": 2, "truthfulness": 5}')
    found = read_scores(Reply("Truthfulness: 1, relevance: 1", tool_calls=(call,)), NAMES)
    assert found.values == {"truthfulness": 5, "relevance": 2}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            '{"truthfulness": 4, "relevance": 5, "reason": "The date is wrong."}',
            "The date is wrong.",
        ),
        ("Truthfulness: 4\nRelevance: 5\nReason: The date is wrong.", "The date is wrong."),
        ("Truthfulness: 4\nRelevance: 5", ""),
    ],
)
def test_the_judges_own_reason_is_kept(text: str, reason: str) -> None:
    assert read_scores(Reply(text), NAMES).reason == reason


def test_numbers_without_names_are_taken_in_the_order_asked() -> None:
    swapped: Mapping[str, float] = read_scores(Reply("4, 5"), NAMES[::-1]).values
    assert swapped == {"relevance": 4, "truthfulness": 5}
