"""Scorers: a metric, a metric over all answers, a judge and an experiment's own scores are one protocol.

A scorer that asks a language model gives a flow for each answer. The engine plays it and hands the episodes back as
``judgements``; a scorer itself asks nothing and stores nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from rallebench.core.types import Episode, Example, Flow, Json

Values = Mapping[str, "float | None"]
"""Metric → the value of one question; or question id → its value of one metric. None: not scored."""

Judgements = Mapping[str, Mapping[str, Episode]]
"""Scorer → question id → the episode in which a model judged the answer."""


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
    """The scores of one answer. ``values``: column → value; a column that is absent is not scored. ``notes``: column →
    remark, such as the reason why it is not scored."""

    values: Values
    notes: Mapping[str, str] = field(default_factory=dict)


class Scorer(Protocol):
    """Scores the answers of a run, each by the same ``columns``.

    ``name``: unique in a run. ``needs``: parts of the gold without which no answer can be scored. ``llms``: the models that its flows ask;
    () for a scorer without flows. ``settings``: JSON, everything that changes a judgement besides the models.
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
        """Return the text that a model is to judge, None to leave the episode out."""

    def flow(self, pair: Pair) -> Flow | None:
        """Return the flow that judges an answer, None if there is nothing to ask."""

    def values(self, pairs: Sequence[Pair], judgements: Sequence[Episode | None]) -> list[ScoreRow]:
        """Return a row for each pair. ``pairs``: all answers of a run that did not fail; ``judgements``: of each, if there is one."""

    def corpus_level(self, pairs: Sequence[Pair]) -> Mapping[str, float]:
        """Return column → score over all ``pairs`` at once, such as corpus BLEU; no column whose score is the mean.

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
        """Return None: no model is asked."""

    def values(self, pairs: Sequence[Pair], judgements: Sequence[Episode | None]) -> list[ScoreRow]:
        """Return the scores of each answer."""
        return [ScoreRow(self.score(*pair)) for pair in pairs]

    def corpus_level(self, pairs: Sequence[Pair]) -> Mapping[str, float]:
        """Return {}: every score is a mean."""
        return {}
