"""Gold pages found by searching: the best passage of each page, and proposals of pages that contain the answer."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rallebench.core.answers import find_answers
from rallebench.core.dataset_edits import Evidence, GoldPage, QuestionDraft
from rallebench.core.types import Example, Hit, Passage
from rallebench.services.data import Data, Search
from rallebench.services.dataset_edits import DatasetEdits

DEPTH, MOST_PAGES = 40, 9
"""Passages that a search finds, and pages that are shown of them: one for each digit."""
MOST_PROPOSED = 500
"""Questions without a gold page for which pages are proposed at a time."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A page whose passage contains the answer of a question; None if no such page was found."""

    qid: str
    page: GoldPage | None


def search_pages(
    data: Data, index: str, query: str, *, by_passage: bool = False
) -> Generator[str, None, tuple[Hit, ...]]:
    """Search, and return the best passage of each page; yield the progress of loading the index. ``by_passage``: return every
    passage, for gold that names passages.
    """
    hits: tuple[Hit, ...] = ()
    for piece in data.search(index, query, DEPTH):
        if isinstance(piece, Search):
            hits = piece.hits
        else:
            yield piece
    best: dict[tuple[str, str], Hit] = {}
    for hit in hits:
        best.setdefault(gold_page(hit.passage, by_passage=by_passage).key, hit)
    return tuple(best.values())[:MOST_PAGES]


def gold_page(passage: Passage, *, by_passage: bool = False) -> GoldPage:
    """Return a passage as gold: its page, or itself if it has no page or the gold names passages."""
    named = by_passage or not passage.page_id
    return GoldPage(passage.page_id, passage.title, passage.doc_id if named else "")


def names_passages(evidence: Evidence) -> bool:
    """Return whether the gold of a question names passages instead of pages."""
    return any(page.doc_id for pages in evidence for page in pages)


def propose_pages(data: Data, index: str, examples: Sequence[Example]) -> Iterator[str | Proposal]:
    """Propose for each question the first page that contains its answer; yield the progress of loading the index, too."""
    for example in examples[:MOST_PROPOSED]:
        hits = yield from search_pages(data, index, example.question.text)
        held = (hit for hit in hits if find_answers(hit.passage.text, example.gold.answers))
        first = next(held, None)
        yield Proposal(example.question.qid, gold_page(first.passage) if first else None)


def save_pages(edits: DatasetEdits, dataset: str, chosen: Mapping[str, Evidence]) -> int:
    """Write the chosen pages of questions as one edit of the dataset. Return the number of changed questions."""
    drafts = dict[str, QuestionDraft]()
    marks = dict[str, str]()
    for qid, evidence in chosen.items():
        question = edits.read(dataset, qid)
        drafts[qid] = replace(question.draft, evidence=evidence)
        marks[qid] = question.mark
    return edits.change(dataset, drafts, marks)
