"""The figures of a run in MLflow: at most 20 headline metrics, and one table with all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from rallebench.core.costs import Cost
from rallebench.core.json_values import JsonValue
from rallebench.core.numbers import price
from rallebench.core.repeats import RepeatReport
from rallebench.core.report import RunReport
from rallebench.core.waterfall import Waterfall
from rallebench.engine.headline import deciding_metric, deepest
from rallebench.tracking.content import MlflowTable, safe_key

Figures = Mapping[str, float | None]

_Row = tuple["str | float | None", ...]

MOST_MEANS = 10
"""Maximum means among the headline metrics; with counts, times, tokens, dollars and an interval there are 20."""

PREFERRED = (
    "em",
    "f1",
    "accuracy",
    "rougel",
    "has_answer",
    "KILT-f1",
    "Rprec",
    "recall@5",
    "answer_in_context@5",
)
"""Headline metrics of a run with the usual metrics, in order."""

COLUMNS = ("metric", "value", "low", "high", "n", "kind")
"""Columns of the table. ``low``, ``high``: the 95 % interval of a mean over ``n`` questions."""

_SPREAD = ("mean", "median", "p95", "n")
_COUNTS = ("n", "n_done", "n_errors", "steps", "steps_from_memory")
_TOTALS = ("seconds", "prompt_tokens", "completion_tokens")
_COST_PARTS = (
    "seconds",
    "retrieval_seconds",
    "generation_seconds",
    "failed_seconds",
    "model_calls",
    "retrievals",
    "prompt_tokens",
    "completion_tokens",
    "tokens_per_second",
    "usd",
)


def headlines(report: RunReport) -> dict[str, float]:
    """Return the metrics that MLflow lists and draws, at most 20: means, counts, time, tokens, dollars if known, and the
    interval of the deciding metric.

    MLflow does not allow ``@``, so ``recall@5`` becomes ``recall_at_5`` (RaLLe's own name for it).
    """
    means = report.estimates
    scored = [name for name, mean in means.items() if mean.value is not None]
    deciding = report.headline or deciding_metric(scored) or deciding_metric(means)
    cut_offs = ("ndcg",) if "recall@5" in scored else ("ndcg", "recall")
    usual = [deciding, *report.own, *PREFERRED, *(deepest(scored, name) for name in cut_offs)]
    names = [name for name in dict.fromkeys([*usual, *scored]) if name in scored][:MOST_MEANS]
    values: dict[str, float | None] = {safe_key(name): means[name].value for name in names}
    values |= {"n": report.n, "n_errors": report.n_errors}
    values |= {"sec per query": report.seconds_per_question}
    values |= {f"total_{key}": getattr(report, key) for key in _TOTALS}
    values["cost_total_usd"] = report.cost.total.usd if report.cost else None
    if mean := means.get(deciding):
        key = safe_key(deciding)
        values |= {f"{key}_low": mean.low, f"{key}_high": mean.high, f"{key}_n": mean.n}
    return {
        key: round_digits(value)
        for key, value in values.items()
        if value is not None and math.isfinite(value)
    }


def round_digits(value: float) -> float:
    """Round to five significant digits, because MLflow's pages show every digit; whole numbers stay exact.

    >>> round_digits(0.46666666666666667), round_digits(39102), round_digits(1234.5678)
    (0.46667, 39102.0, 1234.6)
    """
    return float(value) if value == int(value) else float(f"{value:.5g}")


def metrics_table(report: RunReport, waterfall: Waterfall | None) -> MlflowTable:
    """Return every figure of a run: scores with their intervals, counts, costs, and the questions lost at each stage."""
    rows: list[_Row] = [
        (name, mean.value, mean.low, mean.high, mean.n, "score")
        for name, mean in report.estimates.items()
    ]
    rows += [
        (result.column.name, result.corpus_level, None, None, result.estimate.n, "over all answers")
        for result in report.columns
        if result.corpus_level is not None
    ]
    groups: dict[str, Figures] = {
        "count": counts(report),
        "cost": cost_figures(report.cost) if report.cost else {},
        "questions by stage": _stages(waterfall) if waterfall else {},
        "repeats": dict(_repeats(report.repeats)) if report.repeats else {},
    }
    rows += [
        (name, value, None, None, None, kind)
        for kind, figures in groups.items()
        for name, value in figures.items()
        if value is not None
    ]
    return MlflowTable(COLUMNS, tuple((name, *map(_cell, rest)) for name, *rest in rows))


def _cell(value: float | str | None) -> JsonValue:
    return round_digits(value) if isinstance(value, float) and math.isfinite(value) else value


def _stages(waterfall: Waterfall) -> Figures:
    known = {"waterfall_corpus_known": float(waterfall.corpus_known)}
    return {f"waterfall_{stage}": n for stage, n in waterfall.counts().items()} | known


def _repeats(report: RepeatReport) -> Iterator[tuple[str, float | None]]:
    yield "repeats", float(report.number)
    for name, metric in report.metrics.items():
        yield f"{name}_between_questions", metric.between_questions
        yield f"{name}_between_repeats", metric.between_repeats
        yield f"{name}_unstable", metric.unstable
        for k, (at, every) in enumerate(zip(metric.pass_at, metric.pass_all), 1):
            yield f"{name}_pass@{k}", at
            yield f"{name}_pass^{k}", every


def counts(report: RunReport) -> Figures:
    """Return the counts and totals of a run."""
    clusters = report.clusters
    return {
        **{key: getattr(report, key) for key in _COUNTS},
        **{f"total_{key}": getattr(report, key) for key in _TOTALS},
        "clusters": clusters.n if clusters else None,
        "largest_cluster": clusters.largest if clusters else None,
        "sec per query": report.seconds_per_question,
        "memory_bytes": report.memory.bytes if report.memory else None,
    }


def cost_figures(cost: Cost) -> Figures:
    """Return ``cost_total_…``, ``cost_failed_…``, ``cost_asked_…`` and ``cost_question_…_mean`` (``_median``,
    ``_p95``, ``_n``).

    Unknown values are None. If only some prices are known, the known dollars are summed in ``…_usd_known``.
    """
    return dict(_costs(cost))


def _costs(cost: Cost) -> Iterator[tuple[str, float | None]]:
    groups = {"total": cost.total, "failed": cost.failed, "asked": cost.uncached}
    for group, sums in groups.items():
        yield from ((f"cost_{group}_{part}", getattr(sums, part)) for part in _COST_PARTS)
        yield f"cost_{group}_usd_known", sums.usd_known or None
    for name, spread in cost.per_question.items():
        yield from ((f"cost_question_{name}_{key}", getattr(spread, key)) for key in _SPREAD)


def cost_tags(cost: Cost | None) -> dict[str, str]:
    """Describe the dollars of a run in words, because a missing metric could be mistaken for zero cost."""
    return {"rallebench.cost.usd": price(cost.total)} if cost else {}
