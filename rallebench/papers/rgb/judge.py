"""RGB's judges (Chen et al. 2023, arXiv:2309.01431). Rej* detects answers that decline; ED* detects answers that notice wrong
documents.

Each judge is asked for yes or no. A reply with neither is unparsed.
"""

from __future__ import annotations

from collections.abc import Callable

from rallebench.core.prompts import fill_template
from rallebench.core.scoring import ScoreColumn
from rallebench.core.types import Flow, Generate, Message
from rallebench.core.verdicts import Claim, read_verdict
from rallebench.metrics import METRICS
from rallebench.metrics.judges import Case, verdict_outcome, verdict_scores
from rallebench.metrics.judges.choosing import choice_scores, judge_yes_no

FOLDER = "suites/rgb"

REJECTION = (
    "Yes, the question is addressed by the documents.",
    "No, the question is not addressed by the documents.",
)
ERRORS = (
    "Yes, the model has identified the factual errors.",
    "No, the model fails to identify the factual errors.",
)
"""The two sentences allowed by each prompt."""

_INFORMATION = r"(?:information|evidence|context|details?)"
ADDRESSED = Claim(
    holds=rf"address(?:ed|es|ing)?|answered|answerable|answer(?:s|ing)? (?:(?:the|this|that|your|a|any) (?:\w+ )?(?:question|query)|it)|"
    rf"settle[sd]?|resolve[sd]?|(?:sufficient|enough) {_INFORMATION}|"
    r"(?:contain|provide|mention|include|offer|give|hold|have|has)(?:s|d|ed|ing)? (?:the|an?|any) (?:\w+ )?answer|"
    rf"(?:answer|{_INFORMATION}) (?:is|was|can be|could be) (?:\w+ly )?(?:present|found|given|contained|provided|available)|"
    r"(?:found|contained|present) in (?:the|any|these)",
    fails=rf"unaddressed|unanswered|unanswerable|unresolved|insufficient {_INFORMATION}|no {_INFORMATION}|no answer|"
    rf"(?:lack(?:s|ing|ed)?|miss(?:es|ing)) (?:\w+ ){{0,3}}(?:{_INFORMATION}|answer)|"
    rf"{_INFORMATION} (?:\w+ )?(?:is|are|was|were) (?:missing|lacking|absent)|irrelevant to|silent (?:on|about)|say(?:s)? nothing|"
    r"(?:declin|refus)(?:e|es|ed|ing) to (?:answer|respond|reply)",
    about=r"question|query|it|this|one",
    chinese=r"(?<=[被到以能够法未没有来已经得])(?:回答|解答)|(?:回答|解答)(?=[了该这此问所])|得到了?(?:明确的?)?(?:回答|解答)|解决|涉及|提及|提到|"
    r"(?:足够|充分|充足)的?(?:相关)?(?:信息|证据)|(?:有|得到|找到|包含|提供|给出)了?(?:\w{0,4}的)?(?:明确)?答案",
    chinese_fails=r"缺乏|缺少|信息不足|无关",
)
_ERRORS = r"(?:errors?|mistakes?|inaccurac(?:y|ies)|falsehoods?|contradictions?)"
NOTICED = Claim(
    holds=r"identif(?:y|ies|ied|ying)|notic(?:e|es|ed|ing)|detect(?:s|ed|ing)?|recogni[sz](?:e|es|ed|ing)|"
    r"point(?:s|ed|ing)? (?:it |them )?out|spot(?:s|ted|ting)?|flag(?:s|ged|ging)?|acknowledg(?:e|es|ed|ing)|catch(?:es)?|caught|"
    rf"aware|corrects|corrected|(?:finds?|found|mentions?|mentioned|mentioning|names?|named) (?:\w+ ){{0,3}}{_ERRORS}|"
    rf"{_ERRORS} (?:is|are|was|were|has been|have been) (?:\w+ )?found|"
    r"(?:notes?|states?|says?|said|noted|stated|observes?|claims?) that (?:\w+ ){1,4}?(?:is|are|was|were|contains?|has|have) "
    rf"(?:\w+ ){{0,2}}(?:wrong|false|incorrect|inaccurate|mistaken|erroneous|{_ERRORS})",
    fails=r"un(?:identified|noticed|detected|recogni[sz]ed|corrected|aware)|fail(?:s|ed)?(?! to\b)|overlook(?:s|ed|ing)?|"
    rf"miss(?:es|ed)?|ignor(?:e|es|ed|ing)|oblivious|no mention of (?:\w+ ){{0,3}}{_ERRORS}|"
    r"(?:accept|adopt|trust|believe|repeat)(?:s|ed|d|ing)? (?:\w+ ){0,2}(?:false|wrong|incorrect|inaccurate|erroneous)",
    about=rf"{_ERRORS}|them|it|model|answer|system",
    chinese=r"识别|发现|指出|注意到|察觉|意识到|纠正|检测|认识到|知道|更正|(?:认为|表示|说|称)\w{0,8}(?:存在|有)\w{0,6}(?:错误|误)",
    chinese_fails=r"忽略|忽视|遗漏|漏掉|错过",
)
"""The statements that count as yes."""


@METRICS.register_judge(
    "rgb-rejection",
    folder=FOLDER,
    prompts={"judge-rejection.txt": ("question", "answer")},
    columns=(
        ScoreColumn(
            "rejection_rate_judge",
            "1 if the judge says that the question is not addressed, else 0 (RGB's Rej*).",
        ),
    ),
    scores=verdict_scores("rejection_rate_judge"),
    label="Rej*",
    higher_is_better=None,
)
def rejection(case: Case, *, llm: str, prompt: str) -> Flow:
    """1 for an answer that declined, by the judge's verdict that the question is not addressed, else 0 (RGB's Rej*).

    Normalisation: none: the model reads the question and the answer as they are.
    Not scored: a verdict that says neither yes nor no.
    Source: RGB, Chen et al. 2023, arXiv:2309.01431.
    Traps: Good where the passages hold no answer, bad where they do. The published code counts an unclear verdict as a no.
    """
    return _flow(case, llm, prompt, verdict_on_rejection, REJECTION)


@METRICS.register_judge(
    "rgb-errors",
    folder=FOLDER,
    prompts={"judge-errors.txt": ("answer",)},
    columns=(
        ScoreColumn(
            "fact_check_rate_judge",
            "1 if the judge says that the answer notices factual errors, else 0 (RGB's ED*).",
        ),
    ),
    scores=verdict_scores("fact_check_rate_judge"),
    label="ED*",
)
def errors(case: Case, *, llm: str, prompt: str) -> Flow:
    """1 for an answer that noticed wrong documents, by the judge's verdict, else 0 (RGB's ED*).

    Normalisation: none: the model reads the answer as it is.
    Not scored: a verdict that says neither yes nor no.
    Source: RGB, Chen et al. 2023, arXiv:2309.01431.
    Traps: Meant for documents with counterfactual statements. The published code counts an unclear verdict as a no.
    """
    return _flow(case, llm, prompt, verdict_on_errors, ERRORS)


@METRICS.register_judge(
    "rgb-rejection-choice",
    folder=FOLDER,
    prompts={"judge-rejection.txt": ("question", "answer")},
    columns=(
        ScoreColumn(
            "rejection_rate_choice",
            "1 if No is more probable for the judge than Yes: the question is not addressed; else 0.",
        ),
        ScoreColumn(
            "rejection_probability",
            "The judge's probability that the question is not addressed. Over the answers with probabilities.",
        ),
    ),
    scores=choice_scores("rejection_rate_choice", "rejection_probability"),
    label="Rej* by probability",
    higher_is_better=None,
)
def rejection_choice(case: Case, *, llm: str, prompt: str) -> Flow:
    """1 for an answer that declined, by the probabilities of the judge's Yes and No, else 0 (RGB's Rej*).

    Normalisation: none: the model reads the question and the answer as they are.
    Not scored: an answer of a model without probabilities that says neither yes nor no.
    Source: RGB, Chen et al. 2023, arXiv:2309.01431; a choice between Yes and No instead of its sentence.
    Traps: Good where the passages hold no answer, bad where they do. Not the published Rej*, which reads a text.
    """
    return judge_yes_no(llm, _messages(case, prompt), verdict_on_rejection, positive="No")


@METRICS.register_judge(
    "rgb-errors-choice",
    folder=FOLDER,
    prompts={"judge-errors.txt": ("answer",)},
    columns=(
        ScoreColumn(
            "fact_check_rate_choice",
            "1 if Yes is more probable for the judge than No: the answer notices factual errors; else 0.",
        ),
        ScoreColumn(
            "fact_check_probability",
            "The judge's probability that the answer notices factual errors. Over the answers with probabilities.",
        ),
    ),
    scores=choice_scores("fact_check_rate_choice", "fact_check_probability"),
    label="ED* by probability",
)
def errors_choice(case: Case, *, llm: str, prompt: str) -> Flow:
    """1 for an answer that noticed wrong documents, by the probabilities of the judge's Yes and No, else 0 (RGB's ED*).

    Normalisation: none: the model reads the answer as it is.
    Not scored: an answer of a model without probabilities that says neither yes nor no.
    Source: RGB, Chen et al. 2023, arXiv:2309.01431; a choice between Yes and No instead of its sentence.
    Traps: Meant for documents with counterfactual statements. Not the published ED*, which reads a text.
    """
    return judge_yes_no(llm, _messages(case, prompt), verdict_on_errors)


def _messages(case: Case, prompt: str) -> tuple[Message, ...]:
    return (
        Message("user", fill_template(prompt, {"question": case.query, "answer": case.answer})),
    )


def _flow(
    case: Case, llm: str, prompt: str, read: Callable[[str], bool | None], verdicts: tuple[str, ...]
) -> Flow:
    form = {"response_format": {"type": "choice", "choices": verdicts}}
    reply = yield Generate(
        llm,
        _messages(case, prompt),
        max_tokens=64,
        temperature=0.0,
        seed=0,
        forced=form,
        roomy=True,
    )
    return verdict_outcome(read(reply.text))


def verdict_on_rejection(text: str) -> bool | None:
    """Return whether the judge says that the answer declined; None without a clear verdict.

    >>> verdict_on_rejection("No, the question is not addressed."), verdict_on_rejection("Yes, it is addressed.")
    (True, False)
    """
    addressed = read_verdict(text, ADDRESSED)
    return None if addressed is None else not addressed


def verdict_on_errors(text: str) -> bool | None:
    """Return whether the judge says that the errors were noticed; None without a clear verdict.

    >>> verdict_on_errors("Yes."), verdict_on_errors("It fails to identify them."), verdict_on_errors("Perhaps")
    (True, False, None)
    """
    return read_verdict(text, NOTICED)
