"""BARAG's judge, of truthfulness and relevance, as a judge of a run's answers by the articles of their questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rallebench.core.experiments import ExperimentRequest
from rallebench.core.runs import RunResult
from rallebench.core.scoring import ScoreColumn, Scorer, Values
from rallebench.core.settings import Setting
from rallebench.core.types import Episode, Example, digest
from rallebench.experiments.common import SCORES, sentences, string
from rallebench.metrics.judges import JudgeScorer, judge_named, judgement_of
from rallebench.metrics.judges.truthfulness import COLUMNS, scores_of
from rallebench.papers.barag.study import tokens_of
from rallebench.papers.common import behind_api, is_original

FORMS = ("schema", "tool", "text")
JUDGE = {"judge": string("a language model that judges truthfulness and relevance", names="llm")}
JUDGING = {
    "judge_form": string(
        "how scores are asked for; auto: schema, with compat=original behind an API tool",
        "auto",
        *FORMS,
        advanced=True,
    ),
    "judge_repeats": Setting(
        int,
        1,
        1,
        50,
        about="times that every answer is judged, with seeds of their own",
        advanced=True,
    ),
    "judge_swap": Setting(
        bool,
        False,
        about="every second time with the scores and blocks in the other order",
        advanced=True,
    ),
    "judge_temperature": Setting(float, 0.0, 0, 2, advanced=True),
}
SPREADS = tuple(
    ScoreColumn(
        f"{name}_spread",
        f"Largest minus smallest score for {name} that one answer was given, over those judged more than once.",
        (None, None),
    )
    for name in SCORES
)


def judge_of(
    request: ExperimentRequest,
    llm: str,
    examples: Sequence[Example],
    branch: str = "",
    text: Callable[[Episode], str | None] = lambda episode: episode.answer,
) -> JudgeScorer:
    """The judge that the settings name. Raises UsageError, BadFileError for its prompts.

    ``examples``: each with its article, as ``articles.example_of`` makes them. ``branch``: the name of the ``text`` of an episode
    that is judged, where that is not its answer; it stands before the columns.
    """
    s = request.settings
    form = s["judge_form"]
    if form == "auto":
        original = is_original(request) and behind_api(request, llm)
        form = "tool" if original else "schema"
    judge = judge_named(
        f"truthfulness:{llm}",
        request.workspace.llm_mark,
        s["prompts"],
        form=form,
        compat=s["compat"],
        temperature=s["judge_temperature"],
        seed=request.seed,
        repeats=s["judge_repeats"],
        swap=s["judge_swap"],
    )
    several = s["judge_repeats"] > 1 or s["judge_swap"]
    columns = (*COLUMNS, *(SPREADS if several else ()))
    before = f"{branch}_" if branch else ""

    def read(example: Example, answer: str, judgement: Episode) -> Values:
        return {f"{before}{name}": value for name, value in values_of(judgement).items()}

    return replace(
        judge,
        name=f"{judge.name} ({branch})" if branch else judge.name,
        columns=tuple(replace(column, name=f"{before}{column.name}") for column in columns),
        settings={
            **judge.settings,
            "articles": digest([[e.record["title"], e.gold.reference] for e in examples]),
        },
        read=read,
        judged=text,
    )


def values_of(judgement: Episode) -> Values:
    """The scores of one judgement, with their spread where an answer was judged more than once."""
    values: dict[str, float | None] = dict(scores_of(judgement))
    parsed = judgement_of(judgement)
    several = [single.values for single in parsed.each if not single.failure]
    for name in parsed.values if values and len(several) > 1 else ():
        scores = [single[name] for single in several]
        values[f"{name}_spread"] = max(scores) - min(scores)
    return values


def report_of(answered: RunResult, judge: Scorer) -> dict[str, Any]:
    """The number of answers that were judged, of judgements and single replies that say nothing, and the judge's tokens; {}
    where the judge failed as a whole."""
    if judge.name not in answered.judgements:
        return {}
    episodes = answered.judgements[judge.name]
    sent, written = tokens_of(step for episode in episodes.values() for step in episode.steps)
    judgements = [judgement_of(episode) for episode in episodes.values()]
    each = [single for judgement in judgements for single in (judgement.each or (judgement,))]
    judged = sum(judge.text(episode) is not None for episode in answered.episodes.values())
    return {
        "judged": judged,
        "replies": len(each),
        "unparsed_replies": sum(bool(single.failure) for single in each),
        "unparsed": sum(bool(judgement.failure) for judgement in judgements),
        "failed": judged - len(episodes),
        "judge_input_tokens": sent,
        "judge_output_tokens": written,
    }


def notes_of(label: str, report: Mapping[str, Any], judge: Scorer) -> tuple[str, ...]:
    """Notes for a reader of the scores. ``report``: see ``report_of``."""
    keys = ("judged", "replies", "unparsed_replies", "unparsed", "failed")
    judged, replies, bad_replies, bad, failed = (report.get(key, 0) for key in keys)
    s = judge.settings
    return sentences(
        (bad, f"{label}: {bad} of {judged} judgements could not be read and are not scored."),
        (
            bad_replies > bad,
            f"{label}: {bad_replies} of {replies} single replies of the judge could not be read.",
        ),
        (failed, f"{label}: {failed} of {judged} judgements failed; they are in no mean."),
        (
            s["repeats"] > 1 and not s["temperature"] and not s["swap"],
            "At judge_temperature 0 most models repeat themselves, so the spread says little; raise it, or set judge_swap=true.",
        ),
    )
