"""The folder of a run: its request, its answers in order of arrival, scores and costs.

``run.json`` specification, fingerprints, versions · ``questions.jsonl`` the records asked ·
``episodes.jsonl`` a line per attempt, the last line of a question counts ·
``scores.jsonl``, ``support.jsonl``, ``costs.jsonl``, ``report.json`` a second pass · ``state.json`` the progress, for other
processes · ``title.json`` and ``marks.json`` the user's title, tags and note · RaLLe's own files (``ralle_files``).
Nothing is ever deleted.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field

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
from rallebench.core.own_files import DAMAGE, damage_error, parse, read_sealed, write_sealed
from rallebench.core.own_folders import list_files
from rallebench.core.parts import beside
from rallebench.core.report import MEND as REPORT_MEND
from rallebench.core.report import RunReport
from rallebench.core.runs import RunSpec
from rallebench.core.types import Episode, Json, Score
from rallebench.engine.record import (
    EpisodeHead,
    attempt_from_line,
    episode_to_json,
    head_from_line,
    score_from_line,
    score_to_json,
)
from rallebench.engine.run_files import RUN_MEND, STATE_MEND, RunDescription, RunState
from rallebench.engine.spec_differences import first_difference, is_same_but_for_dataset

TITLE, LONGEST_TITLE, TITLE_MEND = "title.json", 200, "rename the run"
"""The file with a user's title of a run; its most characters; the mend for a damaged one."""
RUN, QUESTIONS, EPISODES, SCORES = "run.json", "questions.jsonl", "episodes.jsonl", "scores.jsonl"
JUDGES, REPEATS = "judges", "repeats"
"""The folders for runs inside a run's folder: judges' passes, and the repeats after the first."""
REPORT, STATE, STOP, COSTS = "report.json", "state.json", "stop", "costs.jsonl"
LOCK, LOCK_PATIENCE = "run.lock", 0.2
"""The lock file; seconds to wait for it, because a process that checks the lock holds it for a moment."""

T = TypeVar("T")

_NAME = re.compile(r"[\w\-.][\w\-. ()+=,@]{0,99}")


def checked_run_name(name: str, noun: str = "run") -> str:
    """Return a name that is one plain folder name. Raises UsageError. ``noun``: the named thing."""
    if len(name) > 100 or len(name.encode("utf-8", "replace")) > 200:
        raise UsageError(f"The {noun} name {name[:40]!r}… is too long; use at most 100 characters.")
    if not _NAME.fullmatch(name) or name.startswith(".") or name.endswith((" ", ".")):
        raise UsageError(
            f"The {noun} name {name!r} cannot be a folder name; use letters, digits, '-', '_' and '.'."
        )
    return name


@dataclass(frozen=True, slots=True)
class _Title:
    """``title.json``."""

    title: Annotated[str, Field(max_length=LONGEST_TITLE)]


@dataclass(frozen=True, slots=True)
class Answers:
    """The stored answers of a run: the last episode of every question, its earlier failed attempts (as far as readable),
    and the wall time of all sessions in seconds, model loading excluded."""

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
    def create(runs: Path, description: RunDescription, records: Iterable[Json]) -> RunFolder:
        """Make the folder of a run with ``run.json`` and ``questions.jsonl``, whole or not at all.

        Raises UsageError if a run of that name exists.
        """
        name = description.name
        target = Path(runs) / checked_run_name(name)
        taken = UsageError(
            f"The run {name!r} exists already ({target}); choose another name, or resume it."
        )
        if target.exists():
            raise taken
        try:
            with beside(Path(runs), name) as part:
                write_json(part / RUN, description.to_json())
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
        """Open the folder of an existing run. Raises UsageError if there is none."""
        path = Path(runs) / checked_run_name(name)
        if not (path / RUN).exists():
            have = ", ".join(folder.name for folder in list_runs(runs)[:10]) or "none yet"
            raise UsageError(f"There is no run {name!r} in {runs} (runs: {have}).")
        return RunFolder(path)

    def description(self) -> RunDescription:
        """Read ``run.json``. Raises BadFileError."""
        path = self.path / RUN
        return RunDescription.from_json(read_sealed(path, RUN_MEND), path=path)

    def check_same(self, requested: RunDescription) -> None:
        """Raise MismatchError, naming both sides, unless ``requested`` would give the same episodes."""
        stored = self.description()
        if stored.fingerprint != requested.fingerprint:
            raise self.mismatch(stored.spec, requested.spec)

    def mismatch(self, stored: RunSpec, requested: RunSpec) -> MismatchError:
        """The error for a request with another specification than this run; the sentence names both sides."""
        if is_same_but_for_dataset(stored.to_json(), requested.to_json()):
            return MismatchError(
                f"The dataset {stored.dataset} changed since the run {self.name!r} began. Resume the run by its name alone, and it "
                "asks and scores the questions that it began with; or use another run name."
            )
        return MismatchError(
            f"The run {self.name!r} {first_difference(stored.to_json(), requested.to_json())}. Use another run name for the new settings."
        )

    def title(self) -> str:
        """The user's own title of the run, '' without one. Raises BadFileError."""
        path = self.path / TITLE
        if not path.exists():
            return ""
        return parse(read_sealed(path, TITLE_MEND), _Title, path, TITLE_MEND).title

    def set_title(self, title: str) -> None:
        """Set the user's title of the run; '' removes it."""
        if title:
            write_json(self.path / TITLE, {"title": title})
        else:
            (self.path / TITLE).unlink(missing_ok=True)

    @property
    def questions_file(self) -> Path:
        return self.path / QUESTIONS

    def records(self) -> list[Json]:
        """Read the records asked, in order. Raises BadFileError if they are incomplete."""
        path = self.questions_file
        records = list(read_own_jsonl(path))
        if not records or not all(
            isinstance(r, dict) and "id" in r and isinstance(r.get("input"), str) for r in records
        ):
            raise BadFileError(
                f"{path} is missing or damaged, so nothing can be scored; start a run with another name."
            )
        return records

    def grow(self, records: Sequence[Json]) -> None:
        """Extend the records asked to ``records``. Raises MismatchError if their beginning differs."""
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
        """The SHA-256 of the records asked, '' if they are missing."""
        path = self.questions_file
        return sha256_file(path) if path.is_file() else ""

    def heads(self) -> dict[str, EpisodeHead]:
        """Question id → head of its last episode, in order of first appearance. Raises BadFileError."""
        return {head.qid: head for head in self._lines(head_from_line)}

    def _lines(self, read: Callable[[bytes, int], T]) -> Iterator[T]:
        """Yield every attempt, as ``read`` parses it from a line and the line's offset."""
        path, at = self.path / EPISODES, 0
        for number, raw in whole_lines(path):
            try:
                content = read(raw, at)
            except (ValueError, RecursionError):
                fault = "was damaged by another program"
            except (LookupError, TypeError):
                fault = "is not an episode"
            else:
                yield content
                at += len(raw)
                continue
            raise BadFileError(
                f"{path}, line {number} {fault}. Remove that line: a resumed run asks its question again."
            )

    def find_episode(self, qid: str, at: int | None = None) -> Episode | None:
        """The last episode of one question, None if it was not asked. ``at``: the offset of its line, see ``EpisodeHead``;
        without it all lines are searched. Raises BadFileError if it cannot be read."""
        path, last = self.path / EPISODES, b""
        name = json.dumps(qid, ensure_ascii=False).encode("utf-8", "backslashreplace")
        begins = b'{"qid": ' + name + b","
        if at is not None:
            with open(path, "rb") as handle:
                handle.seek(at)
                last = handle.readline()
        if not last.startswith(begins):  # the file has been replaced meanwhile
            last = b""
            for _, raw in whole_lines(path):
                last = raw if raw.startswith(begins) else last
        if not last:
            return None
        episode = None
        with contextlib.suppress(*DAMAGE):
            episode = attempt_from_line(last).episode
        if episode is None:
            raise self._damaged_episode(qid)
        return episode

    def episodes(self) -> dict[str, Episode]:
        """Question id → its last episode. Raises BadFileError for an unreadable one."""
        return self.answers().episodes

    def answers(self) -> Answers:
        """Read all answers in one pass. Raises BadFileError for an unreadable episode."""
        last: dict[str, Episode | None] = {}
        earlier: list[Episode] = []
        longest: dict[str, float] = {}
        with pause_collector():
            for head, episode in self._lines(attempt_from_line):
                if before := last.get(head.qid):
                    earlier.append(before)
                last[head.qid] = episode
                longest[head.session] = max(longest.get(head.session, 0.0), head.elapsed)
        episodes = {}
        for qid, whole in last.items():
            if whole is None:
                raise self._damaged_episode(qid)
            episodes[qid] = whole
        return Answers(episodes, tuple(earlier), sum(longest.values()))

    def _damaged_episode(self, qid: str) -> BadFileError:
        return BadFileError(
            f"{self.path / EPISODES}: the last line of the question {qid!r} was damaged by another program. "
            "Remove that line: a resumed run asks its question again."
        )

    def append(self, log: Appender, episode: Episode, session: str, elapsed: float) -> None:
        """Append one episode; it is on its way to the disk when this returns."""
        log.write({**episode_to_json(episode), "session": session, "elapsed": round(elapsed, 4)})

    def log(self) -> Appender:
        """The file to which episodes are appended."""
        return Appender(self.path / EPISODES)

    def report(self) -> RunReport | None:
        """``report.json``, or None before the first scoring. Raises BadFileError if it is damaged."""
        path = self.path / REPORT
        if not path.exists():
            return None
        return RunReport.from_json(read_sealed(path, REPORT_MEND), path=path)

    def write_report(self, report: RunReport) -> None:
        """Write ``report.json`` with a seal that reveals any later change."""
        write_sealed(self.path / REPORT, report.to_json())

    def write_scores(self, scores: Iterable[Score]) -> None:
        """Write ``scores.jsonl``."""
        write_text(self.path / SCORES, json_lines(map(score_to_json, scores)))

    def repeats(self) -> list[RunFolder]:
        """The folders of the repeats after the first, in order; [] for a run without."""
        names = (file.parent.name for file in list_files(self.path / REPEATS, f"*/{RUN}"))
        numbers = sorted(int(name) for name in names if name.isdecimal())
        return [RunFolder(self.path / REPEATS / str(number)) for number in numbers]

    def scores(self, only: str = "") -> Iterator[Score]:
        """The scores of the questions: of a run with repeats the means over those that are scored; see ``own_scores``."""
        repeats = self.repeats()
        if not repeats:
            yield from self.own_scores(only)
            return
        later = [{(s.qid, s.metric): s.value for s in run.own_scores(only)} for run in repeats]
        for score in self.own_scores(only):
            key = (score.qid, score.metric)
            values = [score.value, *(scores.get(key) for scores in later)]
            known = [value for value in values if value is not None]
            yield replace(score, value=sum(known) / len(known)) if known else score

    def own_scores(self, only: str = "") -> Iterator[Score]:
        """The scores in ``scores.jsonl``, without repeats; none before the first scoring.

        ``only``: a metric or a question; lines without this word (most of the file) are not parsed. Raises BadFileError
        if the file is damaged.
        """
        path = self.path / SCORES
        mark = (
            json.dumps(only, ensure_ascii=False).encode("utf-8", "surrogatepass") if only else b""
        )
        try:
            with open(path, "rb", buffering=READ_AHEAD) as handle:
                for raw in handle:
                    if mark in raw:
                        yield score_from_line(raw)
        except FileNotFoundError:
            return
        except DAMAGE:
            raise damage_error(path, REPORT_MEND) from None

    def state(self) -> RunState:
        """Read ``state.json``, or count the questions and answers if it is missing or damaged.

        An active run with a free lock is ``interrupted``, whatever it wrote last.
        """
        path = self.path / STATE
        try:
            state = RunState.from_json(read_sealed(path, STATE_MEND), path=path)
        except BadFileError:
            state = RunState("interrupted")
            with contextlib.suppress(BadFileError):
                state = replace(state, total=len(self.records()), done=len(self.heads()))
        if state.is_active and not held(self.path / LOCK):
            state = replace(state, state="interrupted")
        return state

    def set_state(self, state: RunState) -> None:
        """Write ``state.json``. A full disk must not end a run here."""
        state = replace(state, updated=state.updated or time.time(), pid=os.getpid())
        with contextlib.suppress(Exception):
            write_json(self.path / STATE, state.to_json())

    def lock(self) -> contextlib.AbstractContextManager[None]:
        """Hold the run's lock, which the operating system frees when its process dies. Raises UsageError if it is held."""
        refusal = f"The run {self.name!r} is locked by another process; wait for it or stop it."
        return alone(self.path / LOCK, refusal, patience=LOCK_PATIENCE, stays=True)

    def ask_to_stop(self) -> None:
        """Ask the process of the run to stop after the current batch."""
        with contextlib.suppress(OSError):
            (self.path / STOP).touch()

    def stop_asked(self) -> bool:
        """Return whether this run was asked to stop, or the run around a judge's pass or a repeat."""
        inside = self.path.parent.name in (JUDGES, REPEATS)
        around = inside and RunFolder(self.path.parent.parent).stop_asked()
        return around or (self.path / STOP).exists()

    def forget_stop(self) -> None:
        """Withdraw ``ask_to_stop``, so that the run can continue."""
        with contextlib.suppress(OSError):
            (self.path / STOP).unlink()


def list_runs(runs: Path) -> list[RunFolder]:
    """All runs of a workspace, the newest first."""
    folders = [RunFolder(p.parent) for p in list_files(runs, f"*/{RUN}")]
    return sorted(folders, key=lambda run: (-(run.path / RUN).stat().st_mtime, run.name))
