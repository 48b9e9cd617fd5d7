"""The experiments of a workspace: ``experiments/NAME`` with what was asked for, and the report once it has ended.

``experiment.json`` {kind, noun, request, runs: {label: run}} · ``report.json`` · the report's own files.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import Field

from rallebench.core.errors import BadFileError, Hint, UsageError
from rallebench.core.experiments import FOLDER, StoredExperiment
from rallebench.core.files import sha256_file, write_json, write_text
from rallebench.core.locks import alone
from rallebench.core.own_files import Stored, read_stored, reading, write_sealed
from rallebench.core.own_folders import list_files
from rallebench.engine.run_shapes import Number, StoredMean
from rallebench.engine.store import checked_run_name

REQUEST, REPORT, WRITTEN = "experiment.json", "report.json", "written.json"
MEND = "run the experiment again under its name to write it anew, or remove its folder"
LONGEST_RUN = 90


class StoredRequest(Stored):
    """The request of an experiment."""

    settings: dict[str, Any] = Field(default_factory=dict)
    llm: str | None = ""
    limit: int | None = None
    seed: int = 0


class StoredBeginning(Stored):
    """``experiment.json``."""

    kind: str
    noun: str
    request: StoredRequest
    runs: dict[str, str]


class StoredVariant(Stored):
    run: str
    variant: str
    metrics: dict[str, StoredMean | None]
    difference: Number | None = None
    p_corrected: Number | None = None


class StoredPart(Stored):
    label: str
    metrics: dict[str, StoredMean | None]


class StoredTable(Stored):
    title: str
    columns: list[Any]
    rows: list[list[Any]]


class StoredExperimentReport(Stored):
    """``report.json`` of an experiment. Its seal shows a change of anything; one of an earlier version has none."""

    request: StoredRequest
    time: str = Field(alias="made")
    variants: list[StoredVariant] | None = None
    parts: list[StoredPart] | None = None
    tables: list[StoredTable] | None = None
    notes: list[str] | None = None
    metric: str | None = None
    failed: dict[str, str] | None = None
    warnings: list[str] | None = None


class ExperimentStore:
    """All experiments below ``root``, the workspace's folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, name: str) -> Path:
        """The folder of an experiment's own files."""
        return self.root / FOLDER / name

    def names(self, kinds: tuple[str, ...] = ()) -> list[str]:
        """The names of all experiments, or of those of ``kinds``, the newest first; damaged ones are left out."""
        times: dict[str, float] = {}
        for file in (REQUEST, REPORT):
            for path in list_files(self.root / FOLDER, f"*/{file}"):
                name = path.parent.name
                times[name] = max(times.get(name, 0.0), path.stat().st_mtime)
        ordered = sorted(times, key=lambda name: (-times[name], name))
        return [
            name
            for name in ordered
            if not name.startswith(".") and (not kinds or self.find_kind(name) in kinds)
        ]

    def find_kind(self, name: str) -> str:
        """The kind of an experiment, '' if there is none of that name, or if its file is damaged."""
        return self._word(name, "kind")

    def find_noun(self, name: str) -> str:
        """The noun for an experiment in sentences, as in "sweep"; '' as for ``find_kind``."""
        return self._word(name, "noun")

    def _word(self, name: str, key: str) -> str:
        with contextlib.suppress(BadFileError):  # also where there is no file
            return str(read_stored(self.folder(name) / REQUEST, StoredBeginning, MEND)[key])
        return ""

    def exists(self, name: str) -> bool:
        return (self.folder(name) / REQUEST).is_file()

    def open(self, name: str, noun: str = "experiment") -> StoredExperiment:
        """An experiment by its name. Raises UsageError if there is none, BadFileError for damaged files."""
        folder = self.folder(name)
        if not name or not (folder / REQUEST).is_file():
            known = ", ".join(self.names()[:10]) or "none yet"
            raise UsageError(f"There is no {noun} {name!r} (there are: {known}).")
        value = read_stored(folder / REQUEST, StoredBeginning, MEND)
        report = None
        if (folder / REPORT).is_file():
            report = read_stored(folder / REPORT, StoredExperimentReport, MEND)
        return StoredExperiment(name, value["kind"], value["request"], value["runs"], report)

    def reading(self, name: str) -> contextlib.AbstractContextManager[None]:
        """A block that only reads the values of an experiment's report, which differ from kind to kind. Raises BadFileError."""
        return reading(self.folder(name) / REPORT, MEND)

    def save_request(
        self,
        name: str,
        kind: str,
        request: Mapping[str, Any],
        runs: Mapping[str, str],
        noun: str = "experiment",
    ) -> None:
        """Write what was asked for, so that an experiment that was stopped can be found and continued."""
        value = {"kind": kind, "noun": noun, "request": request, "runs": dict(runs)}
        write_json(self.folder(name) / REQUEST, value)

    def save_report(self, name: str, report: Mapping[str, Any]) -> None:
        write_sealed(self.folder(name) / REPORT, report)

    @contextlib.contextmanager
    def lock(self, name: str, noun: str) -> Iterator[None]:
        """Hold the experiment's lock. Raises UsageError if another process or page runs it."""
        refusal = (
            f"The {noun} {name!r} is being run by another process or page; wait for it or stop it."
        )
        with alone(self.root / FOLDER / f".{name}.lock", refusal):
            yield


class StoredFiles(Stored):
    """``written.json``."""

    sha256: dict[str, str] | None = None
    writing: list[str] | None = None


class WrittenFiles:
    """The files that the experiment in ``folder`` has written for its user, some of them elsewhere.

    ``guarded``: their sums are recorded in ``written.json`` ({``sha256``: file → sum, ``writing``: files that were being
    written}), and a file that the user changed is never written over.
    """

    def __init__(self, folder: Path, *, guarded: bool) -> None:
        self._path, self._guarded = folder / WRITTEN, guarded
        record: dict[str, Any] = {}
        if guarded and self._path.exists():
            record = read_stored(self._path, StoredFiles, "move the files that it names away")
        self._sha256: dict[str, str] = dict(record.get("sha256") or {})
        self._unfinished = set(record.get("writing") or ())

    def refuse_changed(self, paths: Iterable[Path]) -> None:
        """Raise UsageError for a file that exists and is not as it was written last."""
        for path in paths if self._guarded else ():
            name = str(path)
            if not path.exists() or name in self._unfinished:
                continue
            if self._sha256.get(name) != sha256_file(path):
                reason = (
                    "was changed since it was made"
                    if name in self._sha256
                    else "exists already and was not made here"
                )
                raise UsageError(f"{path} {reason}; move it away, or choose another name.")

    def write(self, files: Mapping[Path, str | Iterable[str]]) -> None:
        """Write files, each whole or not at all. Raises UsageError as ``refuse_changed``.

        Those that are about to be written are recorded first: however it ends, the next session knows them as its own.
        """
        self.refuse_changed(files)
        self._unfinished |= {str(path) for path in files}
        self._save()
        for path, pieces in files.items():
            self._sha256[str(path)] = write_text(path, pieces)
        self._unfinished = set()
        self._save()

    def _save(self) -> None:
        if self._guarded:
            write_json(self._path, {"sha256": self._sha256, "writing": sorted(self._unfinished)})


def check_free(root: Path, kind: str, name: str, noun: str = "run") -> str:
    """``name``, if a run or an experiment of ``kind`` can have it: it may be new, or be continued. Raises UsageError."""
    checked_run_name(name, noun)
    store = ExperimentStore(root)
    taken = store.find_noun(name)
    if not taken and kind != "run" and (root / "runs" / name / "run.json").is_file():
        taken = "run"
    if taken and (taken != noun or (noun != "run" and store.find_kind(name) != kind)):
        what = f"a {taken}" if taken != noun else f"the {taken} {store.find_kind(name)!r}"
        raise UsageError(
            f"The name {name!r} is that of {what} already, so the {noun} cannot have it.",
            hint=Hint("rename"),
        )
    return name


def run_name(experiment: str, label: str) -> str:
    """The name of an experiment's run; labels that differ never give one name.

    >>> run_name("night", "noise=0.2")
    'night noise=0.2'
    """
    return folder_name(f"{experiment} {label}", LONGEST_RUN)


def folder_name(text: str, longest: int) -> str:
    """``text`` as a folder's name of at most ``longest`` bytes: as it is, or its valid characters and a digest of the whole."""
    plain = re.sub(r"[^\w\-. ()+=,@]+", "-", text).strip(" .")
    if plain == text and len(plain.encode()) <= longest:
        return plain
    mark = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:4]
    return f"{plain.encode()[: longest - 5].decode('utf-8', 'ignore').rstrip(' .')} {mark}"
