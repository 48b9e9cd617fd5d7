"""A run folder as MLflow's params, metrics and tags. Pure, but for ``write``."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rallebench.core.files import write_text
from rallebench.core.numbers import UNKNOWN, price

MAX_VALUE = 6000
MAX_KEY = 250
"""MLflow's limits, in characters."""

SAMPLE, FAILURES = 50, 10
"""The most traces of a run: a seeded sample, and the first failures."""

HIDDEN = "(hidden)"
_SECRET_KEY = re.compile(
    r"(?:.*[._\- ])?(?:api[_\-]?key|passwd|password|secret|authorization|credentials?)"
    r"|(?:.*[._\- ])?(?:access|api|auth|bearer|hf|refresh)[_\-]?token|key|token",
    re.IGNORECASE,
)
_URL_LOGIN = re.compile(r"^([A-Za-z][\w+.\-]*://)[^/\s]*@")

_COUNTS = ("n", "n_done", "n_errors", "steps", "steps_from_memory")
_TOTALS = ("seconds", "prompt_tokens", "completion_tokens")
_COST_PARTS = (
    "seconds",
    "retrieval_seconds",
    "generation_seconds",
    "failed_seconds",
    "model_calls",
    "retrievals",
    "prompt_tokens",
    "completion_tokens",
    "tokens_per_second",
    "usd",
)


def params(run: Mapping[str, Any]) -> dict[str, str]:
    """``run.json`` as params: the chain flattened (``chain.1.kind`` …), fingerprints, prices, versions, seed.

    A value longer than MLflow allows is cut and names the artifact with the whole text.
    """
    spec = run.get("spec", {})
    settings = dict(spec.get("settings", {}))
    chain = dict(settings.pop("chain", None) or {})
    tree = {
        "run": run.get("name"),
        "fingerprint": run.get("fingerprint"),
        "dataset": spec.get("dataset"),
        "workflow": spec.get("workflow"),
        "limit": spec.get("limit") or "all",
        "seed": spec.get("seed"),
        "batch_size": run.get("batch_size"),
        "metrics": ", ".join(run.get("metrics", ())),
        "platform": run.get("platform"),
        "chain": {
            **{key: value for key, value in chain.items() if key not in ("format", "actions")},
            **{str(number): action for number, action in enumerate(chain.get("actions", ()), 1)},
        },
        **settings,
        "prices": {name: price or UNKNOWN for name, price in (run.get("prices") or {}).items()},
        "versions": run.get("versions", {}),
    }
    values: dict[str, str] = {}
    for key, value in flatten(without_secrets(tree)).items():
        template = re.fullmatch(r"chain\.(\d+)\.template", key)
        artifact = f"templates/action-{template[1]}.txt" if template else "run.json"
        values[_unique(safe_key(key), values)] = cut(clean(value), artifact)
    return values


def flatten(value: Any, prefix: str = "") -> dict[str, str]:
    """Nested values with dotted keys; lists of objects are numbered from 1, None is left out.

    >>> flatten({"a": {"b": 1, "c": None}, "d": [{"e": True}], "f": ["x"]})
    {'a.b': '1', 'd.1.e': 'true', 'f': '["x"]'}
    """
    if isinstance(value, Mapping):
        items: Iterable[tuple[Any, Any]] = value.items()
    elif isinstance(value, (list, tuple)) and any(isinstance(item, Mapping) for item in value):
        items = enumerate(value, 1)
    elif value is None:
        return {}
    else:
        return {prefix: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}
    flat: dict[str, str] = {}
    for key, item in items:
        flat |= flatten(item, f"{prefix}.{key}" if prefix else str(key))
    return flat


def without_secrets(value: Any) -> Any:
    """The same value with the values of secret-looking keys hidden, and logins cut out of URLs.

    >>> without_secrets({"api_key": "sk-1", "max_tokens": 5, "base_url": "https://me:pw@host/v1"})
    {'api_key': '(hidden)', 'max_tokens': 5, 'base_url': 'https://host/v1'}
    """
    if isinstance(value, Mapping):
        return {
            key: HIDDEN
            if isinstance(item, str) and item and _SECRET_KEY.fullmatch(str(key))
            else without_secrets(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [without_secrets(item) for item in value]
    return _URL_LOGIN.sub(r"\1", value) if isinstance(value, str) else value


def metrics(report: Mapping[str, Any]) -> dict[str, float]:
    """``report.json`` as metrics: each value with ``_low``, ``_high`` and ``_n``, RaLLe's names, counts, costs.

    MLflow allows no ``@``, so ``recall@5`` is ``recall_at_5`` (RaLLe's own name for it).
    """
    clusters = report.get("clusters") or {}
    values: dict[str, Any] = {
        **{key: report.get(key) for key in _COUNTS},
        **{f"total_{key}": report.get(key) for key in _TOTALS},
        "clusters": clusters.get("n"),
        "largest_cluster": clusters.get("largest"),
        "sec per query": report.get("seconds_per_question"),
        "memory_bytes": (report.get("memory") or {}).get("bytes"),
        **cost_metrics(report.get("cost") or {}),
    }
    for name, mean in {**report.get("metrics", {}), **report.get("suite", {})}.items():
        key = safe_key(name)
        values[key] = mean.get("value")
        values |= {f"{key}_{part}": mean.get(part) for part in ("low", "high", "n")}
    return {
        key: float(value)
        for key, value in values.items()
        if value is not None and math.isfinite(value)
    }


def cost_metrics(cost: Mapping[str, Any]) -> dict[str, Any]:
    """``cost_total_…``, ``cost_failed_…``, ``cost_asked_…`` and ``cost_question_…_mean`` (``_median``, ``_p95``, ``_n``).

    Unknown values are None. If only some dollars are known, their sum is ``…_usd_known``.
    """
    values: dict[str, Any] = {}
    for group in ("total", "failed", "asked"):
        sums = cost.get(group, {})
        values |= {f"cost_{group}_{part}": sums.get(part) for part in _COST_PARTS}
        values[f"cost_{group}_usd_known"] = sums.get("usd_known") or None
    for name, spread in cost.get("per_question", {}).items():
        values |= {f"cost_question_{name}_{key}": value for key, value in spread.items()}
    return values


def cost_tags(cost: Mapping[str, Any]) -> dict[str, str]:
    """The dollars of a run in words, because a missing metric could be read as no cost."""
    return {"rallebench.cost.usd": price(cost["total"])} if cost.get("total") else {}


def safe_key(name: str) -> str:
    """A name that MLflow accepts on every system.

    >>> safe_key("recall@5"), safe_key("llm transformers:/models/x")
    ('recall_at_5', 'llm transformers__models_x')
    """
    return re.sub(r"[^\w.\- ]", "_", name.replace("@", "_at_"))[:MAX_KEY]


def _unique(name: str, taken: Mapping[str, Any]) -> str:
    number, free = 2, name
    while free in taken:
        free, number = f"{name[: MAX_KEY - 4]}_{number}", number + 1
    return free


def cut(text: str, artifact: str) -> str:
    """``text`` within MLflow's limit; a cut one ends with the name of the artifact that holds all of it."""
    if len(text) <= MAX_VALUE:
        return text
    note = f" … (cut: {len(text)} characters, whole in the artifact {artifact})"
    return text[: MAX_VALUE - len(note)] + note


def clean(text: str) -> str:
    """Text that any database can store: no lone surrogates, no NUL."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def traced(lines: Mapping[str, Mapping[str, Any]], seed: int) -> list[str]:
    """Ids of the questions to trace: a seeded sample of at most 50, and the first 10 failures."""
    qids = list(lines)
    sample = set(random.Random(seed).sample(qids, min(SAMPLE, len(qids))))
    failures = set([qid for qid in qids if lines[qid].get("error")][:FAILURES])
    return [qid for qid in qids if qid in sample or qid in failures]


def write(path: Path, value: Any, indent: int | None = 2) -> None:
    """Write JSON without lone surrogates, which models do generate."""
    write_text(path, clean(json.dumps(value, ensure_ascii=False, indent=indent)) + "\n")
