"""The twelve tasks of R-Eval (Tu et al. 2024) as a table: level, environment, where their questions are found."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

INSTANCES, SEED = 100, 42
LEVELS: Mapping[str, str] = {
    "KS": "knowledge seeking",
    "KU": "knowledge understanding",
    "KA": "knowledge application",
}
DOMAINS: Mapping[str, str] = {"wiki": "wikipedia", "aminer": "scholar"}
"""R-Eval's word for an environment → its name here."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Task:
    """``number``: R-Eval's. ``domain``: wiki or aminer. ``file``: its questions in R-Eval's record form, below ``data/KoLA2/``.
    ``how``: one sentence, how to get them. ``stand_in``: a question set of the starter that is made like it."""

    name: str
    number: str
    level: str
    domain: str
    about: str
    how: str
    stand_in: str = ""

    @property
    def environment(self) -> str:
        """Its name in ENVIRONMENTS."""
        return DOMAINS[self.domain]

    @property
    def file(self) -> str:
        """As R-Eval names it."""
        return f"{self.number}_{self.name}.jsonl"


_IMPORT = "import it with 'rallebench import FILE --kind dataset --name {name}'"
_TRIPLES = (
    "Make it of Wikidata5M's triples with relation templates: 'rallebench build-dataset templates'."
)


def _get(name: str, source: str) -> str:
    return f"Get {source}, write it in R-Eval's record form and {_IMPORT.format(name=name)}."


TASKS: tuple[Task, ...] = (
    Task("high_freq_ent", "1-1", "KS", "wiki", "one relation of a frequent entity", _TRIPLES),
    Task("low_freq_ent", "1-2", "KS", "wiki", "one relation of a rare entity", _TRIPLES),
    Task(
        "soay_easy",
        "1-3",
        "KS",
        "aminer",
        "one call about a scholar or publication",
        _get("soay_easy", "the questions of SoAyBench"),
        "starter-scholar-easy",
    ),
    Task(
        "csj",
        "2-1",
        "KU",
        "wiki",
        "conceptual similarity",
        _get("csj", "COPEN's conceptual similarity judgment"),
    ),
    Task(
        "cpj",
        "2-2",
        "KU",
        "wiki",
        "properties of concepts",
        _get("cpj", "COPEN's conceptual property judgment"),
    ),
    Task(
        "cic",
        "2-3",
        "KU",
        "wiki",
        "a concept in its context",
        _get("cic", "COPEN's conceptualization in contexts"),
    ),
    Task(
        "profiling",
        "2-4",
        "KU",
        "aminer",
        "the position of a scholar among eleven titles",
        _get("profiling", "R-Eval's profiling questions"),
        "starter-scholar-profiling",
    ),
    Task(
        "hotpotqa", "3-1", "KA", "wiki", "two hops (medium)", _get("hotpotqa", "HotpotQA's dev set")
    ),
    Task(
        "2wikimultihopqa",
        "3-2",
        "KA",
        "wiki",
        "two to four hops",
        _get("2wikimultihopqa", "2WikiMultihopQA's dev set"),
    ),
    Task(
        "musique",
        "3-3",
        "KA",
        "wiki",
        "two to four hops, answerable",
        _get("musique", "MuSiQue's answerable dev set"),
    ),
    Task(
        "kqapro",
        "3-4",
        "KA",
        "wiki",
        "compositional questions",
        _get("kqapro", "KQA Pro's validation set"),
    ),
    Task(
        "soay_hard",
        "3-5",
        "KA",
        "aminer",
        "several calls about scholars and publications",
        _get("soay_hard", "the questions of SoAyBench"),
        "starter-scholar-hard",
    ),
)


def task_of(dataset: str) -> Task | None:
    """The task that a question set is of, by its name: ``hotpotqa``, ``3-1_hotpotqa``, ``hotpotqa_dev``, a stand-in.

    >>> [task.name for name in ("3-1_hotpotqa", "hotpotqa-dev", "starter-scholar-hard") if (task := task_of(name))], task_of("own")
    (['hotpotqa', 'hotpotqa', 'soay_hard'], None)
    """
    name = re.sub(r"^\d-\d_", "", dataset.lower())
    fitting = [
        task
        for task in TASKS
        if name == task.stand_in or re.fullmatch(rf"{task.name}([-_.].*)?", name)
    ]
    return max(fitting, key=lambda task: len(task.name), default=None)


def available(names: Iterable[str]) -> dict[str, str]:
    """Task → the question set that is there for it, its own before a stand-in; tasks without one are left out."""
    known = sorted(names)
    own = {
        task.name: name
        for name in reversed(known)
        if (task := task_of(name)) and name != task.stand_in
    }
    stand_ins = {task.name: task.stand_in for task in TASKS if task.stand_in in known}
    return {
        task.name: name
        for task in TASKS
        if (name := own.get(task.name) or stand_ins.get(task.name, ""))
    }


def described(paths: Mapping[str, Path]) -> dict[str, str]:
    """Task → one line: level, environment and the question set that is there for it, or how to get one."""
    names = available(paths)
    lines = {}
    for task in TASKS:
        name = names.get(task.name, "")
        known = f"question set {name}" + (
            " (a stand-in of the starter)" if name == task.stand_in and name else ""
        )
        lines[task.name] = f"{task.number} {task.level}, {task.environment}: {task.about}. " + (
            known if name else f"Not here. {task.how}"
        )
    return lines


def sampled(items: Sequence[T], number: int = INSTANCES, seed: int = SEED) -> list[T]:
    """So many of ``items`` as R-Eval draws them (``random.sample`` after ``random.seed``); all, in order, if there are no more."""
    return list(items) if len(items) <= number else random.Random(seed).sample(list(items), number)
