"""Convert a run folder into MLflow's params, metrics, tags, dataset and table of questions. Pure, except ``write``."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rallebench.chains.saved import action_to_json
from rallebench.core.declining import DECLINING, UNANSWERABLE
from rallebench.core.files import write_text
from rallebench.core.json_values import JsonValue
from rallebench.core.numbers import UNKNOWN
from rallebench.core.types import Chain, Episode, Json, Score
from rallebench.engine.run_files import RunDescription

MAX_VALUE = 6000
MAX_KEY = 250
"""MLflow's limits, in characters."""

SAMPLE, FAILURES = 50, 10
"""Traces of a run that always have every step: a random sample with a fixed seed, and the first failures."""

HIDDEN = "(hidden)"
_SECRET_KEY = re.compile(
    r"(?:.*[._\- ])?(?:api[_\-]?key|passwd|password|secret|authorization|credentials?)"
    r"|(?:.*[._\- ])?(?:access|api|auth|bearer|hf|refresh)[_\-]?token|key|token",
    re.IGNORECASE,
)
_URL_LOGIN = re.compile(r"^([A-Za-z][\w+.\-]*://)[^/\s]*@")


def params(run: RunDescription) -> dict[str, str]:
    """Return ``run.json`` as params: the flattened chain (``chain.1.kind`` …), fingerprints, prices, versions, seed.

    A value longer than MLflow's limit is shortened and names the artifact with the full text.
    """
    spec, chain = run.spec, run.chain
    tree = {
        "run": run.name,
        "fingerprint": run.fingerprint,
        "dataset": spec.dataset,
        "workflow": spec.workflow,
        "limit": spec.limit or "all",
        "seed": spec.seed,
        "batch_size": run.batch_size,
        "metrics": ", ".join(run.metrics),
        "platform": run.platform or None,
        "chain": {} if chain is None else _chain_params(chain),
        **{name: value for name, value in spec.settings.items() if name != "chain"},
        "prices": {name: prices or UNKNOWN for name, prices in run.prices.items()},
        "versions": run.versions,
    }
    values: dict[str, str] = {}
    for key, value in flatten(without_secrets(tree)).items():
        template = re.fullmatch(r"chain\.(\d+)\.template", key)
        artifact = f"templates/action-{template[1]}.txt" if template else "run.json"
        values[_unique(safe_key(key), values)] = cut(clean(value), artifact)
    return values


def _chain_params(chain: Chain) -> dict[str, JsonValue]:
    """Return a chain with its actions numbered from 1."""
    actions = enumerate(map(action_to_json, chain.actions), 1)
    about = {"about": chain.about} if chain.about else {}
    return {"name": chain.name, **about, **{str(number): action for number, action in actions}}


def flatten(value: JsonValue, prefix: str = "") -> dict[str, str]:
    """Flatten nested values to dotted keys. Lists of objects are numbered from 1; None is left out.

    >>> flatten({"a": {"b": 1, "c": None}, "d": [{"e": True}], "f": ["x"]})
    {'a.b': '1', 'd.1.e': 'true', 'f': '["x"]'}
    """
    if isinstance(value, Mapping):
        items: Iterable[tuple[object, JsonValue]] = value.items()
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


def without_secrets(value: JsonValue) -> JsonValue:
    """Hide the values of keys that look secret, and remove credentials from URLs.

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


def safe_key(name: str) -> str:
    """Replace the characters of a name that MLflow does not accept on every system.

    >>> safe_key("recall@5"), safe_key("llm transformers:/models/x")
    ('recall_at_5', 'llm transformers__models_x')
    """
    return re.sub(r"[^\w.\- ]", "_", name.replace("@", "_at_"))[:MAX_KEY]


def _unique(name: str, taken: Container[str]) -> str:
    number, free = 2, name
    while free in taken:
        free, number = f"{name[: MAX_KEY - 4]}_{number}", number + 1
    return free


def cut(text: str, artifact: str) -> str:
    """Shorten ``text`` to MLflow's limit. A shortened text ends with the name of the artifact that has all of it."""
    if len(text) <= MAX_VALUE:
        return text
    note = f" … (cut: {len(text)} characters, whole in the artifact {artifact})"
    return text[: MAX_VALUE - len(note)] + note


def clean(text: str) -> str:
    """Remove lone surrogates and NUL, which databases may reject."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def choose_traced(episodes: Mapping[str, Episode], seed: int, most: int = SAMPLE) -> list[str]:
    """Return the ids of the questions to trace: all, or a random sample of ``most`` with a fixed seed and the first 10
    failures.
    """
    qids = list(episodes)
    sample = set(random.Random(seed).sample(qids, min(most, len(qids))))
    failures = set([qid for qid in qids if episodes[qid].error][:FAILURES])
    return [qid for qid in qids if qid in sample or qid in failures]


def write(path: Path, value: JsonValue, indent: int | None = 2) -> None:
    """Write JSON without the lone surrogates that models may generate."""
    write_text(path, clean(json.dumps(value, ensure_ascii=False, indent=indent)) + "\n")


MAX_ROWS = 5_000
"""Longer tables are cut, because a browser loads them whole; other artifacts include every question."""

MAX_CELL = 1_000
"""Maximum characters of a question, an answer or an error in a cell."""

MAX_LIST = 20
"""Maximum gold answers, gold pages and retrieved pages in a cell."""

FIXED = ("id", "question", "gold answers", "answer", "error", "gold pages", "pages")


@dataclass(frozen=True, slots=True)
class MlflowTable:
    """A table shown on MLflow's page."""

    columns: tuple[str, ...]
    rows: tuple[tuple[JsonValue, ...], ...]

    def to_json(self) -> dict[str, JsonValue]:
        """Return the table in the format of MLflow's ``log_table``."""
        return {"columns": self.columns, "data": self.rows}


Scores = Mapping[str, Mapping[str, Score]]
"""Question id → metric → score."""


def by_question(scores: Iterable[Score]) -> tuple[tuple[str, ...], Scores]:
    """Return the metrics in order, and the scores of each question."""
    names: dict[str, None] = {}
    of: dict[str, dict[str, Score]] = {}
    for score in scores:
        names[score.metric] = None
        of.setdefault(score.qid, {})[score.metric] = score
    return tuple(names), of


def per_question(
    records: Iterable[Json],
    episodes: Mapping[str, Episode],
    metrics: Sequence[str],
    scores: Scores,
) -> MlflowTable:
    """Return the table of questions: the columns FIXED, then the metrics; None means not scored.

    One row for each answered or failed question, in the order of ``records``, up to MAX_ROWS.
    """
    rows: list[tuple[JsonValue, ...]] = []
    for record in records:
        qid = str(record.get("id")).strip()
        episode = episodes.get(qid)
        if episode is not None and len(rows) < MAX_ROWS:
            of = scores.get(qid, {})
            values = (of[name].value if name in of else None for name in metrics)
            rows.append((*_fixed_cells(record, episode), *values))
    return MlflowTable((*FIXED, *metrics), tuple(rows))


def cut_note(questions: int) -> str:
    """Return a sentence if a table of this many questions is cut, otherwise ''.

    >>> cut_note(5_001)
    'The table shows the first 5,000 of 5,001 questions; output.jsonl and report.json hold them all.'
    """
    if questions <= MAX_ROWS:
        return ""
    return f"The table shows the first {MAX_ROWS:,} of {questions:,} questions; output.jsonl and report.json hold them all."


def _fixed_cells(record: Json, episode: Episode) -> list[JsonValue]:
    return [
        episode.qid,
        cell(question_text(record)),
        cells(gold_answers(record)),
        cell(episode.answer),
        cell(episode.error),
        cells(gold_pages(record)),
        cells(retrieved_pages(episode)),
    ]


def cell(text: str) -> str:
    """Shorten a text to MAX_CELL characters; a shortened one says how long it was."""
    return text if len(text) <= MAX_CELL else f"{text[:MAX_CELL]} … (cut: {len(text):,} characters)"


def cells(values: Sequence[str]) -> list[str]:
    """Return at most MAX_LIST shortened texts, and a note on the others."""
    more = [f"… ({len(values) - MAX_LIST} more)"] if len(values) > MAX_LIST else []
    return [*map(cell, values[:MAX_LIST]), *more]


def question_text(record: Json) -> str:
    return str(record.get("input", ""))


def gold_answers(record: Json) -> list[str]:
    """Return the answers of a KILT record, in order, each once, or the words for an unanswerable question."""
    if record.get(UNANSWERABLE) is True:
        return [DECLINING]
    return list(dict.fromkeys(str(o["answer"]) for o in _outputs(record) if o.get("answer")))


def gold_pages(record: Json) -> list[str]:
    """Return the page ids in a KILT record's provenance, in order, each once."""
    evidence = [
        p for o in _outputs(record) for p in o.get("provenance") or () if isinstance(p, Mapping)
    ]
    return list(dict.fromkeys(str(p["wikipedia_id"]) for p in evidence if p.get("wikipedia_id")))


def retrieved_pages(episode: Episode) -> list[str]:
    """Return the pages of an episode's hits, in order, each once. A passage without a page counts by its own id."""
    passages = (hit.passage for hit in episode.hits)
    return list(dict.fromkeys(passage.page_id or passage.doc_id for passage in passages))


def _outputs(record: Json) -> list[Json]:
    return [output for output in record.get("output") or () if isinstance(output, Mapping)]


def dataset_fields(run: RunDescription) -> dict[str, str]:
    """Return a run's dataset as fields of MLflow's Dataset, with the checksum of the whole file.

    ``source``: the file, or the dataset's name in the workspace. {} if ``run.json`` has no checksum.
    """
    checksum = run.dataset_sha256
    if not checksum:
        return {}
    name = run.dataset or "questions"
    source = {"uri": run.dataset_file or name, "sha256": checksum}
    return {
        "name": name[:500],
        "digest": checksum[:36],
        "source_type": "local",
        "source": json.dumps(source),
    }
