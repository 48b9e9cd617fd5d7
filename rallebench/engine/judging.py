"""Judges of a run's answers: each judge's pass is a run inside the run, so it is resumed, cached and read like any run.

``runs/NAME/judges/JUDGE-MARK/`` holds the same files as a run; the mark is of all that is judged, so that other answers, or
another prompt, make another pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rallebench.core.errors import MismatchError, RalleError, StoppedError
from rallebench.core.events import Operation, Warned, under
from rallebench.core.runs import (
    DatasetRef,
    FlowSpec,
    Judge,
    Rates,
    RunOptions,
    RunRequest,
    RunResult,
    Values,
)
from rallebench.core.types import Episode, Example, Gold, Outcome, Question, digest
from rallebench.engine.context import WorkContext
from rallebench.engine.experiment_store import folder_name
from rallebench.engine.store import JUDGES, RunFolder
from rallebench.metrics.judges import UNPARSED

NOT_JUDGED = "not_judged"
LONGEST = 80


class InsideContext:
    """The context of a run for the passes inside it: their folder is the run's, and they are not tracked."""

    def __init__(self, context: WorkContext, run: RunFolder) -> None:
        self._context = context
        self.runs: Path = run.path / JUDGES

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def coverage(self, request: RunRequest, backends: Any) -> tuple[str, ...]:
        """A judge searches nothing."""
        return ()

    def track(self, run: RunFolder) -> str:
        """A pass is part of the run that is tracked."""
        return ""


Execute = Callable[[RunRequest, Any, RunOptions], Operation[RunResult]]
"""``engine.execute.execute``: takes a request, a context and options."""


def judged(
    run: RunFolder,
    request: RunRequest,
    context: WorkContext,
    options: RunOptions,
    execute: Execute,
) -> Operation[tuple[RunRequest, dict[str, Any], tuple[str, ...]]]:
    """(the request with the judges' columns among its own, judge → its entry in ``report.json``, warnings).

    ``execute``: performs a judge's pass, which is a run. Asks only for judgements that are not stored yet. A judge that fails as a whole leaves its columns unscored, with a
    warning. Raises StoppedError.
    """
    episodes = (
        {qid: e for qid, e in run.episodes().items() if not e.error} if request.judges else {}
    )
    report: dict[str, Any] = {}
    warnings: list[str] = []
    judgements: dict[str, Mapping[str, Episode]] = {}
    for judge in request.judges:
        try:
            result = yield from _pass(run, request, judge, episodes, context, options, execute)
        except StoppedError:
            raise
        except RalleError as error:
            reason = str(error)
            if isinstance(error, MismatchError):
                reason = f"its model has changed ({error}) Move the folder {run.path / JUDGES} away to judge anew."
            sentence = f"The judge {judge.name!r} gave no scores: {reason}"
            warnings.append(sentence)
            yield Warned(request.label, sentence)
            continue
        if result.stopped:
            raise StoppedError(
                f"Stopped while {judge.name!r} judged the answers of {run.name!r}; resume the run to continue."
            )
        warnings += [f"Of the judge {judge.name!r}: {sentence}" for sentence in result.warnings]
        judgements[judge.name] = result.episodes
        report[judge.name] = summary = _summary(result, judge)
        if summary["unparsed"] or summary["failed"] or summary["not_judged"]:
            warnings.append(_sentence(judge.name, summary))
    return with_columns(request, judgements), report, tuple(warnings)


def _pass(
    run: RunFolder,
    request: RunRequest,
    judge: Judge,
    episodes: Mapping[str, Episode],
    context: WorkContext,
    options: RunOptions,
    execute: Execute,
) -> Operation[RunResult]:
    """One judge's pass over the answers of a run."""
    inner = pass_request(request, judge, episodes)
    again = replace(options, resume=True, track=False, max_errors=None)
    operation = execute(inner, InsideContext(context, run), again)
    return (yield from under(f"{request.label}/{judge.name}".strip("/"), operation))


def pass_request(request: RunRequest, judge: Judge, episodes: Mapping[str, Episode]) -> RunRequest:
    """The request for one judge's pass over these answers; its name is that of its folder below ``judges/``."""
    texts = {qid: judge.text(episode) for qid, episode in episodes.items()}
    answers = {qid: text for qid, text in texts.items() if text is not None}
    examples = {e.question.qid: e for e in request.examples if e.question.qid in answers}
    mark = digest([dict(judge.settings), answers])[:6]

    def flow(question: Question) -> Any:
        judging = judge.ask(examples[question.qid], answers[question.qid])
        return _nothing() if judging is None else judging

    return RunRequest(
        FlowSpec(
            f"judge:{judge.name}",
            {"judge": dict(judge.settings), "answers": mark},
            lambda backends: flow,
            (judge.llm,),
        ),
        DatasetRef(request.name),
        tuple(_bare(example, answers[qid]) for qid, example in examples.items()),
        name=f"{folder_name(judge.name, LONGEST)}-{mark}",
    )


def _nothing() -> Any:
    """The flow of an answer whose example lacks what the judge compares it with."""
    yield from ()
    return Outcome("", NOT_JUDGED)


def _bare(example: Example, answer: str) -> Example:
    """A question with the answer that is judged; its gold stays outside."""
    qid, text = example.question.qid, example.question.text
    return Example(
        Question(qid, text), Gold(), {"id": qid, "input": text, "output": [], "answer": answer}
    )


def _summary(result: RunResult, judge: Judge) -> dict[str, Any]:
    reasons = [e.outcome.stop_reason if e.outcome else "" for e in result.episodes.values()]
    steps = [step for episode in result.episodes.values() for step in episode.steps]
    return {
        "run": f"{JUDGES}/{result.run}",
        "columns": list(judge.columns),
        "judged": result.n,
        "unparsed": reasons.count(UNPARSED),
        "failed": result.n_errors,
        "not_judged": reasons.count(NOT_JUDGED),
        "prompt_tokens": sum(step.reply.prompt_tokens for step in steps),
        "completion_tokens": sum(step.reply.completion_tokens for step in steps),
        "seconds": result.seconds,
    }


def _sentence(name: str, summary: Mapping[str, Any]) -> str:
    reasons = {
        "unparsed": "could not be read",
        "failed": "failed",
        "not_judged": "had nothing to judge by",
    }
    parts = [f"{summary[key]} {text}" for key, text in reasons.items() if summary[key]]
    return (
        f"Of {summary['judged']} judgements of {name!r} {' and '.join(parts)}; they are not scored."
    )


def with_columns(
    request: RunRequest, judgements: Mapping[str, Mapping[str, Episode]]
) -> RunRequest:
    """The request whose own metrics include those of the judges. ``judgements``: judge → question id → its episode."""
    rates = request.rates
    for judge in request.judges:
        if judge.name in judgements:
            score = partial(_scores, judge, judgements[judge.name])
            rates = rates.joined(Rates(judge.columns, score, judge.ranges))
    return replace(request, rates=rates)


def _scores(
    judge: Judge, judgements: Mapping[str, Episode], example: Example, episode: Episode
) -> Values:
    judgement = judgements.get(episode.qid)
    return judge.scores(example, judge.text(episode) or "", judgement) if judgement else {}
