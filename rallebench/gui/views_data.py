"""Corpora, builds, indexes and searches as HTML. Pure: everything is escaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from rallebench.core.entries import Manifest
from rallebench.core.errors import StoppedError
from rallebench.core.memory import size
from rallebench.core.sources import Problem
from rallebench.core.types import Example, Gold, Passage
from rallebench.corpora.chunking import Chunking, spans
from rallebench.corpora.imported import Corpus, ImportProgress
from rallebench.datasets.importing import QuestionSet
from rallebench.gui.views import (
    badge,
    duration,
    empty,
    error,
    note,
    progress_bar,
    rank_badge,
    ranked,
)
from rallebench.gui.works import Works
from rallebench.services.data import Preview, Search
from rallebench.services.indexes import Verified
from rallebench.workspace.indexes.estimate import Estimate
from rallebench.workspace.indexes.vectors import Building
from rallebench.workspace.paths import STARTER

CUT_TEXT, SHOWN_TEXT = 240, 20_000
SHOWN_ENDS = 5

NO_CORPUS = "No corpus is imported yet. Import one above; it is then listed here, previews at once and can be built into many indexes."


def table(heads: Sequence[tuple[str, bool]], rows: Sequence[Sequence[str]]) -> str:
    """A table; heads are (text, whether it is a number), cells are HTML."""
    kinds = [' class="num"' if number else "" for _, number in heads]
    top = "".join(f"<th{kind}>{escape(text)}</th>" for kind, (text, _) in zip(kinds, heads))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, row)) + "</tr>"
        for row in rows
    )
    return f'<table class="rb-table"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'


def cut_text(text: str, most: int = CUT_TEXT) -> str:
    """The beginning of a text, escaped, on one line."""
    flat = " ".join(text.split())
    return escape(flat if len(flat) <= most else flat[: most - 1] + "…")


# before an import


def passages(preview: Preview) -> str:
    """The first rows of a corpus."""
    rows = [
        [
            f"<code>{cut_text(p.doc_id, 40)}</code>",
            cut_text(p.title, 60),
            cut_text(p.text),
            cut_text(p.page_id, 40),
        ]
        for p in preview.rows
    ]
    heads = [("Id", False), ("Title", False), ("Text", False), ("Page", False)]
    return _preview(preview, "passages", table(heads, rows))


def questions(preview: Preview) -> str:
    """The first rows of a question set."""
    rows = [_question(example) for example in preview.rows]
    heads = [("Id", False), ("Question", False), ("Gold answers", False), ("Gold pages", False)]
    return _preview(preview, "questions", table(heads, rows))


def _question(example: Example) -> list[str]:
    gold = example.gold
    pages = [gold.titles.get(page) or page for page in sorted(gold.pages)]
    return [
        f"<code>{cut_text(example.question.qid, 40)}</code>",
        cut_text(example.question.text),
        _several(gold.answers),
        _several(pages),
    ]


def _several(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - 3} more" if len(texts) > 3 else ""
    return " · ".join(cut_text(text, 60) for text in texts[:3]) + more if texts else "none"


def _preview(preview: Preview, what: str, rows: str) -> str:
    read = f"{preview.read:,} rows read" + ("" if preview.ended else ", there are more")
    badges = badge(f"format {preview.form}", "page") + badge(read)
    if preview.bad:
        badges += badge(f"{preview.bad:,} bad", "bad")
    head = f'<div class="rb-label"><span>First {what}</span>{badges}</div>'
    return (
        head
        + (rows if preview.rows else empty(f"No {what} can be read here."))
        + problems(preview.problems, preview.bad)
    )


def problems(first: Sequence[Problem], count: int) -> str:
    """The sentences about bad rows."""
    if not count:
        return ""
    lines = "".join(f"<li>{escape(problem.message)}</li>" for problem in first)
    more = f"<li>and {count - len(first):,} more</li>" if count > len(first) else ""
    return f'<div class="rb-note"><b>Bad rows</b><ul class="rb-list">{lines}{more}</ul></div>'


# imports


def question_set(made: QuestionSet) -> str:
    """What came out of importing a question set."""
    left_out = f", {made.skipped:,} rows left out" if made.skipped else ""
    said = f"Imported {made.name}: {made.questions:,} questions{left_out}. It can be chosen in Develop and Benchmark."
    return note(said, "good") + problems(made.problems, made.skipped)


def importing(name: str, news: Any) -> str:
    """How far an import is, or what came out of it."""
    if isinstance(news, Corpus):
        left_out = f", {news.skipped:,} rows left out" if news.skipped else ""
        said = f"Imported {name}: {news.passages:,} passages{left_out}, {size(news.bytes)}, {duration(news.seconds)}."
        bad = [Problem(row.line, row.message) for row in news.problems]
        lost = news.passages_without_page if news.has_pages else 0
        warning = (
            note(f"{lost:,} passages have no page; they can never count as gold pages.")
            if lost
            else ""
        )
        return note(said, "good") + warning + problems(bad, news.skipped)
    if not isinstance(news, ImportProgress):
        return note(f"Importing {name} …")
    parts = [f"{news.passages:,} passages", f"{news.rate:,.0f} a second"]
    if news.skipped:
        parts.append(f"{news.skipped:,} bad rows left out")
    if news.seconds_left is not None:
        parts.append(f"about {duration(news.seconds_left)} left")
    return progress_bar(news.done, news.total) + note(f"Importing {name}: {', '.join(parts)} …")


def works(all_of: Works, shown: Callable[[str, Any], str]) -> str:
    """Work that goes on, then how the last ended, the newest first."""
    stopping = all_of.stopping()
    parts = [
        shown(name, news) + (note(f"Stopping {name} …") if name in stopping else "")
        for name, news in all_of.going_on().items()
    ]
    for name, end in [*all_of.ended().items()][::-1][:SHOWN_ENDS]:
        stopped = isinstance(end, StoppedError)
        failed = isinstance(end, Exception)
        parts.append(
            note(str(end)) if stopped else error(f"{name}: {end}") if failed else shown(name, end)
        )
    return "".join(f'<div class="rb-work">{part}</div>' for part in parts)


def corpora(cards: Mapping[str, Corpus]) -> str:
    """The imported corpora."""
    if not cards:
        return empty(NO_CORPUS)
    rows = [
        [
            f"<b>{escape(name)}</b>",
            escape(c.form),
            escape(c.source),
            f"{c.passages:,}",
            badge(f"{c.skipped:,}", "bad") if c.skipped else "0",
            size(c.bytes),
            f"{c.seconds:.1f}",
        ]
        for name, c in cards.items()
    ]
    heads = [
        ("Name", False),
        ("Format", False),
        ("From", False),
        ("Passages", True),
        ("Left out", True),
    ]
    return table([*heads, ("Size", True), ("Seconds", True)], rows)


def question_sets(paths: Mapping[str, Path]) -> str:
    """The question sets that can be asked."""
    rows = []
    for name, path in paths.items():
        place = (
            "comes with rallebench"
            if STARTER in path.parents
            else f"<code>{escape(str(path))}</code>"
        )
        rows.append(
            [
                f"<b>{escape(name)}</b>",
                place + ("" if path.exists() else badge("file is missing", "bad")),
            ]
        )
    return table([("Name", False), ("File", False)], rows)


# chunks


def chunks(document: Passage, chunking: Chunking | None) -> str:
    """A document with the cuts marked: neighbours in two colours, what two chunks share in a third."""
    cuts = spans(document.text, chunking, document.doc_id) if chunking else []
    cuts = cuts or [(0, len(document.text))]
    lengths = [end - start for start, end in cuts]
    words = [len(document.text[start:end].split()) for start, end in cuts]
    facts = [
        badge(f"{len(cuts):,} chunks" if len(cuts) != 1 else "1 chunk", "page"),
        badge(
            f"{min(lengths):,} – {max(lengths):,} characters, mean {sum(lengths) / len(cuts):,.0f}"
        ),
        badge(f"{min(words):,} – {max(words):,} words, mean {sum(words) / len(cuts):,.0f}"),
    ]
    if chunking and chunking.prefix:
        facts.append(badge(f"before each: {chunking.prefix.strip()}"))
    cut = (
        f" The first {SHOWN_TEXT:,} characters are shown."
        if len(document.text) > SHOWN_TEXT
        else ""
    )
    title = f"{document.title or document.doc_id}, {len(document.text):,} characters.{cut}"
    head = f'<div class="rb-label"><b>{escape(title)}</b>{"".join(facts)}</div>'
    return (
        head + f'<div class="rb-text rb-chunks">{_marked(document.text[:SHOWN_TEXT], cuts)}</div>'
    )


def _marked(text: str, cuts: Sequence[tuple[int, int]]) -> str:
    borders = sorted({0, len(text), *(min(place, len(text)) for cut in cuts for place in cut)})
    starts = {start: number for number, (start, _) in reversed(list(enumerate(cuts, 1)))}
    parts, first = [], 0
    for start, end in zip(borders, borders[1:]):
        while first < len(cuts) and cuts[first][1] <= start:
            first += 1
        holding = [
            n for n in range(first, min(first + 4, len(cuts))) if cuts[n][0] <= start < cuts[n][1]
        ]
        sign = f"<sup>{starts[start]}</sup>" if start in starts and len(cuts) > 1 else ""
        kind = "both" if len(holding) > 1 else "ab"[holding[0] % 2] if holding else ""
        piece = escape(text[start:end])
        parts.append(f'{sign}<span class="rb-chunk-{kind}">{piece}</span>' if kind else piece)
    return "".join(parts)


# builds


def estimate(piece: str | Estimate) -> str:
    """What a build will take, or what is measured to tell it."""
    if isinstance(piece, str):
        return note(f"Estimating: {piece} …")
    about = "" if piece.counted else "about "
    facts = [
        (
            "Passages",
            f"{about}{piece.passages:,}" + (f" × {piece.dim} dimensions" if piece.dim else ""),
        ),
        ("Memory while building", f"{size(piece.ram_build)} of {size(piece.free_ram)} free"),
        ("Memory while searching", size(piece.ram_search)),
        ("Disk", f"{size(piece.disk)} of {size(piece.free_disk)} free"),
        ("Time", f"about {duration(piece.seconds)}" if piece.seconds >= 1 else "less than 1 s"),
    ]
    if piece.vectors:
        facts[3] = (
            "Disk",
            f"{facts[3][1]}; {size(piece.vectors)} of it are vectors that other indexes share",
        )
    cells = "".join(
        f"<div><span>{escape(name)}</span><b>{escape(value)}</b></div>" for name, value in facts
    )
    basis = "".join(f"<li>{escape(line)}</li>" for line in piece.basis)
    warnings = "".join(map(error, piece.warnings))
    return f'<div class="rb-facts">{cells}</div>{warnings}<ul class="rb-list rb-basis">{basis}</ul>'


def building(name: str, news: Any) -> str:
    """How far a build is, or what came out of it; a warning if gold pages can never be found in it."""
    if isinstance(news, Manifest):
        said = (
            f"Built {name}: {news.kind}, {news.passages:,} passages of {news.corpus}, {size(news.bytes)}, "
            f"{duration(news.seconds)}. Search it under Search, load it in Models, or choose it in Develop."
        )
        lost = news.passages_without_page
        warning = (
            f"{lost:,} passages have no page in the page map; they can never count as gold pages."
        )
        return note(said, "good") + (note(warning) if lost else "")
    if not isinstance(news, Building):
        return note(f"Building {name} …")
    parts = [news.stage]
    if news.total:
        parts[0] += f" {news.done:,} of {news.total:,}"
    if news.rate:
        parts.append(f"{news.rate:,.0f} a second")
    if news.left is not None:
        parts.append(f"about {duration(news.left)} left")
    return progress_bar(news.done, news.total) + note(
        f"{name}: {', '.join(parts)} … ({duration(news.seconds)})"
    )


def checking(name: str, news: Any) -> str:
    """How far a check is, or that it went well."""
    if isinstance(news, Verified):
        said = f"{name} is whole: {news.files} files, {size(news.bytes)}, are those that were built, and it finds its own passages."
        return note(said, "good")
    if not isinstance(news, Building):
        return note(f"Checking {name} …")
    return progress_bar(news.done, news.total) + note(f"Checking {name}: {news.stage} …")


# search


def found(result: Search, gold: Gold, k: int) -> str:
    """The ranked list, with the gold of the chosen question marked."""
    extra = badge(f"{result.milliseconds:.1f} ms", "page") + badge(f"{len(result.hits)} of k = {k}")
    if gold.pages:
        extra += rank_badge(result.gold_rank, k, result.depth)
    return ranked(result.hits, gold, True, extra)
