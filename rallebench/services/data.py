"""What people do with corpora, question sets, indexes and vectors besides building them: look, check, delete, combine, search."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.entries import Combination
from rallebench.core.errors import NotFoundError, RalleError, UsageError
from rallebench.core.files import write_json
from rallebench.core.settings import Setting, checked
from rallebench.core.sources import Problem, Problems, Source
from rallebench.core.types import Hit, Passage
from rallebench.corpora import imported
from rallebench.corpora.imported import Corpus, ImportProgress, import_corpus
from rallebench.corpora.page_maps import read_page_map
from rallebench.corpora.reading import form_of, read_corpus
from rallebench.datasets.importing import QuestionSet, import_dataset
from rallebench.datasets.reading import form_of as form_of_questions
from rallebench.datasets.reading import read_examples
from rallebench.engine.store import QUESTIONS, list_runs
from rallebench.retrievers import search_form
from rallebench.services.indexes import Indexes
from rallebench.services.jobs import operation_of, pieces_of
from rallebench.workspace.entries import read_combinations
from rallebench.workspace.paths import STARTER_INDEXES

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


class Data(Indexes):
    """The verbs about corpora, question sets, combinations and searches, beside those about indexes."""

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
        users, unfinished = [], []
        for run in list_runs(self._workspace.runs):
            with contextlib.suppress(
                RalleError, KeyError, TypeError
            ):  # a damaged run has lost it anyway
                stored = run.spec()
                if stored["spec"]["dataset"] == name and stored.get("dataset_file") in (
                    None,
                    "",
                    str(path),
                ):
                    users.append(run)
                    unfinished += [run.name] if run.state()["state"] != "done" else []
        if not users:
            return ""
        runs = (
            "1 run that asked it keeps its"
            if len(users) == 1
            else f"{len(users)} runs that asked it keep their"
        )
        lost = f"; {', '.join(unfinished)} can no longer be resumed" if unfinished else ""
        most = max(
            (run.path / QUESTIONS for run in users),
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

    def import_corpus(
        self,
        name: str,
        source: Path,
        *,
        form: str = "",
        page_map: Path | None = None,
        skip_bad: bool = False,
    ) -> Iterator[ImportProgress | Corpus]:
        """Import a corpus under a name, yielding progress, the Corpus last; it goes on in a thread of its own."""
        settings: dict[str, Any] = {"form": form, "page_map": page_map, "skip_bad": skip_bad}
        job = self._jobs.submit(
            "import",
            name,
            (source, settings),
            lambda job: operation_of(
                import_corpus(self._workspace.corpora, name, source, **settings), Corpus
            ),
        )
        return pieces_of(job)

    def import_dataset(
        self,
        name: str,
        source: Path,
        *,
        form: str = "",
        skip_bad: bool = False,
        sample: int = 0,
        seed: int = 42,
    ) -> QuestionSet:
        """Import a question set under a name, all of it or a sample; returns what was made of it."""
        folder = self._workspace.path / "datasets"
        return import_dataset(
            folder, name, source, form=form, skip_bad=skip_bad, sample=sample, seed=seed
        )

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
        if self._models.is_loaded(name):
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
        with self._models.lease("a search that goes on") as lease:
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


def _previewed(form: str, passages: Iterator[Any], read: Source, rows: int) -> Preview:
    some = []
    with contextlib.suppress(UsageError):  # a file of bad rows alone: they are what is shown
        some = list(itertools.islice(passages, MAX_ROWS))
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
