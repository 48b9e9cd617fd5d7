"""Text files with one article per line, such as CRUD-RAG's news (arXiv:2401.17043, ``80000_docs/``).

The files of a folder are read in the order of their names. An article's id is ``file:line``; it has no title.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rallebench.core.errors import BadFileError
from rallebench.core.sources import Source, files_in
from rallebench.corpora import CORPORA, CorpusRow


@CORPORA.register(
    "lines",
    sample={"news.txt": "Titan is a moon of Saturn.\nThe Danube flows into the Black Sea.\n"},
)
def read_lines(source: Source) -> Iterator[CorpusRow]:
    """A text file, or a folder of them, with one article per line (CRUD-RAG)."""
    files = files_in(source.path)
    if not files:
        raise BadFileError(
            f"{source.path} contains no files; give a file with one article per line."
        )
    before = 0
    for file in files:
        inner = replace(source, path=file, done=0, total=0)
        name = file.relative_to(source.path).as_posix() if source.path.is_dir() else file.name
        try:
            for number, line in inner.lines():
                if line.strip():
                    source.done = before + inner.done
                    yield CorpusRow(number, f"{name}:{number}", line.strip())
        except BadFileError as error:  # a damaged packed file; the other files are still read
            if len(files) == 1 or not source.problems.skip:
                raise
            source.problems.add(0, str(error))
        before += inner.total
        source.done = before
