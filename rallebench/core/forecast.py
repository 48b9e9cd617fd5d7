"""The forecast of an experiment: its declared runs and calls, and their cost as measured by a pilot."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import reduce
from typing import Any

from rallebench.core.numbers import plural
from rallebench.core.types import Json, digest

QUANTITIES = ("seconds", "model_calls", "retrievals", "prompt_tokens", "completion_tokens", "usd")

CHANGING = 0.1
"""Assumed share of questions that two variants answer differently, used for the smallest detectable difference."""

Seconds = tuple[float, float, float]
"""(expected, low, high)."""


@dataclass(frozen=True, slots=True)
class Range:
    """A count from ``low`` to ``high``; ``high`` None: the count depends on the answers."""

    low: int
    high: int | None

    def __add__(self, other: Range) -> Range:
        high = None if self.high is None or other.high is None else self.high + other.high
        return Range(self.low + other.low, high)

    def either(self, other: Range) -> Range:
        """The range that covers both."""
        high = None if self.high is None or other.high is None else max(self.high, other.high)
        return Range(min(self.low, other.low), high)


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run and its open questions.

    ``open``: the number of its ``questions`` without an answer and a judgement in a run of this name. ``generations`` and
    ``retrievals`` count their calls, judges included. ``depends``: its questions or prompts depend on the answers of an
    earlier run. ``flow``: the identity of its chain or agent, see ``flow_identity``; '' with a judge. ``repeat``: above 1, it is
    a repeat of the run before it.
    """

    label: str
    run: str
    workflow: str
    dataset: str
    questions: int
    open: int
    generations: Range
    retrievals: Range
    llms: tuple[str, ...]
    retrievers: tuple[str, ...]
    depends: bool = False
    flow: str = ""
    repeat: int = 1

    @property
    def similarity_key(self) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """Runs with equal keys cost about the same for each question."""
        return self.workflow, self.llms, self.retrievers


@dataclass(frozen=True, slots=True)
class PilotSample:
    """``questions`` of a run were answered, and ``failed`` of them failed.

    ``rows``: quantity → cost of each answered question, None if unknown. ``why``: the first failure, or the models without
    a known price; without rows, the reason why the run could not be sampled.
    """

    questions: int
    failed: int
    rows: tuple[Mapping[str, float | None], ...]
    why: str = ""

    @property
    def unpriced(self) -> bool:
        """True if the price of an answer is unknown."""
        return any(row["usd"] is None for row in self.rows)


@dataclass(frozen=True, slots=True)
class Interval:
    """The expected value, from the sample's mean, and bounds, from its cheapest and its most expensive question; None:
    unknown."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class PilotCosts:
    """The costs of a whole experiment, estimated from a pilot.

    ``samples``: one for each planned run, None if the pilot did not reach it. ``parts``: for each run, quantity → Interval
    for the open questions. ``total``: the same for all runs. ``notes``: limits of these figures. ``building``: seconds to
    build the missing indexes, None if not measured.
    """

    samples: tuple[PilotSample | None, ...]
    parts: tuple[Mapping[str, Interval], ...]
    total: Mapping[str, Interval]
    notes: tuple[str, ...]
    building: float | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """Everything known about an experiment before it starts.

    Declared, by the dry run: ``runs``; ``open_end``: a sentence on why there may be more runs, or ''; ``indexes``: the
    number of indexes that the runs search; ``builds``: recipes of indexes to build; ``measurements``: labels of
    measurements in separate processes; ``rows``: labels of its files of rows; ``generated``: labels of the files that a
    model fills; ``warnings``: gold pages missing from an index, and the experiment's own sentences.

    Measured: ``pilot``, None before one has ended; ``index_costs``: a sentence on the indexes to build, or ''.

    Expected, from the pilot or from earlier runs: ``seconds`` for questions and missing indexes, None if one of them is
    unknown; ``building``: seconds for these indexes; ``usd``, None without a price, 0.0 for local models; ``basis``: the
    source of both; ``cached``: the number of model calls that the reply cache answers, None if unknown; ``smallest``: the
    smallest detectable difference of two means with these questions; ``remarks``: sentences about the choice of variants.
    """

    kind: str
    name: str
    runs: tuple[PlannedRun, ...]
    open_end: str = ""
    indexes: int = 0
    builds: tuple[Any, ...] = ()
    warnings: tuple[str, ...] = ()
    measurements: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    generated: tuple[str, ...] = ()
    index_costs: str = ""
    pilot: PilotCosts | None = None
    seconds: Seconds | None = None
    building: Seconds | None = None
    usd: float | None = None
    basis: str = ""
    cached: int | None = None
    smallest: float | None = None
    remarks: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """The number of runs without repeats, or of measurements if there are no runs."""
        return sum(run.repeat == 1 for run in self.runs) or len(self.measurements)

    @property
    def questions(self) -> int:
        return sum(run.questions for run in self.runs)

    @property
    def open(self) -> int:
        """The number of questions that no run of this name has answered."""
        return sum(run.open for run in self.runs)

    @property
    def generations(self) -> Range:
        return reduce(Range.__add__, (run.generations for run in self.runs), Range(0, 0))

    @property
    def retrievals(self) -> Range:
        return reduce(Range.__add__, (run.retrievals for run in self.runs), Range(0, 0))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for a reader of the numbers."""
        measured = self.pilot.notes if self.pilot else ()
        return tuple(dict.fromkeys((*measured, *self.plan_notes, *self.remarks)))

    @property
    def plan_notes(self) -> tuple[str, ...]:
        """Notes on the declared runs."""
        if not self.runs and not self.measurements and not self.generated:
            return ("It asks no model: it only works on existing files.",)
        guessed = [run.label for run in self.runs if run.depends]
        notes = list(self.warnings)
        if self.indexes:
            notes.append(
                f"It uses {plural(self.indexes, 'index')}; {len(self.builds)} must be built first."
            )
        if self.measurements:
            notes.append(
                f"It measures in {len(self.measurements)} processes of their own: {list_some(self.measurements)}."
            )
        if self.generated:
            notes.append(
                f"A model is asked for rows ({list_some(self.generated)}); the number of requests depends on what they are made of."
            )
        if any(run.repeat > 1 for run in self.runs):
            notes.append(
                "A repeat counts its questions again; where no model samples, it is not played."
            )
        if guessed:
            notes.append(
                f"{list_some(guessed)}: made of the answers of earlier runs, so their questions and calls are a guess."
            )
        return (*notes, *filter(None, [self.open_end]))

    def measure(self, samples: Sequence[PilotSample | None]) -> Forecast:
        """Scale the sample of every run to its open questions. Runs without a sample use those of similar runs."""
        rows, borrowed, unknown = self._rows(samples)
        parts = tuple(
            {name: _scale([row[name] for row in rows_of_run], run.open) for name in QUANTITIES}
            for run, rows_of_run in zip(self.runs, rows)
        )
        total = {name: _sum([part[name] for part in parts]) for name in QUANTITIES}
        if self.rows:  # requests for rows belong to no run
            total = dict.fromkeys(QUANTITIES, Interval())
        notes = _notes(self, samples, borrowed, unknown)
        return replace(self, pilot=PilotCosts(tuple(samples), parts, total, notes))

    def with_building(self, seconds: float) -> Forecast:
        """This forecast with the measured time to build its missing indexes."""
        assert self.pilot is not None, "the pilot comes first"
        return replace(self, pilot=replace(self.pilot, building=seconds))

    def _rows(
        self, samples: Sequence[PilotSample | None]
    ) -> tuple[list[tuple[Mapping[str, float | None], ...]], list[str], list[str]]:
        """(rows to scale for each run, labels of runs that use rows of similar runs, labels of runs without any)."""
        similar: dict[object, tuple[Mapping[str, float | None], ...]] = {}
        for run, sample in zip(self.runs, samples):
            known = similar.get(run.similarity_key, ())
            similar[run.similarity_key] = known + (sample.rows if sample else ())
        chosen: list[tuple[Mapping[str, float | None], ...]] = []
        borrowed: list[str] = []
        unknown: list[str] = []
        for run, sample in zip(self.runs, samples):
            rows = sample.rows if sample else ()
            if not rows and run.open:
                rows = similar[run.similarity_key]
                (borrowed if rows else unknown).append(run.label)
            chosen.append(rows)
        return chosen, borrowed, unknown


def flow_identity(workflow: str, settings: Json) -> str:
    """The digest of a chain or agent without its name and questions. Models and indexes count by name only."""
    own = {key: value for key, value in settings.items() if key not in _OF_QUESTIONS}
    own = {key: _without_name(value) if key == "chain" else value for key, value in own.items()}
    return digest([workflow, json.loads(json.dumps(own, default=str))])


def _without_name(chain: object) -> object:
    if isinstance(chain, Mapping):
        return {key: value for key, value in chain.items() if key != "name"}
    return chain


_OF_QUESTIONS = ("backends", "dataset_sha256", "records_sha256", "sampled")


def list_some(names: Sequence[str]) -> str:
    """The first five names, and the number of the others."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _scale(values: Sequence[float | None], count: int) -> Interval:
    """The amount for ``count`` questions like the sample's; unknown if one of these is."""
    known = [value for value in values if value is not None]
    if not count:
        return Interval(0.0, 0.0, 0.0)
    if not known or len(known) < len(values):
        return Interval()
    return Interval(sum(known) / len(known) * count, min(known) * count, max(known) * count)


def _sum(amounts: Sequence[Interval]) -> Interval:
    """The sum of several amounts; unknown if one of them is."""
    if any(amount.value is None for amount in amounts):
        return Interval()
    return Interval(*(sum(getattr(a, end) for a in amounts) for end in ("value", "low", "high")))


def _notes(
    forecast: Forecast,
    samples: Sequence[PilotSample | None],
    borrowed: Sequence[str],
    unknown: Sequence[str],
) -> tuple[str, ...]:
    """The notes. ``borrowed``, ``unknown``: labels of the runs estimated from others, and of those without an estimate."""
    notes: list[str] = []
    refused: dict[str, list[str]] = {}
    for run, sample in zip(forecast.runs, samples):
        if sample and sample.why and not sample.rows:
            refused.setdefault(sample.why, []).append(run.label)
    notes += [f"{list_some(labels)}: could not be probed: {why}" for why, labels in refused.items()]
    measured = [sample for sample in samples if sample and sample.rows]
    if measured:
        count, parts = sum(len(sample.rows) for sample in measured), len(measured)
        notes.append(
            f"Measured on {count} questions of {plural(parts, 'part')} and scaled to all; the bounds are "
            "those of the least and the largest of these questions. Not included: loading, scoring, larger batches, other work "
            "on the machine. Cached replies cost nothing."
        )
    if failures := [sample for sample in measured if sample.failed]:
        failed = sum(sample.failed for sample in failures)
        notes.append(
            f"{failed} of the probe's questions failed and are in no figure: {failures[0].why}"
        )
    if borrowed:
        notes.append(f"{list_some(borrowed)}: not asked; estimated from similar runs.")
    refused_labels = {label for labels in refused.values() for label in labels}
    if unreached := [label for label in unknown if label not in refused_labels]:
        builds = "; it builds no index" * bool(forecast.builds)
        notes.append(
            f"{list_some(unreached)}: not reached by the probe{builds}, so the sums are not known."
        )
    elif unknown:
        notes.append("The sums are not known.")
    unpriced = {
        sample.why for sample in measured if sample.why and not sample.failed and sample.unpriced
    }
    notes += [f"US dollars are not known for {why}." for why in sorted(unpriced)]
    if forecast.rows:
        notes.append("A probe fills no file of rows, so the sums are not known.")
    return tuple(notes)


# JSON


def as_json(forecast: Forecast, key: str = "suite", *, probe: bool = False) -> Json:
    """The declared runs, their sums, and the notes. ``key``: the key of the experiment's kind; ``probe``: include the
    measured costs."""
    return {
        key: forecast.kind,
        "name": forecast.name,
        "plan": [_run_json(run) for run in forecast.runs],
        "total": {
            "parts": len(forecast.runs),
            "questions": forecast.questions,
            "left": forecast.open,
            "generations": asdict(forecast.generations),
            "retrievals": asdict(forecast.retrievals),
        },
        "indexes": {
            "needed": forecast.indexes,
            "to_build": len(forecast.builds),
            **({"costs": forecast.index_costs} if forecast.index_costs else {}),
        },
        **({"measurements": list(forecast.measurements)} if forecast.measurements else {}),
        **({"rows": list(forecast.rows)} if forecast.rows else {}),
        "notes": list(forecast.plan_notes),
        **({"probe": _pilot_json(forecast)} if probe else {}),
    }


def _run_json(run: PlannedRun) -> Json:
    content = asdict(run)
    keys = {field.name: "left" if field.name == "open" else field.name for field in fields(run)}
    own = {key: content[name] for name, key in keys.items() if name not in ("flow", "repeat")}
    return {**own, "repeat": run.repeat} if run.repeat > 1 else own


def _pilot_json(forecast: Forecast) -> Json | None:
    """The measured costs."""
    if forecast.pilot is None:
        return None
    rows = [
        {
            "label": run.label,
            "asked": sample.questions if sample else 0,
            "failed": sample.failed if sample else 0,
            **{name: asdict(amount) for name, amount in amounts.items()},
        }
        for run, sample, amounts in zip(forecast.runs, forecast.pilot.samples, forecast.pilot.parts)
    ]
    return {
        "parts": rows,
        "total": {name: asdict(amount) for name, amount in forecast.pilot.total.items()},
        "notes": list(forecast.notes),
    }
