"""Articles with one question each, as in BARAG's files, or a dataset with gold answers and no articles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, Hint, NotFoundError, UsageError
from rallebench.core.sources import Source
from rallebench.core.types import Example, Gold, Json, Question
from rallebench.datasets.reading import read_questions

PREFIX = "articles_"
CONTENT, QUESTION = ("content", "text"), ("question", "query", "input")
"""The row keys for an article and for its question."""


@dataclass(frozen=True, slots=True)
class BaragArticle:
    """An article with its question; '' without a question."""

    id: str
    title: str
    question: str
    content: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class ArticleSet:
    """A set of questions. ``articles``: the examples include their articles, see ``article_example``; ``answers``: at least
    one example has gold answers; ``without``: missing part → number of omitted rows."""

    name: str
    path: Path
    examples: tuple[Example, ...]
    articles: bool = False
    answers: bool = False
    without: Mapping[str, int] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the numbers for a reader."""
        return tuple(
            f"{n} rows of {self.path.name} have no {part} and were left out."
            for part, n in self.without.items()
        )


def _name(path: Path) -> str:
    return path.name.split(".json")[0].removeprefix(PREFIX)


def sets_in(folder: Path) -> dict[str, Path]:
    """Set name → its file in a folder."""
    return {_name(file): file for file in sorted(folder.glob(f"{PREFIX}*.jsonl*"))}


def find_file(path: Path, name: str) -> Path:
    """Return ``path`` itself if it is a file, else the file of the set ``name`` in that folder. Raises NotFoundError."""
    if path.is_file():
        return path
    sets = sets_in(path)
    if (file := sets.get(name.removeprefix(PREFIX))) is not None:
        return file
    known = ", ".join(sets) or "none"
    raise NotFoundError(
        f"{path} holds no set {name!r} of articles. It holds: {known}.",
        hint=Hint("set", "set=NAME"),
    )


def read_set(path: Path, limit: int | None = None) -> ArticleSet:
    """Read all rows with a question, in order. A row with ``a_d_id`` takes its article from another file; a row with ``input``
    is a question in KILT's form. Raises BadFileError, UsageError."""
    name = _name(path)
    first: Json = next((row for _, row in Source(path).objects()), {})
    if "input" in first and not any(isinstance(first.get(key), str) for key in CONTENT):
        examples = tuple(read_questions(path))[:limit]
        return ArticleSet(name, path, examples, answers=any(e.gold.answers for e in examples))
    articles = list(_articles(path))
    complete = [a for a in articles if a.question.strip() and a.content.strip()]
    without = {
        "question": sum(not a.question.strip() for a in articles),
        "article": sum(bool(a.question.strip()) and not a.content.strip() for a in articles),
    }
    if not complete:
        raise UsageError(
            f"No row of {path} has both a question and an article; 'title', 'content' and 'question' are needed."
        )
    examples = tuple(map(article_example, complete[:limit]))
    left_out = {part: n for part, n in without.items() if n}
    return ArticleSet(name, path, examples, articles=True, without=left_out)


def article_example(article: BaragArticle) -> Example:
    """An article's question as an example. The content is its reference, which the judge sees but models do not."""
    record = {
        "id": article.id,
        "input": article.question,
        "output": [],
        "title": article.title,
        "url": article.url,
    }
    return Example(Question(article.id, article.question), Gold(reference=article.content), record)


def _articles(path: Path) -> Iterator[BaragArticle]:
    pointed: dict[str, Mapping[str, Any]] | None = None
    seen: set[str] = set()
    for line, row in Source(path).objects():
        where = f"{path}, line {line}"
        if not isinstance(row.get("title"), str):
            raise BadFileError(f"{where} has no 'title'; a row has title, content and question.")
        if row.get("keep") is False:
            continue
        if row.get("a_d_id") and not any(row.get(key) for key in CONTENT):
            if pointed is None:
                beside = path.with_name(path.name.replace("A_f", "A_d"))
                rows = Source(beside).objects() if beside.is_file() else ()
                pointed = {str(other.get("id")): other for _, other in rows}
            row = {**pointed.get(str(row["a_d_id"]), {}), **row}
        id = str(row.get("id", line)).strip()
        if id in seen:
            raise BadFileError(f"{where} repeats the id {id!r}; every row needs its own.")
        seen.add(id)
        content, question = (
            next((row[key] for key in keys if row.get(key)), "") for keys in (CONTENT, QUESTION)
        )
        if not isinstance(content, str) or not isinstance(question, str):
            raise BadFileError(f"{where}: the article and its question should be texts.")
        yield BaragArticle(id, row["title"], question, content, str(row.get("url") or ""))


def by_title(paths: list[Path]) -> dict[tuple[str, str], BaragArticle]:
    """(title, question) → article, over several files; (title, '') → the first article with that title."""
    articles: dict[tuple[str, str], BaragArticle] = {}
    for path in paths:
        for article in _articles(path):
            if article.content.strip():
                articles.setdefault((article.title, article.question), article)
                articles.setdefault((article.title, ""), article)
    return articles
