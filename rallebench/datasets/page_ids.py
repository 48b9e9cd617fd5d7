"""The gold pages of published sets by the ids of an imported corpus.

A published set names its pages by titles or addresses, and the ids of a corpus are often others, such as KILT's numbers. If an
imported corpus has the pages of most questions, their ids take the place of the set's own.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from rallebench.core.errors import BadFileError
from rallebench.core.events import Pacer
from rallebench.core.readers import naming
from rallebench.core.sources import Problems, Source
from rallebench.core.types import Json
from rallebench.datasets import DATASETS, Record
from rallebench.datasets.survey import PROGRESS_SECONDS, NamedPages, PageFinder, lost_pages

Names = tuple[str, ...]
"""Names of one page, the most reliable first: its id in the set and its title."""


@dataclass(frozen=True, slots=True)
class CorpusPages:
    """The pages of a corpus that a set names. ``of``: name → ids; ``questions``: number with gold pages, of which the corpus has
    pages for ``known``; ``unknown``: pages that it lacks."""

    corpus: str
    of: Mapping[str, Sequence[str]]
    questions: int
    known: int
    unknown: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        return (
            f"The gold pages of {self.known:,} of {self.questions:,} questions are pages of the corpus {self.corpus!r} by their id, "
            "title or address; its ids are used."
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence about the pages that the corpus lacks, if any."""
        lost = NamedPages(corpus=self.corpus, unknown=self.unknown)
        return (lost_pages(lost),) if self.unknown else ()


def find_corpus_pages(
    source: Source, form: str, find: PageFinder, most: int | None = None
) -> Generator[int, None, CorpusPages | None]:
    """Look up the gold pages of the first ``most`` questions (all if None), yielding the bytes read from time to time.

    Return None for a format whose fields a survey reads, for a file that can be read only once, and if no corpus has the pages of at
    least half of the questions or all ids are the corpus's already.
    """
    again = source.path.is_file() or source.path.is_dir()
    if "fields" in DATASETS.entry(form).traits or not again or not find(()):
        return None
    reading, pacer = (
        Source(source.path, Problems(skip=True), encoding=source.encoding),
        Pacer(PROGRESS_SECONDS),
    )
    questions: list[tuple[Names, ...]] = []
    try:
        with naming(source.path, form):
            for _, record in islice(DATASETS[form](reading), most):
                if pages := tuple(dict.fromkeys(map(_names, _items(record)))):
                    questions.append(pages)
                if pacer.due():
                    yield reading.done
    except BadFileError:
        return None
    return _best_corpus(questions, find({name for q in questions for page in q for name in page}))


def _best_corpus(
    questions: Sequence[tuple[Names, ...]], corpora: Mapping[str, Mapping[str, Sequence[str]]]
) -> CorpusPages | None:
    best: CorpusPages | None = None
    for corpus, of in corpora.items():
        known = sum(any(_ids(of, page) for page in pages) for pages in questions)
        if 2 * known >= len(questions) and known > (best.known if best else 0):
            best = CorpusPages(corpus, of, len(questions), known)
    if best is None:
        return None
    distinct = dict.fromkeys(page for pages in questions for page in pages)
    if all(list(_ids(best.of, page)) in ([], [page[0]]) for page in distinct):
        return None
    unknown = tuple(page[0] for page in distinct if not _ids(best.of, page))
    return CorpusPages(best.corpus, best.of, best.questions, best.known, unknown)


def _items(record: Record) -> Iterator[Json]:
    return (item for element in record["output"] for item in element.get("provenance") or ())


def _names(item: Json) -> Names:
    names = (str(item.get(key) or "").strip() for key in ("wikipedia_id", "title"))
    return tuple(dict.fromkeys(filter(None, names)))


def _ids(of: Mapping[str, Sequence[str]], page: Names) -> Sequence[str]:
    return next((ids for name in page if (ids := of.get(name))), ())


def with_corpus_ids(
    records: Iterable[tuple[int, Record]], pages: CorpusPages | None
) -> Iterator[tuple[int, Record]]:
    """Yield the records with the ids of a corpus. If a page of a set has several there, any page of the set is an evidence set."""
    for line, record in records:
        if pages is not None:
            output = [new for element in record["output"] for new in _elements(element, pages.of)]
            record = {**record, "output": output}
        yield line, record


def _elements(element: Json, of: Mapping[str, Sequence[str]]) -> list[Json]:
    """Return an output element with the ids of a corpus, and further evidence sets."""
    items = element.get("provenance") or ()
    groups = [
        [{**item, "wikipedia_id": page} for page in _ids(of, _names(item))] or [item]
        for item in items
    ]
    if all(len(group) == 1 for group in groups):
        together = [item for group in groups for item in group]
        return [{**element, "provenance": together} if items else element]
    first, *others = [item for group in groups for item in group]
    return [{**element, "provenance": [first]}, *({"provenance": [item]} for item in others)]
