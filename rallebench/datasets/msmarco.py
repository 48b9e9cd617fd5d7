"""MS MARCO's questions with answers, v2.1 (Nguyen et al. 2016, arXiv:1611.09268): records with ``query_id``, ``query``, ``answers``,
``passages`` (is_selected, passage_text, url) and ``wellFormedAnswers``.

The distributed file is one JSON object of columns, ``{"answers": {"0": […]}, …}``; MS MARCO's own ``tojsonl.py`` makes JSON lines
of it. Answers and well-formed answers are accepted. The answer "No Answer Present." makes a question unanswerable, as in MS MARCO's
evaluation. Each selected passage is an evidence set of its own; its page is its address. The copy on Hugging Face has columns
instead of a list of passages. Its queries with judgements (passage ranking) are other files: see ``beir``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rallebench.core.errors import BadFileError
from rallebench.core.json_columns import column_rows
from rallebench.core.sources import Source, has_suffix
from rallebench.core.streams import open_text
from rallebench.datasets import DATASETS, Record
from rallebench.datasets._published import PublishedSet, record
from rallebench.datasets._values import parse

NO_ANSWER = "No Answer Present."
COLUMNS = ("answers", "passages", "query", "query_id", "query_type", "wellFormedAnswers")
_COLUMNS_BEGIN = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:%s)"\s*:\s*\{' % "|".join(COLUMNS).encode()
)
_HEAD = 200
"""Bytes at the beginning of a file that tell columns from rows."""


def _fits(row: Record) -> bool:
    passages = row["passages"]
    first = passages if isinstance(passages, Mapping) else next(iter(passages), {})
    return not first or "is_selected" in first


MSMARCO = PublishedSet(
    "MS MARCO",
    ("query_id", "query", "answers", "passages"),
    "train_v2.1.json or dev_v2.1.json of MS MARCO",
    like=_fits,
    english=False,
)
SAMPLE = """{"answers": {"0": ["Titan."], "1": ["No Answer Present."]},
 "passages": {"0": [{"is_selected": 0, "passage_text": "It has rings.", "url": "http://example.org/saturn"}, {"is_selected": 1, "passage_text": "Titan is its largest moon.", "url": "http://example.org/titan"}],
  "1": [{"is_selected": 0, "passage_text": "It has rings.", "url": "http://example.org/saturn"}]},
 "query": {"0": "largest moon of saturn", "1": "oldest ring of saturn"}, "query_id": {"0": 11, "1": 12}, "query_type": {"0": "ENTITY", "1": "ENTITY"},
 "wellFormedAnswers": {"0": ["Titan is the largest moon of Saturn."], "1": "[]"}}
"""


def _has_columns(path: Path) -> bool:
    """Return whether a JSON file begins with a column of MS MARCO."""
    if not path.is_file() or not has_suffix(".json")(path):
        return False
    try:
        with open_text(path) as (handle, _):
            return bool(_COLUMNS_BEGIN.match(handle.read(_HEAD)))
    except BadFileError:
        return False


def recognises(path: Path) -> bool:
    """Return whether a file has MS MARCO's columns, or rows with its fields."""
    return _has_columns(path) or MSMARCO.recognises(path)


def _texts(value: object) -> list[object]:
    """Return the answers in a list, or in text such as ``[]``."""
    parsed = parse(value)
    listed = parsed if isinstance(parsed, list) else [parsed]
    return [text for text in listed if text]


def _gold_passages(passages: Record | Iterable[Record]) -> Iterator[Record]:
    """Yield the selected passages in a list, or in columns."""
    if isinstance(passages, Mapping):
        passages = [dict(zip(passages, values)) for values in zip(*passages.values(), strict=True)]
    for passage in passages:
        if passage["is_selected"] == 1:
            yield {"wikipedia_id": passage["url"], "text": passage["passage_text"]}


def _record(row: Record) -> Record:
    answers = _texts(row["answers"])
    unanswerable = NO_ANSWER in answers
    answers += _texts(row.get("wellFormedAnswers"))
    return record(
        row["query"],
        [] if unanswerable else answers,
        sets=[[passage] for passage in _gold_passages(row["passages"])],
        id=row["query_id"],
        dataset="msmarco",
        unanswerable=True if unanswerable else None,
    )


@DATASETS.register("msmarco", recognises=recognises, sample={"dev_v2.1.json": SAMPLE})
def read_msmarco(source: Source) -> Iterator[tuple[int, Record]]:
    """MS MARCO's questions with answers (v2.1); the gold pages are the addresses of the selected passages."""
    rows = column_rows(source) if _has_columns(source.path) else None
    return MSMARCO.records(source, _record, rows)
