"""Variants of a chain on a few questions: which cells are missing, what differs, and whether the questions suffice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from rallebench.analysis.paired import PairedComparison, compare
from rallebench.chains.saved import chain_to_json
from rallebench.core.types import Action, Chain, Episode, Example, digest
from rallebench.engine.clusters import clusters_of
from rallebench.metrics import METRICS
from rallebench.services.verdicts import verdict_kind
from rallebench.services.workbench import Workbench

FEW = 30
"""Questions below which a difference is hardly ever shown."""

NAMES = {"retrieve": "retrieve", "generate": "generate", "identity": "pass on"}
TEMPLATES = {"retrieve": "query", "generate": "prompt", "identity": "text"}
"""Kind of an action → (its label, the label of its template)."""


__all__ = ["PairedComparison"]


@dataclass(frozen=True, slots=True)
class VariantAnswer:
    """The answer of a variant to a question. ``kind``: right, wrong, failed, or none without gold answers."""

    kind: str
    answer: str
    em: float | None
    seconds: float


Cells = Mapping[tuple[str, str], VariantAnswer]
"""(``key_of`` a chain, question id) → its answer."""


def key_of(chain: Chain) -> str:
    """A key that is equal for chains that answer alike, whatever their names."""
    return digest(chain_to_json(chain)["actions"])[:16]


def cell_of(chain: Chain, example: Example) -> tuple[str, str]:
    """The key of the answer of a chain to a question."""
    return key_of(chain), example.question.qid


def ask(workbench: Workbench, chain: Chain, example: Example) -> VariantAnswer:
    """Answer one question by a variant; cached steps are not asked again. Raises RalleError."""
    *_, episode = workbench.asking.execute_chain(chain, example.question)
    assert isinstance(episode, Episode)
    if episode.error:
        return VariantAnswer("failed", episode.error, None, 0.0)
    em = METRICS["em"](episode, example.gold) if example.gold.answers else None
    seconds = sum(step.seconds for step in episode.steps)
    return VariantAnswer(verdict_kind("", em), episode.answer, em, seconds)


def missing(
    chains: Sequence[Chain], examples: Sequence[Example], cells: Cells
) -> list[tuple[Chain, Example]]:
    """The cells to be asked, question by question."""
    grid = product(examples, chains)
    return [(chain, x) for x, chain in grid if cell_of(chain, x) not in cells]


def scores(chain: Chain, examples: Sequence[Example], cells: Cells) -> dict[str, float]:
    """Question id → exact match of a chain, where it was scored."""
    answers = {x.question.qid: cells.get(cell_of(chain, x)) for x in examples}
    return {qid: cell.em for qid, cell in answers.items() if cell and cell.em is not None}


def sample(examples: Sequence[Example], count: int) -> list[Example]:
    """``count`` questions evenly spread over a dataset."""
    if count >= len(examples):
        return list(examples)
    step = len(examples) / count
    return [examples[int(i * step)] for i in range(count)]


def paired(
    base: Chain, other: Chain, examples: Sequence[Example], cells: Cells
) -> PairedComparison:
    """Exact match of ``other`` against ``base`` on the questions that both have answered."""
    a, b = (scores(chain, examples, cells) for chain in (base, other))
    return compare("em", a, b, clusters=clusters_of(examples).of)


def difference_label(base: Chain, other: Chain) -> str:
    """The difference between two chains in a few words, as the label of a variant.

    >>> a = Chain("a", (Action("retrieve", "{question}", target="x", k=5),))
    >>> difference_label(a, a.replace_action(0, k=10)), difference_label(a, a)
    ('k 10', 'the same')
    """
    words: list[str] = []
    for index in range(max(len(base.actions), len(other.actions))):
        if index >= len(base.actions):
            words.append(f"+ {NAMES[other.actions[index].kind]}")
        elif index >= len(other.actions):
            words.append(f"without action {index + 1}")
        else:
            words += _action(base.actions[index], other.actions[index])
    return " · ".join(dict.fromkeys(words)) or "the same"


def _action(a: Action, b: Action) -> list[str]:
    if a.kind != b.kind:
        return [f"{NAMES[b.kind]} instead of {NAMES[a.kind]}"]
    words = [b.target] if a.target != b.target else []
    if a.k != b.k:
        words.append(f"k {b.k}")
    if (a.template, a.dialect) != (b.template, b.dialect):
        words.append(f"{TEMPLATES[b.kind]} changed")
    for name in sorted({*a.generation, *b.generation}):
        if a.generation.get(name) != (value := b.generation.get(name)):
            short = "default" if value is None else value if len(str(value)) < 20 else "changed"
            words.append(f"{name.replace('_', ' ')} {short}")
    return words
