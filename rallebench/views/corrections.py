"""The scores of a run or of two runs corrected by the labels that people gave to their answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from rallebench.analysis.paired import compare
from rallebench.analysis.ranking import largest_watched, means_over
from rallebench.core.comparison import Measure
from rallebench.core.corrections import Corrections, LabelCorrection
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.labels import WORTH, AnswerKey, AnswerLabel, LabelSample, RunAnswer
from rallebench.core.numbers import NOISE, plural
from rallebench.core.run_results import MetricEstimate
from rallebench.engine.clusters import find_clusters
from rallebench.engine.corrections import correct_difference, correct_mean
from rallebench.engine.label_book import book_of_run
from rallebench.engine.label_corrected import LabelledScores
from rallebench.engine.score import stored_examples
from rallebench.engine.statistics import SHARE
from rallebench.engine.store import RunFolder
from rallebench.views.graders import find_grader, read_grades
from rallebench.views.labels import disagreements, foreign_labels

Floats = NDArray[np.float64]

WATCHED = "A run was to end once it was decided; the corrected interval is one of a fixed number of questions."
UNPLANNED = "No sample was planned, so the labelled answers count as if drawn at random."
OTHER_ANSWERS = "{} labelled only for other answers; label the answers of this run, too, since equal answers may be right more often."
ALIKE = "{} gives the same answers as {}, so no label tells them apart."
"""Notes of corrections."""


@dataclass(frozen=True, slots=True)
class GradedAnswers:
    """The scored answers of a run. ``scores``, ``labels``: question → score of the grader, and mean label, from 0 to 1;
    ``clusters``: question → article; ``without``: questions whose gold is wrong, which have neither; ``elsewhere``:
    questions without a label of which another answer has one.
    """

    run: RunFolder
    by: Measure
    scores: Mapping[str, float]
    labels: Mapping[str, float]
    keys: Mapping[str, AnswerKey]
    clusters: Mapping[str, int]
    without: frozenset[str]
    elsewhere: frozenset[str]
    sample: LabelSample | None


def correct_runs(runs: Sequence[RunFolder], grader: str) -> tuple[LabelCorrection, ...]:
    """Correct the mean of a grader, a metric or the column of a judge, in each run, then each run's difference from the first.

    Raises UsageError for an unknown grader or one without a range, and for fewer than two labels.
    """
    if len({run.name for run in runs}) < len(runs):
        raise UsageError("One run is named twice; name different runs.")
    by = find_grader(grader, runs)
    graded = [read_graded(run, by) for run in runs]
    for answers in graded:
        check_labelled(answers)
    first, *others = graded
    means = [_mean(first)]
    apart = []
    for other in others:
        mean = _mean(other)
        if _answer_alike(first, other):
            mean = replace(mean, notes=(*mean.notes, ALIKE.format(other.run.name, first.run.name)))
        else:
            apart.append(other)
        means.append(mean)
    return *means, *(_difference(first, other) for other in apart)


def _answer_alike(first: GradedAnswers, second: GradedAnswers) -> bool:
    """Return whether two runs give the same answer to every question that both score."""
    both = [qid for qid in first.scores if qid in second.scores]
    return bool(both) and all(
        first.keys[qid] == second.keys[qid] and first.scores[qid] == second.scores[qid]
        for qid in both
    )


def compared_corrections(runs: Sequence[RunFolder], grader: str) -> Corrections:
    """Return the corrections of compared runs; none if one of them has no label, or if the grader has no range."""
    by = find_grader(grader, runs)
    if None in by.bounds or not all(_is_labelled(run) for run in runs):
        return Corrections()
    try:
        return Corrections(correct_runs(runs, grader))
    except RalleError as error:
        return Corrections(problem=f"The labels do not correct {by.name}: {error}")


def _is_labelled(run: RunFolder) -> bool:
    book = book_of_run(run)
    return bool(book.answers) and any(map(book.answer_labels, _keys(run).values()))


def _keys(run: RunFolder) -> dict[str, AnswerKey]:
    """Return question → key, of the answers of a run."""
    heads, dataset = run.heads(), run.description().dataset
    texts = ((x.question.qid, x.question.text) for x in stored_examples(run))
    return {
        qid: RunAnswer(dataset, run.name, qid, text, heads[qid].answer).key
        for qid, text in texts
        if qid in heads and not heads[qid].error
    }


def read_graded(run: RunFolder, by: Measure) -> GradedAnswers:
    """Return the answers of a run with the scores of a grader and the labels. Raises UsageError for a grader without a range."""
    values = read_grades(run, by)
    keys, book = _keys(run), book_of_run(run)
    by_question = {qid: book.answer_labels(key) for qid, key in keys.items() if qid in values}
    graded = {qid: own for qid, labels in by_question.items() if (own := _worth(labels))}
    labelled = {key.question for key in book.answers if _worth(book.answer_labels(key))}
    return GradedAnswers(
        run,
        by,
        {qid: value for qid, value in values.items() if qid in keys},
        {qid: sum(own) / len(own) for qid, own in graded.items()},
        keys,
        find_clusters(stored_examples(run)).of,
        frozenset(qid for qid, labels in by_question.items() if labels and qid not in graded),
        frozenset(
            qid for qid in by_question if qid not in graded and keys[qid].question in labelled
        ),
        book.samples.get(run.name),
    )


def _worth(labels: Sequence[AnswerLabel]) -> list[float]:
    return [WORTH[label.grade] for label in labels if label.grade in WORTH]


def check_labelled(answers: GradedAnswers) -> None:
    """Raise UsageError for fewer than two labels."""
    if len(answers.labels) > 1:
        return
    run, name = answers.run, answers.run.name
    if answers.labels:
        raise UsageError(
            f"Only one answer of {name!r} that {answers.by.name} scores is labelled; label at least 2, better 50 or more."
        )
    questions = {key.question for key in answers.keys.values()}
    foreign = foreign_labels(run.path.parents[1], run.description().dataset, questions)
    raise UsageError(
        foreign
        or f"No answer of {name!r} that {answers.by.name} scores is labelled as right, partly right or wrong; label some first."
    )


# one run, two runs


@dataclass(frozen=True, slots=True)
class LabelSplit:
    """The questions with and without a label, the chances of each (None: equal), and notes."""

    labelled: tuple[str, ...]
    others: tuple[str, ...]
    chances: tuple[Floats, Floats] | None
    notes: tuple[str, ...]

    def scores(self, answers: GradedAnswers) -> LabelledScores:
        chances, chances_left = self.chances or (None, None)
        return LabelledScores(
            np.array([answers.labels[qid] for qid in self.labelled]),
            np.array([answers.scores[qid] for qid in self.labelled]),
            np.array([answers.scores[qid] for qid in self.others]),
            chances,
            chances_left,
            [answers.clusters[qid] for qid in self.labelled],
            [answers.clusters[qid] for qid in self.others],
        )


def _mean(answers: GradedAnswers) -> LabelCorrection:
    by, qids = answers.by, list(answers.scores)
    largest = largest_watched([answers.run])
    clusters = find_clusters(stored_examples(answers.run))
    mean = means_over(qids, {by.name: answers.scores}, clusters, SHARE, largest)[by.name]
    units = len({answers.clusters[qid] for qid in qids})
    raw = MetricEstimate(by.name, mean.value, mean.low, mean.high, mean.n, units=units)
    split = split_labelled([answers], set(answers.labels))
    return correct_mean(raw, answers.run.name, split.scores(answers), split.notes)


def _difference(first: GradedAnswers, second: GradedAnswers) -> LabelCorrection:
    largest = largest_watched([first.run, second.run])
    pair = compare(
        first.by.name,
        *(first.scores, second.scores),
        clusters=first.clusters,
        bounds={first.by.name: SHARE},
        largest=largest,
    )
    both = {qid for qid in first.labels if qid in second.labels and _same(first, second, qid)}
    if len(both) < 2:
        names = f"{first.run.name!r} and {second.run.name!r}"
        raise UsageError(
            f"{plural(len(both), 'question')} of {names} {'is' if len(both) == 1 else 'are'} labelled in both runs; label at least 2."
        )
    units = pair.clusters or None
    raw = MetricEstimate(
        pair.metric, pair.difference, pair.low, pair.high, pair.n, units=units, note=pair.note
    )
    split = split_labelled([first, second], both)
    runs = first.run.name, second.run.name
    corrected = correct_difference(
        raw, runs, split.scores(first), split.scores(second), split.notes
    )
    return corrected if largest is None else replace(corrected, p=None)


def _same(first: GradedAnswers, second: GradedAnswers, qid: str) -> bool:
    return qid in second.keys and first.keys[qid].question == second.keys[qid].question


def split_labelled(runs: Sequence[GradedAnswers], labelled: set[str]) -> LabelSplit:
    """Split the questions that all runs score. ``labelled``: the questions with a label in all runs.

    A sample that was planned for one of the runs gives the chances: then only its labels count.
    """
    first, *others = runs
    without = frozenset(chain.from_iterable(x.without for x in runs))
    qids = [
        qid
        for qid in first.scores
        if qid not in without and all(qid in x.scores and _same(first, x, qid) for x in others)
    ]
    notes = [WATCHED] if largest_watched([x.run for x in runs]) is not None else []
    if damage := book_of_run(first.run).problem:
        notes.append(f"A label is left out: {damage}")
    if without:
        notes.append(f"{plural(len(without), 'question')} with wrong gold left out.")
    planned = [(_sampled_questions(x) & labelled, x) for x in runs if x.sample is not None]
    used, owner = max(planned, key=lambda own: len(own[0]), default=(set[str](), None))
    if len(used) < 2:
        used, owner = labelled, None
        notes.append(UNPLANNED)
        if not others and first.elsewhere:
            notes.append(OTHER_ANSWERS.format(plural(len(first.elsewhere), "question")))
    elif labelled - used:
        notes.append(f"{plural(len(labelled - used), 'label')} outside the sample left out.")
    once = {qid for x in runs for qid in x.labels if qid in qids} - labelled
    if once:
        notes.append(f"{plural(len(once), 'question')} labelled in one run only left out.")
    inside = tuple(qid for qid in qids if qid in used)
    outside = tuple(qid for qid in qids if qid not in used)
    groups = _groups(runs, owner, qids, by_answer=bool(once))
    if gap := _unlabelled_group(runs, groups, inside, outside):
        raise UsageError(gap)
    chances = _chances(owner, groups, inside, outside)
    return LabelSplit(inside, outside, chances, tuple(notes))


def _sampled_questions(answers: GradedAnswers) -> set[str]:
    drawn = {x.key for x in answers.sample.answers} if answers.sample else set()
    return {qid for qid in answers.scores if answers.keys[qid] in drawn}


def _groups(
    runs: Sequence[GradedAnswers],
    owner: GradedAnswers | None,
    qids: Sequence[str],
    *,
    by_answer: bool,
) -> dict[str, tuple[bool, bool]]:
    """Return question → the group within which its chance of a label is the same: whether the graders of the ``owner``'s sample
    disagree, and, if ``by_answer``, whether the runs answer alike, since one label then holds for both."""
    sample = owner.sample if owner else None
    drawn = {x.key: x.apart for x in sample.answers} if sample else {}
    apart = (
        disagreements(owner.run, sample.graders) if owner and sample and sample.graders else set()
    )
    first, last = runs[0], runs[-1]
    return {
        qid: (
            drawn.get(owner.keys[qid], qid in apart) if owner else False,
            by_answer and first.keys[qid] == last.keys[qid],
        )
        for qid in qids
    }


def _unlabelled_group(
    runs: Sequence[GradedAnswers],
    groups: Mapping[str, tuple[bool, bool]],
    labelled: Sequence[str],
    others: Sequence[str],
) -> str:
    """Name a group of questions of which none is labelled, with the labels that each run lacks; '' if there is none."""
    empty = {groups[qid] for qid in others} - {groups[qid] for qid in labelled}
    if not empty:
        return ""
    apart, alike = group = min(empty)
    which = "the graders disagree" if apart else "the graders agree"
    if len({same for _, same in groups.values()}) > 1:
        which = "both runs answer alike" if alike else "the runs answer differently"
    own = [qid for qid, each in groups.items() if each == group]
    gaps = [(sum(qid not in x.labels for qid in own), x.run.name) for x in runs]
    lacking = " and ".join(f"{gap:,} of {len(own):,} in {name!r}" for gap, name in gaps if gap)
    both = " in both runs" if len(runs) > 1 else ""
    missing = f" ({lacking} lack a label)" if lacking else ""
    return f"No question on which {which} is labelled{both}{missing}; label some of them."


def _chances(
    owner: GradedAnswers | None,
    groups: Mapping[str, tuple[bool, bool]],
    labelled: Sequence[str],
    others: Sequence[str],
) -> tuple[Floats, Floats] | None:
    """Return the chances with which questions were labelled and left without a label; None if they are equal.

    The chance of a label is that of being drawn, if a sample was planned, times the share of the drawn answers that are labelled,
    group by group.
    """
    drawn = _sampled_questions(owner) if owner else {*groups}
    probability = (
        {x.key: x.probability for x in owner.sample.answers} if owner and owner.sample else {}
    )
    done, left = (Counter(groups[qid] for qid in side) for side in (labelled, others))
    planned = Counter(group for qid, group in groups.items() if qid in drawn)
    inside = [
        (probability[owner.keys[qid]] if owner else 1.0) * done[groups[qid]] / planned[groups[qid]]
        for qid in labelled
    ]
    outside = [left[groups[qid]] / (left[groups[qid]] + done[groups[qid]]) for qid in others]
    equal = max(inside) - min(inside) <= NOISE or not others
    return None if equal else (np.array(inside), np.array(outside))
