"""Scorers of support: all chosen numbers of one model from one matrix per answer, in columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rallebench.core.choosing import choose
from rallebench.core.prompts import fill_template, prompt_text
from rallebench.core.registry import Entry
from rallebench.core.scoring import Pair, ScoreColumn, ScoreRow
from rallebench.core.types import Episode, Flow, Json, Message, Outcome
from rallebench.metrics import metric
from rallebench.metrics._single import single
from rallebench.metrics.judges import UNPARSED
from rallebench.metrics.recorded import ANSWER, RunEvidence, missing_evidence
from rallebench.metrics.support.checker import CachedChecker, SupportPair
from rallebench.metrics.support.folder import open_support_model
from rallebench.metrics.support.formats import premise_texts
from rallebench.metrics.support.formulas import Noted
from rallebench.metrics.support.head import support_head
from rallebench.metrics.support.matrix import (
    CLAIMS,
    GOLD_TEXT,
    AnswerMatrix,
    AnswerParts,
    Scores,
    fill_matrix,
    play,
    read_answer,
)
from rallebench.metrics.support.models import read_support_model

YES, NO = CHOICES = ("yes", "no")
PROMPT = "support.txt"
LLM_THRESHOLD = 0.5


@dataclass(frozen=True, slots=True)
class SupportTraits:
    """The number that a support metric computes from a matrix. ``parts``: the parts of the matrix that it reads besides the
    sentences."""

    compute: Callable[[AnswerMatrix], Noted]
    parts: frozenset[str]


@dataclass(frozen=True, slots=True)
class SupportScorer:
    """Support metrics of the embedded head or of one model in a folder."""

    entries: tuple[Entry[Any], ...]
    option: str

    @property
    def name(self) -> str:
        """The metrics' names."""
        return ",".join(entry.name for entry in self.entries)

    @property
    def columns(self) -> tuple[ScoreColumn, ...]:
        """One column per metric."""
        return tuple(ScoreColumn(entry.name, entry.about) for entry in self.entries)

    @property
    def needs(self) -> frozenset[str]:
        """Parts of the gold that all metrics need."""
        return frozenset.intersection(*(frozenset(_needs(entry)) for entry in self.entries))

    @property
    def llms(self) -> tuple[str, ...]:
        """Empty: no model is asked."""
        return ()

    @property
    def settings(self) -> Json:
        """Empty: the model is part of a metric's name."""
        return {}

    def text(self, episode: Episode) -> None:
        """Return None: no answer is judged."""

    def flow(self, pair: Pair) -> None:
        """Return None: no model is asked."""

    def values(self, pairs: Sequence[Pair], judgements: Sequence[Episode | None]) -> list[ScoreRow]:
        """Return the values of each answer, with the support of its sentences."""
        run = RunEvidence.of(pair.episode for pair in pairs)
        parts = [_checked_parts(pair, self.entries[0], run) for pair in pairs]
        checkable = [answer for answer in parts if not answer.note]
        checker = open_checker(self.option) if checkable else None
        filled: dict[int, AnswerMatrix] = {}
        refused: dict[int, str] = {}
        for answer in checkable if checker else ():
            reasons = (checker.refuses(answer.claim(s)) for s in answer.sentences)  # type: ignore[union-attr]
            if reason := next(filter(None, reasons), ""):
                refused[id(answer)] = reason
        if checker:
            readable = [answer for answer in checkable if id(answer) not in refused]
            needed = _read_parts(self.entries)
            flows = [fill_matrix(answer, needed, checker.threshold) for answer in readable]
            filled = dict(zip(map(id, readable), play(flows, checker.score)))
        return [
            support_row(
                self.entries, pair, answer, filled.get(id(answer)), refused.get(id(answer), "")
            )
            for pair, answer in zip(pairs, parts)
        ]

    def corpus_level(self, pairs: Sequence[Pair]) -> Mapping[str, float]:
        """Return {}: every score is a mean."""
        return {}


@dataclass(frozen=True, slots=True)
class SupportJudge:
    """Support metrics of one language model, which decides yes or no for each passage and sentence."""

    entries: tuple[Entry[Any], ...] = field(compare=False)
    llm: str
    settings: Json = field(compare=False)

    @property
    def name(self) -> str:
        """The first metric with the model, which names the folder of the pass."""
        return f"support:{self.llm}"

    @property
    def columns(self) -> tuple[ScoreColumn, ...]:
        """One column per metric."""
        return tuple(ScoreColumn(f"{entry.name}:{self.llm}", entry.about) for entry in self.entries)

    @property
    def needs(self) -> frozenset[str]:
        """Empty: an answer without the gold of one metric still has the others."""
        return frozenset()

    @property
    def llms(self) -> tuple[str, ...]:
        """The model."""
        return (self.llm,)

    def text(self, episode: Episode) -> str | None:
        """Return the answer and the passages of its prompt, which the judgement depends on."""
        from rallebench.core.citing import prompt_passages

        passages = premise_texts(prompt_passages(episode))
        numbered = [f"[{i}] {text}" for i, text in enumerate(passages, 1)]
        return "\n\n".join([episode.answer, *numbered])

    def flow(self, pair: Pair) -> Flow | None:
        """Return the flow that decides on each passage and sentence; None if nothing can be checked."""
        answer = read_answer(pair)
        needed = _read_parts(self.entries)
        return None if answer.note else self._decide(fill_matrix(answer, needed, LLM_THRESHOLD))

    def _decide(self, matrix: Scores) -> Flow:
        pairs = next(matrix)
        every: list[float] = []
        while True:
            scores = []
            for pair in pairs:
                reply = yield choose(self.llm, [Message("user", self._prompt(pair))], CHOICES)
                value = reply.choice.mean_value((1.0, 0.0)) if reply.choice else None
                if value is None:
                    return Outcome("", UNPARSED)
                scores.append(value)
            every += scores
            try:
                pairs = matrix.send(scores)
            except StopIteration:
                return Outcome(json.dumps(every))

    def _prompt(self, pair: SupportPair) -> str:
        text = "\n\n".join(premise_texts(pair.premise))
        values = {"passage": text, "claim": pair.claim.statement}
        return fill_template(str(self.settings["prompts"][PROMPT]), values)

    def values(self, pairs: Sequence[Pair], judgements: Sequence[Episode | None]) -> list[ScoreRow]:
        """Return the values of each judged answer."""
        rows = []
        for pair, judgement in zip(pairs, judgements):
            answer = read_answer(pair)
            stored = judgement.answer if judgement and not judgement.error else ""
            matrix = self._fill(answer, stored) if stored and not answer.note else None
            why = "" if matrix or answer.note else "the model's decisions could not be read"
            row = support_row(self.entries, pair, answer, matrix, why, self.llm)
            rows.append(row)
        return rows

    def _fill(self, answer: AnswerParts, stored: str) -> AnswerMatrix | None:
        """Return the matrix with the stored scores; None if they belong to other metrics."""
        scores = iter(json.loads(stored))
        matrix = fill_matrix(answer, _read_parts(self.entries), LLM_THRESHOLD)
        try:
            pairs = next(matrix)
            while True:
                pairs = matrix.send([float(next(scores)) for _ in pairs])
        except StopIteration as end:
            return end.value if isinstance(end.value, AnswerMatrix) else None

    def corpus_level(self, pairs: Sequence[Pair]) -> Mapping[str, float]:
        """Return {}: every score is a mean."""
        return {}


def support_judge(names: Sequence[str], llm: str, mark: str, prompts: str = "") -> SupportJudge:
    """Return the judge of these metrics by a language model. ``mark``: the digest of its settings; ``prompts``: the folder
    of the user's own prompts."""
    text = prompt_text("judges", PROMPT, prompts, ("passage", "claim"))
    entries = tuple(metric(name) for name in dict.fromkeys(names))
    settings = {
        "prompts": {PROMPT: text},
        "model": mark,
        "parts": sorted(_read_parts(entries)),
    }
    return SupportJudge(entries, llm, settings)


def support_row(
    entries: Sequence[Entry[Any]],
    pair: Pair,
    answer: AnswerParts,
    matrix: AnswerMatrix | None,
    why: str,
    option: str | None = None,
) -> ScoreRow:
    """Return the values of an answer. ``why``: the reason for a missing matrix; ``option``: the language model."""
    values: dict[str, float | None] = {}
    notes: dict[str, str] = {}
    for entry in entries:
        name = entry.name if option is None else f"{entry.name}:{option}"
        value, note = _value(entry, answer, matrix, why)
        values[name] = value
        if note:
            notes[name] = note if value is not None else f"not scored: {note}"
    seen = matrix or AnswerMatrix(answer)
    chosen = entries[0].traits.get("chosen", "") if option is None else option
    support = seen.support(pair.episode.qid, str(chosen))
    return ScoreRow(values, notes, support)


def _value(entry: Entry[Any], answer: AnswerParts, matrix: AnswerMatrix | None, why: str) -> Noted:
    if matrix is None:
        return Noted(None, answer.note or why)
    traits: SupportTraits = entry.traits["support"]
    if CLAIMS in traits.parts and not answer.gold.claims:
        return Noted(None, "no gold claims")
    if GOLD_TEXT in traits.parts and not answer.gold_text:
        return Noted(None, "no gold text")
    return traits.compute(matrix)


def _checked_parts(pair: Pair, entry: Entry[Any], run: RunEvidence) -> AnswerParts:
    from dataclasses import replace

    lacks = missing_evidence(pair.episode, entry, run)
    answer = read_answer(pair)
    return replace(answer, note=lacks.removeprefix("not scored: ")) if lacks else answer


def _read_parts(entries: Sequence[Entry[Any]]) -> frozenset[str]:
    return frozenset().union(*(entry.traits["support"].parts for entry in entries))


def _needs(entry: Entry[Any]) -> tuple[str, ...]:
    return tuple(part for part in entry.traits.get("needs", "").split("+") if part)


@single
def open_checker(option: str) -> CachedChecker:
    """Return the embedded head, or the model of a folder, with a cache of pairs that later runs share."""
    return CachedChecker(
        open_support_model(read_support_model(option)) if option else support_head()
    )


READS = ANSWER
"""The part of an episode that a support metric needs."""
