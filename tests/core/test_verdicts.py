"""Verdicts are read as a person reads them: negations in their clause, the final verdict, and nothing where both are said."""

from __future__ import annotations

import pytest

from rallebench.core.verdicts import read_verdict
from rallebench.metrics.judges.rgb import verdict_on_errors, verdict_on_rejection

DECLINED = [
    "The question is not addressed. The answer says: 'Yes, I would like to know.'",
    '{"reason": "It says: Yes, perhaps.", "addressed": false, "sure": "very"}',
    "Answer: N",
    "It isn't.",
    "They do not.",
    "I'm afraid not.",
    "I have to say no.",
    "[No]",
    "(No)",
    "The answer to whether the question is addressed is no.",
    "No. I was asked to say yes or no.",
    "It would be wrong to say that the question is addressed.",
    "The question is addressed by no document.",
    "The answer declines to address the question.",
    "The documents don't settle the question, so: no",
    "There is no sign that the question is addressed.",
    "No.",
    "no",
    "NO!",
    "**No**",
    "`No`",
    '"No."',
    "Answer: No",
    "Final answer: **no**.",
    "My verdict is no.",
    "Verdict - No",
    "<answer>No</answer>",
    '{"verdict": "No"}',
    "{'addressed': False}",
    '{"not_addressed": true}',
    "\\boxed{No}",
    "No, the question isn't addressed by the documents.",
    "The question is not directly addressed by the documents.",
    "No the question is not addressed",
    "No – the documents do not address it.",
    "The documents do not address the question.",
    "The question remains unanswered.",
    "The question is left unaddressed.",
    "The question was never addressed.",
    "The question cannot be answered from the documents.",
    "The documents fail to address the question.",
    "None of the documents addresses the question.",
    "Neither document addresses the question.",
    "The question is addressed by none of the documents.",
    "The documents contain insufficient information to address the question.",
    "There isn't enough information in the documents.",
    "I don't think the question is addressed.",
    "It is not true that the question is addressed.",
    "I would say no.",
    "The answer is short, but the question is not addressed.",
    "The dates are addressed, but the question is not addressed.",
    "The task is to tell whether the question is addressed. No.",
    "The answer says it can not answer the question; therefore the question is not addressed.",
    'The answer: "I can not answer the question because of the insufficient information in documents." So no.',
    "No, it only addresses the first part.",
    "No. (Yes, it mentions dates, but nothing else.)",
    "否，该问题没有被回答。",
    "The question is, in fact, not addressed.",
    "The question is not, in fact, addressed.",
    "Not addressed",
    "not addressed.",
    "Answer: The question is not addressed by the documents.",
    "1. No, the question is not addressed by the documents.",
    "- No",
    "> No",
    "“No, the question is not addressed by the documents.”",
    "Let me think: yes, the answer gives a year... no wait, it declines. Final answer: No",
    "Since the answer declines, the question is not addressed.",
    "The question isn’t addressed",
    "The question doesnt get answered",
    "No — the question about the director remains open.",
    "Nope.",
    "The documents hardly address the question.",
    "The documents provide no information on the director.",
    "'No, the question is not addressed by the documents.'",
    'No, the question is not addressed by the documents. The answer says "Yes, it is in Paris" without a source.',
    "False",
]
ADDRESSED = [
    "Yes/No: Yes",
    "Y",
    "Sure, yes.",
    "Yes: 'No, the question is not addressed by the documents.' would be wrong.",
    "The documents answer the question.",
    "The question is, without any doubt, addressed.",
    "It cannot be denied that the question is addressed.",
    "Yes.",
    "<verdict>\nYes\n</verdict>",
    '{"addressed": true}',
    "The question is addressed by the documents.",
    "The documents address the question.",
    "The documents do not fail to address the question.",
    "The question is not only addressed but settled.",
    "No doubt the question is addressed.",
    "I'd say yes",
    "Although the answer is not detailed, the question is addressed.",
    "The answer names a city. So the question is addressed.",
    "Yes, although not directly.",
    "Yes, the answer isn't long but the question is addressed.",
    "Yes (no doubt about it).",
    "是的。",
    "Addressed",
    "Judgement: Yes, the question is addressed by the documents.",
    "Let me see. The question asks for a year. The answer gives 1969. Yes, the question is addressed by the documents.",
    "True",
]
SETTLES_NOTHING = [
    "Yes and no.",
    "Yes or no?",
    "It is unclear whether the question is addressed.",
    "Perhaps the question is addressed.",
    "",
    "Yesterday, perhaps",
    "I cannot tell.",
    "Nobody knows.",
    "Yes, the question is not addressed by the documents.",
]
NOTICED = [
    "Yes.",
    "Yes, the model has identified the factual errors.",
    "The model has identified an error.",
    "The model did not fail to identify the errors.",
    "The model corrects the date, so yes.",
    "The model is aware of the errors.",
    "The model points out the error.",
    "I believe that yes.",
    "The answer does not say so, but the error is noticed.",
    "Yes, the model has successfully identified the factual errors, and no error is left.",
    "Identified.",
    "Has the model identified the errors? Yes, it has.",
]
UNNOTICED = [
    "No: 'has identified' would be too much.",
    "It would be untrue that the model has identified the errors.",
    "There is nothing to show that the model noticed the errors.",
    "Nothing has identified it; no.",
    "No. (Yes, it mentions dates, but no error is noticed.)",
    "No, the model fails to identify the factual errors.",
    "It has not identified them.",
    "The model has identified no errors.",
    "No errors have been identified.",
    "The errors went unnoticed.",
    "It fails.",
    "The model neither identifies nor corrects the errors.",
    "The model overlooks the errors.",
    "The model was unable to detect the mistakes.",
    "The model isn't aware of any error.",
    "The model never points out that the documents are wrong.",
    "Without identifying the errors, the model repeats them.",
    "The model answered without noticing any mistakes.",
    "No, the model has identified nothing.",
    "No one has identified the errors.",
    "The model hasn't identified the factual errors",
    "The model ignored the errors in the documents.",
    "No factual errors were identified by the model.",
    "Not identified.",
    "The model failed to notice them.",
    "No, the model does not identify the factual errors; it merely identifies the city.",
    "Has the model identified the errors? No.",
    '{"identified": "no"}',
]
SAYS_NEITHER = [
    "Note that this is hard.",
    "Perhaps",
    "Nothing is wrong.",
]


@pytest.mark.parametrize(
    ("text", "declined"),
    [
        *((text, True) for text in DECLINED),
        *((text, False) for text in ADDRESSED),
        *((text, None) for text in SETTLES_NOTHING),
    ],
)
def test_a_judge_of_rejection_is_read_in_any_words(text: str, declined: bool | None) -> None:
    assert verdict_on_rejection(text) is declined
    assert verdict_on_rejection(f"  {text}\n") is declined


@pytest.mark.parametrize(
    ("text", "noticed"),
    [
        *((text, True) for text in NOTICED),
        *((text, False) for text in UNNOTICED),
        *((text, None) for text in SAYS_NEITHER),
    ],
)
def test_a_judge_of_errors_is_read_in_any_words(text: str, noticed: bool | None) -> None:
    assert verdict_on_errors(text) is noticed


@pytest.mark.parametrize(
    "wrapped",
    ["{}", "**{}**", "Answer: {}", '"{}"', "- {}", "<answer>{}</answer>", "Let me see.\n\n{}"],
)
@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Yes", True),
        ("No", False),
        ("no.", False),
        ("YES!", True),
        ("False", False),
        ("Not at all.", False),
        ("Maybe", None),
    ],
)
def test_a_bare_verdict_is_read_in_every_wrapping(
    text: str, verdict: bool | None, wrapped: str
) -> None:
    assert read_verdict(wrapped.format(text)) is verdict


@pytest.mark.parametrize(
    ("piece", "declined"),
    [
        ("no ", None),
        ("(", None),
        ("'", None),
        ("not addressed, ", True),
        ("yes or no? ", None),
        ("answer: ", None),
        ("although ", None),
        ("neither ", None),
    ],
)
def test_a_reply_of_nothing_but_repetition_is_read_at_once(
    piece: str, declined: bool | None
) -> None:
    assert verdict_on_rejection(piece * 1500) is declined
