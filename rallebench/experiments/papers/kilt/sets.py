"""KILT's eleven sets (Petroni et al. 2021, arXiv:2009.02252) as RaLLe names and scores them (arXiv:2308.10633).

Rows and bytes are those of the official files. Of TriviaQA, KILT gives ids only; its script joins the questions to a
file whose size is not published. WNED's and CWEB's one file with answers serves as both splits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rallebench.core.errors import UsageError

Task = Literal["fact", "linking", "slots", "qa", "long", "dialogue"]

TASKS: Mapping[Task, str] = {
    "fact": "fact checking",
    "linking": "entity linking",
    "slots": "slot filling",
    "qa": "open questions",
    "long": "long answers",
    "dialogue": "dialogue",
}


@dataclass(frozen=True, slots=True)
class KiltSet:
    """``name``: as in ``kilt-nq``; ``label``: as RaLLe prints it; ``stem``: how KILT's files begin. ``headline``: the metric
    that is reported. ``rows``, ``size``: split → of the official file (size 0: not known). ``chains``: way → chain."""

    name: str
    label: str
    stem: str
    task: Task
    headline: str
    rows: Mapping[str, int]
    size: Mapping[str, int]
    chains: Mapping[str, str]

    @property
    def variant(self) -> str:
        """KILT's own: as the headline, but only where the gold pages were found."""
        return f"KILT-{self.headline}"

    @property
    def short(self) -> bool:
        """Whether its answers are short, so that ``has_answer`` says something."""
        return self.task not in ("long", "dialogue")

    def file_name(self, split: str) -> str:
        """The official file of a split; of a set with one file that one.

        >>> SETS["nq"].file_name("dev"), SETS["wnwi"].file_name("train")
        ('nq-dev-kilt.jsonl', 'wned-dev-kilt.jsonl')
        """
        return f"{self.stem}-{split if split in self.rows else 'dev'}-kilt.jsonl"


def _chains(read: str, closed: str, three: str = "") -> dict[str, str]:
    found = {"read": read, "closed-book": closed, "retrieve": "retrieve-only"}
    return {**found, "three-action": three} if three else found


_LINKING = _chains("rewrite-el-titles", "closed-book-el", "three-action-el")
_QA = _chains("read-qa", "closed-book-qa", "three-action-nq")

SETS: Mapping[str, KiltSet] = {
    one.name: one
    for one in (
        KiltSet(
            "fev",
            "FEV",
            "fever",
            "fact",
            "accuracy",
            {"dev": 10_444, "train": 104_966},
            {"dev": 6_174_139, "train": 38_941_824},
            _chains("read-fact", "closed-book-fact"),
        ),
        KiltSet(
            "ay2",
            "AY2",
            "aidayago2",
            "linking",
            "accuracy",
            {"dev": 4_784, "train": 18_395},
            {"dev": 21_061_554, "train": 70_139_831},
            _LINKING,
        ),
        KiltSet(
            "wnwi",
            "WnWi",
            "wned",
            "linking",
            "accuracy",
            {"dev": 3_396},
            {"dev": 12_868_348},
            _LINKING,
        ),
        KiltSet(
            "wncw",
            "WnCw",
            "cweb",
            "linking",
            "accuracy",
            {"dev": 5_599},
            {"dev": 90_228_527},
            _LINKING,
        ),
        KiltSet(
            "trex",
            "T-REx",
            "trex",
            "slots",
            "accuracy",
            {"dev": 5_000, "train": 2_284_168},
            {"dev": 3_803_558, "train": 1_752_330_104},
            _chains("read-trex", "closed-book-slot", "three-action-trex"),
        ),
        KiltSet(
            "zsre",
            "zsRE",
            "structured_zeroshot",
            "slots",
            "accuracy",
            {"dev": 3_724, "train": 147_909},
            {"dev": 2_266_707, "train": 71_444_475},
            _chains("read-zsre", "closed-book-zsre", "three-action-trex"),
        ),
        KiltSet(
            "nq",
            "NQ",
            "nq",
            "qa",
            "em",
            {"dev": 2_837, "train": 87_372},
            {"dev": 7_936_566, "train": 51_895_886},
            _QA,
        ),
        KiltSet(
            "hopo",
            "HoPo",
            "hotpotqa",
            "qa",
            "em",
            {"dev": 5_600, "train": 88_869},
            {"dev": 3_971_321, "train": 52_767_068},
            _QA,
        ),
        KiltSet(
            "tqa",
            "TQA",
            "triviaqa",
            "qa",
            "em",
            {"dev": 5_359, "train": 61_844},
            {"dev": 0, "train": 0},
            _QA,
        ),
        KiltSet(
            "eli5",
            "ELI5",
            "eli5",
            "long",
            "rougel",
            {"dev": 1_507, "train": 272_634},
            {"dev": 14_149_811, "train": 548_249_898},
            _chains("read-eli5", "closed-book-eli5"),
        ),
        KiltSet(
            "wow",
            "WoW",
            "wow",
            "dialogue",
            "f1",
            {"dev": 3_054, "train": 63_734},
            {"dev": 2_418_285, "train": 48_937_036},
            _chains("read-dialogue", "closed-book-dialogue"),
        ),
    )
}
"""Name → set, in RaLLe's order."""


def set_of(written: str) -> KiltSet:
    """A set by its name, RaLLe's label or KILT's stem, in any case. Raises UsageError.

    >>> set_of("T-REx").name, set_of("hotpotqa").name
    ('trex', 'hopo')
    """
    wanted = written.strip().lower()
    for one in SETS.values():
        if wanted in (one.name, one.label.lower(), one.stem):
            return one
    raise UsageError(
        f"--set datasets: KILT has no set {written.strip()!r}; it has {', '.join(SETS)}."
    )


def sets_of(written: str) -> tuple[KiltSet, ...]:
    """Several, in RaLLe's order, each once; () if none is written. Raises UsageError.

    >>> [one.label for one in sets_of("nq, FEV")]
    ['FEV', 'NQ']
    """
    if written.strip() == "all":
        return tuple(SETS.values())
    asked = {set_of(part).name for part in written.split(",") if part.strip()}
    return tuple(one for name, one in SETS.items() if name in asked)
