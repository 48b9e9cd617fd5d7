"""The experiments of a workspace: ``experiments/NAME`` with the request, and the report once it has ended.

``experiment.json`` {kind, noun, request, runs: {label: run}} · ``report.json`` · the report's own files.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, Hint, UsageError
from rallebench.core.experiment_reports import ExperimentReport
from rallebench.core.experiments import FOLDER, RequestContent, StoredExperiment
from rallebench.core.files import sha256_file, write_json, write_text
from rallebench.core.json_values import JsonValue
from rallebench.core.locks import alone
from rallebench.core.own_files import (
    parse,
    read_sealed,
    reading,
    write_sealed,
)
from rallebench.core.own_folders import list_files
from rallebench.core.stored_experiments import MEND, report_from_json
from rallebench.engine.store import checked_run_name

REQUEST, REPORT, WRITTEN = "experiment.json", "report.json", "written.json"
LONGEST_RUN = 90


@dataclass(frozen=True, slots=True)
class _StoredRequest:
    """The stored request of an experiment. Early versions stored no model as None."""

    settings: dict[str, Any] = field(default_factory=dict)
    llm: str | None = ""
    limit: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class _Beginning:
    """``experiment.json``."""

    kind: str
    noun: str
    request: _StoredRequest
    runs: dict[str, str]


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
        """The kind of an experiment, '' if it does not exist or its file is damaged."""
        stored = self._beginning(name)
        return stored.kind if stored else ""

    def find_noun(self, name: str) -> str:
        """The noun for an experiment in sentences, such as "sweep"; '' as for ``find_kind``."""
        stored = self._beginning(name)
        return stored.noun if stored else ""

    def run_names(self, name: str) -> Mapping[str, str]:
        """Label → run of an experiment; {} as for ``find_kind``."""
        stored = self._beginning(name)
        return stored.runs if stored else {}

    def _beginning(self, name: str) -> _Beginning | None:
        """The beginning of an experiment, None if it does not exist or its file is damaged."""
        with contextlib.suppress(BadFileError):
            return self._read_beginning(name)
        return None

    def _read_beginning(self, name: str) -> _Beginning:
        path = self.folder(name) / REQUEST
        return parse(read_sealed(path, MEND), _Beginning, path, MEND)

    def exists(self, name: str) -> bool:
        return (self.folder(name) / REQUEST).is_file()

    def open(self, name: str, noun: str = "experiment") -> StoredExperiment:
        """Open an experiment by its name. Raises UsageError if there is none, BadFileError for damaged files."""
        folder = self.folder(name)
        if not name or not (folder / REQUEST).is_file():
            known = ", ".join(self.names()[:10]) or "none yet"
            raise UsageError(f"There is no {noun} {name!r} (there are: {known}).")
        stored, path, report = self._read_beginning(name), folder / REPORT, None
        if path.is_file():
            report = report_from_json(read_sealed(path, MEND), stored.noun, path)
        value = stored.request
        request = RequestContent(value.llm or "", value.settings, value.limit, value.seed)
        return StoredExperiment(name, stored.kind, request, stored.runs, report)

    def reading(self, name: str) -> contextlib.AbstractContextManager[None]:
        """A block that only reads values of an experiment's report; they differ from kind to kind. Raises BadFileError."""
        return reading(self.folder(name) / REPORT, MEND)

    def save_request(
        self,
        name: str,
        kind: str,
        request: RequestContent,
        runs: Mapping[str, str],
        noun: str = "experiment",
    ) -> None:
        """Write the request, so that a stopped experiment can be found and continued."""
        started = {"kind": kind, "noun": noun}
        content: dict[str, JsonValue] = {"request": request.to_json(), "runs": dict(runs)}
        write_json(self.folder(name) / REQUEST, {**started, **content})

    def save_report(self, name: str, request: RequestContent, report: ExperimentReport) -> None:
        """Write the report, with the request and the time."""
        now = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        value = {**report.to_json(), "request": request.to_json(), "made": now}
        write_sealed(self.folder(name) / REPORT, value)

    @contextlib.contextmanager
    def lock(self, name: str, noun: str) -> Iterator[None]:
        """Hold the experiment's lock. Raises UsageError if another process or page is running it."""
        refusal = (
            f"The {noun} {name!r} is being run by another process or page; wait for it or stop it."
        )
        with alone(self.root / FOLDER / f".{name}.lock", refusal):
            yield


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """``written.json``."""

    sha256: Mapping[str, str] | None = None
    writing: tuple[str, ...] | None = None


class WrittenFiles:
    """The files that the experiment in ``folder`` has written for its user, some of them outside the folder.

    ``guarded``: their checksums are recorded in ``written.json`` ({``sha256``: file → checksum, ``writing``: files in
    progress}), and a file that the user changed is never overwritten.
    """

    def __init__(self, folder: Path, *, guarded: bool) -> None:
        self._path, self._guarded = folder / WRITTEN, guarded
        record = StoredFiles()
        if guarded and self._path.exists():
            mend = "move the files that it names away"
            record = parse(read_sealed(self._path, mend), StoredFiles, self._path, mend)
        self._sha256 = dict(record.sha256 or {})
        self._unfinished = set(record.writing or ())

    def refuse_changed(self, paths: Iterable[Path]) -> None:
        """Raise UsageError for a file that was changed after it was written."""
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
        """Write files, each whole or not at all. Raises UsageError as ``refuse_changed`` does.

        The files in progress are recorded first. After any interruption the next session knows that they are its own.
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
    """Return ``name`` if a run or an experiment of ``kind`` can have it, new or to be continued. Raises UsageError."""
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
    """The name of an experiment's run. Different labels always give different names.

    >>> run_name("night", "noise=0.2")
    'night noise=0.2'
    """
    return folder_name(f"{experiment} {label}", LONGEST_RUN)


def folder_name(text: str, longest: int) -> str:
    """``text`` as the name of a folder, at most ``longest`` bytes: unchanged if valid, else its valid characters and a
    digest of the whole."""
    plain = re.sub(r"[^\w\-. ()+=,@]+", "-", text).strip(" .")
    if plain == text and len(plain.encode()) <= longest:
        return plain
    mark = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:4]
    return f"{plain.encode()[: longest - 5].decode('utf-8', 'ignore').rstrip(' .')} {mark}"
