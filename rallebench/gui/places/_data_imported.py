"""The last steps of the import panel: a download, the progress of an import, and its result."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from rallebench.core.events import Progress
from rallebench.core.numbers import plural
from rallebench.gui import html
from rallebench.gui.addresses import CorpusAddress, GoldAddress, IndexAddress, QuestionAddress
from rallebench.gui.figures import amount
from rallebench.gui.frame import Page
from rallebench.gui.html import escape
from rallebench.gui.wording import on_page
from rallebench.services import uploads
from rallebench.services.counted_imports import GoldCounts
from rallebench.services.imports import ImportResult
from rallebench.services.jobs import Job


def fetching(job: Job) -> Markup:
    """Draw the download of a name of the hub, or why it failed."""
    buttons = html.button("Back", "import.again")
    if job.error is not None:
        again = html.button("Try again", "import.preview", kind="primary", path=job.name)
        return Markup('{}<div class="buttons">{}{}</div>').format(
            html.problem(on_page(job.error)), buttons, again
        )
    news = next((x for x in job.tasks.values() if isinstance(x, Progress)), Progress(""))
    share, size = None, ""
    if news.total:
        share, size = news.done / news.total, f"{amount(news.done)} of {amount(news.total)}"
    words = html.join_facts(news.message or f"asking for {job.name}", size)
    stop = html.button("Stop", "jobs.stop", id=job.id)
    return Markup('<p><b class="nm">{}</b></p>{}<div class="buttons">{}{}</div>').format(
        job.name, html.doing(words, share=share), buttons, stop
    )


def building(page: Page, job: Job) -> Markup:
    """Draw the progress of the import, or its result."""
    tasks = [(name, x) for name, x in job.tasks.items() if isinstance(x, Progress)]
    lines, going = Markup(), 0 if job.done else 1
    for name, news in tasks[: len(tasks) - (going or job.error is not None)]:
        words = escape(news.message if name in ("corpus", "dataset") else name)
        lines += Markup(
            '<div class="doing"><span><span class="good">✓</span> {}</span></div>'
        ).format(words)
    for name, news in tasks[len(tasks) - going :]:
        share = news.done / news.total if news.total else None
        lines += html.doing(news.message or name, share=share)
    other = html.button("Import another", "import.again")
    if not job.done:
        note = html.note("It continues if you leave this page.")
        lines = (lines or Markup("<p>Starting…</p>")) + note
        other = html.button("Stop", "jobs.stop", id=job.id)
    elif job.error is not None:
        lines += html.problem(uploads.as_sent(page.workspace, on_page(job.error)))
        other = html.button("Back", "import.show", step="preview") + other
    elif (result := job.result_as(ImportResult)) is not None:
        lines += import_result(job.name, result)
    return Markup('{}<div class="buttons">{}</div>').format(lines, other)


def import_result(name: str, result: ImportResult) -> Markup:
    parts, links, more = [], Markup(), Markup()
    if (corpus := result.corpus) is not None:
        cut = result.passages if result.passages != corpus.passages else 0
        noun = "document" if cut else "passage"
        parts.append(count_words(corpus.passages, noun, corpus.skipped))
        parts += [f"cut into {plural(cut, 'passage')}"] if cut else []
        more += warning_list(corpus.warnings)
        links += html.link("Read passages", CorpusAddress(id=name).href, "button")
        if corpus.has_pages and (lost := corpus.passages_without_page):
            parts.append(f"{lost:,} of them without a page, which can never count as gold pages")
    if (dataset := result.dataset) is not None:
        parts.append(count_words(dataset.questions, "question", dataset.skipped))
        parts.append(GoldCounts.of(dataset).sentence)
        more += warning_list(dataset.warnings, dataset.notes)
        links += html.link("Use in Build", QuestionAddress(set=name).href, "button")
        if not dataset.pages:
            choose = "Choose gold pages by searching"
            links += html.link(choose, GoldAddress(name).href, "button")
    if result.indexes:
        last = result.indexes[-1]
        parts.append(f"indexes {', '.join(result.indexes)}")
        links += html.link(f"Search {last}", IndexAddress(id=last).href, "button")
        links += html.button(f"Use {last} in Build", "data.use", id=last)
        if dataset is not None:
            links += html.button("Try 10 questions", "import.try", id=name)
    brought = Markup('<p class="good"><b>Imported {}.</b></p><p>{}.</p>{}').format(
        name, "; ".join(parts), more
    )
    brought += html.warning(result.long)
    return Markup('{}<div class="row">{}</div>').format(brought, links)


def count_words(count: int, noun: str, skipped: int) -> str:
    return plural(count, noun) + (f", {plural(skipped, 'bad row')} left out" if skipped else "")


def warning_list(warnings: Iterable[str], notes: Iterable[str] = ()) -> Markup:
    """Draw warnings with notes below them."""
    return Markup().join([*map(html.warning, warnings), *map(html.note, notes)])
