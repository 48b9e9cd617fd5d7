"""The shapes of a run's files: ``run.json`` and ``state.json``."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from rallebench.core.own_files import Count, Stored

RUN_MEND = "start a run with another name"
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
