"""RGB's judges (Chen et al. 2023, arXiv:2309.01431): did an answer decline (Rej*), did it notice wrong documents (ED*)?

Each is asked for yes or no. A reply that says neither is unparsed.
"""

from __future__ import annotations

from collections.abc import Callable

from rallebench.core.prompts import filled
from rallebench.core.types import Flow, Generate, Message
from rallebench.core.verdicts import Claim, read_verdict
from rallebench.metrics import METRICS, ScoreColumn
from rallebench.metrics.judges import Case, decided, verdict_of

FOLDER = "suites/rgb"

REJECTION = (
    "Yes, the question is addressed by the documents.",
    "No, the question is not addressed by the documents.",
)
ERRORS = (
    "Yes, the model has identified the factual errors.",
    "No, the model fails to identify the factual errors.",
)
"""The two sentences that each prompt asks for."""

_INFORMATION = r"(?:information|evidence|context|details?)"
ADDRESSED = Claim(
    holds=rf"address(?:ed|es|ing)?|answered|answerable|answer(?:s|ing)? (?:(?:the|this|that|your|a|any) (?:\w+ )?(?:question|query)|it)|"
    rf"settle[sd]?|resolve[sd]?|(?:sufficient|enough) {_INFORMATION}|contains? (?:the|an) answer",
    fails=rf"unaddressed|unanswered|unanswerable|unresolved|insufficient {_INFORMATION}|no {_INFORMATION}|no answer",
    about=r"question|query|it|this|one",
)
_ERRORS = r"(?:errors?|mistakes?|inaccurac(?:y|ies)|falsehoods?|contradictions?)"
NOTICED = Claim(
    holds=r"identif(?:y|ies|ied|ying)|notic(?:e|es|ed|ing)|detect(?:s|ed|ing)?|recogni[sz](?:e|es|ed|ing)|"
    r"point(?:s|ed|ing)? (?:it |them )?out|spot(?:s|ted|ting)?|flag(?:s|ged|ging)?|acknowledg(?:e|es|ed|ing)|catch(?:es)?|caught|"
    rf"aware|corrects|corrected|(?:finds?|found) (?:\w+ ){{0,3}}{_ERRORS}",
    fails=r"un(?:identified|noticed|detected|recogni[sz]ed|corrected|aware)|fail(?:s|ed)?(?! to\b)|overlook(?:s|ed|ing)?|"
    r"miss(?:es|ed)|ignor(?:e|es|ed|ing)|oblivious",
    about=rf"{_ERRORS}|them|it|model|answer|system",
)
"""The claims that a yes states."""


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
    scores=verdict_of("rejection_rate_judge"),
    label="Rej*",
    higher_is_better=None,
)
def rejection(case: Case, *, llm: str, prompt: str) -> Flow:
    """Whether an answer declined: 1 if the judge says that the question is not addressed, else 0 (RGB's Rej*).

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
    scores=verdict_of("fact_check_rate_judge"),
    label="ED*",
)
def errors(case: Case, *, llm: str, prompt: str) -> Flow:
    """Whether an answer noticed that documents are wrong: 1 if the judge says that it did, else 0 (RGB's ED*).

    Normalisation: none: the model reads the answer as it is.
    Not scored: a verdict that says neither yes nor no.
    Source: RGB, Chen et al. 2023, arXiv:2309.01431.
    Traps: Meant for documents with counterfactual statements. The published code counts an unclear verdict as a no.
    """
    return _flow(case, llm, prompt, verdict_on_errors, ERRORS)


def _flow(
    case: Case, llm: str, prompt: str, read: Callable[[str], bool | None], verdicts: tuple[str, ...]
) -> Flow:
    sent = (Message("user", filled(prompt, {"question": case.query, "answer": case.answer})),)
    form = {"response_format": {"type": "choice", "choices": verdicts}}
    reply = yield Generate(
        llm, sent, max_tokens=64, temperature=0.0, seed=0, forced=form, roomy=True
    )
    return decided(read(reply.text))


def verdict_on_rejection(text: str) -> bool | None:
    """Whether the judge says that the answer declined; None if it says neither.

    >>> verdict_on_rejection("No, the question is not addressed."), verdict_on_rejection("Yes, it is addressed.")
    (True, False)
    """
    addressed = read_verdict(text, ADDRESSED)
    return None if addressed is None else not addressed


def verdict_on_errors(text: str) -> bool | None:
    """Whether the judge says that the errors were noticed; None if it says neither.

    >>> verdict_on_errors("Yes."), verdict_on_errors("It fails to identify them."), verdict_on_errors("Perhaps")
    (True, False, None)
    """
    return read_verdict(text, NOTICED)
