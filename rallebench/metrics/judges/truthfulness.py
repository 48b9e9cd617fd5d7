"""Truthfulness and relevance in one call, each from 1 to 5, by the article that the question was made from.

BARAG's judge (Kenneweg et al. 2024, arXiv:2402.16874), which forces a function call. Its code overwrites the system prompt
it had built, so the rubric was never sent; ``compat`` "original" leaves it out, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.core.prompts import fill_template
from rallebench.core.scoring import ScoreColumn
from rallebench.core.types import Episode, Example, Flow, Generate, Message, ToolSpec
from rallebench.metrics import METRICS
from rallebench.metrics.judges import Case, ended, judgement_of, mean_of
from rallebench.metrics.judges._reading import read_scores

TRUTHFULNESS, RELEVANCE = "truthfulness", "relevance"
LOW, HIGH = 1.0, 5.0
ARTICLE_CHARACTERS = 15_000
"""So much of title and text is shown."""
FUNCTION = "setEvaluation"
REASON_CHARACTERS = 240
"""The longest reason of a reply whose form is enforced."""


@dataclass(frozen=True, slots=True)
class JudgePrompt:
    """``system``: the rubric. ``user`` and ``swapped`` hold ``{article}``, ``{query}``, ``{answer}``; the second asks for
    the scores, and shows the blocks, in the other order."""

    system: str
    user: str
    swapped: str


def article_of(title: str, content: str) -> str:
    """Title and text as they are shown."""
    return f"{title}\n{content}"[:ARTICLE_CHARACTERS]


def article_for(example: Example) -> str:
    """The record's article or the reference, below the record's title, or the gold answers."""
    record, gold = example.record, example.gold
    content, title = str(record.get("content") or ""), str(record.get("title") or "")
    if content or (gold.reference and title):
        return article_of(title, content or gold.reference)
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
        "perfect", "Share of answers with 5 for both, over the judgements that could be read."
    ),
)


def scores_of(episode: Episode) -> dict[str, float]:
    """The scores of one judgement; none of one that could not be read."""
    judgement = judgement_of(episode)
    if judgement.failure:
        return {}
    both = [judgement.values[TRUTHFULNESS], judgement.values[RELEVANCE]]
    return {**judgement.values, "perfect": float(both == [HIGH, HIGH])}


@METRICS.register_judge(
    "truthfulness",
    prompts={
        "truthfulness-system.txt": (),
        "truthfulness-user.txt": ("article", "query", "answer"),
        "truthfulness-swapped.txt": ("article", "query", "answer"),
    },
    prompt=JudgePrompt,
    columns=COLUMNS,
    scores=scores_of,
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
    max_tokens: int = 400,
) -> Flow:
    """Truthfulness and relevance of an answer, each 1 to 5, by its article.

    ``form``: how the scores are asked for: ``schema`` (``response_format``), ``tool`` (a forced call), or ``text``. They are
    read from any of them, whatever was asked for. ``repeats``: so many times, with seeds ``seed``, ``seed`` + 1 …; ``swap``
    asks every second time with the other order, and at least twice.

    Normalisation: none: the model reads the article, the question and the answer as they are.
    Not scored: a reply without both scores, or with a score off the scale; a question without an article, reference and answers.
    Source: BARAG, Kenneweg et al. 2024, arXiv:2402.16874.
    Traps: A judge has its own leanings, so that numbers of two models cannot be compared; of an article it reads the first 15,000
        characters.
    """
    each = []
    for number in range(max(repeats, 2) if swap else repeats):
        swapped = swap and number % 2 == 1
        names = (RELEVANCE, TRUTHFULNESS) if swapped else (TRUTHFULNESS, RELEVANCE)
        values = {"article": case.source, "query": case.query, "answer": case.answer}
        sent = [Message("user", fill_template(prompt.swapped if swapped else prompt.user, values))]
        if compat != "original":
            sent.insert(0, Message("system", prompt.system))
        tools, options, forced = _form_of(form, names)
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
    return ended(mean_of(each))


def _form_of(
    form: str, names: tuple[str, str]
) -> tuple[tuple[ToolSpec, ...], dict[str, Any], dict[str, Any]]:
    """(the tools, the options, what a model that enforces forms is sent besides) of a reply in this form."""
    score = {"type": "number", "minimum": LOW, "maximum": HIGH}
    properties = {"reason": {"type": "string"}, **dict.fromkeys(names, score)}
    if form == "tool":
        # The published function takes the two scores alone.
        alone = {"type": "object", "properties": dict.fromkeys(names, score), "required": [*names]}
        choice = {"type": "function", "function": {"name": FUNCTION}}
        tool = ToolSpec(FUNCTION, "Sets the scores of the answer.", alone)
        return (tool,), {"tool_choice": choice}, {}
    if form != "schema":
        return (), {}, {}
    # A forced reply has to end before its limit of tokens, and a number with all its decimals may not.
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
