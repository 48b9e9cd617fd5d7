"""Recipe of an index: corpus, kind, encoder, chunking and settings, checked before anything is read."""

from __future__ import annotations

from pathlib import Path

from rallebench.core.chunking import Chunking
from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.experiments import IndexRecipe
from rallebench.core.settings import check_values
from rallebench.core.starter import STARTER_CORPUS, STARTER_INDEXES, STARTER_PAGES
from rallebench.core.types import Json
from rallebench.corpora import CORPORA
from rallebench.corpora.chunking import default_chunking
from rallebench.corpora.imported import holds_documents
from rallebench.corpora.reading import IMPORTED
from rallebench.encoders.references import check_encoder
from rallebench.retrievers import INDEX_KINDS, kinds, needs_encoder


def index_recipe(
    corpus: Path,
    kind: str,
    *,
    encoder: str = "minilm",
    chunking: Chunking | None = None,
    form: str = "",
    page_map: Path | None = None,
    settings: Json | None = None,
) -> IndexRecipe:
    """Return a checked recipe with all its settings; reads and loads nothing. Raises UsageError."""
    full = check_settings(kind, settings or {})
    if form:
        CORPORA.entry(form)
    if needs_encoder(kind):
        check_encoder(encoder)
    if not corpus.exists():
        raise NotFoundError(f"{corpus} does not exist.")
    form = form or (IMPORTED if is_index(corpus) else "")
    encoder = encoder if needs_encoder(kind) else ""
    return IndexRecipe(corpus, kind, encoder, chunking, form, page_map, full)


def corpus_chunking(corpus: Path, encoder: str = "", form: str = "") -> Chunking | None:
    """Return the default chunking of a corpus: documents by the encoder's window, rows not at all.

    ``encoder``: '' for an index without one. Raises BadFileError for a folder that is not a corpus.
    """
    if is_index(corpus) or not holds_documents(corpus, form):
        return None
    return default_chunking(encoder)


def starter_recipe(name: str) -> IndexRecipe:
    """Return the recipe of a starter index."""
    return index_recipe(STARTER_CORPUS, STARTER_INDEXES[name], page_map=STARTER_PAGES)


def check_settings(kind: str, settings: Json) -> Json:
    """Return all settings of an index kind. Raises UsageError for an unknown kind, an unknown setting or an invalid value."""
    if kind not in kinds():
        raise UsageError(f"There is no index kind {kind!r}; known: {', '.join(kinds())}.")
    entry = INDEX_KINDS.entry(kind)
    full = check_values(f"index kind {kind!r}", entry.form, settings)
    if "check" in entry.traits:
        entry.traits["check"](full)
    return full


def lasting_settings(recipe: IndexRecipe) -> Json:
    """Return the settings that the files of an index depend on."""
    form = INDEX_KINDS.entry(recipe.kind).form
    return {name: value for name, value in recipe.settings.items() if form[name].lasting}


def is_index(path: Path) -> bool:
    """Return whether ``path`` is the folder of an index."""
    return (path / "manifest.json").is_file()
