"""KILT's eleven sets (Petroni et al. 2021, arXiv:2009.02252), with RaLLe's names and scores (arXiv:2308.10633), and their
files.

``sets.json`` contains the sets, with the number of rows and bytes of the official files. For TriviaQA, KILT provides only ids;
its script adds the questions, and the size of the resulting file is not published. WNED and CWEB each have one file with
answers, used for both splits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rallebench.core.errors import BadFileError, Hint, NotFoundError, UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.files import read_objects, sha256_file
from rallebench.core.streams import plain_name, with_packed
from rallebench.core.types import Example
from rallebench.datasets.reading import read_examples
from rallebench.experiments.common import in_folder, names_in
from rallebench.workspace.paths import WorkspaceFolder

TASKS: Mapping[str, str] = {
    "fact": "fact checking",
    "linking": "entity linking",
    "slots": "slot filling",
    "qa": "open questions",
    "long": "long answers",
    "dialogue": "dialogue",
}
PLAIN = "retrieve-plain"
MODES = ("read", "closed-book", "retrieve", PLAIN, "three-action")
"""The ways to answer a set. ``retrieve`` is available for all sets; every other way needs its own chain. PLAIN applies to
entity linking: it retrieves with the whole text, like RaLLe's rows without REWRITE-EL. The queries of other sets do not
change."""
MARKS: Mapping[str, tuple[str, ...]] = {
    "linking": ("[START_ENT]", "[END_ENT]"),
    "slots": ("[SEP]",),
}
"""Task → the marks present in every input."""
VERDICTS = frozenset({"SUPPORTS", "REFUTES"})


@dataclass(frozen=True, slots=True)
class KiltSet:
    """A set. ``name``: as in ``kilt-nq``; ``label``: in RaLLe's tables; ``stem``: start of KILT's file names. ``headline``:
    the reported metric. ``rows``, ``size`` (bytes): split → value for the official file, if known. ``chains``: way → chain."""

    name: str
    label: str
    stem: str
    task: str
    headline: str
    rows: Mapping[str, int]
    size: Mapping[str, int]
    chains: Mapping[str, str]

    @property
    def variant(self) -> str:
        """KILT's variant of the headline metric, which counts an answer only if the gold pages were found."""
        return f"KILT-{self.headline}"

    @property
    def short(self) -> bool:
        """True for short answers, the only ones for which ``has_answer`` is meaningful."""
        return self.task not in ("long", "dialogue")

    def file_name(self, split: str) -> str:
        """The official file of a split; for a set with a single file, that file.

        >>> SETS["nq"].file_name("dev"), SETS["wnwi"].file_name("train")
        ('nq-dev-kilt.jsonl', 'wned-dev-kilt.jsonl')
        """
        return f"{self.stem}-{split if split in self.rows else 'dev'}-kilt.jsonl"


SETS: Mapping[str, KiltSet] = {
    fields["name"]: KiltSet(
        **{**fields, "chains": {**fields["chains"], "retrieve": "retrieve-only"}}
    )
    for fields in read_objects(Path(__file__).with_name("sets.json"))
}
"""Name → set, in RaLLe's order."""


def find_set(written: str) -> KiltSet:
    """The set with this name, RaLLe label or KILT stem, ignoring case. Raises UsageError.

    >>> find_set("T-REx").name, find_set("hotpotqa").name
    ('trex', 'hopo')
    """
    name = written.strip().lower()
    for kilt_set in SETS.values():
        if name in (kilt_set.name, kilt_set.label.lower(), kilt_set.stem):
            return kilt_set
    raise UsageError(f"datasets: KILT has no set {written.strip()!r}; it has {', '.join(SETS)}.")


def find_sets(written: str) -> tuple[KiltSet, ...]:
    """The sets in a list, without duplicates, in RaLLe's order; () for an empty text. Raises UsageError.

    >>> [kilt_set.label for kilt_set in find_sets("nq, FEV")]
    ['FEV', 'NQ']
    """
    if written.strip() == "all":
        return tuple(SETS.values())
    names = {find_set(part).name for part in names_in(written)}
    return tuple(kilt_set for name, kilt_set in SETS.items() if name in names)


# the files


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of a set. ``rows``: number in the whole file; ``differs``: its difference from the official file, or
    ''."""

    kilt: KiltSet
    name: str
    path: Path
    sha256: str
    examples: tuple[Example, ...]
    rows: int
    differs: str


def question_files(
    request: ExperimentRequest[WorkspaceFolder],
    sets: Sequence[KiltSet],
    data: str,
    file: str,
    split: str,
) -> dict[str, tuple[str, Path]]:
    """Set name → (name, file) of its questions, from the setting ``file`` or otherwise the folder ``data``.

    Without ``sets``: all sets that exist. ``file``: a file or a dataset; for several sets, ``nq=FILE,hopo=FILE``. For a single
    set, ``data`` may also be a file. Raises UsageError, NotFoundError.
    """
    workspace, folder = request.workspace, None
    if data.strip():
        folder = workspace.data(data, "the folder of KILT's files, as nq-dev-kilt.jsonl")
    if folder is not None and folder.is_file():
        if len(sets) != 1 or file.strip():
            raise UsageError(
                f"data={data} is one dataset, not the folder of KILT's files. Say whose it is.",
                hint=Hint("set", f"file=nq={data}"),
            )
        folder, file = None, data.strip()
    own = {
        name: workspace.dataset(reference) for name, reference in _parse_files(file, sets).items()
    }
    files = {}
    for kilt_set in sets or SETS.values():
        path = _official(folder, kilt_set, split) if folder else None
        if kilt_set.name in own:
            files[kilt_set.name] = own[kilt_set.name]
        elif path is not None:
            files[kilt_set.name] = (path.name.split(".jsonl")[0], path.resolve())
        elif sets:
            if folder is None:
                raise UsageError(
                    f"No file has the questions of {kilt_set.label}: data is the folder of KILT's files, file is one file.",
                    hint=Hint("set", "data=FOLDER"),
                )
            names = sorted(path.name for path in folder.glob("*.jsonl*"))
            raise NotFoundError(
                f"{data} holds no {kilt_set.file_name(split)}, KILT's file of {kilt_set.label}. It holds: "
                f"{', '.join(names) or 'no JSON lines'}. For another file: file={kilt_set.name}=FILE."
            )
    if not files:
        raise UsageError(
            "No file has the questions: data is the folder of KILT's files, file is one file of datasets=nq.",
            hint=Hint("set", "data=FOLDER"),
        )
    return files


def _parse_files(file: str, sets: Sequence[KiltSet]) -> dict[str, str]:
    """Set name → its file in ``file``.

    >>> _parse_files("a.jsonl", [SETS["nq"]]), _parse_files("nq=a,b.jsonl,T-REx=c.jsonl", ())
    ({'nq': 'a.jsonl'}, {'nq': 'a,b.jsonl', 'trex': 'c.jsonl'})
    """
    known = "|".join(
        re.escape(name)
        for kilt_set in SETS.values()
        for name in {kilt_set.name, kilt_set.label, kilt_set.stem}
    )
    first, *pairs = re.split(rf"(?:^|,)\s*({known})=", file, flags=re.IGNORECASE)
    if not pairs:
        if file.strip() and len(sets) != 1:
            raise UsageError(
                "With several sets, file says which file is whose.",
                hint=Hint("set", "file=nq=FILE,hopo=FILE"),
            )
        return {sets[0].name: file.strip()} if file.strip() else {}
    files = {find_set(name).name: path.strip() for name, path in zip(pairs[::2], pairs[1::2])}
    names = {kilt_set.name for kilt_set in sets}
    strange = [name for name in files if sets and name not in names] or [first.strip()]
    if strange[0]:
        raise UsageError(f"file={file}: {strange[0]!r} is not among the requested sets.")
    return files


def _official(folder: Path, kilt_set: KiltSet, split: str) -> Path | None:
    name = kilt_set.file_name(split)
    if path := in_folder(folder, with_packed(name)):
        return path
    bare = folder / re.sub(r"-(dev|train)-kilt", r"-\1_id-kilt", name)
    if bare.is_file():
        raise BadFileError(
            f"{bare} holds TriviaQA's ids without its questions; KILT's script get_triviaqa_input.py joins them to {name}."
        )
    return None


def read(
    kilt_set: KiltSet, name: str, path: Path, split: str, limit: int | None = None
) -> Questions:
    """The first ``limit`` questions. All rows are checked. Raises BadFileError for questions of another kind."""
    examples: list[Example] = []
    rows = 0
    for example in read_examples(path, form="kilt"):
        rows += 1
        if problem := _problem(kilt_set, example):
            raise BadFileError(
                f"{path} is not a file of {kilt_set.label}: its question {example.question.qid!r} {problem}"
            )
        if limit is None or len(examples) < limit:
            examples.append(example)
    if not rows:
        raise BadFileError(f"{path} holds no question.")
    differs = _differs(kilt_set, path, split, rows)
    return Questions(kilt_set, name, path, sha256_file(path), tuple(examples), rows, differs)


def _problem(kilt_set: KiltSet, example: Example) -> str:
    """The reason why a question cannot belong to this set, or ''."""
    text, answers = example.question.text, example.gold.answers
    own = MARKS.get(kilt_set.task, ())
    places = [text.find(mark) for mark in own]
    if -1 in places:
        return f"lacks {own[places.index(-1)]}."
    if places != sorted(places):
        return "has [END_ENT] before [START_ENT]."
    others = [mark for marks in MARKS.values() for mark in marks if mark in text]
    if others and kilt_set.task in ("fact", "qa"):
        return f"holds {others[0]}, as another of KILT's tasks does."
    if not answers and not example.gold.pages:
        return "has no gold; KILT keeps the answers of its test files, so take the dev file."
    strange = [answer for answer in answers if answer not in VERDICTS]
    if kilt_set.task == "fact" and strange:
        return f"has the answer {strange[0][:60]!r}, where SUPPORTS or REFUTES should stand."
    return ""


def _differs(kilt_set: KiltSet, path: Path, split: str, rows: int) -> str:
    """The difference between a file and KILT's own, in one sentence; '' if the file may be KILT's own."""
    split = split if split in kilt_set.rows else "dev"
    official = f"KILT's {kilt_set.file_name(split)}"
    if rows != kilt_set.rows[split]:
        return f"{path.name} has {rows:,} rows and {official} {kilt_set.rows[split]:,}, so it is not the official file."
    size, expected = path.stat().st_size, kilt_set.size.get(split)
    if expected and plain_name(path.name) == path.name and size != expected:
        return f"{path.name} has as many rows as {official}, but {size:,} bytes instead of {expected:,}, so it was changed."
    return ""
