"""The state of the import panel in one browser window, and its source as read."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rallebench.core.chunking import Chunking
from rallebench.core.columns import Columns
from rallebench.core.errors import UsageError
from rallebench.core.events import complete
from rallebench.core.sources import stamps
from rallebench.core.types import Example
from rallebench.gui.frame import Page
from rallebench.services.chunk_surveys import (
    AnswerPlaces,
    ChunkSurvey,
    DocumentSample,
    find_places,
    sample_documents,
)
from rallebench.services.hub_sources import HubSource
from rallebench.services.import_previews import Choices, FirstRows, Looked, watch

INDEXES = (("bm25", "Words (BM25)"), ("dense", "Dense"), ("hybrid", "Hybrid"))


@dataclass
class OwnQuestions:
    """Questions about a corpus before its import. ``dataset``: one of the workspace; ``source``: a file that is imported with the
    corpus, with its ``columns``; None while they are as guessed.
    """

    dataset: str = ""
    source: Path | None = None
    columns: Columns | None = None
    looked: Looked | None = None


@dataclass
class ImportState:
    """The panel of a window. ``form``: the format; ``columns``: None while they are as guessed; ``pages``: the page map;
    ``indexes``: None until chosen; ``has_chunking``: True if the chunking was chosen or derived from the preview. ``download``: the
    name of the hub that is fetched; ``hub``: its files. ``looked``: the source as read, by ``looked_at``; ``survey``: its chunks;
    ``opens``: True if the result is tried in Build when the import is complete.
    """

    step: str = "choose"
    source: Path | None = None
    pages: Path | None = None
    kind: str = ""
    form: str = ""
    encoding: str = ""
    columns: Columns | None = None
    download: str = ""
    hub: HubSource | None = None
    name: str = ""
    indexes: list[str] | None = None
    encoder: str = "minilm"
    chunking: Chunking | None = None
    has_chunking: bool = False
    questions: OwnQuestions = field(default_factory=OwnQuestions)
    looked: Looked | None = None
    looked_at: object = None
    survey: ChunkSurvey | None = None
    sample: DocumentSample | None = None
    places: AnswerPlaces | None = None
    opens: bool = False

    @property
    def targets(self) -> list[str]:
        """The indexes to build; all until chosen."""
        return [name for name, _ in INDEXES] if self.indexes is None else self.indexes

    def forget_answers(self) -> None:
        """Forget the places of the answers after other questions were chosen."""
        self.places = self.survey = None


def watch_source(page: Page, state: ImportState) -> Generator[FirstRows, None, Looked]:
    """Return this window's source as detected; it is read again only after a change of the files or of the choices."""
    if state.source is None:
        raise UsageError("Nothing was chosen to import; choose a file or a folder.")
    choices = Choices(
        state.source,
        state.kind,
        state.form,
        state.columns,
        state.pages,
        page.workspace.corpora,
        state.encoding,
    )
    version = (choices, [tuple(stamps(path)) for path in (state.source, state.pages) if path])
    if state.looked is None or state.looked_at != version:
        state.looked = yield from watch(choices)
        state.looked_at, state.sample = version, None
        state.forget_answers()
    return state.looked


def look(page: Page, state: ImportState) -> Looked:
    """Return this window's source as detected."""
    return complete(watch_source(page, state))


def known_questions(page: Page, state: ImportState) -> Sequence[Example]:
    """Return the questions about the corpus: those of the same source, of a file, or of a dataset of the workspace; () for none."""
    chosen = state.questions
    if state.looked and state.looked.kind == "both" and state.looked.dataset:
        return state.looked.dataset.seen
    if chosen.looked and chosen.looked.dataset:
        return chosen.looked.dataset.seen
    return page.workspace.questions(chosen.dataset) if chosen.dataset else ()


def survey_sample(state: ImportState) -> DocumentSample:
    """Return the documents whose chunks are counted."""
    assert state.looked is not None and state.looked.corpus is not None
    state.sample = state.sample or sample_documents(state.looked.corpus.seen)
    return state.sample


def answer_places(page: Page, state: ImportState) -> AnswerPlaces:
    """Return the places of the answers of the questions in the sample."""
    if state.places is None:
        examples = known_questions(page, state)
        state.places = find_places(survey_sample(state).documents, examples) if examples else None
    return state.places or AnswerPlaces()
