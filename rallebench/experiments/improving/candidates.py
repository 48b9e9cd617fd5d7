"""The variants of a chain that compete: other prompts, worked examples, other numbers of passages, and their combinations."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from rallebench.chains.saved import version_key
from rallebench.core.errors import UsageError
from rallebench.core.prompts import prompts_folder, read_prompt
from rallebench.core.settings import Setting, parse_settings
from rallebench.core.types import Action, Chain, Example
from rallebench.experiments.improving.guard import CopyGuard
from rallebench.experiments.improving.parts import Article
from rallebench.experiments.sweeps import INDEX, Variant, changed_by, factor

BELOW, WRITE = "improving", "write.txt"
"""Folder of the prompts, and the prompt for the model that writes further ones."""
EXAMPLES, EXAMPLE_NUMBER = "examples", Setting(int, 0, 1, 20)
"""The field for the number of worked examples, and one value of it."""


@dataclass(frozen=True, slots=True)
class FieldValue:
    """One value of a field of a chain. ``apply``: returns the changed chain."""

    field: str
    label: str
    apply: Callable[[Chain], Chain]


Fields = Sequence[Sequence[FieldValue]]
"""For each field, its values."""


def answering_action(chain: Chain) -> int:
    """Return the position of the last action of a language model. Raises UsageError without one."""
    places = [i for i, action in enumerate(chain.effective_actions) if action.kind == "generate"]
    if not places:
        raise UsageError(
            f"The chain {chain.name!r} has no action of a language model, so there is no prompt to improve; a sweep compares "
            "values of k and indexes."
        )
    return places[-1]


def varied_fields(chain: Chain, texts: Sequence[str]) -> list[list[FieldValue]]:
    """Return the values of ``FIELD=V,V`` texts. Raises UsageError for a field that the chain lacks, or of an index."""
    fields = []
    for text in texts:
        varied = factor(text, parse_settings)
        if varied.field.startswith(INDEX):
            raise UsageError(
                f"{varied.field} takes an index for each value; build these indexes, and vary retriever with their names."
            )
        values = [
            FieldValue(varied.field, label, _setter(varied.field, value))
            for label, value in zip(varied.labels, varied.values)
        ]
        fields.append([change for change in values if change.apply(chain) != chain])
    names = [values[0].field for values in fields if values]
    if len(set(names)) < len(names):
        raise UsageError("A field is varied twice; put all its values into one list.")
    return fields


def passage_numbers(chain: Chain) -> list[FieldValue]:
    """Return fewer and more passages than the chain's first retrieve action has; [] for a chain without one."""
    own = next((a.k for a in chain.effective_actions if a.kind == "retrieve"), 0)
    numbers = dict.fromkeys((max(1, own // 2), 2 * own, 4 * own)) if own else {}
    return [FieldValue("k", str(k), _setter("k", k)) for k in numbers if k != own]


def rewordings(chain: Chain, texts: Mapping[str, str]) -> list[FieldValue]:
    """Return the prompt of the answering action with each of ``texts`` before it."""
    place = answering_action(chain)
    field = f"{place + 1}.template"

    def change(text: str) -> Callable[[Chain], Chain]:
        return lambda chain: _put_before(chain, place, f"{text}\n\n")

    return [FieldValue(field, name, change(text)) for name, text in texts.items()]


def shipped_texts() -> dict[str, str]:
    """Return name → instruction of the shipped ones."""
    files = sorted((prompts_folder() / BELOW).glob("*.txt"))
    return {file.stem: read_prompt(file).strip() for file in files if file.name != WRITE}


def worked_examples(
    chain: Chain, train: Sequence[Article], numbers: Sequence[int], guard: CopyGuard
) -> list[FieldValue]:
    """Return the prompt of the answering action after questions to learn from with their answers, one of each article.

    Questions whose text or answer the guard refuses are left out, so there may be fewer numbers.
    """
    place = answering_action(chain)
    texts = [text for article in train if (text := _first_example(article, guard))]

    def change(number: int) -> Callable[[Chain], Chain]:
        block = "Examples of questions and answers:\n\n" + "\n\n".join(texts[:number]) + "\n\n"
        return lambda chain: _put_before(chain, place, block)

    usable = dict.fromkeys(min(number, len(texts)) for number in numbers)
    return [FieldValue(EXAMPLES, str(n), change(n)) for n in usable if n]


def _first_example(article: Article, guard: CopyGuard) -> str:
    texts = (_example_text(example) for example in article)
    return next((text for text in texts if text and not guard.refuse([text])), "")


def _example_text(example: Example) -> str:
    answers = example.gold.answers
    if not answers or example.question.passages or example.question.history:
        return ""
    return f"Question: {example.question.text}\nAnswer: {answers[0]}"


def _put_before(chain: Chain, place: int, text: str) -> Chain:
    """Put a text before the template of an action, in its dialect."""
    action: Action = chain.actions[place]
    if action.dialect == "eval":
        return chain.replace_action(place, template=f"{text!r} + ({action.template})")
    escaped = text.replace("{", "{{").replace("}", "}}")
    return chain.replace_action(place, template=escaped + action.template)


def _setter(field: str, value: object) -> Callable[[Chain], Chain]:
    return lambda chain: changed_by(chain, field, value)


def list_variants(chain: Chain, fields: Fields, number: int, seed: int) -> list[Variant]:
    """Return at most ``number`` distinct variants: first those with one change, one value of each field in turn, then
    combinations of changes drawn by ``seed``.
    """
    variants: list[Variant] = []
    known = {version_key(chain)}
    for changes in _in_order(fields, seed):
        if len(variants) >= number:
            break
        changed = chain
        for change in changes:
            changed = change.apply(changed)
        if (key := version_key(changed)) not in known:
            known.add(key)
            variants.append(Variant({c.field: c.label for c in changes}, changed))
    return variants


def _in_order(fields: Fields, seed: int) -> Iterator[tuple[FieldValue, ...]]:
    longest = max(map(len, fields), default=0)
    for i in range(longest):
        yield from ((values[i],) for values in fields if i < len(values))
    several = [
        combination
        for size in (2, 3)
        for chosen in combinations([f for f in fields if f], size)
        for combination in product(*chosen)
    ]
    random.Random(seed).shuffle(several)
    yield from several


def with_template(chain: Chain, template: str) -> Chain:
    """Return the chain with another prompt, in the dialect of plain fields, in its answering action."""
    place = answering_action(chain)
    return chain.replace_action(place, template=template, dialect="fstring")
