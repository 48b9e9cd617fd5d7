"""Which file holds a set's questions, and whether it is the official one: by its name, its rows and its size."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rallebench.core.errors import BadFileError, NotFoundError, UsageError
from rallebench.core.files import sha256_file
from rallebench.core.types import Example
from rallebench.datasets.reading import read_examples
from rallebench.experiments.papers.kilt.sets import SETS, KiltSet, set_of
from rallebench.workspace.paths import Workspace

MARKS: Mapping[str, tuple[str, ...]] = {
    "linking": ("[START_ENT]", "[END_ENT]"),
    "slots": ("[SEP]",),
}
"""Task → what stands in every input."""
VERDICTS = frozenset({"SUPPORTS", "REFUTES"})


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of a set. ``rows`` of the whole file; ``differs``: how it is not the official one, '' if it is."""

    kilt: KiltSet
    name: str
    path: Path
    sha256: str
    examples: tuple[Example, ...]
    rows: int
    differs: str


def files_of(
    workspace: Workspace, sets: Sequence[KiltSet], data: str, file: str, split: str
) -> dict[str, tuple[str, Path]]:
    """Set name → (name, file) of its questions: those of ``file``, the rest from the folder ``data``.

    Without ``sets``: all that are there. ``file``: a file or a question set, with several sets ``nq=FILE,hopo=FILE``; of one set
    ``data`` may be that, too.
    Raises UsageError, NotFoundError.
    """
    folder = (
        workspace.data(data, "the folder of KILT's files, as nq-dev-kilt.jsonl")
        if data.strip()
        else None
    )
    if folder is not None and folder.is_file():
        if len(sets) != 1 or file.strip():
            raise UsageError(
                f"--set data={data} is one question set; give the folder of KILT's files, or say whose it is: --set file=nq={data}."
            )
        folder, file = None, data.strip()
    given = {name: workspace.dataset(reference) for name, reference in _written(file, sets).items()}
    found = {}
    for one in sets or SETS.values():
        if one.name in given:
            found[one.name] = given[one.name]
        elif folder is not None and (path := _official(folder, one, split)):
            found[one.name] = (path.name.split(".jsonl")[0], path.resolve())
        elif sets and folder is not None:
            have = (
                ", ".join(sorted(path.name for path in folder.glob("*.jsonl*"))) or "no JSON lines"
            )
            raise NotFoundError(
                f"{data} holds no {one.file_name(split)}, KILT's file of {one.label}. It holds: {have}. "
                f"For another file: --set file={one.name}=FILE."
            )
        elif sets:
            raise UsageError(
                f"No questions of {one.label} are named; give --set data=FOLDER of KILT's files, or --set file=FILE."
            )
    if not found:
        raise UsageError(
            "No questions are named; give --set data=FOLDER of KILT's files, or --set datasets=nq --set file=FILE."
        )
    return found


def _written(file: str, sets: Sequence[KiltSet]) -> dict[str, str]:
    """Set name → what ``file`` names for it.

    >>> _written("a.jsonl", [SETS["nq"]]), _written("nq=a,b.jsonl,T-REx=c.jsonl", ())
    ({'nq': 'a.jsonl'}, {'nq': 'a,b.jsonl', 'trex': 'c.jsonl'})
    """
    known = "|".join(
        re.escape(name) for one in SETS.values() for name in {one.name, one.label, one.stem}
    )
    parts = re.split(rf"(?:^|,)\s*({known})=", file, flags=re.IGNORECASE)
    if len(parts) == 1:
        if file.strip() and len(sets) != 1:
            raise UsageError(
                "With several sets, --set file says which file is whose: file=nq=FILE,hopo=FILE."
            )
        return {sets[0].name: file.strip()} if file.strip() else {}
    found = {
        set_of(name).name: reference.strip() for name, reference in zip(parts[1::2], parts[2::2])
    }
    unasked = [name for name in found if sets and name not in {one.name for one in sets}]
    if parts[0].strip() or unasked:
        raise UsageError(
            f"--set file={file}: {unasked[0] if unasked else parts[0].strip()!r} is none of the sets that are asked for."
        )
    return found


def _official(folder: Path, one: KiltSet, split: str) -> Path | None:
    name = one.file_name(split)
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    bare = folder / name.replace(f"{one.stem}-dev", f"{one.stem}-dev_id").replace(
        f"{one.stem}-train", f"{one.stem}-train_id"
    )
    if bare.is_file():
        raise BadFileError(
            f"{bare} holds TriviaQA's ids without its questions; KILT's script get_triviaqa_input.py joins them to {name}."
        )
    return None


def read(one: KiltSet, name: str, path: Path, split: str, limit: int | None = None) -> Questions:
    """The first ``limit`` questions, after every row was checked. Raises BadFileError for questions of another kind."""
    kept: list[Example] = []
    rows = 0
    for example in read_examples(path, form="kilt"):
        rows += 1
        _check(one, example, path)
        if limit is None or len(kept) < limit:
            kept.append(example)
    if not rows:
        raise BadFileError(f"{path} holds no question.")
    return Questions(
        one, name, path, sha256_file(path), tuple(kept), rows, _differs(one, path, split, rows)
    )


def _check(one: KiltSet, example: Example, path: Path) -> None:
    """BadFileError if the question cannot be of this set."""
    text, where = (
        example.question.text,
        f"{path} is no file of {one.label}: its question {example.question.qid!r}",
    )
    for mark in MARKS.get(one.task, ()):
        if mark not in text:
            raise BadFileError(f"{where} lacks {mark}.")
    if "[END_ENT]" in MARKS.get(one.task, ()) and text.index("[START_ENT]") > text.index(
        "[END_ENT]"
    ):
        raise BadFileError(f"{where} has [END_ENT] before [START_ENT].")
    other = next(
        (m for task, marks in MARKS.items() if task != one.task for m in marks if m in text), ""
    )
    if other and one.task in ("fact", "qa"):
        raise BadFileError(f"{where} holds {other}, as another of KILT's tasks does.")
    if not example.gold.answers and not example.gold.pages:
        raise BadFileError(
            f"{where} has no gold; KILT keeps the answers of its test files, so take the dev file."
        )
    strange = next((answer for answer in example.gold.answers if answer not in VERDICTS), "")
    if one.task == "fact" and strange:
        raise BadFileError(
            f"{where} has the answer {strange[:60]!r}, where SUPPORTS or REFUTES should stand."
        )


def _differs(one: KiltSet, path: Path, split: str, rows: int) -> str:
    """How a file is not KILT's own, in one sentence; '' if nothing speaks against it."""
    split = split if split in one.rows else "dev"
    if rows != one.rows[split]:
        return f"{path.name} has {rows:,} rows and KILT's {one.file_name(split)} {one.rows[split]:,}, so it is not the official file."
    size = path.stat().st_size
    if one.size[split] and path.suffix != ".gz" and size != one.size[split]:
        return (
            f"{path.name} has as many rows as KILT's {one.file_name(split)}, but {size:,} bytes instead of "
            f"{one.size[split]:,}, so it was changed."
        )
    return ""
