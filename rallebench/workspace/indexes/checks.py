"""Whether a finished index is whole: its files are those of its manifest, and it finds its own passages."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from rallebench.core.entries import Manifest
from rallebench.core.errors import BackendError, MismatchError
from rallebench.core.events import Progress
from rallebench.core.files import sha256_file
from rallebench.core.runs import close
from rallebench.core.types import Passage
from rallebench.corpora.store import PassageStore
from rallebench.encoders import Encoder, Vectors
from rallebench.retrievers import INDEX_KINDS
from rallebench.retrievers.dense import Dense
from rallebench.workspace.indexes.recipes import IndexRecipe
from rallebench.workspace.indexes.vectors import passage_text

CANDIDATES, KNOWN_ITEMS, KNOWN_DEPTH = 2000, 20, 10
"""Passages that are read, different ones of them that are searched for, and hits among which each should be."""
AS_NEAR = 2e-3
"""Hits that score less by no more than this share of a passage's own score are as near, and may crowd it out."""


def search_known(
    half: Path, manifest: Manifest, encoder: Encoder | None, vectors: Vectors | None = None
) -> list[str]:
    """Search an index for passages of its own; the warning where it does not find a few.

    ``vectors``: of all its passages; without them the encoder makes a few of them anew. BackendError where it does not find most of them: a broken index never appears.
    """
    opened = INDEX_KINDS[manifest.kind].open(manifest.name, half, manifest, encoder)
    try:
        with closing(PassageStore(half)) as store:
            known = _sample(store)
        missed = _missed(opened, known, encoder, vectors)
    finally:
        close(opened)
    if not missed:
        return []
    of = f"find {len(missed)} of {len(known)} passages by their own text (for example {missed[0].doc_id!r})"
    if len(missed) <= len(known) / 2:
        if encoder is None:  # longer passages of the same words score more
            return []
        return [
            f"The index did not {of}: its graph or its lists do not lead to them, and no query finds them. Build it with "
            "larger settings, or choose the kind flat."
        ]
    if "imported" in manifest.parameters:
        raise MismatchError(
            f"The imported vectors did not {of}; they were made with another encoder than {manifest.encoder_name!r} "
            "or of another corpus."
        )
    raise BackendError(
        f"The finished index {manifest.name!r} did not {of}, so it was thrown away; please report this message."
    )


def _sample(store: PassageStore) -> list[tuple[int, Passage]]:
    """(row, passage): different ones with text from all over the corpus; of copies one, so that what they hide is searched for."""
    rows = range(0, len(store), max(1, len(store) // CANDIDATES))
    pairs = ((row, store[row]) for row in rows)
    distinct = list({(p.title, p.text): (row, p) for row, p in pairs if p.text.strip()}.values())
    # Both ends, too: a passage beside many copies stands at either.
    places = np.linspace(0, len(distinct) - 1, min(KNOWN_ITEMS, len(distinct)))
    return [distinct[place] for place in places.round().astype(int)]


def _missed(
    opened: Any,
    known: Sequence[tuple[int, Passage]],
    encoder: Encoder | None,
    vectors: Vectors | None,
) -> list[Passage]:
    """The passages that are not among the first hits, unless those say the same or are as near."""
    queries = [passage_text(passage) for _, passage in known]
    if encoder is None or not isinstance(opened, Dense):
        results = opened.search(queries, KNOWN_DEPTH)
        excused = [not hits for hits in results]  # the corpus knows no word of such a query
    else:
        if vectors is None:
            own = encoder.encode(queries, role="passage")
        else:
            own = np.ascontiguousarray(vectors[[row for row, _ in known]], dtype=np.float32)
        results = opened.nearest(own, KNOWN_DEPTH)
        full = min(KNOWN_DEPTH, len(opened.passages))
        excused = [
            len(hits) == full and hits[-1].score >= (1 - AS_NEAR) * score
            for hits, score in zip(results, np.einsum("nd,nd->n", own, own))
        ]
    texts = [{(hit.passage.title, hit.passage.text) for hit in hits} for hits in results]
    triples = zip((passage for _, passage in known), texts, excused)
    return [p for p, seen, skip in triples if not skip and (p.title, p.text) not in seen]


def check_index(folder: Path, manifest: Manifest) -> None:
    """MismatchError-free quick check that the files are those of the manifest; sizes, not hashes."""
    for name, size in manifest.files.items():
        path = folder / name
        if not path.exists() or path.stat().st_size != size:
            raise BackendError(
                f"{path} is missing or was changed after the index was built; build {manifest.name!r} again."
            )


def is_made_by(
    manifest: Manifest, recipe: IndexRecipe, corpus_sha256: str, fingerprint: str = ""
) -> bool:
    """Return whether an index is exactly that of a recipe over the passages of this sha256.

    ``fingerprint``: the encoder's, where it is loaded; without it the manifest's name of the encoder is believed.
    """
    encoder = manifest.encoder if fingerprint else manifest.encoder_name
    return (
        (manifest.corpus_sha256, manifest.kind) == (corpus_sha256, recipe.kind)
        and encoder == (fingerprint or recipe.encoder)
        and recipe.settings.items() <= manifest.parameters.items()
        and "imported" not in manifest.parameters
    )


def verify_index(folder: Path, manifest: Manifest) -> Generator[Progress, None, None]:
    """Read every file of an index and compare it with the sha256 of its manifest, yielding progress in bytes.

    Raises BackendError, naming the file, for the first that is missing or not what was built.
    """
    check_index(folder, manifest)
    started, done = time.perf_counter(), 0
    for name, size in manifest.files.items():
        seconds = time.perf_counter() - started
        yield Progress("", done, manifest.bytes, f"reading {name}", seconds=seconds)
        if name in manifest.sha256 and sha256_file(folder / name) != manifest.sha256[name]:
            raise BackendError(
                f"{folder / name} was changed after the index was built; build {manifest.name!r} again."
            )
        done += size
    seconds = time.perf_counter() - started
    yield Progress("", done, manifest.bytes, "verified", seconds=seconds)
