"""RGB's judges (Rej*, ED*) as judges of a test's run; beside its verdict ED* has the corrections (CR*)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rallebench.core.runs import Judge, RunResult, Values
from rallebench.core.types import Episode, Example, Flow
from rallebench.experiments.papers.common import sentences
from rallebench.experiments.papers.rgb.scoring import as_scored, assess, is_right, named
from rallebench.experiments.papers.rgb.testing import Testbed
from rallebench.metrics.judges import VERDICT, judgement_of
from rallebench.metrics.judges.named import judge_named

COLUMNS = {
    "rgb-rejection": named("rejection_rate_judge"),
    "rgb-errors": named("fact_check_rate_judge", "correct_rate_judge"),
}


def judges_of(kind: str, testbed: Testbed) -> tuple[Judge, ...]:
    """The judge of that kind, in a tuple, if the setting ``judge`` names its model. Raises UsageError, BadFileError.

    In the original a reply that says neither yes nor no counts as a no.
    """
    request, language = testbed.request, testbed.records.language
    model, prompts = request.settings["judge"], request.settings["prompts"]
    if not model:
        return ()
    judge = judge_named(f"{kind}:{model}", request.workspace.llm_mark, prompts)
    verdict_name, *corrected = COLUMNS[kind]

    def ask(example: Example, answer: str) -> Flow | None:
        return judge.ask(example, as_scored(answer, language))

    def scores(example: Example, answer: str, judgement: Episode) -> Values:
        verdict = judgement_of(judgement).values.get(VERDICT, 0.0 if testbed.original else None)
        right = float(is_right(assess(answer, example.gold.required, language).labels))
        return {verdict_name: verdict, **dict.fromkeys(corrected, right if verdict else None)}

    ranges = dict.fromkeys(COLUMNS[kind], (0.0, 1.0))
    return (replace(judge, columns=COLUMNS[kind], ask=ask, scores=scores, ranges=ranges),)


def report_of(
    result: RunResult, judges: Sequence[Judge], testbed: Testbed
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """(how many answers were judged and how many verdicts are none, the same in sentences); nothing without a judge."""
    summaries = result.report.get("judges", {})
    summary = next((summaries[judge.name] for judge in judges if judge.name in summaries), None)
    if summary is None:
        return {}, ()
    n, unparsed, failed = (summary[key] for key in ("judged", "unparsed", "failed"))
    how = "taken for a no, as the original does" if testbed.original else "not scored"
    notes = sentences(
        (unparsed, f"{unparsed} of {n} verdicts could not be read and are {how}."),
        (failed, f"{failed} of {n} judgements failed; they are in no rate."),
    )
    return {"judged": n, "unparsed": unparsed, "judge_failed": failed}, notes
