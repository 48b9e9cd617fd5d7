"""RAGQuestEval as the judge of a cell's answers. Questions and answers about a reference are stored in a readable file for
reuse.

``<workspace>/crud/quest_gold_<Task>.json`` maps record ids to key_info, question and answers, like CRUD-RAG's own
``<Task>_quest_gt_save.json``. Our entries also name the reference (by digest) and the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from rallebench.core.errors import BadFileError, NotFoundError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.files import read_json, write_json
from rallebench.core.runs import RunResult
from rallebench.core.scoring import Values
from rallebench.core.settings import fill
from rallebench.core.sources import Source
from rallebench.core.streams import plain_name
from rallebench.core.types import Episode, Example, Flow, Json, digest
from rallebench.experiments.common import in_folder
from rallebench.metrics import METRICS
from rallebench.metrics.judges import JudgeScorer, judge_named
from rallebench.papers.crud.judge import COLUMNS, QuestEntry, texts
from rallebench.papers.crud.records import CrudTask, Record
from rallebench.papers.crud.settings import AnsweringSettings
from rallebench.workspace.paths import WorkspaceFolder


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """A stored entry, unchecked. ``reference``: the digest of the reference, if known."""

    question: object = ()
    answers: object = ()
    reference: str = ""


@dataclass(frozen=True, slots=True)
class PublishedLine:
    """A line of a published file of questions. ``task``: its name in CRUD's own files."""

    crud_id: object
    task: str = ""


def read_cache(path: Path) -> dict[str, Json]:
    """Key → entry; {} if the file does not exist. Raises BadFileError."""
    if not path.exists():
        return {}
    value = read_json(path)
    if not isinstance(value, dict) or not all(isinstance(entry, dict) for entry in value.values()):
        raise BadFileError(
            f"{path} should hold an object from record ids to questions; move it away to make them anew."
        )
    return value


def read_published(gold: str, task: CrudTask) -> dict[str, Json]:
    """CRUD-RAG's own gold questions, from a folder or from one task's file. Raises UsageError.

    ``<Task>_quest_gt_save.json`` is an object keyed by record id; ``quest_gold_<Task>.jsonl`` has ``crud_id`` in every row.
    Returns {} for a folder without a file of the task.
    """
    if not gold:
        return {}
    path = Path(gold).expanduser()
    if not path.exists():
        raise NotFoundError(
            f"gold={gold}: it does not exist; name the folder of CRUD-RAG's gold questions, or one file."
        )
    if path.is_dir():
        names = ("{}_quest_gt_save.json", "quest_gold_{}.jsonl", "quest_gold_{}.json")
        file = in_folder(path, (name.format(task.file) for name in names))
        if file is None:
            return {}
        path = file
    if not plain_name(path.name).endswith(".jsonl"):
        return read_cache(path)
    rows = [row for _, row in Source(path).objects()]
    if not all("crud_id" in row and "question" in row for row in rows):
        raise BadFileError(
            f"{path} holds no gold questions; every line should have crud_id, question and answers."
        )
    lines = ((fill(PublishedLine, row), row) for row in rows)
    return {
        str(line.crud_id): {key: row[key] for key in QUESTIONS if key in row}
        for line, row in lines
        if line.task in ("", task.file)
    }


def find_entry(
    entries: Mapping[str, Json], record: str, reference: str, original: bool = False
) -> QuestEntry | None:
    """The usable questions and answers about a record's reference; None if there are none.

    An entry for a different reference is ignored. ``original``: use any entry with the record's id, even if it is empty or has
    fewer answers than questions.
    """
    mark = digest(reference)
    for key in (f"{record} {mark[:8]}", record):
        entry = fill(StoredEntry, entries[key]) if key in entries else None
        if entry is not None and entry.reference in ("", mark):
            questions, answers = texts(entry.question), texts(entry.answers)
            if original or (questions and len(questions) == len(answers)):
                return QuestEntry(questions, answers=answers)
    return None


PROMPTS = tuple(METRICS.entry("ragquesteval").traits["judge"].prompts)
QUESTIONS = ("key_info", "question", "answers")


@dataclass(frozen=True, slots=True)
class Judging:
    """The judge of a cell. ``file``: the path of the stored questions; ``known``: key → stored or published entry;
    ``entries``: record id → usable entry, or None; ``by_paper``: precision follows the paper."""

    judge: JudgeScorer
    file: Path
    known: Mapping[str, Json]
    entries: Mapping[str, QuestEntry | None]
    by_paper: bool = False

    @property
    def llm(self) -> str:
        """The name of the judge's model."""
        return self.judge.llms[0]


def plan_judging(
    request: ExperimentRequest[WorkspaceFolder],
    settings: AnsweringSettings,
    task: CrudTask,
    records: Sequence[Record],
) -> Judging | None:
    """RAGQuestEval for these records with the model ``quest``; None without a model. Raises UsageError, BadFileError."""
    if not settings.quest:
        return None
    published = read_published(settings.gold, task)
    file = request.workspace.path / "crud" / f"quest_gold_{task.file}.json"
    known = {**published, **read_cache(file)}
    entries = {r.id: find_entry(known, r.id, r.reference, settings.original) for r in records}
    judge = judge_named(
        f"ragquesteval:{settings.quest}",
        request.workspace.llm_mark,
        settings.prompts,
        compat=settings.compat,
        precision=settings.quest_precision,
        seed=request.seed,
    )

    def ask(example: Example, answer: str) -> Flow | None:
        return judge.ask(example, answer, known=entries[example.question.qid])

    def read(example: Example, answer: str, judgement: Episode) -> Values:
        return _content(judgement).values

    judge_of_task = replace(
        judge,
        columns=COLUMNS,
        settings={**judge.settings, "gold": digest(published)[:12] if published else ""},
        ask=ask,
        read=read,
        judged=lambda episode: episode.answer or None,
    )
    return Judging(judge_of_task, file, known, entries, settings.quest_precision == "paper")


def count_judgements(
    judging: Judging, records: Sequence[Record], answered: RunResult
) -> tuple[QuestCounts, Mapping[str, QuestEntry]]:
    """(counts of judged and unscored answers, record id → the questions and answers of each scored answer); both are empty
    without judgements."""
    episodes = answered.judgements.get(judging.judge.name)
    if episodes is None:
        return QuestCounts(), {}
    answers = answered.episodes
    judged = [r for r in records if r.id in answers and answers[r.id].answer]
    contents = {qid: _content(episode) for qid, episode in episodes.items()}
    readable = sum(bool(content.question) for content in contents.values())
    scored = {qid: content.entry for qid, content in contents.items() if content.values}
    quests = [entry.scores() for entry in scored.values()]
    counts = QuestCounts(
        judged=len(judged),
        new_references=sum(judging.entries[record.id] is None for record in judged),
        no_questions=len(episodes) - readable,
    )
    if readable:
        counts = replace(
            counts,
            unparsed=readable - len(scored),
            failed=len(judged) - len(episodes),
            scored=len(scored),
            unanswerable=sum(not quest.answerable for quest in quests),
            nothing_answered=sum(bool(quest.answerable) and not quest.answered for quest in quests),
        )
    return counts, scored


@dataclass(frozen=True, slots=True)
class QuestCounts:
    """The number of judged answers, and of answers left out of both RAGQuestEval means; None for a count that was not made."""

    judged: int | None = None
    new_references: int | None = None
    no_questions: int | None = None
    unparsed: int | None = None
    failed: int | None = None
    scored: int | None = None
    unanswerable: int | None = None
    nothing_answered: int | None = None

    def to_json(self) -> dict[str, int]:
        names = {"judged": "asked"}
        return {
            f"quest_{names.get(name, name)}": n for name, n in asdict(self).items() if n is not None
        }


def store_questions(judging: Judging, records: Sequence[Record], answered: RunResult) -> None:
    """Append the new questions to the file for later cells; existing entries are kept.

    The key of an entry is its record's id. If another entry has this id, the digest of the reference is appended.
    """
    entries = dict(judging.known)
    judgements = answered.judgements.get(judging.judge.name, {})
    for record in records:
        content = _content(judgements[record.id]) if record.id in judgements else JudgedContent()
        if content.question and judging.entries[record.id] is None:
            mark = digest(record.reference)
            key = f"{record.id} {mark[:8]}" if record.id in entries else record.id
            questions = replace(content.entry, text_answers=None).to_json()
            entries[key] = {**questions, "reference": mark, "llm": judging.llm}
    before = read_cache(judging.file)
    after = {**entries, **before}
    if after != before:
        write_json(judging.file, after)


@dataclass(frozen=True, slots=True)
class JudgedContent:
    """The JSON content of a judgement."""

    values: Mapping[str, float] = field(default_factory=dict)
    question: Sequence[str] = ()
    key_info: Sequence[str] | None = None
    answers: Sequence[str] | None = None
    text_answers: Sequence[str] | None = None

    @property
    def entry(self) -> QuestEntry:
        return QuestEntry(self.question, self.key_info, self.answers, self.text_answers)


def _content(episode: Episode) -> JudgedContent:
    """The JSON content of a judgement; empty if the episode has none."""
    return fill(JudgedContent, json.loads(episode.answer)) if episode.answer else JudgedContent()
