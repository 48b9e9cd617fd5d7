"""BARAG's judge of truthfulness and relevance. It judges the answers of a run against the articles of their questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rallebench.core.errors import UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.runs import RunResult
from rallebench.core.scoring import ScoreColumn, Scorer, Values
from rallebench.core.settings import declare, declare_group, declare_text
from rallebench.core.types import Episode, Example, digest
from rallebench.experiments.common import SCORES, sentences
from rallebench.metrics.judges import JudgeScorer, judge_named, read_judgement
from rallebench.metrics.judges.truthfulness import COLUMNS, judgement_scores
from rallebench.papers.barag.runs import sum_counts
from rallebench.papers.barag.study import Study, sum_tokens
from rallebench.papers.common import behind_api
from rallebench.workspace.paths import WorkspaceFolder

FORMS = ("schema", "tool", "text", "choice")


@dataclass(frozen=True, slots=True)
class JudgingSettings:
    """The settings of the judge."""

    judge_form: str = declare_text(
        "how scores are asked for; auto: schema, with compat=original behind an API tool; choice: by the probabilities of 1 to 5",
        "auto",
        *FORMS,
        advanced=True,
    )
    judge_repeats: int = declare(
        int,
        1,
        1,
        50,
        about="times that every answer is judged, with seeds of their own",
        advanced=True,
    )
    judge_swap: bool = declare(
        bool,
        False,
        about="every second time with the scores and blocks in the other order",
        advanced=True,
    )
    judge_temperature: float = declare(float, 0.0, 0, 2, advanced=True)


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """A judge and its settings; '' for no judge."""

    judge: str = declare_text(
        "a language model that judges truthfulness and relevance", names="llm"
    )
    judging: JudgingSettings = declare_group(JudgingSettings)


SPREADS = tuple(
    ScoreColumn(
        f"{name}_spread",
        f"Largest minus smallest score for {name} that one answer was given, over those judged more than once.",
        (None, None),
    )
    for name in SCORES
)


def make_judge(
    request: ExperimentRequest[WorkspaceFolder],
    llm: str,
    settings: JudgingSettings,
    examples: Sequence[Example],
    *,
    prompts: str,
    compat: str,
    branch: str = "",
    text: Callable[[Episode], str | None] = lambda episode: episode.answer,
) -> JudgeScorer:
    """The judge with these settings. Raises UsageError, and BadFileError for invalid prompts.

    ``examples``: each includes its article, as made by ``articles.article_example``. ``branch``: the judge scores an episode's
    ``text`` instead of its answer, and its column names begin with the branch.
    """
    form = settings.judge_form
    if form == "auto":
        original = compat == "original" and behind_api(request, llm)
        form = "tool" if original else "schema"
    several = settings.judge_repeats > 1 or settings.judge_swap
    if form == "choice" and several:
        raise UsageError(
            "judge_form=choice gives the same probabilities every time; leave judge_repeats and judge_swap out."
        )
    mark_of = request.workspace.llm_mark
    if form == "choice":
        judge = judge_named(f"truthfulness-choice:{llm}", mark_of, prompts)
    else:
        judge = judge_named(
            f"truthfulness:{llm}",
            mark_of,
            prompts,
            form=form,
            compat=compat,
            temperature=settings.judge_temperature,
            seed=request.seed,
            repeats=settings.judge_repeats,
            swap=settings.judge_swap,
        )
    columns = (*COLUMNS, *(SPREADS if several else ()))
    before = f"{branch}_" if branch else ""

    def read(example: Example, answer: str, judgement: Episode) -> Values:
        return {f"{before}{name}": value for name, value in judged_values(judgement).items()}

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


def judge_study(
    study: Study,
    settings: JudgeSettings,
    branch: str = "",
    text: Callable[[Episode], str | None] = lambda episode: episode.answer,
) -> JudgeScorer:
    """The judge of the answers in a study; see ``make_judge``."""
    return make_judge(
        study.request,
        settings.judge,
        settings.judging,
        study.set.examples,
        prompts=study.asking.prompts,
        compat=study.asking.mode.compat,
        branch=branch,
        text=text,
    )


def judged_values(judgement: Episode) -> Values:
    """The scores of one judgement, and their spread for repeated judgements."""
    values: dict[str, float | None] = dict(judgement_scores(judgement))
    parsed = read_judgement(judgement)
    several = [single.values for single in parsed.each if not single.failure]
    for name in parsed.values if values and len(several) > 1 else ():
        scores = [single[name] for single in several]
        values[f"{name}_spread"] = max(scores) - min(scores)
    return values


@dataclass(frozen=True, slots=True)
class JudgementCounts:
    """Counts of a judge's work on a run.

    ``judged``: number of answers. ``replies``: number of replies, of which ``unparsed_replies`` are unreadable. ``unparsed``,
    ``failed``: numbers of judgements without a score. Token counts are None if a backend does not count tokens.
    """

    judged: int
    replies: int
    unparsed_replies: int
    unparsed: int
    failed: int
    judge_input_tokens: int | None
    judge_output_tokens: int | None

    @property
    def tokens(self) -> int | None:
        """The tokens sent to the judge and written by it."""
        return sum_counts((self.judge_input_tokens, self.judge_output_tokens))


def count_judgements(answered: RunResult, judge: Scorer) -> JudgementCounts | None:
    """The counts of a judge's work; None if the judge failed completely."""
    if judge.name not in answered.judgements:
        return None
    episodes = answered.judgements[judge.name]
    sent, written = sum_tokens(step for episode in episodes.values() for step in episode.steps)
    judgements = [read_judgement(episode) for episode in episodes.values()]
    each = [single for judgement in judgements for single in (judgement.each or (judgement,))]
    judged = sum(judge.text(episode) is not None for episode in answered.episodes.values())
    return JudgementCounts(
        judged,
        len(each),
        sum(bool(single.failure) for single in each),
        sum(bool(judgement.failure) for judgement in judgements),
        judged - len(episodes),
        sent,
        written,
    )


def judge_notes(label: str, counts: JudgementCounts, settings: JudgingSettings) -> tuple[str, ...]:
    """Notes on the scores for a reader."""
    judged, replies, unread = counts.judged, counts.replies, counts.unparsed_replies
    return sentences(
        (
            counts.unparsed,
            f"{label}: {counts.unparsed} of {judged} judgements could not be read and are not scored.",
        ),
        (
            unread > counts.unparsed,
            f"{label}: {unread} of {replies} single replies of the judge could not be read.",
        ),
        (
            counts.failed,
            f"{label}: {counts.failed} of {judged} judgements failed; they are in no mean.",
        ),
        (
            settings.judge_repeats > 1
            and not settings.judge_temperature
            and not settings.judge_swap,
            "At judge_temperature 0 most models repeat themselves, so the spread says little; raise it, or set judge_swap=true.",
        ),
    )
