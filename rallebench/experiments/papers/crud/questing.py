"""RAGQuestEval as parts of a suite: the references' questions, once ever, and what each answer says to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rallebench.core.experiments import ExperimentRequest
from rallebench.core.prompts import filled, prompt_text
from rallebench.core.runs import RunRequest, RunResult, Values
from rallebench.core.types import (
    Episode,
    Example,
    Flow,
    Generate,
    Gold,
    Message,
    Outcome,
    Question,
    digest,
)
from rallebench.engine.statistics import Mean
from rallebench.experiments.papers.crud import gold
from rallebench.experiments.papers.crud.definitions import named
from rallebench.experiments.papers.crud.gold import Entry, GoldQuestions
from rallebench.experiments.papers.crud.quest import (
    Quest,
    answers_in,
    numbered,
    quest_scores,
    questions_in,
)
from rallebench.experiments.papers.crud.records import Record
from rallebench.experiments.papers.crud.tasks import Task
from rallebench.experiments.runs import scored_run
from rallebench.workspace.paths import Workspace

WORKFLOW = "crud-quest"
UNREAD = "unparsed"
PROMPTS = ("quest-questions.txt", "quest-answers.txt")
TEMPERATURE, MAX_TOKENS = 0.1, 1280


@dataclass(frozen=True, slots=True)
class Judging:
    """Who is asked, with which prompts; ``known``: the questions that are kept or published, by key.

    ``over_all``: precision as the paper's formula has it, over the questions that the text does not answer, too.
    """

    workspace: Workspace
    task: Task
    llm: str
    ask: str
    answer: str
    known: Mapping[str, Entry]
    original: bool = False
    over_all: bool = False
    seed: int = 0

    def generate(self, prompt: str) -> Generate:
        """The request for one prompt."""
        sent = (Message("user", prompt),)
        return Generate(
            self.llm, sent, max_tokens=MAX_TOKENS, temperature=TEMPERATURE, seed=self.seed
        )


@dataclass(frozen=True, slots=True)
class Judged:
    """``questions``: record id → its gold questions; ``answers``: record id → what its text says to them, where
    that could be read. ``means``, ``counts``: see ``cells.Cell``."""

    means: Mapping[str, Mean]
    counts: Mapping[str, int]
    questions: Mapping[str, GoldQuestions] = field(default_factory=dict)
    answers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    values: Mapping[str, Quest] = field(default_factory=dict)


def judging_of(asked: ExperimentRequest, task: Task) -> Judging | None:
    """RAGQuestEval as it was asked for, if it was. Raises UsageError."""
    s = asked.settings
    if not s["quest"]:
        return None
    asked.workspace.llm(s["quest"])
    ask = prompt_text("suites/crud", PROMPTS[0], s["prompts"], ("text",))
    answer = prompt_text("suites/crud", PROMPTS[1], s["prompts"], ("text", "questions"))
    published = gold.read_published(s["gold"], task)
    known = {**published, **gold.read_cache(gold.cache_file(asked.workspace, task))}
    return Judging(
        asked.workspace,
        task,
        s["quest"],
        ask,
        answer,
        known,
        s["compat"] == "original",
        s["quest_precision"] == "paper",
        asked.seed,
    )


def judge(
    judging: Judging, records: Sequence[Record], said: Mapping[str, str], label: str, dataset: str
) -> Generator[RunRequest, RunResult, Judged]:
    """Ask what the references must be asked, then every text in ``said`` (record id → answer)."""
    wanted = [record for record in records if record.id in said]
    known = judging.known
    found = _found(known, wanted, judging.original)
    missing = [record for record in wanted if record.id not in found]
    counts = {"quest_asked": len(wanted), "quest_new_references": len(missing)}
    if missing:
        answered = yield _references(judging, missing, label, dataset)
        known = _with_made(judging, missing, answered)
        found |= _found(known, missing, judging.original)
    usable = {qid: one for qid, one in found.items() if one.questions}
    counts["quest_no_questions"] = len(wanted) - len(usable)
    if not usable:
        return Judged({}, counts)
    texts = {qid: said[qid] for qid in usable}
    answered = yield _texts(judging, usable, texts, label, dataset, known)
    answers = {qid: tuple(json.loads(e.answer)) for qid, e in answered.episodes.items() if e.answer}
    values = {
        qid: one
        for qid in answers
        if (one := scored(judging, usable[qid], answers[qid])) is not None
    }
    counts |= {
        "quest_unparsed": len(usable) - answered.n_errors - len(values),
        "quest_failed": answered.n_errors,
        "quest_scored": len(values),
        "quest_unanswerable": sum(not one.kept for one in values.values()),
        "quest_nothing_answered": sum(
            bool(one.kept) and not one.answered for one in values.values()
        ),
    }
    return Judged(answered.means, counts, usable, answers, values)


def _found(
    known: Mapping[str, Entry], records: Sequence[Record], original: bool
) -> dict[str, GoldQuestions]:
    looked = {
        record.id: gold.find(known, record.id, record.reference, original) for record in records
    }
    return {qid: one for qid, one in looked.items() if one is not None}


def _with_made(
    judging: Judging, records: Sequence[Record], answered: RunResult
) -> dict[str, Entry]:
    """The known questions and those that were made of references."""
    known = dict(judging.known)
    for record in records:
        episode = answered.episodes.get(record.id)
        if episode is not None and episode.answer:
            made = json.loads(episode.answer)
            known[gold.key_for(known, record.id, record.reference)] = gold.entry_of(
                made, record.reference, judging.llm
            )
    return known


def _keep(judging: Judging, known: Mapping[str, Entry]) -> None:
    gold.keep(gold.cache_file(judging.workspace, judging.task), known)


def scored(judging: Judging, questions: GoldQuestions, answers: Sequence[str]) -> Quest | None:
    """One text's scores; None where answers are missing, as in the original, which drops such a record."""
    try:
        return quest_scores(questions.answers, answers, over_all=judging.over_all)
    except IndexError:
        return None


def _references(
    judging: Judging, records: Sequence[Record], label: str, dataset: str
) -> RunRequest:
    references = {record.id: record.reference for record in records}
    mark = digest([judging.ask, judging.answer, judging.llm, references])[:6]

    def score(example: Example, episode: Episode) -> Values:
        made = json.loads(episode.answer) if episode.answer else None
        return {"questions": float(len(made["question"])) if made else None}

    return _part(
        judging,
        f"{label} quest references {mark}",
        dataset,
        references,
        lambda question: asking(judging, references[question.qid]),
        score,
        {
            "questions": "Questions made of a reference. Over the references whose questions and answers could be read."
        },
        lambda answered: _keep(judging, _with_made(judging, records, answered)),
    )


def _texts(
    judging: Judging,
    gold_: Mapping[str, GoldQuestions],
    said: Mapping[str, str],
    label: str,
    dataset: str,
    known: Mapping[str, Entry],
) -> RunRequest:
    mark = digest(
        [judging.answer, judging.llm, {q: list(one.questions) for q, one in gold_.items()}, said]
    )[:6]

    def score(example: Example, episode: Episode) -> Values:
        qid = example.question.qid
        found = scored(judging, gold_[qid], json.loads(episode.answer)) if episode.answer else None
        return {"QA_avg_F1": found.f1, "QA_recall": found.recall} if found else {}

    return _part(
        judging,
        f"{label} quest {mark}",
        dataset,
        said,
        lambda question: answering(judging, gold_[question.qid].questions, said[question.qid]),
        score,
        named("QA_avg_F1", "QA_recall"),
        lambda answered: _keep(judging, known),
    )


def _part(
    judging: Judging,
    label: str,
    dataset: str,
    said: Mapping[str, str],
    flow: Callable[[Question], Flow],
    score: Callable[[Example, Episode], Values],
    metrics: Mapping[str, str],
    keep: Callable[[RunResult], None],
) -> RunRequest:
    examples = tuple(
        Example(Question(qid, text), Gold(), {"id": qid, "input": text, "output": []})
        for qid, text in said.items()
    )
    settings = {
        "task": judging.task.key,
        "ask": judging.ask,
        "answer": judging.answer,
        "original": judging.original,
    }
    return scored_run(
        label,
        WORKFLOW,
        dataset,
        examples,
        flow,
        settings,
        score,
        metrics,
        (judging.llm,),
        on_result=keep,
    )


def asking(judging: Judging, reference: str) -> Flow:
    """Make a reference's questions and have the reference answer them; the outcome is the entry as JSON."""
    reply = yield judging.generate(filled(judging.ask, {"text": reference}))
    made = questions_in(reply.text, strict=judging.original)
    if made is None:
        return Outcome("", UNREAD)
    answers = yield from _answers(judging, made["question"], reference)
    if answers is None:
        return Outcome("", UNREAD)
    return Outcome(json.dumps({**made, "answers": list(answers)}, ensure_ascii=False))


def answering(judging: Judging, questions: Sequence[str], text: str) -> Flow:
    """Have a text answer questions; the outcome is the list of answers as JSON."""
    answers = yield from _answers(judging, questions, text)
    return (
        Outcome("", UNREAD)
        if answers is None
        else Outcome(json.dumps(list(answers), ensure_ascii=False))
    )


def _answers(
    judging: Judging, questions: Sequence[str], text: str
) -> Generator[Any, Any, tuple[str, ...] | None]:
    prompt = filled(judging.answer, {"text": text, "questions": numbered(questions)})
    reply = yield judging.generate(prompt)
    return answers_in(reply.text, len(questions), strict=judging.original)
