"""What people do with corpora, question sets, indexes and vectors besides building them: look, check, delete, combine, search."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.errors import NotFoundError, RalleError, UsageError
from rallebench.core.events import Operation
from rallebench.core.files import write_json
from rallebench.core.folders import beside, check_name
from rallebench.core.settings import Setting, checked
from rallebench.core.sources import Problem, Problems, Source
from rallebench.core.types import Hit, Passage
from rallebench.corpora import imported
from rallebench.corpora.chunking import Chunking
from rallebench.corpora.page_maps import read_page_map
from rallebench.corpora.reading import form_of, read_corpus
from rallebench.datasets.reading import form_of as form_of_questions
from rallebench.datasets.reading import read_examples
from rallebench.engine.store import QUESTIONS, list_runs
from rallebench.retrievers import needs_encoder, search_form
from rallebench.services.jobs import JobManager, pieces_of
from rallebench.services.models import Loads
from rallebench.workspace.entries import Combination, Manifest, read_combinations, read_manifest
from rallebench.workspace.indexes.checks import search_known, verify_index
from rallebench.workspace.indexes.ensure import described
from rallebench.workspace.indexes.estimate import Estimate, estimate_build
from rallebench.workspace.indexes.vectors import (
    Building,
    CachedVectors,
    delete_vectors,
    kept_vectors,
)
from rallebench.workspace.paths import STARTER_INDEXES, Workspace

ROWS, MAX_ROWS = 8, 2000
"""Rows that a preview shows, and rows that it reads at most to find them and their problems."""

GOLD_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Preview:
    """The beginning of a corpus or a question set as it would be imported, and the bad rows there.

    ``rows``: Passages or Examples. ``read`` rows were looked at; ``ended``: these are all.
    """

    form: str
    rows: tuple[Any, ...]
    problems: tuple[Problem, ...]
    bad: int
    read: int
    ended: bool


@dataclass(frozen=True, slots=True)
class Search:
    """What a search found. ``gold_rank``: of the first gold page among the first ``depth``; None if not there."""

    hits: tuple[Hit, ...]
    milliseconds: float
    gold_rank: int | None = None
    depth: int = GOLD_DEPTH


@dataclass(frozen=True, slots=True)
class Verified:
    """An index whose files are those that were built and that finds its own passages."""

    name: str
    files: int
    bytes: int
    seconds: float


class Data:
    """The verbs of the Data tab that have no other home."""

    def __init__(self, workspace: Workspace, loads: Loads, jobs: JobManager) -> None:
        self._workspace, self._loads, self._jobs = workspace, loads, jobs

    # before an import

    def preview_corpus(
        self, source: Path, *, form: str = "", page_map: Path | None = None, rows: int = ROWS
    ) -> Preview:
        """The first passages of a corpus. Raises UsageError if it cannot be read at all."""
        if not source.exists():
            raise NotFoundError(f"{source} does not exist.")
        form = form or form_of(source)
        pages = read_page_map(page_map) if page_map else None
        read = Source(source, Problems(skip=True, refuse_empty=True))
        passages: Iterator[Passage] = read_corpus(source, pages, form=form, source=read)
        return _previewed(form, passages, read, rows)

    def preview_questions(self, source: Path, *, form: str = "", rows: int = ROWS) -> Preview:
        """The first questions of a set. Raises UsageError if it cannot be read at all."""
        if not source.exists():
            raise NotFoundError(f"{source} does not exist.")
        form = form or form_of_questions(source)
        read = Source(source, Problems(skip=True))
        return _previewed(form, read_examples(source, form=form, source=read), read, rows)

    # corpora and questions

    def documents(self, corpus: str) -> Iterator[Passage]:
        """The documents of a corpus given by its name or place, in order. Raises UsageError for a bad row."""
        source = self._workspace.corpus(corpus)
        if not source.exists():
            raise NotFoundError(f"{source} does not exist.")
        return read_corpus(source)

    def corpora(self) -> dict[str, imported.Corpus]:
        """Name → card of every imported corpus."""
        return imported.imported_corpora(self._workspace.corpora)

    def delete_corpus(self, name: str) -> str:
        """Remove an imported corpus; returns a sentence. Indexes over it keep their passages."""
        imported.delete_corpus(self._workspace.corpora, name)
        return f"Deleted the corpus {name}. Indexes over it stay usable."

    def own_question_sets(self) -> list[str]:
        """The question sets that lie in the workspace: those can be deleted."""
        folder = self._workspace.path / "datasets"
        return [
            name for name, path in self._workspace.dataset_paths().items() if path.parent == folder
        ]

    def lost_with_questions(self, name: str) -> str:
        """One sentence: what the runs that asked a question set keep and lose without it; '' if none did."""
        path = self._workspace.dataset_paths().get(name)
        asked, unfinished = [], []
        for run in list_runs(self._workspace.runs):
            with contextlib.suppress(
                RalleError, KeyError, TypeError
            ):  # a damaged run has lost it anyway
                made = run.spec()
                if made["spec"]["dataset"] == name and made.get("dataset_file") in (
                    None,
                    "",
                    str(path),
                ):
                    asked.append(run)
                    unfinished += [run.name] if run.state()["state"] != "done" else []
        if not asked:
            return ""
        runs = (
            "1 run that asked it keeps its"
            if len(asked) == 1
            else f"{len(asked)} runs that asked it keep their"
        )
        lost = f"; {', '.join(unfinished)} can no longer be resumed" if unfinished else ""
        most = max(
            (run.path / QUESTIONS for run in asked),
            key=lambda path: path.stat().st_size if path.exists() else 0,
        )
        again = f" Those questions can still be asked: --dataset {most}."
        return f"{runs} questions, answers and scores{lost}.{again}"

    def delete_question_set(self, name: str) -> str:
        """Remove a question set of the workspace; returns a sentence. Raises UsageError for any other."""
        path = self._workspace.dataset_paths().get(name)
        if path is None or name not in self.own_question_sets():
            raise NotFoundError(
                f"There is no question set {name!r} in {self._workspace.path / 'datasets'}."
            )
        lost = self.lost_with_questions(name)
        try:
            path.unlink()
        except OSError as error:
            raise UsageError(f"{path} could not be removed: {error.strerror or error}.") from error
        return f"Deleted the question set {name}. {lost}".strip()

    # indexes

    def verify_index(self, name: str) -> Iterator[Building | Verified]:
        """Compare every file with its sha256 and search for known passages, as a job."""
        folder = self._folder(name)
        job = self._jobs.submit("check", name, folder, lambda job: self._verify(name, folder))
        return pieces_of(job)

    def _verify(self, name: str, folder: Path) -> Operation[Verified]:
        started = time.perf_counter()
        manifest = read_manifest(folder)
        yield from verify_index(folder, manifest)
        yield Building("searching for known passages", 0, 0, time.perf_counter() - started)
        encoder = (
            self._loads.encoders(manifest.encoder_name) if needs_encoder(manifest.kind) else None
        )
        search_known(folder, manifest, encoder)
        return Verified(name, len(manifest.files), manifest.bytes, time.perf_counter() - started)

    def delete_index(self, name: str) -> str:
        """Delete an index; returns a sentence. Raises UsageError while it is loaded, built or checked."""
        folder = self._folder(name)
        self._refuse_busy(name)
        count = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
        try:
            with beside(folder.parent, name) as gone:
                os.rename(folder, gone / name)  # from here on no name leads to it
        except OSError as error:
            raise UsageError(
                f"{folder} could not be removed: {error.strerror or error}."
            ) from error
        again = " It is built anew when it is next asked for." if name in STARTER_INDEXES else ""
        users = [
            other for other, entry in self._workspace.combinations().items() if name in entry.of
        ]
        broken = f" {', '.join(users)} can no longer be loaded." if users and not again else ""
        return f"Deleted the index {name} ({count / 1e6:,.1f} MB).{again}{broken}"

    def _folder(self, name: str) -> Path:
        """The folder of an index that is there, damaged or not."""
        folder = self._workspace.indexes / check_name("index", name)
        if not (folder / "manifest.json").exists():
            raise NotFoundError(f"There is no built index {name!r} in {self._workspace.indexes}.")
        return folder

    def _refuse_busy(self, name: str) -> None:
        if self._loads.is_loaded(name) or name in self._loads.loading():
            raise UsageError(f"{name!r} is loaded; unload it in the Models tab, then delete it.")
        jobs = (self._jobs.get(kind, name) for kind in ("build", "check"))
        if any(job and not job.done for job in jobs):
            raise UsageError(
                f"{name!r} is being built or checked now; wait for its end or stop it first."
            )

    # vectors

    @property
    def _cache(self) -> Path:
        return self._workspace.vectors

    def vectors(self) -> list[CachedVectors]:
        """The cached vectors."""
        return kept_vectors(self._cache)

    def delete_vectors(self, key: str) -> str:
        """Delete cached vectors; returns a sentence. Indexes keep what they hold."""
        return f"Deleted cached vectors, {delete_vectors(self._cache, key) / 1e6:,.1f} MB. Indexes keep what they hold."

    # builds

    def estimate_build(
        self,
        corpus: str,
        kind: str,
        *,
        encoder: str = "minilm",
        chunking: Chunking | None = None,
        form: str = "",
        parameters: Mapping[str, Any] | None = None,
    ) -> Generator[str | Estimate, None, None]:
        """What a build would take; see :mod:`rallebench.workspace.indexes.estimate`."""
        recipe = described(
            self._workspace,
            corpus,
            kind,
            encoder=encoder,
            chunking=chunking,
            form=form,
            settings=parameters,
        )
        yield from estimate_build(self._workspace, recipe, self._loads.encoders)

    # combinations

    def combine(
        self, name: str, kind: str, of: Sequence[str], settings: Mapping[str, Any], about: str = ""
    ) -> str:
        """Give a combination of retrievers a name; returns a sentence. Raises UsageError if it could not be used."""
        if name in self._workspace.combinations():
            raise UsageError(
                f"A combination {name!r} exists already; choose another name or delete it first."
            )
        entry = Combination(kind=kind, of=list(of), settings=dict(settings), about=about)
        self._workspace.save_retriever(name, entry)
        return f"Saved {name} in {self._workspace.path / 'retrievers.json'}."

    def own_combinations(self) -> list[str]:
        """The combinations of the workspace's own file; none if it is damaged."""
        path = self._workspace.path / "retrievers.json"
        with contextlib.suppress(RalleError):
            return list(read_combinations(path)) if path.exists() else []
        return []

    def delete_combination(self, name: str) -> str:
        """Forget a combination of the workspace; returns a sentence. Its parts stay."""
        path = self._workspace.path / "retrievers.json"
        entries = read_combinations(path) if path.exists() else {}
        if name not in entries:
            raise NotFoundError(f"There is no combination {name!r} in {path}.")
        if self._loads.is_loaded(name):
            raise UsageError(f"{name!r} is loaded; unload it in the Models tab, then delete it.")
        rest = {
            key: value.model_dump(exclude_defaults=True)
            for key, value in entries.items()
            if key != name
        }
        write_json(path, rest)
        return f"Deleted the combination {name}; what it was made of stays."

    # search

    def knobs_of(self, name: str) -> Mapping[str, Setting]:
        """The search-time settings of an index; none for anything else."""
        manifest = self._workspace.manifests().get(name)
        kind = manifest.kind if manifest else STARTER_INDEXES.get(name, "")
        return search_form(kind)

    def search(
        self,
        name: str,
        query: str,
        k: int,
        *,
        knobs: Mapping[str, Any] | None = None,
        gold_pages: frozenset[str] = frozenset(),
    ) -> Generator[str | Search, None, None]:
        """Ask a retriever, which is loaded first, yielding progress, what was found last."""
        if not query.strip():
            raise UsageError("The query is empty; type one, or choose a question.")
        if not 1 <= k <= 1000:
            raise UsageError(f"k is {k}; it must be from 1 to 1000.")
        chosen = checked(
            f"index {name!r}", self.knobs_of(name), knobs or {}, noun="setting of its search"
        )
        with self._loads.lease("a search that goes on") as lease:
            yield from lease.load(name, "retriever")
            retriever = self._loads.backends.retrievers[name]
            if chosen and hasattr(retriever, "with_knobs"):
                retriever = retriever.with_knobs(name, chosen)
            started = time.perf_counter()
            (hits,) = retriever.search([query], k)
            milliseconds = (time.perf_counter() - started) * 1000
            rank = _rank(hits, gold_pages)
            if gold_pages and rank is None and k < GOLD_DEPTH:
                rank = _rank(retriever.search([query], GOLD_DEPTH)[0], gold_pages)
        yield Search(hits, milliseconds, rank, max(k, GOLD_DEPTH))

    # the whole

    def manifests(self) -> tuple[dict[str, Manifest], dict[str, str]]:
        """(name → manifest, name → sentence of what is wrong) of the index folders of the workspace."""
        good, damaged = {}, {}
        for path in sorted(self._workspace.indexes.glob("*/manifest.json")):
            if path.parent.name.startswith("."):
                continue
            try:
                good[path.parent.name] = read_manifest(path.parent)
            except RalleError as error:
                damaged[path.parent.name] = str(error)
        return good, damaged


def _previewed(form: str, found: Iterator[Any], read: Source, rows: int) -> Preview:
    some = []
    with contextlib.suppress(UsageError):  # a file of bad rows alone: they are what is shown
        some = list(itertools.islice(found, MAX_ROWS))
    return Preview(
        form,
        tuple(some[:rows]),
        tuple(read.problems.first),
        read.problems.count,
        len(some) + read.problems.count,
        len(some) < MAX_ROWS,
    )


def _rank(hits: Sequence[Hit], pages: frozenset[str]) -> int | None:
    return next((rank for rank, hit in enumerate(hits, 1) if hit.passage.page_id in pages), None)
