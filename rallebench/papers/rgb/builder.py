"""Records in RGB's form from retrieved passages: passages with the answer are positive, the others negative.

A false copy is a positive with the answer replaced by another of the same shape.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rallebench.core.answers import find_answers
from rallebench.core.errors import Hint, UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Report
from rallebench.core.files import json_lines
from rallebench.core.runs import DatasetRef, RunRequest
from rallebench.core.scoring import Values
from rallebench.core.settings import dataclass_form
from rallebench.core.sources import Source
from rallebench.core.types import Episode, Example, Flow, Outcome, Question, Retrieve
from rallebench.datasets.reading import read_questions
from rallebench.engine.store import RunFolder
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.common import scored_run
from rallebench.papers.common import count_sentences, flow_spec
from rallebench.papers.rgb.benchmark import RGB
from rallebench.papers.rgb.records import (
    SEED,
    RgbRecord,
    bare_example,
    read_records,
    read_required,
    write_required,
)
from rallebench.papers.rgb.scoring import assess
from rallebench.papers.rgb.settings import RecordSettings
from rallebench.papers.rgb.writing import SourceQuestions, write_questions
from rallebench.workspace.paths import WorkspaceFolder

Row = dict[str, Any]


def with_documents(question: RgbRecord, texts: Sequence[str]) -> RgbRecord:
    """A question with its documents, best first, grouped by the required answer that they contain as whole words. Each text is
    used once; a text with several answers goes to the smallest group."""
    groups: list[list[str]] = [[] for _ in question.required]
    negative: list[str] = []
    for text in dict.fromkeys(texts):
        held = [groups[i] for i, group in enumerate(question.required) if find_answers(text, group)]
        (min(held, key=len) if held else negative).append(text)
    positive, grouped = tuple(map(tuple, groups)), len(groups) > 1
    return replace(question, positive=positive, negative=tuple(negative), wrong=(), grouped=grouped)


def record_row(record: RgbRecord) -> Row:
    """A row of a base set, of an integration set (if positives are grouped), or of a fact set (if there are false copies)."""
    row = {
        "id": record.id,
        "query": record.query,
        "answer": record.answer,
        "positive": list(map(list, record.positive)) if record.grouped else list(record.flat),
        "negative": list(record.negative),
    }
    false = {"fakeanswer": record.fake, "positive_wrong": list(record.wrong)}
    return {**row, **false} if record.wrong else row


def replace_answer(text: str, aliases: Sequence[str], fake: str) -> str:
    """Replace every occurrence of an alias.

    >>> replace_answer("Tampa is in Florida; TAMPA!", ["Tampa"], "Miami")
    'Miami is in Florida; Miami!'
    """
    for start, end, _ in reversed(find_answers(text, aliases)):
        text = text[:start] + fake + text[end:]
    return text


def answer_shape(answer: str) -> str:
    """The pattern of digits, words and capitals in an answer, which a false answer must share.

    >>> answer_shape("7 February 2021"), answer_shape("12 May 1999"), answer_shape("Tampa")
    ('9 A 9999', '99 A 9999', 'A')
    """
    words = (
        re.sub(r"[^\W\d_]+", lambda match: "A" if match[0][0].isupper() else "a", word)
        for word in answer.split()
    )
    return " ".join(re.sub(r"\d", "9", word) for word in words)


def false_answers(questions: Sequence[RgbRecord]) -> Mapping[str, str]:
    """Question id → a false answer: the question's own, or the answer of another question with the same shape. Questions
    without a false answer, or with several required answers, are absent."""
    single = [question for question in questions if len(question.required) == 1]
    shapes: dict[str, list[str]] = {}
    for answer in dict.fromkeys(question.required[0][0] for question in single):
        shapes.setdefault(answer_shape(answer), []).append(answer)
    fakes = {}
    for question in single:
        (aliases,) = question.required
        lowered = [alias.lower() for alias in aliases]
        alike = [  # RGB's scoring cannot tell an answer from a part of it
            other
            for other in shapes[answer_shape(aliases[0])]
            if not any(other.lower() in alias or alias in other.lower() for alias in lowered)
        ]
        if question.fake or alike:
            chance = random.Random(f"{SEED} {question.id}")
            fakes[question.id] = question.fake or chance.choice(alike)
    return fakes


WORKFLOW = "rgb-testbed"
METRICS = {
    "positives": "documents that hold a required answer, at word boundaries; over all questions",
    "negatives": "documents that hold none; over all questions",
}
SENTENCES: Mapping[str, str] = {
    "without_positives": "have no document for an answer and were left out",
    "too_few_positives": "have fewer positives than were asked for and were left out",
    "without_negatives": "have no document without the answer",
    "without_false_answer": "have no false copies: no other answer looks like theirs",
    "not_known": "have no false copies: the model does not know them",
    "unanswered": "have no answer and were left out",
}
"""Key of a count in the report → end of its sentence."""


@RGB.suite(
    "rgb-testbed",
    ready="Without a download: questions of a dataset over BM25, in English and in Chinese; choose a model that writes questions.",
    needs_llm=False,
    named_by=("articles",),
    form=dataclass_form(RecordSettings),
)
def testbed(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """RGB's records from a dataset and an index: positives, negatives, false copies by the answer."""
    s = request.read(RecordSettings)
    _check(request, s)
    if s.articles:
        source = yield from write_questions(request, s)
    else:
        source = _read(request, s.data)
    questions, known = source.questions, _known_questions(request, s, source.questions)
    records: dict[str, RgbRecord] = {}
    result = yield _documents_run(s, source, records)
    for question in questions:  # do not score the answers of an earlier session again
        if question.id in result.episodes and question.id not in records:
            records[question.id] = _with_hits(question, result.episodes[question.id])
    answered = [records[question.id] for question in questions if question.id in records]
    sets, counts = _sets(answered, s.positives, false_answers(questions), known)
    counts |= source.counts
    sets = {f"{s.language}{end}": rows for end, rows in sets.items()}
    files = {f"{name}.jsonl": json_lines(rows) for name, rows in sets.items() if rows}
    sizes = {name: len(rows) for name, rows in sets.items()}
    return Report(
        {"questions": len(questions), "records": sizes, **counts},
        (*source.notes, *count_sentences(counts, SENTENCES, "questions")),
        {**source.files, **files},
    )


@EXPERIMENTS.register(
    "build-rgb",
    place="builders",
    form=dataclass_form(RecordSettings),
    needs_llm=False,
    articles=False,
)
def build_rgb(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """RGB's records: positive, negative and false documents from an index, for the questions of a set or of articles."""
    report = yield from testbed(request)
    return replace(report, data={"records": report.data["records"]})


def _check(request: ExperimentRequest[WorkspaceFolder], s: RecordSettings) -> None:
    """Raise UsageError for conflicting settings or an unknown retriever."""
    if bool(s.data) == bool(s.articles) or not s.index:
        raise UsageError(
            "A testbed needs a dataset, or articles, and an index.",
            hint=Hint("set", "data=FILE index=NAME"),
        )
    if s.prompts and not s.articles:
        raise UsageError(
            "prompts goes with articles, whose questions a model writes; leave it out."
        )
    request.workspace.retriever(s.index)


def _documents_run(
    settings: RecordSettings, source: SourceQuestions, records: dict[str, RgbRecord]
) -> RunRequest:
    """A run that retrieves the documents of every question; scoring it fills ``records``."""
    index, k = settings.index, settings.k
    questions = {question.id: question for question in source.questions}

    def flow(question: Question) -> Flow:
        yield Retrieve(index, question.text, k)
        return Outcome("")

    def score(example: Example, episode: Episode) -> Values:
        qid = example.question.qid
        records[qid] = record = _with_hits(questions[qid], episode)
        return {
            "positives": float(sum(map(len, record.positive))),
            "negatives": float(len(record.negative)),
        }

    searching = flow_spec(WORKFLOW, flow, {"k": k}, retrievers=(index,))
    examples = tuple(map(bare_example, source.questions))
    return scored_run("documents", searching, DatasetRef(source.name), examples, score, METRICS)


def _with_hits(question: RgbRecord, episode: Episode) -> RgbRecord:
    return with_documents(question, [hit.passage.text for hit in episode.hits])


def _sets(
    records: Sequence[RgbRecord],
    positives: int,
    fakes: Mapping[str, str],
    known: frozenset[str] | None,
) -> tuple[dict[str, list[Row]], dict[str, int]]:
    """(suffix of a set's name → its rows, the counts of SENTENCES). ``known``: ids of questions that a run answered correctly;
    None for all questions."""
    sets: dict[str, list[Row]] = {"": [], "_int": [], "_fact": []}
    counts = dict.fromkeys(SENTENCES, 0)
    for record in records:
        counts["without_negatives"] += not record.negative
        if not all(record.positive):
            counts["without_positives"] += 1
        elif sum(map(len, record.positive)) < positives:
            counts["too_few_positives"] += 1
        elif record.grouped:
            sets["_int"].append(record_row(record))
        else:
            sets[""].append(record_row(record))
            if known is not None and record.id not in known:
                counts["not_known"] += 1
            elif fake := fakes.get(record.id):
                wrong = tuple(
                    replace_answer(text, record.required[0], fake) for text in record.flat
                )
                sets["_fact"].append(record_row(replace(record, fake=fake, wrong=wrong)))
            else:
                counts["without_false_answer"] += 1
    return sets, counts


def _read(request: ExperimentRequest[WorkspaceFolder], data: str) -> SourceQuestions:
    """The questions of a set that have answers."""
    name, path = request.workspace.dataset(data)
    _, first = next(iter(Source(path).objects()), (0, {}))
    if "query" in first:
        questions = list(read_records(path).records)
    else:
        questions = list(map(_question, read_questions(path)))
    answerable = [question for question in questions if question.required]
    if not answerable[: request.limit]:
        raise UsageError(
            f"No question of {path} has an answer, so no document is positive or negative."
        )
    unanswered = len(questions) - len(answerable)
    return SourceQuestions(name, answerable[: request.limit], {"unanswered": unanswered})


def _question(example: Example) -> RgbRecord:
    # A KILT record may include RGB's own answer, which can require several parts.
    record: Mapping[str, Any] = example.record
    own = read_required(record["answer"]) if "answer" in record else ()
    required = own or ((example.gold.answers,) if example.gold.answers else ())
    fake = str(record.get("fakeanswer") or "")
    qid, text = example.question.qid, example.question.text
    return RgbRecord(qid, text, write_required(required), required, fake=fake)


def _known_questions(
    request: ExperimentRequest[WorkspaceFolder],
    settings: RecordSettings,
    questions: Sequence[RgbRecord],
) -> frozenset[str] | None:
    """Ids of the questions answered correctly by the named run; None without a run. Raises UsageError."""
    run, language = settings.known, settings.language
    if not run:
        return None
    episodes = RunFolder.open(request.workspace.runs, run).episodes()
    right = frozenset(
        question.id
        for question in questions
        if (episode := episodes.get(question.id)) is not None
        and not episode.error
        and assess(episode.answer, question.required, language).right
    )
    if not right:
        raise UsageError(
            f"The run {run!r} answered none of these questions right, so nothing is known."
        )
    return right
