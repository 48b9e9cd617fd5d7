"""RGB's four tests (Chen et al. 2023, arXiv:2309.01431): noise, rejection, integration and counterfactual documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from rallebench.core.errors import UsageError
from rallebench.core.experiment_reports import PUBLISHED
from rallebench.core.experiments import Experiment, ExperimentRequest, Report
from rallebench.core.letters import CODES
from rallebench.core.runs import RunResult
from rallebench.core.scoring import ScoreColumn, Scorer, Values
from rallebench.core.settings import Setting, dataclass_form
from rallebench.core.tables import Figure, Table
from rallebench.core.types import Episode, Example, Flow, Json
from rallebench.experiments.common import failed_note, sentences, values_in
from rallebench.experiments.languages import prompts_note
from rallebench.experiments.significance import tests_between
from rallebench.metrics.judges import VERDICT, judge_named, read_judgement
from rallebench.metrics.judges.choosing import PROBABILITY
from rallebench.papers.common import note_on
from rallebench.papers.rgb import tables
from rallebench.papers.rgb.benchmark import RGB
from rallebench.papers.rgb.records import RgbRecord, sets_in
from rallebench.papers.rgb.scoring import (
    as_scored,
    assess,
    is_right,
    label_prediction,
    metric_definitions,
)
from rallebench.papers.rgb.settings import (
    CounterfactualSettings,
    IntegrationSettings,
    NoiseSettings,
    RejectionSettings,
    RgbJudgeSettings,
    RgbSettings,
)
from rallebench.papers.rgb.tables import (
    CATEGORIES,
    FILE,
    KNOWS,
    Categories,
    WrongAnswer,
    error_table,
    read_labels,
    to_fill_in,
    wrong_answers,
)
from rallebench.papers.rgb.testbed import (
    Answered,
    Test,
    Testbed,
    make_test,
    read_testbed,
    result_files,
    rgb_run,
)
from rallebench.workspace.paths import WorkspaceFolder


def run_notes(answered: Answered) -> Iterator[str]:
    """Notes on the records and the runs, one sentence each."""
    first, _ = next(iter(answered.values()))
    records, facts = first.testbed.records, first.testbed.kind.facts
    queries = (record.query for record in first.records)
    yield prompts_note(CODES[records.language], queries, f"language={records.language} says so")
    for what, ids in records.without.items():
        end = " and were left out" if what == "answers" else ""
        yield from note_on(
            ids, f"of {len(records.records)} records of {records.name} have no {what}{end}"
        )
    if facts:
        bare = [record.id for record in first.records if not record.wrong]
        yield from note_on(bare, "records have no false copies of their positives")
        blurred = [record.id for record in first.records if holds_the_true_one(record)]
        why = "records have a false answer that holds the true one, so repeating it counts as right"
        yield from note_on(blurred, why)
    for label, test_and_result in answered.items():
        yield from (f"{label}: {sentence}" for sentence in _notes_of_test(*test_and_result))
    if not facts and any(record.wrong for record in first.records):
        yield f"{records.name} is a counterfactual set; only its true positives are used."
    if records.language == "zh":
        spaced = [
            record.id
            for record in first.records
            if any(all(" " in alias for alias in group) for group in record.required)
        ]
        why = (
            "records require an answer with a space, which RGB's scoring of Chinese can never find"
        )
        yield from note_on(spaced, why)


def _notes_of_test(test: Test, result: RunResult) -> Iterator[str]:
    n, reused = len(test.records), len(test.earlier)
    yield from note_on(test.left_out, "records have no document for it and were left out")
    if test.short:
        yield f"{test.short} of {n} records have fewer than {test.number} documents."
    if test.number and test.other_noise and not test.testbed.kind.facts:
        yield (
            f"{test.other_noise} of {n} records lack positives or negatives for this share of noise and "
            f"got more of the other, as in RGB; {test.noisy:.0%} of all documents are noise."
        )
    yield from failed_note("", result, "counted here and in no rate")
    if reused:
        yield f"{reused} answers are of an earlier time and were not asked again."


def holds_the_true_one(record: RgbRecord) -> bool:
    """Return whether the false answer would be scored as right, for example 170 if 70 is required."""
    return is_right(label_prediction(record.fake, record.required))


JUDGED = {
    "rgb-rejection": metric_definitions("rejection_rate_judge"),
    "rgb-errors": metric_definitions("fact_check_rate_judge", "correct_rate_judge"),
}
PROBABILITIES = {
    "rgb-rejection": metric_definitions("rejection_probability"),
    "rgb-errors": metric_definitions("fact_check_probability"),
}


def make_judges(testbed: Testbed, judging: RgbJudgeSettings) -> tuple[Scorer, ...]:
    """A tuple with the test's judge; () without a model. Raises UsageError, BadFileError.

    The original counts a reply without a clear verdict as a no.
    """
    if not judging.judge:
        return ()
    name, language = testbed.kind.judge, testbed.records.language
    prompts, chooses = testbed.settings.prompts, judging.judge_form == "choice"
    named = f"{name}{'-choice' if chooses else ''}:{judging.judge}"
    judge = judge_named(named, testbed.request.workspace.llm_mark, prompts)
    verdict_name, *corrected = JUDGED[name]
    probable = PROBABILITIES[name] if chooses else {}
    columns = {**JUDGED[name], **probable}

    def ask(example: Example, answer: str) -> Flow | None:
        return judge.ask(example, as_scored(answer, language))

    def read(example: Example, answer: str, judgement: Episode) -> Values:
        values = read_judgement(judgement).values
        verdict = values.get(VERDICT, 0.0 if testbed.original else None)
        right = float(assess(answer, example.gold.required, language).right)
        scores = {verdict_name: verdict, **dict.fromkeys(corrected, right if verdict else None)}
        return {**scores, **dict.fromkeys(probable, values.get(PROBABILITY))}

    scored = tuple(ScoreColumn(column, text) for column, text in columns.items())
    return (replace(judge, columns=scored, ask=ask, read=read),)


def count_judgements(result: RunResult, testbed: Testbed) -> tuple[dict[str, int], tuple[str, ...]]:
    """(counts of judgements, notes on answers without a verdict); both are empty without a judge."""
    passes = {judge.name: judge for judge in result.report.judges} if result.report else {}
    own = [passes[judge.name] for judge in result.request.judges if judge.name in passes]
    if not own:
        return {}, ()
    n, unparsed, failed = own[0].judged, own[0].unparsed, own[0].failed
    how = "taken for a no, as the original does" if testbed.original else "not scored"
    notes = sentences(
        (unparsed, f"{unparsed} of {n} verdicts could not be read and are {how}."),
        (failed, f"{failed} of {n} judgements failed; they are in no rate."),
        (
            own[0].choices,
            "A verdict is the more probable of Yes and No; the paper reads a sentence.",
        ),
    )
    return {"judged": n, "unparsed": unparsed, "judge_failed": failed}, notes


@RGB.suite(
    "rgb-noise",
    sets=sets_in,
    error_categories=CATEGORIES["noise"],
    form=dataclass_form(NoiseSettings),
)
def noise(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """RGB, noise robustness: right answers while ever more documents are beside the point."""
    s = request.read(NoiseSettings)
    testbed = _testbed(request, "noise", s.test)
    return (yield from _over_noise(testbed, s.noise, s.errors.labels))


@RGB.suite(
    "rgb-integration",
    sets=sets_in,
    error_categories=CATEGORIES["integration"],
    form=dataclass_form(IntegrationSettings),
)
def integration(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """RGB, information integration: answers whose parts stand in different documents."""
    s = request.read(IntegrationSettings)
    testbed = _testbed(request, "integration", s.test)
    return (yield from _over_noise(testbed, s.noise, s.errors.labels))


@RGB.suite(
    "rgb-rejection",
    sets=sets_in,
    error_categories=CATEGORIES["rejection"],
    form=dataclass_form(RejectionSettings),
)
def rejection(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """RGB, negative rejection: nothing but noise, and the model should say so. Lucky hits stand apart."""
    s = request.read(RejectionSettings)
    testbed = _testbed(request, "rejection", s.test, s.judging.judge)
    labels = s.errors.labels
    categories = read_labels(labels)
    judges = make_judges(testbed, s.judging)
    test = make_test(testbed, 1.0)
    result = yield rgb_run(test, "noise=1", judges)
    judged, notes = count_judgements(result, testbed)
    headline = "all_rate" if testbed.original else "rejection_rate"
    table, figure, own = tables.rejection(test, result)
    answered = {"noise=1": (test, result)}
    answers = wrong_answers(answered, attrgetter("rejects"))
    by_category, label_notes = _by_category(testbed, labels, categories, answers)
    report = {"headline": headline, **judged, "not_rejected": len(answers), PUBLISHED: (own,)}
    all_tables, all_notes = (table, *by_category), (*notes, *label_notes)
    return _report(answered, report, all_tables, figure, all_notes, to_fill_in(answers))


@RGB.suite(
    "rgb-counterfactual",
    sets=sets_in,
    form=dataclass_form(CounterfactualSettings),
)
def counterfactual(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """RGB, counterfactual robustness: the documents are false; is that noticed, and the answer right all the same?"""
    s = request.read(CounterfactualSettings)
    testbed = read_testbed(request, "counterfactual", s.test, s.judging.judge)
    shares = s.noise, s.correct
    _check_facts(testbed, *shares)
    judges = make_judges(testbed, s.judging)
    alone, test = make_test(testbed, 0.0, number=0), make_test(testbed, *shares)
    known = yield rgb_run(alone, "without documents")
    label = f"noise={shares[0]:g}, correct={shares[1]:g}"
    result = yield rgb_run(test, label, judges)
    accuracy = known.mean("all_rate")
    is_reported = tables.reported(accuracy)
    judged, notes = count_judgements(result, testbed)
    low = f"RGB reports this test only for models that answer more than {KNOWS:.0%} without documents; here it is {accuracy or 0:.1%}."
    report = {
        "headline": "fact_check_rate",
        "acc": accuracy,
        "acc_doc": result.mean("all_rate"),
        "reported": is_reported,
        **judged,
    }
    table, figure, own = tables.counterfactual(test, known, result)
    report[PUBLISHED] = (own,)
    answered = {"without documents": (alone, known), label: (test, result)}
    low_notes = sentences((not is_reported, low))
    return _report(answered, report, (table, *_tests(answered)), figure, (*low_notes, *notes))


def _tests(answered: Answered) -> tuple[Table, ...]:
    return tests_between({"": {part: run for part, (_, run) in answered.items()}}, ("all_rate",))


def _check_facts(testbed: Testbed, noise: float, correct: float) -> None:
    """Raise UsageError if there are no false documents."""
    if not any(record.wrong for record in testbed.records.records):
        raise UsageError(
            f"{testbed.records.path} holds no false copies (positive_wrong); choose a _fact set."
        )
    if noise + correct > 1:
        raise UsageError(
            f"noise {noise:g} and correct {correct:g} are more than the whole; together at most 1."
        )
    if not testbed.settings.passages:
        raise UsageError(
            "passages is 0, but false documents are to be shown; the questions without documents are asked anyway."
        )


def _testbed(
    request: ExperimentRequest[WorkspaceFolder], name: str, settings: RgbSettings, judge: str = ""
) -> Testbed:
    """The testbed of a test with correct documents. Raises UsageError for a set of the wrong kind."""
    testbed = read_testbed(request, name, settings, judge)
    grouped = any(record.grouped for record in testbed.records.records)
    if grouped and name != "integration":
        raise UsageError(
            f"{testbed.records.path} groups its positives by parts of the question; rgb-integration takes it."
        )
    if name == "integration" and not grouped:
        raise UsageError(
            f"{testbed.records.path} does not group its positives by parts of the question; rgb-noise takes it."
        )
    return testbed


def _over_noise(testbed: Testbed, shares: str, labels: str) -> Experiment:
    ratios = values_in("noise", shares, Setting(float, 0, 0, 1, required=True))
    categories = read_labels(labels)
    tests = {f"noise={ratio:g}": make_test(testbed, ratio) for ratio in ratios}
    answered: dict[str, tuple[Test, RunResult]] = {}
    for label, test in tests.items():
        answered[label] = test, (yield rgb_run(test, label))
    table, figure, own = tables.over_noise(answered)
    wrong = wrong_answers(answered)
    by_category, notes = _by_category(testbed, labels, categories, wrong)
    report_tables = (table, *by_category, *_tests(answered))
    report = {"headline": "all_rate", "wrong": len(wrong), PUBLISHED: (own,)}
    return _report(answered, report, report_tables, figure, notes, to_fill_in(wrong))


def _by_category(
    testbed: Testbed, labels: str, categories: Categories, wrong: Sequence[WrongAnswer]
) -> tuple[tuple[Table, ...], tuple[str, ...]]:
    """(the table of errors by category, if a person assigned categories; notes)."""
    if not labels:
        how = f"To tell errors apart by hand, fill in the column category of {FILE} and give it as labels=FILE."
        return (), sentences((wrong, how))
    table, notes = error_table(testbed.name, categories, wrong)
    return (table,), notes


def _report(
    answered: Answered,
    own: Json,
    report_tables: Sequence[Table],
    figure: Figure,
    notes: tuple[str, ...],
    to_fill: Mapping[str, str] | None = None,
) -> Report:
    """The report of a test. ``own``: keys specific to this test."""
    testbed = next(iter(answered.values()))[0].testbed
    records = testbed.records
    counts: dict[str, dict[str, int]] = {}
    files: dict[str, str | Iterable[str]] = {}
    for label, (test, result) in answered.items():
        left_out = len(test.left_out)
        counts[label] = {"asked": test.number, "short": test.short, "left_out": left_out}
        files |= result_files(test, result)
    data = {
        "dataset": records.name,
        "language": records.language,
        "llm": testbed.request.llm,
        "compat": testbed.settings.compat,
        "wording": testbed.wording.to_json(),
        "without": {what: len(ids) for what, ids in records.without.items()},
        "documents": counts,
        **own,
    }
    notes = (*filter(None, run_notes(answered)), *notes)
    return Report(data, notes, files, to_fill or {}, tuple(report_tables), (figure,))
