"""``score --suite reval``: logs written by R-Eval's code, or by any other program in the same form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rallebench.analysis.agents.errors import CLASSES, ORIGINAL, classify
from rallebench.analysis.agents.logs import NOT_FOUND, log_episode, log_example, named_by, read_rows
from rallebench.analysis.agents.reading import SCORED, summarize
from rallebench.core.types import Gold
from rallebench.datasets.reading import answerable_questions
from rallebench.experiments.common import sentences
from rallebench.experiments.scorers import SCORERS
from rallebench.metrics import read_card
from rallebench.papers.common import check_file, gold_notes, metric_means, not_in_gold

CLOSE = 1e-6

Key = tuple[str, str]
"""(question, answer in the row)."""


@SCORERS.register("reval")
def score_reval(guess: Path, gold: Path | None = None) -> dict[str, Any]:
    """Score R-Eval's log (question, answer, prediction, reward, halted, error, scratchpad …) again.

    Answers come from the records in ``gold`` (input, outputs), or else from each row's ``answer``. ``rewards_differ``: number
    of rows with rewards that differ from ours. ``errors``: R-Eval's error classes, counted as in its code and as in this
    project. ``environment_failed``: number of rows without reward for which the page or person was not found. Raises
    NotFoundError, BadFileError.
    """
    check_file(guess, "a log of R-Eval, a JSON object a line")
    rows = read_rows(guess)
    golds, missing, notes = _golds(rows, guess, gold)
    summaries = []
    for row in rows:
        accepted = Gold(answers=golds[row["question"], row["answer"]][:1])
        summaries.append(summarize(replace(log_example(row), gold=accepted), log_episode(row)))
    errors = {"original": dict.fromkeys(ORIGINAL, 0), "corrected": dict.fromkeys(CLASSES, 0)}
    for summary in summaries:
        for way, counts in errors.items() if summary.reward is not None else ():
            counts[classify(summary, original=way == "original")] += 1
    repeated = sum(row["repeated"] for row in rows)
    again = f"{repeated} rows stand there again with the same question and answer; the last of each counts."
    system, dataset = named_by(guess)
    definitions = {name: read_card(ours).definition for name, ours in SCORED.items()}
    return {
        "suite": "reval",
        "system": system.label,
        "dataset": dataset,
        "n": len(rows),
        "missing": missing,
        "halted": sum(row["halted"] for row in rows),
        "error": sum(row["error"] for row in rows),
        "rewards_differ": sum(
            abs((summary.reward or 0.0) - row["reward"]) > CLOSE
            for row, summary in zip(rows, summaries)
        ),
        "environment_failed": sum(
            NOT_FOUND in summary.scratchpad and not summary.reward for summary in summaries
        ),
        "metrics": metric_means(
            {
                "reward": [summary.reward for summary in summaries],
                "correct": [summary.correct for summary in summaries],
                "position_match": [summary.position for summary in summaries],
            }
        ),
        "errors": errors,
        "definitions": {**definitions, **CLASSES},
        "notes": [*notes, *sentences((repeated, again))],
    }


def _golds(
    rows: Sequence[Mapping[str, Any]], guess: Path, gold: Path | None
) -> tuple[dict[Key, tuple[str, ...]], int, tuple[str, ...]]:
    """((question, answer in the row) → accepted answers, number of records without a row, notes)."""
    own = {(row["question"], row["answer"]): tuple(filter(None, [row["answer"]])) for row in rows}
    if gold is None:
        note = "The answers are those in the rows; give R-Eval's own file as the gold to be sure of them."
        return own, 0, (note,)
    check_file(gold, "R-Eval's records (input, outputs)")
    examples = answerable_questions(gold)
    records: dict[str, list[tuple[str, ...]]] = {}
    for example in examples:
        records.setdefault(example.question.text.strip(), []).append(example.gold.answers)
    golds = {}
    for question, answer in own:
        theirs = records.get(question.strip())
        if theirs is None:
            raise not_in_gold(guess, gold, question[:80])
        same = (answers for answers in theirs if answers[:1] == (answer,))
        golds[question, answer] = next(same, theirs[0])
    changed = sum(bool(answers) and answers[0] != key[1] for key, answers in golds.items())
    missing = max(len(examples) - len(own), 0)
    notes = gold_notes(changed, gold, missing, len(examples), "figure")
    return golds, missing, notes
