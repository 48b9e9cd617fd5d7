"""The data of a workspace: import, build, check, search and delete corpora, datasets, indexes, vectors and
combinations.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from rallebench.core.chunking import Chunking
from rallebench.core.columns import Columns
from rallebench.core.entries import Combination, Manifest
from rallebench.core.errors import BadFileError, Hint, NotFoundError, UsageError
from rallebench.core.events import Progress
from rallebench.core.experiments import IndexRecipe
from rallebench.core.settings import Setting, check_values
from rallebench.core.starter import STARTER_INDEXES
from rallebench.core.types import Hit, Json
from rallebench.corpora import imported
from rallebench.corpora.cards import Corpus
from rallebench.corpora.chunking import choose
from rallebench.corpora.imported import import_corpus
from rallebench.corpora.page_names import find_pages
from rallebench.datasets.edit_history import history_file
from rallebench.datasets.import_notes import ImportNotes, notes_file, read_notes
from rallebench.datasets.importing import ImportedDataset, import_dataset
from rallebench.datasets.tasks import SEED
from rallebench.engine.stored_runs import lost_with_questions
from rallebench.hub.fetching import Fetched
from rallebench.retrievers import search_form
from rallebench.services import hub_sources
from rallebench.services.index_builds import BUILD, IndexBuild, start_build
from rallebench.services.index_folders import VerifiedIndex, delete, index_folder, verify
from rallebench.services.jobs import JobEvent, JobManager, job_pieces
from rallebench.services.models import ModelManager
from rallebench.workspace.entries import (
    changing,
    read_combinations,
)
from rallebench.workspace.indexes.cache import CacheEntry, cache_entries, delete_stored
from rallebench.workspace.indexes.estimate import BuildEstimate, estimate_build
from rallebench.workspace.indexes.recipes import corpus_chunking, index_recipe
from rallebench.workspace.indexes.vectors import CachedVectors, delete_vectors, kept_vectors
from rallebench.workspace.paths import WorkspaceFolder

GOLD_DEPTH = 100
DefaultChunking = Literal["default"]
"""Split documents to fit the encoder's input; keep rows as passages."""
ChunkingChoice = Chunking | Json | DefaultChunking | None
"""A chunking, the keywords of ``corpora.chunking.choose``, the default, or None for whole documents."""


@dataclass(frozen=True, slots=True)
class Search:
    """The hits of a search. ``gold_rank``: rank of the first gold page; None if it is not among the first ``depth``
    hits.
    """

    hits: tuple[Hit, ...]
    milliseconds: float
    gold_rank: int | None = None
    depth: int = GOLD_DEPTH


class Data:
    """Imports, builds, searches and deletes the data of a workspace. It is stateless, so threads may share it."""

    def __init__(self, workspace: WorkspaceFolder, models: ModelManager, jobs: JobManager) -> None:
        self._workspace, self._models, self._jobs = workspace, models, jobs
        self._datasets = workspace.path / "datasets"
        self._retrievers = workspace.path / "retrievers.json"

    # corpora

    def import_corpus(
        self,
        name: str,
        source: Path | str | Fetched,
        *,
        form: str = "",
        columns: Columns | None = None,
        page_map: Path | None = None,
        skip_bad: bool = False,
        encoding: str = "",
    ) -> Iterator[Progress | Corpus]:
        """Import a corpus under a name, yielding progress, then the Corpus; see ``corpora.imported.import_corpus``.

        ``source``: a file, a folder, an archive, a name of the hub, or files of it.
        """
        named = yield from hub_sources.fetch_source(source)
        with hub_sources.open_source(self._workspace, named) as files:
            corpora = self._workspace.corpora
            yield (
                yield from import_corpus(
                    corpora,
                    name,
                    files,
                    form=form,
                    columns=columns,
                    page_map=page_map,
                    skip_bad=skip_bad,
                    encoding=encoding,
                    origin=named.origin if isinstance(named, Fetched) else "",
                    warnings=named.warnings if isinstance(named, Fetched) else (),
                )
            )

    def delete_corpus(self, name: str) -> str:
        """Delete an imported corpus; return a sentence. Indexes built from it keep their passages."""
        imported.delete_corpus(self._workspace.corpora, name)
        return f"Deleted the corpus {name}. Indexes over it stay usable."

    # datasets

    def import_dataset(
        self,
        name: str,
        source: Path | str | Fetched,
        *,
        form: str = "",
        columns: Columns | None = None,
        skip_bad: bool = False,
        sample: int = 0,
        seed: int = SEED,
        encoding: str = "",
    ) -> Iterator[Progress | ImportedDataset]:
        """Import a dataset under a name, in full or as a sample, yielding progress, then the ImportedDataset; see
        ``datasets.importing.import_dataset``.

        ``source``: a file, a folder, an archive, a name of the hub, or files of it. If a field names pages of an imported corpus, these become the
        gold pages.
        """
        find = partial(find_pages, self._workspace.corpora)
        named = yield from hub_sources.fetch_source(source)
        with hub_sources.open_source(self._workspace, named) as files:
            yield (
                yield from import_dataset(
                    self._datasets,
                    name,
                    files,
                    form=form,
                    columns=columns,
                    skip_bad=skip_bad,
                    sample=sample,
                    seed=seed,
                    find_pages=find,
                    encoding=encoding,
                    origin=named.origin if isinstance(named, Fetched) else "",
                    warnings=named.warnings if isinstance(named, Fetched) else (),
                )
            )

    def import_notes(self, name: str) -> ImportNotes:
        """Notes on lost and guessed data from a dataset's import, and a sentence if they cannot be read; empty if
        there are none.
        """
        if name not in self._workspace.own_datasets():
            return ImportNotes()
        try:
            return read_notes(self._workspace.dataset_paths()[name])
        except BadFileError as error:
            return ImportNotes(warnings=(str(error),))

    def delete_dataset(self, name: str) -> str:
        """Delete a dataset of the workspace; return a sentence. Raises UsageError for datasets from elsewhere."""
        if name not in self._workspace.own_datasets():
            raise NotFoundError(f"There is no dataset {name!r} in {self._datasets}.")
        path = self._workspace.dataset_paths()[name]
        lost = lost_with_questions(self._workspace.runs, name, path)
        try:
            path.unlink()
            notes_file(path).unlink(missing_ok=True)
            history_file(path).unlink(missing_ok=True)
        except OSError as error:
            raise UsageError(f"{path} could not be removed: {error.strerror or error}.") from error
        return f"Deleted the dataset {name}. {lost}".strip()

    # indexes and vectors

    def estimate_build(
        self,
        corpus: str,
        kind: str,
        *,
        encoder: str = "minilm",
        chunking: ChunkingChoice = "default",
        form: str = "",
        parameters: Json | None = None,
    ) -> Generator[str | BuildEstimate, None, None]:
        """Estimate the cost of a build, with the keywords of ``build_index``. See
        :mod:`rallebench.workspace.indexes.estimate`.
        """
        recipe = self._recipe(corpus, kind, encoder, chunking, form, parameters)
        yield from estimate_build(self._workspace, recipe, self._models.encoders)

    def _recipe(
        self,
        corpus: str | Path,
        kind: str,
        encoder: str,
        chunking: ChunkingChoice,
        form: str,
        parameters: Json | None,
        page_map: Path | None = None,
    ) -> IndexRecipe:
        folder = self._workspace.corpus(str(corpus))
        cut = choose(**chunking) if isinstance(chunking, Mapping) else None
        if isinstance(chunking, Chunking):
            cut = chunking
        recipe = index_recipe(
            folder,
            kind,
            encoder=encoder,
            chunking=cut,
            form=form,
            page_map=page_map,
            settings=parameters,
        )
        if chunking == "default":
            default = corpus_chunking(folder, recipe.encoder, recipe.form)
            recipe = replace(recipe, chunking=default)
        return recipe

    def default_chunking(
        self, corpus: str | Path, encoder: str = "", form: str = ""
    ) -> Chunking | None:
        """Return the default chunking of a corpus; see ``workspace.indexes.recipes.corpus_chunking``."""
        return corpus_chunking(self._workspace.corpus(str(corpus)), encoder, form)

    def build_index(
        self,
        name: str,
        corpus: str | Path,
        kind: str,
        *,
        encoder: str = "minilm",
        chunking: ChunkingChoice = "default",
        form: str = "",
        page_map: Path | None = None,
        parameters: Json | None = None,
        source: Path | None = None,
        ids: Path | None = None,
    ) -> Iterator[JobEvent | Manifest]:
        """Build an index in the workspace, yielding progress, then the Manifest.

        ``corpus``: the name of an imported corpus, or a file or folder. ``form``: the format of its files, '' to detect
        it. ``chunking``: by default to fit the encoder's input. ``parameters``: settings of the index kind. ``source``:
        vectors of another program, whose rows are the documents; ``ids``: a file with their ids, if the order is another. The build runs in its own thread: closing the page
        does not stop it, and a second request for the same name follows the running build.
        """
        if source is not None and chunking == "default":  # the rows of the source are the documents
            chunking = None
        recipe = self._recipe(corpus, kind, encoder, chunking, form, parameters, page_map)
        build = IndexBuild(recipe, source, ids)
        return job_pieces(start_build(self._workspace, self._jobs, name, build), Manifest)

    def verify_index(self, name: str) -> Iterator[JobEvent | VerifiedIndex]:
        """Verify the sha256 of every file and search for known passages, as a job."""
        folder = index_folder(self._workspace, name)
        encoders = self._models.encoders
        job = self._jobs.submit("check", name, folder, lambda job: verify(folder, encoders))
        return job_pieces(job, VerifiedIndex)

    def delete_index(self, name: str) -> str:
        """Delete an index; return a sentence. Raises UsageError while it is loaded, being built or being checked."""
        folder = index_folder(self._workspace, name)
        self._refuse_loaded(name)
        jobs = (self._jobs.get(kind, name) for kind in (BUILD, "check"))
        if any(job and not job.done for job in jobs):
            raise UsageError(
                f"{name!r} is being built or checked now; wait for its end or stop it first."
            )
        return delete(self._workspace, folder)

    def _refuse_loaded(self, name: str) -> None:
        if self._models.is_loaded(name) or name in self._models.loading():
            raise UsageError(f"{name!r} is loaded.", hint=Hint("unload", name))

    def vectors(self) -> list[CachedVectors]:
        return kept_vectors(self._workspace.vectors)

    def kept_files(self) -> list[CacheEntry]:
        """Passages and texts kept for future builds, largest first."""
        return cache_entries(self._workspace)

    def delete_kept_file(self, key: str) -> str:
        """Delete kept passages or texts; return a sentence. Raises NotFoundError, and UsageError while an index is
        being prepared.
        """
        return delete_stored(self._workspace, key)

    def delete_vectors(self, key: str) -> str:
        """Delete cached vectors; return a sentence. Indexes keep their own copies."""
        return f"Deleted cached vectors, {delete_vectors(self._workspace.vectors, key) / 1e6:,.1f} MB. Indexes keep what they hold."

    # combinations

    def combine(
        self, name: str, kind: str, of: Sequence[str], settings: Json, about: str = ""
    ) -> str:
        """Save a combination of retrievers under a name; return a sentence. Raises UsageError if it would not work."""
        if name in self._workspace.combinations():
            raise UsageError(
                f"A combination {name!r} exists already; choose another name or delete it first."
            )
        entry = Combination(kind=kind, of=list(of), settings=dict(settings), about=about)
        self._workspace.save_retriever(name, entry)
        return f"Saved {name} in {self._retrievers}."

    def delete_combination(self, name: str) -> str:
        """Delete a combination of the workspace; return a sentence. Its members are kept."""
        with changing(self._retrievers, read_combinations) as entries:
            if name not in entries:
                raise NotFoundError(f"There is no combination {name!r} in {self._retrievers}.")
            self._refuse_loaded(name)
            del entries[name]
        return f"Deleted the combination {name}; its members stay."

    def states(self) -> dict[str, str]:
        """Index or combination → ``checked``, ``damaged``, ``building``, ``loading`` or ``loaded``; others are
        omitted.
        """
        states: dict[str, str] = {}
        for job in self._jobs.list("check"):
            if job.done and job.error is None:
                states[job.name] = "checked"
            elif job.done and job.status == "failed":
                states[job.name] = "damaged"
        states |= {job.name: "building" for job in self._jobs.list(BUILD, active=True)}
        states |= dict.fromkeys(self._models.loading(), "loading")
        return states | {line.name: "loaded" for line in self._models.status()}

    # search

    def search_settings(self, name: str) -> Mapping[str, Setting]:
        """Search-time settings of an index; none for other retrievers."""
        manifest = self._workspace.manifests().get(name)
        kind = manifest.kind if manifest else STARTER_INDEXES.get(name, "")
        return search_form(kind)

    def search(
        self,
        name: str,
        query: str,
        k: int,
        *,
        knobs: Json | None = None,
        gold_pages: frozenset[str] = frozenset(),
    ) -> Generator[str | Search, None, None]:
        """Search with a retriever, loading it first; yields progress, then the Search."""
        if not query.strip():
            raise UsageError("The query is empty; type one, or choose a question.")
        if not 1 <= k <= 1000:
            raise UsageError(f"k is {k}; it must be from 1 to 1000.")
        chosen = check_values(
            f"index {name!r}", self.search_settings(name), knobs or {}, noun="search setting"
        )
        with self._models.lease("a running search") as lease:
            yield from lease.load(name, "retriever")
            retriever = self._models.backends.retrievers[name]
            if chosen and hasattr(retriever, "with_knobs"):
                retriever = retriever.with_knobs(name, chosen)
            started = time.perf_counter()
            (hits,) = retriever.search([query], k)
            milliseconds = (time.perf_counter() - started) * 1000
            rank = _rank(hits, gold_pages)
            if gold_pages and rank is None and k < GOLD_DEPTH:
                rank = _rank(retriever.search([query], GOLD_DEPTH)[0], gold_pages)
        yield Search(hits, milliseconds, rank, max(k, GOLD_DEPTH))


def _rank(hits: Sequence[Hit], pages: frozenset[str]) -> int | None:
    return next((rank for rank, hit in enumerate(hits, 1) if hit.passage.page_id in pages), None)
