"""Judges as metrics: ``truthfulness:my-llm`` is the judge ``truthfulness``, played by the workspace's model ``my-llm``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.prompts import prompt_text
from rallebench.core.runs import Judge
from rallebench.core.types import Example, Flow, digest
from rallebench.metrics.judges import JUDGES, Case
from rallebench.workspace.paths import Workspace


def split_judges(
    workspace: Workspace, names: Sequence[str]
) -> tuple[tuple[str, ...], tuple[Judge, ...]]:
    """(the names that are no judges, the judges). Raises UsageError for a judge without a model of the workspace."""
    metrics, judges = [], []
    for name in names:
        if name.partition(":")[0] in JUDGES:
            judges.append(judge_named(workspace, name))
        else:
            metrics.append(name)
    return tuple(metrics), tuple(dict.fromkeys(judges))


def judge_named(workspace: Workspace, name: str, prompts: str = "", **settings: Any) -> Judge:
    """The judge ``JUDGE:MODEL``; ``prompts``: a folder with prompts of the user's own; ``settings``: keywords of its flow.

    Raises UsageError, BadFileError for its prompts.
    """
    kind, _, llm = name.partition(":")
    entry = JUDGES.entry(kind)
    if not llm:
        raise UsageError(
            f"{kind!r} is a judge: name the language model that judges, as in {kind}:MODEL."
        )
    entry_of_model = workspace.llm(llm)
    traits = entry.traits
    texts = {
        file: prompt_text(traits["folder"], file, prompts, fields)
        for file, fields in traits["prompts"].items()
    }
    prompt = traits["prompt"](*texts.values())

    def ask(example: Example, answer: str, **known: Any) -> Flow | None:
        source = traits["source"](example) if traits["source"] else ""
        if traits["source"] and not source:
            return None
        case = Case(example.question.text, answer, source)
        flow: Flow = entry.value(case, llm=llm, prompt=prompt, **settings, **known)
        return flow

    return Judge(
        f"{kind}:{llm}",
        llm,
        {f"{column.name}:{llm}": column.definition for column in traits["columns"]},
        {
            **settings,
            "prompts": texts,
            "model": digest(entry_of_model.model_dump(mode="json"))[:12],
        },
        ask,
        lambda example, answer, judgement: {
            f"{column}:{llm}": value for column, value in traits["scores"](judgement).items()
        },
        {f"{column.name}:{llm}": column.range for column in traits["columns"]},
    )
