"""A run folder as MLflow's params and metrics. Pure: files in, plain values out."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Iterable, Mapping
from typing import Any

from rallebench.tracking.costs import cost_metrics, price_params

MAX_VALUE = 6000
MAX_KEY = 250
"""MLflow's limits, in characters."""

SAMPLE, FAILURES = 50, 10
"""So many traces of a run at most: a seeded sample, and the first failures."""

HIDDEN = "(hidden)"
_SECRET_KEY = re.compile(
    r"(?:.*[._\- ])?(?:api[_\-]?key|passwd|password|secret|authorization|credentials?)"
    r"|(?:.*[._\- ])?(?:access|api|auth|bearer|hf|refresh)[_\-]?token|key|token",
    re.IGNORECASE,
)
_URL_LOGIN = re.compile(r"^([A-Za-z][\w+.\-]*://)[^/\s]*@")

_TOTALS = ("seconds", "prompt_tokens", "completion_tokens")


def params(run: Mapping[str, Any]) -> dict[str, str]:
    """``run.json`` as params: the chain flattened (``chain.1.kind`` …), fingerprints, prices, versions, seed.

    A value longer than MLflow allows is cut and says where it stands whole.
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
        "prices": price_params(run),
        "versions": run.get("versions", {}),
    }
    found: dict[str, str] = {}
    for key, value in flatten(without_secrets(tree)).items():
        name = _unique(safe_key(key), found)
        template = re.fullmatch(r"chain\.(\d+)\.template", key)
        found[name] = cut(
            clean(value), f"templates/action-{template[1]}.txt" if template else "run.json"
        )
    return found


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
    found: dict[str, Any] = {
        key: report.get(key) for key in ("n", "n_done", "n_errors", "steps", "steps_from_memory")
    }
    found |= {f"total_{key}": report.get(key) for key in _TOTALS}
    clusters = report.get("clusters") or {}
    found |= {"clusters": clusters.get("n"), "largest_cluster": clusters.get("largest")}
    found["sec per query"] = report.get("seconds_per_question")
    found["memory_bytes"] = (report.get("memory") or {}).get("bytes")
    found |= cost_metrics(report.get("cost") or {})
    for name, mean in {**report.get("metrics", {}), **report.get("suite", {})}.items():
        key = safe_key(name)
        found |= {
            key: mean.get("value"),
            f"{key}_low": mean.get("low"),
            f"{key}_high": mean.get("high"),
            f"{key}_n": mean.get("n"),
        }
    return {
        key: float(value)
        for key, value in found.items()
        if value is not None and math.isfinite(value)
    }


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


def cut(text: str, whole: str) -> str:
    """``text`` within MLflow's limit; a cut one ends by naming the artifact that holds it ``whole``."""
    if len(text) <= MAX_VALUE:
        return text
    note = f" … (cut: {len(text)} characters, whole in the artifact {whole})"
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
