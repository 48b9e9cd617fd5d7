"""Stored episodes × gold → scores → report. A second pass: a new metric never asks a model again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rallebench.bench.statistics import means
from rallebench.bench.store import REPORT, SCORES, RunFolder
from rallebench.datasets.kilt import read_gold, record_id
from rallebench.errors import UsageError
from rallebench.files import write_json, write_text
from rallebench.metrics import metric
from rallebench.types import Episode, Example, Question, Score

DEFAULT_METRICS = (
    "accuracy", "em", "f1", "rougel", "has_answer", "has_answer_all",
    "KILT-accuracy", "KILT-em", "KILT-f1", "KILT-rougel", "KILT-has_answer", "KILT-has_answer_all",
    "Rprec", "recall@1", "recall@5", "recall@10", "success_rate@1", "success_rate@5", "precision@1", "precision@5",
    "answer_in_context@5", "seconds", "prompt_tokens", "completion_tokens",
)  # fmt: skip


def has_gold(examples: Iterable[Example]) -> dict[str, int]:
    """How many examples hold what metrics need: ``answers``, ``provenance``."""
    count = Counter[str]()
    for example in examples:
        count["answers"] += bool(example.gold.answers)
        count["provenance"] += any(example.gold.provenance)
    return {"answers": count["answers"], "provenance": count["provenance"]}


def choose_metrics(asked: Sequence[str] | None, examples: Sequence[Example], dataset: str) -> tuple[str, ...]:
    """The metrics to compute: those asked for, or all that the gold allows.

    Raises UsageError before a run for a metric whose gold is absent from the whole dataset.
    """
    have = has_gold(examples)
    if not asked:
        return tuple(name for name in DEFAULT_METRICS if all(have[need] for need in _needs(name)))
    for name in asked:
        for need in _needs(name):
            if not have[need]:
                raise UsageError(
                    f"{name} needs {need}; {dataset} has none. Drop that metric or choose another question set."
                )
    return tuple(dict.fromkeys(metric(name).name for name in asked))


def _needs(name: str) -> tuple[str, ...]:
    needs = metric(name).traits.get("needs", "")
    return tuple(part for part in needs.split("+") if part)


def score_episode(episode: Episode, example: Example, names: Sequence[str]) -> list[Score]:
    """One Score per metric; a failed question is not scored, and says why."""
    if episode.error:
        return [Score(episode.qid, name, None, episode.error) for name in names]
    scores = []
    for name in names:
        missing = [need for need in _needs(name) if not getattr(example.gold, need)]
        value = metric(name).value(episode, example.gold)
        scores.append(Score(episode.qid, name, value, f"no gold {' or '.join(missing)}" if missing else ""))
    return scores


def examples_of(folder: RunFolder) -> list[Example]:
    """The questions of a run with their gold, in order."""
    where = f"{folder.path}/questions.jsonl"
    return [
        Example(Question(record_id(r, where), r["input"]), read_gold(r, where), r) for r in folder.records()
    ]


def report_of(
    folder: RunFolder, examples: Sequence[Example], episodes: Mapping[str, Episode], names: Sequence[str]
) -> tuple[dict[str, Any], list[Score]]:
    """The report of what is answered so far, and the scores behind it."""
    answered = [example for example in examples if example.question.qid in episodes]
    scores: list[Score] = []
    columns: dict[str, list[float | None]] = {name: [] for name in names}
    for example in answered:
        for score in score_episode(episodes[example.question.qid], example, names):
            columns[score.metric].append(score.value)
            scores.append(score)
    found = means(columns)
    failed = Counter(e.error for e in episodes.values() if e.error)
    steps = [step for episode in episodes.values() for step in episode.steps]
    seconds = folder.seconds()
    n_done = len(answered)
    spec = folder.spec()
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
        "seconds_per_question": seconds / n_done if n_done else None,
        "steps": len(steps),
        "steps_from_memory": sum(step.cached for step in steps),
        "prompt_tokens": sum(step.reply.prompt_tokens for step in steps),
        "completion_tokens": sum(step.reply.completion_tokens for step in steps),
        "metrics": {name: asdict(mean) for name, mean in found.items()},
        "errors": dict(failed.most_common(20)),
    }
    return report, scores


def score_run(folder: RunFolder, names: Sequence[str]) -> dict[str, Any]:
    """Score what is stored, write ``scores.jsonl`` and ``report.json``, return the report."""
    examples = examples_of(folder)
    report, scores = report_of(folder, examples, folder.episodes(), names)
    write_text(
        folder.path / SCORES,
        "".join(
            json.dumps({k: v for k, v in asdict(s).items() if v != ""}, ensure_ascii=False) + "\n"
            for s in scores
        ),
    )
    write_json(folder.path / REPORT, report)
    return report
