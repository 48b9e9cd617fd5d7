"""Runs over a quiz of single questions, whose answers a person labels: exact match misses right answers in other words."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

from small_workspace import record, write_lines

from rallebench.cli.main import main
from rallebench.core.labels import AnswerLabel, Grade, RunAnswer
from rallebench.datasets.label_file import append_labels, label_file

QUIZ = 160
QIDS = tuple(f"n{i}" for i in range(QUIZ))
PERSON: dict[str, Grade] = {
    "exact": "right",
    "other words": "right",
    "half": "partly",
    "no": "wrong",
}
"""Kind of an answer → the person's label; exact match takes only the first kind."""


def kinds_of_answers(seed: int, right: float) -> list[str]:
    """The kind of each answer of a run."""
    rng = random.Random(seed)
    weights = (right, 0.2, 0.1, max(0.0, 0.7 - right))
    return rng.choices([*PERSON], weights, k=QUIZ)


def answer_text(qid: str, kind: str) -> str:
    """An answer of a kind to a question."""
    return f"gold {qid}" if kind == "exact" else f"{kind} {qid} indeed"


def make_quiz_run(workspace: Path, name: str, kinds: Iterable[str]) -> None:
    """Import answers of these kinds as a run over the dataset ``quiz``, which is made if it is absent."""
    if not (dataset := workspace / "datasets" / "quiz.jsonl").exists():
        write_lines(dataset, [record(q, f"What is {q}?", f"gold {q}", f"page {q}") for q in QIDS])
    rows = [{"id": q, "output": [{"answer": answer_text(q, k)}]} for q, k in zip(QIDS, kinds)]
    file = write_lines(workspace.parent / f"{name}.jsonl", rows)
    call = ["import", str(file), "--kind", "predictions", "--name", name, "--dataset", "quiz"]
    assert main([*call, "--workspace", str(workspace)]) == 0


def label(workspace: Path, run: str, kinds: Iterable[str], qids: Iterable[str]) -> None:
    """Label the answers of a run to some questions as the person does."""
    of = dict(zip(QIDS, kinds))
    keys = {q: RunAnswer("quiz", run, q, f"What is {q}?", answer_text(q, of[q])).key for q in qids}
    append_labels(
        label_file(workspace, "quiz"),
        [
            AnswerLabel(1.0, "ann", q, key.question, key.answer, PERSON[of[q]], run=run)
            for q, key in keys.items()
        ],
    )
