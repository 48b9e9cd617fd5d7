"""Named benchmarks: one file each that says which questions, prompts and settings, and what is counted.

A suite is a generator, as a flow is: it yields a ``Part`` (questions and the flow that answers them), is sent
what was answered, and returns what it ``Made``. It asks no model and writes no file; ``running`` performs its
parts with the one loop, each in a run folder of its own::

    @SUITES.register("closed-book", settings={"data": Setting(str, "")})
    def closed_book(asked):
        answered = yield Part("all", "closed-book", asked.settings["data"], examples, flow, settings, score)
        return Made({"em": answered.mean("em")})

What can be wrong must be found before the first part is yielded: until then nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rallebench.bench.statistics import Mean
from rallebench.parameters import Setting, checked
from rallebench.registry import Registry
from rallebench.types import Episode, Example, Flow, Question
from rallebench.workspace import Workspace

Values = Mapping[str, "float | None"]
"""Metric → one question's value; None is not scored."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a suite is asked for. ``settings``: all of the suite's own, checked. ``llm``: '' if none was named."""

    workspace: Workspace
    llm: str
    settings: Mapping[str, Any]
    limit: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    """One run of a suite: ``examples`` answered by ``make_flow`` and scored by ``score``.

    ``label`` tells the parts of a suite apart and becomes part of the run's name. ``settings``: all that changes
    an answer beside the questions' ids (JSON-able; models and indexes are fingerprinted by the runner).
    ``llms``, ``retrievers``, ``tools``: what the flow asks. ``metrics``: what ``score`` gives → its definition, in the order of a
    table.
    """

    label: str
    workflow: str
    dataset: str
    examples: tuple[Example, ...]
    make_flow: Callable[[Question], Flow]
    settings: Mapping[str, Any]
    score: Callable[[Example, Episode], Values]
    metrics: Mapping[str, str] = field(default_factory=dict)
    llms: tuple[str, ...] = ()
    retrievers: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answered:
    """A part whose run has ended. ``episodes``: those that did not fail, by question id, in the order asked;
    ``values``: metric → question id → value, over them. ``n`` questions were asked, ``n_errors`` failed.
    ``warning``: a sentence on what went wrong besides, '' if nothing did."""

    part: Part
    run: str
    episodes: Mapping[str, Episode]
    values: Mapping[str, Values]
    means: Mapping[str, Mean]
    n: int
    n_errors: int
    seconds: float = 0.0
    warning: str = ""

    def mean(self, metric: str) -> float | None:
        """A metric's mean over the questions that it scores; None where it scores none."""
        return self.means[metric].value if metric in self.means else None


@dataclass(frozen=True, slots=True)
class Table:
    """A table as papers print it. ``rows``: as many cells as ``columns`` each (text, a number, a Mean, or None: not measured), the
    first the row's name. Shares are 0..1; ``percent`` says that they are shown ×100. ``note``: one sentence below it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    percent: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines over a number, or bars over names. ``series``: name → points (x, value), the value a number or a Mean,
    whose interval is drawn; ``kind``: ``line``, ``bar`` or ``scatter``."""

    title: str
    x: str
    y: str
    series: Mapping[str, tuple[tuple[Any, Any], ...]]
    kind: str = "line"


@dataclass(frozen=True, slots=True)
class Made:
    """What a suite ends with. ``report``: JSON-able, its own words. ``notes``: sentences that a reader of the
    numbers must know. ``files``: path below the suite's folder → text. ``tables``, ``plots``: as they are to be shown."""

    report: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    plots: tuple[Plot, ...] = ()


Parts = Generator[Part, Answered, Made]
Suite = Callable[[Asked], Parts]

SUITES: Registry[Suite] = Registry("suite", "rallebench.suites")
"""Traits: ``settings``, name → Setting; ``needs_llm``, whether it cannot do without a model (default true)."""


def settings_of(name: str, given: Mapping[str, str]) -> dict[str, Any]:
    """All settings of the suite, those given as they were written on the command line. Raises UsageError."""
    known: Mapping[str, Setting] = SUITES.entry(name).traits["settings"]
    return checked(f"suite {name!r}", known, given, flag="--set ")
