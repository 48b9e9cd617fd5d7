"""Articles with a question each, as BARAG's files have them; or a question set with gold answers, without articles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, NotFoundError, UsageError
from rallebench.core.sources import Source
from rallebench.core.types import Example, Gold, Question
from rallebench.datasets.reading import read_questions

PREFIX = "articles_"
TEXT, ASKED = ("content", "text"), ("question", "query", "input")
"""What the article and its question may be called."""


@dataclass(frozen=True, slots=True)
class Article:
    """``question`` is '' where nobody asked one."""

    id: str
    title: str
    question: str
    content: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class ArticleSet:
    """``articles`` by question id; ``without``: what is absent → how many were left out for it."""

    name: str
    path: Path
    examples: tuple[Example, ...]
    articles: Mapping[str, Article]
    without: Mapping[str, int] = field(default_factory=dict)
    answers: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the numbers must know."""
        return tuple(
            f"{n} rows of {self.path.name} have no {what} and were left out."
            for what, n in self.without.items()
        )


def find_file(path: Path, wanted: str) -> Path:
    """The file itself, or the file of the set ``wanted`` in a folder. Raises NotFoundError."""
    if path.is_file():
        return path
    sets = {
        file.name.split(".json")[0].removeprefix(PREFIX): file
        for file in sorted(path.glob(f"{PREFIX}*.jsonl*"))
    }
    known = ", ".join(sets) or "none"
    if wanted.removeprefix(PREFIX) in sets:
        return sets[wanted.removeprefix(PREFIX)]
    raise NotFoundError(
        f"{path} holds no set {wanted!r} of articles; choose with --set set=NAME. It holds: {known}."
    )


def read_set(path: Path, limit: int | None = None) -> ArticleSet:
    """Every row that has a question, in order. Rows that point to another file's article (``a_d_id``) take it from there;
    rows with ``input`` are questions in KILT's form. Raises BadFileError, UsageError."""
    name = path.name.split(".json")[0].removeprefix(PREFIX)
    first = next((row for _, row in Source(path).objects()), {})
    if "input" in first and not any(isinstance(first.get(key), str) for key in TEXT):
        examples = tuple(read_questions(path))[:limit]
        return ArticleSet(
            name, path, examples, {}, {}, any(example.gold.answers for example in examples)
        )
    found: dict[str, Article] = {}
    without: dict[str, int] = {}
    for article in _articles(path):
        what = (
            "question"
            if not article.question.strip()
            else "article"
            if not article.content.strip()
            else ""
        )
        if what:
            without[what] = without.get(what, 0) + 1
        else:
            found[article.id] = article
    if not found:
        raise UsageError(
            f"No row of {path} has both a question and an article; 'title', 'content' and 'question' are needed."
        )
    kept = dict(list(found.items())[:limit])
    return ArticleSet(name, path, tuple(map(_example, kept.values())), kept, without)


def _example(article: Article) -> Example:
    record = {
        "id": article.id,
        "input": article.question,
        "output": [],
        "title": article.title,
        "url": article.url,
    }
    return Example(Question(article.id, article.question), Gold(reference=article.content), record)


def _articles(path: Path) -> Iterator[Article]:
    pointed: dict[str, Mapping[str, Any]] | None = None
    seen: set[str] = set()
    for line, row in Source(path).objects():
        where = f"{path}, line {line}"
        if not isinstance(row.get("title"), str):
            raise BadFileError(f"{where} has no 'title'; a row has title, content and question.")
        if row.get("keep") is False:
            continue
        if row.get("a_d_id") and not any(row.get(key) for key in TEXT):
            if pointed is None:
                pointed = _by_id(path.with_name(path.name.replace("A_f", "A_d")))
            row = {**pointed.get(str(row["a_d_id"]), {}), **row}
        id = str(row.get("id", line)).strip()
        if id in seen:
            raise BadFileError(f"{where} repeats the id {id!r}; every row needs its own.")
        seen.add(id)
        content, question = (
            next((row[key] for key in keys if row.get(key)), "") for keys in (TEXT, ASKED)
        )
        if not isinstance(content, str) or not isinstance(question, str):
            raise BadFileError(f"{where}: the article and its question should be texts.")
        yield Article(id, row["title"], question, content, str(row.get("url") or ""))


def _by_id(path: Path) -> dict[str, Mapping[str, Any]]:
    if not path.is_file():
        return {}
    return {str(row.get("id")): row for _, row in Source(path).objects()}


def by_title(paths: list[Path]) -> dict[tuple[str, str], Article]:
    """(title, question) → article, over several files; also (title, '') for each title's first."""
    found: dict[tuple[str, str], Article] = {}
    for path in paths:
        for article in _articles(path):
            if article.content.strip():
                found.setdefault((article.title, article.question), article)
                found.setdefault((article.title, ""), article)
    return found
