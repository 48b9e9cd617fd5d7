"""The experiments of a workspace: ``experiments/NAME`` with what was asked for, and the report once it has ended.

``experiment.json`` {kind, noun, request, runs: {label: run}} · ``report.json`` · the report's own files.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, Hint, UsageError
from rallebench.core.experiments import FOLDER
from rallebench.core.files import read_json, sha256_file, write_json, write_text
from rallebench.core.locks import alone
from rallebench.engine.store import checked_run_name

REQUEST, REPORT, WRITTEN = "experiment.json", "report.json", "written.json"
KEYS = ("kind", "noun", "request", "runs")
TYPES = {"kind": str, "noun": str, "request": dict, "runs": dict, "made": str}
LONGEST_RUN = 90


@dataclass(frozen=True, slots=True)
class StoredExperiment:
    """An experiment that was begun. ``request``: as ``ExperimentRequest.as_json`` gives it; ``runs``: label → run;
    ``report``: None until it has ended."""

    name: str
    kind: str
    request: Mapping[str, Any]
    runs: Mapping[str, str] = field(default_factory=dict)
    report: Mapping[str, Any] | None = None


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
            for path in (self.root / FOLDER).glob(f"*/{file}"):
                name = path.parent.name
                times[name] = max(times.get(name, 0.0), path.stat().st_mtime)
        ordered = sorted(times, key=lambda name: (-times[name], name))
        return [
            name
            for name in ordered
            if not name.startswith(".") and (not kinds or self.kind_of(name) in kinds)
        ]

    def kind_of(self, name: str) -> str:
        """The kind of an experiment, '' if there is none of that name, or if its file is damaged."""
        return self._word(name, "kind")

    def noun_of(self, name: str) -> str:
        """The noun for an experiment in sentences, as in "sweep"; '' as for ``kind_of``."""
        return self._word(name, "noun")

    def _word(self, name: str, key: str) -> str:
        with contextlib.suppress(BadFileError):  # also where there is no file
            return str(_read(self.folder(name) / REQUEST, KEYS)[key])
        return ""

    def exists(self, name: str) -> bool:
        return (self.folder(name) / REQUEST).is_file()

    def open(self, name: str, noun: str = "experiment") -> StoredExperiment:
        """An experiment by its name. Raises UsageError if there is none, BadFileError for damaged files."""
        folder = self.folder(name)
        if not name or not (folder / REQUEST).is_file():
            known = ", ".join(self.names()[:10]) or "none yet"
            raise UsageError(f"There is no {noun} {name!r} (there are: {known}).")
        value = _read(folder / REQUEST, KEYS)
        report = None
        if (folder / REPORT).is_file():
            report = _read(folder / REPORT, ("request", "made"))
        runs = {label: str(run) for label, run in value["runs"].items()}
        return StoredExperiment(name, value["kind"], value["request"], runs, report)

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
        write_json(self.folder(name) / REPORT, report)

    @contextlib.contextmanager
    def locked(self, name: str, noun: str) -> Iterator[None]:
        """Hold the experiment's lock. Raises UsageError if another process or page runs it."""
        refusal = (
            f"The {noun} {name!r} is being run by another process or page; wait for it or stop it."
        )
        with alone(self.root / FOLDER / f".{name}.lock", refusal):
            yield


class WrittenFiles:
    """The files that the experiment in ``folder`` has written for its user, some of them elsewhere.

    ``guarded``: their sums are recorded in ``written.json`` ({``sha256``: file → sum, ``writing``: files that were being
    written}), and a file that the user changed is never written over.
    """

    def __init__(self, folder: Path, *, guarded: bool) -> None:
        self._path, self._guarded = folder / WRITTEN, guarded
        value = read_json(self._path) if guarded and self._path.exists() else {}
        record = value if isinstance(value, dict) else {}
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
    taken = store.noun_of(name)
    if not taken and kind != "run" and (root / "runs" / name / "run.json").is_file():
        taken = "run"
    if taken and (taken != noun or (noun != "run" and store.kind_of(name) != kind)):
        what = f"a {taken}" if taken != noun else f"the {taken} {store.kind_of(name)!r}"
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


def _read(path: Path, keys: tuple[str, ...]) -> dict[str, Any]:
    value = read_json(path)
    if not isinstance(value, dict) or not all(
        key in value and isinstance(value[key], TYPES[key]) for key in keys
    ):
        raise BadFileError(
            f"{path} was damaged by another program; run the experiment again under its name to write it anew."
        )
    return value
