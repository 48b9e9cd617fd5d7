"""Prompts written by a model, which sees the chain's prompt and its wrong answers to the questions to learn from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rallebench.analysis.paired import Scores
from rallebench.chains.template import check, names_used
from rallebench.core.errors import RalleError
from rallebench.core.prompts import fill_template, prompt_text
from rallebench.core.run_titles import plain_label
from rallebench.core.runs import DatasetRef, RunRequest, RunResult
from rallebench.core.types import Action, Chain, Example, Gold, Question
from rallebench.experiments.common import COSTS
from rallebench.experiments.improving.candidates import (
    BELOW,
    WRITE,
    answering_action,
    with_template,
)
from rallebench.experiments.sweeps import Variant
from rallebench.workspace.flows import chain_flow

WRONG_ANSWERS = 4
"""Wrong answers in a request to the writer."""
LONGEST_ANSWER = 300
"""Characters of an answer shown to the writer."""
_BETWEEN = re.compile(r"<prompt>\s*(.*?)\s*</prompt>", re.DOTALL)


def ask_writer(
    writer: str, chain: Chain, number: int, learning: RunResult, scores: Scores
) -> RunRequest:
    """Return the run that asks ``writer`` for ``number`` prompts, each for other wrong answers. ``learning``: the chain's
    answers to the questions to learn from, with their ``scores``.
    """
    action = chain.actions[answering_action(chain)]
    lines = _failures(learning, scores) or ["(All its answers were right.)"]
    text = prompt_text(BELOW, WRITE, fields=("fields", "template", "failures"))
    fields = ", ".join(
        f"{{{name}}}" for name in sorted(names_used(action.template, action.dialect))
    )
    examples = []
    for i in range(number):
        chosen = [
            lines[(WRONG_ANSWERS * i + j) % len(lines)]
            for j in range(min(WRONG_ANSWERS, len(lines)))
        ]
        values = {"fields": fields, "template": action.template, "failures": "\n\n".join(chosen)}
        request = fill_template(text, values)
        record = {"id": f"prompt {i + 1}", "input": request, "output": []}
        examples.append(Example(Question(f"prompt {i + 1}", request), Gold(), record))
    flow = chain_flow(Chain("writer", (Action("generate", "{question}", target=writer),)))
    return RunRequest(
        flow, DatasetRef("prompts to write"), tuple(examples), COSTS, label="write prompts"
    )


def _failures(learning: RunResult, scores: Scores) -> list[str]:
    """Return the questions that were answered worst, with their gold and answers; right ones are left out."""
    known = {qid: value for qid, value in scores.items() if value is not None}
    best = max(known.values(), default=0.0)
    worse = sorted((qid for qid in known if known[qid] < best or best <= 0), key=known.__getitem__)
    examples = {example.question.qid: example for example in learning.request.examples}
    lines = []
    for qid in worse:
        example = examples[qid]
        gold = " or ".join(example.gold.answers[:3])
        answer = learning.episodes[qid].answer[:LONGEST_ANSWER]
        lines.append(f"Question: {example.question.text}\nAnswer: {answer}\nRight: {gold}")
    return lines


def proposed_variants(chain: Chain, written: RunResult) -> tuple[list[Variant], Mapping[str, str]]:
    """Return the variants with the written prompts, and label → reason of invalid ones.

    In a dry run every prompt counts as valid, so that the plan holds for the most variants.
    """
    place = answering_action(chain)
    field, own = f"{place + 1}.template", chain.actions[place]
    variants: list[Variant] = []
    refused: dict[str, str] = {}
    needed = names_used(own.template, own.dialect)
    for i, example in enumerate(written.request.examples, 1):
        label = {field: f"written {i}"}
        episode = written.episodes.get(example.question.qid)
        if written.simulated:
            variants.append(
                Variant(label, chain.replace_action(place, template=f"{own.template} "))
            )
            continue
        template = _read(episode.answer) if episode else ""
        reason = _fault(template, needed) if episode else "the writer failed"
        variant = Variant(label, with_template(chain, template))
        if reason:
            refused[plain_label(variant.label)] = reason.removesuffix(".")
        else:
            variants.append(variant)
    return variants, refused


def _read(answer: str) -> str:
    """Return the prompt in an answer: the last text between the marks, else the whole."""
    marked: Sequence[str] = _BETWEEN.findall(answer)
    return marked[-1] if marked else answer.strip()


def _fault(template: str, needed: frozenset[str]) -> str:
    """Return the reason why a text cannot be the prompt, '' if it can."""
    if not template:
        return "the writer wrote nothing"
    try:
        check(template, "fstring")
        missing = needed - names_used(template, "fstring")
    except RalleError as error:
        return f"the written prompt is not valid: {error}"
    if missing:
        names = ", ".join(f"{{{name}}}" for name in sorted(missing))
        return f"the written prompt leaves out {names}"
    return ""
