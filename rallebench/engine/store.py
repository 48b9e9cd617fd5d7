"""A run is a folder: what was asked for, every answer as it came, what it was worth.

``run.json`` resolved spec, fingerprints, versions · ``questions.jsonl`` the records asked ·
``episodes.jsonl`` one line per answered question, the last line of a question counts ·
``scores.jsonl``, ``costs.jsonl``, ``report.json`` a second pass · ``state.json`` the progress, for other
processes · RaLLe's own files (``ralle_files``). Nothing is ever deleted.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, MismatchError, UsageError
from rallebench.core.files import (
    READ_AHEAD,
    Appender,
    disk_error,
    json_lines,
    read_own_jsonl,
    sha256_file,
    whole_lines,
    write_json,
    write_text,
)
from rallebench.core.locks import alone, held
from rallebench.core.memory import pause_collector
from rallebench.core.own_files import DAMAGE, damage_error, read_sealed, read_stored, write_sealed
from rallebench.core.own_folders import list_files
from rallebench.core.parts import beside
from rallebench.core.report import MEND as REPORT_MEND
from rallebench.core.report import RunReport
from rallebench.core.types import Episode, Score
from rallebench.engine.record import episode_from_json, episode_to_json
from rallebench.engine.run_shapes import (
    LARGEST,
    RUN_MEND,
    StoredRun,
    StoredState,
)

TITLE, LONGEST_TITLE = "title.json", 200
"""The file with a user's own title of a run; characters."""
RUN, QUESTIONS, EPISODES, SCORES = "run.json", "questions.jsonl", "episodes.jsonl", "scores.jsonl"
JUDGES = "judges"
"""The folder of the judges' passes in a run's folder."""
REPORT, STATE, STOP, COSTS = "report.json", "state.json", "stop", "costs.jsonl"
LOCK, LOCK_PATIENCE = "run.lock", 0.2
"""Seconds: a process that looks whether the lock is held holds it for a moment."""

RUN_FORMAT = "rallebench-run/1"

_NAME = re.compile(r"[\w\-.][\w\-. ()+=,@]{0,99}")


def checked_run_name(name: str, noun: str = "run") -> str:
    """A name that is one plain folder name; UsageError otherwise. ``noun``: what it is the name of."""
    if len(name) > 100 or len(name.encode("utf-8", "replace")) > 200:
        raise UsageError(f"The {noun} name {name[:40]!r}… is too long; use at most 100 characters.")
    if not _NAME.fullmatch(name) or name.startswith(".") or name.endswith((" ", ".")):
        raise UsageError(
            f"The {noun} name {name!r} cannot be a folder name; use letters, digits, '-', '_' and '.'."
        )
    return name


@dataclass(frozen=True, slots=True)
class Answers:
    """The stored answers of a run: the last episode of every question, the failed attempts before them (those that can be
    read), and the wall time of all its sessions in seconds, model loading excluded."""

    episodes: dict[str, Episode]
    earlier: tuple[Episode, ...]
    seconds: float


class RunFolder:
    """One run's folder."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)

    @property
    def name(self) -> str:
        return self.path.name

    @staticmethod
    def create(
        runs: Path, name: str, spec: Mapping[str, Any], records: Iterable[Mapping[str, Any]]
    ) -> RunFolder:
        """Make ``runs/name`` with ``run.json`` and ``questions.jsonl``, whole or not at all.

        Raises UsageError if a run of that name exists.
        """
        target = Path(runs) / checked_run_name(name)
        taken = UsageError(
            f"The run {name!r} exists already ({target}); choose another name, or resume it."
        )
        if target.exists():
            raise taken
        try:
            with beside(Path(runs), name) as part:
                write_json(part / RUN, {"format": RUN_FORMAT, "name": name, **spec})
                with Appender(part / QUESTIONS) as questions:
                    for record in records:
                        questions.write(record)
                os.rename(part, target)
        except OSError as error:
            if target.exists():
                raise taken from None
            raise disk_error(target, error) from error
        return RunFolder(target)

    @staticmethod
    def open(runs: Path, name: str) -> RunFolder:
        """The folder of an existing run; UsageError if there is none."""
        path = Path(runs) / checked_run_name(name)
        if not (path / RUN).exists():
            have = ", ".join(folder.name for folder in list_runs(runs)[:10]) or "none yet"
            raise UsageError(f"There is no run {name!r} in {runs} (runs: {have}).")
        return RunFolder(path)

    def spec(self) -> dict[str, Any]:
        """``run.json``. Raises BadFileError if it is not what a run writes."""
        return read_stored(self.path / RUN, StoredRun, RUN_MEND)

    def check_same(self, spec: Mapping[str, Any]) -> None:
        """MismatchError, naming both sides, unless ``spec`` would give the same episodes."""
        stored = self.spec()
        if stored["fingerprint"] != spec["fingerprint"]:
            raise self.mismatch(stored["spec"], spec["spec"])

    def mismatch(self, stored: Mapping[str, Any], requested: Mapping[str, Any]) -> MismatchError:
        """The error for a request whose specification is not that of this run; the sentence names both sides."""
        return MismatchError(
            f"The run {self.name!r} {difference(stored, requested)}. Use another run name for the new settings."
        )

    @property
    def questions_file(self) -> Path:
        return self.path / QUESTIONS

    def records(self) -> list[dict[str, Any]]:
        """The records asked, in order. Raises BadFileError if they are not whole."""
        path = self.questions_file
        records = list(read_own_jsonl(path))
        if not records or not all(
            isinstance(r, dict) and "id" in r and isinstance(r.get("input"), str) for r in records
        ):
            raise BadFileError(
                f"{path} is missing or damaged, so nothing can be scored; start a run with another name."
            )
        return records

    def grow(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Replace the records asked by ``records`` if they are the same and more. Raises MismatchError if they are others."""
        have = self.records()
        if len(records) <= len(have):
            return
        if list(records[: len(have)]) != have:
            raise MismatchError(
                f"The run {self.name!r} was asked other questions than the first {len(have)} of this request. Use another run "
                "name."
            )
        write_text(self.questions_file, json_lines(records))

    def questions_sha256(self) -> str:
        """The SHA-256 of the records asked, '' where they are missing."""
        path = self.questions_file
        return sha256_file(path) if path.is_file() else ""

    def lines(self) -> dict[str, dict[str, Any]]:
        """The last episode line of every question that was answered or failed, in order of first appearance."""
        return {line["qid"]: line for _, line in self._lines(json.loads)}

    def heads(self) -> dict[str, dict[str, Any]]:
        """``lines`` without ``steps``, which are most of what is stored: ``answer`` and ``stop_reason``, or ``error``. ``at``: the
        place of the line for ``find_episode``, in bytes."""
        return {line["qid"]: {**line, "at": at} for at, line in self._lines(_without_steps)}

    def _lines(self, parse: Callable[[bytes], Any]) -> Iterator[tuple[int, dict[str, Any]]]:
        """(where the line begins, the line) of every episode."""
        path, at = self.path / EPISODES, 0
        for number, raw in whole_lines(path):
            fault = "was damaged by another program"
            with contextlib.suppress(ValueError, RecursionError):
                line = parse(raw)
                if isinstance(line, dict) and isinstance(line.get("qid"), str):
                    yield at, line
                    at += len(raw)
                    continue
                fault = "is no episode"
            raise BadFileError(
                f"{path}, line {number} {fault}. Remove that line: a resumed run asks its question again."
            )

    def find_episode(self, qid: str, at: int | None = None) -> Episode | None:
        """The last episode of one question, None if it was not asked. ``at``: as ``heads`` has it; without it all lines are
        looked through. Raises BadFileError if it cannot be read."""
        path, last = self.path / EPISODES, b""
        name = json.dumps(qid, ensure_ascii=False).encode("utf-8", "backslashreplace")
        begins = b'{"qid": ' + name + b","
        if at is not None:
            with open(path, "rb") as handle:
                handle.seek(at)
                last = handle.readline()
        if not last.startswith(begins):  # the file is another one by now
            last = b""
            for _, raw in whole_lines(path):
                last = raw if raw.startswith(begins) else last
        return self.episode(qid, last) if last else None

    def episodes(self) -> dict[str, Episode]:
        """Question id → its last episode. Raises BadFileError for one that cannot be read."""
        return self.answers().episodes

    def answers(self) -> Answers:
        """Everything that was answered, read in one pass. Raises BadFileError for an episode that cannot be read."""
        last: dict[str, dict[str, Any]] = {}
        earlier = []
        longest: dict[str, float] = {}
        with pause_collector():
            for _, line in self._lines(json.loads):
                if before := last.get(line["qid"]):
                    with contextlib.suppress(BadFileError):
                        earlier.append(self.episode(line["qid"], before))
                last[line["qid"]] = line
                session, elapsed = str(line.get("session", "")), line.get("elapsed", 0.0)
                if isinstance(elapsed, (int, float)) and 0 <= elapsed <= LARGEST:
                    longest[session] = max(longest.get(session, 0.0), elapsed)
            episodes = {qid: self.episode(qid, line) for qid, line in last.items()}
        return Answers(episodes, tuple(earlier), sum(longest.values()))

    def episode(self, qid: str, line: Mapping[str, Any] | bytes) -> Episode:
        """The episode of a line. Raises BadFileError if it cannot be read."""
        try:
            return episode_from_json(json.loads(line) if isinstance(line, bytes) else line)
        except DAMAGE:
            raise BadFileError(
                f"{self.path / EPISODES}: the last line of the question {qid!r} was damaged by another program. "
                "Remove that line: a resumed run asks its question again."
            ) from None

    def append(self, log: Appender, episode: Episode, session: str, elapsed: float) -> None:
        """Append one episode; it is on its way to the disk when this returns."""
        log.write({**episode_to_json(episode), "session": session, "elapsed": round(elapsed, 4)})

    def log(self) -> Appender:
        """The file that episodes are appended to."""
        return Appender(self.path / EPISODES)

    def report(self) -> RunReport | None:
        """``report.json``, or None before the first scoring. Raises BadFileError if it is damaged."""
        path = self.path / REPORT
        if not path.exists():
            return None
        return RunReport.from_json(read_sealed(path, REPORT_MEND), path=path)

    def write_report(self, report: RunReport) -> None:
        """Write ``report.json`` with a seal, by which a change of anything in it is seen."""
        write_sealed(self.path / REPORT, report.to_json())

    def scores(self, only: str = "") -> Iterator[Score]:
        """The scores in ``scores.jsonl``; none before the first scoring.

        ``only``: a metric; the lines of others, which are most, are not parsed. Raises BadFileError if the file is damaged.
        """
        path = self.path / SCORES
        mark = (
            json.dumps(only, ensure_ascii=False).encode("utf-8", "surrogatepass") if only else b""
        )
        try:
            with open(path, "rb", buffering=READ_AHEAD) as handle:
                for raw in handle:
                    if mark in raw:
                        yield _score_line(raw)
        except FileNotFoundError:
            return
        except DAMAGE:
            raise damage_error(path, REPORT_MEND) from None

    def state(self) -> dict[str, Any]:
        """Where the run stands: state, done, total, errors, seconds, rate, message, pid.

        A run that no process holds the lock of reads ``interrupted``, whatever it wrote last.
        """
        try:
            state = read_stored(self.path / STATE, StoredState, "resume the run")
        except BadFileError:
            state = {"state": "interrupted", "done": 0, "total": 0, "errors": 0}
            with contextlib.suppress(BadFileError):
                state |= {"total": len(self.records()), "done": len(self.heads())}
        if state["state"] in ("running", "scoring") and not held(self.path / LOCK):
            state = {**state, "state": "interrupted"}
        return state

    def set_state(self, state: str, **values: Any) -> None:
        """Write ``state.json``; a full disk here must not end a run."""
        with contextlib.suppress(Exception):
            write_json(
                self.path / STATE,
                {"state": state, "updated": time.time(), "pid": os.getpid(), **values},
            )

    def lock(self) -> contextlib.AbstractContextManager[None]:
        """Hold the run's lock, which the operating system frees when its process dies. Raises UsageError if it is held."""
        refusal = f"The run {self.name!r} is locked by another process; wait for it or stop it."
        return alone(self.path / LOCK, refusal, patience=LOCK_PATIENCE, stays=True)

    def ask_to_stop(self) -> None:
        """Ask the process that runs it to stop after the current batch."""
        with contextlib.suppress(OSError):
            (self.path / STOP).touch()

    def stop_asked(self) -> bool:
        """Return whether the run, or for a judge's pass the run that it lies in, was asked to stop."""
        inside = self.path.parent.name == JUDGES and (self.path.parent.parent / STOP).exists()
        return inside or (self.path / STOP).exists()

    def forget_stop(self) -> None:
        """Take back ``ask_to_stop``, so that the run can continue."""
        with contextlib.suppress(OSError):
            (self.path / STOP).unlink()


def _without_steps(raw: bytes) -> Any:
    # Inside a JSON text the quotes would be escaped, so this stands only where the steps begin.
    head, steps, _ = raw.partition(b', "steps": [')
    return json.loads(head + b"}" if steps else raw)


def _score_line(raw: bytes) -> Score:
    line = json.loads(raw)
    whole = raw.endswith(b"\n") and isinstance(
        line, dict
    )  # the file is written whole, so no line of it is torn
    names = whole and isinstance(line.get("qid"), str) and isinstance(line.get("metric"), str)
    value = line["value"] if names else True
    if value is not None and (type(value) not in (int, float) or LARGEST < abs(value) < math.inf):
        raise TypeError("no score")
    return Score(line["qid"], line["metric"], value, str(line.get("note", "")))


def list_runs(runs: Path) -> list[RunFolder]:
    """All runs of a workspace, the newest first."""
    folders = [RunFolder(p.parent) for p in list_files(runs, f"*/{RUN}")]
    return sorted(folders, key=lambda run: (-(run.path / RUN).stat().st_mtime, run.name))


def difference(old_value: Any, new_value: Any) -> str:
    """The first difference of two specs as a clause that names both sides.

    >>> difference({"settings": {"k": 5}}, {"settings": {"k": 10}})
    'was made with settings.k = 5, you asked for 10'
    """
    for where, old, new in _differences("", old_value, new_value):
        return f"was made with {where} = {_short(old)}, you asked for {_short(new)}"
    return "was made with other settings"


def _differences(where: str, old_value: Any, new_value: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old_value, dict) and isinstance(new_value, dict):
        for key in sorted({*old_value, *new_value}):
            yield from _differences(
                f"{where}.{key}" if where else key, old_value.get(key), new_value.get(key)
            )
    elif (
        isinstance(old_value, list)
        and isinstance(new_value, list)
        and len(old_value) == len(new_value)
    ):
        for n, (old, new) in enumerate(zip(old_value, new_value), 1):
            yield from _differences(f"{where}[{n}]", old, new)
    elif old_value != new_value:
        yield where, old_value, new_value


def _short(value: Any) -> str:
    text = "nothing" if value is None else repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else text[:77] + "…"
