"""Further columns of the grid: assertions about an answer, metrics and judges, each as a scorer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from rallebench.core.answers import normalize_answer
from rallebench.core.errors import UsageError
from rallebench.core.registry import Entry
from rallebench.core.report import NO_BOUNDS, Bounds
from rallebench.core.scoring import AnswerScorer, Pair, ScoreColumn, Scorer, ScoreRow
from rallebench.core.types import Episode, Example, Retrieve
from rallebench.metrics import METRICS, metric
from rallebench.metrics.judge_scorers import split_judges
from rallebench.metrics.judges import MarkOf
from rallebench.metrics.scorers import metric_scorers
from rallebench.metrics.words import count_words

LONGEST_VALUE, LONGEST_ANSWER = 500, 100_000
"""Characters of an assertion's text; characters of an answer that a pattern searches."""
MOST_COLUMNS = 8

_CITATION = re.compile(r"\[(\d{1,3})\]")

Needs = Literal["", "text", "pattern", "number"]


@dataclass(frozen=True, slots=True)
class Assertion:
    """A kind of assertion. ``needs``: its value; ``holds``: (episode, value) → True or False."""

    label: str
    needs: Needs
    holds: Callable[[Episode, str], bool]


def _is_json(episode: Episode, _: str) -> bool:
    try:
        json.loads(episode.answer)
    except (ValueError, RecursionError):
        return False
    return True


def _cites(episode: Episode, _: str) -> bool:
    searches = [step.reply.hits for step in episode.steps if isinstance(step.request, Retrieve)]
    passages = len(searches[-1]) if searches else 0
    return any(1 <= int(number) <= passages for number in _CITATION.findall(episode.answer))


def _matches(episode: Episode, pattern: str) -> bool:
    return find_pattern(pattern, episode.answer)


ASSERTIONS: Mapping[str, Assertion] = {
    "contains": Assertion(
        "contains", "text", lambda e, value: value.casefold() in e.answer.casefold()
    ),
    "lacks": Assertion(
        "does not contain", "text", lambda e, value: value.casefold() not in e.answer.casefold()
    ),
    "equals": Assertion(
        "equals", "text", lambda e, value: normalize_answer(e.answer) == normalize_answer(value)
    ),
    "matches": Assertion("matches the pattern", "pattern", _matches),
    "characters": Assertion(
        "characters, at most", "number", lambda e, value: len(e.answer.strip()) <= int(value)
    ),
    "words": Assertion(
        "words, at most", "number", lambda e, value: count_words(e.answer) <= int(value)
    ),
    "json": Assertion("is JSON", "", _is_json),
    "cites": Assertion("cites a passage, as [1]", "", _cites),
}
"""Kind of assertion → its check. ``contains`` ignores case, ``equals`` also punctuation and articles, as exact match."""


def find_pattern(pattern: str, text: str) -> bool:
    """Return whether a regular expression occurs in a text, in a time linear in its length. Raises UsageError.

    >>> find_pattern("^[A-Z]", "Paris"), find_pattern("(a+)+$", "a" * 50 + "b")
    (True, False)
    """
    # RE2 never backtracks, unlike Python's own module
    import pyarrow as pa
    from pyarrow import compute

    try:
        matches = compute.match_substring_regex(pa.array([text[:LONGEST_ANSWER]]), pattern=pattern)
    except (pa.ArrowInvalid, UnicodeEncodeError):
        raise UsageError(
            f"{pattern[:60]!r} is not a pattern of RE2; write it without look-around and back-references.",
            "value",
        ) from None
    return bool(matches[0].as_py())


@dataclass(frozen=True, slots=True)
class Series:
    """A score of every answer. ``name``: as the scorer calls it; ``bounds``: its (lowest, highest) value."""

    name: str
    label: str
    bounds: Bounds
    is_assertion: bool = False

    @property
    def unit(self) -> str:
        """The unit of its mean; "" for its own."""
        return "fraction" if self.bounds == (0, 1) else ""


@dataclass(frozen=True, slots=True)
class GridColumn:
    """A column. ``kind``: a key of ASSERTIONS, "metric" or "judge"; ``value``: its text, metric or JUDGE:MODEL.

    >>> GridColumn.read("contains:a:b")
    GridColumn(kind='contains', value='a:b')
    """

    kind: str
    value: str = ""

    @classmethod
    def read(cls, text: str) -> GridColumn:
        """Read a column as it stands in an address. Raises UsageError."""
        kind, _, value = text.partition(":")
        column = cls(kind, value)
        column.check()
        return column

    @property
    def text(self) -> str:
        """The column as it stands in an address."""
        return f"{self.kind}:{self.value}" if self.value else self.kind

    @property
    def series(self) -> tuple[Series, ...]:
        """The scores of the column: several for a judge."""
        if self.kind == "judge":
            judge, _, llm = self.value.partition(":")
            entry = METRICS.entry(judge)
            if "judge" not in entry.traits:  # a support metric
                own = _metric_series(entry)
                return (replace(own, name=f"{own.name}:{llm}", label=f"{own.label} ({llm})"),)
            listed = entry.traits["judge"].columns
            return tuple(Series(f"{c.name}:{llm}", f"{c.name} ({llm})", c.range) for c in listed)
        if self.kind == "metric":
            return (_metric_series(metric(self.value)),)
        kind = ASSERTIONS[self.kind]
        value = f"“{self.value}”" if kind.needs in ("text", "pattern") else self.value
        label = f"{kind.label} {value}".strip()
        return (Series(label, label, (0.0, 1.0), is_assertion=True),)

    @property
    def label(self) -> str:
        """The name of the column."""
        return self.value.replace(":", " by ", 1) if self.kind == "judge" else self.series[0].label

    def check(self) -> None:
        """Raise UsageError for a kind that does not exist, or a value that does not fit it."""
        if self.kind == "metric":
            metric_scorers([self.value])
            return
        if self.kind == "judge":
            if not METRICS.is_judge(self.value) or not self.value.partition(":")[2].strip():
                raise UsageError("Choose a judge and the model that judges.", "judge")
            return
        if self.kind not in ASSERTIONS:
            raise UsageError(f"There is no column {self.kind[:60]!r}; choose one of the list.")
        needs = ASSERTIONS[self.kind].needs
        if needs and not self.value.strip():
            raise UsageError("The assertion needs a value; write one.", "value")
        if len(self.value) > LONGEST_VALUE:
            raise UsageError(f"Use at most {LONGEST_VALUE} characters.", "value")
        if needs == "number" and not (self.value.isascii() and self.value.isdigit()):
            raise UsageError(f"{self.value[:60]!r} must be a whole number.", "value")
        if needs == "pattern":
            find_pattern(self.value, "")

    def scorer(self, mark_of: MarkOf) -> Scorer:
        """Return the scorer of the column. ``mark_of``: as in ``split_judges``. Raises UsageError."""
        if self.kind == "metric":
            return metric_scorers([self.value])[0]
        if self.kind == "judge":
            (judge,) = split_judges([self.value], mark_of)[1]
            return judge
        holds = ASSERTIONS[self.kind].holds

        def score(example: Example, episode: Episode) -> Mapping[str, float]:
            return {label: float(holds(episode, self.value))}

        label = self.label
        return AnswerScorer((ScoreColumn(label, ""),), score, name=label)


def _metric_series(entry: Entry[Any]) -> Series:
    """Return the series of a metric."""
    bounds = entry.traits.get("range", NO_BOUNDS)
    return Series(entry.name, str(entry.traits["label"]), tuple(bounds))


def score_answer(
    scorer: Scorer, example: Example, episode: Episode, judgement: Episode | None = None
) -> ScoreRow:
    """Return the scores of one answer: none for a failed one, with a note."""
    if episode.error:
        return ScoreRow({}, {column.name: "the question failed" for column in scorer.columns})
    return scorer.values([Pair(example, episode)], [judgement])[0]


def metric_names(offered: Sequence[str]) -> list[str]:
    """Return the ``offered`` metrics that load no model."""
    return [
        name for name in offered if name in METRICS and "tool" not in METRICS.entry(name).traits
    ]
