"""Gold and scores of answers as MLflow's assessments: expectations, and feedback of code and of judges. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import NamedTuple

from rallebench.core.json_values import JsonValue
from rallebench.core.labels import GRADES, LabelBook, RunAnswer
from rallebench.core.types import Episode, Json
from rallebench.core.waterfall import STAGES, verdict_kind
from rallebench.engine.judging import JudgeRemark
from rallebench.tracking.content import (
    MAX_KEY,
    Scores,
    cell,
    cells,
    clean,
    gold_answers,
    gold_pages,
    question_text,
)

RUN_OF_ASSESSMENT = "mlflow.assessment.sourceRunId"
"""The key under which MLflow's pages find the run of an assessment."""

EXPECTATION, FEEDBACK = "expectation", "feedback"
HUMAN, CODE, JUDGE = "HUMAN", "CODE", "LLM_JUDGE"
"""MLflow's kinds and sources of assessments."""

VERDICT = "overall_assessment"
"""MLflow's name for the verdict on an answer, "yes" or "no"; its pages show it as "Overall", before all others."""

LABEL = "label"
"""Name of a person's feedback."""

_EXACT = "em"
FAILED, NOT_SCORED, UNPARSED = "QUESTION_FAILED", "NOT_SCORED", "NOT_READABLE"
"""Codes of feedback without a value."""

MOST_VALUES = 1_000
"""Different (name, value) pairs of a run's assessments that MLflow's page counts, in the order of the names. With more of
them, its averages would be wrong."""

ROOM_FOR_GOLD = 300
"""Pairs that are left for gold; more different scores are rounded to fewer digits."""

COST_METRICS = frozenset(
    [
        *("seconds", "generation_seconds", "retrieval_seconds", "first_token_seconds"),
        *("tokens_per_second", "prompt_tokens", "completion_tokens", "model_calls", "retrievals"),
    ]
)
"""Metrics without feedback: MLflow shows the time and the tokens of every trace."""

SHORT_ERROR = 200
"""Maximum characters of a failed question's error in each feedback; its trace has all of it."""


class TraceAssessment(NamedTuple):
    """An assessment of an answer. ``source``: the dataset, the metric or the judge's model. Feedback without a value has an
    ``error`` with a ``code``. Several people may give the same feedback.
    """

    kind: str
    name: str
    value: JsonValue
    source_type: str
    source: str
    rationale: str = ""
    code: str = ""
    error: str = ""

    def id_on(self, trace_id: str) -> str:
        """Return an id that is the same for the same name on the same trace, so that a new value replaces the old."""
        people = [self.source] if (self.kind, self.source_type) == (FEEDBACK, HUMAN) else []
        text = "\n".join((trace_id, self.kind, self.name, *people))
        return f"a-{blake2b(text.encode(), digest_size=16).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Assessor:
    """Makes the assessments of a run's answers.

    ``columns``: the metrics to report; ``remarks``: column → question id → a judge's remark; ``stages``: question id → its
    stage of the waterfall. ``digits``: digits of a score after the point. ``with_gold``: the questions whose gold MLflow
    gets, None for all; see ``within_limit``. ``labels``: the labels of people.
    """

    dataset: str
    columns: Collection[str]
    scores: Scores
    remarks: Mapping[str, Mapping[str, JudgeRemark]] = field(default_factory=dict)
    stages: Mapping[str, str] = field(default_factory=dict)
    digits: int = 4
    with_gold: Collection[str] | None = None
    labels: LabelBook = field(default_factory=LabelBook)

    def within_limit(self, records: Mapping[str, Json]) -> Assessor:
        """Return an assessor that gives at most MOST_VALUES different values: scores are rounded to 4 digits or fewer, and
        gold goes to the first questions of ``records``, by id, for whose gold there is room.
        """
        pairs = self._different(2)
        for digits in (4, 3):
            if len(finer := self._different(digits)) <= MOST_VALUES - ROOM_FOR_GOLD:
                pairs = finer
                break
        else:
            digits = 2
        room, values, with_gold = MOST_VALUES - len(pairs), set(), set()
        for qid, record in records.items():
            values |= {str(each) for each in self._expectations(record)}
            if len(values) > room:
                break
            with_gold.add(qid)
        return replace(self, digits=digits, with_gold=with_gold)

    def _different(self, digits: int) -> set[tuple[str, float | None]]:
        """Return the different scores with so many digits, with one more for errors and three for the verdict."""
        others: list[tuple[str, float | None]] = [(name, None) for name in self.columns]
        others += [(VERDICT, float(number)) for number in range(3)]
        if self.labels.answers:
            others += [(LABEL, float(number)) for number, _ in enumerate(GRADES)]
        scored = (score for of in self.scores.values() for score in of.values())
        return {
            *others,
            *(
                (score.metric, round(score.value, digits))
                for score in scored
                if score.value is not None and score.metric in self.columns
            ),
        }

    def assess(self, record: Json, episode: Episode) -> tuple[TraceAssessment, ...]:
        """Return the gold of a question as expectations, the verdict on its answer, and a feedback for each column and each
        person who labelled the answer.
        """
        verdict = self._verdict(episode)
        feedback = (self._feedback(name, episode) for name in self.columns)
        judged = (each for each in (verdict, *feedback) if each is not None)
        is_within = self.with_gold is None or episode.qid in self.with_gold
        people = self._labels(record, episode)
        return (*(self._expectations(record) if is_within else ()), *judged, *people)

    def _labels(self, record: Json, episode: Episode) -> Iterable[TraceAssessment]:
        if episode.error or not self.labels.answers:
            return
        answer = RunAnswer("", "", episode.qid, question_text(record), episode.answer)
        for label in self.labels.answer_labels(answer.key):
            who, note = clean(label.who)[:MAX_KEY], cell(clean(label.note))
            yield TraceAssessment(FEEDBACK, LABEL, label.grade, HUMAN, who, note)

    def _expectations(self, record: Json) -> Iterable[TraceAssessment]:
        source = clean(self.dataset)[:MAX_KEY]
        if answers := gold_answers(record):
            text = cell(clean(" or ".join(cells(answers))))
            yield TraceAssessment(EXPECTATION, "expected_response", text, HUMAN, source)
        if pages := gold_pages(record):
            listed: list[JsonValue] = [clean(page) for page in cells(pages)]
            yield TraceAssessment(EXPECTATION, "expected_pages", listed, HUMAN, source)

    def _verdict(self, episode: Episode) -> TraceAssessment | None:
        stage = self.stages.get(episode.qid, "")
        em = self.scores.get(episode.qid, {}).get(_EXACT)
        kind = verdict_kind(episode.error, em.value if em else None, stage)
        if not stage or kind == "none":
            return None
        if kind == "failed":
            return _failure(VERDICT, CODE, "waterfall", FAILED, episode.error)
        value = "yes" if kind == "right" else "no"
        return TraceAssessment(
            FEEDBACK, VERDICT, value, CODE, "waterfall", STAGES.get(stage, stage)
        )

    def _feedback(self, metric: str, episode: Episode) -> TraceAssessment | None:
        remark = self.remarks.get(metric, {}).get(episode.qid)
        type_, source = (
            (CODE, metric) if metric not in self.remarks else (JUDGE, self._judge(metric))
        )
        name, source = clean(metric)[:MAX_KEY], clean(source)[:MAX_KEY]
        if episode.error:
            return _failure(name, type_, source, FAILED, episode.error)
        score = self.scores.get(episode.qid, {}).get(metric)
        if score is not None and score.value is not None and math.isfinite(score.value):
            reason = remark.reason if remark else score.note
            value = round(score.value, self.digits)
            return TraceAssessment(FEEDBACK, name, value, type_, source, cell(clean(reason)))
        if remark and remark.failure:
            return _failure(name, type_, source, UNPARSED, remark.failure)
        return (
            _failure(name, type_, source, NOT_SCORED, score.note) if score and score.note else None
        )

    def _judge(self, metric: str) -> str:
        """Return the model of a judge, without its settings, which may contain a key."""
        remarks = self.remarks[metric].values()
        return next((remark.model.partition("?")[0].lstrip("(") for remark in remarks), metric)


def _failure(name: str, source_type: str, source: str, code: str, error: str) -> TraceAssessment:
    text = clean(error)[:SHORT_ERROR]
    return TraceAssessment(FEEDBACK, name, None, source_type, source, code=code, error=text)


def digest_all(assessed: Iterable[tuple[str, tuple[TraceAssessment, ...]]]) -> str:
    """Return a checksum of all assessments, given by trace id; it changes with any of them."""
    state = blake2b(digest_size=8)
    for trace_id, assessments in assessed:
        state.update(json.dumps([trace_id, assessments]).encode())
    return state.hexdigest()
