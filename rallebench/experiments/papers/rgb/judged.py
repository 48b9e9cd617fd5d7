"""RGB's judges (Rej*, ED*) as judges of a test's run; beside its verdict ED* has the corrections (CR*)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rallebench.core.runs import Judge, RunResult, Values
from rallebench.core.types import Episode, Example, Flow
from rallebench.experiments.papers.rgb import scoring
from rallebench.experiments.papers.rgb.definitions import named
from rallebench.experiments.papers.rgb.testing import Request
from rallebench.metrics.judges import VERDICT, judgement_of
from rallebench.workspace.judges import judge_named

COLUMNS = {
    "rgb-rejection": named("rejection_rate_judge"),
    "rgb-errors": named("fact_check_rate_judge", "correct_rate_judge"),
}


def judges_of(kind: str, request: Request) -> tuple[Judge, ...]:
    """The judge of that kind if ``judge`` names its model, in a tuple. Raises UsageError, BadFileError.

    In the original a reply that says neither yes nor no counts as a no.
    """
    settings, language = request.asked.settings, request.records.language
    if not settings["judge"]:
        return ()
    judge = judge_named(request.asked.workspace, f"{kind}:{settings['judge']}", settings["prompts"])
    verdict_name, *corrected = COLUMNS[kind]

    def ask(example: Example, answer: str) -> Flow | None:
        return judge.ask(example, scoring.as_scored(answer, language))

    def scores(example: Example, answer: str, judgement: Episode) -> Values:
        verdict = judgement_of(judgement).values.get(VERDICT, 0.0 if request.original else None)
        text = scoring.as_scored(answer, language)
        right = float(scoring.is_right(scoring.labels_of(text, example.gold.required)))
        return {verdict_name: verdict, **dict.fromkeys(corrected, right if verdict else None)}

    ranges = dict.fromkeys(COLUMNS[kind], (0.0, 1.0))
    return (replace(judge, columns=COLUMNS[kind], ask=ask, scores=scores, ranges=ranges),)


def report_of(
    answered: RunResult, judges: Sequence[Judge], request: Request
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """(how many answers were judged and how many verdicts are none, the same in sentences); nothing without a judge."""
    summary = next(
        (s for j in judges if (s := answered.report.get("judges", {}).get(j.name))), None
    )
    if summary is None:
        return {}, ()
    n, unparsed, failed = (summary[key] for key in ("judged", "unparsed", "failed"))
    how = "taken for a no, as the original does" if request.original else "not scored"
    notes = [f"{unparsed} of {n} verdicts could not be read and are {how}."] * bool(unparsed)
    notes += [f"{failed} of {n} judgements failed; they are in no rate."] * bool(failed)
    return {"judged": n, "unparsed": unparsed, "judge_failed": failed}, tuple(notes)
