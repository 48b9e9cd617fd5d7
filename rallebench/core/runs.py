"""A run: a flow over examples, with scores. Its request and its result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rallebench.core.agent_identity import AgentIdentity
from rallebench.core.backends import Backends, Tool
from rallebench.core.deciding import StoppingRule
from rallebench.core.json_values import JsonValue
from rallebench.core.repeats import ONCE, RepeatOptions
from rallebench.core.report import RunReport
from rallebench.core.scoring import Judgements, ScoreColumn, Scorer, Values
from rallebench.core.spending_limit import SpendingLimit
from rallebench.core.types import (
    Chain,
    Episode,
    Example,
    Flow,
    Json,
    Question,
    digest,
)

FlowFactory = Callable[[Question], Flow]
UNTIL_DECIDED = "until_decided"
"""The setting of a run's stopping rule."""


@dataclass(frozen=True, slots=True)
class RunSpec:
    """The identity of a run. ``settings`` holds everything that changes an answer: the chain, the fingerprints of its
    models and indexes, the dataset's fingerprint."""

    dataset: str
    workflow: str
    settings: Json
    limit: int | None = None
    seed: int = 0

    def fingerprint(self) -> str:
        """12 hex digits over everything that changes an episode."""
        return digest(self.to_json())[:12]

    def to_json(self) -> dict[str, JsonValue]:
        """The section ``spec`` of ``run.json``."""
        return {
            "dataset": self.dataset,
            "workflow": self.workflow,
            "settings": self.settings,
            "limit": self.limit,
            "seed": self.seed,
        }


@dataclass(frozen=True, slots=True)
class FlowSpec:
    """A flow with its identity.

    ``workflow``: its name in run.json. ``settings``: JSON, everything besides models, indexes and questions that changes
    an answer. ``make`` is called after the backends are loaded. ``llms``, ``retrievers``: the names to load; ``tools``:
    the flow's own tools. ``offers_tools``: the condition for offering tools to the model: '' never, ``auto`` if it accepts
    tools (otherwise it is asked in text), ``always``. ``chain``, ``agent``: the chain or agent of the flow, or None.
    ``name``: the default name of its runs.
    """

    workflow: str
    settings: Json
    make: Callable[[Backends], FlowFactory] = field(compare=False)
    llms: tuple[str, ...] = ()
    retrievers: tuple[str, ...] = ()
    tools: Mapping[str, Tool] = field(default_factory=dict, compare=False)
    offers_tools: str = ""
    chain: Chain | None = None
    agent: AgentIdentity | None = None
    name: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """All models and retrievers, without duplicates."""
        return tuple(dict.fromkeys((*self.llms, *self.retrievers)))

    def open(self, backends: Backends) -> tuple[Backends, FlowFactory]:
        """Add the flow's own tools to ``backends``; return them with the factory of flows."""
        backends = Backends(backends.retrievers, backends.llms, {**backends.tools, **self.tools})
        return backends, self.make(backends)

    def disconnect(self) -> None:
        """End the connections of the flow's own tools, which a later call opens again."""
        for tool in self.tools.values():
            getattr(tool, "disconnect", lambda: None)()


def imported_flow(workflow: str, settings: Json) -> FlowSpec:
    """The placeholder flow of imported answers; it cannot run."""

    def make(backends: Backends) -> FlowFactory:
        raise AssertionError("imported answers are not asked again")

    return FlowSpec(workflow, settings, make)


@dataclass(frozen=True, slots=True)
class DatasetRef:
    """The source of the examples. ``sha256``: the file's, or '' to use that of the records."""

    name: str
    file: str = ""
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The request for a run. ``label`` is unique in its experiment; ``name`` is the name of the folder.

    ``metrics``: names of registered metrics without a model; ``scorers``: judges and the experiment's own scores.
    ``limit``, ``batch_size``: None uses the experiment's value. ``sampled``: the examples are a random sample by ``seed``.
    ``on_result``: called after the run, before the experiment continues. ``stopping``: the rule by which it may end before
    all questions are asked.
    """

    flow: FlowSpec
    dataset: DatasetRef
    examples: Sequence[Example]
    metrics: tuple[str, ...] = ()
    scorers: tuple[Scorer, ...] = ()
    limit: int | None = None
    batch_size: int | None = None
    seed: int = 0
    sampled: bool = False
    label: str = ""
    name: str = ""
    on_result: Callable[[Any], None] | None = field(default=None, compare=False)
    stopping: StoppingRule | None = None

    @property
    def questions(self) -> list[Question]:
        return [example.question for example in self.examples]

    @property
    def judges(self) -> tuple[Scorer, ...]:
        """The scorers that use a language model."""
        return tuple(scorer for scorer in self.scorers if scorer.llms)

    @property
    def columns(self) -> tuple[ScoreColumn, ...]:
        """The columns of all scorers, without registered metrics."""
        return tuple(column for scorer in self.scorers for column in scorer.columns)

    def identity_settings(self) -> Json:
        """The settings that change an episode, besides the models and indexes."""
        drawn: dict[str, Any] = {"sampled": True} if self.sampled else {}
        if self.stopping is not None:
            drawn[UNTIL_DECIDED] = self.stopping.to_json()
        if self.dataset.sha256:
            return {**self.flow.settings, **drawn, "dataset_sha256": self.dataset.sha256}
        return {**self.flow.settings, **drawn, "records_sha256": records_sha256(self.examples)}

    def spec(self, fingerprints: Mapping[str, str]) -> RunSpec:
        """The specification in ``run.json``. ``fingerprints``: "llm NAME" and "retriever NAME" → fingerprint."""
        settings = {**self.identity_settings(), "backends": dict(fingerprints)}
        return RunSpec(self.dataset.name, self.flow.workflow, settings, self.limit, self.seed)


def records_sha256(examples: Sequence[Example]) -> str:
    """The digest of all records, in order."""
    digest = hashlib.sha256()
    for example in examples:
        record = json.dumps(example.record, sort_keys=True, ensure_ascii=False)
        digest.update(record.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run. ``resume``: continue the run of that name if it exists. ``budget``: its spending limit, shared
    with other runs and judges of the same command; None: no limit. ``repeats``: how often each question is asked. ``until``: end
    the run once this rule decides."""

    batch_size: int = 20
    max_errors: int | None = None
    resume: bool = False
    track: bool = True
    budget: SpendingLimit | None = None
    repeats: RepeatOptions = ONCE
    until: StoppingRule | None = None


DEFAULT_OPTIONS = RunOptions()


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A checked run with its options. ``warnings``: for the user, before the run starts."""

    request: RunRequest
    options: RunOptions = DEFAULT_OPTIONS
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.request.name


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run.

    ``episodes``: question id → episode in the order of the questions, without failed episodes; ``judgements``: judge → the
    same for its pass. ``columns``: the columns with scores; ``values``: column → question id → value, and ``means`` their
    means. ``n`` questions were asked, ``n_errors`` failed. ``report``: ``report.json``. ``stopped``: True if the user
    stopped the run. ``failure``: one sentence on judges that gave no score at all, or ''. ``memory``: model or index → bytes; ``peak_memory``: the most bytes that the process held until the
    end of the run, None if unknown. ``simulated``: the replies are fake, from a dry run or a pilot.
    """

    request: RunRequest
    run: str
    episodes: Mapping[str, Episode]
    values: Mapping[str, Values]
    means: Mapping[str, Any]
    n: int
    n_errors: int
    seconds: float = 0.0
    report: RunReport | None = None
    warnings: tuple[str, ...] = ()
    memory: Mapping[str, int] = field(default_factory=dict)
    peak_memory: int | None = None
    stopped: bool = False
    reused: bool = False
    simulated: bool = False
    judgements: Judgements = field(default_factory=dict)
    failure: str = ""
    columns: tuple[ScoreColumn, ...] = ()

    def mean(self, metric: str) -> float | None:
        """A metric's mean over its scored questions; None without scores."""
        return self.means[metric].value if metric in self.means else None
