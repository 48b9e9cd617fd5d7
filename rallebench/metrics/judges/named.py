"""Judges by name: ``truthfulness:my-llm`` is the judge ``truthfulness``, played by the model ``my-llm``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.prompts import prompt_text
from rallebench.core.runs import Judge
from rallebench.core.text import unwrapped
from rallebench.core.types import Example, Flow
from rallebench.metrics import METRICS, JudgeTraits
from rallebench.metrics.judges import Case

MarkOf = Callable[[str], str]
"""A language model's name → a digest of its settings. Raises NotFoundError."""


def split_judges(
    names: Sequence[str], mark_of: MarkOf
) -> tuple[tuple[str, ...], tuple[Judge, ...]]:
    """(the names that are no judges, the judges). Raises UsageError for a judge without a known model."""
    judges = (judge_named(name, mark_of) for name in names if METRICS.is_judge(name))
    return (
        tuple(name for name in names if not METRICS.is_judge(name)),
        tuple(dict.fromkeys(judges)),
    )


def check_sources(judges: Sequence[Judge], examples: Iterable[Example], dataset: str) -> None:
    """Raise UsageError for a judge that has nothing to judge by in any example."""
    for judge in judges:
        if all(judge.ask(example, "") is None for example in examples):
            wants = METRICS.entry(judge.name.partition(":")[0]).traits["wants"]
            raise UsageError(
                f"{judge.name} judges by {wants}; {dataset} has none. Drop that judge or choose another dataset."
            )


def judge_named(name: str, mark_of: MarkOf, prompts: str = "", **settings: Any) -> Judge:
    """The judge ``JUDGE:MODEL``; a model's name may stand in brackets. ``prompts``: a folder with prompts of the user's own;
    ``settings``: keywords of its flow.

    Raises UsageError, BadFileError for its prompts.
    """
    kind, _, llm = (part.strip() for part in name.partition(":"))
    entry = METRICS.entry(kind)
    traits: JudgeTraits = entry.traits["judge"]
    llm = unwrapped(llm)
    if not llm:
        raise UsageError(
            f"{kind!r} is a judge: name the language model that judges, as in {kind}:MODEL."
        )
    mark = mark_of(llm)
    texts = {
        file: prompt_text(traits.folder, file, prompts, fields)
        for file, fields in traits.prompts.items()
    }
    prompt = traits.prompt(*texts.values())

    def ask(example: Example, answer: str, **known: Any) -> Flow | None:
        source = traits.source(example) if traits.source else ""
        if traits.source and not source:
            return None
        case = Case(example.question.text, answer, source)
        flow: Flow = entry.value(case, llm=llm, prompt=prompt, **settings, **known)
        return flow

    return Judge(
        f"{kind}:{llm}",
        llm,
        {f"{column.name}:{llm}": column.definition for column in traits.columns},
        {**settings, "prompts": texts, "model": mark},
        ask,
        lambda example, answer, judgement: {
            f"{column}:{llm}": value for column, value in traits.scores(judgement).items()
        },
        {f"{column.name}:{llm}": column.range for column in traits.columns},
    )
