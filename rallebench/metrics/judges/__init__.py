"""Language models as judges: flows over any model, whose every judgement is recorded.

A judge sends one prompt and parses values from the reply. Prompt and reply are steps of its episode; ``Judgement``
holds the parsed values, and the episode's answer is that judgement as JSON, or yes or no. A reply without a value is
*unparsed*: counted, never scored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.prompts import prompt_text
from rallebench.core.scoring import Pair, ScoreColumn, ScoreRow, Values
from rallebench.core.text import strip_brackets
from rallebench.core.types import Episode, Example, Flow, Json, Outcome
from rallebench.metrics import METRICS, JudgeTraits

JUDGED, UNPARSED = "judged", "unparsed"
"""Stop reasons of a judge's episode."""
VERDICT, YES, NO = "verdict", "yes", "no"
"""Name of the value of a yes-or-no judge (yes is 1, no is 0), and its possible answers."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """``values``: name → number, empty if unparsed. ``reason``: the judge's explanation, '' if it gave none. ``failure``: one
    sentence that explains why nothing could be parsed, or ''. ``each``: the single judgements of a judge that was asked
    several times; ``values`` are then the means of the parsed ones.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""
    failure: str = ""
    each: tuple[Judgement, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """An answer to a query, and the text by which it is judged: an article or a reference, '' for a judge that needs
    none.
    """

    query: str
    answer: str
    source: str = ""


def verdict_scores(name: str) -> Callable[[Episode], dict[str, float]]:
    """Return a function from an episode to its verdict as the metric ``name``; {} for an unparsed one."""

    def scores(episode: Episode) -> dict[str, float]:
        verdict = read_judgement(episode).values.get(VERDICT)
        return {} if verdict is None else {name: verdict}

    return scores


def mean_judgement(each: Sequence[Judgement]) -> Judgement:
    """Combine several judgements of one answer: means over the parsed ones, the reason of the first of them.

    >>> mean_judgement([Judgement({"truthfulness": 4}), Judgement({"truthfulness": 5}), Judgement(failure="Nothing.")]).values
    {'truthfulness': 4.5}
    """
    if len(each) == 1:
        return each[0]
    read = [judgement for judgement in each if not judgement.failure]
    if not read:
        return Judgement(
            failure=each[0].failure if each else "No judgement was requested.", each=tuple(each)
        )
    values = {
        name: sum(judgement.values[name] for judgement in read) / len(read)
        for name in read[0].values
    }
    reasons = (judgement.reason for judgement in read if judgement.reason)
    return Judgement(values, next(reasons, ""), "", tuple(each))


def judgement_outcome(judgement: Judgement, **more: Any) -> Outcome:
    """Return a judge's outcome: its judgement as JSON, without empty fields. ``more``: the source of its values."""
    return Outcome(
        json.dumps({**_bare(asdict(judgement)), **more}, ensure_ascii=False),
        UNPARSED if judgement.failure else JUDGED,
    )


def verdict_outcome(verdict: bool | None) -> Outcome:
    """Return the outcome of a yes-or-no judge; None: it said neither."""
    return Outcome("", UNPARSED) if verdict is None else Outcome(YES if verdict else NO)


def read_judgement(episode: Episode) -> Judgement:
    """Return the judgement of a judge's episode; for a failed one, its error is the ``failure``."""
    if episode.error or not episode.answer:
        return Judgement(failure=episode.error or "The judge gave no judgement.")
    if episode.answer in (YES, NO):
        return Judgement({VERDICT: float(episode.answer == YES)})
    return _judgement(json.loads(episode.answer))


def _judgement(value: Mapping[str, Any]) -> Judgement:
    own = {key: value[key] for key in ("values", "reason", "failure") if key in value}
    return Judgement(**own, each=tuple(map(_judgement, value.get("each", ()))))


def _bare(value: Mapping[str, Any]) -> dict[str, Any]:
    bare = {key: content for key, content in value.items() if content}
    return bare | ({"each": list(map(_bare, bare["each"]))} if "each" in bare else {})


@dataclass(frozen=True, slots=True)
class JudgeScorer:
    """A language model that scores answers.

    ``name``: as a metric, "truthfulness:my-llm". ``ask``: example and text → the flow that judges it, None if there is
    nothing to judge it by. ``read``: example, text and the flow's episode → values, {} if unparsed. ``judged``: returns the
    text of an episode to judge, None to leave the episode out.
    """

    name: str
    llms: tuple[str, ...]
    columns: tuple[ScoreColumn, ...] = field(compare=False)
    settings: Json = field(compare=False)
    ask: Callable[..., Flow | None] = field(compare=False)
    read: Callable[[Example, str, Episode], Values] = field(compare=False)
    judged: Callable[[Episode], str | None] = field(default=lambda e: e.answer, compare=False)
    needs: frozenset[str] = frozenset()

    def text(self, episode: Episode) -> str | None:
        """Return the text to judge."""
        return self.judged(episode)

    def flow(self, pair: Pair) -> Flow | None:
        """Return the flow that judges an answer."""
        return self.ask(pair.example, self.judged(pair.episode) or "")

    def values(self, pairs: Sequence[Pair], judgements: Sequence[Episode | None]) -> list[ScoreRow]:
        """Return the values of each judgement."""
        return [
            ScoreRow(
                self.read(pair.example, self.judged(pair.episode) or "", judgement)
                if judgement
                else {}
            )
            for pair, judgement in zip(pairs, judgements)
        ]

    def corpus_level(self, pairs: Sequence[Pair]) -> Mapping[str, float]:
        """Return {}: every score is a mean."""
        return {}


MarkOf = Callable[[str], str]
"""A language model's name → digest of its settings. Raises NotFoundError."""


def judge_named(name: str, mark_of: MarkOf, prompts: str = "", **settings: Any) -> JudgeScorer:
    """Return the judge ``JUDGE:MODEL``; a model's name may be in brackets.

    ``prompts``: a folder with the user's own prompts; ``settings``: keyword arguments of its flow. Raises UsageError, and
    BadFileError for its prompts.
    """
    kind, _, llm = (part.strip() for part in name.partition(":"))
    entry = METRICS.entry(kind)
    if "judge" not in entry.traits:
        raise UsageError(
            f"{kind!r} asks for each sentence and passage, not for a verdict on an answer; name a judge, such as truthfulness:MODEL."
        )
    traits: JudgeTraits = entry.traits["judge"]
    llm = strip_brackets(llm)
    if not llm:
        raise UsageError(
            f"{kind!r} is a judge: name the language model that judges, as in {kind}:MODEL."
        )
    mark = mark_of(llm)
    texts = {
        file: prompt_text(traits.folder, file, prompts, fields)
        for file, fields in traits.prompts.items()
    }
    prompt = traits.prompt(*texts.values())

    def ask(example: Example, answer: str, **known: Any) -> Flow | None:
        source = traits.source(example) if traits.source else ""
        if traits.source and not source:
            return None
        case = Case(example.question.text, answer, source)
        flow: Flow = entry.value(case, llm=llm, prompt=prompt, **settings, **known)
        return flow

    def read(example: Example, answer: str, judgement: Episode) -> Values:
        return {f"{column}:{llm}": value for column, value in traits.scores(judgement).items()}

    return JudgeScorer(
        f"{kind}:{llm}",
        (llm,),
        tuple(replace(column, name=f"{column.name}:{llm}") for column in traits.columns),
        {**settings, "prompts": texts, "model": mark},
        ask,
        read,
    )
