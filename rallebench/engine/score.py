"""Stored episodes × gold → scores → report. A second pass: a new metric never asks a model again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.files import json_lines, write_text
from rallebench.core.own_files import checked, reading
from rallebench.core.runs import NO_RATES, Rates, Values
from rallebench.core.tables import Mean
from rallebench.core.types import Chain, Episode, Example, Question, Score
from rallebench.datasets.kilt import read_gold, record_id
from rallebench.engine.clusters import (
    TIMED_UNITS,
    Clusters,
    Timing,
    clusters_of,
    timed_clusters,
    timings_of,
)
from rallebench.engine.cost import not_recorded, question_to_json, recorded_prices, run_cost
from rallebench.engine.headline import deciding_metric, default_metrics, is_graded
from rallebench.engine.run_shapes import REPORT_MEND, StoredCosts
from rallebench.engine.statistics import means
from rallebench.engine.store import COSTS, SCORES, Answers, RunFolder
from rallebench.metrics import METRICS, metric
from rallebench.metrics.columns import ScoreSeries, columns
from rallebench.metrics.recorded import IMPORTED

DEFAULT_METRICS = (
    "accuracy",
    "em",
    "f1",
    "rougel",
    "has_answer",
    "has_answer_all",
    "KILT-accuracy",
    "KILT-em",
    "KILT-f1",
    "KILT-rougel",
    "KILT-has_answer",
    "KILT-has_answer_all",
    "Rprec",
    "recall@1",
    "recall@5",
    "recall@10",
    "success_rate@1",
    "success_rate@5",
    "precision@1",
    "precision@5",
    "answer_in_context@5",
    "seconds",
    "prompt_tokens",
    "completion_tokens",
)


def has_gold(examples: Iterable[Example]) -> dict[str, int]:
    """The number of examples with ``answers``, and with ``provenance``, which metrics need."""
    count = Counter[str]()
    for example in examples:
        count["answers"] += bool(example.gold.answers)
        count["provenance"] += any(example.gold.provenance)
    return {"answers": count["answers"], "provenance": count["provenance"]}


def choose_metrics(
    names: Sequence[str] | None,
    examples: Sequence[Example],
    dataset: str,
    chain: Chain | None = None,
) -> tuple[str, ...]:
    """The metrics to compute: those asked for, or the defaults of the ``chain`` that the gold allows.

    Raises UsageError before a run for a metric whose gold is absent from the whole dataset.
    """
    have = has_gold(examples)
    if not names:
        usual = default_metrics(DEFAULT_METRICS, chain)
        return tuple(name for name in usual if all(have[need] for need in _needs(name)))
    for name in names:
        for need in _needs(name):
            if not have[need]:
                raise UsageError(
                    f"{name} needs {need}; {dataset} has none. Drop that metric or choose another dataset."
                )
    return tuple(dict.fromkeys(metric(name).name for name in names))


def _needs(name: str) -> tuple[str, ...]:
    needs = metric(name).traits.get("needs", "")
    return tuple(part for part in needs.split("+") if part)


def metrics_of(folder: RunFolder) -> tuple[str, ...]:
    """The metrics of a run that its answers and its gold give; a judge's scores are only in ``scores.jsonl``."""
    return tuple(name for name in folder.spec()["metrics"] if not METRICS.is_judge(name))


def score_episode(episode: Episode, example: Example, names: Sequence[str]) -> list[Score]:
    """One Score per metric; a failed question is not scored, and says why."""
    return _scores_of([(example, episode)], columns(names, [(episode, example.gold)]))


def _scores_of(
    answered: Sequence[tuple[Example, Episode]], scored: Mapping[str, ScoreSeries]
) -> list[Score]:
    return [
        Score(episode.qid, name, series.values[row], series.notes[row] or _lacking(name, example))
        for row, (example, episode) in enumerate(answered)
        for name, series in scored.items()
    ]


def _lacking(name: str, example: Example) -> str:
    """The gold that a metric misses in a question; KILT's own metrics give 0 there."""
    missing = [need for need in _needs(name) if not getattr(example.gold, need)]
    return f"no gold {' or '.join(missing)}" if missing else ""


def examples_of(folder: RunFolder) -> list[Example]:
    """The questions of a run with their gold, in order."""
    return [example_of(record, folder.questions_file) for record in folder.records()]


def example_of(record: Mapping[str, Any], where: object) -> Example:
    """The question of a run's record with its gold; ``where``: the file that an error names."""
    question = Question(record_id(record, str(where)), record["input"])
    return Example(question, read_gold(record, str(where)), record)


def examples_of_runs(runs: Sequence[RunFolder]) -> list[list[Example]]:
    """``examples_of`` of each run; runs with the same file of questions share one list."""
    digests = [run.questions_sha256() for run in runs]
    lists = {digest: examples_of(run) for digest, run in dict(zip(digests, runs)).items()}
    return [lists[digest] for digest in digests]


def report_of(
    folder: RunFolder, examples: Sequence[Example], answers: Answers, names: Sequence[str]
) -> tuple[dict[str, Any], list[Score]]:
    """The report of what is answered so far, and the scores behind it."""
    episodes = answers.episodes
    answered = [example for example in examples if example.question.qid in episodes]
    both = [(example, episodes[example.question.qid]) for example in answered]
    scored = columns(names, [(episode, example.gold) for example, episode in both])
    intervals = _intervals(scored, clusters_of(examples), both)
    failed = Counter(e.error for e in episodes.values() if e.error)
    steps = [step for episode in episodes.values() for step in episode.steps]
    seconds = answers.seconds
    n_done = len(answered)
    spec = folder.spec()
    cost = _cost(spec, answers)
    report = {
        "run": folder.name,
        "dataset": spec["spec"]["dataset"],
        "workflow": spec["spec"]["workflow"],
        "fingerprint": spec["fingerprint"],
        "n": len(examples),
        "n_done": n_done,
        "n_errors": sum(failed.values()),
        "complete": n_done == len(examples),
        "seconds": round(seconds, 3),
        "seconds_per_question": cost["per_question"]["seconds"]["mean"],
        "steps": len(steps),
        "steps_from_memory": sum(step.cached for step in steps),
        "prompt_tokens": sum(step.reply.prompt_tokens for step in steps),
        "completion_tokens": sum(step.reply.completion_tokens for step in steps),
        "metrics": {name: asdict(mean) for name, mean in intervals.items()},
        "clusters": clusters_of(answered).as_json(),
        "over_all": {
            name: column.over_all for name, column in scored.items() if column.over_all is not None
        },
        "cost": cost,
        "memory": memory_of(spec),
        "errors": dict(failed.most_common(20)),
    }
    scored_names = [name for name, mean in intervals.items() if mean.n]
    decided = deciding_metric(scored_names, graded=is_graded(examples))
    if decided != deciding_metric(scored_names):
        report["headline"] = decided
    if not_scored := _not_scored(scored):
        report["not_scored"] = not_scored
    if spec["spec"]["workflow"] == IMPORTED:
        report |= dict.fromkeys(("seconds_per_question", "prompt_tokens", "completion_tokens"))
    return report, _scores_of(both, scored)


def _intervals(
    scored: Mapping[str, ScoreSeries],
    clusters: Clusters,
    answered: Sequence[tuple[Example, Episode]],
) -> dict[str, Mean]:
    """Metric → mean; the units of times are batches, those of all else articles."""
    qids = [example.question.qid for example, _ in answered]
    ranges = ranges_of(scored)
    intervals: dict[str, Mean] = {}
    timings = {episode.qid: timings_of(episode) for _, episode in answered}
    batches = timed_clusters(clusters, [timings])
    for units, timed in ((clusters, False), (batches, True)):
        values = {n: series.values for n, series in scored.items() if is_timed(n) == timed}
        intervals |= means(values, units.labels(qids), ranges)
    return {name: intervals[name] for name in scored}


def is_timed(name: str) -> bool:
    """Return whether a registered metric is measured batch by batch."""
    base = name.partition(":")[0].partition("@")[0]
    return base in METRICS and METRICS.entry(base).traits.get("unit") in TIMED_UNITS


def _not_scored(scored: Mapping[str, ScoreSeries]) -> dict[str, str]:
    """Metric → its most frequent reason, of the metrics that no question is scored by."""
    reasons: dict[str, str] = {}
    for name, series in scored.items():
        if series.notes and all(value is None for value in series.values):
            ((reason, _),) = Counter(series.notes).most_common(1)
            reasons[name] = reason.removeprefix("not scored: ").rstrip(".")
    return reasons


def rate_values(
    rates: Rates, examples: Iterable[Example], episodes: Mapping[str, Episode]
) -> dict[str, dict[str, float | None]]:
    """Metric → question id → value, of the questions that were answered, in the order asked."""
    rows = {
        example.question.qid: rates.score(example, episode)
        for example in examples
        if (episode := episodes.get(example.question.qid)) is not None and not episode.error
    }
    return {name: {qid: row.get(name) for qid, row in rows.items()} for name in rates.columns}


def rate_means(
    rates: Rates, examples: Sequence[Example], values: Mapping[str, Values]
) -> dict[str, Mean]:
    """Metric → mean, all metrics over the same questions and by the articles of ``examples``."""
    qids = list(next(iter(values.values()), {}))
    labels = clusters_of(examples).labels(qids)
    columns = {name: list(column.values()) for name, column in values.items()}
    return means(columns, labels, rates.ranges)


def ranges_of(names: Iterable[str]) -> dict[str, Any]:
    """Metric → (lowest, highest) value, None = no bound, for the intervals of means."""
    return {name: metric(name).traits.get("range", (None, None)) for name in names}


def memory_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The memory of a run's models and indexes at their load: ``bytes`` of all, None unless every one is known, and
    ``unknown``, the names of those that are not.

    >>> memory_of({"memory": {"a": {"ram": 3, "vram": 4}, "b": None}})
    {'bytes': None, 'unknown': ['b']}
    >>> memory_of({})
    {'bytes': None, 'unknown': []}
    """
    held = spec.get("memory") or {}
    unknown = [name for name, size in held.items() if size is None]
    known = sum(size["ram"] + size["vram"] for size in held.values() if size is not None)
    return {"bytes": known if known and not unknown else None, "unknown": unknown}


def _cost(spec: Mapping[str, Any], answers: Answers) -> dict[str, Any]:
    if spec["spec"]["workflow"] == IMPORTED:
        return not_recorded(len(answers.episodes))
    return run_cost(
        list(answers.episodes.values()),
        answers.earlier,
        recorded_prices(spec),
        spec.get("asks_models") or (),
    )


def score_run(
    folder: RunFolder,
    names: Sequence[str],
    rates: Rates = NO_RATES,
    own_examples: Sequence[Example] = (),
    more: Mapping[str, Any] | None = None,
    answers: Answers | None = None,
) -> dict[str, Any]:
    """Score what is stored, write ``scores.jsonl``, ``costs.jsonl`` and ``report.json``, return the report.

    The means of an experiment's own ``rates`` stand in the report under ``suite``, their meaning under ``definitions``. They
    are computed on ``own_examples``, whose gold may hold more than the records. ``more``: further keys of the report.
    ``answers``: those of the folder, where the caller has read them.
    """
    answers = answers or folder.answers()
    episodes = answers.episodes
    report, scores = report_of(folder, examples_of(folder), answers, names)
    report |= more or {}
    if rates.columns:
        values = rate_values(rates, own_examples, episodes)
        report |= {
            "suite": {
                name: asdict(mean) for name, mean in rate_means(rates, own_examples, values).items()
            },
            "definitions": dict(rates.columns),
            "ranges": dict(rates.ranges),
        }
        scores += [
            Score(qid, name, value)
            for name, column in values.items()
            if name not in names
            for qid, value in column.items()
        ]
    prices = recorded_prices(folder.spec())
    write_text(
        folder.path / SCORES,
        json_lines(
            {"qid": s.qid, "metric": s.metric, "value": s.value}
            | ({"note": s.note} if s.note else {})
            for s in scores
        ),
    )
    known = (e for e in episodes.values() if e.workflow != IMPORTED)
    write_text(folder.path / COSTS, json_lines(question_to_json(e, prices) for e in known))
    folder.write_report(report)
    return report


def stored_timings(folder: RunFolder) -> dict[str, list[Timing]]:
    """Question id → the measured times that it shares with others of its batch, as ``costs.jsonl`` has them; {} before the
    first scoring and for predictions of another program. Raises BadFileError."""
    path = folder.path / COSTS
    try:
        raw = path.read_bytes().splitlines()
    except FileNotFoundError:
        return {}
    with reading(path, REPORT_MEND):
        lines = [checked(json.loads(line), StoredCosts, path, REPORT_MEND) for line in raw]
        return {
            line["qid"]: [
                (step["kind"], float(step["seconds"]), step["batch"])
                for step in line["steps"]
                if step.get("batch", 1) > 1
            ]
            for line in lines
        }


def cost_of(folder: RunFolder) -> dict[str, Any]:
    """The cost of a run so far: from its report, or counted now where it has none. Raises BadFileError for a damaged run."""
    report = folder.report() or {}
    return report.get("cost") or _cost(folder.spec(), folder.answers())
