"""CRUD-RAG's six tasks: what their records are called, what is asked, and what the paper calls them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rallebench.core.errors import UsageError
from rallebench.core.registry import unknown
from rallebench.experiments.papers.common import names_in


@dataclass(frozen=True, slots=True)
class CrudTask:
    """``name``: as our suites have it; ``key``: its list in CRUD's file; ``file``: as CRUD's own files have it.

    ``printed``: what the paper's tables call it. ``fields``: the name in braces in the prompt → the record's field; all are sent
    to the retriever. ``original_query``: those that CRUD's code sends, where they are fewer. ``news``: the fields with the
    gold documents' text. ``ranked``: whether the reciprocal rank is reported.
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

    @property
    def query(self) -> tuple[str, ...]:
        """The names that are sent to the retriever."""
        return tuple(self.fields)

    @property
    def prompt(self) -> str:
        """The file of its prompt; questions share one."""
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
"""All names under which tasks are asked for: ours, those of CRUD's command line, its file and its results."""


def tasks_of(text: str) -> tuple[CrudTask, ...]:
    """The tasks that a list names, each once, in our order. Raises UsageError.

    >>> [task.name for task in tasks_of("quest_answer, event_summary")]
    ['summary', 'qa1', 'qa2', 'qa3']
    """
    names: set[str] = set()
    for name in names_in(text):
        if name not in GROUPS:
            raise UsageError(unknown("task of CRUD-RAG", name, list(GROUPS)))
        names.update(GROUPS[name])
    if not names:
        raise UsageError(f"--set tasks={text}: name at least one task, as in qa1,qa2 or all.")
    return tuple(task for task in _ALL if task.name in names)
