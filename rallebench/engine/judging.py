"""Judges of a run's answers. Each judge's pass is a run inside the run, so it is resumed, cached and read in the same way.

``runs/NAME/judges/JUDGE-MARK/`` holds the same files as a run. The mark is a digest of the answers and the judge's
settings, so other answers, or another prompt, give another pass. ``engine.execute`` plays the requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rallebench.core.backends import Backends
from rallebench.core.choices import count_choices
from rallebench.core.errors import MismatchError, RalleError
from rallebench.core.events import Operation
from rallebench.core.memory import Memory
from rallebench.core.own_files import reading
from rallebench.core.report import JudgeReport, RunReport
from rallebench.core.runs import DatasetRef, FlowSpec, RunRequest, RunResult
from rallebench.core.scoring import Pair, Scorer
from rallebench.core.types import (
    Episode,
    Example,
    Flow,
    Gold,
    Outcome,
    Question,
    Reply,
    digest,
)
from rallebench.engine.experiment_store import folder_name
from rallebench.engine.ports import RunContext
from rallebench.engine.reply_cache import ReplyCache
from rallebench.engine.store import JUDGES, RunFolder
from rallebench.metrics.judges import UNPARSED, read_judgement

NOT_JUDGED = "not_judged"
LONGEST_NAME = 80
"""The most bytes that a judge's name contributes to the name of its folder."""


class InnerContext:
    """The context of runs inside a run, in ``folder``: a judge's passes or repeats. They are not tracked."""

    def __init__(self, context: RunContext, folder: Path) -> None:
        self._context, self._folder = context, folder

    @property
    def runs(self) -> Path:
        return self._folder

    def load(self, request: RunRequest) -> Operation[Backends]:
        return self._context.load(request)

    def reply_cache(self) -> ReplyCache | None:
        return self._context.reply_cache()

    def memory(self, names: tuple[str, ...]) -> Mapping[str, Memory | None]:
        return self._context.memory(names)

    def coverage(self, request: RunRequest, backends: Backends | None) -> tuple[str, ...]:
        """Return (): a judge uses no index, and the run around a repeat has the sentences."""
        return ()

    def track(self, run: RunFolder) -> str:
        """Do nothing: it is part of the tracked run."""
        return ""


def pass_request(request: RunRequest, judge: Scorer, episodes: Mapping[str, Episode]) -> RunRequest:
    """Return the request for one judge's pass over these answers. Its name is the name of its folder below ``judges/``."""
    texts = {qid: judge.text(episode) for qid, episode in episodes.items()}
    answers = {qid: text for qid, text in texts.items() if text is not None}
    examples = {e.question.qid: e for e in request.examples if e.question.qid in answers}
    mark = digest([dict(judge.settings), answers])[:6]

    def flow(question: Question) -> Flow:
        judging = judge.flow(Pair(examples[question.qid], episodes[question.qid]))
        return _leave_unjudged() if judging is None else judging

    return RunRequest(
        FlowSpec(
            f"judge:{judge.name}",
            {"judge": dict(judge.settings), "answers": mark},
            lambda backends: flow,
            judge.llms,
        ),
        DatasetRef(request.name),
        tuple(_without_gold(example, answers[qid]) for qid, example in examples.items()),
        name=f"{folder_name(judge.name, LONGEST_NAME)}-{mark}",
    )


def _leave_unjudged() -> Flow:
    """The flow for an example without the text that the judge needs."""
    yield from ()
    return Outcome("", NOT_JUDGED)


def _without_gold(example: Example, answer: str) -> Example:
    """A question with the answer to judge."""
    qid, text = example.question.qid, example.question.text
    return Example(
        Question(qid, text), Gold(), {"id": qid, "input": text, "output": [], "answer": answer}
    )


def failure_reason(run: RunFolder, error: RalleError) -> str:
    """Return the reason why the pass of a judge failed as a whole, and the mend."""
    if isinstance(error, MismatchError):
        folder = run.path / JUDGES
        return f"its model has changed ({error}) Move the folder {folder} away to judge anew."
    return str(error)


def failure_sentence(judge: str, reason: str) -> str:
    """Return one sentence on a judge that gave no scores."""
    return f"The judge {judge!r} gave no scores: {reason}"


def unscored_judges(judges: Iterable[Scorer], report: RunReport) -> str:
    """Return one sentence for each of these judges that scored no answer; '' if all scored some."""
    passes, sentences = {judge.name: judge for judge in report.judges}, []
    for judge in judges:
        if reason := report.failed_judges.get(judge.name):
            sentences.append(failure_sentence(judge.name, reason))
        elif not any(report.estimates[c.name].n for c in judge.columns if c.name in report.own):
            counts = _unscored_counts(passes.get(judge.name, JudgeReport(judge.name)))
            reason = f"{counts or 'the run has no answer that it could judge'}."
            sentences.append(failure_sentence(judge.name, reason))
    return " ".join(sentences)


def summarise(result: RunResult, judge: Scorer) -> JudgeReport:
    """Return the entry of a judge's pass in ``report.json``."""
    reasons = [e.outcome.stop_reason if e.outcome else "" for e in result.episodes.values()]
    steps = [step for episode in result.episodes.values() for step in episode.steps]
    return JudgeReport(
        judge.name,
        f"{JUDGES}/{result.run}",
        tuple(column.name for column in judge.columns),
        result.n,
        reasons.count(UNPARSED),
        result.n_errors,
        reasons.count(NOT_JUDGED),
        sum(step.reply.prompt_tokens for step in steps),
        sum(step.reply.completion_tokens for step in steps),
        result.seconds,
        count_choices(step.reply.choice for step in steps if step.reply.choice),
    )


def unscored_sentence(judge: JudgeReport) -> str:
    """Return one sentence on the number of judgements without a score, and the reason; '' if all gave one."""
    counts = _unscored_counts(judge)
    if not counts:
        return ""
    return f"Of {judge.judged} judgements of {judge.name!r} {counts}; they are not scored."


def _unscored_counts(judge: JudgeReport) -> str:
    reasons = {
        "could not be read": judge.unparsed,
        "failed": judge.failed,
        "had nothing to judge by": judge.not_judged,
    }
    return " and ".join(f"{count} {text}" for text, count in reasons.items() if count)


@dataclass(frozen=True, slots=True)
class JudgeRemark:
    """The words of a judge on one answer: its ``reason``, or else its whole reply. ``failure``: the reason why it gave no
    score, or ''."""

    model: str
    reason: str = ""
    failure: str = ""


def judge_remarks(run: RunFolder, report: RunReport) -> dict[str, dict[str, JudgeRemark]]:
    """Return column → question id → the remark of the judge that scored it. A pass that cannot be read has none."""
    remarks: dict[str, dict[str, JudgeRemark]] = {}
    for judge in report.judges:
        model = judge.name.partition(":")[2] or judge.name
        folder = RunFolder(run.path / judge.run)
        with suppress(RalleError), reading(folder.path, "score the run by its judges again"):
            episodes = folder.episodes()
            by_qid = {qid: _remark(model, episode) for qid, episode in episodes.items()}
            remarks |= dict.fromkeys(judge.columns, by_qid)
    return remarks


def _remark(model: str, episode: Episode) -> JudgeRemark:
    judgement = read_judgement(episode)
    last = episode.steps[-1].reply if episode.steps else Reply("")
    reply = str(last.choice) if last.choice and last.choice.probabilities else last.text
    # the file may have been changed, and a reason be something else than text
    return JudgeRemark(model, str(judgement.reason or reply), str(judgement.failure))
