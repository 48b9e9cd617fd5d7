"""RGB's four tests (Chen et al. 2023, arXiv:2309.01431), English and Chinese, as suites.

A record brings its own documents; what varies is how many of them are noise, or false. ``compat=original`` counts
as RGB's script does where that differs from its paper or from good sense; RGB's own result files always do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Figure, Report, Table
from rallebench.core.settings import Setting
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.papers.common import compat, own_prompts
from rallebench.experiments.papers.rgb import PAPER, documents, tables
from rallebench.experiments.papers.rgb.judged import judges_of, report_of
from rallebench.experiments.papers.rgb.labels import (
    FILE,
    error_table,
    read_labels,
    to_fill_in,
    wrong_answers,
)
from rallebench.experiments.papers.rgb.notes import notes_of
from rallebench.experiments.papers.rgb.tables import KNOWS
from rallebench.experiments.papers.rgb.testing import (
    Answered,
    Testbed,
    files_of,
    make_test,
    read_testbed,
    rgb_run,
)

SETTINGS = {
    "data": Setting(
        str, "", about="folder of RGB's files, one of them, or a question set in that form"
    ),
    "language": Setting(
        str,
        "auto",
        choices=("auto", "en", "zh"),
        about="auto: as a file is named or reads; of a folder, en",
    ),
    "set": Setting(
        str,
        "",
        about="a set of the folder, as en_fact; default: the set that the test is made for, and no other",
    ),
    "passages": Setting(int, 5, 0, 1000, about="documents per question; 0 asks without any"),
    "temperature": Setting(float, 0.7, 0, 2),
    "top_p": Setting(float, 0.0, 0, 1, about="default: 0.8, behind an API 1"),
    "max_tokens": Setting(int, 256, 1, 100_000),
    "system": Setting(
        str,
        "role",
        choices=("role", "merged"),
        about="merged: for servers whose model has no system role",
    ),
    "compat": compat(),
    "prompts": own_prompts("suites/rgb"),
    "reuse": Setting(
        str, "", about="folder with RGB's result-en, result-zh: answers there are not asked again"
    ),
}
JUDGE = {"judge": Setting(str, "", about="a language model that judges the answers as well")}
LABELS = {
    "labels": Setting(
        str,
        "",
        about="errors named by hand, CSV or JSON lines: qid, category, and part if they differ by part",
    )
}
BASE, INTEGRATION, FACTS = (
    ("{language}_refine", "{language}"),
    ("{language}_int",),
    ("{language}_fact",),
)


@EXPERIMENTS.register(
    "rgb-noise",
    place="suites",
    paper=PAPER,
    form={
        **SETTINGS,
        **LABELS,
        "noise": Setting(str, "0,0.2,0.4,0.6,0.8", about="shares of noise"),
    },
)
def noise(request: ExperimentRequest) -> Experiment:
    """RGB, noise robustness: right answers while ever more documents are beside the point."""
    return (yield from _over_noise(_base(request), "noise"))


@EXPERIMENTS.register(
    "rgb-integration",
    place="suites",
    paper=PAPER,
    form={**SETTINGS, **LABELS, "noise": Setting(str, "0,0.2,0.4", about="shares of noise")},
)
def integration(request: ExperimentRequest) -> Experiment:
    """RGB, information integration: answers whose parts stand in different documents."""
    testbed = read_testbed(request, INTEGRATION, documents.integration)
    if not any(record.grouped for record in testbed.records.records):
        raise UsageError(
            f"{testbed.records.path} does not group its positives by parts of the question; rgb-noise takes it."
        )
    return (yield from _over_noise(testbed, "integration"))


@EXPERIMENTS.register("rgb-rejection", place="suites", paper=PAPER, form={**SETTINGS, **JUDGE})
def rejection(request: ExperimentRequest) -> Experiment:
    """RGB, negative rejection: nothing but noise, and the model should say so. Lucky hits stand apart."""
    testbed = _base(request, ("rejection_rate", "lucky_rate", "all_rate"))
    judges = judges_of("rgb-rejection", testbed)
    test = make_test(testbed, 1.0)
    result = yield rgb_run(test, "noise=1", judges)
    judged, notes = report_of(result, judges, testbed)
    headline = "all_rate" if testbed.original else "rejection_rate"
    table, figure = tables.rejection(testbed, result)
    answered = {"noise=1": (test, result)}
    return _report(answered, {"headline": headline, **judged}, (table,), figure, notes)


@EXPERIMENTS.register(
    "rgb-counterfactual",
    place="suites",
    paper=PAPER,
    form={
        **SETTINGS,
        **JUDGE,
        "noise": Setting(float, 0.0, 0, 1, about="share of noise beside the false documents"),
        "correct": Setting(float, 0.0, 0, 1, about="share of true documents beside the false ones"),
    },
)
def counterfactual(request: ExperimentRequest) -> Experiment:
    """RGB, counterfactual robustness: the documents are false; is that noticed, and the answer right all the same?"""
    metrics = ("all_rate", "rejection_rate", "fact_check_rate", "correct_rate")
    testbed = read_testbed(request, FACTS, documents.counterfactual, facts=True, metrics=metrics)
    shares = request.settings["noise"], request.settings["correct"]
    _check_facts(testbed, *shares)
    judges = judges_of("rgb-errors", testbed)
    alone, test = make_test(testbed, 0.0, number=0), make_test(testbed, *shares)
    known = yield rgb_run(alone, "without documents")
    label = f"noise={shares[0]:g}, correct={shares[1]:g}"
    result = yield rgb_run(test, label, judges)
    accuracy = known.mean("all_rate")
    judged, notes = report_of(result, judges, testbed)
    report = {
        "headline": "fact_check_rate",
        "acc": accuracy,
        "acc_doc": result.mean("all_rate"),
        "reported": tables.reported(accuracy),
        **judged,
    }
    if not report["reported"]:
        sentence = f"RGB reports this test only for models that answer more than {KNOWS:.0%} without documents; here it is {accuracy or 0:.1%}."
        notes = (sentence, *notes)
    table, figure = tables.counterfactual(testbed, known, result)
    answered = {"without documents": (alone, known), label: (test, result)}
    return _report(answered, report, (table,), figure, notes)


def _check_facts(testbed: Testbed, noise: float, correct: float) -> None:
    """UsageError where there are no false documents to ask with."""
    if not any(record.wrong for record in testbed.records.records):
        raise UsageError(
            f"{testbed.records.path} holds no false copies (positive_wrong); choose a _fact set."
        )
    if noise + correct > 1:
        raise UsageError(
            f"noise {noise:g} and correct {correct:g} are more than the whole; together at most 1."
        )
    if not testbed.request.settings["passages"]:
        raise UsageError(
            "passages is 0, but false documents are to be shown; what is known without any is asked anyway."
        )


def _base(
    request: ExperimentRequest, metrics: tuple[str, ...] = ("all_rate", "rejection_rate")
) -> Testbed:
    testbed = read_testbed(request, BASE, documents.base, metrics=metrics)
    if any(record.grouped for record in testbed.records.records):
        raise UsageError(
            f"{testbed.records.path} groups its positives by parts of the question; rgb-integration takes it."
        )
    return testbed


def _over_noise(testbed: Testbed, kind: str) -> Experiment:
    settings = testbed.request.settings
    ratios, categories = _ratios(settings["noise"]), read_labels(settings["labels"])
    tests = {f"noise={ratio:g}": make_test(testbed, ratio) for ratio in ratios}
    answered: dict[str, Any] = {}
    for label, test in tests.items():
        result = yield rgb_run(test, label)
        answered[label] = (test, result)
    table, figure = tables.over_noise(answered, kind)
    wrong = wrong_answers(answered)
    errors: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    if settings["labels"]:
        by_category, notes = error_table(kind, categories, wrong)
        errors = (by_category,)
    elif wrong:
        notes = (
            f"To tell errors apart by hand, fill in the column category of {FILE} and give it with --set labels=FILE.",
        )
    report = {"headline": "all_rate", "wrong": len(wrong)}
    return _report(answered, report, (table, *errors), figure, notes, to_fill_in(wrong))


def _ratios(text: str) -> list[float]:
    """Shares of noise, each once, in the order given. Raises UsageError.

    >>> _ratios("0, 0.2,0.20")
    [0.0, 0.2]
    """
    try:
        ratios = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        ratios = []
    if not ratios or not all(0 <= ratio <= 1 for ratio in ratios):
        raise UsageError(f"--set noise={text}: noise must be numbers from 0 to 1, as in 0,0.2,0.4.")
    return list(dict.fromkeys(ratios))


def _report(
    answered: Answered,
    own: Mapping[str, Any],
    report_tables: tuple[Table, ...],
    figure: Figure,
    notes: tuple[str, ...],
    to_fill: Mapping[str, str] | None = None,
) -> Report:
    """The report of a test; ``own``: its own keys beside those that all tests have."""
    testbed = next(iter(answered.values()))[0].testbed
    records = testbed.records
    counts = {
        label: {
            "asked": test.number,
            "short": test.short if test.number else 0,
            "left_out": len(test.left_out),
        }
        for label, (test, _) in answered.items()
    }
    data = {
        "dataset": records.name,
        "language": records.language,
        "llm": testbed.request.llm,
        "compat": testbed.request.settings["compat"],
        "without": {what: len(ids) for what, ids in records.without.items()},
        "documents": counts,
        **own,
    }
    files: dict[str, str] = {}
    for test, result in answered.values():
        files |= files_of(test, result)
    return Report(data, notes_of(answered) + notes, files, to_fill or {}, report_tables, (figure,))
