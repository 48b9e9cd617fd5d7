"""BEIR corpora (Thakur et al. 2021, arXiv:2104.08663): a folder with ``corpus.jsonl``, or that file itself.

Each line is ``{"_id": …, "title": …, "text": …, "metadata": {…}}``; the metadata is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rallebench.core.errors import BadFileError
from rallebench.core.sources import Source, innermost
from rallebench.core.streams import with_packed
from rallebench.corpora import CORPORA, CorpusRow
from rallebench.corpora.jsonl import read_jsonl

NAMES = with_packed("corpus.jsonl")


def corpus_file(path: Path) -> Path:
    """Return the corpus file of a BEIR folder, or ``path`` itself. Raises BadFileError for a folder without one."""
    if not path.is_dir():
        return path
    if file := _file_in(path):
        return file
    raise BadFileError(
        f"{path} contains no corpus.jsonl; name a folder in BEIR's format, or the file itself."
    )


def _file_in(folder: Path) -> Path | None:
    inner = innermost(folder)
    return next((inner / name for name in NAMES if (inner / name).is_file()), None)


def _recognises(path: Path) -> bool:
    return path.is_dir() and _file_in(path) is not None


SAMPLE = """{"_id": "d1", "title": "Titan", "text": "Titan is a moon of Saturn."}
{"_id": "d2", "title": "", "text": "The Danube flows into the Black Sea."}
"""


@CORPORA.register("beir", recognises=_recognises, sample={"scifact/corpus.jsonl": SAMPLE})
def read_beir(source: Source) -> Iterator[CorpusRow]:
    """BEIR's corpus.jsonl or a folder with it: _id, title, text."""
    inner = replace(source, path=corpus_file(source.path), total=0)
    source.total = inner.total
    for row in read_jsonl(inner):
        source.done = inner.done
        yield row
