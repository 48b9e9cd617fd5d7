"""RGB's judges (Chen et al. 2023, arXiv:2309.01431): did an answer decline (Rej*), did it notice wrong documents (ED*)?

Each is asked for yes or no. A reply that says neither is unparsed.
"""

from __future__ import annotations

from collections.abc import Callable

from rallebench.core.prompts import filled
from rallebench.core.types import Flow, Generate, Message
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
    reply = yield Generate(llm, sent, max_tokens=64, temperature=0.0, seed=0, forced=form)
    return decided(read(reply.text))


def verdict_on_rejection(text: str) -> bool | None:
    """Whether the judge says that the answer declined; None if it says neither.

    >>> verdict_on_rejection("No, the question is not addressed."), verdict_on_rejection("Yes, it is addressed.")
    (True, False)
    """
    reply = text.lower()
    if "not addressed" in reply:
        return True
    return False if "addressed" in reply or _begins(reply, "yes") else None


def verdict_on_errors(text: str) -> bool | None:
    """Whether the judge says that the errors were noticed (``has identified`` or ``Yes``); None if it says neither.

    >>> verdict_on_errors("Yes."), verdict_on_errors("It fails to identify them."), verdict_on_errors("Perhaps")
    (True, False, None)
    """
    if "has identified" in text or "Yes" in text:
        return True
    reply = text.lower()
    return False if _begins(reply, "no") or "fail" in reply or "not identif" in reply else None


def _begins(reply: str, word: str) -> bool:
    reply = reply.lstrip(" \t\n\"'*“‘")
    return reply.startswith(word) and not reply[len(word) : len(word) + 1].isalpha()
