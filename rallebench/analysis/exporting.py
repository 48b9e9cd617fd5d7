"""Export a run to other tools: runs and qrels, KILT's and SQuAD's predictions, one row per question."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rallebench.analysis import trec
from rallebench.analysis.agents import logs
from rallebench.analysis.ranking import ended_pairs, read_scores
from rallebench.core.files import json_lines
from rallebench.core.report import RunReport
from rallebench.core.table_files import csv_lines
from rallebench.engine.metric_choice import stored_metrics
from rallebench.engine.ralle_files import reduced_row
from rallebench.engine.score import score_metrics
from rallebench.engine.store import RunFolder
from rallebench.metrics.recorded import IMPORTED


def kilt(run: RunFolder) -> Iterator[str]:
    """Yield KILT predictions as JSON lines. Failed questions are left out, because KILT would score them as empty
    answers.
    """
    pairs = (
        (example.record, episode) for example, episode in ended_pairs(run) if not episode.error
    )
    return json_lines(reduced_row(*pair) for pair in pairs)


def squad(run: RunFolder) -> Iterator[str]:
    """Yield one object ``{id: answer}``, a line for each question, as SQuAD's script reads it; without failed questions."""
    mark = "{"
    for example, episode in ended_pairs(run):
        if not episode.error:
            yield f"{mark}{json.dumps(example.question.qid)}: {json.dumps(episode.answer)}"
            mark = ",\n"
    yield "{}\n" if mark == "{" else "}\n"


def rows(run: RunFolder) -> Iterator[dict[str, Any]]:
    """Yield one flat row per question: id, question, gold, answer, error, pages, seconds and every metric of the
    run.
    """
    judges = (run.report() or RunReport()).judges
    judged = read_scores(run, [column for judge in judges for column in judge.columns])
    pairs = list(ended_pairs(run))
    series = score_metrics([name for name in stored_metrics(run) if name != "seconds"], pairs)
    for number, (example, episode) in enumerate(pairs):
        pages = list(dict.fromkeys(hit.passage.page_id for hit in episode.hits))
        yield {
            "id": example.question.qid,
            "question": example.question.text,
            "gold": list(example.gold.answers),
            "gold_pages": sorted(example.gold.pages),
            "answer": episode.answer,
            "error": episode.error,
            "pages": pages,
            "seconds": None
            if episode.workflow == IMPORTED
            else round(sum(step.seconds for step in episode.steps), 6),
            **{name: column.values[number] for name, column in series.items()},
            **{column: scores.get(example.question.qid) for column, scores in judged.items()},
        }


def table(run: RunFolder) -> Iterator[str]:
    """Yield ``rows`` as CSV; lists are joined by `` | `` and None is empty."""
    for number, row in enumerate(rows(run)):
        heads = [] if number else [list(row)]
        yield csv_lines([*heads, list(row.values())])


FORMS: Mapping[str, tuple[Callable[[RunFolder], Iterator[str]], str]] = {
    "trec": (trec.run_lines, "run"),
    "qrels": (trec.qrels_lines, "qrels"),
    "msmarco": (trec.ranks_lines, "tsv"),
    "run-json": (trec.scores_lines, "json"),
    "kilt": (kilt, "jsonl"),
    "squad": (squad, "json"),
    "jsonl": (lambda run: json_lines(rows(run)), "jsonl"),
    "csv": (table, "csv"),
    logs.FORM: (logs.lines, "jsonl"),
}
"""Format → (lines of a run, file suffix)."""
