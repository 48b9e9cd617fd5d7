"""``run.json`` and ``state.json`` as values. Only this module knows their keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from rallebench.chains.saved import chain_from_json
from rallebench.core.agent_identity import AgentIdentity
from rallebench.core.deciding import StoppingRule
from rallebench.core.errors import RalleError
from rallebench.core.json_values import JsonValue
from rallebench.core.memory import Memory
from rallebench.core.own_files import damage_error, parse
from rallebench.core.prices import Prices, read_prices
from rallebench.core.repeats import ONCE, RepeatOptions
from rallebench.core.report import MemoryUse
from rallebench.core.runs import UNTIL_DECIDED, RunSpec
from rallebench.core.strict_numbers import Count, Number, Whole
from rallebench.core.types import Chain, Json
from rallebench.metrics.recorded import IMPORTED

RUN_FORMAT: Literal["rallebench-run/1"] = "rallebench-run/1"
RUN_MEND = "start a run with another name"
STATE_MEND = "resume the run"

Text = Annotated[str, Field(max_length=100_000)]


@dataclass(frozen=True, slots=True)
class RunDescription:
    """The content of ``run.json``: the specification of a run and the conditions under which it was made.

    ``fingerprint`` covers ``spec``. ``metrics``: registered metrics and judges. ``asks_models``: retrievers that ask
    language models themselves. ``memory``: model or index → its memory, None if unknown; None instead of the mapping if
    not recorded. ``repeats``: how often each question is asked, with the thresholds of metrics. ``path``: the file, for errors.
    """

    name: str
    spec: RunSpec
    fingerprint: str
    metrics: tuple[str, ...] = ()
    batch_size: int = 1
    created: str = ""
    dataset_file: str = ""
    prices: Prices = field(default_factory=dict)
    asks_models: tuple[str, ...] = ()
    memory: Mapping[str, Memory | None] | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    platform: str = ""
    repeats: RepeatOptions = ONCE
    path: Path = field(default=Path("run.json"), compare=False, repr=False)

    @property
    def dataset(self) -> str:
        """The name of the dataset."""
        return self.spec.dataset

    @property
    def dataset_source(self) -> str:
        """The file of the dataset, or its name if there was no file."""
        return self.dataset_file or self.spec.dataset

    @property
    def dataset_sha256(self) -> str:
        """The checksum of the whole file of the dataset, '' without a file."""
        return str(self.spec.settings.get("dataset_sha256") or "")

    @property
    def is_imported(self) -> bool:
        """True for predictions of another program."""
        return self.spec.workflow == IMPORTED

    @property
    def is_sampled(self) -> bool:
        """True if the questions are a random sample."""
        return bool(self.spec.settings.get("sampled"))

    @property
    def stopping(self) -> StoppingRule | None:
        """The rule by which the run may end early, None without one. Raises BadFileError."""
        rule = self.spec.settings.get(UNTIL_DECIDED)
        return StoppingRule.from_json(rule, path=self.path, mend=RUN_MEND) if rule else None

    @property
    def backends(self) -> Mapping[str, str]:
        """``llm NAME`` or ``retriever NAME`` → fingerprint."""
        backends: Mapping[str, str] = self.spec.settings.get("backends") or {}
        return backends

    @property
    def chain(self) -> Chain | None:
        """The chain, None for an agent, a suite's own flow or imported predictions. Raises BadFileError."""
        chain = self.spec.settings.get("chain")
        try:
            return chain_from_json(chain) if chain else None
        except RalleError as error:
            raise damage_error(self.path, RUN_MEND, str(error).rstrip(".")) from None

    @property
    def agent(self) -> AgentIdentity | None:
        """The agent, None for any other flow. Raises BadFileError."""
        agent = self.spec.settings.get("agent")
        return AgentIdentity.from_json(agent, path=self.path, mend=RUN_MEND) if agent else None

    @property
    def imported_agent(self) -> AgentIdentity | None:
        """Workflow and model of an agent's imported log, None for any other run. Raises BadFileError."""
        system = self.spec.settings.get("system")
        return AgentIdentity.from_json(system, path=self.path, mend=RUN_MEND) if system else None

    @property
    def memory_use(self) -> MemoryUse:
        """The memory of all models and indexes together.

        >>> spec = RunSpec("nq", "chain", {})
        >>> RunDescription("a", spec, "", memory={"a": Memory(3, 4), "b": None}).memory_use
        MemoryUse(bytes=None, unknown=('b',))
        >>> RunDescription("a", spec, "", memory={"a": Memory(3, 4)}).memory_use
        MemoryUse(bytes=7, unknown=())
        """
        held = self.memory or {}
        unknown = tuple(name for name, size in held.items() if size is None)
        known = sum(size.ram + size.vram for size in held.values() if size is not None)
        return MemoryUse(known if known and not unknown else None, unknown)

    def to_json(self) -> dict[str, JsonValue]:
        """The content of ``run.json``."""
        value: dict[str, JsonValue] = {
            "format": RUN_FORMAT,
            "name": self.name,
            "created": self.created,
            "fingerprint": self.fingerprint,
            "dataset_file": self.dataset_file,
            "spec": self.spec.to_json(),
            "metrics": list(self.metrics),
            "batch_size": self.batch_size,
            "prices": {name: prices and dict(prices) for name, prices in self.prices.items()},
            "asks_models": list(self.asks_models),
        }
        if self.memory is not None:
            value["memory"] = {
                name: None if size is None else {"ram": size.ram, "vram": size.vram}
                for name, size in self.memory.items()
            }
        if self.repeats.number > 1:
            value["repeats"] = self.repeats.number
        if self.repeats.thresholds:
            value["thresholds"] = dict(self.repeats.thresholds)
        return {**value, "versions": dict(self.versions), "platform": self.platform}

    @classmethod
    def from_json(cls, document: Any, *, path: Path) -> RunDescription:
        """The description in ``document``, the content of the file ``path``. Raises BadFileError."""
        stored = parse(document, _Run, path, RUN_MEND)
        spec, settings = stored.spec, document["spec"]["settings"]
        return cls(
            stored.name,
            RunSpec(spec.dataset, spec.workflow, settings, spec.limit, spec.seed),
            stored.fingerprint,
            stored.metrics,
            stored.batch_size,
            stored.created,
            stored.dataset_file or "",
            {name: read_prices(prices) for name, prices in (stored.prices or {}).items()},
            stored.asks_models or (),
            None if stored.memory is None else {n: _memory(s) for n, s in stored.memory.items()},
            stored.versions,
            stored.platform,
            RepeatOptions(stored.repeats, stored.thresholds),
            path,
        )


@dataclass(frozen=True, slots=True)
class RunState:
    """The content of ``state.json``: the progress of a run, for other processes.

    ``state``: ``running``, ``answered``, ``scoring``, ``done``, ``stopped``, ``failed`` or ``interrupted``. ``rate``:
    questions per second; ``means``: metric → (mean so far, number of questions); both are only known while it runs.
    ``peak_memory``: the most bytes that the process held, known at the end. ``updated``: seconds since 1970.
    """

    state: Annotated[str, Field(pattern="^[a-z]{1,20}$")]
    done: Count = 0
    total: Count = 0
    errors: Count = 0
    seconds: Number | None = None
    message: str = ""
    rate: Number | None = None
    means: Mapping[str, tuple[Number, Number]] | None = None
    peak_memory: Count | None = None
    updated: Number | None = None
    pid: Whole | None = None

    @property
    def is_active(self) -> bool:
        """True while answers or scores are still arriving."""
        return self.state in ("running", "scoring")

    def to_json(self) -> dict[str, JsonValue]:
        """The content of ``state.json``: ``rate`` and ``means`` only of a running run, ``peak_memory`` only of an ended one."""
        value: dict[str, JsonValue] = {
            "state": self.state,
            "updated": self.updated,
            "pid": self.pid,
            "done": self.done,
            "total": self.total,
            "errors": self.errors,
            "seconds": self.seconds,
        }
        if self.rate is not None:
            value["rate"] = self.rate
        value["message"] = self.message
        if self.means is not None:
            value["means"] = {name: list(mean) for name, mean in self.means.items()}
        if self.peak_memory is not None:
            value["peak_memory"] = self.peak_memory
        return value

    @classmethod
    def from_json(cls, document: Any, *, path: Path) -> RunState:
        """The state in ``document``, the content of the file ``path``. Raises BadFileError."""
        return parse(document, cls, path, STATE_MEND)


@dataclass(frozen=True, slots=True)
class _Size:
    ram: Count
    vram: Count


def _memory(size: _Size | None) -> Memory | None:
    return None if size is None else Memory(size.ram, size.vram)


@dataclass(frozen=True, slots=True)
class _Settings:
    """The checked part of the settings. Further entries belong to the flow."""

    chain: Json | None = None
    agent: AgentIdentity | None = None
    backends: Mapping[str, str] = field(default_factory=dict)
    dataset_sha256: str = ""


@dataclass(frozen=True, slots=True)
class _Spec:
    dataset: Text
    workflow: Text
    settings: _Settings
    limit: Whole | None
    seed: Whole


@dataclass(frozen=True, slots=True)
class _Run:
    """``run.json``. Early versions lack fields."""

    fingerprint: str
    spec: _Spec
    metrics: tuple[str, ...]
    batch_size: Count
    name: Text = ""
    created: Text = ""
    dataset_file: Text | None = None
    prices: Mapping[str, Mapping[str, Number] | None] | None = None
    asks_models: tuple[str, ...] | None = None
    memory: Mapping[str, _Size | None] | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    platform: Text = ""
    repeats: Count = 1
    thresholds: Mapping[str, Number] = field(default_factory=dict)
