"""RGB's four tests (Chen et al. 2023, arXiv:2309.01431), English and Chinese, as suites.

A record brings its own documents; what varies is how many of them are noise, or false. ``compat=original`` counts
as RGB's script does where that differs from its paper or from good sense; RGB's own result files always do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Figure, Report, Table
from rallebench.core.runs import RunResult
from rallebench.core.settings import Setting
from rallebench.experiments.papers import SUITES
from rallebench.experiments.papers.rgb import documents, tables
from rallebench.experiments.papers.rgb.definitions import named
from rallebench.experiments.papers.rgb.documents import Documents
from rallebench.experiments.papers.rgb.judged import judges_of, report_of
from rallebench.experiments.papers.rgb.labels import (
    FILE,
    counted,
    read_labels,
    to_fill_in,
    wrong_answers,
)
from rallebench.experiments.papers.rgb.notes import notes_of
from rallebench.experiments.papers.rgb.records import Record
from rallebench.experiments.papers.rgb.tables import KNOWS
from rallebench.experiments.papers.rgb.testing import (
    Request,
    Test,
    files_of,
    make_test,
    part_of,
    request_of,
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
    "compat": Setting(str, "corrected", choices=("corrected", "original")),
    "prompts": Setting(
        str, "", about="folder with prompts of your own, named as in prompts/suites/rgb"
    ),
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
BASE = ("{language}_refine", "{language}")
FACT = ("{language}_fact",)


@SUITES.register(
    "rgb-noise",
    form={
        **SETTINGS,
        **LABELS,
        "noise": Setting(str, "0,0.2,0.4,0.6,0.8", about="shares of noise"),
    },
)
def noise(asked: ExperimentRequest) -> Experiment:
    """RGB, noise robustness: right answers while ever more documents are beside the point."""
    request = request_of(asked, BASE, _base)
    _refuse_groups(request)
    return (yield from _over_noise(request, "noise"))


@SUITES.register(
    "rgb-integration",
    form={**SETTINGS, **LABELS, "noise": Setting(str, "0,0.2,0.4", about="shares of noise")},
)
def integration(asked: ExperimentRequest) -> Experiment:
    """RGB, information integration: answers whose parts stand in different documents."""
    request = request_of(asked, ("{language}_int",), _integration)
    if not any(record.grouped for record in request.records.records):
        raise UsageError(
            f"{request.records.path} does not group its positives by parts of the question; rgb-noise takes it."
        )
    return (yield from _over_noise(request, "integration"))


@SUITES.register("rgb-rejection", form={**SETTINGS, **JUDGE})
def rejection(asked: ExperimentRequest) -> Experiment:
    """RGB, negative rejection: nothing but noise, and the model should say so. Lucky hits stand apart."""
    metrics = named("rejection_rate", "lucky_rate", "all_rate")
    request = request_of(asked, BASE, _base, metrics=metrics)
    _refuse_groups(request)
    judges = judges_of("rgb-rejection", request)
    test = make_test(request, 1.0)
    answered = yield part_of(test, "noise=1", judges)
    judged, notes = report_of(answered, judges, request)
    headline = "all_rate" if request.original else "rejection_rate"
    table, plot = tables.rejection(test, answered)
    return _made(
        {"headline": headline, **judged},
        notes_of([test], [answered]) + notes,
        {"noise=1": (test, answered)},
        [table],
        [plot],
    )


@SUITES.register(
    "rgb-counterfactual",
    form={
        **SETTINGS,
        **JUDGE,
        "noise": Setting(float, 0.0, 0, 1, about="share of noise beside the false documents"),
        "correct": Setting(float, 0.0, 0, 1, about="share of true documents beside the false ones"),
    },
)
def counterfactual(asked: ExperimentRequest) -> Experiment:
    """RGB, counterfactual robustness: the documents are false; is that noticed, and the answer right all the same?"""
    metrics = named("all_rate", "rejection_rate", "fact_check_rate", "correct_rate")
    request = request_of(asked, FACT, _counterfactual, facts=True, metrics=metrics)
    if not any(record.wrong for record in request.records.records):
        raise UsageError(
            f"{request.records.path} holds no false copies (positive_wrong); choose a _fact set."
        )
    shares = asked.settings["noise"], asked.settings["correct"]
    if sum(shares) > 1:
        raise UsageError(
            f"noise {shares[0]:g} and correct {shares[1]:g} are more than the whole; together at most 1."
        )
    if not asked.settings["passages"]:
        raise UsageError(
            "passages is 0, but false documents are to be shown; what is known without any is asked anyway."
        )
    judges = judges_of("rgb-errors", request)
    alone, shown = make_test(request, 0.0, number=0), make_test(request, *shares)
    without = yield part_of(alone, "without documents")
    label = f"noise={shares[0]:g}, correct={shares[1]:g}"
    answered = yield part_of(shown, label, judges)
    known = without.mean("all_rate")
    reported = known is not None and known > KNOWS
    report = {
        "headline": "fact_check_rate",
        "acc": known,
        "acc_doc": answered.mean("all_rate"),
        "reported": reported,
    }
    notes = notes_of([alone, shown], [without, answered])
    if not reported:
        notes += (
            f"RGB reports this test only for models that answer more than {KNOWS:.0%} without documents; here it is {known or 0:.1%}.",
        )
    judged, more = report_of(answered, judges, request)
    report |= judged
    notes += more
    table, plot = tables.counterfactual(without, shown, answered)
    return _made(
        report,
        notes,
        {"without documents": (alone, without), label: (shown, answered)},
        [table],
        [plot],
    )


def _base(record: Record, number: int, noise: float, correct: float, original: bool) -> Documents:
    return documents.base(record, number, noise, original=original)


def _integration(
    record: Record, number: int, noise: float, correct: float, original: bool
) -> Documents:
    return documents.integration(record, number, noise, original=original)


def _counterfactual(
    record: Record, number: int, noise: float, correct: float, original: bool
) -> Documents:
    return documents.counterfactual(record, number, noise, correct, original=original)


def _over_noise(request: Request, test_name: str) -> Experiment:
    ratios = _ratios(request.asked.settings["noise"])
    given = request.asked.settings["labels"]
    labels = read_labels(Path(given).expanduser()) if given else {}
    tests = {f"noise={ratio:g}": make_test(request, ratio) for ratio in ratios}
    done: dict[str, tuple[Test, RunResult]] = {}
    for label, test in tests.items():
        answered = yield part_of(test, label)
        done[label] = (test, answered)
    notes = notes_of(list(tests.values()), [answered for _, answered in done.values()])
    table, plot = tables.over_noise(done, test_name)
    shown, wrong = [table], wrong_answers(done)
    if given:
        errors, said = counted(test_name, labels, wrong)
        shown.append(errors)
        notes += (said,) * bool(said)
    elif wrong:
        notes += (
            f"To tell errors apart by hand, fill in the column category of {FILE} and give it with --set labels=FILE.",
        )
    return _made(
        {"headline": "all_rate", "wrong": len(wrong)}, notes, done, shown, [plot], to_fill_in(wrong)
    )


def _ratios(text: str) -> list[float]:
    """Shares of noise, each once, in the order given. Raises UsageError.

    >>> _ratios("0, 0.2,0.20")
    [0.0, 0.2]
    """
    try:
        found = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        found = []
    if not found or not all(0 <= ratio <= 1 for ratio in found):
        raise UsageError(f"--set noise={text}: noise must be numbers from 0 to 1, as in 0,0.2,0.4.")
    return list(dict.fromkeys(found))


def _refuse_groups(request: Request) -> None:
    if any(record.grouped for record in request.records.records):
        raise UsageError(
            f"{request.records.path} groups its positives by parts of the question; rgb-integration takes it."
        )


def _made(
    report: Mapping[str, Any],
    notes: tuple[str, ...],
    done: Mapping[str, tuple[Test, RunResult]],
    shown: Sequence[Table],
    plots: Sequence[Figure],
    to_fill: Mapping[str, str] | None = None,
) -> Report:
    request = next(iter(done.values()))[0].request
    written: dict[str, str] = {}
    for test, answered in done.values():
        written |= files_of(test, answered)
    about = {
        "dataset": request.records.name,
        "language": request.records.language,
        "llm": request.asked.llm,
        "compat": "original" if request.original else "corrected",
        "without": {what: len(ids) for what, ids in request.records.without.items()},
        "documents": {
            label: {
                "asked": test.number,
                "short": test.short if test.number else 0,
                "left_out": len(test.left_out),
            }
            for label, (test, _) in done.items()
        },
    }
    return Report({**about, **report}, notes, written, to_fill or {}, tuple(shown), tuple(plots))
