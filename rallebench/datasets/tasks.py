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
class RevalTask:
    """``number``: R-Eval's, whose first digit is the level. ``domain``: wiki or aminer. ``source``: where its questions come
    from, '' for those made of triples. ``stand_in``: a dataset of the starter that is made like it."""

    name: str
    number: str
    domain: str
    about: str
    source: str = ""
    stand_in: str = ""

    @property
    def level(self) -> str:
        """A key of LEVELS."""
        return list(LEVELS)[int(self.number[0]) - 1]

    @property
    def environment(self) -> str:
        """Its name in ENVIRONMENTS."""
        return DOMAINS[self.domain]

    @property
    def file(self) -> str:
        """Its questions in R-Eval's record form, below ``data/KoLA2/``."""
        return f"{self.number}_{self.name}.jsonl"

    @property
    def how(self) -> str:
        """One sentence, how to get its questions."""
        if not self.source:
            return "Build it of Wikidata5M's triples by the builder templates."
        return f"Get {self.source}, write it in R-Eval's record form and import it as the dataset {self.name}."


SOAY = "the questions of SoAyBench"
TASKS: tuple[RevalTask, ...] = (
    RevalTask("high_freq_ent", "1-1", "wiki", "one relation of a frequent entity"),
    RevalTask("low_freq_ent", "1-2", "wiki", "one relation of a rare entity"),
    RevalTask(
        *("soay_easy", "1-3", "aminer", "one call about a scholar or publication", SOAY),
        "starter-scholar-easy",
    ),
    RevalTask(
        "csj", "2-1", "wiki", "conceptual similarity", "COPEN's conceptual similarity judgment"
    ),
    RevalTask(
        "cpj", "2-2", "wiki", "properties of concepts", "COPEN's conceptual property judgment"
    ),
    RevalTask(
        "cic", "2-3", "wiki", "a concept in its context", "COPEN's conceptualization in contexts"
    ),
    RevalTask(
        *("profiling", "2-4", "aminer", "the position of a scholar among eleven titles"),
        *("R-Eval's profiling questions", "starter-scholar-profiling"),
    ),
    RevalTask("hotpotqa", "3-1", "wiki", "two hops (medium)", "HotpotQA's dev set"),
    RevalTask("2wikimultihopqa", "3-2", "wiki", "two to four hops", "2WikiMultihopQA's dev set"),
    RevalTask(
        "musique", "3-3", "wiki", "two to four hops, answerable", "MuSiQue's answerable dev set"
    ),
    RevalTask("kqapro", "3-4", "wiki", "compositional questions", "KQA Pro's validation set"),
    RevalTask(
        *("soay_hard", "3-5", "aminer", "several calls about scholars and publications", SOAY),
        "starter-scholar-hard",
    ),
)


def task_of(dataset: str) -> RevalTask | None:
    """The task that a dataset is of, by its name: ``hotpotqa``, ``3-1_hotpotqa``, ``hotpotqa_dev``, a stand-in.

    >>> [task.name for name in ("3-1_hotpotqa", "hotpotqa-dev", "starter-scholar-hard") if (task := task_of(name))], task_of("own")
    (['hotpotqa', 'hotpotqa', 'soay_hard'], None)
    """
    name = re.sub(r"^\d-\d_", "", dataset.lower())

    def fits(task: RevalTask) -> bool:
        return name == task.stand_in or bool(re.fullmatch(rf"{task.name}([-_.].*)?", name))

    fitting = filter(fits, TASKS)
    return max(fitting, key=lambda task: len(task.name), default=None)


def available(names: Iterable[str]) -> dict[str, str]:
    """Task → the dataset that is there for it, its own before a stand-in; tasks without one are left out."""
    known = sorted(names)
    tasks = ((task_of(name), name) for name in reversed(known))
    own = {task.name: name for task, name in tasks if task and name != task.stand_in}
    stand_ins = {task.name: task.stand_in for task in TASKS if task.stand_in in known}
    both = {**stand_ins, **own}
    return {task.name: both[task.name] for task in TASKS if task.name in both}


def described(paths: Mapping[str, Path]) -> dict[str, str]:
    """Task → one line: level, environment and the dataset that is there for it, or how to get one."""
    names = available(paths)
    lines = {}
    for task in TASKS:
        name = names.get(task.name, "")
        known = f"dataset {name}" if name else f"Not here. {task.how}"
        stand_in = " (a stand-in of the starter)" if name and name == task.stand_in else ""
        about = f"{task.number} {task.level}, {task.environment}: {task.about}."
        lines[task.name] = f"{about} {known}{stand_in}"
    return lines


def sampled(items: Sequence[T], number: int = INSTANCES, seed: int = SEED) -> list[T]:
    """So many of ``items`` as R-Eval draws them (``random.sample`` after ``random.seed``); all, in order, if there are no more."""
    return list(items) if len(items) <= number else random.Random(seed).sample(list(items), number)
