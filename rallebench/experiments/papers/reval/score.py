"""``score --suite reval``: logs that R-Eval's own code, or any other program, wrote in its form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rallebench.analysis.agents import EpisodeSummary
from rallebench.analysis.agents.errors import CLASSES, ORIGINAL, classify
from rallebench.analysis.agents.logs import NOT_FOUND, named_by, reason_of, rows_of
from rallebench.analysis.agents.traces import observed_in
from rallebench.core.errors import BadFileError
from rallebench.core.types import Episode, Gold, Outcome
from rallebench.datasets.reading import read_questions
from rallebench.engine.statistics import means
from rallebench.experiments.papers import SCORERS
from rallebench.experiments.papers.predictions import check_file
from rallebench.experiments.runs import bounds_of
from rallebench.metrics import METRICS, read_card

SCORED: Mapping[str, str] = {
    "reward": "f1_yes_no",
    "correct": "em",
    "position_match": "position_match",
}
"""R-Eval's word → our metric."""
CLOSE = 1e-6


@SCORERS.register("reval")
def score_reval(guess: Path, gold: Path | None = None) -> dict[str, Any]:
    """R-Eval's log (question, answer, prediction, reward, halted, error, scratchpad …), scored anew.

    ``gold``: its records (input, outputs), else each row's own ``answer`` counts. ``rewards_differ``: rows whose own reward is
    another than the one found here. ``errors``: R-Eval's taxonomy, as its code counts and as this project does.
    ``environment_failed``: rows without reward whose page or person could not be found. Raises NotFoundError, BadFileError.
    """
    check_file(guess, "a log of R-Eval, a JSON object a line")
    rows = rows_of(guess)
    golds, missing, notes = _golds(rows, guess, gold)
    columns: dict[str, list[float | None]] = {name: [] for name in SCORED}
    classes: dict[str, dict[str, int]] = {
        "original": dict.fromkeys(ORIGINAL, 0),
        "corrected": dict.fromkeys(CLASSES, 0),
    }
    differ = lost = 0
    for row in rows:
        answers = golds[row["question"], row["answer"]][:1]
        episode, wanted = Episode("", "", (), Outcome(row["prediction"])), Gold(answers=answers)
        found = {name: METRICS[ours](episode, wanted) for name, ours in SCORED.items()}
        for name, value in found.items():
            columns[name].append(value)
        differ += abs((found["reward"] or 0.0) - row["reward"]) > CLOSE
        lost += NOT_FOUND in row["scratchpad"] and not found["reward"]
        if found["reward"] is not None:
            told = _told(row, answers, found)
            classes["original"][classify(told, original=True)] += 1
            classes["corrected"][classify(told)] += 1
    repeated = sum(row["repeated"] for row in rows)
    notes += [
        f"{repeated} rows stand there again with the same question and answer; the last of each counts."
    ] * bool(repeated)
    system, dataset = named_by(guess)
    return {
        "suite": "reval",
        "system": system.label,
        "dataset": dataset,
        "n": len(rows),
        "missing": missing,
        "halted": sum(row["halted"] for row in rows),
        "error": sum(row["error"] for row in rows),
        "rewards_differ": differ,
        "environment_failed": lost,
        "metrics": {
            name: asdict(mean) for name, mean in means(columns, ranges=bounds_of(columns)).items()
        },
        "errors": classes,
        "definitions": {name: read_card(ours).definition for name, ours in SCORED.items()}
        | dict(CLASSES),
        "notes": notes,
    }


def _told(
    row: Mapping[str, Any], answers: tuple[str, ...], found: Mapping[str, float | None]
) -> EpisodeSummary:
    pad = row["scratchpad"]
    return EpisodeSummary(
        "",
        row["question"],
        answers,
        row["prediction"],
        found["reward"],
        found["correct"],
        found["position_match"],
        reason_of(row).replace("halted", ""),
        pad,
        observed_in(pad),
        row["halted"],
        row["error"],
    )


def _golds(
    rows: list[dict[str, Any]], guess: Path, gold: Path | None
) -> tuple[dict[tuple[str, str], tuple[str, ...]], int, list[str]]:
    """(question, the row's own answer) → what counts, how many records have no row, and what must be said."""
    own = {(row["question"], row["answer"]): tuple(filter(None, [row["answer"]])) for row in rows}
    if gold is None:
        return (
            own,
            0,
            [
                "The answers are those in the rows; give R-Eval's file with --gold to be sure of them."
            ],
        )
    check_file(gold, "R-Eval's records (input, outputs)", "--gold")
    examples = read_questions(gold)
    records: dict[str, list[tuple[str, ...]]] = {}
    for example in examples:
        records.setdefault(example.question.text.strip(), []).append(example.gold.answers)
    found = {}
    for question, answer in own:
        theirs = records.get(question.strip())
        if theirs is None:
            raise BadFileError(
                f"{guess} answers {question[:80]!r}, which {gold} does not hold; give the file that was asked."
            )
        found[question, answer] = next(
            (answers for answers in theirs if answers[:1] == (answer,)), theirs[0]
        )
    changed = sum(bool(answers) and answers[0] != key[1] for key, answers in found.items())
    missing = len(examples) - len(own)
    notes = [f"{changed} rows have another answer than {gold.name}; the latter's counts."] * bool(
        changed
    )
    notes += [f"{missing} of {len(examples)} records have no row; they are in no figure."] * (
        missing > 0
    )
    return found, max(missing, 0), notes
