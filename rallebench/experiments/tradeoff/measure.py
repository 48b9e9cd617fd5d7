"""Plan the settings of each index, ask a probe per index, make Points of what it found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.files import write_text
from rallebench.core.registry import unknown
from rallebench.core.settings import checked
from rallebench.core.types import Episode, Example, Hit, Outcome, Passage, Reply, Retrieve, Step
from rallebench.corpora.store import PassageStore
from rallebench.experiments.tradeoff import Point
from rallebench.metrics import METRICS
from rallebench.retrievers import INDEX_KINDS, search_form
from rallebench.vector_indexes import VECTOR_INDEXES
from rallebench.workspace.entries import Manifest
from rallebench.workspace.indexes.checks import check_index
from rallebench.workspace.indexes.vectors import VECTORS, vectors_of
from rallebench.workspace.opening import build_starter
from rallebench.workspace.paths import STARTER_INDEXES, Workspace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

QUALITY = {"Rprec": 1, "success_rate@1": 1, "success_rate@5": 5, "success_rate@10": 10}
"""Metrics of the pages found, and the k from which they can be told."""

BATCH, ROUNDS, TEXTS = 64, 3, 200
ENCODE_SAMPLE = 20
PIECE = 16_384
"""Vectors that are compared at once."""
TIES, TIE = 16, 1e-6
"""So many passages may tie with the k-th nearest; so little tells no two inner products in float32 apart."""
EXACT_KINDS = frozenset({"flat", "numpy-flat"})
PATIENCE = 1800.0
"""Seconds after which a probe is given up."""


def settings_of(
    kind: str, swept: Mapping[str, Sequence[Any]] | None = None
) -> list[dict[str, Any]]:
    """The knob settings that are tried for a kind: one knob after the other swept, its default among them.

    ``swept``: knob → values in place of the kind's own; knobs that the kind lacks are left out.
    """
    known = search_form(kind)
    if swept:
        tried = [
            {name: known[name].reads(v)}
            for name, values in swept.items()
            if name in known
            for v in values
        ]
        return tried or [{}]
    tried = []
    for name, setting in known.items():
        values = sorted({*setting.sweep, setting.default}) if setting.sweep else []
        # The first knob's default stands for those of all.
        tried += [{name: value} for value in values if not tried or value != setting.default]
    return tried or [{}]


def read_swept(texts: Sequence[str], flag: str = "") -> dict[str, list[str]]:
    """``key=a,b`` texts → key → values; UsageError for what does not read so. ``flag`` stands before it in the sentence.

    >>> read_swept(["ef_search=16, 64"])
    {'ef_search': ['16', '64']}
    """
    found = {}
    for text in texts:
        name, equals, values = text.partition("=")
        parts = [part.strip() for part in values.split(",") if part.strip()]
        if not equals or not name.strip() or not parts:
            raise UsageError(
                f"{flag}{text!r} should read key=value,value, as in ef_search=16,64,256."
            )
        found[name.strip()] = parts
    return found


def _check_swept(kinds: Iterable[str], swept: Mapping[str, Sequence[Any]]) -> None:
    """Raise UsageError for a knob that no index has, and for a value that one with it cannot take."""
    known = {kind: search_form(kind) for kind in kinds if kind in INDEX_KINDS}
    every = sorted({name for knobs in known.values() for name in knobs})
    for name, values in swept.items():
        if name not in every:
            raise UsageError(unknown("setting of these indexes' search", name, every))
        for kind, knobs in known.items():
            for value in values if name in knobs else ():
                checked(f"index kind {kind!r}", knobs, {name: value}, noun="setting of its search")


def measure(
    workspace: Workspace,
    indexes: Sequence[str],
    examples: Sequence[Example],
    encoders: Callable[[str], Any],
    *,
    k: int = 10,
    limit: int = TEXTS,
    swept: Mapping[str, Sequence[Any]] | None = None,
) -> Generator[str | Point, None, None]:
    """Yield sentences saying what goes on, and Points as they are measured.

    An index that fails is a Point with its error; the others go on. Raises UsageError for a wrong request.
    """
    known = workspace.retrievers()
    if not indexes:
        raise UsageError("No index is chosen; name at least one.")
    for name in indexes:
        if name not in known:
            workspace.retriever(name)  # a combination that is written out, or UsageError
    asked = [example for example in examples if example.question.text.strip()][:limit]
    if not asked:
        raise UsageError("The question set holds no question, so nothing can be measured.")
    if not 1 <= k <= 1000:
        raise UsageError(f"k is {k}; it must be from 1 to 1000.")
    for name in set(indexes) & set(STARTER_INDEXES) - set(workspace.manifests()):
        yield from build_starter(workspace.indexes, name, encoders)
    manifests = workspace.manifests()
    _check_swept((manifests[name].kind for name in indexes if name in manifests), swept or {})
    texts = [example.question.text for example in asked]
    with tempfile.TemporaryDirectory(prefix="rallebench-tradeoff-") as folder:
        encoded = _Encoded(Path(folder), texts, encoders)
        exact = _Exact(workspace, manifests, encoded, k)
        for name in indexes:
            manifest = manifests.get(name)
            try:
                yield from _points(workspace, name, manifest, asked, encoded, exact, k, swept)
            except RalleError as error:
                yield Point(
                    name, manifest.kind if manifest else "", k=k, n=len(asked), error=str(error)
                )


def _points(
    workspace: Workspace,
    name: str,
    manifest: Manifest | None,
    asked: Sequence[Example],
    encoded: _Encoded,
    exact: _Exact,
    k: int,
    swept: Mapping[str, Sequence[Any]] | None,
) -> Generator[str | Point, None, None]:
    dense = manifest is not None and manifest.kind in VECTOR_INDEXES
    kind = manifest.kind if manifest else "combined"
    nearest: list[set[str]] | None = None
    if dense and manifest is not None:
        yield f"{name}: encoding {len(asked)} questions with {manifest.encoder_name}"
        encoded.of(manifest.encoder_name)
        yield f"{name}: exact neighbours"
        nearest = exact.of(manifest)
    settings = settings_of(kind, swept) if manifest else [{}]
    job = {
        "workspace": str(workspace.path),
        "index": name,
        "k": k,
        "batch": BATCH,
        "rounds": ROUNDS,
        "settings": settings,
        "texts": encoded.texts,
        "vectors": str(encoded.of(manifest.encoder_name)[0]) if dense and manifest else None,
    }
    for number, line in enumerate(_probe(job, encoded.folder), 1):
        yield f"{name}: setting {number} of {len(settings)} measured"
        yield Point(
            index=name,
            kind=kind,
            knobs=line["knobs"],
            k=k,
            n=len(asked),
            recall=_recall(line["docs"], nearest, k) if nearest is not None else None,
            **_quality(line["pages"], asked, k),
            single_ms=line["single_ms"],
            batch_ms=line["batch_ms"],
            encode_ms=encoded.of(manifest.encoder_name)[1] if dense and manifest else None,
            ram=line["ram"],
            disk=manifest.bytes if manifest else 0,
            build_seconds=manifest.seconds if manifest else 0.0,
            passages=manifest.passages if manifest else 0,
        )


def _probe(job: Mapping[str, Any], folder: Path) -> Generator[dict[str, Any], None, None]:
    """Run a job in a process of its own, yielding its lines; it is ended when nobody listens any more."""
    path = folder / "job.json"
    write_text(path, json.dumps(job))
    words = [sys.executable, "-m", "rallebench.experiments.tradeoff.probe", str(path)]
    # One thread: milliseconds then say what a query costs, not how many cores were free.
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
        "PYTHONPATH": _python_path(),
    }
    with open(folder / "stderr.txt", "w+", encoding="utf-8") as errors:
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        )
        assert process.stdout is not None
        deadline = time.monotonic() + PATIENCE
        try:
            for text in process.stdout:
                if not text.startswith("{"):
                    continue  # diskannpy prints from C++
                line: dict[str, Any] = json.loads(text)
                if "error" in line:
                    raise UsageError(line["error"])
                yield line
                if time.monotonic() > deadline:
                    raise UsageError(
                        f"{job['index']} took more than {PATIENCE:.0f} s; measure fewer questions."
                    )
        finally:
            process.kill()
            process.stdout.close()
            code = process.wait()
        if code not in (0, -9):
            errors.seek(0)
            last = (errors.read().strip().splitlines() or ["no message"])[-1]
            raise UsageError(
                f"{job['index']} could not be searched in a process of its own: {last[:300]}"
            )


def _python_path() -> str:
    root = str(Path(__file__).resolve().parents[3])
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))


class _Encoded:
    """The questions as vectors, once per encoder, in files that the probes read."""

    def __init__(self, folder: Path, texts: Sequence[str], encoders: Callable[[str], Any]) -> None:
        self.folder, self.texts = folder, list(texts)
        self._encoders, self._made = encoders, dict[str, tuple[Path, float]]()

    def of(self, name: str) -> tuple[Path, float]:
        """(file of float32 (n, dim), milliseconds that one query takes)."""
        import numpy as np

        if name not in self._made:
            encoder = self._encoders(name)
            path = self.folder / f"queries-{len(self._made)}.npy"
            np.save(path, encoder.encode(self.texts, role="query"))
            taken = []
            for text in self.texts[:ENCODE_SAMPLE]:
                started = time.perf_counter()
                encoder.encode([text], role="query")
                taken.append((time.perf_counter() - started) * 1000)
            self._made[name] = path, sorted(taken)[len(taken) // 2]
        return self._made[name]


class _Exact:
    """The exact nearest passages of every question, once per corpus and encoder."""

    def __init__(
        self, workspace: Workspace, manifests: Mapping[str, Manifest], encoded: _Encoded, k: int
    ) -> None:
        self._workspace, self._manifests, self._encoded, self._k = workspace, manifests, encoded, k
        self._known: dict[tuple[str, str], list[set[str]] | None] = {}

    def of(self, manifest: Manifest) -> list[set[str]] | None:
        """Per question the ids of the k nearest (more where some tie); None where no exact vectors are kept."""
        key = (manifest.corpus_sha256, manifest.encoder)
        if key not in self._known:
            self._known[key] = self._find(key)
        return self._known[key]

    def _find(self, key: tuple[str, str]) -> list[set[str]] | None:
        for name, manifest in self._manifests.items():
            exact = manifest.kind in EXACT_KINDS
            if exact and (manifest.corpus_sha256, manifest.encoder) == key:
                with suppress(RalleError):  # a damaged one: it says so itself, and another may do
                    return self._nearest(self._workspace.indexes / name, manifest)
        return self._from_kept(key)

    def _from_kept(self, key: tuple[str, str]) -> list[set[str]] | None:
        """The same from the vectors that were kept when an index over them was built."""
        import numpy as np

        alike = {n: m for n, m in self._manifests.items() if (m.corpus_sha256, m.encoder) == key}
        name, manifest = next(iter(alike.items()))
        cached = vectors_of(self._workspace.vectors, manifest.corpus_sha256, manifest.encoder)
        beside = [self._workspace.indexes / other / VECTORS for other in alike]
        path = next((path for path in [*cached, *beside] if path.is_file()), None)
        if path is None:
            return None
        queries: NDArray[np.float32] = np.load(self._encoded.of(manifest.encoder_name)[0])
        with closing(PassageStore(self._workspace.indexes / name)) as store:
            scores, rows = nearest_rows(
                np.load(path, mmap_mode="r"), queries, min(self._k + TIES, len(store))
            )
            return self._tied(store, scores, rows)

    def _tied(self, store: PassageStore, scores: Any, rows: Any) -> list[set[str]]:
        """The ids of the k nearest, and of those that tie with the last of them: each is as right as another."""
        last = scores[:, min(self._k, scores.shape[1]) - 1]
        return [
            {store[int(row)].doc_id for row, score in zip(found, values) if score >= least - TIE}
            for found, values, least in zip(rows, scores, last)
        ]

    def _nearest(self, folder: Path, manifest: Manifest) -> list[set[str]]:
        import numpy as np

        check_index(folder, manifest)
        queries: NDArray[np.float32] = np.load(self._encoded.of(manifest.encoder_name)[0])
        with (
            closing(PassageStore(folder)) as store,
            closing(VECTOR_INDEXES[manifest.kind]().load(folder)) as index,
        ):
            scores, rows = index.search(queries, min(self._k + TIES, len(store)))
            return self._tied(store, scores, rows)


def nearest_rows(
    vectors: NDArray[np.float32], queries: NDArray[np.float32], k: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The largest inner products with (n, dim) vectors and their rows, both (q, k), best first; reads them in pieces."""
    import numpy as np

    best = np.full((len(queries), 0), 0.0, dtype=np.float32)
    rows = np.zeros((len(queries), 0), dtype=np.int64)
    for start in range(0, len(vectors), PIECE):
        scores = queries @ np.asarray(vectors[start : start + PIECE]).T
        numbers = np.broadcast_to(np.arange(start, start + scores.shape[1]), scores.shape)
        best, rows = np.concatenate([best, scores], axis=1), np.concatenate([rows, numbers], axis=1)
        order = np.argsort(-best, axis=1, kind="stable")[:, :k]
        best, rows = (
            np.take_along_axis(best, order, axis=1),
            np.take_along_axis(rows, order, axis=1),
        )
    return best, rows


def _recall(found: Sequence[Sequence[str]], nearest: Sequence[set[str]], k: int) -> float:
    shares = [
        min(1.0, len(exact.intersection(mine)) / min(k, len(exact)))
        for mine, exact in zip(found, nearest)
        if exact
    ]
    return sum(shares) / len(shares) if shares else 0.0


def _quality(pages: Iterable[Sequence[str]], asked: Sequence[Example], k: int) -> dict[str, Any]:
    """Means over the questions that have gold pages, of the metrics that k allows."""
    names = [name for name, least in QUALITY.items() if least <= k]
    sums, count = dict.fromkeys(names, 0.0), 0
    for found, example in zip(pages, asked):
        if not any(example.gold.provenance):
            continue
        count += 1
        hits = tuple(
            Hit(Passage(str(rank), "", page_id=page), -rank) for rank, page in enumerate(found)
        )
        step = Step(Retrieve("", example.question.text, k), Reply("", hits))
        episode = Episode(example.question.qid, "chain", (step,), Outcome(""))
        for name in names:
            sums[name] += METRICS[name](episode, example.gold) or 0.0
    means = {name: total / count for name, total in sums.items()} if count else {}
    return {"quality": means, "n_gold": count}
