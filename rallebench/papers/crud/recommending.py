"""CRUD-RAG's recommendations (its Table 9) from a grid; a value is recommended only for a significant difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rallebench.analysis.paired import Sides, compare_all
from rallebench.core.comparison import PairedComparison
from rallebench.core.tables import Table
from rallebench.experiments.benchmarks import published_table
from rallebench.experiments.common import score_bounds
from rallebench.papers.crud.cells import Cell
from rallebench.papers.crud.configurations import Config
from rallebench.papers.crud.factors import FACTORS, GridFactor
from rallebench.papers.crud.grid_cells import Outcomes

LEVEL = 0.05
"""Significance level for corrected p-values."""
NONE_SHOWN = "no difference shown"
SCENARIOS: Mapping[str, tuple[str, ...]] = {
    "Create": ("creative generation", "continuation"),
    "Delete": ("summarization", "summary"),
    "Read, 1 document": ("single-document QA", "qa1"),
    "Read, several documents": ("multi-document QA", "qa2", "qa3"),
    "Update": ("error correction", "hallucination"),
}
"""Scenario in our words → (its name in the paper's table, the tasks that represent it)."""
PAPERS_COLUMNS: Mapping[str, str] = {
    "topk": "top-k",
    "chunk": "chunk_size",
    "overlap": "chunk_overlap",
    "retriever": "retriever",
    "llm": "llm",
}
"""Factor → its column in the paper's table."""
COLUMNS = (*PAPERS_COLUMNS, "embedding")
GROWING = ("mrr", "gold_found")
"""Metrics that cannot decrease as top-k grows."""
ASIDE = {"QA_avg_F1": "precision", "QA_recall": "recall"}
"""Metrics with separate recommendations, as in the paper."""


Versus = dict[Any, PairedComparison]
"""A factor's value → its comparison with the base, over the questions scored in both."""


def versus(
    outcomes: Outcomes, metric: str, groups: Mapping[str, Sequence[str]]
) -> dict[tuple[str, str], Versus]:
    """(group, factor) → its values compared with the base. The p-values (Holm) and intervals (Bonferroni) are corrected for
    all returned comparisons."""
    sides = {
        (group, factor, value): _sides(outcomes, config, tasks, metric)
        for group, tasks in groups.items()
        for factor, values in outcomes.grid.values.items()
        for value, config in values.items()
        if config != outcomes.grid.base
    }
    compared: dict[tuple[str, str], Versus] = {}
    for (group, factor, value), pair in compare_all(sides, score_bounds((metric,))).items():
        compared.setdefault((group, factor), {})[value] = pair
    return compared


def _sides(outcomes: Outcomes, config: Config, tasks: Sequence[str], metric: str) -> Sides:
    """The scores of the base and of a configuration over several tasks."""
    base: dict[str, float | None] = {}
    changed: dict[str, float | None] = {}
    clusters: dict[str, str] = {}
    for name in tasks:
        cells = [outcomes.ran.get((side, name)) for side in (outcomes.grid.base, config)]
        if cells[0] and cells[1]:
            clusters |= {f"{name} {q}": f"{name} {n}" for q, n in cells[0].clusters.items()}
            base |= _scores(cells[0], metric)
            changed |= _scores(cells[1], metric)
    return metric, base, changed, clusters


def _scores(cell: Cell, metric: str) -> dict[str, float | None]:
    """(task, question) → score."""
    scores = cell.answered.values.get(metric, {})
    return {f"{cell.plan.task.name} {qid}": score for qid, score in scores.items()}


def recommend(
    factor: GridFactor, base: Any, values: Sequence[Any], compared: Versus
) -> tuple[str, Any]:
    """(the recommendation for a factor in words, its value, or None without a significant difference).

    The best value that is significantly better than the base; the base itself if values are only significantly worse.
    """
    gaps = {value: pair.difference or 0.0 for value, pair in compared.items() if pair.significant}
    best = max(gaps, key=lambda value: gaps[value], default=None)
    if best is not None and gaps[best] > 0:
        return f"{word(factor, best, values)}, {_gap(compared[best])}", best
    if gaps:
        worse = ", ".join(f"{value} {_gap(compared[value])}" for value in gaps)
        return f"{word(factor, base, values)} (as the base; worse: {worse})", base
    notes = [pair.note for pair in compared.values() if pair.corrected is None]
    return (notes[0] if notes and len(notes) == len(compared) else NONE_SHOWN), None


def word(factor: GridFactor, value: Any, values: Sequence[Any]) -> str:
    """The paper's word for a value, by its rank among the grid's values.

    >>> [word(FACTORS["chunk"], size, (64, 128, 256, 512)) for size in (64, 128, 512)]
    ['smaller (64)', 'moderate (128)', 'larger (512)']
    """
    if not factor.ordered:
        return str(value)
    place, last = sorted(values).index(value), len(values) - 1
    side = "smaller" if 3 * place < last else "larger" if 3 * place > 2 * last else "moderate"
    return f"{side} ({value})"


def _gap(paired: PairedComparison) -> str:
    """The difference from the base with its interval, in points of 100."""
    assert paired.difference is not None
    interval = f"({paired.note})"
    if paired.low is not None and paired.high is not None:
        interval = f"[{100 * paired.low:.2f}, {100 * paired.high:.2f}]"
    return f"{100 * paired.difference:+.2f} {interval}"


def recommendation_table(outcomes: Outcomes, heading: str) -> Table:
    """One row per scenario: this grid's recommendation, then the paper's. ``heading``: the label of the ranking metric."""
    metric = outcomes.metric
    ran = {task for _, task in outcomes.ran}
    groups = {name: tasks for name, (_, *tasks) in SCENARIOS.items() if ran.intersection(tasks)}
    measured = {name for cell in outcomes.ran.values() for name in cell.answered.means}
    compared = {
        name: versus(outcomes, name, groups)
        for name in (metric, *ASIDE)
        if name == metric or name in measured
    }
    rows: list[tuple[Any, ...]] = []
    for group in groups:
        rows.append((group, *(_cell(outcomes, group, name, compared) for name in COLUMNS)))
        printed = papers_row(group)
        rows.append((f"{group} · paper", *(printed.get(name) for name in COLUMNS)))
    tried = sum(map(len, compared[metric].values()))
    note = (
        f"By {heading}, each value against the base on the questions that both answered: one test over articles, p < {LEVEL} "
        f"corrected for {tried} comparisons (Holm); differences in points of 100 with intervals that hold together at 95 % (Bonferroni). "
        "The paper tested nothing. "
    )
    if metric in GROWING:
        note += f"Of top-k a larger one can only find more, so nothing is recommended for it by {heading}. "
    doubts = "; ".join(published_table("crud_table3").doubts)
    return Table(
        "Recommendations (CRUD-RAG's Table 9)",
        ("scenario", *(FACTORS[name].heading for name in COLUMNS)),
        tuple(rows),
        note=f"{note}The paper's own measurements (Table 3) do not agree with it: {doubts}.",
    )


def papers_row(scenario: str) -> dict[str, str]:
    """Factor → the paper's recommendation for a scenario, in its own words."""
    values = published_table("crud_table9").row(task=SCENARIOS[scenario][0]).values
    return {name: values[column] for name, column in PAPERS_COLUMNS.items()}


def _cell(
    outcomes: Outcomes,
    group: str,
    name: str,
    compared: Mapping[str, Mapping[tuple[str, str], Versus]],
) -> str | None:
    """The recommendation for a factor in a scenario; None without a comparison."""
    grid, metric, place, factor = outcomes.grid, outcomes.metric, (group, name), FACTORS[name]
    if not compared[metric].get(place) or (name == "topk" and metric in GROWING):
        return None
    base, values = getattr(grid.base, name), list(grid.values[name])
    text, chosen = recommend(factor, base, values, compared[metric][place])
    parts = [text]
    for other, noun in ASIDE.items():
        if place in compared.get(other, {}):
            text, value = recommend(factor, base, values, compared[other][place])
            if value is not None and value != chosen:
                parts.append(f"{text} for {noun}")
    return "; ".join(parts)
