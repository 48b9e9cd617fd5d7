"""The gold pages of one question, and the pages of a search to take or remove by a press or the keys 1 to 9.

The pane of a question and the gold pages of a whole dataset draw it; the actions ``NAME.take`` and ``NAME.drop`` are theirs.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from markupsafe import Markup

from rallebench.core.dataset_edits import Evidence, GoldPage, QuestionDraft, toggle_page
from rallebench.core.types import Gold, Hit
from rallebench.gui import form, html
from rallebench.gui.events import Event
from rallebench.gui.patches import Patch
from rallebench.gui.places._steps import passage
from rallebench.services.data import Data
from rallebench.services.gold_search import gold_page, names_passages, search_pages


def index_choice(names: Sequence[str], chosen: str, more: Markup = html.NOTHING) -> Markup:
    """Draw the index to search."""
    label = Markup(' aria-label="Index to search"')
    return form.select("index", names, chosen, more=label + more)


def query_field(do: str) -> Markup:
    """Draw the field for other words than the question's."""
    return Markup(
        '<input name="query" value="" placeholder="The question, or words of your own" aria-label="Search for a gold page"{}>'
    ).format(html.attributes(do=do, on="enter"))


def page_list(evidence: Evidence, name: str) -> Markup:
    """Draw the sets of gold pages, which are alternatives."""
    rows, position = Markup(), 0
    for number, pages in enumerate(evidence):
        rows += Markup('<div class="or">or</div>') if number else Markup()
        for index, page in enumerate(pages):
            joined = Markup("<small>and</small> ") if index else Markup()
            facts = html.join_facts(page.page_id, page.doc_id and f"passage {page.doc_id}")
            title = page.title or page.page_id or page.doc_id
            remove = html.button(
                "Remove", f"{name}.drop", kind="quiet", title=f"Remove {title}", position=position
            )
            rows += Markup(
                '<div class="goldpage">{}<b dir="auto">{}</b><small>{}</small>{}</div>'
            ).format(joined, title, facts, remove)
            position += 1
    return Markup('<div class="field"><span>Gold pages</span>{}</div>').format(
        rows or html.note("None yet. Find one below.")
    )


def search(
    data: Data, index: str, query: str, draft: QuestionDraft, name: str
) -> Generator[Patch, None, tuple[Hit, ...]]:
    """Search for pages that may hold the answer, loading the index if necessary, and draw them in the element ``NAME-hits``.
    Return their passages.
    """
    searching = search_pages(
        data, index, query or draft.text, by_passage=names_passages(draft.evidence)
    )
    while True:
        try:
            yield Patch({f"{name}-hits": html.note(f"{next(searching)} …")})
        except StopIteration as end:
            hits: tuple[Hit, ...] = end.value
            break
    yield Patch({f"{name}-hits": hit_list(hits, draft, name)})
    return hits


def hit_list(hits: Sequence[Hit], draft: QuestionDraft, name: str) -> Markup:
    """Draw ranked passages with the answer marked and the buttons that take their pages."""
    draft = draft.tidy()
    by_passage = names_passages(draft.evidence)
    taken = {page.key for page in draft.pages}
    pages = frozenset(page.page_id for page in draft.pages)
    gold = Gold(draft.answers, provenance=(pages,) if pages else ())
    rows = Markup()
    for rank, hit in enumerate(hits, 1):
        page = gold_page(hit.passage, by_passage=by_passage)
        if page.key in taken:
            buttons = take_button(f"{rank} Remove", page, name, rank)
        else:
            buttons = take_button(f"{rank} Take as gold", page, name, rank)
            if taken:
                buttons += take_button("Needed as well", page, name)
        rows += passage(rank, hit, gold) + Markup('<div class="row">{}</div>').format(buttons)
    return rows or html.note("No passage has a word of the query. Search for other words.")


def take_button(label: str, page: GoldPage, name: str, rank: int | None = None) -> Markup:
    """Draw a button that takes or removes a page. Without a ``rank``, which is its key, the page is needed together with the
    last set.
    """
    title = page.title or page.page_id or page.doc_id
    return html.button(
        label,
        f"{name}.take",
        kind="" if rank else "quiet",
        title=f"{title}: key {rank}"
        if rank
        else "The answer needs this page together with the last one",
        joined=None if rank else "1",
        key=rank,
        about=title,
        page_id=page.page_id,
        page_title=page.title,
        doc_id=page.doc_id,
    )


def take(evidence: Evidence, event: Event) -> Evidence:
    """Return the sets with the page of a pressed button taken or removed."""
    page = GoldPage(event.text("page_id"), event.text("page_title"), event.text("doc_id"))
    return toggle_page(evidence, page, joined=event.flag("joined"))


def drop(evidence: Evidence, event: Event) -> Evidence:
    """Return the sets without the page at the pressed position."""
    position = event.position("position", sum(map(len, evidence)))
    sets, number = list[tuple[GoldPage, ...]](), 0
    for pages in evidence:
        left = tuple(own for place, own in enumerate(pages, number) if place != position)
        number += len(pages)
        sets += [left] if left else []
    return tuple(sets)
