"""The shapes of a run's files: ``run.json``, ``report.json`` and ``state.json``."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from rallebench.core.own_files import Count, Stored

RUN_MEND = "start a run with another name"
REPORT_MEND = "resume the run to score it again"
LARGEST = 1e15
"""A larger score, time or count was never measured."""

Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Text = Annotated[str, Field(max_length=100_000)]


class StoredSize(Stored):
    """The memory of a model or an index, in bytes."""

    ram: Number
    vram: Number


class StoredEnvironment(Stored):
    name: str
    settings: dict[str, Any]


class StoredAgent(Stored):
    workflow: str = ""
    llm: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    environment: StoredEnvironment | None = None


class StoredSettings(Stored):
    chain: dict[str, Any] | None = None
    agent: StoredAgent | None = None
    backends: dict[str, str] = Field(default_factory=dict)


class StoredSpec(Stored):
    dataset: Text
    workflow: Text
    settings: StoredSettings
    limit: int | None
    seed: int


class StoredRun(Stored):
    """``run.json``."""

    fingerprint: str
    spec: StoredSpec
    metrics: list[str]
    batch_size: Count
    name: Text = ""
    created: Text = ""
    dataset_file: Text | None = ""
    memory: dict[str, StoredSize | None] | None = None
    prices: dict[str, dict[str, Number] | None] | None = None
    versions: dict[str, Any] = Field(default_factory=dict)


class StoredMean(Stored):
    value: Number | None
    low: Number | None = None
    high: Number | None = None
    n: Count


class StoredJudge(Stored):
    run: str = ""
    columns: list[str] = Field(default_factory=list)


class StoredReport(Stored):
    """``report.json`` of a run. Its seal shows a change of anything; one of an earlier version has none."""

    metrics: dict[str, StoredMean]
    suite: dict[str, StoredMean] = Field(default_factory=dict)
    n: Count = 0
    n_done: Count = 0
    n_errors: Count = 0
    complete: bool = False
    seconds: Number | None = None
    seconds_per_question: Number | None = None
    errors: dict[str, Count] = Field(default_factory=dict)
    cost: dict[str, Any] | None = None
    judges: dict[str, StoredJudge] | None = None
    definitions: dict[str, str] | None = None
    ranges: dict[str, list[Number | None]] | None = None


class StoredState(Stored):
    """``state.json``: a counted one says more than what the files of the run say, and a damaged one is not missed."""

    state: str = Field(pattern="^[a-z]{1,20}$")
    done: Count = 0
    total: Count = 0
    errors: Count = 0
    seconds: Number | None = None
    rate: Number | None = None
    message: str | None = ""
    means: dict[str, Annotated[list[Number], Field(min_length=2, max_length=2)]] | None = None


class StoredStepCost(Stored):
    kind: str
    seconds: Annotated[float, Field(ge=0, le=LARGEST)]
    batch: Annotated[int, Field(ge=1, lt=2**31)] = 1


class StoredCosts(Stored):
    """A line of ``costs.jsonl``."""

    qid: str
    steps: list[StoredStepCost]
