"""RAGQuestEval's questions on references, and the references' answers: made once, kept in a file that can be read.

``<workspace>/crud/quest_gold_<Task>.json``: record id → key_info, question, answers, as CRUD-RAG's own
``<Task>_quest_gt_save.json``; those made here say of which reference (a digest of it) and by which model.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, NotFoundError
from rallebench.core.files import read_json, write_json
from rallebench.core.sources import Source
from rallebench.core.types import digest
from rallebench.experiments.papers.crud.tasks import CrudTask
from rallebench.metrics.judges.ragquesteval import texts
from rallebench.workspace.paths import Workspace

Entry = Mapping[str, Any]


def cache_file(workspace: Workspace, task: CrudTask) -> Path:
    """The file of a task's questions."""
    return workspace.path / "crud" / f"quest_gold_{task.file}.json"


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
            f"--set gold={gold}: it does not exist; name the folder of CRUD-RAG's gold questions, or one file."
        )
    if path.is_dir():
        names = [
            f"{task.file}_quest_gt_save.json",
            f"quest_gold_{task.file}.jsonl",
            f"quest_gold_{task.file}.json",
        ]
        files = [path / name for name in names if (path / name).is_file()]
        if not files:
            return {}
        path = files[0]
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        return read_cache(path)
    rows = [row for _, row in Source(path).objects()]
    if not all("crud_id" in row and "question" in row for row in rows):
        raise BadFileError(
            f"{path} holds no gold questions; every line should have crud_id, question and answers."
        )
    mine = [row for row in rows if row.get("task", task.file) == task.file]
    return {
        str(row["crud_id"]): {
            key: row[key] for key in ("key_info", "question", "answers") if key in row
        }
        for row in mine
    }


def find(
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


def key_for(entries: Mapping[str, Entry], record: str, reference: str) -> str:
    """Where a new entry goes: the record's id, or beside what is there of another reference or without use."""
    return f"{record} {digest(reference)[:8]}" if record in entries else record


def entry_of(entry: Entry, reference: str, llm: str) -> Entry:
    """The stored form of questions that ``llm`` made of a reference."""
    return {**entry, "reference": digest(reference), "llm": llm}


def store(path: Path, entries: Mapping[str, Entry]) -> None:
    """Add entries to the file; those that are there stay as they are."""
    before = read_cache(path)
    after = {**entries, **before}
    if after != before:
        write_json(path, after)
