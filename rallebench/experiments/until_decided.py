"""A run that asks no more questions than its comparison with an earlier run needs."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

from rallebench.analysis.measures import headline, measure, shared_measures
from rallebench.analysis.paired import is_scored
from rallebench.analysis.ranking import read_scores
from rallebench.core.comparison import Measure
from rallebench.core.dataset_edits import question_key
from rallebench.core.deciding import StoppingRule, Watched
from rallebench.core.errors import UsageError
from rallebench.core.gating import check_margin
from rallebench.core.runs import PreparedRun
from rallebench.core.types import Example
from rallebench.engine.clusters import find_clusters, list_articles
from rallebench.engine.score import stored_examples
from rallebench.engine.sequential import watch_questions
from rallebench.engine.store import RunFolder

STEPS = 40
"""Looks at the interval in a run that asks all questions."""


def ask_until_decided(prepared: PreparedRun, base: RunFolder, rule: StoppingRule) -> PreparedRun:
    """Return the run with its questions in the random order of their articles, and with the ``rule`` completed.

    Raises UsageError for a metric without two bounds or a better direction, a margin as large as its range, and questions that ``base`` did not answer.
    """
    request = prepared.request
    if prepared.name == base.name:
        raise UsageError("A run cannot be decided against itself; choose another run.")
    by = _bounded_measure(rule.metric, base)
    check_margin(rule.margin, by.name, by.bounds)
    own = {e.question.qid: question_key(e) for e in stored_examples(base)}
    scored = read_scores(base, (by.name,))[by.name]
    ready = [
        example
        for example in request.examples
        if own.get(example.question.qid) == question_key(example)
        and is_scored(scored.get(example.question.qid))
    ]
    if len(ready) < len(request.examples):
        missing = len(request.examples) - len(ready)
        raise UsageError(
            f"{missing} of the {len(request.examples)} questions are not scored by {by.name} in the run {base.name!r}, so the two "
            "cannot be compared by it; run it on the same questions first."
        )
    articles = list_articles(ready)
    random.Random(request.seed).shuffle(articles)
    whole = replace(
        rule,
        metric=by.name,
        upward=by.higher_is_better is not False,
        questions=len(ready),
        largest=max(map(len, articles)),
    )
    examples = [example for article in articles for example in article]
    return replace(prepared, request=replace(request, examples=examples, stopping=whole))


def _bounded_measure(name: str, base: RunFolder) -> Measure:
    by = measure(name, [base]) if name else headline(shared_measures([base]), [base])
    low, high = by.bounds
    if low is None or high is None:
        raise UsageError(
            f"{by.name} has no two bounds, so no number of answers decides it for certain; choose a metric with a range, such "
            "as em or f1."
        )
    if by.higher_is_better is None:
        raise UsageError(f"{by.name} has no better direction; choose another metric.")
    return by


def looks(examples: Sequence[Example], batch_size: int) -> list[int]:
    """Return the numbers of questions after which the interval is looked at: whole articles, at least a batch apart."""
    least, total = max(batch_size, math.ceil(len(examples) / STEPS)), 0
    counts: list[int] = []
    for article in list_articles(examples):
        total += len(article)
        if total - (counts[-1] if counts else 0) >= least:
            counts.append(total)
    if not counts or counts[-1] < len(examples):
        counts.append(len(examples))
    return counts


def watch_runs(run: RunFolder, base: RunFolder, rule: StoppingRule) -> Watched:
    """Return the anytime-valid interval of run − base over the questions that both have scored so far."""
    by = _bounded_measure(rule.metric, base)
    new, old = (read_scores(each, (by.name,))[by.name] for each in (run, base))
    clusters = find_clusters(stored_examples(run)).of
    gaps = {
        qid: a - b
        for qid in clusters
        if (a := new.get(qid)) is not None and (b := old.get(qid)) is not None
    }
    low, high = by.bounds
    spread = (high or 0) - (low or 0)
    labels = [clusters[qid] for qid in gaps]
    return watch_questions([*gaps.values()], labels, rule.largest, spread, 1 - rule.confidence)
