"""TREC files: read and write runs, write qrels. Columns are separated by white space; ids are percent-encoded.

This follows trec_eval: scores are compared in single precision, ties are broken by descending id, and a question
without a line has no hits and scores 0.
"""

from __future__ import annotations

import math
import re
import unicodedata
from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

from rallebench.analysis.ranking import ended_pairs
from rallebench.core.errors import BadFileError
from rallebench.core.sources import Source
from rallebench.core.types import Episode, Example, Passage
from rallebench.engine.score import stored_examples
from rallebench.engine.store import RunFolder

Ranking = tuple[tuple[str, float], ...]
"""(id, score), best first."""

SPACE = re.compile(r"\s+")
_UNSAFE = ("Cc", "Cs", "Zs", "Zl", "Zp")


def encode(text: str) -> str:
    """Encode an id as one column: white space, control characters and ``%`` are percent-encoded.

    >>> encode("Black Sea"), encode("100%"), encode("Zürich/1")
    ('Black%20Sea', '100%25', 'Zürich/1')
    """
    return "".join(
        quote(c, safe="", errors="surrogatepass")
        if c in "%\ufeff" or unicodedata.category(c) in _UNSAFE
        else c
        for c in text.strip()
    )


def decode(column: str) -> str:
    """Decode the id in a column. Text that ``encode`` cannot have written is another program's id and stays
    unchanged.

    >>> decode("Black%20Sea"), decode("a%2Fb"), decode("50%")
    ('Black Sea', 'a%2Fb', '50%')
    """
    if "%" not in column:
        return column
    try:
        text = unquote_to_bytes(column).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return column
    return text if encode(text) == column else column


def decode_id(column: str, known: Collection[str]) -> str:
    """Decode the id in a column unless the dataset has exactly this id: page addresses may contain ``%20``."""
    text = decode(column)
    return column if column in known and text not in known else text


def run_lines(run: RunFolder) -> Iterator[str]:
    """Yield ``qid Q0 page rank score tag``: every retrieved page once, at its best rank, without failed questions.

    If scores do not strictly decrease in single precision, they are replaced by 1/rank, which keeps the order.
    """
    tag = SPACE.sub("_", run.name)
    for qid, pages in _rankings(run):
        scores = array("f", pages.values())
        falling = all(a > b for a, b in zip(scores, scores[1:])) and all(map(math.isfinite, scores))
        for rank, (page, own) in enumerate(pages.items(), 1):
            score = own if falling else 1.0 / rank
            yield f"{encode(qid)} Q0 {encode(page)} {rank} {score:.9g} {tag}\n"


def without_line(run: RunFolder) -> int:
    """Count the questions without a line in a run's file: failed, unanswered, or answered without retrieving
    anything.
    """
    return len(run.records()) - sum(bool(pages) for _, pages in _rankings(run))


def fractional_grades(run: RunFolder) -> int:
    """Count the grades of a run's questions that are not whole numbers."""
    grades = (grade for example in stored_examples(run) for grade in example.gold.grades.values())
    return sum(not float(grade).is_integer() for grade in grades)


def _rankings(run: RunFolder) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield (question, page → score, best first) for the answered questions."""
    pairs = list(ended_pairs(run))
    id_of_passage = _unit([example for example, _ in pairs], [episode for _, episode in pairs])
    for example, episode in pairs:
        pages: dict[str, float] = {}
        for hit in () if episode.error else episode.hits:
            if name := id_of_passage(hit.passage).strip():
                pages.setdefault(name, hit.score)
        yield example.question.qid, pages


def qrels_lines(run: RunFolder) -> Iterator[str]:
    """Yield ``qid 0 page grade`` for every judged page of the run's questions; gold passages stand in if no question
    names a page.
    """
    examples = stored_examples(run)
    pages = _names_pages(examples)
    for example in examples:
        gold = example.gold
        graded = gold.judgements if pages else dict.fromkeys(frozenset().union(*gold.passages), 1.0)
        for page, grade in sorted(graded.items()):
            yield f"{encode(example.question.qid)} 0 {encode(page)} {grade:.15g}\n"


def _unit(examples: Sequence[Example], episodes: Sequence[Episode]) -> Callable[[Passage], str]:
    """Return a function from a passage to the id that is judged. Like the metrics, it ignores passages without a
    page.
    """
    if _names_pages(examples):
        if any(hit.passage.page_id for episode in episodes for hit in episode.hits):
            return lambda passage: passage.page_id
    elif any(example.gold.passages for example in examples):
        return lambda passage: passage.doc_id
    return lambda passage: passage.page_id or passage.doc_id


def _names_pages(examples: Sequence[Example]) -> bool:
    return any(example.gold.judgements for example in examples)


def is_run_line(text: str) -> bool:
    """Return whether a line has the columns of a run, with ``Q0`` or ``0`` as the second.

    >>> is_run_line("q1 Q0 p1 1 2.5 tag"), is_run_line("q1 0 p1 1 2.5 tag"), is_run_line("who wrote a book in 1999")
    (True, True, False)
    """
    columns = text.split()
    return len(columns) == 6 and columns[1].upper() in ("Q0", "0")


def read_run(file: Path) -> Iterator[tuple[int, str, Ranking]]:
    """Yield (first line, encoded question id, pages) from a run file. Raises BadFileError."""
    lists: dict[str, dict[str, float]] = {}
    first: dict[str, int] = {}
    for line, text in Source(file).lines():
        if not text.strip():
            continue
        where = f"{file}, line {line}"
        try:
            qid, _, page, rank, score, *tag = text.split()
            if len(tag) > 1:  # an id that contains a space would shift the columns
                raise ValueError
            value, _ = float(score), int(rank)
        except ValueError:
            raise BadFileError(f"{where} is not 'qid Q0 page rank score tag'.") from None
        if not math.isfinite(value):
            raise BadFileError(
                f"{where} has the score {score}, which is not a number; give numbers."
            )
        pages = lists.setdefault(qid, {})
        if page in pages:
            raise BadFileError(
                f"{where} names {page[:60]!r} a second time for the question {qid[:60]!r}; "
                "keep the better line, as trec_eval asks for."
            )
        pages[page] = value
        first.setdefault(qid, line)
    for qid, pages in lists.items():
        yield first[qid], qid, _rank_pages(pages)


def _rank_pages(pages: dict[str, float]) -> Ranking:
    single = dict(zip(pages, array("f", pages.values())))
    by_name = sorted(pages, key=lambda page: page.encode("utf-8", "surrogatepass"), reverse=True)
    return tuple((page, pages[page]) for page in sorted(by_name, key=lambda page: -single[page]))
