"""A run as files of other tools: TREC run and qrels, KILT predictions, one row per question."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rallebench.analysis.agents import logs
from rallebench.analysis.ranking import answered, scores_of
from rallebench.core.files import json_lines
from rallebench.core.table_files import csv_lines
from rallebench.core.types import Hit
from rallebench.engine.ralle_files import reduced_row
from rallebench.engine.score import examples_of, metrics_of, score_episode
from rallebench.engine.store import RunFolder
from rallebench.metrics.recorded import IMPORTED

TAG = re.compile(r"\s+")


def trec_run(run: RunFolder) -> Iterator[str]:
    """``qid Q0 page rank score tag``: every retrieved page once, at its best rank.

    trec_eval orders by score, in single precision, and breaks ties by name. So 1/rank replaces scores that
    do not strictly fall, which keeps the order.
    """
    tag = TAG.sub("_", run.name)
    for example, episode in answered(run):
        if episode.error:
            continue
        pages: dict[str, Hit] = {}
        for hit in episode.hits:
            pages.setdefault(hit.passage.page_id or hit.passage.doc_id, hit)
        scores = array("f", (hit.score for hit in pages.values()))
        falling = all(a > b for a, b in zip(scores, scores[1:]))
        for rank, (page, hit) in enumerate(pages.items(), 1):
            score = hit.score if falling else 1.0 / rank
            yield f"{_token(example.question.qid)} Q0 {_token(page)} {rank} {score:.9g} {tag}\n"


def trec_qrels(run: RunFolder) -> Iterator[str]:
    """``qid 0 page 1`` for every gold page of the run's questions."""
    for example in examples_of(run):
        for page in sorted(example.gold.pages):
            yield f"{_token(example.question.qid)} 0 {_token(page)} 1\n"


def _token(text: str) -> str:
    """An identifier without spaces, which separate TREC's columns."""
    return TAG.sub("_", text.strip()) or "_"


def kilt(run: RunFolder) -> Iterator[str]:
    """KILT's predictions in JSON lines, without failed questions: KILT would score them as empty."""
    pairs = ((example.record, episode) for example, episode in answered(run) if not episode.error)
    return json_lines(reduced_row(*pair) for pair in pairs)


def rows(run: RunFolder) -> Iterator[dict[str, Any]]:
    """One flat row per question: id, question, gold, answer, error, pages, seconds and every metric of the run."""
    metrics = metrics_of(run)
    judges = (run.report() or {}).get("judges", {}).values()
    judged = scores_of(run, [column for judge in judges for column in judge["columns"]])
    for example, episode in answered(run):
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
            **{
                s.metric: s.value
                for s in score_episode(episode, example, metrics)
                if s.metric != "seconds"
            },
            **{column: scores.get(example.question.qid) for column, scores in judged.items()},
        }


def table(run: RunFolder) -> Iterator[str]:
    """``rows`` as CSV; lists are joined by `` | ``, None is empty."""
    for number, row in enumerate(rows(run)):
        heads = [] if number else [list(row)]
        yield csv_lines([*heads, list(row.values())])


FORMS: Mapping[str, tuple[Callable[[RunFolder], Iterator[str]], str]] = {
    "trec": (trec_run, "run"),
    "qrels": (trec_qrels, "qrels"),
    "kilt": (kilt, "jsonl"),
    "jsonl": (lambda run: json_lines(rows(run)), "jsonl"),
    "csv": (table, "csv"),
    logs.FORM: (logs.lines, "jsonl"),
}
"""Form → (lines of a run, file ending)."""
