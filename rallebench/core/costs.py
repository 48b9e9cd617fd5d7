"""The cost of questions and runs: seconds, calls, tokens and US dollars. An unknown quantity is None, never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar

from rallebench.core.json_values import JsonValue, as_json
from rallebench.core.strict_numbers import Batch, Count, Number, Seconds

UNCACHED_KEY = "asked"


def _key(name: str) -> str:
    """The JSON key of a field."""
    return UNCACHED_KEY if name == "uncached" else name


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution of ``n`` values; ``p95``: their 95th percentile."""

    mean: Number | None = None
    median: Number | None = None
    p95: Number | None = None
    n: Count = 0


@dataclass(frozen=True, slots=True)
class CostTotal:
    """The cost of steps together, each at the cost of its original call.

    ``seconds`` include ``retrieval_seconds``, ``generation_seconds`` and ``failed_seconds``, the time of requests that ended in
    an error. Tokens are None if a model was called and none were counted; ``calls_not_counted``: model → calls without a token
    count. ``usd`` is None unless the price of every call is known; ``usd_known`` is the known part, ``usd_unknown_for``:
    model → reason.
    """

    questions: Count | None = None
    seconds: Number | None = None
    retrieval_seconds: Number | None = None
    generation_seconds: Number | None = None
    failed_seconds: Number | None = None
    model_calls: Count | None = None
    retrievals: Count | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    calls_not_counted: Mapping[str, Count] = field(default_factory=dict)
    tokens_per_second: Number | None = None
    usd: Number | None = None
    usd_known: Number | None = None
    usd_unknown_for: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, JsonValue]:
        """Every field; ``questions`` only for a run."""
        value = {f.name: as_json(getattr(self, f.name)) for f in fields(self)}
        return (
            value
            if self.questions is not None
            else {k: v for k, v in value.items() if k != "questions"}
        )


@dataclass(frozen=True, slots=True)
class ActionCost:
    """The cost of one action of a flow over its questions. Only calls of a language model have tokens and dollars."""

    action: Count
    kind: str
    target: str
    cached: Count
    seconds: Spread
    prompt_tokens: Spread | None = None
    completion_tokens: Spread | None = None
    first_token_seconds: Spread | None = None
    tokens_per_second: Spread | None = None
    usd: Spread | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """The measured fields."""
        value = {f.name: as_json(getattr(self, f.name)) for f in fields(self)}
        return {name: item for name, item in value.items() if item is not None}


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a run.

    ``total``: the last attempt of every question, each step at the cost of its original call; ``answered`` and ``failed``:
    its two parts. ``uncached``: the requests that this run really made, earlier attempts included, cached replies
    excluded. ``per_question``: quantity → its distribution over the answered questions. ``prices``: model → US dollars per
    million tokens. ``not_included``: retrievers that ask language models themselves. ``recorded``: False for imported
    predictions.
    """

    __pydantic_config__: ClassVar[dict[str, object]] = {"alias_generator": _key}

    total: CostTotal
    answered: CostTotal
    failed: CostTotal
    uncached: CostTotal
    per_question: Mapping[str, Spread] = field(default_factory=dict)
    per_action: tuple[ActionCost, ...] = ()
    prices: Mapping[str, Mapping[str, Number]] = field(default_factory=dict)
    not_included: tuple[str, ...] = ()
    recorded: bool = True

    @property
    def is_replayed(self) -> bool:
        """True if the cache gave some answers; their times were measured by another run."""
        calls = (self.uncached.model_calls, self.total.model_calls)
        uncached, total = calls if calls[1] else (self.uncached.retrievals, self.total.retrievals)
        return (uncached or 0) < (total or 0)

    def to_json(self) -> dict[str, JsonValue]:
        """The section ``cost`` of ``report.json``."""
        value = {_key(f.name): as_json(getattr(self, f.name)) for f in fields(self)[:-1]}
        return value if self.recorded else {"recorded": False, **value}


@dataclass(frozen=True, slots=True)
class StepCost:
    """The cost of one step: ``target`` is its index, model or tool; ``batch`` the number of requests answered together."""

    kind: str
    target: str = ""
    seconds: Seconds = 0.0
    cached: bool = False
    batch: Batch = 1
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    first_token_seconds: Number | None = None
    tokens_per_second: Number | None = None
    usd: Number | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """The step as JSON: ``batch`` only if larger than one; tokens and dollars only for a call of a language model."""
        names = ["kind", "target", "seconds", "cached"] + ["batch"] * (self.batch > 1)
        if self.kind == "generate":
            names += [f.name for f in fields(self) if f.default is None]
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class QuestionCost:
    """A line of ``costs.jsonl``. ``total``: cached replies at their original cost; ``uncached``: without them."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"alias_generator": _key}

    qid: str
    failed: bool
    total: CostTotal
    uncached: CostTotal
    steps: tuple[StepCost, ...]

    def to_json(self) -> dict[str, JsonValue]:
        """The line as JSON."""
        return {_key(f.name): as_json(getattr(self, f.name)) for f in fields(self)}
