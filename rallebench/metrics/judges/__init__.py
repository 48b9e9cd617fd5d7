"""Language models as judges: flows over any model, whose every judgement can be read again.

A judge sends one prompt and reads values from the reply. What was sent and what came back stand in the episode's
steps; ``Judgement`` is what was read, and the episode's answer is that judgement as JSON, or yes or no. A reply that holds no value
is *unparsed*: counted, never scored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rallebench.core.types import Episode, Outcome

JUDGED, UNPARSED = "judged", "unparsed"
"""How a judge's episode stops."""
VERDICT, YES, NO = "verdict", "yes", "no"
"""The value of a judge that is asked for yes (1) or no (0), and its episode's answer."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """``values``: name → number, empty if unparsed. ``reason``: the judge's own words, '' if it gave none. ``failure``: why
    nothing could be read, in one sentence, '' if something was. ``each``: where a judge was asked several times, what was
    read each time; ``values`` are then the means of those that could be read."""

    values: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""
    failure: str = ""
    each: tuple[Judgement, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """An answer to a query, and the text that it is judged by: an article or a reference, '' for a judge that needs none."""

    query: str
    answer: str
    source: str = ""


def verdict_of(name: str) -> Callable[[Episode], dict[str, float]]:
    """The verdict of an episode as the metric ``name``; nothing of one that could not be read."""

    def scores(episode: Episode) -> dict[str, float]:
        verdict = judgement_of(episode).values.get(VERDICT)
        return {} if verdict is None else {name: verdict}

    return scores


def mean_of(each: Sequence[Judgement]) -> Judgement:
    """Several judgements of one answer as one: means over those that were read, the reason of the first of them.

    >>> mean_of([Judgement({"truthfulness": 4}), Judgement({"truthfulness": 5}), Judgement(failure="Nothing.")]).values
    {'truthfulness': 4.5}
    """
    if len(each) == 1:
        return each[0]
    read = [judgement for judgement in each if not judgement.failure]
    if not read:
        return Judgement(
            failure=each[0].failure if each else "No judgement was asked for.", each=tuple(each)
        )
    values = {
        name: sum(judgement.values[name] for judgement in read) / len(read)
        for name in read[0].values
    }
    reasons = (judgement.reason for judgement in read if judgement.reason)
    return Judgement(values, next(reasons, ""), "", tuple(each))


def ended(judgement: Judgement, **more: Any) -> Outcome:
    """A judge's last word: its judgement as JSON, without what is empty. ``more``: what its values come from."""
    return Outcome(
        json.dumps({**_bare(asdict(judgement)), **more}, ensure_ascii=False),
        UNPARSED if judgement.failure else JUDGED,
    )


def decided(verdict: bool | None) -> Outcome:
    """The last word of a judge that says yes or no; None: it said neither."""
    return Outcome("", UNPARSED) if verdict is None else Outcome(YES if verdict else NO)


def judgement_of(episode: Episode) -> Judgement:
    """The judgement that an episode of a judge ended with; of one that failed, its error as ``failure``."""
    if episode.error or not episode.answer:
        return Judgement(failure=episode.error or "The judge gave no judgement.")
    if episode.answer in (YES, NO):
        return Judgement({VERDICT: float(episode.answer == YES)})
    return _judgement(json.loads(episode.answer))


def _judgement(value: Mapping[str, object]) -> Judgement:
    inside = value.get("each", ())
    assert isinstance(inside, (list, tuple))
    values = value.get("values", {})
    assert isinstance(values, Mapping)
    return Judgement(
        dict(values),
        str(value.get("reason", "")),
        str(value.get("failure", "")),
        tuple(_judgement(single) for single in inside),
    )


def _bare(value: Mapping[str, object]) -> dict[str, object]:
    bare = {key: content for key, content in value.items() if content}
    if "each" in bare:
        bare["each"] = [_bare(single) for single in value["each"]]  # type: ignore[attr-defined]
    return bare
