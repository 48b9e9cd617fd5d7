"""Corpora that a workspace keeps: ``<workspace>/corpora/<name>/`` with the passages' store and ``corpus.json``.

An import appears whole or not at all. It costs the disk about what the source takes; indexes over it without
new chunking share its files.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rallebench.core.disk import unwritten
from rallebench.core.errors import BadFileError, NotFoundError, UsageError
from rallebench.core.files import read_json, sha256_file, write_json
from rallebench.core.folders import beside, check_name
from rallebench.core.sources import Problems, Source, files_in
from rallebench.core.types import digest
from rallebench.corpora import CORPORA, Row
from rallebench.corpora.chunking import Chunking, cut
from rallebench.corpora.page_maps import read_page_map
from rallebench.corpora.reading import IMPORTED, Pages, form_of, read_corpus
from rallebench.corpora.store import PASSAGES, PassageStore, link_store, writing_store

CARD = "corpus.json"


class BadRow(BaseModel):
    """A row that was left out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    line: int
    message: str


class Corpus(BaseModel):
    """What ``corpus.json`` says of an imported corpus.

    ``sha256`` is that of ``passages.jsonl``: ids, texts, titles and page ids in order. ``stamp`` changes when
    the source's files do. ``skipped`` bad rows were left out; the first 20 are ``problems``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["rallebench-corpus/1"] = "rallebench-corpus/1"
    name: str
    form: str
    source: str
    stamp: str
    passages: int
    skipped: int = 0
    problems: list[BadRow] = Field(default_factory=list)
    has_pages: bool = False
    passages_without_page: int = 0
    sha256: str
    files: dict[str, int] = Field(default_factory=dict)
    bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Importing:
    """Progress of an import: passages written, bad rows left out, bytes read of the source's bytes."""

    passages: int
    skipped: int
    done: int
    total: int
    seconds: float

    @property
    def fraction(self) -> float:
        """0 … 1 of the source is read."""
        return min(1.0, self.done / self.total) if self.total else 0.0

    @property
    def rate(self) -> float:
        """Passages per second."""
        return self.passages / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float | None:
        """At the rate so far; None before anything is read."""
        return self.seconds * (1 - self.fraction) / self.fraction if self.fraction else None


def import_corpus(
    corpora: Path,
    name: str,
    source: Path,
    *,
    form: str = "",
    page_map: Path | None = None,
    skip_bad: bool = False,
) -> Generator[Importing | Corpus, None, None]:
    """Import ``source`` as ``corpora/name``, yielding progress, the Corpus last; close the generator to stop.

    Nothing appears before the import is whole, and what existed stays. An import of the same unchanged files is
    no work; a corpus of that name with the same passages is kept. A passage without text is a bad row.
    Raises UsageError for a wrong name or form, for the first bad row unless ``skip_bad``, and if the name is
    taken by another corpus; BackendError if the disk is full.
    """
    target, source = Path(corpora) / check_name("corpus", name), Path(source)
    if form:
        CORPORA.entry(form)
    if not source.exists():
        raise BadFileError(f"{source} does not exist.")
    if target.exists() and not (target / CARD).exists():
        raise UsageError(
            f"{target} exists and is no imported corpus; choose another name or move it away."
        )
    form = form or form_of(source)
    stamp = _stamp(source, form, page_map, skip_bad)
    if target.exists() and (there := read_card(target)).stamp == stamp:
        yield there
        return
    pages = read_page_map(page_map) if page_map else None
    read = Source(source, Problems(skip=skip_bad, refuse_empty=True, offered=True))
    started = time.perf_counter()
    try:
        with beside(Path(corpora), name) as half:
            yield Importing(0, 0, 0, read.total, 0.0)
            counted = _Counted(read_corpus(source, pages, form=form, source=read))
            writing = writing_store(half, ((passage, None) for passage in counted))
            with contextlib.closing(writing):
                while True:
                    try:
                        count = next(writing)
                    except StopIteration as ended:
                        count, sha = ended.value
                        break
                    seconds = time.perf_counter() - started
                    yield Importing(count, read.problems.count, read.done, read.total, seconds)
            sizes = {p.name: p.stat().st_size for p in sorted(half.iterdir())}
            made = Corpus(
                name=name,
                form=form,
                source=source.name,
                stamp=stamp,
                passages=count,
                skipped=read.problems.count,
                problems=[BadRow(line=p.line, message=p.message) for p in read.problems.first],
                has_pages=pages is not None or counted.own_pages,
                passages_without_page=counted.without_page,
                sha256=sha,
                files=sizes,
                bytes=sum(sizes.values()),
                seconds=round(time.perf_counter() - started, 3),
            )
            write_json(half / CARD, made.model_dump())
            yield _moved_in(half, target, made)
    except OSError as error:
        raise unwritten("the corpus", target, error) from error


class _Counted:
    """Passages on their way; counts those without a page, and sees whether any page is not the passage itself."""

    def __init__(self, passages: Iterator[Any]) -> None:
        self._passages = passages
        self.without_page = 0
        self.own_pages = False

    def __iter__(self) -> Iterator[Any]:
        for passage in self._passages:
            self.without_page += not passage.page_id
            self.own_pages = self.own_pages or passage.page_id != passage.doc_id
            yield passage


def _stamp(source: Path, form: str, page_map: Path | None, skip_bad: bool) -> str:
    """12 hex digits that change when a file of the source does, or what is made of it."""
    files = [file for path in (source, page_map) if path for file in files_in(path)]
    stats = [(str(file.absolute()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return digest([stats, form, bool(page_map), skip_bad])[:12]


def _moved_in(half: Path, target: Path, made: Corpus) -> Corpus:
    """Put the finished folder in place; an equal corpus that is there already stays."""
    try:
        os.rename(half, target)
    except OSError:
        if not (target / CARD).exists():
            raise
        there = read_card(target)
        if there.sha256 != made.sha256:
            raise UsageError(
                f"A corpus {target.name!r} exists already and holds something else ({there.passages} passages of "
                f"{there.source}); choose another name or remove {target}."
            ) from None
        return there
    return made


# ── what is there ────────────────────────────────────────────────────────────


def is_imported(path: Path) -> bool:
    """Whether ``path`` is the folder of an imported corpus."""
    return (Path(path) / CARD).is_file() and (Path(path) / PASSAGES).is_file()


def read_card(folder: Path) -> Corpus:
    """What an imported corpus says of itself. Raises BadFileError if it was changed."""
    path = Path(folder) / CARD
    try:
        return Corpus.model_validate(read_json(path))
    except ValidationError:
        raise BadFileError(f"{path} was changed; import the corpus again.") from None


def imported_corpora(corpora: Path) -> dict[str, Corpus]:
    """Name → card of every corpus of a workspace, sorted; one whose card is damaged is left out."""
    found = {}
    for path in sorted(Path(corpora).glob(f"*/{CARD}")):
        if not path.parent.name.startswith("."):
            try:
                found[path.parent.name] = read_card(path.parent)
            except BadFileError:
                continue
    return found


def verify_corpus(folder: Path) -> Corpus:
    """The card, after reading all files: BadFileError if one is missing or was changed."""
    card = read_card(folder)
    for name, size in card.files.items():
        path = Path(folder) / name
        if not path.is_file() or path.stat().st_size != size:
            raise BadFileError(
                f"{path} is missing or was changed; import the corpus {card.name!r} again."
            )
    if sha256_file(Path(folder) / PASSAGES) != card.sha256:
        raise BadFileError(
            f"{Path(folder) / PASSAGES} was changed; import the corpus {card.name!r} again."
        )
    return card


def delete_corpus(corpora: Path, name: str) -> None:
    """Remove an imported corpus; indexes that share its files keep theirs. Raises NotFoundError."""
    folder = Path(corpora) / check_name("corpus", name)
    if not is_imported(folder):
        raise NotFoundError(f"There is no imported corpus {name!r}.")
    try:
        (folder / CARD).unlink()  # a removal that is interrupted leaves no corpus that looks whole
        shutil.rmtree(folder)
    except OSError as error:
        raise UsageError(f"{folder} could not be removed: {error.strerror or error}.") from error


@CORPORA.register(IMPORTED, recognises=is_imported)
def read_imported(source: Source) -> Iterator[Row]:
    """A corpus that a workspace keeps already."""
    store = PassageStore(source.path)
    try:
        for number, passage in enumerate(store, 1):
            yield Row(number, passage.doc_id, passage.text, passage.title, passage.page_id)
    finally:
        store.close()


# ── into an index ────────────────────────────────────────────────────────────


def store_corpus(
    folder: Path,
    corpus: Path,
    pages: Pages | None = None,
    chunking: Chunking | None = None,
    *,
    form: str = "",
) -> Generator[tuple[int, float], None, tuple[int, str]]:
    """Put the passages of a corpus into an index folder, yielding (passages, fraction 0 … 1 of the corpus read).

    Returns their number and the sha256 over all. An imported corpus that is neither cut nor given other
    pages is linked. Raises as ``read_corpus`` and ``write_store`` do.
    """
    if is_imported(corpus) and chunking is None and pages is None:
        card = read_card(corpus)
        PassageStore(corpus).close()  # whole, or BadFileError
        link_store(corpus, folder)
        return card.passages, card.sha256
    source = Source(corpus)
    writing = writing_store(
        folder, cut(read_corpus(corpus, pages, form=form, source=source), chunking)
    )
    with contextlib.closing(writing):
        while True:
            try:
                count = next(writing)
            except StopIteration as ended:
                stored: tuple[int, str] = ended.value
                return stored
            yield count, min(1.0, source.done / source.total) if source.total else 0.0
