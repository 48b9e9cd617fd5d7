"""Scorers: one protocol for a metric, a metric over all answers, a judge and an experiment's own scores.

A scorer that uses a language model gives a flow for each answer. The engine plays it and hands the episodes back as
``judgements``. The scorer itself calls no model and stores nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from rallebench.core.support import AnswerSupport
from rallebench.core.types import Episode, Example, Flow, Json

Values = Mapping[str, "float | None"]
"""Metric → the value of one question; or question id → the value of one metric. None: not scored."""

Judgements = Mapping[str, Mapping[str, Episode]]
"""Scorer → question id → the episode of the judgement."""


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """A column of scores. ``range``: (lowest, highest) value; None = no bound."""

    name: str
    definition: str
    range: tuple[float | None, float | None] = (0.0, 1.0)


class Pair(NamedTuple):
    """A question with its gold, and the episode that answered it."""

    example: Example
    episode: Episode


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The scores of one answer. ``values``: column → value; an absent column is not scored. ``notes``: column → remark,
    such as the reason for a missing score. ``support``: the support of the answer's sentences, if it was checked."""

    values: Values
    notes: Mapping[str, str] = field(default_factory=dict)
    support: AnswerSupport | None = None


class Scorer(Protocol):
    """Scores the answers of a run, all in the same ``columns``.

    ``name``: unique in a run. ``needs``: parts of the gold required to score any answer. ``llms``: the models of its
    flows; () for a scorer without flows. ``settings``: JSON, everything besides the models that changes a judgement.
    """

    @property
    def name(self) -> str: ...

    @property
    def columns(self) -> tuple[ScoreColumn, ...]: ...

    @property
    def needs(self) -> frozenset[str]: ...

    @property
    def llms(self) -> tuple[str, ...]: ...

    @property
    def settings(self) -> Json: ...

    def text(self, episode: Episode) -> str | None:
        """Return the text for the judge, None to leave the episode out."""

    def flow(self, pair: Pair) -> Flow | None:
        """Return the flow that judges an answer, None if it needs no call."""

    def values(self, pairs: Sequence[Pair], judgements: Sequence[Episode | None]) -> list[ScoreRow]:
        """Return a row for each pair. ``pairs``: all answers of a run that did not fail; ``judgements``: the existing
        ones."""

    def corpus_level(self, pairs: Sequence[Pair]) -> Mapping[str, float]:
        """Return column → score over all ``pairs`` at once, such as corpus BLEU, without columns whose score is the mean.

        ``pairs``: the answers with a value.
        """


@dataclass(frozen=True, slots=True)
class AnswerScorer:
    """An experiment's own scores: ``score`` gives the values of one answer."""

    columns: tuple[ScoreColumn, ...]
    score: Callable[[Example, Episode], Values] = field(compare=False)
    name: str = "own"
    needs: frozenset[str] = frozenset()
    llms: tuple[str, ...] = ()
    settings: Json = field(default_factory=dict)

    def text(self, episode: Episode) -> None:
        """Return None: no answer is judged."""

    def flow(self, pair: Pair) -> None:
        """Return None: no model is called."""

    def values(self, pairs: Sequence[Pair], judgements: Sequence[Episode | None]) -> list[ScoreRow]:
        """Return the scores of each answer."""
        return [ScoreRow(self.score(*pair)) for pair in pairs]

    def corpus_level(self, pairs: Sequence[Pair]) -> Mapping[str, float]:
        """Return {}: every score is a mean."""
        return {}
