"""Groups of a run's questions, by meaning and by question word, with the share that each gets wrong.

Groups are made from the questions alone, blind to the answers, so the intervals of their shares hold, and two runs over the same
questions have the same groups. ``services.question_groups`` makes those by meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rallebench.analysis.marking_words import mark_groups
from rallebench.analysis.measures import decided_by
from rallebench.analysis.question_clusters import FEWEST_GROUPED, stored_clusters
from rallebench.analysis.question_words import question_word
from rallebench.core.audits import CONFIDENCE
from rallebench.core.errors import UsageError
from rallebench.core.failures import (
    MEANING,
    WORD,
    FailureReport,
    QuestionGroup,
)
from rallebench.core.numbers import plural
from rallebench.core.report import RunReport
from rallebench.core.run_results import MetricEstimate
from rallebench.core.tables import ALL_EQUAL, FEWEST, TOO_FEW
from rallebench.engine.clusters import find_clusters
from rallebench.engine.contrasts import contrast
from rallebench.engine.score import stored_examples
from rallebench.engine.statistics import SHARE, means
from rallebench.engine.store import RunFolder
from rallebench.metrics.words import has_cjk
from rallebench.views.graders import find_grader, read_grades
from rallebench.views.run_questions import QuestionRow, questions, read_stages, stages_known
from rallebench.workspace.paths import WorkspaceFolder

EXAMPLES = 3
OTHER_LANGUAGE = "Many questions are not in English, which the embedded encoder reads; their groups by meaning tell little."
CHOSEN = "A group chosen here because it is wrong more often will look better in the next run by chance; gate later runs on it, not this one."


def explain_failures(workspace: WorkspaceFolder, run: RunFolder, metric: str = "") -> FailureReport:
    """Return the groups of a run's questions, those by meaning only once they are made. ``metric``: by default the one that
    decides; answers below the middle of its range are wrong. Raises UsageError, NotFoundError."""
    metric = metric.strip() or decided_by([run.report() or RunReport()])
    if not metric or metric == CONFIDENCE:
        raise UsageError(f"The run {run.name!r} has no score that tells wrong answers; score it.")
    grades = read_grades(run, find_grader(metric, [run]))
    if not stages_known(workspace, run):
        read_stages(workspace, run)
    rows = {row.qid: row for row in questions(workspace, run) if row.qid in grades}
    wrong = {qid for qid in rows if grades[qid] < 0.5}
    report = FailureReport(run.name, metric, len(rows), len(wrong))
    if not wrong:
        return replace(
            report,
            problem=f"No answer of {run.name!r} is wrong by {metric}, so there is nothing to explain.",
        )
    if len(wrong) == len(rows):
        return replace(
            report,
            problem=f"All answers of {run.name!r} are wrong by {metric}, so no group of questions stands out.",
        )
    sides = _Sides(rows, wrong, find_clusters(stored_examples(run)).of)
    groups, notes = [*_by_meaning(workspace, run, sides)], [*_notes(workspace, run, rows)]
    words = [*_by_word(sides)]
    return replace(report, groups=(*groups, *words), notes=tuple(notes))


class _Sides:
    """The scored questions of a run: rows, wrong ones, articles."""

    def __init__(
        self, rows: Mapping[str, QuestionRow], wrong: set[str], clusters: Mapping[str, int]
    ) -> None:
        self.rows, self.wrong = rows, wrong
        self.qids = [*rows]
        self.values = np.array([float(qid in wrong) for qid in self.qids])
        self.articles = np.array([clusters[qid] for qid in self.qids])
        self.words = {qid: question_word(row.text) for qid, row in rows.items()}

    def groups(
        self, keyed: Mapping[str, Sequence[str]], marks: Sequence[tuple[str, ...]]
    ) -> list[QuestionGroup]:
        """Return the groups of a kind, the largest excess of wrong answers first."""
        articles = dict(zip(self.qids, self.articles.tolist()))
        scored = {key: [qid for qid in ids if qid in articles] for key, ids in keyed.items()}
        large = sum(len({articles[qid] for qid in ids}) >= FEWEST for ids in scored.values())
        groups = [
            self._group(key, ids, words, max(1, large))
            for (key, ids), words in zip(scored.items(), marks)
        ]
        present = [group for group in groups if group is not None]
        return sorted(present, key=lambda group: -(group.difference.value or 0.0))

    def _group(
        self, key: str, ids: Sequence[str], words: tuple[str, ...], comparisons: int
    ) -> QuestionGroup | None:
        own = set(ids)
        inside = np.array([qid in own for qid in self.qids])
        if not own:
            return None
        lost = [qid for qid in ids if qid in self.wrong]
        articles = self.articles[inside]
        units = len(set(articles.tolist()))
        values = {"wrong": self.values[inside].tolist()}
        (share,) = means(values, articles.tolist(), {"wrong": SHARE}).values()
        note = "" if share.low is not None else TOO_FEW if units < FEWEST else ALL_EQUAL
        difference, p = MetricEstimate("difference", None, note="no other questions"), None
        if not inside.all():
            gap = contrast(self.values, inside, self.articles, comparisons)
            difference, p = (
                MetricEstimate(
                    "difference", gap.value, gap.low, gap.high, len(ids), units=units, note=gap.note
                ),
                gap.corrected,
            )
        return QuestionGroup(
            key,
            words,
            len(ids),
            len(lost),
            MetricEstimate(
                "wrong", share.value, share.low, share.high, share.n, units=units, note=note
            ),
            difference,
            p,
            dict(Counter(self.rows[qid].stage or self.rows[qid].kind for qid in lost)),
            dict(Counter(self.words[qid] for qid in lost)),
            tuple(self.rows[qid].text for qid in lost[:EXAMPLES]),
        )


def _by_meaning(workspace: WorkspaceFolder, run: RunFolder, sides: _Sides) -> list[QuestionGroup]:
    clusters = stored_clusters(workspace, run)
    if clusters is None or len(clusters.groups) < 2:
        return []
    examples = {x.question.qid: x.question.text for x in stored_examples(run)}
    keyed = {f"{MEANING}-{number}": ids for number, ids in enumerate(clusters.groups, 1)}
    every = [qid for ids in keyed.values() for qid in ids if qid in examples]
    at = {qid: position for position, qid in enumerate(every)}
    marks = mark_groups(
        [examples[qid] for qid in every],
        [[at[qid] for qid in ids if qid in at] for ids in keyed.values()],
    )
    return sides.groups(keyed, marks)


def _by_word(sides: _Sides) -> list[QuestionGroup]:
    keyed: dict[str, list[str]] = {}
    for qid, word in sides.words.items():
        keyed.setdefault(f"{WORD}-{word}", []).append(qid)
    if len(keyed) < 2:
        return []
    return sides.groups(keyed, [()] * len(keyed))


def _notes(
    workspace: WorkspaceFolder, run: RunFolder, rows: Mapping[str, QuestionRow]
) -> list[str]:
    notes = [CHOSEN]
    clusters, every = stored_clusters(workspace, run), questions(workspace, run)
    if len(every) < FEWEST_GROUPED:
        notes.append(
            f"{plural(len(every), 'question')} are too few for groups by meaning; that takes {FEWEST_GROUPED}."
        )
    elif clusters is not None and len(clusters.groups) < 2:
        notes.append("By meaning the questions form one group.")
    if clusters is not None and clusters.left_out:
        notes.append(
            f"{plural(clusters.left_out, 'question')} are in no group by meaning: at most {sum(map(len, clusters.groups)):,} are encoded."
        )
    if left := len(every) - len(rows):
        notes.append(f"{plural(left, 'question')} without a score left out.")
    if 2 * sum(has_cjk(row.text) for row in every) > len(every):
        notes.append(OTHER_LANGUAGE)
    return notes
