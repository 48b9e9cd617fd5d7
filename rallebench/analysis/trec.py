"""TREC files: read and write runs (also MS MARCO's and ranx's), write qrels. Columns are separated by white space; ids are percent-encoded.

This follows trec_eval: scores are compared in single precision, ties are broken by descending id, and a question
without a line has no hits and scores 0.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from urllib.parse import quote, unquote_to_bytes

from rallebench.analysis.ranking import ended_pairs
from rallebench.core.sources import Source
from rallebench.core.types import Episode, Example, Passage
from rallebench.engine.score import stored_examples
from rallebench.engine.store import RunFolder

Ranking = tuple[tuple[str, float], ...]
"""(id, score), best first."""

SPACE = re.compile(r"\s+")
TREC_FORM = "'qid Q0 page rank score tag'"
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
        for rank, (page, score) in enumerate(_falling(pages).items(), 1):
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


def ranks_lines(run: RunFolder) -> Iterator[str]:
    """Yield ``qid<TAB>page<TAB>rank``, as MS MARCO's script reads a run."""
    for qid, pages in _rankings(run):
        for rank, page in enumerate(pages, 1):
            yield f"{encode(qid)}\t{encode(page)}\t{rank}\n"


def scores_lines(run: RunFolder) -> Iterator[str]:
    """Yield one object ``{qid: {page: score}}``, as ranx, BEIR and pytrec_eval read a run, a line for each question."""
    mark = "{"
    for qid, pages in _rankings(run):
        yield f"{mark}{json.dumps(qid)}: {json.dumps(_falling(pages))}"
        mark = ",\n"
    yield "{}\n" if mark == "{" else "}\n"


def _falling(pages: Mapping[str, float]) -> dict[str, float]:
    """Return the scores as they are if they strictly decrease in single precision, else 1/rank, which keeps the order."""
    scores = array("f", pages.values())
    falling = all(a > b for a, b in zip(scores, scores[1:])) and all(map(math.isfinite, scores))
    numbers = scores if falling else (1.0 / rank for rank in range(1, len(pages) + 1))
    return dict(zip(pages, numbers))


def is_run_line(text: str) -> bool:
    """Return whether a line has the columns of a run, with ``Q0`` or ``0`` as the second.

    >>> is_run_line("q1 Q0 p1 1 2.5 tag"), is_run_line("q1 0 p1 1 2.5 tag"), is_run_line("who wrote a book in 1999")
    (True, True, False)
    """
    columns = text.split()
    return len(columns) == 6 and columns[1].upper() in ("Q0", "0")


def is_ranking_line(text: str) -> bool:
    """Return whether a line has the columns of MS MARCO's runs (question, page, rank), or of ColBERT's (and a score). A
    line of TREC's judgements, ``qid 0 page grade``, has not.

    >>> is_ranking_line("q1\\tp1\\t1"), is_ranking_line("q1 p1 1 27.5"), is_ranking_line("q1 0 7 1"), is_ranking_line("a b c")
    (True, True, False, False)
    """
    columns = text.split()
    if _names_columns(columns):
        return True
    if len(columns) not in (3, 4) or (len(columns) == 4 and columns[1] == "0"):
        return False
    return all(_number(column) is not None for column in columns[2:])


def _names_columns(columns: Sequence[str]) -> bool:
    """Return whether this is a header such as BEIR's ``query-id corpus-id score``."""
    return len(columns) in (3, 4) and columns[0].lower() in ("query-id", "query_id", "qid")


def _number(text: str) -> float | None:
    """The finite number in a column, None for any other text.

    >>> _number("1e3"), _number("nan"), _number("1_0"), _number("x")
    (1000.0, None, None, None)
    """
    try:
        value = math.nan if "_" in text else float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def read_run(source: Source) -> Iterator[tuple[int, str, Ranking]]:
    """Yield (first line, encoded question id, pages) from a run's file with TREC's six columns (the tag may lack), or with
    three: question, page, and a rank (MS MARCO) or a score; a fourth is the score. Raises BadFileError.

    The third column holds ranks if all of it are whole numbers above 0.
    """
    lists: dict[str, dict[str, float]] = {}
    first: dict[str, int] = {}
    ranks = True
    for line, text in source.lines():
        columns = text.split()
        if not columns or (not lists and _names_columns(columns)):
            continue
        try:
            qid, page, score = _row(columns)
        except ValueError as error:
            source.bad(line, str(error))
            continue
        pages = lists.setdefault(qid, {})
        if page in pages:
            source.bad(
                line,
                f" names {page[:60]!r} a second time for the question {qid[:60]!r}; "
                "keep the better line, as trec_eval asks for.",
            )
            continue
        ranks = ranks and len(columns) == 3 and columns[2].isdecimal() and score > 0
        pages[page] = score
        first.setdefault(qid, line)
    for qid, pages in lists.items():
        if ranks:
            if len({*pages.values()}) < len(pages):
                source.bad(
                    first[qid],
                    f" begins the question {qid[:60]!r}, which has a rank twice; give ranks from 1.",
                )
                continue
            pages = {page: 1.0 / rank for page, rank in pages.items()}
        yield first[qid], qid, rank_pages(pages)


def _row(columns: Sequence[str]) -> tuple[str, str, float]:
    """Return question, page, and score or rank. Raises ValueError with the end of a sentence."""
    numbers: Sequence[str]
    if len(columns) in (3, 4):
        qid, page, *numbers = columns
        form = "'qid page rank' or 'qid page score'"
    elif len(columns) in (5, 6) and columns[3].lstrip("+-").isdecimal():
        (qid, _, page, _), numbers = columns[:4], columns[4:5]
        form = TREC_FORM
    else:  # an id that contains a space would shift the columns
        raise ValueError(f" is not {TREC_FORM}.")
    score = 0.0
    for text in numbers:
        value = _number(text)
        if value is None:
            raise ValueError(
                f" has the score {text[:60]}, which is not a number; each line is {form}."
            )
        score = value
    return qid, page, score


def rank_pages(pages: dict[str, float]) -> Ranking:
    """Return the pages best first, as trec_eval ranks them."""
    single = dict(zip(pages, array("f", pages.values())))
    by_name = sorted(pages, key=lambda page: page.encode("utf-8", "surrogatepass"), reverse=True)
    return tuple((page, pages[page]) for page in sorted(by_name, key=lambda page: -single[page]))
