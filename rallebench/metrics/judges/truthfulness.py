"""Truthfulness and relevance in one call, each from 1 to 5, by the article from which the question was made.

BARAG's judge (Kenneweg et al. 2024, arXiv:2403.00820), which forces a function call. Its code overwrites the system
prompt, so the rubric was never sent; ``compat`` "original" leaves it out, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.core.prompts import fill_template
from rallebench.core.scoring import ScoreColumn
from rallebench.core.types import Episode, Example, Flow, Generate, Message, ToolSpec
from rallebench.metrics import METRICS
from rallebench.metrics.judges import (
    Case,
    Judgement,
    judgement_outcome,
    mean_judgement,
    read_judgement,
)
from rallebench.metrics.judges._reading import read_scores
from rallebench.metrics.judges.choosing import DEGREES, UNREAD, ask_degree, mean_degree

TRUTHFULNESS, RELEVANCE, PERFECT = "truthfulness", "relevance", "perfect"
LOW, HIGH = 1.0, 5.0
ARTICLE_CHARACTERS = 15_000
"""Maximum characters of title and text in the prompt."""
FUNCTION = "setEvaluation"
REASON_CHARACTERS = 240
"""Maximum characters of the reason in a reply with an enforced format."""


@dataclass(frozen=True, slots=True)
class JudgePrompt:
    """``system``: the rubric. ``user`` and ``swapped`` contain ``{article}``, ``{query}``, ``{answer}``; the second asks for the
    scores, and shows the blocks, in the opposite order.
    """

    system: str
    user: str
    swapped: str


def article_text(title: str, content: str) -> str:
    """Return title and text for the prompt."""
    return f"{title}\n{content}"[:ARTICLE_CHARACTERS]


def article_for(example: Example) -> str:
    """Return the record's article or the reference, below the record's title, or the gold answers, or that there
    is none."""
    record, gold = example.record, example.gold
    content, title = str(record.get("content") or ""), str(record.get("title") or "")
    if content or (gold.reference and title):
        return article_text(title, content or gold.reference)
    if gold.unanswerable and not gold.reference:
        return "The question has no answer; a right reply says so."
    if gold.reference or not gold.answers:
        return gold.reference
    return "The accepted answers: " + "; ".join(gold.answers)


COLUMNS = (
    ScoreColumn(
        TRUTHFULNESS,
        "The judge's score for truthfulness, 1 to 5, over the judgements that could be read.",
        (LOW, HIGH),
    ),
    ScoreColumn(
        RELEVANCE,
        "The judge's score for relevance, 1 to 5, over the judgements that could be read.",
        (LOW, HIGH),
    ),
    ScoreColumn(
        PERFECT, "Share of answers with 5 for both, over the judgements that could be read."
    ),
)


def judgement_scores(episode: Episode) -> dict[str, float]:
    """Return the scores of one judgement; none for an unparsed one."""
    judgement = read_judgement(episode)
    if judgement.failure or PERFECT in judgement.values:
        return {} if judgement.failure else dict(judgement.values)
    both = [judgement.values[TRUTHFULNESS], judgement.values[RELEVANCE]]
    return {**judgement.values, PERFECT: float(both == [HIGH, HIGH])}


@METRICS.register_judge(
    "truthfulness",
    prompts={
        "truthfulness-system.txt": (),
        "truthfulness-user.txt": ("article", "query", "answer"),
        "truthfulness-swapped.txt": ("article", "query", "answer"),
    },
    prompt=JudgePrompt,
    columns=COLUMNS,
    scores=judgement_scores,
    source=article_for,
    label="Truthfulness and relevance",
    wants="an article, a reference or accepted answers",
)
def truthfulness(
    case: Case,
    *,
    llm: str,
    prompt: JudgePrompt,
    form: str = "schema",
    compat: str = "corrected",
    temperature: float = 0.0,
    seed: int = 0,
    repeats: int = 1,
    swap: bool = False,
    swapped: bool = False,
    max_tokens: int = 400,
) -> Flow:
    """Truthfulness and relevance of an answer, each 1 to 5, by its article.

    ``form``: the requested format of the scores: ``schema`` (``response_format``), ``tool`` (a forced call), or ``text``. All
    formats are parsed, whatever was requested. ``repeats``: number of requests, with seeds ``seed``, ``seed`` + 1 …; ``swap``
    uses the opposite order in every second request, and makes at least two; ``swapped`` uses it in the first.

    Normalisation: none: the model reads the article, the question and the answer unchanged.
    Not scored: a reply without both scores, or with a score off the scale; a question without an article, reference and answers.
    Source: BARAG, Kenneweg et al. 2024, arXiv:2403.00820.
    Traps: Every judge has its own bias, so scores by two models cannot be compared; of an article it reads only the first
    15,000 characters.
    """
    each = []
    for number in range(max(repeats, 2) if swap else repeats):
        turned = swapped != (swap and number % 2 == 1)
        names = (RELEVANCE, TRUTHFULNESS) if turned else (TRUTHFULNESS, RELEVANCE)
        values = {"article": case.source, "query": case.query, "answer": case.answer}
        sent = [Message("user", fill_template(prompt.swapped if turned else prompt.user, values))]
        if compat != "original":
            sent.insert(0, Message("system", prompt.system))
        tools, options, forced = _reply_form(form, names)
        reply = yield Generate(
            llm,
            tuple(sent),
            tools,
            max_tokens=max_tokens,
            temperature=temperature,
            seed=seed + number,
            options=options,
            forced=forced,
            roomy=True,
        )
        each.append(read_scores(reply, names, LOW, HIGH))
    return judgement_outcome(mean_judgement(each))


CHOICE_COLUMNS = (
    ScoreColumn(
        "truthfulness_choice",
        "The judge's mean score for truthfulness, 1 to 5, weighted by the probabilities of the scores.",
        (LOW, HIGH),
    ),
    ScoreColumn(
        "relevance_choice",
        "The judge's mean score for relevance, 1 to 5, weighted by the probabilities of the scores.",
        (LOW, HIGH),
    ),
    ScoreColumn(
        "perfect_choice",
        "The judge's probability of 5 for truthfulness times that of 5 for relevance.",
    ),
)


@dataclass(frozen=True, slots=True)
class DegreePrompts:
    """Prompts for one score each; both contain ``{article}``, ``{query}``, ``{answer}``."""

    truthfulness: str
    relevance: str


def degree_scores(episode: Episode) -> dict[str, float]:
    """Return the scores of one typed judgement by their columns; none for an unread one."""
    values = judgement_scores(episode)
    return {f"{name}_choice": value for name, value in values.items()}


@METRICS.register_judge(
    "truthfulness-choice",
    prompts={
        "truthfulness-choice.txt": ("article", "query", "answer"),
        "relevance-choice.txt": ("article", "query", "answer"),
    },
    prompt=DegreePrompts,
    columns=CHOICE_COLUMNS,
    scores=degree_scores,
    source=article_for,
    label="Truthfulness and relevance by probability",
    wants="an article, a reference or accepted answers",
)
def truthfulness_choice(case: Case, *, llm: str, prompt: DegreePrompts) -> Flow:
    """Truthfulness and relevance of an answer, each 1 to 5, by the probabilities of the scores.

    Normalisation: none: the model reads the article, the question and the answer unchanged.
    Not scored: an answer of a model without probabilities that names no score; a question without an article, reference and answers.
    Source: the scale of BARAG, Kenneweg et al. 2024, arXiv:2403.00820; weighted scores: G-Eval, Liu et al. 2023, arXiv:2303.16634.
    Traps: Two requests for each answer. Means lie nearer to 3 than scores from a text, so the two cannot be compared.
    """
    values = {"article": case.source, "query": case.query, "answer": case.answer}
    scores: dict[str, float] = {}
    perfect = 1.0
    for name, text in ((TRUTHFULNESS, prompt.truthfulness), (RELEVANCE, prompt.relevance)):
        choice = yield from ask_degree(llm, (Message("user", fill_template(text, values)),))
        mean = mean_degree(choice)
        if mean is None:
            return judgement_outcome(Judgement(failure=UNREAD))
        scores[name] = mean
        perfect *= choice.mean_value([float(degree == DEGREES[-1]) for degree in DEGREES]) or 0.0
    return judgement_outcome(Judgement({**scores, PERFECT: perfect}))


def _reply_form(
    form: str, names: tuple[str, str]
) -> tuple[tuple[ToolSpec, ...], dict[str, Any], dict[str, Any]]:
    """Return the tools, the options, and the enforced format of a reply in this form."""
    score = {"type": "number", "minimum": LOW, "maximum": HIGH}
    properties = {"reason": {"type": "string"}, **dict.fromkeys(names, score)}
    if form == "tool":
        # the published function takes only the two scores
        alone = {"type": "object", "properties": dict.fromkeys(names, score), "required": [*names]}
        choice = {"type": "function", "function": {"name": FUNCTION}}
        tool = ToolSpec(FUNCTION, "Sets the scores of the answer.", alone)
        return (tool,), {"tool_choice": choice}, {}
    if form != "schema":
        return (), {}, {}
    # A forced reply has to end before its token limit, and a number with all its decimals may not.
    whole = {"type": "integer", "minimum": int(LOW), "maximum": int(HIGH)}
    short = {"reason": {"type": "string", "maxLength": REASON_CHARACTERS}}
    forced = _schema({**short, **dict.fromkeys(names, whole)}, names)
    return (), _schema(properties, names), forced


def _schema(properties: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": properties,
        "required": [*names],
        "additionalProperties": False,
    }
    named = {"name": "evaluation", "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": named}}
