"""Cost of a build, estimated beforehand: memory, disk and time, measured on a sample of the corpus.

Rows of the corpus are read and chunked, a few are encoded, and a small index of the kind is built in a temporary
folder; sizes and seconds are then scaled up. Nothing is written into the workspace.
"""

from __future__ import annotations

import itertools
import math
import random
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rallebench.core import memory
from rallebench.core.chunking import Chunking
from rallebench.core.errors import BadFileError
from rallebench.core.events import complete
from rallebench.core.experiments import IndexRecipe
from rallebench.core.files import free_bytes
from rallebench.core.memory import size
from rallebench.core.sources import Problems, Source
from rallebench.core.types import Json, Passage
from rallebench.corpora.cards import is_imported, read_card
from rallebench.corpora.chunking import chunk
from rallebench.corpora.reading import IMPORTED, corpus_form, corpus_rows
from rallebench.corpora.store import PassageStore, write_store
from rallebench.encoders import Encoder
from rallebench.retrievers import INDEX_KINDS, needs_model
from rallebench.workspace.indexes.reading import long_rows
from rallebench.workspace.indexes.vectors import kept_vectors, passage_text
from rallebench.workspace.paths import WorkspaceFolder

DOCUMENTS, READ_SECONDS = 2000, 3.0
"""Limits of the sample: number of documents, and seconds of reading."""
VECTORS = 1200
ENCODE_BATCH, ENCODE_SECONDS = 16, 3.0
MODEL_PASSAGES = 64
"""Passages indexed by a kind that encodes them with a model of its own, which takes a while."""

BESIDE = "vectors.npy"
"""File that index and cache share by a hard link; counted once, as cached vectors."""

MEMORY_FACTORS = (1.5, 1.0)
"""``memory_factors`` of a kind that declares none. Those of the package's kinds are peaks measured at 60,000 × 384 and
100,000 passages; numpy-flat's are multiples of ``vectors.npy``, and it searches in double precision."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Passages from the beginning of a corpus, with figures to scale them up.

    ``passages``: number in the whole corpus, estimated unless ``counted``. ``text_bytes``: size of the whole corpus as a
    store of its own; 0 if the files of an imported corpus are shared. ``read_seconds``: time to read the whole corpus.
    """

    some: tuple[Passage, ...]
    passages: int
    counted: bool
    text_bytes: int
    read_seconds: float
    sha256: str = ""

    @property
    def sentence(self) -> str:
        """Return the number of passages, and its source, as a sentence."""
        if self.counted:
            return f"Corpus: {self.passages:,} passages, counted."
        return f"Corpus: about {self.passages:,} passages, from the size of its first {len(self.some):,}."


@dataclass(frozen=True, slots=True)
class BuildEstimate:
    """Cost of a build, in bytes and seconds.

    ``ram_build`` and ``ram_search``: in addition to the memory in use; ``disk``: growth of the workspace, including
    ``vectors``, the cached vectors that other indexes over the same passages share. ``basis``: sentences about the
    measurements. ``long``: a sentence about the passages that exceed the encoder's window, or ''.
    """

    kind: str
    passages: int
    counted: bool
    dim: int
    ram_build: int
    ram_search: int
    disk: int
    vectors: int
    seconds: float
    free_ram: int
    free_disk: int
    basis: tuple[str, ...] = ()
    long: str = ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return one sentence for each resource that is short, and for passages that exceed the encoder's window."""
        sentences = [self.long] if self.long else []
        less = "choose a kind that needs less (ivf-sq8, diskann)"
        if self.ram_build > self.free_ram:
            sentences.append(
                f"Building needs about {size(self.ram_build)} of memory and {size(self.free_ram)} are free: {less}, "
                "cut fewer passages, or free memory first."
            )
        elif self.ram_search > self.free_ram:
            sentences.append(
                f"Searching needs about {size(self.ram_search)} of memory and {size(self.free_ram)} are free: {less}."
            )
        if self.disk > self.free_disk:
            sentences.append(
                f"The build needs about {size(self.disk)} of disk and {size(self.free_disk)} are free: free space, "
                "delete cached vectors, or use another workspace."
            )
        return tuple(sentences)


def estimate_build(
    workspace: WorkspaceFolder, recipe: IndexRecipe, encoders: Callable[[str], Encoder]
) -> Generator[str | BuildEstimate, None, None]:
    """Yield sentences about the measurements, and last the BuildEstimate. Raises BadFileError for an unreadable corpus.

    ``encoders`` opens an encoder by its reference, which loads its model.
    """
    kind, settings = recipe.kind, recipe.settings
    yield "reading the beginning of the corpus"
    sample = sample_corpus(recipe.corpus, form=recipe.form, chunking=recipe.chunking)
    passages = sample.passages
    basis = [sample.sentence]
    dim = cached = held = 0
    with tempfile.TemporaryDirectory(prefix="rallebench-estimate-") as folder:
        if not recipe.encoder:
            some = sample.some
            if needs_model(kind):
                some = some[:: max(1, len(some) // MODEL_PASSAGES)]
            yield f"indexing {len(some)} passages"
            files, seconds = _small_index(Path(folder), kind, some, None, settings, passages)
            basis.append(f"Building: an index over {len(some):,} of its passages.")
        else:
            yield f"encoding some passages with {recipe.encoder}"
            before = memory.rss_bytes()
            model = encoders(recipe.encoder)
            dim, held = model.dim, max(0, memory.rss_bytes() - before)
            rate = _rate(model, sample.some)
            done = _encoded_passages(workspace, sample.sha256, model)
            yield f"building a small {kind} index"
            files, building = _vectors(Path(folder), kind, dim, sample, settings)
            seconds = (passages - done) / rate + (building or 0.0)
            basis += _encoding_basis(recipe.encoder, rate, done, passages)
            basis.append(
                "The server's own memory, disk and time are not counted."
                if building is None
                else f"Building: a small index of the kind {kind}, over {min(VECTORS, passages):,} random vectors "
                f"of {dim} dimensions."
            )
            cached = 0 if done == passages else 4 * dim * passages
    on_disk = sum(count for name, count in files.items() if name != BESIDE)
    own = on_disk or files.get(BESIDE, 0)
    traits = INDEX_KINDS.entry(kind).traits
    held_files = files.get(traits.get("memory_file", ""), own)
    building_share, searching_share = traits.get("memory_factors", MEMORY_FACTORS)
    building_bytes = int(own * building_share)
    if "memory_bound" in traits:
        building_bytes = min(building_bytes, traits["memory_bound"](settings, passages))
    yield BuildEstimate(
        kind=kind,
        passages=passages,
        counted=sample.counted,
        dim=dim,
        ram_build=held + building_bytes,
        ram_search=held + int(held_files * searching_share),
        disk=sample.text_bytes + cached + on_disk,
        vectors=cached,
        seconds=seconds + sample.read_seconds,
        free_ram=memory.free_ram_bytes(),
        free_disk=free_bytes(workspace.path),
        basis=tuple(basis),
        long=long.sentence if (long := long_rows(recipe.encoder, sample.some, passages)) else "",
    )


def sample_corpus(corpus: Path, *, form: str = "", chunking: Chunking | None = None) -> Sample:
    """Return the beginning of a corpus, chunked. Raises BadFileError for an unreadable or empty corpus."""
    form = form or corpus_form(corpus)
    source = Source(corpus, Problems(skip=True))
    documents = (Passage(row.doc_id, row.text, row.title) for row in corpus_rows(source, form))
    started = time.perf_counter()
    some, ended = _first(documents)
    seconds = time.perf_counter() - started
    if not some:
        raise BadFileError(f"{corpus} holds no passages.")
    if form == IMPORTED:
        with closing(PassageStore(corpus)) as store:
            count = len(store)
        if chunking is None:
            sha256 = read_card(corpus).sha256 if is_imported(corpus) else ""
            return Sample(tuple(some), count, True, 0, 0.0, sha256)
        return _sample(some, count, len(some) == count, seconds, chunking)
    share = 1.0 if ended or not source.total else min(1.0, max(source.done, 1) / source.total)
    return _sample(some, len(some) / share, share == 1.0, seconds, chunking)


def _first(documents: Iterator[Passage]) -> tuple[list[Passage], bool]:
    """Return the first documents, and True if there are no more."""
    some: list[Passage] = []
    deadline = time.monotonic() + READ_SECONDS
    for document in itertools.islice(documents, DOCUMENTS):
        some.append(document)
        if time.monotonic() > deadline:
            break
    return some, len(some) < DOCUMENTS and next(documents, None) is None


def _sample(
    documents: Sequence[Passage],
    count: float,
    whole: bool,
    seconds: float,
    chunking: Chunking | None,
) -> Sample:
    """Scale figures of some documents to ``count`` documents."""
    started = time.perf_counter()
    pieces = list(chunk(documents, chunking))
    some = tuple(passage for passage, _ in pieces)
    with tempfile.TemporaryDirectory(prefix="rallebench-estimate-") as folder:
        write_store(Path(folder), some)
        stored = sum(path.stat().st_size for path in Path(folder).iterdir())
    factor = count / len(documents)
    seconds += time.perf_counter() - started
    return Sample(
        some, max(1, round(len(some) * factor)), whole, int(stored * factor), seconds * factor
    )


def _small_index(
    folder: Path,
    kind: str,
    passages: Sequence[Passage],
    vectors: Any,
    settings: Json,
    total: int,
) -> tuple[dict[str, int], float]:
    """Return file sizes and seconds of an index over ``total`` passages, scaled from an index over these."""
    entry = INDEX_KINDS.entry(kind)
    started = time.perf_counter()
    complete(entry.value.build(folder, passages, vectors, settings))
    seconds = time.perf_counter() - started
    factor, fixed = total / len(passages), entry.traits.get("fixed_files", ())
    sizes = {p.name: p.stat().st_size for p in folder.rglob("*") if p.is_file()}
    files = {name: count if name in fixed else int(count * factor) for name, count in sizes.items()}
    return files, seconds * factor


def _rate(encoder: Encoder, passages: Sequence[Passage]) -> float:
    """Return passages per second, without the first few, which warm the model up."""
    encoder.encode([passage_text(passages[0])], role="passage")
    # As in a build, texts of similar length form a batch; the order of the batches is random.
    texts = sorted((passage_text(p) for p in passages[:: max(1, len(passages) // 256)]), key=len)
    batches = [texts[first : first + ENCODE_BATCH] for first in range(0, len(texts), ENCODE_BATCH)]
    random.Random(0).shuffle(batches)
    started, done = time.perf_counter(), 0
    for batch in batches:
        encoder.encode(batch, role="passage")
        done += len(batch)
        if time.perf_counter() - started > ENCODE_SECONDS:
            break
    return done / max(time.perf_counter() - started, 1e-6)


def _encoded_passages(workspace: WorkspaceFolder, corpus_sha256: str, encoder: Encoder) -> int:
    """Return the number of passages of this corpus that are encoded already."""
    same = (corpus_sha256, encoder.name)
    vectors = kept_vectors(workspace.vectors) if corpus_sha256 else ()
    return max(
        (v.passages_done for v in vectors if (v.corpus_sha256, v.encoder) == same), default=0
    )


def _vectors(
    folder: Path, kind: str, dim: int, sample: Sample, settings: Json
) -> tuple[dict[str, int], float | None]:
    """Return file sizes and seconds of the whole index, scaled from random vectors; None seconds for a kind on a server."""
    remote = INDEX_KINDS.entry(kind).traits.get("remote")
    if (
        remote is not None
    ):  # disk and time are the server's; on this machine it holds the vectors once more
        return {} if remote(settings) else {"index": 4 * dim * sample.passages}, None
    count = min(VECTORS, sample.passages)
    passages = tuple(itertools.islice(itertools.cycle(sample.some), count))
    vectors = np.random.default_rng(0).normal(size=(count, dim)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    files, seconds = _small_index(folder, kind, passages, vectors, settings, sample.passages)
    # A graph visits about log n neighbours for each new vector; flat kinds take less than that.
    return files, seconds * math.log2(sample.passages + 1) / math.log2(count + 1)


def _encoding_basis(encoder: str, rate: float, done: int, passages: int) -> list[str]:
    if done == passages:
        return [f"Encoding: none, all vectors by {encoder} are kept already."]
    sentences = [f"Encoding: {encoder} encodes about {rate:,.0f} of these passages a second here."]
    return [*sentences, f"{done:,} of them are encoded already."] if done else sentences
