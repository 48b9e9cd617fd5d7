"""Indexes by what they are, not by their name: found if one is there already, built once under a derived name if not.

For whoever needs many indexes that differ in one thing (sweeps over chunk sizes, a grid over encoders). Three things
are shared: the passages of one corpus in one chunking are cut once (``<workspace>/cache/passages/``), a text is
encoded once by one encoder whatever it is cut out of (``rallebench.workspace.indexes.by_text``), and an index that is there
under any name is taken as it is.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rallebench.core.disk import unwritten
from rallebench.core.errors import BadFileError, NotFoundError, RalleError, UsageError
from rallebench.core.types import digest
from rallebench.corpora.chunking import Chunking
from rallebench.corpora.reading import IMPORTED
from rallebench.corpora.store import PassageStore
from rallebench.encoders import Encoder
from rallebench.encoders.references import check_encoder
from rallebench.retrievers import needs_encoder
from rallebench.workspace.entries import Manifest, read_manifest
from rallebench.workspace.indexes._chunking import Cut, cut, is_index, kept
from rallebench.workspace.indexes._in_use import using
from rallebench.workspace.indexes._shards import passage_text
from rallebench.workspace.indexes.build import build_index, check_settings, kinds
from rallebench.workspace.indexes.by_text import Remembering, hashes, known, write_table
from rallebench.workspace.indexes.checks import check_index
from rallebench.workspace.indexes.vectors import Building, turn, vectors_of
from rallebench.workspace.paths import STARTER, STARTER_INDEXES, Workspace

MOST_PASSAGES = 1_000_000
"""Of an index with more passages the texts are not read only to spare another index their encoding."""


@dataclass(frozen=True, slots=True)
class Described:
    """An index by what it is. Make one with ``described``, which checks it.

    ``corpus``: a file or folder of documents, an imported corpus, or an index, whose passages are then the documents.
    ``encoder``: '' for a kind that has none. ``settings``: all of the kind's.
    """

    corpus: Path
    kind: str
    encoder: str = ""
    chunking: Chunking | None = None
    form: str = ""
    page_map: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Prepared:
    """The index ``name`` of the workspace is what was described. ``built``: it was not there; ``encoded``: passages
    that had to be encoded for it."""

    name: str
    manifest: Manifest
    built: bool
    encoded: int = 0


@dataclass(frozen=True, slots=True)
class Costs:
    """What preparing several indexes takes. ``there``: names of those that need no work; ``builds``: indexes to build;
    ``passages``: what these hold together; ``encodings``: encoder → (texts to encode, different texts in all)."""

    there: tuple[str, ...]
    builds: int
    passages: int
    encodings: Mapping[str, tuple[int, int]]

    @property
    def sentence(self) -> str:
        """The same in words."""
        parts = [
            f"{_count(self.builds, 'index', 'indexes')} to build"
            + (f" ({self.passages:,} passages)" if self.builds else "")
        ]
        parts += [f"{len(self.there)} there already"] if self.there else []
        for name, (new, total) in self.encodings.items():
            parts.append(
                f"{_count(new, 'text', 'texts')} to encode with {name}"
                + (f" of {total:,}" if new != total else "")
            )
        return f"{', '.join(parts)}."


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def described(
    workspace: Workspace,
    corpus: str | Path,
    kind: str,
    *,
    encoder: str = "minilm",
    chunking: Chunking | None = None,
    form: str = "",
    page_map: Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Described:
    """An index description with all its settings, checked; nothing is read or loaded. Raises UsageError."""
    if kind not in kinds():
        raise UsageError(f"There is no index kind {kind!r}; known: {', '.join(kinds())}.")
    path = workspace.corpus(str(corpus))
    if not path.exists():
        raise NotFoundError(f"{path} does not exist.")
    if needs_encoder(kind):
        check_encoder(encoder)
    full = check_settings(kind, dict(settings or {}))
    form = form or (IMPORTED if is_index(path) else "")
    encoder = encoder if needs_encoder(kind) else ""
    return Described(path, kind, encoder, chunking, form, page_map, full)


def prepare(
    workspace: Workspace, wanted: Described, encoders: Callable[[str], Encoder]
) -> Generator[Building | Prepared, None, None]:
    """Yield progress, Prepared last: an index of the workspace that is exactly this, built if there is none.

    Interrupted, it goes on where it was: what is cut and encoded is kept. Two that ask for the same index build it
    once; the second waits. Raises UsageError and BackendError as ``build_index`` does.
    """
    with using(_cache(workspace)):
        yield from _prepare(workspace, wanted, encoders)


def _prepare(
    workspace: Workspace, wanted: Described, encoders: Callable[[str], Encoder]
) -> Generator[Building | Prepared, None, None]:
    passages = yield from passages_of(workspace, wanted)
    encoder = encoders(wanted.encoder) if wanted.encoder else None
    name = name_of(wanted, passages)
    stage = "waiting for another build of the same index"
    lock = _cache(workspace) / f".{name}.lock"
    with turn(lock, lambda seconds: Building(stage, 0, 0, seconds)) as waiting:
        yield from waiting
        if there := found(workspace, wanted, passages, encoder.fingerprint if encoder else ""):
            yield Prepared(there, read_manifest(workspace.indexes / there), False)
            return
        yield from _built(workspace, name, wanted, passages, encoder)


def _built(
    workspace: Workspace, name: str, wanted: Described, passages: Cut, encoder: Encoder | None
) -> Generator[Building | Prepared, None, None]:
    remembering = None
    if encoder is not None:
        _tables(workspace, wanted.encoder, passages)
        remembering = Remembering(encoder, workspace.vectors, _texts(workspace))
    building = build_index(
        workspace.indexes,
        name,
        wanted.corpus,
        wanted.kind,
        encoder_name=wanted.encoder,
        encoder=remembering,
        page_map=wanted.page_map,
        chunking=wanted.chunking,
        form=wanted.form,
        parameters=dict(wanted.settings),
        vectors=workspace.vectors,
        cut=passages.folder,
    )
    with contextlib.closing(building):
        for piece in building:
            if isinstance(piece, Manifest):
                yield Prepared(name, piece, True, remembering.encoded if remembering else 0)
            else:
                yield piece


def planned(workspace: Workspace, wanted: Sequence[Described]) -> Generator[Building, None, Costs]:
    """Yield progress, return what preparing all of these takes. Their corpora are cut for it, which is kept; no
    encoder is loaded. Raises as ``passages_of`` does."""
    with using(_cache(workspace)):
        return (yield from _planned(workspace, wanted))


def _planned(workspace: Workspace, wanted: Sequence[Described]) -> Generator[Building, None, Costs]:
    import numpy as np

    there: list[str] = []
    builds: dict[str, tuple[Described, Cut]] = {}
    for one in wanted:
        passages = yield from passages_of(workspace, one)
        if name := found(workspace, one, passages):
            there.append(name)
        else:
            builds[name_of(one, passages)] = (one, passages)
    texts: dict[str, list[Any]] = {}
    for one, passages in builds.values():
        if one.encoder:
            yield Building("counting texts", 0, passages.passages, 0.0)
            _tables(workspace, one.encoder, passages)
            texts.setdefault(one.encoder, []).append(_keys(passages))
    encodings = {}
    for encoder, keys in texts.items():
        unlike = np.unique(np.concatenate(keys), axis=0)
        have = known(workspace.vectors, _texts(workspace), encoder, unlike)
        encodings[encoder] = (int((~have).sum()), len(unlike))
    held = sum(passages.passages for _, passages in builds.values())
    return Costs(tuple(dict.fromkeys(there)), len(builds), held, encodings)


# which index


def passages_of(workspace: Workspace, wanted: Described) -> Generator[Building, None, Cut]:
    """Yield progress, return the passages of an index. Raises BadFileError for a corpus that cannot be read."""
    place = _cache(workspace) / "passages"
    return (yield from cut(place, wanted.corpus, wanted.chunking, wanted.form, wanted.page_map))


def foreseen(workspace: Workspace, wanted: Described) -> tuple[str, bool]:
    """(the name that ``prepare`` will end with, whether that index is there); '' where its corpus was never cut so.

    Reads no documents and writes nothing.
    """
    passages = kept(
        _cache(workspace) / "passages", wanted.corpus, wanted.chunking, wanted.form, wanted.page_map
    )
    there = found(workspace, wanted, passages) if passages else ""
    return (there or name_of(wanted, passages) if passages else "", bool(there))


def _cache(workspace: Workspace) -> Path:
    return workspace.path / "cache"


def name_of(wanted: Described, passages: Cut) -> str:
    """The name that an index gets if none is there: corpus, chunking, kind, and 8 digits over all that it is."""
    if wanted.corpus == STARTER / "corpus.tsv" and wanted.chunking is None:
        for name, kind in STARTER_INDEXES.items():
            encoder = "minilm" if needs_encoder(kind) else ""
            if (kind, encoder) == (wanted.kind, wanted.encoder):
                return name  # what is built when it is first asked for
    stem = re.sub(r"[^\w\-]+", "-", wanted.corpus.name.split(".")[0]).strip("-")[:40] or "corpus"
    size = f"-{wanted.chunking.size}{wanted.chunking.unit[0]}" if wanted.chunking else ""
    mark = digest([passages.sha256, wanted.kind, wanted.encoder, dict(wanted.settings)])[:8]
    return f"{stem}{size}-{wanted.kind}-{mark}"


def found(workspace: Workspace, wanted: Described, passages: Cut, fingerprint: str = "") -> str:
    """The name of a whole index that is exactly this; '' if there is none.

    ``fingerprint``: the encoder's, where it is loaded; without it the manifest's name of the encoder is believed.
    """
    for name, manifest in workspace.manifests().items():
        same = (manifest.corpus_sha256, manifest.kind) == (passages.sha256, wanted.kind)
        made_by = (
            (manifest.encoder == fingerprint)
            if fingerprint
            else manifest.encoder_name == wanted.encoder
        )
        settings = (
            wanted.settings.items() <= manifest.parameters.items()
            and "imported" not in manifest.parameters
        )
        if same and made_by and settings:
            with contextlib.suppress(RalleError):
                check_index(workspace.indexes / name, manifest)
                return name
    return ""


# texts


def _texts(workspace: Workspace) -> Path:
    return _cache(workspace) / "texts"


def _tables(workspace: Workspace, encoder: str, passages: Cut) -> None:
    """The tables of texts of these passages, and of all that the encoder of this name has encoded here."""
    for folder, sha in [(passages.folder, passages.sha256), *_encoded(workspace, encoder)]:
        try:
            with contextlib.closing(PassageStore(folder)) as store:
                write_table(_texts(workspace), sha, store)
        except BadFileError:
            if folder == passages.folder:
                raise
        except OSError as error:
            raise unwritten("the table of texts", _texts(workspace), error) from error


def _encoded(workspace: Workspace, encoder: str) -> Iterator[tuple[Path, str]]:
    """The indexes whose vectors by an encoder are still kept, with their corpora."""
    for name, manifest in workspace.manifests().items():
        fits = manifest.encoder_name == encoder and manifest.passages <= MOST_PASSAGES
        if fits and vectors_of(workspace.vectors, manifest.corpus_sha256, manifest.encoder):
            yield workspace.indexes / name, manifest.corpus_sha256


def _keys(passages: Cut) -> Any:
    with contextlib.closing(PassageStore(passages.folder)) as store:
        return hashes(passage_text(passage) for passage in store)
