"""How far a judge agrees with scores that are there already: BARAG's published answers, scored by GPT-4, or any run files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rallebench.core.errors import BackendError, UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Figure, Report, Table
from rallebench.core.prompts import check_own
from rallebench.core.runs import RunRequest, RunResult
from rallebench.core.settings import Setting
from rallebench.core.types import digest
from rallebench.engine.statistics import means
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.papers.barag import PAPER
from rallebench.experiments.papers.barag.articles import PREFIX, BaragArticle, by_title, example_of
from rallebench.experiments.papers.barag.coefficients import COLUMNS, agreement_of, by_given
from rallebench.experiments.papers.barag.judged import JUDGING, judge_of, notes_of, report_of
from rallebench.experiments.papers.barag.runs import AnswerRow, Run, read_runs
from rallebench.experiments.papers.barag.study import JUDGE_PROMPTS, SCORES
from rallebench.experiments.papers.common import compat, own_prompts, string, values_in
from rallebench.experiments.runs import replay, scored_run

REPORTED = ("form", "compat", "temperature", "seed", "repeats", "swap")
"""The settings of the judge that the report lists."""
Pairs = list[tuple[float, "float | None", str]]
"""(given score, the judge's, the article's title) of each answer."""


@EXPERIMENTS.register(
    "barag-agreement",
    place="suites",
    paper=PAPER,
    named_by=("runs", "only"),
    form={
        "runs": string("folder of scored run files (JSON lines), or one of them"),
        "articles": string(
            f"folder of {PREFIX}*.jsonl, one file, or a question set; default: beside the runs, or above them"
        ),
        "only": string("names of runs, as in A_d_20240123_100407,…; default: all"),
        "compat": compat("original: the judge's system prompt is not sent"),
        "prompts": own_prompts("judges"),
        **JUDGING,
    },
)
def agreement(request: ExperimentRequest) -> Experiment:
    """BARAG's judge, or any other, against given scores: correlation, error and bias with intervals, run by run."""
    s = request.settings
    known = {run.name: run for run in read_runs(s["runs"])}
    names = values_in("only", s["only"], Setting(str, "", choices=tuple(known)))
    runs = [known[name] for name in names or known]
    articles = by_title(_article_files(request))
    check_own(s["prompts"], JUDGE_PROMPTS)
    samples = [_sample(run, articles, request.limit) for run in runs]
    requests = [_run(request, sample) for sample in samples if sample.answers]
    if not requests:
        raise UsageError(
            "No scored answer of these runs has its article; give the articles with --set articles=PATH."
        )
    results: dict[str, RunResult] = {}
    for run in requests:
        results[run.label] = yield run
    judge = requests[0].judges[0]
    if not any(judge.name in result.judgements for result in results.values()):
        raise BackendError(next(iter(results.values())).warnings[-1])
    report: dict[str, Any] = {
        "judge": request.llm,
        **{name: value for name, value in judge.settings.items() if name in REPORTED},
        "runs": {},
    }
    notes: list[str] = []
    pairs: dict[str, dict[str, Pairs]] = {}
    for sample in samples:
        name, lost = sample.run.name, sample.lost
        notes += [
            f"{name}: {lost} of {len(sample.run.rows)} answers have no article or no scores and were left out."
        ] * bool(lost)
        if name in results:
            pairs[name] = {score: sample.pairs(results[name], score) for score in SCORES}
            report["runs"][name] = report_of(results[name], judge)
            notes += notes_of(name, report["runs"][name], judge)
    together = {
        name: [pair for of_run in pairs.values() for pair in of_run[name]] for name in SCORES
    }
    if len(pairs) > 1:
        pairs["all"] = together
    tables, figures = [], []
    for name in SCORES:
        agreements = {run: agreement_of(*_sides(of_run[name])) for run, of_run in pairs.items()}
        report[name] = {run: value.as_json() for run, value in agreements.items()}
        rows = tuple((run, *value.cells) for run, value in agreements.items())
        title = f"{name.capitalize()}: {request.llm} against the given scores"
        tables.append(Table(title, ("Run", *COLUMNS), rows))
        figures.append(_figure(name, together[name]))
        if not figures[-1].series["judge"]:
            notes.append(
                f"No judgement of {name} could be read, so there is no agreement to report."
            )
    return Report(report, tuple(notes), tables=tuple(tables), figures=tuple(figures))


@dataclass(frozen=True, slots=True)
class ScoredAnswers:
    """The answers of a run file that have scores and an article, by question id; ``lost``: how many have not."""

    run: Run
    answers: Mapping[str, tuple[AnswerRow, BaragArticle]]
    lost: int

    def pairs(self, result: RunResult, score: str) -> Pairs:
        """The given and the judge's scores of the answers that could be judged."""
        judgements = result.judgements.get(result.request.judges[0].name, {})
        return [
            (float(getattr(row, score)), result.values[score].get(qid), article.title)
            for qid, (row, article) in self.answers.items()
            if qid in judgements
        ]


def _sample(
    run: Run, articles: Mapping[tuple[str, str], BaragArticle], limit: int | None
) -> ScoredAnswers:
    answers: dict[str, tuple[AnswerRow, BaragArticle]] = {}
    rows = run.rows[:limit]
    for number, row in enumerate(rows):
        article = articles.get((row.title, row.question)) or articles.get((row.title, ""))
        if article is not None and row.total is not None:
            qid = row.id if row.id and row.id not in answers else f"{row.id or 'row'}-{number}"
            answers[qid] = row, article
    return ScoredAnswers(run, answers, len(rows) - len(answers))


def _run(request: ExperimentRequest, sample: ScoredAnswers) -> RunRequest:
    """The answers of a run file as a run, which asks nothing but the judge."""
    run, answers = sample.run, {qid: row.answer for qid, (row, _) in sample.answers.items()}
    examples = tuple(
        example_of(replace(article, id=qid, question=row.question))
        for qid, (row, article) in sample.answers.items()
    )
    return scored_run(
        run.name,
        "barag-answers",
        run.dataset or run.name,
        examples,
        lambda question: replay(answers[question.qid]),
        {"answers": digest(answers)},
        lambda example, episode: {},
        {},
        judges=(judge_of(request, request.llm, examples),),
    )


def _figure(name: str, pairs: Pairs) -> Figure:
    given_scores, judged, _ = _sides(pairs)
    columns = by_given(given_scores, judged)
    scores = {at: means({"": of}, ranges={"": (1, 5)})[""] for at, of in columns.items()}
    series = {
        "judge": tuple(scores.items()),
        "full agreement": tuple((score, score) for score in scores),
    }
    title = f"{name.capitalize()}: the judge's mean over the given score"
    return Figure(title, "given", "judge", series)


def _article_files(request: ExperimentRequest) -> list[Path]:
    """The files of articles: those that are named, or those beside the runs or above them. Raises UsageError."""
    name, runs = request.settings["articles"], Path(request.settings["runs"]).expanduser()
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
    raise UsageError("A judge needs the articles; give them with --set articles=PATH.")


def _sides(pairs: Pairs) -> tuple[list[float], list[float | None], list[str]]:
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs], [pair[2] for pair in pairs]
