"""What a build will take, told before it begins: memory, disk and time, measured on a sample of the corpus.

Rows of the corpus are read and cut, a few are encoded, and a small index of the kind is built in a temporary
folder; sizes and seconds are then scaled to the whole. Nothing is written into the workspace.
"""

from __future__ import annotations

import itertools
import math
import random
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rallebench.core import memory
from rallebench.core.errors import BadFileError
from rallebench.core.events import complete
from rallebench.core.files import free_bytes
from rallebench.core.memory import size
from rallebench.core.sources import Problems, Source
from rallebench.core.types import Passage
from rallebench.corpora import CORPORA
from rallebench.corpora.chunking import Chunking, chunk
from rallebench.corpora.imported import is_imported, read_card
from rallebench.corpora.reading import IMPORTED, form_of
from rallebench.corpora.store import PassageStore, write_store
from rallebench.encoders import Encoder
from rallebench.retrievers import INDEX_KINDS
from rallebench.workspace.indexes.reading import long_rows
from rallebench.workspace.indexes.recipes import IndexRecipe
from rallebench.workspace.indexes.vectors import kept_vectors, passage_text
from rallebench.workspace.paths import Workspace

DOCUMENTS, READ_SECONDS = 2000, 3.0
"""How much of a corpus is read: so many documents, or as many as so many seconds allow."""
VECTORS = 1200
ENCODE_BATCH, ENCODE_SECONDS = 16, 3.0

BESIDE = "vectors.npy"
"""A file that index and cache share by a hard link: it is counted once, as cached vectors."""

MEMORY_FACTORS = (1.5, 1.0)
"""``memory_factors`` of a kind that does not say. Those of the package's kinds are peaks measured at 60,000 × 384 and
100,000 passages; numpy-flat's are multiples of ``vectors.npy``, and it searches in double precision."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Passages from the beginning of a corpus, and how much of it they are.

    ``passages``: how many the whole has, estimated unless ``counted``. ``text_bytes``: what the whole takes as a store
    of its own; 0 where the files of an imported corpus are shared. ``read_seconds``: what reading all takes.
    """

    some: tuple[Passage, ...]
    passages: int
    counted: bool
    text_bytes: int
    read_seconds: float
    sha256: str = ""

    @property
    def sentence(self) -> str:
        """How many passages, and how that is known."""
        if self.counted:
            return f"Corpus: {self.passages:,} passages, counted."
        return f"Corpus: about {self.passages:,} passages, from the size of its first {len(self.some):,}."


@dataclass(frozen=True, slots=True)
class BuildEstimate:
    """What a build takes. Bytes and seconds.

    ``ram_build`` and ``ram_search`` are beyond what the process holds now; ``disk`` is what the workspace grows,
    ``vectors`` of it as cached vectors that other indexes over the same passages share. ``basis``: sentences
    saying what was measured. ``long``: a sentence on the passages that are longer than the encoder reads, or ''.
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
        """One sentence for each thing that does not fit this machine, and for passages that do not fit the encoder."""
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
    workspace: Workspace, recipe: IndexRecipe, encoders: Callable[[str], Encoder]
) -> Generator[str | BuildEstimate, None, None]:
    """Yield sentences about what is measured, the BuildEstimate last. Raises BadFileError for a corpus that cannot be read.

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
            yield f"indexing {len(sample.some)} passages"
            files, seconds = _small_index(Path(folder), kind, sample.some, None, settings, passages)
            basis.append(f"Building: an index over {len(sample.some):,} of its passages.")
        else:
            yield f"encoding some passages with {recipe.encoder}"
            before = memory.rss_bytes()
            model = encoders(recipe.encoder)
            dim, held = model.dim, max(0, memory.rss_bytes() - before)
            rate = _rate(model, sample.some)
            done = _done(workspace, sample.sha256, model)
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
    yield BuildEstimate(
        kind=kind,
        passages=passages,
        counted=sample.counted,
        dim=dim,
        ram_build=held + int(own * building_share),
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
    """The beginning of a corpus, cut as asked. Raises BadFileError as reading it does, also for one without passages."""
    form = form or form_of(corpus)
    source = Source(corpus, Problems(skip=True))
    documents = (Passage(row.doc_id, row.text, row.title) for row in CORPORA[form](source))
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
    """(the first documents, whether these are all)."""
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
    """Scale what is told of some documents to ``count`` of them."""
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
    settings: Mapping[str, Any],
    total: int,
) -> tuple[dict[str, int], float]:
    """(files of an index over ``total`` passages, seconds), from an index over these."""
    entry = INDEX_KINDS.entry(kind)
    started = time.perf_counter()
    complete(entry.value.build(folder, passages, vectors, settings))
    seconds = time.perf_counter() - started
    factor, fixed = total / len(passages), entry.traits.get("fixed_files", ())
    sizes = {p.name: p.stat().st_size for p in folder.rglob("*") if p.is_file()}
    files = {name: count if name in fixed else int(count * factor) for name, count in sizes.items()}
    return files, seconds * factor


def _rate(encoder: Encoder, passages: Sequence[Passage]) -> float:
    """Passages per second, the first few left out: they warm the model up."""
    encoder.encode([passage_text(passages[0])], role="passage")
    # As a build does it, texts of like length go together; which lengths come first is drawn.
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


def _done(workspace: Workspace, corpus_sha256: str, encoder: Encoder) -> int:
    """How many passages of this corpus are encoded already."""
    same = (corpus_sha256, encoder.name)
    vectors = kept_vectors(workspace.vectors) if corpus_sha256 else ()
    return max((v.done for v in vectors if (v.corpus_sha256, v.encoder) == same), default=0)


def _vectors(
    folder: Path, kind: str, dim: int, sample: Sample, settings: Mapping[str, Any]
) -> tuple[dict[str, int], float | None]:
    """(files of the whole index, seconds) from an index over random vectors; None seconds for a kind on a server."""
    remote = INDEX_KINDS.entry(kind).traits.get("remote")
    if remote is not None:  # a server's own disk and time; run here, it holds the vectors once more
        return {} if remote(settings) else {"index": 4 * dim * sample.passages}, None
    count = min(VECTORS, sample.passages)
    passages = tuple(itertools.islice(itertools.cycle(sample.some), count))
    vectors = np.random.default_rng(0).normal(size=(count, dim)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    files, seconds = _small_index(folder, kind, passages, vectors, settings, sample.passages)
    # A graph looks at about log n neighbours for each new vector; the flat kinds take less than this.
    return files, seconds * math.log2(sample.passages + 1) / math.log2(count + 1)


def _encoding_basis(encoder: str, rate: float, done: int, passages: int) -> list[str]:
    if done == passages:
        return [f"Encoding: none, all vectors by {encoder} are kept already."]
    sentences = [f"Encoding: {encoder} encodes about {rate:,.0f} of these passages a second here."]
    return [*sentences, f"{done:,} of them are encoded already."] if done else sentences
