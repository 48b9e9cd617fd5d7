"""The scores of runs corrected by labels: by the formula from 50 labelled articles on, by the labels alone below."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from labelled_runs import PERSON, QIDS, QUIZ, kinds_of_answers, label, make_quiz_run
from page_views import run_of
from scipy import stats

from rallebench.core.corrections import LabelCorrection
from rallebench.core.errors import UsageError
from rallebench.core.labels import WORTH, LabelSample, RunAnswer, SampledAnswer
from rallebench.datasets.label_file import append_labels, label_file
from rallebench.engine.store import RunFolder
from rallebench.services.workbench import Workbench
from rallebench.views.corrections import UNPLANNED, WATCHED, compared_corrections, correct_runs
from rallebench.views.labels import run_answers

FIRST, SECOND = kinds_of_answers(1, 0.5), kinds_of_answers(2, 0.4)
TRUTH = np.array([WORTH[PERSON[kind]] for kind in FIRST])
SCORES = np.array([float(kind == "exact") for kind in FIRST])
LATER_TRUTH = np.array([WORTH[PERSON[kind]] for kind in SECOND])
LATER_SCORES = np.array([float(kind == "exact") for kind in SECOND])


@pytest.fixture
def quiz(bench: Workbench) -> Workbench:
    """A workbench with two runs over the quiz."""
    for name, kinds in (("first", FIRST), ("second", SECOND)):
        make_quiz_run(bench.workspace.path, name, kinds)
    return bench


def folders(bench: Workbench, *names: str) -> list[RunFolder]:
    return [bench.runs.open(name) for name in names]


def label_first(bench: Workbench, count: int, *names: str) -> None:
    for name in names:
        kinds = FIRST if name == "first" else SECOND
        label(bench.workspace.path, name, kinds, QIDS[:count])


def prediction_powered(
    labels: np.ndarray, judged: np.ndarray, others: np.ndarray
) -> tuple[float, float]:
    """(mean, weight) of PPI++, transcribed: Angelopoulos, Duchi and Zrnic 2023, example 6.1."""
    n, m = len(labels), len(others)
    covariance = float(((labels - labels.mean()) * (judged - judged.mean())).mean())
    variance = float(np.var(np.concatenate([judged, others]), ddof=1))
    weight = min(1.0, max(0.0, covariance / ((1 + n / m) * variance)))
    return float(weight * others.mean() + (labels - weight * judged).mean()), weight


def test_a_mean_is_corrected_by_the_formula(quiz: Workbench) -> None:
    label_first(quiz, 90, "first")
    (found,) = correct_runs(folders(quiz, "first"), "em")
    mean, weight = prediction_powered(TRUTH[:90], SCORES[:90], SCORES[90:])
    assert (found.corrected.value, found.weight) == pytest.approx((mean, weight))
    assert (found.method, found.labels, found.articles) == ("corrected", 90, 90)
    assert found.raw.value == pytest.approx(SCORES.mean()) and found.raw.n == QUIZ
    assert found.corrected.low is not None and found.corrected.high is not None
    assert found.corrected.low < TRUTH.mean() < found.corrected.high
    assert found.raw.high is not None and found.raw.high < TRUTH.mean(), "exact match is too strict"


def test_the_bias_of_a_grader_and_its_kappa_are_those_of_the_labelled_answers(
    quiz: Workbench,
) -> None:
    label_first(quiz, 90, "first")
    (found,) = correct_runs(folders(quiz, "first"), "em")
    gaps = SCORES[:90] - TRUTH[:90]
    assert found.bias.value == pytest.approx(gaps.mean())
    half = stats.t.ppf(0.975, 89) * gaps.std(ddof=1) / math.sqrt(90)
    assert found.bias.low is not None and found.bias.high is not None
    assert found.bias.high < 0, "it gives less than the person"
    assert found.bias.high - found.bias.low == pytest.approx(2 * half, rel=0.06)
    chance = ((SCORES[:90, None] - TRUTH[None, :90]) ** 2).mean()
    assert found.kappa.value == pytest.approx(1 - (gaps**2).mean() / chance)


def test_a_difference_is_corrected_over_the_questions_labelled_in_both_runs(
    quiz: Workbench,
) -> None:
    label_first(quiz, 100, "first", "second")
    *means, gap = correct_runs(folders(quiz, "first", "second"), "em")
    assert [x.runs for x in means] == [("first",), ("second",)]
    gaps, labels = LATER_SCORES - SCORES, LATER_TRUTH - TRUTH
    mean, weight = prediction_powered(labels[:100], gaps[:100], gaps[100:])
    assert (gap.corrected.value, gap.weight) == pytest.approx((mean, weight))
    assert gap.raw.value == pytest.approx(gaps.mean()) and gap.name == "second − first"
    assert gap.bias.value == pytest.approx((gaps - labels)[:100].mean())
    assert gap.p is not None and gap.corrected.low is not None and gap.corrected.high is not None
    assert (gap.p < 0.05) == (gap.corrected.low > 0 or gap.corrected.high < 0)
    assert f"100 labels in 100 articles; p = {gap.p:.3f}; " in gap.sentences[0]


def test_runs_that_ended_once_they_were_decided_have_no_p_and_say_so(
    quiz: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    label_first(quiz, 60, "first", "second")
    monkeypatch.setattr("rallebench.views.corrections.largest_watched", lambda _: 1)
    first, _, gap = correct_runs(folders(quiz, "first", "second"), "em")
    assert gap.p is None and WATCHED in gap.notes and WATCHED in first.notes
    plain = SCORES.mean() - 1.96 * SCORES.std() / math.sqrt(QUIZ)
    assert first.raw.low is not None and first.raw.low < plain - 0.01, "it holds at every look"


def test_below_50_labelled_articles_the_labels_count_alone_and_this_is_said(
    quiz: Workbench,
) -> None:
    label_first(quiz, 40, "first", "second")
    first, _, gap = correct_runs(folders(quiz, "first", "second"), "em")
    assert first.corrected.value == pytest.approx(TRUTH[:40].mean()) and first.weight == 0
    assert gap.corrected.value == pytest.approx((LATER_TRUTH - TRUTH)[:40].mean())
    assert "labels alone (fewer than 50 labelled articles)" in first.sentences[0]
    assert first.needed == gap.needed == 160 and UNPLANNED in first.notes


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("uneven", [False, True])
def test_labels_of_every_answer_count_alone_and_this_is_said(quiz: Workbench, uneven: bool) -> None:
    label_first(quiz, len(QIDS), "first")
    if uneven:
        plan(quiz, len(QIDS), ("em", "f1"))
    (first,) = correct_runs(folders(quiz, "first"), "em")
    assert first.corrected.value == pytest.approx(TRUTH.mean()) and first.weight == 0
    assert first.corrected.low is not None and first.labels == len(QIDS)
    assert "labels alone (every answer is labelled)" in first.sentences[0]
    assert "more labels cannot" in first.sentences[0]


def plan(bench: Workbench, size: int, graders: tuple[str, ...] = ()) -> LabelSample:
    run = bench.runs.open("first")
    apart = {q for q, kind in zip(QIDS, FIRST) if kind == "other words"}
    answers: list[RunAnswer] = run_answers(bench.workspace, run)
    return bench.labels.plan(answers, size, graders=graders, apart=apart if graders else ())


def test_a_planned_sample_weighs_by_its_stored_chances(
    quiz: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = {q for q, kind in zip(QIDS, FIRST) if kind == "other words"}
    monkeypatch.setattr("rallebench.views.corrections.disagreements", lambda *_: apart)
    sample = plan(quiz, 75, ("em", "f1"))
    label(quiz.workspace.path, "first", FIRST, [x.qid for x in sample.answers])
    (found,) = correct_runs(folders(quiz, "first"), "em")
    chances = {x.qid: x.probability for x in sample.answers}
    assert len(set(chances.values())) == 2 and UNPLANNED not in found.notes
    drawn = [q in chances for q in QIDS]
    weights = np.array([1 / chances[q] for q in QIDS if q in chances])
    kinds = {q in apart: chances[q] for q in chances}
    left = np.array([1 / (1 - kinds[q in apart]) for q in QIDS if q not in chances])
    labels, judged, others = TRUTH[drawn], SCORES[drawn], SCORES[~np.array(drawn)]
    weighted = np.average(others, weights=left) * found.weight + np.average(
        labels - found.weight * judged, weights=weights
    )
    assert found.corrected.value == pytest.approx(weighted) and 0 < found.weight < 1
    # without the weights, the mean would be one of mostly disputed answers
    assert found.bias.value == pytest.approx(np.average(judged - labels, weights=weights))
    assert abs((judged - labels).mean() - found.bias.value) > 0.1


def test_a_half_finished_sample_counts_and_labels_outside_it_do_not(quiz: Workbench) -> None:
    sample = plan(quiz, 100)
    inside = [x.qid for x in sample.answers]
    outside = [q for q in QIDS if q not in inside][:7]
    label(quiz.workspace.path, "first", FIRST, [*inside[:60], *outside])
    (found,) = correct_runs(folders(quiz, "first"), "em")
    places = [QIDS.index(q) for q in inside[:60]]
    rest = [i for i in range(QUIZ) if i not in places]
    mean, _ = prediction_powered(TRUTH[places], SCORES[places], SCORES[rest])
    assert found.corrected.value == pytest.approx(mean) and found.labels == 60
    assert found.notes == ("7 labels outside the sample left out.",)


def test_wrong_gold_is_left_out_and_two_people_count_with_their_mean(quiz: Workbench) -> None:
    label_first(quiz, 60, "first")
    run = quiz.runs.open("first")
    answers = {x.qid: x for x in run_answers(quiz.workspace, run)}
    quiz.labels.give(answers["n0"], "partly", who="ben")
    quiz.labels.give(answers["n70"], "gold-wrong", who="ben")
    quiz.labels.give(answers["n71"], "skip", who="ben")
    (found,) = correct_runs([run], "em")
    labels = TRUTH[:60].copy()
    labels[0] = (labels[0] + 0.5) / 2
    rest = np.delete(SCORES, [*range(60), 70])
    assert found.corrected.value == pytest.approx(prediction_powered(labels, SCORES[:60], rest)[0])
    assert "1 question with wrong gold left out." in found.notes and found.labels == 60


def test_labels_that_equal_answers_share_weigh_less_in_a_difference(quiz: Workbench) -> None:
    label_first(quiz, 100, "first")
    equal = np.array([a == b for a, b in zip(FIRST, SECOND)])
    apart = int((~equal).sum())
    sentence = (
        f"No question on which the runs answer differently is labelled in both runs "
        f"({apart - int((~equal[:100]).sum())} of {apart} in 'first' and {apart} of {apart} in 'second' lack a label); "
        "label some of them."
    )
    with pytest.raises(UsageError, match=re.escape(sentence)):
        correct_runs(folders(quiz, "first", "second"), "em")
    label(quiz.workspace.path, "second", SECOND, QIDS[:60])
    _, second, gap = correct_runs(folders(quiz, "first", "second"), "em")
    missing = 40 - int(equal[60:100].sum())
    assert second.labels == gap.labels == 100 - missing
    assert f"{missing} questions labelled only for other answers" in second.notes[-1]
    assert gap.notes[-1] == f"{missing} questions labelled in one run only left out."
    used = (np.arange(QUIZ) < 60) | (equal & (np.arange(QUIZ) < 100))
    share = np.where(equal, used[equal].mean(), used[~equal].mean())
    gaps, labels = LATER_SCORES - SCORES, LATER_TRUTH - TRUTH
    errors = (labels - gap.weight * gaps)[used]
    expected = np.average(errors, weights=1 / share[used]) + gap.weight * np.average(
        gaps[~used], weights=1 / (1 - share[~used])
    )
    assert gap.corrected.value == pytest.approx(expected)


def test_runs_with_the_same_answers_have_no_corrected_difference(quiz: Workbench) -> None:
    make_quiz_run(quiz.workspace.path, "again", FIRST)
    label_first(quiz, 60, "first")
    first, again = correct_runs(folders(quiz, "first", "again"), "em")
    assert first.corrected == again.corrected
    assert again.notes[-1] == "again gives the same answers as first, so no label tells them apart."


def test_a_metric_of_which_less_is_better_is_turned_round(
    quiz: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from rallebench.analysis.measures import measure

    def down(name: str, runs: list[RunFolder]) -> object:
        by = measure(name, runs)
        return replace(by, card=replace(by.card, higher_is_better=False))

    monkeypatch.setattr("rallebench.views.corrections.find_grader", down)
    label_first(quiz, 60, "first")
    (found,) = correct_runs(folders(quiz, "first"), "em")
    assert found.raw.value == pytest.approx(1 - SCORES.mean())


def equal_labels(bench: Workbench) -> None:
    right = [q for q, kind in zip(QIDS, FIRST) if PERSON[kind] == "right"]
    label(bench.workspace.path, "first", FIRST, right[:70])


def test_equal_labels_count_alone_with_an_exact_interval(quiz: Workbench) -> None:
    equal_labels(quiz)
    (found,) = correct_runs(folders(quiz, "first"), "em")
    assert found.corrected.value == 1 and "all labels are equal" in found.sentences[0]
    assert found.corrected.low == pytest.approx(0.025 ** (1 / 70))
    assert found.kappa.value is None and found.kappa.note == "all labels are equal"


def test_a_constant_grader_leaves_the_labels_alone(quiz: Workbench) -> None:
    make_quiz_run(quiz.workspace.path, "none", ["no"] * QUIZ)
    label(quiz.workspace.path, "none", ["no"] * QUIZ, QIDS[:60])
    answers = run_answers(quiz.workspace, quiz.runs.open("none"))
    quiz.labels.give(answers[0], "right", who="ann")
    found: LabelCorrection = correct_runs(folders(quiz, "none"), "em")[0]
    assert "labels alone (em scores all answers alike)" in found.sentences[0]
    assert found.corrected.value == pytest.approx(1 / 60)
    assert found.kappa.note == "all scores are equal"


def foreign(path: Path) -> None:
    append_labels(
        label_file(path, "quiz"),
        [LabelSample(1.0, "ann", "first", 0, 1, (SampledAnswer("x", "0" * 16, "y", 1.0),))],
    )
    text = label_file(path, "tiny-qa")
    text.rename(label_file(path, "quiz"))


def test_bad_input_is_refused_in_a_sentence(quiz: Workbench) -> None:
    (first,) = folders(quiz, "first")
    for metric, sentence in (
        ("em", "No answer of 'first' that em scores is labelled as right, partly right or wrong"),
        ("completion_tokens", "'completion_tokens' have no known lowest and highest"),
        ("nothing", "nothing"),
    ):
        with pytest.raises(UsageError, match=sentence):
            correct_runs([first], metric)
    label_first(quiz, 1, "first")
    with pytest.raises(UsageError, match="Only one answer of 'first' that em scores is labelled"):
        correct_runs([first], "em")
    with pytest.raises(UsageError, match="One run is named twice"):
        correct_runs([first, first], "em")


def test_labels_of_another_dataset_are_said(quiz: Workbench) -> None:
    run_of(quiz, "other")
    answers = run_answers(quiz.workspace, quiz.runs.open("other"))
    quiz.labels.give(answers[0], "right", who="ann")
    foreign(quiz.workspace.path)
    with pytest.raises(UsageError, match="they are of another dataset"):
        correct_runs(folders(quiz, "first"), "em")


def test_a_damaged_label_line_is_said_beside_the_correction(quiz: Workbench) -> None:
    label_first(quiz, 60, "first")
    (file,) = (quiz.workspace.path / "labels").glob("*.jsonl")
    file.write_text(file.read_text() + "{\n")
    (correction,) = correct_runs(folders(quiz, "first"), "em")
    assert any("A label is left out" in x and "line" in x for x in correction.notes)


def test_compared_runs_are_corrected_only_where_both_have_labels(quiz: Workbench) -> None:
    runs = folders(quiz, "first", "second")
    assert not compared_corrections(runs, "em")
    label(quiz.workspace.path, "first", FIRST, QIDS[:1])
    label(quiz.workspace.path, "second", SECOND, QIDS[:1])
    refused = compared_corrections(runs, "em")
    assert not refused.corrections
    assert refused.sentences[0].startswith("The labels do not correct em: Only one answer")
    label_first(quiz, 60, "first", "second")
    assert len(compared_corrections(runs, "em").corrections) == 3
    assert not compared_corrections(runs, "completion_tokens"), "tokens have no highest value"
