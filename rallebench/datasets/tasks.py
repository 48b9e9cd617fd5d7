"""The twelve tasks of R-Eval (Tu et al. 2024) as a table: level, environment, source of the questions."""

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
class BenchmarkTask:
    """A task. ``number``: R-Eval's, whose first digit is the level; ``domain``: wiki or aminer; ``source``: origin of its
    questions; ``fetch``: the command that downloads them, '' if they are not published; ``names``: the files that it writes, in
    the format ``form``; ``stand_in``: a similar dataset of the starter."""

    name: str
    number: str
    domain: str
    about: str
    source: str
    fetch: str = ""
    names: tuple[str, ...] = ()
    form: str = ""
    stand_in: str = ""

    @property
    def level(self) -> str:
        """Key of LEVELS."""
        return list(LEVELS)[int(self.number[0]) - 1]

    @property
    def environment(self) -> str:
        """Name in ENVIRONMENTS."""
        return DOMAINS[self.domain]

    @property
    def file(self) -> str:
        """File of its questions in R-Eval's format, below ``data/KoLA2/``."""
        return f"{self.number}_{self.name}.jsonl"

    @property
    def how(self) -> str:
        """One sentence that explains how to get its questions."""
        if not self.names and self.fetch:
            return f"Fetch {self.source} with `{self.fetch}`, and make questions of them with the builder templates."
        if not self.fetch:
            return f"{self.source} are not published; make some with the builder templates."
        return f"Fetch {self.source} with `{self.fetch}`, and name the folder as data, or import {self.names[0]} as {self.name}."

    def path_in(self, folder: Path) -> Path | None:
        """Return its published questions below a folder; None if they are not there."""
        paths = (folder / name for name in self.names)
        return next((path for path in paths if path.exists()), None)


_DROPBOX = "https://www.dropbox.com/s"
_TSINGHUA = "https://cloud.tsinghua.edu.cn/f"
_TRIPLES = (
    "Wikidata5M's triples and names",
    f"curl -L -o wikidata5m_all_triplet.txt.gz '{_DROPBOX}/563omb11cxaqr83/wikidata5m_all_triplet.txt.gz?dl=1' && "
    f"curl -L -o wikidata5m_alias.tar.gz '{_DROPBOX}/lnbhc8yuhit4wm5/wikidata5m_alias.tar.gz?dl=1' && tar xf wikidata5m_alias.tar.gz",
)
_COPEN = (
    f"curl -L -o copen_data.zip '{_TSINGHUA}/f0b33fb429fa4575aa7f/?dl=1' && unzip copen_data.zip"
)


def _soay(name: str, number: str, about: str, kind: str) -> BenchmarkTask:
    folder = "soayBench/soayBench_v1-2"
    names = (f"SoAy/{folder}", folder, "soayBench_v1-2")
    fetch = "git clone https://github.com/RUCKBReasoning/SoAy"
    return BenchmarkTask(
        *(name, number, "aminer", about, "SoAyBench", fetch),
        names,
        f"soay-{kind}",
        f"starter-scholar-{kind}",
    )


def _copen(name: str, number: str, about: str, place: int) -> BenchmarkTask:
    names = (f"copen_data/task{place}/iid/dev.json", f"copen_data/task{place}/dev.json")
    return BenchmarkTask(
        name, number, "wiki", about, "COPEN's dev sets", _COPEN, names, f"copen-{name}"
    )


TASKS: tuple[BenchmarkTask, ...] = (
    BenchmarkTask("high_freq_ent", "1-1", "wiki", "one relation of a frequent entity", *_TRIPLES),
    BenchmarkTask("low_freq_ent", "1-2", "wiki", "one relation of a rare entity", *_TRIPLES),
    _soay("soay_easy", "1-3", "one call about a scholar or publication", "easy"),
    _copen("csj", "2-1", "conceptual similarity", 1),
    _copen("cpj", "2-2", "properties of concepts", 2),
    _copen("cic", "2-3", "a concept in its context", 3),
    BenchmarkTask(
        *("profiling", "2-4", "aminer", "the position of a scholar among eleven titles"),
        "R-Eval's profiling questions",
        stand_in="starter-scholar-profiling",
    ),
    BenchmarkTask(
        *("hotpotqa", "3-1", "wiki", "two hops (medium)", "HotpotQA's dev set"),
        "curl -LO http://curtis.ml.cmu.edu/datasets/hotpot/hotpot_dev_distractor_v1.json",
        ("hotpot_dev_distractor_v1.json", "hotpot_dev_fullwiki_v1.json"),
        "hotpotqa",
    ),
    BenchmarkTask(
        *("2wikimultihopqa", "3-2", "wiki", "two to four hops", "2WikiMultihopQA's dev set"),
        f"curl -L -o data_ids_april7.zip '{_DROPBOX}/ms2m13252h6xubs/data_ids_april7.zip?dl=1' && "
        "unzip -j data_ids_april7.zip '*dev.json' -d 2wikimultihopqa",
        ("2wikimultihopqa/dev.json", "data_ids_april7/dev.json", "2wiki_dev.json"),
        "2wikimultihopqa",
    ),
    BenchmarkTask(
        *("musique", "3-3", "wiki", "two to four hops, answerable"),
        "MuSiQue's answerable dev set",
        "pip install gdown && gdown 1tGdADlNjWFaHLeZZGShh2IRcpO6Lv24h -O musique_v1.0.zip && "
        "unzip -j musique_v1.0.zip '*musique_ans_v1.0_dev.jsonl'",
        ("musique_ans_v1.0_dev.jsonl", "data/musique_ans_v1.0_dev.jsonl"),
        "musique",
    ),
    BenchmarkTask(
        *("kqapro", "3-4", "wiki", "compositional questions", "KQA Pro's validation set"),
        f"curl -L -o KQAPro.zip '{_TSINGHUA}/26d05edaa5d0480bb3ae/?dl=1' && unzip -j KQAPro.zip '*val.json' -d kqapro",
        ("kqapro/val.json", "dataset/val.json"),
        "kqapro",
    ),
    _soay("soay_hard", "3-5", "several calls about scholars and publications", "hard"),
)


def find_task(dataset: str) -> BenchmarkTask | None:
    """Return the task of a dataset by its name: ``hotpotqa``, ``3-1_hotpotqa``, ``hotpotqa_dev``, a stand-in.

    >>> [task.name for name in ("3-1_hotpotqa", "hotpotqa-dev", "starter-scholar-hard") if (task := find_task(name))], find_task("own")
    (['hotpotqa', 'hotpotqa', 'soay_hard'], None)
    """
    name = re.sub(r"^\d-\d_", "", dataset.lower())

    def fits(task: BenchmarkTask) -> bool:
        return name == task.stand_in or bool(re.fullmatch(rf"{task.name}([-_.].*)?", name))

    fitting = filter(fits, TASKS)
    return max(fitting, key=lambda task: len(task.name), default=None)


def available(names: Iterable[str]) -> dict[str, str]:
    """Return task → available dataset, preferably its own, else a stand-in; tasks without one are left out."""
    known = sorted(names)
    tasks = ((find_task(name), name) for name in reversed(known))
    own = {task.name: name for task, name in tasks if task and name != task.stand_in}
    stand_ins = {task.name: task.stand_in for task in TASKS if task.stand_in in known}
    both = {**stand_ins, **own}
    return {task.name: both[task.name] for task in TASKS if task.name in both}


def describe_tasks(paths: Mapping[str, Path]) -> dict[str, str]:
    """Return task → one line: level, environment, and the available dataset or how to get one."""
    names = available(paths)
    lines = {}
    for task in TASKS:
        name = names.get(task.name, "")
        known = f"dataset {name}" if name else f"Not here. {task.how}"
        stand_in = " (a stand-in of the starter)" if name and name == task.stand_in else ""
        about = f"{task.number} {task.level}, {task.environment}: {task.about}."
        lines[task.name] = f"{about} {known}{stand_in}"
    return lines


def draw_sample(items: Sequence[T], number: int = INSTANCES, seed: int = SEED) -> list[T]:
    """Draw ``number`` items as R-Eval does (``random.sample`` after ``random.seed``); all, in order, if there are not more."""
    return list(items) if len(items) <= number else random.Random(seed).sample(list(items), number)
