"""A better boolean agent at every threshold: a curve of quality against tokens instead of one point.

Every question is answered once without and once with passages. When passages are worth their tokens can then be decided afterwards by
any number that was there before: the draft's confidence, its tokens' probabilities, the agreement of further samples, the
retrieval's score.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from rallebench.core.errors import Hint, UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Report
from rallebench.core.runs import RunRequest
from rallebench.core.scoring import Scorer, Values
from rallebench.core.settings import Setting
from rallebench.core.tables import Figure, Table
from rallebench.core.types import Episode, Example, Step
from rallebench.engine.clusters import find_clusters
from rallebench.experiments.common import failed_note, sentences, string, values_in
from rallebench.experiments.significance import tests_of
from rallebench.papers.barag import points
from rallebench.papers.barag.articles import sets_in
from rallebench.papers.barag.benchmark import BARAG
from rallebench.papers.barag.decisions import read_boolean
from rallebench.papers.barag.judged import JUDGE, JUDGING, judge_of, notes_of, report_of
from rallebench.papers.barag.points import BranchedCase, CurvePoint
from rallebench.papers.barag.runs import total_of
from rallebench.papers.barag.study import (
    ASKING,
    DATA,
    Study,
    study_of,
    tokens_of,
    worth_of,
)
from rallebench.papers.barag.workflow_uncertain import (
    RULE_SETTINGS,
    SIGNALS,
    Branches,
    Rule,
    best_score,
    both,
    branches_of,
    certainty,
)

BRANCHES = {"draft": "draft", "read": "answer with passages"}
JUDGED = {
    "both": ("truthfulness", "relevance"),
    "truthfulness": ("truthfulness",),
    "relevance": ("relevance",),
}
"""Quality → the judge's scores that it is the mean of."""
MEASURES = {
    "both": "mean of the judge's truthfulness and relevance, 1 to 5",
    "truthfulness": "the judge's truthfulness, 1 to 5",
    "relevance": "the judge's relevance, 1 to 5",
    "f1": "word F1 with the best gold answer, 0 for one that declines",
    "em": "exact match with a gold answer",
    "grounded": "share of the answer's words that stand in the question's own article, 0 for one that declines",
}
READ_ALL = "Read all passages"
"""The heading of the share of questions that read on where drafts have read some passages already."""
COLUMNS = ("Input tokens", "Output tokens", "Tokens a question", "Quality", "Coin")


@BARAG.suite(
    "barag-curve",
    ready="Without a download: BM25, MiniLM and the embedded reader in English; in Chinese BM25, with a model that you choose.",
    sets=sets_in,
    form={
        **DATA,
        **ASKING,
        "draft_passages": RULE_SETTINGS["draft_passages"],
        "samples": Setting(
            int,
            0,
            0,
            100,
            about="further drafts; their agreement with the draft is then a signal, too",
        ),
        "logprobs": Setting(
            bool, False, about="ask the model for its tokens' probabilities, a signal, too"
        ),
        "ask": Setting(
            bool, False, about="ask the model as barag-advanced does: a point beside the curve"
        ),
        "thresholds": string(
            "as in 0.2,0.5; default: where every tenth of the questions begins to read", many=True
        ),
        "quality": string("auto: both with a judge, else f1, else grounded", "auto", *MEASURES),
        **JUDGE,
        **JUDGING,
    },
)
def boolean_curve(request: ExperimentRequest) -> Experiment:
    """BARAG done better: reading by a draft's uncertainty or the retrieval's score, quality against tokens over all thresholds."""
    s = request.settings
    thresholds = values_in("thresholds", s["thresholds"], Setting(float, 0))
    study = study_of(request, logprobs=s["logprobs"])
    quality = _quality(s["quality"], study, bool(s["judge"]))
    rule = Rule(samples=s["samples"], draft_passages=s["draft_passages"])
    judges = _judges(study, rule)
    result = yield _run(study, rule, quality, judges if quality in JUDGED else ())
    branches = {
        qid: of_question
        for qid, episode in result.episodes.items()
        if (of_question := branches_of(episode, rule.samples, s["ask"]))
    }
    report: dict[str, Any] = {
        "dataset": study.name,
        "llm": request.llm,
        "quality": quality,
        "measure": MEASURES[quality],
    }
    refused = len(result.episodes) - len(branches)
    notes = [
        *study.notes,
        *failed_note("", result, "in no point"),
        *sentences((refused, f"{refused} questions are blank or too long and were not asked.")),
    ]
    for branch, judge in zip(BRANCHES, result.request.judges):
        if judged := report_of(result, judge):
            report[f"judge of {branch}"] = judged
            notes += notes_of(branch, judged, judge)
    every = [
        _case(qid, of_question, result.values, quality) for qid, of_question in branches.items()
    ]
    cases = [case for case in every if case]
    lacking = len(every) - len(cases)
    notes += sentences(
        (
            lacking,
            f"{lacking} of {len(every)} questions lack a score or a token count and are in no point.",
        ),
        (
            not cases,
            "No question has both branches with scores and counted tokens, so there is no curve.",
        ),
    )
    if not cases:
        return Report(report, tuple(notes))
    return _report(study, report, notes, cases, thresholds)


def _run(study: Study, rule: Rule, quality: str, judges: tuple[Scorer, ...]) -> RunRequest:
    """Both branches of every question, with their tokens and their worth."""
    ask, has_worth = study.request.settings["ask"], quality not in JUDGED

    def score(example: Example, episode: Episode) -> Values:
        branches = branches_of(episode, rule.samples, ask)
        values: dict[str, float | None] = {}
        for name in BRANCHES if branches else ():
            step: Step = getattr(branches, name)
            values[f"{name}_tokens"] = total_of(tokens_of([step]))
            if has_worth:
                values[f"{name}_worth"] = worth_of(study, example, step.reply.text).get(quality)
        return values

    worth = {
        f"{name}_worth": f"The {text}: {MEASURES[quality]}." for name, text in BRANCHES.items()
    }
    tokens = {f"{name}_tokens": f"Tokens of the {name}, sent and written." for name in BRANCHES}
    return study.run(
        "both branches",
        "barag-both",
        partial(both, rule=rule, ask=ask),
        {"samples": rule.samples, "draft_passages": rule.draft_passages, "ask": ask},
        score,
        {**worth, **tokens} if has_worth else tokens,
        judges,
        decides=ask,
        drafts=True,
    )


def _judges(study: Study, rule: Rule) -> tuple[Scorer, ...]:
    """The judge of the drafts and that of the answers with passages; () without a judge. Raises UsageError."""
    s = study.request.settings

    def text(episode: Episode, branch: str) -> str | None:
        branches = branches_of(episode, rule.samples, s["ask"])
        return getattr(branches, branch).reply.text if branches else None

    return tuple(
        judge_of(
            study.request, s["judge"], study.set.examples, branch, partial(text, branch=branch)
        )
        for branch in (BRANCHES if s["judge"] else ())
    )


def _quality(wish: str, study: Study, has_judge: bool) -> str:
    """The quality that the curve shows. Raises UsageError where the questions do not allow it."""
    own = study.quality
    best = "both" if has_judge else "".join(own[:1])
    quality = best if wish == "auto" else wish
    if quality in JUDGED and not (has_judge and study.set.articles):
        raise UsageError(
            f"quality={quality} needs articles (rows with title and content) and a judge.",
            hint=Hint("set", "judge=MODEL"),
        )
    if quality not in JUDGED and quality not in own:
        raise UsageError(
            f"{study.set.path} has neither gold answers nor articles for quality={quality or 'auto'}; it can be: {', '.join(own) or 'none'}."
        )
    return quality


def _case(
    qid: str, branches: Branches, values: Mapping[str, Values], quality: str
) -> BranchedCase | None:
    """None where a score or a count is not known."""
    names = JUDGED.get(quality, ("worth",))
    scores = [values.get(f"{branch}_{name}", {}).get(qid) for branch in BRANCHES for name in names]
    decision = (branches.decision,) if branches.decision else ()
    steps = ((branches.draft,), (branches.read,), branches.samples, decision)
    counts = [
        (sent, written)
        for sent, written in map(tokens_of, steps)
        if sent is not None and written is not None
    ]
    known = [score for score in scores if score is not None]
    if len(known) < len(scores) or len(counts) < len(steps):
        return None
    n = len(names)
    draft, read, samples, decided = counts
    replies = [step.reply for step in branches.samples]
    signals: dict[str, float | None] = {
        name: certainty(name, branches.draft.reply, replies) for name in SIGNALS[:3]
    }
    signals["retrieval"] = best_score(branches.hits)
    wants = read_boolean(branches.decision.reply, "moreInfo") if branches.decision else None
    worth = (sum(known[:n]) / n, sum(known[n:]) / n)
    return BranchedCase(qid, *worth, draft, read, samples, decided, signals, wants)


def _report(
    study: Study,
    report: dict[str, Any],
    notes: list[str],
    cases: list[BranchedCase],
    thresholds: Sequence[float],
) -> Report:
    s = study.request.settings
    seen, about = s["draft_passages"], f"{study.name}, {study.request.llm}"
    ends = [points.never(cases, seen), points.always(cases)]
    if seen:
        notes.append(
            f"Every draft has read {seen} passage{'s' * (seen != 1)}, so no point is without retrieval; {READ_ALL} counts the second answers."
        )
    curves = {
        signal: points.curve(cases, signal, thresholds)
        for signal in SIGNALS
        if any(case.value(signal) not in (None, 0.0) for case in cases)
    }
    by_model = [points.model_asked(cases)] if s["ask"] else []
    single = [*ends, points.oracle(cases), *by_model]
    tested = {
        f"{point.name} less {ends[1].name}": (ends[1], point) for point in (ends[0], *by_model)
    }
    if "confidence" not in curves:
        notes.append(
            "No draft has a confidence above 0, so there is no curve of it; all drafts declined, or the model gives none."
        )
    for signal, curve in curves.items():
        report[f"{signal}_auroc"] = points.helps(cases, signal)
        notes.append(_savings(signal, points.as_good(curve, ends[1]), ends[1]))
        if (trial := points.held_out(cases, signal)) is not None:
            point, full = trial
            report[f"{signal}_held_out"] = {**point.to_json(), "always": full.to_json()}
            tested[f"{signal}, held out, less {full.name}"] = full, point
            notes.append(
                f"{signal}: chosen so on every second question, the threshold {point.threshold:.4g} gives on the others {point.quality.value:.4f} "
                f"against {full.quality.value:.4f} at {point.tokens / full.tokens - 1:+.1%} tokens."
            )
    notes.append(
        "The points of a curve are thresholds looked at on the questions that they would be chosen on."
    )
    n, measure = len(cases), report["measure"]
    report |= {
        "questions": n,
        "points": {point.name: point.to_json() for point in single},
        "curves": {
            signal: [point.to_json() for point in curve] for signal, curve in curves.items()
        },
    }
    columns = ("Agent", "Threshold", READ_ALL if seen else "Retrieved", *COLUMNS)
    note = f"Quality: {measure}. Coin: reading as many questions, chosen at random."
    tables = tuple(
        Table(f"{title}: {about}", columns, tuple(_row(point, n) for point in of_table), note=note)
        for title, of_table in {"Without a threshold": single, **curves}.items()
    )
    series = {
        f"coin ({ends[0].name} … always)": _line(ends, n),
        **{
            signal: _line(sorted(curve, key=lambda point: point.tokens), n)
            for signal, curve in curves.items()
        },
        **{point.name: _line([point], n) for point in single[2:]},
    }
    figure = Figure(f"Quality against tokens: {about}", "tokens a question", measure, series)
    return Report(
        report, tuple(notes), tables=(*tables, *_tests(study, report, tested)), figures=(figure,)
    )


def _tests(
    study: Study, report: Mapping[str, Any], tested: Mapping[str, tuple[CurvePoint, CurvePoint]]
) -> tuple[Table, ...]:
    """The ends, the model asked, and each threshold on the questions that it was not chosen on, against reading always."""
    quality, clusters = report["quality"], find_clusters(study.set.examples).of
    bounds = dict.fromkeys(JUDGED, (1.0, 5.0))
    return tests_of(
        {
            (label, quality): (quality, first.worth, other.worth, clusters)
            for label, (first, other) in tested.items()
        },
        bounds if quality in bounds else None,
    )


def _savings(signal: str, best: CurvePoint | None, full: CurvePoint) -> str:
    """The saving of the cheapest threshold that is as good as reading always."""
    if best is None:
        return f"{signal}: no threshold keeps {points.ENOUGH:.0%} of the quality of reading always with fewer tokens."
    return (
        f"{signal}: at threshold {best.threshold:.4g}, {best.share:.0%} of the questions read; that is {best.tokens / full.tokens - 1:+.1%} tokens "
        f"compared with reading always, at a quality of {best.quality.value:.4f} against {full.quality.value:.4f}."
    )


def _row(point: CurvePoint, n: int) -> tuple[Any, ...]:
    threshold = None if point.threshold is None else f"{point.threshold:.4g}"
    counts = point.n_in, point.n_out, round(point.tokens / n, 1)
    return (point.name, threshold, f"{point.share:.0%}", *counts, point.quality, point.coin)


def _line(curve: Iterable[CurvePoint], n: int) -> tuple[tuple[float, Any], ...]:
    return tuple((point.tokens / n, point.quality) for point in curve)
