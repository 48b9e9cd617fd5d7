"""RAGQuestEval as a judge of a cell's answers; a reference's questions and answers are made once ever, in a file that can be read.

``<workspace>/crud/quest_gold_<Task>.json``: record id → key_info, question, answers, as CRUD-RAG's own
``<Task>_quest_gt_save.json``; those made here say of which reference (a digest of it) and by which model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, NotFoundError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.files import read_json, write_json
from rallebench.core.runs import RunResult
from rallebench.core.scoring import Values
from rallebench.core.sources import Source
from rallebench.core.types import Episode, Example, Flow, digest
from rallebench.experiments.common import in_folder
from rallebench.metrics import METRICS
from rallebench.metrics.judges import JudgeScorer, judge_named
from rallebench.papers.common import is_original
from rallebench.papers.crud.judge import COLUMNS, quest_scores, texts
from rallebench.papers.crud.records import CrudTask, Record

Entry = Mapping[str, Any]


def read_cache(path: Path) -> dict[str, Entry]:
    """Key → entry, {} if there is no such file. Raises BadFileError."""
    if not path.exists():
        return {}
    value = read_json(path)
    if not isinstance(value, dict) or not all(isinstance(entry, dict) for entry in value.values()):
        raise BadFileError(
            f"{path} should hold an object from record ids to questions; move it away to make them anew."
        )
    return value


def read_published(gold: str, task: CrudTask) -> dict[str, Entry]:
    """CRUD-RAG's own gold questions: a folder, or one task's file. Raises UsageError.

    ``<Task>_quest_gt_save.json`` is an object by record id; ``quest_gold_<Task>.jsonl`` has ``crud_id`` in every row.
    {} where the folder has no file of the task.
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
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        return read_cache(path)
    rows = [row for _, row in Source(path).objects()]
    if not all("crud_id" in row and "question" in row for row in rows):
        raise BadFileError(
            f"{path} holds no gold questions; every line should have crud_id, question and answers."
        )
    return {
        str(row["crud_id"]): {key: row[key] for key in QUESTIONS if key in row}
        for row in rows
        if row.get("task", task.file) == task.file
    }


def entry_for(
    entries: Mapping[str, Entry], record: str, reference: str, original: bool = False
) -> Entry | None:
    """``question`` and ``answers`` on a record's reference; None if there are none that can be used.

    An entry that was made of another reference is none. ``original``: an entry counts because its id is there, even
    if it is empty or its answers are fewer than its questions.
    """
    mark = digest(reference)
    for key in (f"{record} {mark[:8]}", record):
        entry = entries.get(key)
        if entry is not None and entry.get("reference", mark) == mark:
            questions, answers = (list(texts(entry.get(k))) for k in ("question", "answers"))
            if original or (questions and len(questions) == len(answers)):
                return {"question": questions, "answers": answers}
    return None


PROMPTS = tuple(METRICS.entry("ragquesteval").traits["judge"].prompts)
QUESTIONS = ("key_info", "question", "answers")


@dataclass(frozen=True, slots=True)
class Judging:
    """``file``: where questions are stored; ``known``: the stored and the published ones, by key; ``entries``: record id → those on
    its reference, None if there are none that can be used."""

    judge: JudgeScorer
    file: Path
    known: Mapping[str, Entry]
    entries: Mapping[str, Entry | None]


def judging_of(
    request: ExperimentRequest, task: CrudTask, records: Sequence[Record]
) -> Judging | None:
    """RAGQuestEval of these records by the model ``quest``; None without one. Raises UsageError, BadFileError."""
    s = request.settings
    if not s["quest"]:
        return None
    published = read_published(s["gold"], task)
    file = request.workspace.path / "crud" / f"quest_gold_{task.file}.json"
    known = {**published, **read_cache(file)}
    original = is_original(request)
    entries = {r.id: entry_for(known, r.id, r.reference, original) for r in records}
    judge = judge_named(
        f"ragquesteval:{s['quest']}",
        request.workspace.llm_mark,
        s["prompts"],
        compat=s["compat"],
        precision=s["quest_precision"],
        seed=request.seed,
    )

    def ask(example: Example, answer: str) -> Flow | None:
        return judge.ask(example, answer, known=entries[example.question.qid])

    def read(example: Example, answer: str, judgement: Episode) -> Values:
        values: Values = _content(judgement).get("values", {})
        return values

    judge_of_task = replace(
        judge,
        columns=COLUMNS,
        settings={**judge.settings, "gold": digest(published)[:12] if published else ""},
        ask=ask,
        read=read,
        judged=lambda episode: episode.answer or None,
    )
    return Judging(judge_of_task, file, known, entries)


def judged_of(
    judging: Judging, records: Sequence[Record], answered: RunResult
) -> tuple[dict[str, int], Mapping[str, Mapping[str, Any]]]:
    """(the counts of judged and unscored answers, record id → the JSON of a judgement with values); both are empty
    where nothing was judged."""
    episodes = answered.judgements.get(judging.judge.name)
    if episodes is None:
        return {}, {}
    answers = answered.episodes
    judged = [r for r in records if r.id in answers and answers[r.id].answer]
    contents = {qid: _content(episode) for qid, episode in episodes.items()}
    readable = sum(bool(content.get("question")) for content in contents.values())
    scored = {qid: content for qid, content in contents.items() if content.get("values")}
    quests = [quest_scores(c["answers"], c["text_answers"]) for c in scored.values()]
    counts = {
        "quest_asked": len(judged),
        "quest_new_references": sum(judging.entries[record.id] is None for record in judged),
        "quest_no_questions": len(episodes) - readable,
    }
    if readable:
        counts |= {
            "quest_unparsed": readable - len(scored),
            "quest_failed": len(judged) - len(episodes),
            "quest_scored": len(scored),
            "quest_unanswerable": sum(not quest.answerable for quest in quests),
            "quest_nothing_answered": sum(
                bool(quest.answerable) and not quest.answered for quest in quests
            ),
        }
    return counts, scored


def store_questions(judging: Judging, records: Sequence[Record], answered: RunResult) -> None:
    """Add the new questions to the file, for all later cells; entries that are there stay as they are.

    The key of an entry is the record's id, or, where that has another entry, the id and the digest of the reference.
    """
    entries = dict(judging.known)
    judgements = answered.judgements.get(judging.judge.name, {})
    for record in records:
        content = _content(judgements[record.id]) if record.id in judgements else {}
        if content.get("question") and judging.entries[record.id] is None:
            mark = digest(record.reference)
            key = f"{record.id} {mark[:8]}" if record.id in entries else record.id
            questions = {name: content[name] for name in QUESTIONS}
            entries[key] = {**questions, "reference": mark, "llm": judging.judge.llms[0]}
    before = read_cache(judging.file)
    after = {**entries, **before}
    if after != before:
        write_json(judging.file, after)


def _content(episode: Episode) -> dict[str, Any]:
    """A judgement's JSON, {} of an episode without one."""
    content: dict[str, Any] = json.loads(episode.answer) if episode.answer else {}
    return content
