"""Every file of a folder as one document, whatever its name: what CRUD-RAG's own chunker reads.

Its news come in parts of 4 MB with an article on every line, and each part is one document, so chunks
cross the borders of articles. ``lines`` reads the same files article by article.
"""

from __future__ import annotations

from collections.abc import Iterator

from rallebench.core.errors import BadFileError
from rallebench.core.sources import Source, files_in
from rallebench.corpora import CORPORA, Row
from rallebench.corpora._documents import read_plain
from rallebench.corpora.folder import documents


@CORPORA.register(
    "parts", sample={"news/part-1": "Titan is a moon.\n", "news/part-2": "The Danube flows.\n"}
)
def read_parts(source: Source) -> Iterator[Row]:
    """A folder of text files, each of them one document (CRUD-RAG as it was run)."""
    files = files_in(source.path)
    if not files:
        raise BadFileError(f"{source.path} holds no file; text files are needed.")
    yield from documents(source, files, read_plain)
