"""A workspace for scripts and notebooks: opened and closed, its corpora, indexes, datasets and models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

from rallebench.api.dataset_editor import DatasetEditor
from rallebench.api.listing import Listing, TableRepr
from rallebench.api.progress import drain, follow, last
from rallebench.api.questions import Dataset, expand
from rallebench.api.wording import in_python
from rallebench.core.entries import Manifest
from rallebench.core.errors import UsageError
from rallebench.core.tables import Column, Table
from rallebench.core.terminal import visible
from rallebench.core.types import Example, Hit
from rallebench.services import model_entries
from rallebench.services.data import ChunkingChoice
from rallebench.services.questions import read_dataset
from rallebench.services.workbench import Workbench
from rallebench.views import lists

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import Self

EXCERPT = 90
"""Characters of a passage in a printed hit."""


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """The result of an import or a build: ``rows`` passages or questions, and ``skipped`` bad rows, the first of them in
    ``problems``. ``warnings``: sentences about the rest of the source."""

    name: str
    rows: int
    skipped: int = 0
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Hits(TableRepr, tuple[Hit, ...]):
    """The hits of a search, best first."""

    def __repr__(self) -> str:
        lines = (
            f"{rank:>3}. [{hit.score:.3f}] {hit.passage.title}: {shorten(hit.passage.text, EXCERPT)}"
            for rank, hit in enumerate(self, 1)
        )
        return visible("\n".join(lines)) or "no hits"

    @property
    def table(self) -> Table:
        columns = (Column("rank", "count"), Column("score"), Column("title", "text"))
        rows = tuple(
            (rank, hit.score, hit.passage.title, hit.passage.text)
            for rank, hit in enumerate(self, 1)
        )
        return Table("", (*columns, Column("text", "text")), rows)

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per hit, indexed by rank from 1: score, doc_id, page_id, title, text."""
        import pandas as pd

        rows = [
            (hit.score, p.doc_id, p.page_id, p.title, p.text) for hit in self for p in [hit.passage]
        ]
        columns = ["score", "doc_id", "page_id", "title", "text"]
        return pd.DataFrame(rows, columns=columns, index=pd.RangeIndex(1, len(rows) + 1))


class WorkspaceData:
    """An open workspace and its contents: corpora, indexes, datasets, models."""

    @in_python
    def __init__(
        self,
        path: str | Path = ".",
        *,
        progress: bool | None = None,
        track: bool = True,
        tracking_uri: str | None = None,
        allow_python: bool = False,
        mcp_servers: str | Path | None = None,
        base_settings: str | Path | None = None,
    ) -> None:
        """Open or make the workspace in the folder ``path``.

        ``progress``: False shows no bars and logs no warnings; None shows bars in a terminal and in a notebook. ``track``:
        log runs to MLflow, by default in the folder, else at ``tracking_uri``. ``allow_python``: let agents run programs
        written by a model. ``mcp_servers``: the file of MCP servers whose tools agents may call. ``base_settings``: the
        folder of RaLLe's base settings.
        """
        self.progress, self.track = progress, track
        self._workbench: Workbench | None = Workbench(
            Path(path).expanduser(),
            base_settings=Path(base_settings) if base_settings else None,
            mcp_servers=Path(mcp_servers).expanduser() if mcp_servers else None,
            tracking_uri=tracking_uri,
            allow_python=allow_python,
        )
        self.path = self._workbench.workspace.path

    # open and closed

    @property
    def _bench(self) -> Workbench:
        if self._workbench is None:
            raise UsageError(
                f"The workspace {self.path} is closed; open it again: Workspace({str(self.path)!r})."
            )
        return self._workbench

    def close(self) -> None:
        """Unload all models and end all work. Stored files stay; closing twice is harmless."""
        workbench, self._workbench = self._workbench, None
        if workbench is not None:
            workbench.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        closed = "" if self._workbench else ", closed"
        return f"Workspace({str(self.path)!r}{closed})"

    # names

    @in_python
    def list(self, kind: str) -> Listing:
        """Return the names of a kind, each with a line about it.

        ``kind``: corpora, datasets, retrievers, indexes (kinds of index), encoders, llms, presets, backends, chains, metrics,
        judges, suites, workflows, environments and others; a wrong one raises a RalleError that names them.

        >>> ws.list("chains")  # doctest: +SKIP
        """
        return Listing(kind, lists.abouts(self._bench.workspace, kind))

    # data

    @in_python
    def import_corpus(
        self,
        source: str | Path,
        name: str,
        *,
        format: str = "",
        columns: Mapping[str, str] | None = None,
        page_map: str | Path | None = None,
        skip_bad: bool = False,
        encoding: str = "",
    ) -> ImportSummary:
        """Import a corpus under a name: a folder of documents, a file, an archive of them, or a name of the Hugging Face hub, such as
        ``"hf:OWNER/NAME?split=train"``.

        ``format``: detected by default. ``columns``: for a table whose names do not tell, as in
        ``{"text": "body", "id": "key"}``; the roles are id, text, title, page and url. ``page_map``: a file from passage ids to page
        ids. ``skip_bad``: leave bad rows out and count them instead of raising a RalleError. ``encoding``: of the text, detected by
        default. Unchanged files are not read twice.

        >>> ws.import_corpus("docs/", name="docs")  # doctest: +SKIP
        ImportSummary(name='docs', rows=371, skipped=0, problems=(), warnings=())
        """
        pages = Path(page_map).expanduser() if page_map else None
        work = self._bench.data.import_corpus(
            name,
            expand(source),
            form=format,
            columns=columns,
            page_map=pages,
            skip_bad=skip_bad,
            encoding=encoding,
        )
        card = last(work, f"import {name}", self.progress)
        problems = tuple(problem.message for problem in card.problems)
        return ImportSummary(card.name, card.passages, card.skipped, problems, tuple(card.warnings))

    @in_python
    def import_dataset(
        self,
        source: str | Path,
        name: str,
        *,
        format: str = "",
        columns: Mapping[str, str] | None = None,
        sample: int | None = None,
        seed: int = 42,
        skip_bad: bool = False,
        encoding: str = "",
    ) -> ImportSummary:
        """Import questions under a name, in any known format, all of them or a ``sample`` drawn by ``seed``.

        ``source``: a file, a folder, an archive, or a name of the Hugging Face hub, such as
        ``"hf:rajpurkar/squad_v2?split=validation"``. The notes of the import keep the commit.
        ``columns``: for a table whose names do not tell, as in ``{"question": "q", "answer": "answers.text"}``; the roles
        are question, answer, answers, page, id, group and unanswerable.
        """
        work = self._bench.data.import_dataset(
            name,
            expand(source),
            form=format,
            columns=columns,
            sample=sample or 0,
            seed=seed,
            skip_bad=skip_bad,
            encoding=encoding,
        )
        dataset = last(work, f"import {name}", self.progress)
        problems = tuple(problem.message for problem in dataset.problems)
        return ImportSummary(name, dataset.questions, dataset.skipped, problems, dataset.warnings)

    @in_python
    def dataset(
        self,
        source: str | Path | Iterable[str | Mapping[str, object] | Example],
        *,
        name: str = "",
        columns: Mapping[str, str] | None = None,
    ) -> Dataset:
        """Return a dataset of this workspace by its name; a path or a list as for ``load_dataset``."""
        return self._dataset(source, name, columns)

    def _dataset(
        self,
        source: str | Path | Iterable[str | Mapping[str, object] | Example],
        name: str = "",
        columns: Mapping[str, str] | None = None,
    ) -> Dataset:
        work = read_dataset(self._bench.workspace.path, source, columns)
        own_name, examples, reference = follow(work, "read", self.progress)
        return Dataset(name or own_name, examples, "" if name else reference)

    @in_python
    def edit_dataset(self, name: str, *, copy_of: str | Path = "") -> DatasetEditor:
        """Return the editor of a dataset: it adds, changes and deletes questions, and undoes edits.

        ``copy_of``: a dataset, by name or path, that is copied under the new name first. Datasets that come with rallebench or
        lie elsewhere can only be edited as a copy.

        >>> ws.edit_dataset("my-qa", copy_of="starter-qa").change("qa-001", answers=["Bode"])  # doctest: +SKIP
        """
        if copy_of:
            last(self._bench.edits.copy(str(copy_of), name), f"copy {copy_of}", self.progress)
        return DatasetEditor(lambda: self._bench, name)

    @in_python
    def build_index(
        self,
        corpus: str | Path,
        kind: str = "bm25",
        name: str = "",
        *,
        encoder: str = "minilm",
        chunking: str | Mapping[str, object] | None = "default",
        format: str = "",
        page_map: str | Path | None = None,
        source: str | Path | None = None,
        ids: str | Path | None = None,
        **parameters: object,
    ) -> ImportSummary:
        """Build an index over a corpus; an equal one is not built again.

        ``corpus``: the name of an imported one, or a file or folder. ``kind``: see ``list("indexes")``. ``name``: by
        default ``CORPUS-KIND``. ``encoder``: makes the vectors, if the kind has any. ``chunking``: the name of a preset
        (kilt, barag, crud), a mapping such as ``{"size": 100, "unit": "words"}``, None for whole documents, or "default",
        which splits documents between sentences. ``source``: vectors or an index of another program over the same corpus;
        ``ids``: a file with their passage ids, if the order is another. ``parameters``: settings of the kind, such as ``k1=1.2``.

        >>> ws.build_index("docs", kind="bm25", k1=1.2)  # doctest: +SKIP
        ImportSummary(name='docs-bm25', rows=371, skipped=0, problems=(), warnings=())
        """
        corpus = str(corpus)
        name = name or f"{Path(corpus).stem}-{kind}"
        cut: ChunkingChoice = "default"
        if not isinstance(chunking, str):
            cut = chunking
        elif chunking != "default":
            cut = {"preset": chunking}
        work = self._bench.data.build_index(
            name,
            corpus,
            kind,
            chunking=cut,
            encoder=encoder,
            form=format,
            page_map=Path(page_map).expanduser() if page_map else None,
            parameters=parameters,
            source=Path(source).expanduser() if source else None,
            ids=Path(ids).expanduser() if ids else None,
        )
        manifest = last(work, f"build {name}", self.progress)
        assert isinstance(manifest, Manifest)
        return ImportSummary(manifest.name, manifest.passages, warnings=tuple(manifest.warnings))

    @in_python
    def search(self, retriever: str, query: str, k: int = 5, **settings: object) -> Hits:
        """Return the ``k`` best passages, best first; the retriever is loaded if needed. ``settings``: for the search.

        >>> [hit.passage.title for hit in ws.search("starter-bm25", "Who discovered Titan?", k=3)]  # doctest: +SKIP
        """
        work = self._bench.data.search(retriever, query, k, knobs=settings)
        return Hits(last(work, f"search {retriever}", self.progress).hits)

    # models

    @in_python
    def add_model(
        self,
        name: str,
        *,
        backend: str = "",
        preset: str = "",
        replace: bool = False,
        **settings: object,
    ) -> None:
        """Save a language model under a name in ``llms.json``; nothing is loaded yet.

        ``backend``: see ``list("backends")``; or a ``preset``, see ``list("presets")``. ``settings``: for the backend.
        ``replace``: change an existing model of that name. Without it, an equal entry is kept and a different one is an
        error.

        >>> ws.add_model(  # doctest: +SKIP
        ...     "my-llm", backend="openai_compatible", base_url="http://127.0.0.1:8000/v1", model="qwen"
        ... )
        """
        if bool(backend) == bool(preset):
            raise UsageError(
                "A model has a backend or a preset; give one of them, backend= or preset=."
            )
        entry = model_entries.build_entry(
            self._bench.workspace, settings, preset=preset, backend=backend
        )
        if self._bench.models.own().get(name.strip()) != entry:
            self._bench.models.add(name, entry, replace=replace)

    @in_python
    def load(self, *names: str) -> None:
        """Load language models or retrievers now; otherwise the first use loads them."""
        for name in names:
            known = self._bench.workspace.llms()
            kind = "language model" if name in known else "retriever"
            drain(self._bench.models.load(name, kind), f"load {name}", self.progress)

    @in_python
    def unload(self, *names: str) -> None:
        """Unload language models or retrievers, by default all, and free their memory."""
        models = self._bench.models
        for name in names or [line.name for line in models.status()]:
            models.unload(name)
