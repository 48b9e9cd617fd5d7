"""CRUD-RAG's six tasks, with prompts and names, and their records: a JSON object with one list per task, or one task's records
as JSON or JSON lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, Hint, NotFoundError, UsageError
from rallebench.core.files import read_json
from rallebench.core.registry import unknown
from rallebench.core.settings import declare_list
from rallebench.core.sources import Source
from rallebench.core.streams import plain_name
from rallebench.experiments.common import in_folder, names_in


@dataclass(frozen=True, slots=True)
class CrudTask:
    """A task. ``name``: in our suites; ``key``: of its list in CRUD's file; ``file``: its name in CRUD's own files.

    ``printed``: its name in the paper's tables. ``fields``: prompt placeholder → record field; all are sent to the retriever.
    ``original_query``: the fields sent by CRUD's code, if fewer. ``news``: the fields with the text of gold documents.
    ``ranked``: the reciprocal rank is reported.
    """

    name: str
    key: str
    file: str
    printed: str
    about: str
    fields: Mapping[str, str]
    reference: str
    news: tuple[str, ...] = ()
    original_query: tuple[str, ...] = ()
    ranked: bool = False

    def query(self, values: Mapping[str, str], original: bool) -> str:
        """The query made from a record's ``values``; CRUD-RAG's code (``original``) sends fewer fields than its paper."""
        return "\n".join(values[name] for name in (original and self.original_query) or self.fields)

    @property
    def prompt(self) -> str:
        """The file of the task's prompt; all question tasks share one."""
        return f"{self.name.rstrip('123')}.txt"


def _qa(number: int) -> CrudTask:
    several = "s" * (number > 1)
    return CrudTask(
        f"qa{number}",
        f"questanswer_{number}doc{several}",
        f"QuestAnswer{number}Doc{several}",
        f"question answering {number}-document",
        f"questions answered from {number} document{several}",
        {"question": "questions"},
        "answers",
        news=tuple(f"news{n}" for n in range(1, number + 1)),
        ranked=True,
    )


_ALL = (
    CrudTask(
        "summary",
        "event_summary",
        "Summary",
        "summarization",
        "an event summarised from reports on it",
        {"event": "event"},
        "summary",
    ),
    CrudTask(
        "continuation",
        "continuing_writing",
        "ContinueWriting",
        "text continuation",
        "the second half of an article",
        {"beginning": "beginning"},
        "continuing",
    ),
    CrudTask(
        "hallucination",
        "hallu_modified",
        "HalluModified",
        "hallucination modification",
        "errors in a continuation put right",
        {"beginning": "newsBeginning", "hallucination": "hallucinatedContinuation"},
        "hallucinatedMod",
        original_query=("beginning",),
        ranked=True,
    ),
    *map(_qa, (1, 2, 3)),
)

TASKS: Mapping[str, CrudTask] = {task.name: task for task in _ALL}

GROUPS: Mapping[str, tuple[str, ...]] = {
    "all": tuple(TASKS),
    "quest_answer": ("qa1", "qa2", "qa3"),
    **{task.key: (task.name,) for task in _ALL},
    **{task.file: (task.name,) for task in _ALL},
    **{task.name: (task.name,) for task in _ALL},
}
"""All names of tasks and task groups: ours, and the names in CRUD's command line, data file and results."""


def declare_tasks(about: str = "as in qa1,summary, or quest_answer, or all") -> str:
    """A settings field that names tasks."""
    return declare_list(about, *TASKS, "quest_answer", "all", default="all")


def find_tasks(text: str) -> tuple[CrudTask, ...]:
    """The tasks in a list of names, without duplicates, in our order. Raises UsageError.

    >>> [task.name for task in find_tasks("quest_answer, event_summary")]
    ['summary', 'qa1', 'qa2', 'qa3']
    """
    names: set[str] = set()
    for name in names_in(text):
        if name not in GROUPS:
            raise UsageError(unknown("task of CRUD-RAG", name, list(GROUPS)))
        names.update(GROUPS[name])
    if not names:
        raise UsageError(f"tasks={text}: name at least one task, as in qa1,qa2 or all.")
    return tuple(task for task in _ALL if task.name in names)


FILES = ("split_merged.json", "merged.json")
"""The file with a fifth of the records, as measured in the paper, and the file with all records."""
FAILED = '","msg":"request openai failed"'
"""A failed reply that CRUD's authors stored as a reference."""
GOLD_IDS = ("gold_doc_ids", "auto_gold_doc_ids")
OF_HALLUCINATION = ("newsBeginning", "newsRemainder")


@dataclass(frozen=True, slots=True)
class GoldDocument:
    """A source document of a record: its ids in the corpus and its text, as far as known."""

    ids: frozenset[str] = frozenset()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """A record. ``values``: prompt placeholder → text. ``gold``: its source documents; () if unknown."""

    id: str
    values: Mapping[str, str]
    reference: str
    gold: tuple[GoldDocument, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordSet:
    """The records of a task. ``left_out``: reason → ids; ``total`` includes the omitted records."""

    name: str
    path: Path
    records: tuple[Record, ...]
    total: int
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


DATA_IS = "CRUD-RAG's split_merged.json, or a file of one task"


def read_tasks(path: Path, tasks: tuple[CrudTask, ...]) -> dict[str, RecordSet]:
    """Task → its usable records. Raises UsageError.

    ``path``: a folder with ``split_merged.json``, ``merged.json`` or one file per task (``qa1.jsonl``,
    ``questanswer_1doc.json`` …), or one such file.
    """
    contents: dict[Path, Any] = {}
    records = {}
    for task in tasks:
        file = _task_file(path, task)
        if file not in contents:
            contents[file] = _content(file)
        n_tasks = len(tasks) if path.is_file() else 1
        records[task.name] = _records(_rows(contents[file], task, file, n_tasks), task, file)
    return records


def _task_file(path: Path, task: CrudTask) -> Path:
    if path.is_file():
        return path
    stems = (task.key, task.name, task.file)
    names = (f"{stem}{suffix}" for stem in stems for suffix in (".jsonl", ".json"))
    if file := in_folder(path, (*names, *FILES)):
        return file
    raise NotFoundError(
        f"{path} holds neither {', '.join(FILES)} nor a file of the task, such as {task.name}.jsonl."
    )


def _content(path: Path) -> Any:
    """A JSON document, or the list of records in a JSON lines file."""
    if plain_name(path.name).endswith(".jsonl"):
        return [row for _, row in Source(path).objects()]
    value = read_json(path)
    if not isinstance(value, (dict, list)):
        raise BadFileError(
            f"{path} should hold an object with CRUD-RAG's lists, or one list of records."
        )
    return value


def _rows(content: Any, task: CrudTask, path: Path, n_tasks: int) -> list[Any]:
    if isinstance(content, list):
        if n_tasks > 1:
            raise UsageError(
                f"{path} holds the records of one task, but {n_tasks} were asked for.",
                hint=Hint("set", "tasks=NAME"),
            )
        return content
    rows = content.get(task.key)
    if not isinstance(rows, list):
        have = [known for known in TASKS.values() if isinstance(content.get(known.key), list)]
        keys = ", ".join(known.key for known in have) or "none of the six tasks"
        names = ",".join(known.name for known in have)
        mend = Hint("set", f"tasks={names}") if have and n_tasks > 1 else None
        raise BadFileError(f"{path} holds no list {task.key!r}; it holds {keys}.", hint=mend)
    return rows


def _records(rows: list[Any], task: CrudTask, path: Path) -> RecordSet:
    records: dict[str, Record] = {}
    left_out: dict[str, tuple[str, ...]] = {}
    for number, row in enumerate(rows, 1):
        record = _record(row, task)
        if isinstance(record, Record) and record.id not in records:
            records[record.id] = record
        else:
            why = record if isinstance(record, str) else "have an id that another record had before"
            known = row.get("ID", row.get("id")) if isinstance(row, Mapping) else None
            left_out[why] = (*left_out.get(why, ()), str(known or f"record {number}").strip())
    if not records:
        problem = "; ".join(f"{len(ids)} {why}" for why, ids in left_out.items())
        known_fields = ", ".join(("ID", *task.fields.values(), task.reference))
        raise BadFileError(
            f"{path} holds no usable record of {task.key} ({problem or 'the list is empty'}); a record has {known_fields}."
        )
    name = path.name.split(".json")[0]
    return RecordSet(name, path, tuple(records.values()), len(rows), left_out)


def _record(row: Any, task: CrudTask) -> Record | str:
    """The record, or the reason why it is unusable, as the end of a sentence about several records."""
    if not isinstance(row, Mapping):
        return "are not objects"
    name = row.get("ID", row.get("id"))
    if isinstance(name, (dict, list)) or not str("" if name is None else name).strip():
        return "have no ID"
    values = {field_: _text(row.get(key)) for field_, key in task.fields.items()}
    reference = _text(row.get(task.reference))
    if reference == FAILED:
        return "have a failed request's text for a reference"
    texts = {task.fields[field_]: text for field_, text in values.items()}
    for key, text in {**texts, task.reference: reference}.items():
        if not text:
            return f"have no {key}"
    return Record(str(name).strip(), values, reference, _gold(row, task))


def _text(value: Any) -> str:
    """The text, stripped; a list of texts, as in some files, becomes lines. '' for any other value."""
    if isinstance(value, list):
        return "\n".join(filter(None, map(_text, value)))
    return value.strip() if isinstance(value, str) else ""


def _gold(row: Mapping[str, Any], task: CrudTask) -> tuple[GoldDocument, ...]:
    if not task.ranked:
        return ()
    for key in GOLD_IDS:
        if isinstance(row.get(key), list) and row[key]:
            groups = (ids if isinstance(ids, list) else [ids] for ids in row[key])
            return tuple(GoldDocument(frozenset(map(str, group))) for group in groups)
    texts = [str(row.get(key) or "") for key in task.news or OF_HALLUCINATION]
    if not task.news:
        texts = ["".join(text.strip() for text in texts)] if texts[0].strip() else [""]
    whole = all(text.strip() for text in texts)
    return tuple(GoldDocument(text=text) for text in texts) if whole else ()
