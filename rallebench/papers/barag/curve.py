"""A boolean agent with a decision threshold: a curve of quality against tokens instead of a single point.

Each question is answered once without passages and once with them. Any number known before reading the passages can then
select the answer: the draft's confidence, its token probabilities, its agreement with further samples, or the retrieval score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from rallebench.core.errors import Hint, UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Report
from rallebench.core.json_values import object_json
from rallebench.core.runs import RunRequest
from rallebench.core.scoring import Scorer, Values
from rallebench.core.settings import (
    Setting,
    dataclass_form,
    declare,
    declare_group,
    declare_text,
)
from rallebench.core.types import Episode, Example
from rallebench.experiments.common import failed_note, sentences, values_in
from rallebench.papers.barag.articles import sets_in
from rallebench.papers.barag.benchmark import BARAG
from rallebench.papers.barag.curve_report import JUDGED, MEASURES, curve_report, measure_curves
from rallebench.papers.barag.decisions import read_boolean
from rallebench.papers.barag.judged import (
    JudgementCounts,
    JudgeSettings,
    count_judgements,
    judge_notes,
    judge_study,
)
from rallebench.papers.barag.points import BranchedCase
from rallebench.papers.barag.runs import sum_counts
from rallebench.papers.barag.study import (
    AskingSettings,
    DataSettings,
    Study,
    answer_worth,
    read_study,
    sum_tokens,
)
from rallebench.papers.barag.workflow_uncertain import (
    SIGNALS,
    Branches,
    Rule,
    best_score,
    both_branches,
    certainty,
    declare_draft_passages,
    find_branches,
)
from rallebench.workspace.paths import WorkspaceFolder

BRANCHES = {"draft": "draft", "read": "answer with passages"}


@dataclass(frozen=True, slots=True)
class CurveSettings:
    """The settings of ``barag-curve``."""

    data: DataSettings = declare_group(DataSettings)
    asking: AskingSettings = declare_group(AskingSettings)
    draft_passages: int = declare_draft_passages()
    samples: int = declare(
        int,
        0,
        0,
        100,
        about="further drafts, whose agreement with the draft is a signal",
    )
    logprobs: bool = declare(
        bool, False, about="ask the model for its tokens' probabilities, also a signal"
    )
    ask: bool = declare(
        bool, False, about="ask the model as barag-advanced does: a point beside the curve"
    )
    thresholds: str = declare_text(
        "as in 0.2,0.5; default: one at every tenth of the questions", many=True
    )
    quality: str = declare_text(
        "auto: both with a judge, else f1, else grounded", "auto", *MEASURES
    )
    judge: JudgeSettings = declare_group(JudgeSettings)


@BARAG.suite(
    "barag-curve",
    ready="Without a download: BM25, MiniLM and the embedded reader in English; in Chinese BM25, with a model that you choose.",
    sets=sets_in,
    form=dataclass_form(CurveSettings),
)
def boolean_curve(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """BARAG with a threshold: passages read by a draft's uncertainty or the retrieval's score; quality against tokens."""
    settings = request.read(CurveSettings)
    thresholds = values_in("thresholds", settings.thresholds, Setting(float, 0))
    study = read_study(
        request,
        settings.data,
        settings.asking,
        judged=bool(settings.judge.judge),
        logprobs=settings.logprobs,
    )
    quality = _quality(settings.quality, study, bool(settings.judge.judge))
    judges = _judges(study, settings)
    result = yield _run(study, settings, quality, judges if quality in JUDGED else ())
    branches = {
        qid: pair
        for qid, episode in result.episodes.items()
        if (pair := find_branches(episode, settings.samples, settings.ask))
    }
    refused = len(result.episodes) - len(branches)
    notes = [
        *study.notes,
        *failed_note("", result, "in no point"),
        *sentences((refused, f"{refused} questions are blank or too long and were not asked.")),
    ]
    counts: dict[str, JudgementCounts] = {}
    for branch, judge in zip(BRANCHES, result.request.judges):
        if count := count_judgements(result, judge):
            counts[f"judge of {branch}"] = count
            notes += judge_notes(branch, count, settings.judge.judging)
    every = [_case(qid, pair, result.values, quality) for qid, pair in branches.items()]
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
    report = {
        "dataset": study.name,
        "llm": request.llm,
        "quality": quality,
        "measure": MEASURES[quality],
        **object_json(counts),
    }
    if not cases:
        return Report(report, tuple(notes))
    curves = measure_curves(
        study, quality, cases, thresholds, seen=settings.draft_passages, ask=settings.ask
    )
    return curve_report(curves, report, notes)


def _run(
    study: Study, settings: CurveSettings, quality: str, judges: tuple[Scorer, ...]
) -> RunRequest:
    """A run with both branches of each question, their tokens and their worth."""
    ask, has_worth = settings.ask, quality not in JUDGED
    rule = Rule(samples=settings.samples, draft_passages=settings.draft_passages)

    def score(example: Example, episode: Episode) -> Values:
        branches = find_branches(episode, rule.samples, ask)
        if branches is None:
            return {}
        values: dict[str, float | None] = {}
        for name in BRANCHES:
            step = branches.step(name)
            values[f"{name}_tokens"] = sum_counts(sum_tokens([step]))
            if has_worth:
                values[f"{name}_worth"] = answer_worth(study, example, step.reply.text).get(quality)
        return values

    worth = {
        f"{name}_worth": f"The {text}: {MEASURES[quality]}." for name, text in BRANCHES.items()
    }
    tokens = {f"{name}_tokens": f"Tokens of the {name}, sent and written." for name in BRANCHES}
    return study.run(
        "both branches",
        "barag-both",
        partial(both_branches, rule=rule, ask=ask),
        {"samples": rule.samples, "draft_passages": rule.draft_passages, "ask": ask},
        score,
        {**worth, **tokens} if has_worth else tokens,
        judges,
        decides=ask,
        drafts=True,
    )


def _judges(study: Study, settings: CurveSettings) -> tuple[Scorer, ...]:
    """The judges of the drafts and of the answers with passages; () without a judge. Raises UsageError."""

    def text(episode: Episode, branch: str) -> str | None:
        branches = find_branches(episode, settings.samples, settings.ask)
        return branches.step(branch).reply.text if branches else None

    return tuple(
        judge_study(study, settings.judge, branch, partial(text, branch=branch))
        for branch in (BRANCHES if settings.judge.judge else ())
    )


def _quality(wish: str, study: Study, has_judge: bool) -> str:
    """The quality measure of the curve. Raises UsageError if the questions do not support it."""
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
    """The case of a question; None if a score or token count is unknown."""
    names = JUDGED.get(quality, ("worth",))
    scores = [values.get(f"{branch}_{name}", {}).get(qid) for branch in BRANCHES for name in names]
    decision = (branches.decision,) if branches.decision else ()
    steps = ((branches.draft,), (branches.read,), branches.samples, decision)
    counts = [
        (sent, written)
        for sent, written in map(sum_tokens, steps)
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
