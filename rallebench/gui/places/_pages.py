"""The whole page around a passage: in a drawer beside the work, or as a view with its own address."""

from __future__ import annotations

from markupsafe import Markup

from rallebench.core.errors import UsageError
from rallebench.core.numbers import plural
from rallebench.gui import html, panels
from rallebench.gui.addresses import CorpusAddress, PageAddress, Query
from rallebench.gui.answers import highlight
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.html import attributes
from rallebench.gui.patches import PageEvent, Patch
from rallebench.views.pages import SourcePage, Span, source_page

PAGE_DRAWN = PageEvent("rb-page")
"""Scrolls to the cited span."""


def register(page: Page) -> None:
    """Register the view and the drawer."""
    page.view("data/page", open_page, back="data/list")
    page.actions("pages", show, reads=True)


def page_link(address: PageAddress, passage: str) -> Markup:
    """Draw the link that opens the page of a passage in the drawer; a new tab shows it as a view.

    ``passage``: its name, for the name of the link.
    """
    return Markup(
        '<a class="link open-page" href="{}" aria-label="Open the page of {}"{}>Open the page</a>'
    ).format(address.href, passage, attributes(do="pages.show", **address.values()))


def read_span(text: str) -> Span | None:
    """Return the characters of a passage in an address, as in "12-30"; None without them. Raises UsageError.

    >>> read_span("12-30")
    (12, 30)
    """
    if not text:
        return None
    first, _, end = text.partition("-")
    if not (first.isdecimal() and end.isdecimal() and int(first) < int(end)):
        raise UsageError(f"The address names the span {text[:40]!r}; write it as in 12-30.")
    return int(first), int(end)


def load(page: Page, address: PageAddress) -> SourcePage:
    """Return the page of an address. Raises RalleError."""
    span = read_span(address.at)
    return source_page(
        page.workspace, address.q, index=address.index, corpus=address.corpus, span=span
    )


def show(page: Page, event: Event) -> Patch:
    """Open the page of a passage in the drawer."""
    values = {name: event.text(name) for name in ("index", "corpus", "q", "at")}
    return show_page(page, PageAddress.read(values))


def show_page(page: Page, address: PageAddress) -> Patch:
    """Return the patch that opens a page in the drawer. Raises RalleError."""
    source = load(page, address)
    link = html.link("Open in Data", address.href, "button")
    head = Markup('<div class="row">{}{}</div>').format(html.note(facts(source)), link)
    return panels.drawer(source.title or source.doc_id, head, body(source)) | Patch(
        event=PAGE_DRAWN
    )


def open_page(page: Page, event: Event) -> Patch:
    """Open the page as a view."""
    source = load(page, event.read(PageAddress))
    place: Query | None = (
        CorpusAddress(id=source.corpus, q=source.doc_id) if source.corpus else None
    )
    more = html.link("All passages of the corpus", place.href, "button") if place else Markup()
    title = source.title or source.doc_id
    head = html.crumb("Data", "#/data/list", title, facts(source), buttons=more)
    return panels.view("data/page", title, head, body(source)) | Patch(event=PAGE_DRAWN)


def facts(source: SourcePage) -> str:
    """Describe a page: its id, its corpus, and its length."""
    return html.join_facts(
        f"page {source.page_id or 'none'}",
        f"corpus {source.corpus}" if source.corpus else "",
        plural(len(source.text.split()), "word"),
    )


def body(source: SourcePage) -> Markup:
    """Draw the text with the passage and the cited span marked."""
    words = Markup()
    if source.passage is None and source.span is None:
        words = html.note("The passage is not in this text word by word, so it is not marked.")
    first, end = source.passage or (0, len(source.text))
    inner = [(source.span[0] - first, "cited", source.span[1] - first)] if source.span else []
    inside = highlight(source.text[first:end], inner)
    if source.passage is not None:
        inside = Markup('<span class="cited-passage">{}</span>').format(inside)
    text = Markup("{}{}{}").format(source.text[:first], inside, source.text[end:])
    return words + html.copyable(
        Markup('<div class="page-text" dir="auto">{}</div>').format(text), "the page"
    )
