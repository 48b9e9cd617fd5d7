"""A suite played with invented replies: which parts come, and what their flows ask.

Parts that a run has answered already are played with what it holds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rallebench.core.errors import MismatchError, RalleError
from rallebench.core.types import (
    Episode,
    Flow,
    Generate,
    Hit,
    Note,
    Outcome,
    Passage,
    Question,
    Reply,
    Request,
    Retrieve,
    Step,
)
from rallebench.engine.statistics import Mean
from rallebench.engine.store import RunFolder, difference
from rallebench.experiments.suites import (
    SUITES,
    Answered,
    Asked,
    Index,
    Indexed,
    Part,
    Release,
    Values,
)
from rallebench.experiments.suites._names import run_name
from rallebench.workspace.indexes.ensure import Described, foreseen

MOST_PARTS = 500
MOST_REQUESTS = 64
"""A flow that asks more often than this of invented replies would go on for as long as it is answered so."""


@dataclass(frozen=True, slots=True)
class Play:
    """``invent`` makes every reply, ``value`` is every metric's."""

    invent: Callable[[Request], Reply]
    value: float


@dataclass(frozen=True, slots=True)
class Span:
    """How many there will be, from ``low`` to ``high``; ``high`` None: only what is answered will tell."""

    low: int
    high: int | None

    def __add__(self, other: Span) -> Span:
        return Span(
            self.low + other.low,
            None if None in (self.high, other.high) else self.high + other.high,
        )  # type: ignore[operator]

    def either(self, other: Span) -> Span:
        """What holds whichever of the two comes true."""
        high = None if None in (self.high, other.high) else max(self.high, other.high)  # type: ignore[type-var]
        return Span(min(self.low, other.low), high)


@dataclass(frozen=True, slots=True)
class Seen:
    """A part, and what its flows asked. ``asks``: a mark of all that tells its questions from those of another play."""

    part: Part
    run: str
    left: int
    generations: Span
    retrievals: Span
    asks: str


@dataclass(slots=True)
class Searched:
    """The indexes of a certain making that parts search: ``names`` of those that are there, and by label those that are not."""

    names: dict[str, None] = field(default_factory=dict)
    missing: dict[str, Described] = field(default_factory=dict)

    def add(self, asked: Asked, index: Index) -> str:
        """The name that it has, or will have as far as that is known."""
        name, there = foreseen(asked.workspace, index.wanted)
        if there:
            self.names[name] = None
        else:
            self.missing[name or index.label] = index.wanted
        return name


def walk(
    suite: str, asked: Asked, name: str, play: Play, searched: Searched | None = None
) -> tuple[list[Seen], bool]:
    """(the parts that came, whether the suite came to its end). ``searched`` is told of the indexes."""
    parts = SUITES[suite](asked)
    seen: list[Seen] = []
    real = True
    searched = searched or Searched()
    try:
        part = next(parts)
        while len(seen) < MOST_PARTS:
            reply: Answered | Indexed | None = None
            if isinstance(part, Index):
                named = searched.add(asked, part)
                real = real and bool(named)
                reply = Indexed(named or f"({part.label})")
            elif not isinstance(part, Release):
                one, reply, from_run = _played(asked, name, part, play, real)
                real = real and from_run
                seen.append(one)
            try:
                part = parts.send(reply)
            except StopIteration:
                return seen, True
            except Exception:  # the answers were invented: a suite may make nothing of them
                return seen, False
    except StopIteration:
        return seen, True
    finally:
        parts.close()
    return seen, False


def _played(
    asked: Asked, name: str, part: Part, play: Play, real: bool
) -> tuple[Seen, Answered, bool]:
    """A part with its answers: those of its run where it has ended, invented ones otherwise."""
    run = run_name(name, part.label)
    folder = RunFolder(asked.workspace.runs / run)
    lines = _lines_of(asked, folder, part, real) if folder.path.exists() else {}
    good = {qid for qid, line in lines.items() if not line.get("error")}
    left, generations, retrievals, episodes = 0, Span(0, 0), Span(0, 0), {}
    for example in part.examples:
        episode, requests, settled = _dry(
            part.make_flow(example.question), example.question, part.workflow, play.invent
        )
        if episode is not None:
            episodes[episode.qid] = episode
        if example.question.qid not in good:
            left += 1
            generations += _span(requests, Generate, settled)
            retrievals += _span(requests, Retrieve, settled)
    asks = f"{records_sha256(part)} {json.dumps(part.settings, default=str)}"
    seen = Seen(part, run, left, generations, retrievals, asks)
    before = answered_before(folder, part, set(lines) - good) if lines and not left else None
    return seen, before or _invented(part, run, episodes, play.value), before is not None


def _invented(part: Part, run: str, episodes: Mapping[str, Episode], value: float) -> Answered:
    """A part as if every answer had been worth ``value``."""
    values = {metric: dict.fromkeys(episodes, value) for metric in part.metrics}
    mean = Mean(value, value, value, len(episodes)) if episodes else Mean(None, None, None, 0)
    means, n = dict.fromkeys(part.metrics, mean), len(part.examples)
    return Answered(part, run, episodes, values, means, n, n - len(episodes), invented=True)


def _span(requests: list[Request], kind: type, settled: bool) -> Span:
    count = sum(isinstance(request, kind) for request in requests)
    return Span(count, count if settled else None)


def _lines_of(asked: Asked, folder: RunFolder, part: Part, real: bool) -> dict[str, dict[str, Any]]:
    """What a run of that name has answered; MismatchError if it was made with other settings and ``part`` is no guess."""
    made = folder.spec()["spec"]
    settings = {key: value for key, value in made["settings"].items() if key != "backends"}
    theirs = {**made, "settings": settings}
    mine = json.loads(
        json.dumps(
            {
                "dataset": part.dataset,
                "workflow": part.workflow,
                "settings": fixed(part),
                "limit": asked.limit,
                "seed": asked.seed,
            }
        )
    )
    if mine == theirs:
        return folder.lines()
    if real:
        raise MismatchError(
            f"The run {folder.name!r} {difference(theirs, mine)}. Use another name for the new settings."
        )
    return {}


def fixed(part: Part) -> dict[str, Any]:
    """All of a part that changes its episodes, beside the models and indexes."""
    if "dataset_sha256" in part.settings:
        return dict(part.settings)
    return {**part.settings, "records_sha256": records_sha256(part)}


def records_sha256(part: Part) -> str:
    """Over all records that a part asks of, in order."""
    records = hashlib.sha256()
    for example in part.examples:
        records.update(
            json.dumps(example.record, sort_keys=True, ensure_ascii=False).encode(
                "utf-8", "surrogatepass"
            )
        )
    return records.hexdigest()


def _dry(
    flow: Flow, question: Question, workflow: str, invent: Callable[[Request], Reply]
) -> tuple[Episode | None, list[Request], bool]:
    """(the episode that invented replies make, what was asked, whether the flow came to its end)."""
    steps: list[Step] = []
    try:
        request = next(flow)
        while len(steps) < MOST_REQUESTS:
            reply = request.reply() if isinstance(request, Note) else invent(request)
            steps.append(Step(request, reply))
            request = flow.send(reply)
    except StopIteration as end:
        outcome = end.value if isinstance(end.value, Outcome) else None
        return (
            Episode(question.qid, workflow, tuple(steps), outcome),
            [step.request for step in steps],
            True,
        )
    except Exception:  # it could make nothing of what was invented
        return None, [step.request for step in steps], False
    finally:
        flow.close()
    return None, [step.request for step in steps], False


def _silent(request: Request) -> Reply:
    return Reply("")


def _affirming(request: Request) -> Reply:
    return _said(request, "Yes. True. 1")


def _denying(request: Request) -> Reply:
    return _said(request, "No. False. 0")


def _said(request: Request, text: str) -> Reply:
    if isinstance(request, Retrieve):
        hits = tuple(
            Hit(Passage(f"{n}", "A passage.", f"Page {n}", f"{n}"), 1.0 / n)
            for n in range(1, min(request.k, 20) + 1)
        )
        return Reply("A passage.", hits)
    return Reply(text)


PLAYS = (Play(_silent, 0.0), Play(_affirming, 1.0), Play(_denying, 0.5))
"""The suite is played once with each."""


# what a run has answered


def answered_before(folder: RunFolder, part: Part, failed: set[str]) -> Answered | None:
    """A part as its finished run has it; None where that was never scored. Raises BadFileError for a damaged run."""
    try:
        report = folder.report() or {}
        means = {name: Mean(**mean) for name, mean in report["suite"].items()}
        values: dict[str, dict[str, float | None]] = {name: {} for name in part.metrics}
        for line in folder.scores():
            if line["metric"] in values:
                values[line["metric"]][line["qid"]] = line["value"]
    except (RalleError, LookupError, TypeError):
        return None
    stored = folder.episodes()
    good = {
        e.question.qid: stored[e.question.qid]
        for e in part.examples
        if e.question.qid not in failed
    }
    found: Mapping[str, Values] = values
    return Answered(
        part,
        folder.name,
        good,
        found,
        means,
        len(part.examples),
        len(failed),
        report.get("seconds", 0.0),
    )
