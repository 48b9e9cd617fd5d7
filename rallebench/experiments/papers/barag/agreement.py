"""How far a judge agrees with scores that are there already: BARAG's published answers, scored by GPT-4, or any run files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Figure, Report, Table
from rallebench.core.prompts import check_own
from rallebench.core.settings import Setting
from rallebench.core.types import Example, Gold, Question
from rallebench.engine.statistics import means
from rallebench.experiments.papers import SUITES
from rallebench.experiments.papers.barag import judged
from rallebench.experiments.papers.barag.articles import PREFIX, Article, by_title
from rallebench.experiments.papers.barag.coefficients import (
    COLUMNS,
    Agreement,
    agreement_of,
    by_given,
)
from rallebench.experiments.papers.barag.judged import JUDGING
from rallebench.experiments.papers.barag.prompts import names_of
from rallebench.experiments.papers.barag.runs import Row, Run, read_runs

SCORES = ("truthfulness", "relevance")
Pairs = list[tuple[float, "float | None", str]]
"""(given score, the judge's, the article's title) of each answer."""


@SUITES.register(
    "barag-agreement",
    named_by=("runs", "only"),
    form={
        "runs": Setting(str, "", about="folder of scored run files (JSON lines), or one of them"),
        "articles": Setting(
            str,
            "",
            about=f"folder of {PREFIX}*.jsonl, one file, or a question set; default: beside the runs, or above them",
        ),
        "only": Setting(str, "", about="names of runs, as in A_d_20240123_100407,…; default: all"),
        "compat": Setting(
            str,
            "corrected",
            choices=("corrected", "original"),
            about="original: the judge's system prompt is not sent",
        ),
        "prompts": Setting(
            str, "", about="folder with prompts of your own, named as in prompts/judges"
        ),
        **JUDGING,
    },
)
def agreement(asked: ExperimentRequest) -> Experiment:
    """BARAG's judge, or any other, against given scores: correlation, error and bias with intervals, run by run."""
    runs = _chosen(read_runs(asked.settings["runs"]), asked.settings["only"])
    articles = by_title(_article_files(asked))
    check_own(asked.settings["prompts"], names_of(agents=False, judge=True))
    judge = judged.judge_of(asked, asked.llm)
    todo = {run.name: _cases(run, articles, asked.limit) for run in runs}
    if not any(cases for cases, _ in todo.values()):
        raise UsageError(
            "No scored answer of these runs has its article; give the articles with --set articles=PATH."
        )
    notes: list[str] = []
    pairs: dict[str, dict[str, Pairs]] = {}
    report: dict[str, Any] = {
        "judge": asked.llm,
        "compat": asked.settings["compat"],
        **judge.settings,
        "runs": {},
    }
    for run in runs:
        cases, lost = todo[run.name]
        notes += [
            f"{run.name}: {lost} of {len(run.rows)} answers have no article or no scores and were left out."
        ] * bool(lost)
        if not cases:
            continue
        answered = yield judged.judged_part(
            run.name,
            run.dataset or run.name,
            judge,
            {qid: (example, row.answer) for qid, (example, row, _) in cases.items()},
            {qid: article for qid, (_, _, article) in cases.items()},
        )
        found = judged.scores_in(answered)
        pairs[run.name] = {
            name: [
                (_given(row, name), found.get(qid, {}).get(name), article.title)
                for qid, (_, row, article) in cases.items()
                if qid in answered.episodes
            ]
            for name in SCORES
        }
        report["runs"][run.name] = judged.report_of(answered)
        notes += judged.notes_of(run.name, answered, judge)
    everything = {name: [pair for one in pairs.values() for pair in one[name]] for name in SCORES}
    return _made(
        report,
        notes,
        {**pairs, **({"all": everything} if len(pairs) > 1 else {})},
        everything,
        asked.llm,
    )


def _chosen(runs: tuple[Run, ...], only: str) -> tuple[Run, ...]:
    names = [part.strip() for part in only.split(",") if part.strip()]
    known = {run.name: run for run in runs}
    for name in names:
        if name not in known:
            raise NotFoundError(
                f"There is no run {name!r} among these; they are: {', '.join(known)}."
            )
    return tuple(known[name] for name in dict.fromkeys(names)) or runs


def _article_files(asked: ExperimentRequest) -> list[Path]:
    """Raises UsageError."""
    given, runs = asked.settings["articles"], Path(asked.settings["runs"]).expanduser()
    if given:
        path = asked.workspace.data(given, "the file of the articles, or their folder", "articles")
        files = [path] if path.is_file() else sorted(path.glob(f"{PREFIX}*.jsonl*"))
    else:
        folder = runs if runs.is_dir() else runs.parent
        files = next(
            (
                found
                for place in (folder, folder.parent)
                if (found := sorted(place.glob(f"{PREFIX}*.jsonl*")))
            ),
            [],
        )
    if not files:
        raise UsageError(
            "A judge needs the articles, and none were found; give them with --set articles=PATH."
        )
    return files


def _cases(
    run: Run, articles: Mapping[tuple[str, str], Article], limit: int | None
) -> tuple[dict[str, tuple[Example, Row, Article]], int]:
    """The first answers of a run that have scores and an article, and how many have not."""
    found: dict[str, tuple[Example, Row, Article]] = {}
    lost = 0
    for number, row in enumerate(run.rows[:limit]):
        article = articles.get((row.title, row.question)) or articles.get((row.title, ""))
        if article is None or row.total is None:
            lost += 1
            continue
        qid = row.id if row.id and row.id not in found else f"{row.id or 'row'}-{number}"
        record = {"id": qid, "input": row.question, "output": [], "title": row.title}
        found[qid] = Example(Question(qid, row.question), Gold(), record), row, article
    return found, lost


def _given(row: Row, name: str) -> float:
    value = row.truthfulness if name == "truthfulness" else row.relevance
    assert value is not None
    return float(value)


def _made(
    report: dict[str, Any],
    notes: list[str],
    pairs: Mapping[str, Mapping[str, Pairs]],
    everything: Mapping[str, Pairs],
    llm: str,
) -> Report:
    tables, plots = [], []
    for name in SCORES:
        found: dict[str, Agreement] = {
            run: agreement_of(*_sides(one[name])) for run, one in pairs.items()
        }
        report[name] = {run: one.as_json() for run, one in found.items()}
        rows = tuple((run, *one.cells) for run, one in found.items())
        tables.append(
            Table(f"{name.capitalize()}: {llm} against the given scores", ("Run", *COLUMNS), rows)
        )
        given, said, _ = _sides(everything[name])
        points = {
            score: means({"judge": values}, ranges={"judge": (1, 5)})["judge"]
            for score, values in by_given(given, said).items()
        }
        series = {
            "judge": tuple(points.items()),
            "full agreement": tuple((score, score) for score in points),
        }
        plots.append(
            Figure(
                f"{name.capitalize()}: the judge's mean over the given score",
                "given",
                "judge",
                series,
            )
        )
        if not points:
            notes.append(
                f"No judgement of {name} could be read, so there is no agreement to report."
            )
    return Report(report, tuple(notes), tables=tuple(tables), figures=tuple(plots))


def _sides(pairs: Pairs) -> tuple[list[float], list[float | None], list[str]]:
    return [given for given, _, _ in pairs], [said for _, said, _ in pairs], [a for *_, a in pairs]
