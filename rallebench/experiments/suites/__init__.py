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
from pathlib import Path
from typing import Any

from rallebench.core.registry import Registry
from rallebench.core.settings import Setting, checked
from rallebench.core.types import Episode, Example, Flow, Question
from rallebench.engine.perform import Backends
from rallebench.engine.statistics import Mean
from rallebench.workspace.flows import Agent
from rallebench.workspace.indexes.ensure import Described
from rallebench.workspace.paths import Workspace

Values = Mapping[str, "float | None"]
"""Metric → one question's value; None is not scored."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a suite is asked for. ``settings``: all of the suite's own, checked. ``llm``: '' if none was named.
    ``allow_python``: whether agents may run programs that a model wrote; it is the server's to say, no setting."""

    workspace: Workspace
    llm: str
    settings: Mapping[str, Any]
    limit: int | None = None
    seed: int = 0
    allow_python: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """One run of a suite: ``examples`` answered by ``make_flow`` and scored by ``score``.

    ``label`` tells the parts of a suite apart and becomes part of the run's name. ``settings``: all that changes
    an answer beside the questions' ids (JSON-able; models and indexes are fingerprinted by the runner).
    ``llms``, ``retrievers``: what the flow asks. ``metrics``: what ``score`` gives → its definition, in the order of a table.

    ``agent``: who answers in place of ``make_flow``, which is then only for planning: its tools are opened with it, and its flows
    know the loaded model.

    A chain's part has the chain in ``settings["chain"]``, as it is saved, and ``settings["dataset_sha256"]``; its ``workflow`` is
    ``chain``. With ``scored_by``, the metrics by which its run is scored besides, and the ``dataset_file`` it is then a run
    as a benchmark makes one: its waterfall, its reference lines and its questions can be opened.

    ``keep``: called when the run has ended, before the suite goes on; writes what other suites of the workspace shall find.
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
    agent: Agent | None = None
    scored_by: tuple[str, ...] = ()
    dataset_file: str = ""
    keep: Callable[[Answered], None] | None = None

    def ready(self, backends: Backends) -> tuple[Backends, Callable[[Question], Flow]]:
        """What answers, now that ``backends`` are loaded: they with the agent's tools, and its flows."""
        if self.agent is None:
            return backends, self.make_flow
        backends = self.agent.with_tools(backends)
        return backends, self.agent.flows(backends)


@dataclass(frozen=True, slots=True)
class Answered:
    """A part whose run has ended. ``episodes``: those that did not fail, by question id, in the order asked;
    ``values``: metric → question id → value, over them. ``n`` questions were asked, ``n_errors`` failed.
    ``warning``: a sentence on what went wrong besides, '' if nothing did. ``memory``: model or index → bytes it took to load.
    ``invented``: only to see what comes next; nothing need be computed of it."""

    part: Part
    run: str
    episodes: Mapping[str, Episode]
    values: Mapping[str, Values]
    means: Mapping[str, Mean]
    n: int
    n_errors: int
    seconds: float = 0.0
    warning: str = ""
    memory: Mapping[str, int] = field(default_factory=dict)
    invented: bool = False

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
    numbers must know. ``files``: path below the suite's folder → text. ``to_fill_in``: the same for files that a person edits;
    they are written only where there is none. ``tables``, ``plots``: as they are to be shown. ``failed``: part that the suite had to
    go on without → why."""

    report: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    to_fill_in: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    plots: tuple[Plot, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Index:
    """Yielded by a suite whose later parts search an index of a certain making: it is found or built, and the suite is sent
    an ``Indexed``. ``label``: what it is, for the reader."""

    label: str
    wanted: Described


@dataclass(frozen=True, slots=True)
class Indexed:
    """The workspace's index ``name`` is what was wanted. ``built``: for this; ``encoded``: passages encoded for it."""

    name: str
    built: bool = False
    encoded: int = 0


@dataclass(frozen=True, slots=True)
class Release:
    """Yielded by a suite that asks these models and retrievers no more: what it had loaded of them is let go. It is sent None."""

    names: tuple[str, ...]


Parts = Generator[Part, Answered, Made]
Suite = Callable[[Asked], Generator["Part | Index | Release", Any, Made]]
"""What fails while a piece is performed is thrown into the suite where it was yielded: one that catches it goes on without."""

SUITES: Registry[Suite] = Registry("suite", "rallebench.experiments.suites")
"""Traits: ``settings``, name → Setting; ``needs_llm``, whether it cannot do without a model (default true); ``asks``, whether it asks models at all (default true);
``named_by``, settings that stand in the default name of its runs."""


Scorer = Callable[[Path, "Path | None"], "dict[str, Any]"]
"""(file of predictions, file of gold or None) → JSON-able. Raises UsageError, BadFileError."""

SCORERS: Registry[Scorer] = Registry("form of predictions", "rallebench.experiments.suites")
"""``score --suite NAME``: predictions of another program, in the form in which the benchmark's own code writes them."""


def settings_of(name: str, given: Mapping[str, str]) -> dict[str, Any]:
    """All settings of the suite, those given as they were written on the command line. Raises UsageError."""
    known: Mapping[str, Setting] = SUITES.entry(name).traits["settings"]
    return checked(f"suite {name!r}", known, given, flag="--set ")
