"""Agreement between a judge and given scores, for BARAG's published answers (scored by GPT-4) or for other run files.

Correlations, errors and bias have bootstrap intervals; the coefficients are SciPy's.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rallebench.core.errors import BackendError, Hint, UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Report
from rallebench.core.json_values import as_json
from rallebench.core.prompts import find_wording
from rallebench.core.report import Estimate
from rallebench.core.runs import DatasetRef, RunRequest, RunResult
from rallebench.core.settings import Setting, dataclass_form, declare_group, declare_text
from rallebench.core.tables import Figure, Table
from rallebench.core.types import Json, digest
from rallebench.engine.statistics import means
from rallebench.experiments.common import SCORES, scored_run, values_in
from rallebench.papers.barag.articles import PREFIX, BaragArticle, article_example, by_title
from rallebench.papers.barag.benchmark import BARAG
from rallebench.papers.barag.judged import (
    JudgementCounts,
    JudgingSettings,
    count_judgements,
    judge_notes,
    make_judge,
)
from rallebench.papers.barag.runs import AnswerRow, BaragRun, read_runs
from rallebench.papers.barag.study import JUDGE_PROMPTS
from rallebench.papers.common import declare_compat, declare_prompts, flow_spec, replay
from rallebench.workspace.paths import WorkspaceFolder

REPORTED = ("form", "compat", "temperature", "seed", "repeats", "swap")
"""The judge's settings listed in the report."""
Pairs = list[tuple[float, "float | None", str]]
"""(given score, judge's score, article title) of each answer."""


@dataclass(frozen=True, slots=True)
class AgreementSettings:
    """The settings of ``barag-agreement``."""

    runs: str = declare_text(
        "folder of scored run files (JSON lines), or one of them", names="file folder"
    )
    articles: str = declare_text(
        f"folder of {PREFIX}*.jsonl, one file, or a dataset; default: beside the runs, or above them",
        names="dataset file folder",
    )
    only: str = declare_text("names of runs, as in A_d_20240123_100407,…; default: all", many=True)
    compat: str = declare_compat("original: the judge's system prompt is not sent")
    prompts: str = declare_prompts("judges", "TKenneweg/RAG_Dataset_Gen")
    judging: JudgingSettings = declare_group(JudgingSettings)


@BARAG.suite("barag-agreement", named_by=("runs", "only"), form=dataclass_form(AgreementSettings))
def agreement(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """BARAG's judge, or another, against given scores: correlation, error and bias with intervals, for each run."""
    settings = request.read(AgreementSettings)
    known = {run.name: run for run in read_runs(settings.runs)}
    names = values_in("only", settings.only, Setting(str, "", choices=tuple(known)))
    runs = [known[name] for name in names or known]
    articles = by_title(_article_files(request, settings))
    find_wording(settings.prompts, JUDGE_PROMPTS)
    samples = [_sample(run, articles, request.limit) for run in runs]
    requests = [_run(request, settings, sample) for sample in samples if sample.answers]
    if not requests:
        raise UsageError(
            "No scored answer of these runs has its article.", hint=Hint("set", "articles=PATH")
        )
    results: dict[str, RunResult] = {}
    for run in requests:
        results[run.label] = yield run
    judge = requests[0].judges[0]
    if not any(judge.name in result.judgements for result in results.values()):
        raise BackendError(next(iter(results.values())).warnings[-1])
    notes: list[str] = []
    counts: dict[str, JudgementCounts | None] = {}
    pairs: dict[str, dict[str, Pairs]] = {}
    for sample in samples:
        name, lost = sample.run.name, sample.lost
        if lost:
            notes.append(
                f"{name}: {lost} of {len(sample.run.rows)} answers have no article or no scores and were left out."
            )
        if name in results:
            pairs[name] = {score: sample.pairs(results[name], score) for score in SCORES}
            counts[name] = count_judgements(results[name], judge)
            if count := counts[name]:
                notes += judge_notes(name, count, settings.judging)
    together = {
        name: [pair for run_pairs in pairs.values() for pair in run_pairs[name]] for name in SCORES
    }
    if len(pairs) > 1:
        pairs["all"] = together
    agreements = {
        score: {run: measure_agreement(*_sides(by_score[score])) for run, by_score in pairs.items()}
        for score in SCORES
    }
    figures = [_figure(score, together[score]) for score in SCORES]
    notes += [
        f"No judgement of {score} could be read, so there is no agreement to report."
        for score, figure in zip(SCORES, figures)
        if not figure.series["judge"]
    ]
    return Report(
        {
            "judge": request.llm,
            **{name: value for name, value in judge.settings.items() if name in REPORTED},
            "runs": {run: as_json(count) if count else {} for run, count in counts.items()},
            **{score: as_json(values) for score, values in agreements.items()},
        },
        tuple(notes),
        tables=tuple(
            _table(f"{score.capitalize()}: {request.llm} against the given scores", values)
            for score, values in agreements.items()
        ),
        figures=tuple(figures),
    )


def _table(title: str, agreements: Mapping[str, Agreement]) -> Table:
    rows = tuple((run, *agreement.cells) for run, agreement in agreements.items())
    return Table(title, ("Run", *COLUMNS), rows)


@dataclass(frozen=True, slots=True)
class ScoredAnswers:
    """Answers of a run file with both scores and an article, by question id. ``lost``: number of other answers."""

    run: BaragRun
    answers: Mapping[str, tuple[AnswerRow, BaragArticle]]
    lost: int

    def pairs(self, result: RunResult, score: str) -> Pairs:
        """The given and judged scores of the answers that could be judged."""
        judgements = result.judgements.get(result.request.judges[0].name, {})
        return [
            (float(getattr(row, score)), result.values[score].get(qid), article.title)
            for qid, (row, article) in self.answers.items()
            if qid in judgements
        ]


def _sample(
    run: BaragRun, articles: Mapping[tuple[str, str], BaragArticle], limit: int | None
) -> ScoredAnswers:
    answers: dict[str, tuple[AnswerRow, BaragArticle]] = {}
    rows = run.rows[:limit]
    for number, row in enumerate(rows):
        article = articles.get((row.title, row.question)) or articles.get((row.title, ""))
        if article is not None and row.total is not None:
            qid = row.id if row.id and row.id not in answers else f"{row.id or 'row'}-{number}"
            answers[qid] = row, article
    return ScoredAnswers(run, answers, len(rows) - len(answers))


def _run(
    request: ExperimentRequest[WorkspaceFolder], settings: AgreementSettings, sample: ScoredAnswers
) -> RunRequest:
    """A run that judges the answers of a run file without generating new ones."""
    run, answers = sample.run, {qid: row.answer for qid, (row, _) in sample.answers.items()}
    examples = tuple(
        article_example(replace(article, id=qid, question=row.question))
        for qid, (row, article) in sample.answers.items()
    )
    judge = make_judge(
        request,
        request.llm,
        settings.judging,
        examples,
        prompts=settings.prompts,
        compat=settings.compat,
    )
    return scored_run(
        run.name,
        flow_spec(
            "barag-answers",
            lambda question: replay(answers[question.qid]),
            {"answers": digest(answers)},
        ),
        DatasetRef(run.dataset or run.name),
        examples,
        lambda example, episode: {},
        {},
        judges=(judge,),
    )


def _figure(name: str, pairs: Pairs) -> Figure:
    """The judge's mean score for each given score, rounded to an integer."""
    by_score: dict[float, list[float]] = {}
    for score, judged, _ in sorted(pairs, key=itemgetter(0)):
        if judged is not None:
            by_score.setdefault(float(int(score + 0.5)), []).append(judged)
    scores = {at: means({"": of}, ranges={"": (1, 5)})[""] for at, of in by_score.items()}
    series = {
        "judge": tuple(scores.items()),
        "full agreement": tuple((score, score) for score in scores),
    }
    title = f"{name.capitalize()}: the judge's mean over the given score"
    return Figure(title, "given", "judge", series)


def _article_files(
    request: ExperimentRequest[WorkspaceFolder], settings: AgreementSettings
) -> list[Path]:
    """The article files named in the settings, or the ones beside or above the runs. Raises UsageError."""
    name, runs = settings.articles, Path(settings.runs).expanduser()
    folder = runs if runs.is_dir() else runs.parent
    folders = [folder, folder.parent]
    if name:
        path = request.workspace.data(name, "the file of the articles, or their folder", "articles")
        if path.is_file():
            return [path]
        folders = [path]
    for folder in folders:
        if files := sorted(folder.glob(f"{PREFIX}*.jsonl*")):
            return files
    raise UsageError("A judge needs the articles.", hint=Hint("set", "articles=PATH"))


def _sides(pairs: Pairs) -> tuple[list[float], list[float | None], list[str]]:
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs], [pair[2] for pair in pairs]


# ── coefficients ─────────────────────────────────────────────────────────────

Array = NDArray[np.float64]
RESAMPLES = 1000
FEWEST = 3
"""Fewest pairs for a coefficient; two points always lie on a line."""
NAMES = {
    "pearson": "Pearson",
    "spearman": "Spearman",
    "mae": "Mean absolute error",
    "bias": "Bias (judge − given)",
    "exact": "Exactly equal",
}


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement over ``n`` pairs. ``unparsed``: number of answers without a readable judgement. A coefficient is None if one
    side is constant or there are fewer than three pairs."""

    n: int
    unparsed: int
    pearson: Estimate
    spearman: Estimate
    mae: Estimate
    bias: Estimate
    exact: Estimate
    mean_given: float | None
    judged: float | None

    @property
    def cells(self) -> tuple[Any, ...]:
        """A table row, in the order of ``COLUMNS``; None for a coefficient without a value."""
        means = (getattr(self, name) for name in NAMES)
        return (
            self.n,
            self.unparsed,
            self.mean_given,
            self.judged,
            *(mean if mean.value is not None else None for mean in means),
        )

    def to_json(self) -> Json:
        return {name.removeprefix("mean_"): value for name, value in asdict(self).items()}


COLUMNS = ("Pairs", "Unparsed", "Given", "Judged", *NAMES.values())


def measure_agreement(
    scores: Sequence[float],
    judged: Sequence[float | None],
    articles: Sequence[str] | None = None,
    *,
    seed: int = 0,
) -> Agreement:
    """Measure the agreement between two lists of scores in the same order. None marks an unreadable judgement; it is counted
    and left out.

    ``articles``: the article of each answer. The intervals resample whole articles if given, and single answers otherwise.

    >>> agreement = measure_agreement([1, 2, 4, 5], [1, 3, 4, None])
    >>> agreement.n, agreement.unparsed, *(round(getattr(agreement, name).value, 4) for name in ("mae", "exact", "spearman"))
    (3, 1, 0.3333, 0.6667, 1.0)
    """
    rows = [i for i, score in enumerate(judged) if score is not None]
    x = np.array([scores[i] for i in rows], dtype=np.float64)
    y = np.array([judged[i] for i in rows], dtype=np.float64)
    n = len(rows)
    draws = _draws([articles[i] for i in rows] if articles else list(range(n)), seed)
    measured = {name: _mean(measure, x, y, draws, n) for name, measure in MEASURES.items()}
    return Agreement(
        n,
        len(scores) - n,
        **measured,
        mean_given=float(x.mean()) if n else None,
        judged=float(y.mean()) if n else None,
    )


def _mean(
    measure: Callable[[Array, Array], Array],
    x: Array,
    y: Array,
    draws: Sequence[NDArray[np.int64]],
    n: int,
) -> Estimate:
    value = float("nan")
    if n and (n >= FEWEST or measure not in (_pearson, _spearman)):
        value = float(measure(x[None, :], y[None, :])[0])
    if np.isnan(value):
        return Estimate(None, None, None, n)
    resampled = np.concatenate([measure(x[rows], y[rows]) for rows in draws])
    resampled = resampled[~np.isnan(resampled)]
    if not len(resampled):
        return Estimate(value, value, value, n)
    low, high = np.percentile(resampled, [2.5, 97.5])
    return Estimate(value, float(low), float(high), n)


def _draws(labels: Sequence[Any], seed: int) -> list[NDArray[np.int64]]:
    """Resamples of whole articles. Each array has the shape (resamples, answers); there is one for each number of answers."""
    members: dict[Any, list[int]] = {}
    for row, label in enumerate(labels):
        members.setdefault(label, []).append(row)
    groups = [np.array(rows, dtype=np.int64) for rows in members.values()]
    count = len(groups)
    if not count:
        return [np.zeros((0, 0), dtype=np.int64)]
    draws = np.random.default_rng(seed).integers(0, count, size=(RESAMPLES, count))
    if count == len(labels):
        return [draws]
    by_size: dict[int, list[NDArray[np.int64]]] = {}
    for choice in draws:
        rows = np.concatenate([groups[i] for i in choice])
        by_size.setdefault(len(rows), []).append(rows)
    return [np.stack(resamples) for resamples in by_size.values()]


def _pearson(x: Array, y: Array) -> Array:
    """Pearson's coefficient for each row; NaN if one side is constant."""
    from scipy.stats import pearsonr

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant resamples give NaN, which is left out later
        return np.asarray(pearsonr(x, y, axis=1).statistic, dtype=np.float64)


def _spearman(x: Array, y: Array) -> Array:
    """Pearson's coefficient of the ranks (Spearman's); ties share a rank."""
    from scipy.stats import rankdata

    return _pearson(rankdata(x, axis=1), rankdata(y, axis=1))


MEASURES: Mapping[str, Callable[[Array, Array], Array]] = {
    "pearson": _pearson,
    "spearman": _spearman,
    "mae": lambda x, y: np.abs(y - x).mean(axis=1),
    "bias": lambda x, y: (y - x).mean(axis=1),
    "exact": lambda x, y: (y == x).mean(axis=1),
}
