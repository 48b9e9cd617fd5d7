"""A better boolean agent, and what every threshold of it would give: a curve of quality against tokens instead of one point.

Every question is answered once without and once with passages. When passages are worth their tokens can then be decided afterwards by
any number that was there before: the draft's confidence, its tokens' probabilities, the agreement of further samples, the
retrieval's score.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Figure, Report, Table
from rallebench.core.runs import RunRequest, RunResult, Values
from rallebench.core.settings import Setting
from rallebench.core.types import Episode, Example, Flow, Question, Step
from rallebench.experiments.papers import SUITES
from rallebench.experiments.papers.barag import judged, points
from rallebench.experiments.papers.barag.judged import JUDGE, JUDGING
from rallebench.experiments.papers.barag.points import Case, Point
from rallebench.experiments.papers.barag.study import (
    ASKING,
    DATA,
    Study,
    study_of,
    tokens_of,
    worth_of,
)
from rallebench.experiments.runs import scored_run
from rallebench.workflows.barag import BaragAgent
from rallebench.workflows.barag_decisions import read_boolean
from rallebench.workflows.barag_uncertain import (
    RULE_SETTINGS,
    SIGNALS,
    Branches,
    Rule,
    best_score,
    both,
    branches_of,
    certainty,
)

QUALITIES = ("auto", "both", "truthfulness", "relevance", "f1", "em", "grounded")
JUDGED = ("both", "truthfulness", "relevance")
READ_ALL = "Read all passages"
"""The heading of the share of questions that read on where drafts have read some passages already."""
WHAT = {
    "both": "mean of the judge's truthfulness and relevance, 1 to 5",
    "truthfulness": "the judge's truthfulness, 1 to 5",
    "relevance": "the judge's relevance, 1 to 5",
    "f1": "word F1 with the best gold answer, 0 for one that declines",
    "em": "exact match with a gold answer",
    "grounded": "share of the answer's words that stand in the question's own article, 0 for one that declines",
}


@SUITES.register(
    "barag-curve",
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
        "thresholds": Setting(
            str,
            "",
            about="as in 0.2,0.5; default: where every tenth of the questions begins to read",
        ),
        "quality": Setting(
            str, "auto", choices=QUALITIES, about="auto: both with a judge, else f1, else grounded"
        ),
        **JUDGE,
        **JUDGING,
    },
)
def boolean_curve(asked: ExperimentRequest) -> Experiment:
    """BARAG done better: reading by a draft's uncertainty or the retrieval's score, quality against tokens over all thresholds."""
    s = asked.settings
    thresholds = _thresholds(s["thresholds"])
    study = study_of(asked, logprobs=s["logprobs"])
    judge = judged.judge_of(asked, s["judge"]) if s["judge"] else None
    quality = _quality(s["quality"], study, judge is not None)
    rule = Rule(samples=s["samples"], draft_passages=s["draft_passages"])
    answered = yield _part(study, rule, s["ask"], quality)
    examples = {example.question.qid: example for example in study.set.examples}
    found = {
        qid: branches
        for qid, e in answered.episodes.items()
        if (branches := branches_of(e, rule.samples, s["ask"]))
    }
    notes = [*study.set.notes, *_losses(answered, found)]
    report: dict[str, Any] = {
        "dataset": study.name,
        "llm": asked.llm,
        "quality": quality,
        "measure": WHAT[quality],
    }
    worth = {qid: _own(study, examples[qid], branches, quality) for qid, branches in found.items()}
    if judge and quality in JUDGED and found:
        scores = []
        for label, text in (("draft", _draft_of), ("read", _read_of)):
            said = {qid: (examples[qid], text(branches)) for qid, branches in found.items()}
            verdicts = yield judged.judged_part(
                f"{label} judged ", study.name, judge, said, study.set.articles
            )
            scores.append(judged.scores_in(verdicts))
            report[f"judge of {label}"] = judged.report_of(verdicts)
            notes += judged.notes_of(label, verdicts, judge)
        worth = {
            qid: (_score(scores[0].get(qid), quality), _score(scores[1].get(qid), quality))
            for qid in found
        }
    cases = [case for qid, branches in found.items() if (case := _case(qid, branches, worth[qid]))]
    if len(cases) < len(found):
        notes.append(
            f"{len(found) - len(cases)} of {len(found)} questions lack a score or a token count and are in no point."
        )
    if not cases:
        return Report(
            report,
            (
                *notes,
                "No question has both branches with scores and counted tokens, so there is no curve.",
            ),
        )
    return _made(
        report,
        notes,
        cases,
        thresholds,
        s["ask"],
        rule.draft_passages,
        f"{study.name}, {asked.llm}",
    )


def _part(study: Study, rule: Rule, ask: bool, quality: str) -> RunRequest:
    def score(example: Example, episode: Episode) -> Values:
        branches = branches_of(episode, rule.samples, ask)
        if branches is None:
            return {}
        values: dict[str, float | None] = {}
        for name, steps in (("draft", (branches.draft,)), ("read", (branches.read,))):
            values[f"{name}_tokens"] = _total(steps)
        if quality not in JUDGED:
            values["draft_worth"], values["read_worth"] = _own(study, example, branches, quality)
        return values

    told = "" if quality in JUDGED else WHAT[quality]
    metrics = {
        f"{name}_worth": f"The {what}: {told}."
        for name, what in (("draft", "draft"), ("read", "answer with passages"))
        if told
    }
    metrics |= {
        f"{name}_tokens": f"Tokens of the {name}, sent and written." for name in ("draft", "read")
    }
    settings = {
        **study.settings,
        "samples": rule.samples,
        "draft_passages": rule.draft_passages,
        "ask": ask,
    }

    def flow(question: Question, agent: BaragAgent) -> Flow:
        return both(question, agent=agent, rule=rule, ask=ask)

    run = scored_run(
        "both branches",
        "barag-both",
        study.name,
        study.set.examples,
        lambda question: flow(question, study.agent),
        settings,
        score,
        metrics,
        (study.asked.llm,),
        (study.agent.retriever,),
    )
    return study.deciding(run, flow) if ask else run


def _quality(wanted: str, study: Study, has_judge: bool) -> str:
    """What the curve's height is. Raises UsageError where it cannot be had."""
    own = study.quality
    if wanted == "auto":
        wanted = "both" if has_judge else own[0] if own else ""
    if wanted in JUDGED and not (has_judge and study.set.articles):
        raise UsageError(
            f"quality={wanted} needs a judge and articles: --set judge=MODEL, and rows with title and content."
        )
    if wanted not in JUDGED and wanted not in own:
        raise UsageError(
            f"{study.set.path} has neither gold answers nor articles for quality={wanted or 'auto'}; it can be: {', '.join(own) or 'none'}."
        )
    return wanted


def _own(
    study: Study, example: Example, branches: Branches, quality: str
) -> tuple[float | None, float | None]:
    if quality in JUDGED:
        return None, None
    return (
        worth_of(study, example, _draft_of(branches)).get(quality),
        worth_of(study, example, _read_of(branches)).get(quality),
    )


def _draft_of(branches: Branches) -> str:
    return branches.draft.reply.text


def _read_of(branches: Branches) -> str:
    return branches.read.reply.text


def _score(values: Mapping[str, float] | None, quality: str) -> float | None:
    if not values:
        return None
    return (
        (values["truthfulness"] + values["relevance"]) / 2 if quality == "both" else values[quality]
    )


def _total(steps: tuple[Step, ...]) -> float | None:
    sent, written = tokens_of(steps)
    return None if sent is None or written is None else float(sent + written)


def _case(qid: str, branches: Branches, worth: tuple[float | None, float | None]) -> Case | None:
    """None where a score or a count is not known."""
    tokens = []
    for steps in (
        (branches.draft,),
        (branches.read,),
        branches.samples,
        (branches.decision,) if branches.decision else (),
    ):
        sent, written = tokens_of(steps)
        if sent is None or written is None:
            return None
        tokens.append((sent, written))
    if worth[0] is None or worth[1] is None:
        return None
    replies = [step.reply for step in branches.samples]
    signals: dict[str, float | None] = {
        name: certainty(name, branches.draft.reply, replies) for name in SIGNALS[:3]
    }
    signals["retrieval"] = best_score(branches.hits)
    wants = read_boolean(branches.decision.reply, "moreInfo") if branches.decision else None
    return Case(qid, worth[0], worth[1], tokens[0], tokens[1], tokens[2], tokens[3], signals, wants)


def _made(
    report: dict[str, Any],
    notes: list[str],
    cases: list[Case],
    thresholds: tuple[float, ...],
    ask: bool,
    seen: int,
    about: str,
) -> Report:
    """``seen``: passages that every draft has read."""
    ends = [points.never(cases, seen), points.always(cases)]
    if seen:
        notes.append(
            f"Every draft has read {seen} passage{'s' * (seen != 1)}, so no point is without retrieval; {READ_ALL} counts the second answers."
        )
    known = [
        signal for signal in SIGNALS if any(case.value(signal) not in (None, 0.0) for case in cases)
    ]
    curves = {signal: points.curve(cases, signal, thresholds) for signal in known}
    beside = [points.oracle(cases), *([points.asked(cases)] if ask else [])]
    silent = [signal for signal in ("confidence",) if signal not in known]
    notes += [
        f"No draft has a {signal} above 0, so there is no curve of it; all drafts declined, or the model gives none."
        for signal in silent
    ]
    for signal, curve in curves.items():
        area = points.helps(cases, signal)
        report[f"{signal}_auroc"] = area
        best = points.as_good(curve, ends[1])
        if best is not None:
            notes.append(
                f"{signal}: at threshold {best.threshold:.4g}, {best.share:.0%} of the questions read; that is {best.tokens / ends[1].tokens - 1:+.1%} tokens "
                f"compared with reading always, at a quality of {best.quality.value:.4f} against {ends[1].quality.value:.4f}."
            )
        else:
            notes.append(
                f"{signal}: no threshold keeps {points.ENOUGH:.0%} of the quality of reading always with fewer tokens."
            )
        if (tried := points.held_out(cases, signal)) is not None:
            point, full = tried
            report[f"{signal}_held_out"] = {**point.as_json(), "always": full.as_json()}
            notes.append(
                f"{signal}: chosen so on every second question, the threshold {point.threshold:.4g} gives on the others {point.quality.value:.4f} "
                f"against {full.quality.value:.4f} at {point.tokens / full.tokens - 1:+.1%} tokens."
            )
    notes.append(
        "The points of a curve are thresholds looked at on the questions that they would be chosen on."
    )
    report |= {
        "questions": len(cases),
        "points": {point.name: point.as_json() for point in (*ends, *beside)},
        "curves": {
            signal: [point.as_json() for point in curve] for signal, curve in curves.items()
        },
    }
    head = READ_ALL if seen else "Retrieved"
    tables = tuple(
        _table(f"{signal}: {about}", head, curve, len(cases), report["measure"])
        for signal, curve in curves.items()
    )
    first = _table(
        f"Without a threshold: {about}", head, [*ends, *beside], len(cases), report["measure"]
    )
    return Report(
        report,
        tuple(notes),
        tables=(first, *tables),
        figures=(_plot(about, ends, curves, beside, len(cases), report["measure"]),),
    )


def _table(title: str, read: str, points: Any, n: int, measure: str) -> Table:
    head = (
        "Agent",
        "Threshold",
        read,
        "Input tokens",
        "Output tokens",
        "Tokens a question",
        "Quality",
        "Coin",
    )
    rows = tuple(
        (
            p.name,
            None if p.threshold is None else f"{p.threshold:.4g}",
            f"{p.share:.0%}",
            p.n_in,
            p.n_out,
            round(p.tokens / n, 1),
            p.quality,
            p.coin,
        )
        for p in points
    )
    return Table(
        title,
        head,
        rows,
        note=f"Quality: {measure}. Coin: reading as many questions, chosen at random.",
    )


def _plot(
    about: str,
    ends: list[Point],
    curves: Mapping[str, tuple[Point, ...]],
    beside: list[Point],
    n: int,
    measure: str,
) -> Figure:
    series: dict[str, tuple[tuple[float, Any], ...]] = {
        f"coin ({ends[0].name} … always)": tuple((p.tokens / n, p.quality) for p in ends)
    }
    series |= {
        signal: tuple((p.tokens / n, p.quality) for p in sorted(points, key=lambda p: p.tokens))
        for signal, points in curves.items()
    }
    series |= {p.name: ((p.tokens / n, p.quality),) for p in beside}
    return Figure(f"Quality against tokens: {about}", "tokens a question", measure, series)


def _losses(answered: RunResult, found: Mapping[str, Branches]) -> Iterator[str]:
    if answered.n_errors:
        yield f"{answered.n_errors} of {answered.n} questions failed; they are in no point."
    refused = len(answered.episodes) - len(found)
    if refused:
        yield f"{refused} questions are blank or too long and were not asked."


def _thresholds(text: str) -> tuple[float, ...]:
    try:
        found = tuple(dict.fromkeys(float(part) for part in text.split(",") if part.strip()))
    except ValueError:
        found = (float("nan"),)
    if any(value != value for value in found):
        raise UsageError(f"--set thresholds={text}: thresholds must be numbers, as in 0.2,0.5.")
    return found
