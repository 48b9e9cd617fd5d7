"""Source articles for questions: a folder, a JSON lines file, a corpus, a MediaWiki dump or, on request, a MediaWiki API.

Articles are streamed, one at a time in memory. Unreadable entries are counted and reported, but do not stop the work.
"""

from __future__ import annotations

import hashlib
import heapq
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, Hint, NotFoundError, UsageError
from rallebench.core.experiments import ExperimentRequest, Row, RowsRequest
from rallebench.core.files import read_json
from rallebench.core.sources import Problems, Source, stamps
from rallebench.core.streams import plain_name, with_packed
from rallebench.core.types import Json, digest
from rallebench.corpora.cards import is_imported
from rallebench.corpora.document_files import SUFFIXES, is_document
from rallebench.corpora.reading import IMPORTED, corpus_form, read_corpus
from rallebench.engine.rowfile import RowFile
from rallebench.experiments.builders._source import SourceArticle, SourceReading
from rallebench.experiments.builders.replies import keep_state, one_line, text_lines
from rallebench.workspace.paths import WorkspaceFolder

SOURCES = ("auto", "folder", "list", "corpus", "dump", "mediawiki")
DUMPS = (".xml", ".xml.bz2", ".xml.gz")
DRAWN = 100
"""Number of articles drawn online if no limit is set."""
LISTS = with_packed(".jsonl", ".ndjson")

ID = ("id", "doc_id", "docid", "_id", "pageid", "page_id")
TITLE = ("title", "headline", "name")
TEXT = ("content", "text", "contents", "body")
URL = ("url", "link")
DATE = ("date", "timestamp", "published", "published_at", "created", "created_at")
QUESTION, ANSWER = ("question", "query"), ("answer", "answers")


@dataclass(frozen=True, slots=True)
class ArticleSettings:
    """The settings of the article source, shared by all builders."""

    articles: str = ""
    source: str = "auto"
    seed: int = 0


def articles_at(reference: str, workspace: WorkspaceFolder) -> tuple[str, Path]:
    """(a name in SOURCES, path) of articles, from a path or a corpus name. Raises NotFoundError, BadFileError."""
    if not reference.strip():
        raise UsageError(
            "No articles are given: a folder, a JSON-lines list, a corpus or a dump.",
            hint=Hint("choose", "articles"),
        )
    path = workspace.corpus(reference)
    if not path.exists():
        raise NotFoundError(f"{reference} does not exist.")
    name, is_file = path.name.lower(), path.is_file()
    if is_imported(path):
        kind = "corpus"
    elif name.endswith(DUMPS):
        kind = "dump"
    elif name.endswith(LISTS):
        kind = "list"
    elif is_file and is_document(path):
        kind = "folder"
    elif is_file and not plain_name(name).endswith((".tsv", ".csv", ".tab")):
        raise BadFileError(
            f"{path} is none of the kinds that articles come in: a folder or file of {', '.join(SUFFIXES)}, a list (.jsonl), "
            "a corpus (.tsv, .csv), a MediaWiki dump (.xml, .xml.bz2).",
            hint=Hint("set", "source=KIND"),
        )
    else:
        kind = "folder" if path.is_dir() and corpus_form(path) == "folder" else "corpus"
    return kind, path


def choose_source(request: ExperimentRequest[WorkspaceFolder]) -> tuple[str, Path]:
    """(a name in SOURCES, path), from the settings ``articles`` and ``source``; see ``articles_at``."""
    settings = request.read(ArticleSettings)
    kind, path = articles_at(settings.articles, request.workspace)
    return (kind if settings.source == "auto" else settings.source), path


def read_articles(kind: str, path: Path) -> tuple[SourceReading, Iterator[SourceArticle]]:
    """The articles of a source in order, with distinct ids. Raises BadFileError while reading an empty source."""
    reading = SourceReading(Source(path, Problems(skip=True)))
    if kind == "dump":
        from rallebench.experiments.builders._mediawiki import read_dump

        return reading, _distinct(read_dump(reading))
    readers = {"list": _read_lines, "folder": _documents, "corpus": _pages}
    return reading, _distinct(readers[kind](reading))


def _distinct(articles: Iterator[SourceArticle]) -> Iterator[SourceArticle]:
    seen: Counter[str] = Counter()
    for article in articles:
        seen[article.id] += 1
        n = seen[article.id]
        yield article if n == 1 else replace(article, id=f"{article.id}~{n}")


def draw_articles(
    articles: Iterator[SourceArticle], number: int | None, at_random: bool, seed: int
) -> Iterator[SourceArticle]:
    """The first ``number`` articles, or ``number`` articles drawn at random and held in memory; all articles if ``number`` is
    None."""
    if number is None or not at_random:
        yield from islice(articles, None if number is None else min(number, sys.maxsize))
        return

    def key(pair: tuple[int, SourceArticle]) -> bytes:
        text = f"{seed} {pair[1].id}".encode("utf-8", "replace")
        return hashlib.sha256(text).digest()[:8]

    # Take the smallest keys. They depend only on seed and id, so every machine draws the same articles.
    draws = heapq.nsmallest(number, enumerate(articles), key=key)
    yield from (article for _, article in sorted(draws, key=itemgetter(0)))


def plain_text(article: SourceArticle) -> str:
    """The plain text of an article, without wiki markup."""
    if not article.wikitext:
        return article.text
    from rallebench.experiments.builders._mediawiki import plain

    return plain(article.text)


# the stage of articles


@dataclass(frozen=True, slots=True)
class ArticleInput:
    """An article of the source. ``same``: fields that identify an earlier duplicate; {} if it is unique."""

    id: str
    article: SourceArticle
    same: Row


def articles_stage(
    request: ExperimentRequest[WorkspaceFolder],
    kind: str,
    path: Path,
    length: int,
    *,
    at_random: bool,
    api: str = "",
    too_short: str = "not longer than wanted",
) -> RowsRequest[ArticleInput]:
    """The first stage of a builder: articles with more than ``length`` characters, without duplicates.

    A row has id, title, url, date, characters, content, and the article's question and answers if it has any. ``api``: the
    address of a MediaWiki API to draw articles from; ``too_short``: the reason to omit a short article. Raises BadFileError
    while reading an empty source.
    """
    seed = request.read(ArticleSettings).seed if at_random else 0
    titles: dict[str, str] = {}
    texts: dict[str, str] = {}
    summary: dict[str, Any] = {}

    def inputs() -> Iterator[ArticleInput]:
        if api:
            articles = _online(request, api, summary)
        else:
            articles = _draw_from_source(kind, path, request.limit, at_random, seed, summary)
        for article in articles:
            same = _same(article, titles, texts) if len(article.text) > length else {}
            yield ArticleInput(article.id, article, same)

    def make(entry: ArticleInput) -> list[Row]:
        article = entry.article
        text = plain_text(article)
        row = {name: getattr(article, name) for name in ("id", "title", "url", "date")}
        if article.question:
            row |= {"question": article.question, "answers": list(article.answers)}
        state = keep_state(too_short if len(text) <= length else entry.same.get("why", ""))
        return [{**row, "characters": len(text), **entry.same, **state, "content": text}]

    stamp = api or digest(stamps(path))[:12]
    picked = "random" if at_random else "first"
    return RowsRequest(
        "1-articles",
        "articles",
        inputs,
        make,
        depends_on=lambda entry: [asdict(entry.article), entry.same, length],
        source=digest([kind, str(path), stamp, request.limit, picked, seed, length]),
        summary=lambda: summary,
    )


def source_notes(articles: RowFile) -> list[str]:
    """Notes for the user on the source of these articles, with the first unreadable entries."""
    return [*articles.summary.get("notes", ()), *articles.summary.get("problems", ())]


def _draw_from_source(
    kind: str, path: Path, limit: int | None, at_random: bool, seed: int, summary: dict[str, Any]
) -> Iterator[SourceArticle]:
    """The drawn articles of a source; adds the skipped entries to ``summary``."""
    reading, articles = read_articles(kind, path)
    number = 0
    for article in draw_articles(articles, limit, at_random, seed):
        number += 1
        yield article
    bad = reading.source.problems
    if not number:
        only = f", only {bad.count} entries that cannot be read; the first: "
        first = only + bad.first[0].message if bad.count else "."
        raise BadFileError(f"{path} holds no article{first}")
    unread = {"cannot be read": bad.count} if bad.count else {}
    summary["left_out"] = {**unread, **reading.passed_over}
    summary["problems"] = [problem.message for problem in bad.first]
    summary["notes"] = reading.notes


def _online(
    request: ExperimentRequest[WorkspaceFolder], api: str, summary: dict[str, Any]
) -> Iterator[SourceArticle]:
    """Articles of earlier sessions, then new ones; adds the skipped ones to ``summary``."""
    from rallebench.experiments.builders._mediawiki_api import random_articles

    drawn_rows = RowFile(request.folder / "1-articles.jsonl")
    drawn_rows.settle_all()
    number = request.limit or DRAWN
    known = set()
    for row in drawn_rows:
        known.add(row["id"])
        parts = row["id"], row["title"], row["content"], row.get("url", ""), row.get("date", "")
        yield SourceArticle(*parts)
    if number > len(known):
        passed_over: Counter[str] = Counter()
        notes: list[str] = []
        yield from random_articles(api, number - len(known), known, passed_over, notes)
        summary |= {"left_out": dict(passed_over), "notes": notes}


def _same(article: SourceArticle, titles: dict[str, str], texts: dict[str, str]) -> Row:
    """The reason and the earlier article if this one is a duplicate; otherwise {}."""
    title, text = " ".join(article.title.casefold().split()), digest(article.text)[:16]
    for reason, seen, key in (("same title", titles, title), ("same text", texts, text)):
        if key and key in seen:
            return {"why": reason, "same_as": seen[key]}
    titles[title] = texts[text] = article.id
    return {}


# the kinds


def _read_lines(reading: SourceReading) -> Iterator[SourceArticle]:
    """Articles from JSON lines with content (or text) and, optionally, id, title, url, date, question and answer."""
    source = reading.source
    for number, row in source.objects():
        text, answers = _first(row, TEXT), _first(row, ANSWER)
        if not isinstance(text, str) or not text.strip():
            has = ", ".join(list(row)[:8]) or "nothing"
            source.bad(number, f" has no 'content' or 'text'; it has {has}.")
            continue
        names = (ID, TITLE, URL, DATE, QUESTION)
        id, title, url, date, question = (one_line(_first(row, of)) for of in names)
        own = (url, date, question, text_lines(answers))
        yield SourceArticle(id or digest([title, text])[:12], title, text, *own)


def _first(row: Json, names: tuple[str, ...]) -> Any:
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)


def _documents(reading: SourceReading) -> Iterator[SourceArticle]:
    """The files of a folder; a date at the start of a file name becomes the article's date."""
    for passage in read_corpus(reading.source.path, form="folder", source=reading.source):
        begun = re.match(r"\d{4}-\d{2}-\d{2}", Path(passage.doc_id).name)
        yield SourceArticle(
            passage.doc_id, passage.title, passage.text, date=begun[0] if begun else ""
        )


def _pages(reading: SourceReading) -> Iterator[SourceArticle]:
    """The pages of a corpus; adjacent passages of a page form one article."""
    path = reading.source.path
    form = IMPORTED if is_imported(path) else ""
    passages = read_corpus(path, form=form, source=reading.source)
    for page, of_page in groupby(passages, key=lambda passage: passage.page_id or passage.doc_id):
        titles, texts = zip(*((passage.title, passage.text) for passage in of_page))
        yield SourceArticle(page, titles[0], "\n".join(texts))


# dates


def read_date(text: str) -> datetime | None:
    """A UTC date in ISO form (with or without time), with slashes and the year first, or in Chinese; None for any other text.

    >>> read_date("2022-05-21T00:21:46Z").isoformat(), read_date("2021/3/4").isoformat(), read_date("2023年7月1日").date().isoformat()
    ('2022-05-21T00:21:46+00:00', '2021-03-04T00:00:00+00:00', '2023-07-01')
    >>> read_date("yesterday"), read_date("2021-13-01"), read_date("2021").isoformat()
    (None, None, '2021-01-01T00:00:00+00:00')
    """
    text = text.strip()
    match = re.fullmatch(r"(\d{4})(?:[-/.年](\d{1,2})(?:[-/.月](\d{1,2})日?)?月?)?年?", text)
    try:
        if match:
            year, month, day = (int(part or 1) for part in match.groups())
            return datetime(year, month, day, tzinfo=timezone.utc)
        moment = datetime.fromisoformat(
            re.sub(r"(\.\d{1,6})\d*", r"\1", text.replace("Z", "+00:00"))
        )
    except ValueError:
        return None
    return moment.astimezone(timezone.utc) if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def read_dates(path: str) -> dict[str, str]:
    """Article id or title → date, from a JSON object or from two tab-separated columns. Raises BadFileError."""
    file = Path(path).expanduser()
    if file.suffix.lower() == ".json":
        value = read_json(file)
        if not isinstance(value, dict):
            raise BadFileError(
                f"{file} must be one JSON object from an article's id or title to its date."
            )
        return {str(key): one_line(date) for key, date in value.items()}
    dates = {}
    for number, line in Source(file).lines():
        if line.strip():
            name, tab, date = line.partition("\t")
            if not tab:
                raise BadFileError(
                    f"{file}, line {number} is not an article's id or title, a tab and its date."
                )
            dates[name.strip()] = date.strip()
    return dates
