"""CRUD-RAG's recommendations (its Table 9) made from a grid: a value is recommended only where a difference is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rallebench.analysis.paired import PairedComparison, compare, shared_scores, with_holm
from rallebench.core.experiments import Table
from rallebench.engine.statistics import TOO_FEW
from rallebench.experiments.papers.crud.configurations import FACTORS, Factor, Grid
from rallebench.experiments.papers.crud.grid_cells import Outcomes
from rallebench.experiments.papers.crud.tasks import TASKS
from rallebench.experiments.published import published_table

LEVEL = 0.05
"""Below this corrected p a difference counts as shown."""
NONE_SHOWN = "no difference shown"
SCENARIOS: Mapping[str, tuple[str, ...]] = {
    "Create": ("continuation",),
    "Delete": ("summary",),
    "Read, 1 document": ("qa1",),
    "Read, several documents": ("qa2", "qa3"),
    "Update": ("hallucination",),
}
"""What users do, as the paper has it → the tasks that stand for it."""
PRINTED: Mapping[str, str] = {
    "Create": "creative generation",
    "Delete": "summarization",
    "Read, 1 document": "single-document QA",
    "Read, several documents": "multi-document QA",
    "Update": "error correction",
}
"""Scenario → what the paper's table calls its task."""
HEADS: Mapping[str, str] = {
    "topk": "top-k",
    "chunk": "chunk_size",
    "overlap": "chunk_overlap",
    "retriever": "retriever",
    "llm": "llm",
}
"""Factor → its column in the paper's table."""
COLUMNS = ("topk", "chunk", "overlap", "retriever", "llm", "embedding")
GROWING = ("mrr", "gold_found")
"""These cannot fall with a larger top-k."""
ASIDE = {"QA_avg_F1": "precision", "QA_recall": "recall"}
"""Metrics of which a recommendation of their own is told, as the paper does."""


@dataclass(frozen=True, slots=True)
class Versus:
    """A value against the base on the questions that both have scored."""

    value: Any
    paired: PairedComparison

    @property
    def p(self) -> float | None:
        """Corrected for all comparisons."""
        return self.paired.corrected

    @property
    def shown(self) -> bool:
        """Whether it differs by more than chance."""
        return self.paired.significant


def versus(
    found: Outcomes, grid: Grid, metric: str, groups: Mapping[str, Sequence[str]]
) -> dict[tuple[str, str], list[Versus]]:
    """(group, factor) → its values against the base; p (Holm) and interval (Bonferroni) count all that are returned."""
    raw: list[tuple[tuple[str, str], Any, dict[str, float | None], dict[str, float | None]]] = []
    clusters: dict[str, str] = {}
    for group, tasks in groups.items():
        for factor, values in grid.values.items():
            for value, config in values.items():
                if config != grid.base:
                    a: dict[str, float | None] = {}
                    b: dict[str, float | None] = {}
                    for name in tasks:
                        base, other = (
                            found.of(grid.base, TASKS[name]),
                            found.of(config, TASKS[name]),
                        )
                        if base and other:
                            clusters |= {
                                f"{name} {qid}": f"{name} {number}"
                                for qid, number in base.clusters.items()
                            }
                            a |= {
                                f"{name} {qid}": one
                                for qid, one in base.values.get(metric, {}).items()
                            }
                            b |= {
                                f"{name} {qid}": one
                                for qid, one in other.values.get(metric, {}).items()
                            }
                    if shared_scores(a, b):
                        raw.append(((group, factor), value, a, b))
    pairs = with_holm(
        [compare(metric, a, b, clusters=clusters, comparisons=len(raw)) for _, _, a, b in raw]
    )
    out: dict[tuple[str, str], list[Versus]] = {}
    for (place, value, _, _), pair in zip(raw, pairs):
        out.setdefault(place, []).append(Versus(value, pair))
    return out


def recommended(
    factor: Factor, base: Any, values: Sequence[Any], found: Sequence[Versus]
) -> tuple[str, Any]:
    """(what is recommended of a factor, in words; the value, None where no difference is shown).

    The best of the values that are shown to be better than the base; the base where others are only shown to be worse.
    """
    shown = [one for one in found if one.shown]
    better = [one for one in shown if (one.paired.difference or 0) > 0]
    if better:
        best = max(better, key=lambda one: one.paired.difference or 0)
        return f"{word(factor, best.value, values)}, {_gap(best)}", best.value
    if shown:
        worse = ", ".join(f"{one.value} {_gap(one)}" for one in shown)
        return f"{word(factor, base, values)} (as the base; worse: {worse})", base
    return (TOO_FEW if found and all(one.p is None for one in found) else NONE_SHOWN), None


def word(factor: Factor, value: Any, values: Sequence[Any]) -> str:
    """A value as the paper says it: where it stands among those that were tried.

    >>> [word(FACTORS["chunk"], size, (64, 128, 256, 512)) for size in (64, 128, 512)]
    ['smaller (64)', 'moderate (128)', 'larger (512)']
    """
    if not factor.ordered:
        return str(value)
    place, last = sorted(values).index(value), len(values) - 1
    side = "smaller" if 3 * place < last else "larger" if 3 * place > 2 * last else "moderate"
    return f"{side} ({value})"


def _gap(one: Versus) -> str:
    """The difference to the base with its interval, in points of 100."""
    paired = one.paired
    assert paired.difference is not None
    if paired.low is None or paired.high is None:
        return f"{100 * paired.difference:+.2f} ({paired.note})"
    return f"{100 * paired.difference:+.2f} [{100 * paired.low:.2f}, {100 * paired.high:.2f}]"


def table_of(found: Outcomes, grid: Grid, metric: str, heading: str) -> Table:
    """A row per scenario as this grid has it, and below it the paper's."""
    groups = {
        name: tasks
        for name, tasks in SCENARIOS.items()
        if any(one.task.name in tasks for one in found.ran)
    }
    all_of = {metric: versus(found, grid, metric, groups)}
    measured = {name for one in found.ran for name in one.means}
    all_of |= {
        name: versus(found, grid, name, groups)
        for name in ASIDE
        if name != metric and name in measured
    }
    rows: list[tuple[Any, ...]] = []
    for group in groups:
        rows.append((group, *(_cell(grid, group, name, metric, all_of) for name in COLUMNS)))
        printed = papers_row(group)
        rows.append((f"{group} · paper", *(printed.get(name) for name in COLUMNS)))
    tried = len([one for row in all_of[metric].values() for one in row])
    note = (
        f"By {heading}, each value against the base on the questions that both answered: sign-flip test, p < {LEVEL} "
        f"corrected for {tried} comparisons (Holm); differences in points of 100 with intervals that hold together at 95 % (Bonferroni). "
        "The paper tested nothing. "
    )
    note += (
        f"Of top-k a larger one can only find more, so nothing is recommended for it by {heading}. "
        * (metric in GROWING)
        + _doubts()
    )
    return Table(
        "Recommendations (CRUD-RAG's Table 9)",
        ("scenario", *(FACTORS[name].heading for name in COLUMNS)),
        tuple(rows),
        note=note,
    )


def papers_row(scenario: str) -> dict[str, str]:
    """Factor → what the paper recommends in a scenario, in its words."""
    values = published_table("crud_table9").row(task=PRINTED[scenario]).values
    return {name: values[column] for name, column in HEADS.items()}


def _doubts() -> str:
    """Where the paper's recommendations and its measurements differ."""
    sizes = published_table("crud_table3")
    small, large = (
        sizes.row(f"chunk_size={size}", task=TASKS["hallucination"].printed).values["bleu"]
        for size in (64, 512)
    )
    return (
        "For Update the paper's table recommends larger chunks, while its own measurements and text say that smaller ones are "
        f"better (BLEU {small:.2f} with chunks of 64, {large:.2f} with 512); for Delete its measurements show the reverse of what the "
        "table says of recall and precision."
    )


def _cell(
    grid: Grid,
    group: str,
    name: str,
    metric: str,
    all_of: Mapping[str, Mapping[tuple[str, str], Sequence[Versus]]],
) -> str | None:
    """What is said of a factor in a scenario; None where nothing was compared."""
    compared = all_of[metric].get((group, name))
    if not compared or (name == "topk" and metric in GROWING):
        return None
    factor, base = FACTORS[name], getattr(grid.base, FACTORS[name].field)
    values = list(grid.values[name])
    said, chosen = recommended(factor, base, values, compared)
    aside = []
    for other, called in ASIDE.items():
        if other in all_of and (group, name) in all_of[other]:
            own, value = recommended(factor, base, values, all_of[other][group, name])
            if value is not None and value != chosen:
                aside.append(f"{own} for {called}")
    return "; ".join([said, *aside])
