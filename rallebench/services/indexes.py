"""Indexes and their vectors: estimated, built, verified, deleted."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.entries import Manifest
from rallebench.core.errors import NotFoundError, RalleError, UsageError
from rallebench.core.events import Operation
from rallebench.core.folders import beside, check_name
from rallebench.corpora.chunking import Chunking
from rallebench.retrievers import needs_encoder
from rallebench.services.jobs import JobManager, operation_of, pieces_of
from rallebench.services.model_entries import Models
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.indexes.build import build_index
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


@dataclass(frozen=True, slots=True)
class Verified:
    """An index whose files are those that were built and that finds its own passages."""

    name: str
    files: int
    bytes: int
    seconds: float


class Indexes:
    """The verbs about indexes."""

    def __init__(self, workspace: Workspace, models: Models, jobs: JobManager) -> None:
        self._workspace, self._models, self._jobs = workspace, models, jobs

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
        yield from estimate_build(self._workspace, recipe, self._models.encoders)

    def build_index(
        self,
        name: str,
        corpus: str | Path,
        kind: str,
        *,
        encoder: str = "minilm",
        page_map: Path | None = None,
        chunking: Chunking | None = None,
        form: str = "",
        parameters: dict[str, Any] | None = None,
        source: Path | None = None,
    ) -> Iterator[Building | Manifest]:
        """Build an index of the workspace, yielding progress, the Manifest last.

        ``corpus``: the name of an imported corpus, or a file or folder whose format is ``form`` ('' recognises it).
        It is built in a thread of its own: a page that goes away stops nothing, and whoever asks for
        the same name again follows the build that goes on.
        """
        settings: dict[str, Any] = {
            "encoder_name": encoder,
            "page_map": page_map,
            "chunking": chunking,
            "form": form,
            "parameters": parameters,
            "source": source,
        }
        passages = self._workspace.corpus(str(corpus))
        job = self._jobs.submit(
            "build",
            name,
            (passages, kind, settings),
            lambda job: operation_of(
                build_index(self._workspace.indexes, name, passages, kind, **settings), Manifest
            ),
        )
        return pieces_of(job)

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
            self._models.encoders(manifest.encoder_name) if needs_encoder(manifest.kind) else None
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
        if self._models.is_loaded(name) or name in self._models.loading():
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

    def manifest(self, name: str) -> Manifest:
        """What an index says of itself."""
        return read_manifest(self._workspace.indexes / name)
