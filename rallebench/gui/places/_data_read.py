"""The passages of a corpus and the records of a dataset: a list that is filtered, and what is chosen beside it."""

from __future__ import annotations

import json
from typing import Any

from rallebench.core.errors import RalleError
from rallebench.core.types import Example, Passage
from rallebench.gui import html
from rallebench.gui.form import labelled
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import e
from rallebench.gui.places._data_chunks import chunk_fields, chunking_of, marked
from rallebench.gui.wording import on_page
from rallebench.services import gold_coverage, library, passages

ROW = 50


def register(page: Page) -> None:
    """Both views."""
    page.view("data/corpus", open_corpus)
    page.view("data/dataset", open_dataset)
    page.rows("data-passages", passage_rows)
    page.rows("data-records", record_rows)
    page.actions(
        "data", passage=pick_passage, record=pick_record, filter=refilter, cut=cut, covered=covered
    )


def reader(
    view: str, name: str, find: str, *, about: str, buttons: str, listing: str, chosen: str
) -> str:
    """A header, the filtered list, and the chosen row beside it."""
    title = html.crumb("Data", "#/data/list", name, about, buttons=buttons)
    field = (
        f'<input name="find" value="{e(find)}" data-filter aria-label="Filter" placeholder="Filter" '
        f'data-on="input" data-do="data.filter">'
    )
    return (
        f'<div class="read-head">{title}</div><div class="cols read"><div class="start" data-form>'
        f'<input type="hidden" name="id" value="{e(name)}"><input type="hidden" name="view" value="{view}">{field}'
        f'<div id="{view}-list" class="stack grow">{listing}</div></div><div id="{view}-chosen" class="chosen">{chosen}</div></div>'
    )


def missing(error: Exception) -> Patch:
    """Back to the lists, which say what is not there."""
    return {"go": "#/data/list", "say": on_page(error)}


def refilter(page: Page, event: Event) -> Patch:
    """The list with the words that are typed; the address keeps them."""
    view, name, find = event.text("view"), event.text("id"), event.text("find")
    listing = corpus_list if view == "corpus" else dataset_list
    return {
        f"#{view}-list": listing(page, name, find, -1),
        "address": html.address(f"data/{view}", id=name, find=find),
    }


# a corpus


def open_corpus(page: Page, event: Event) -> Patch:
    """The passages of a corpus."""
    name, find = event.query.get("id", ""), event.query.get("find", "")
    try:
        rows = passages.corpus_rows(page.workbench, name, find)
        row = passages.row_of(page.workbench, name, event.query.get("q", ""))
    except RalleError as error:
        return missing(error)
    at = list(rows).index(row) if row is not None and row in rows else 0
    first = passages.passages_at(page.workbench, name, [rows[at]]) if rows else []
    line = next((x for x in library.corpora(page.workbench) if x.name == name), None)
    pages = "" if line is None or line.pages is None else f" · {line.pages:,} pages"
    about = f"{line.passages:,} passages{pages}" if line else ""
    delete = html.button("Delete…", "data.ask", what="corpus", id=name) if line and line.own else ""
    buttons = delete + html.button("Build an index…", "data.build_form", id=name)
    listing = corpus_list(page, name, find, at)
    body = reader(
        "corpus",
        name,
        find,
        about=about,
        buttons=buttons,
        listing=listing,
        chosen=passage_view(first[0], name) if first else "",
    )
    return {"#v-data-corpus": body, "title": name}


def corpus_list(page: Page, name: str, find: str, at: int) -> str:
    """The windowed list of passages."""
    total = len(passages.corpus_rows(page.workbench, name, find))
    if not total:
        return html.empty("No passage holds these words. Type others, or empty the filter.")
    note = f'<p class="note">{total:,} passage{"s" * (total != 1)}</p>'
    key = {"id": name, "find": find}
    return note + html.window(
        "data-passages", key, total, "data.passage", at=at, row=ROW, label="Passages"
    )


def passage_rows(page: Page, key: dict[str, Any], start: int, count: int) -> list[tuple[str, str]]:
    """The rows of the list."""
    name, find = str(key.get("id", "")), str(key.get("find", ""))
    rows = passages.corpus_rows(page.workbench, name, find)[start : start + count]
    return [
        (
            passage.doc_id,
            f"<span><b class='cut'>{e(passage.title or passage.doc_id)}</b><small>{e(passage.text[:120])}</small></span>",
        )
        for passage in passages.passages_at(page.workbench, name, list(rows))
    ]


def pick_passage(page: Page, event: Event) -> Patch:
    """Show a passage whole."""
    name = event.query.get("id", "")
    row = passages.row_of(page.workbench, name, event.text("id"))
    if row is None:
        return {}
    (passage,) = passages.passages_at(page.workbench, name, [row])
    return {"#corpus-chosen": passage_view(passage, name)}


def passage_view(passage: Passage, corpus: str) -> str:
    """A passage, and how it could be cut."""
    words = len(passage.text.split())
    facts = [f"id {passage.doc_id}", f"page {passage.page_id or 'none'}", f"{words:,} words"]
    more = ' data-on="change" data-do="data.cut"'
    own = '<textarea name="text" rows="3" placeholder="… or a text of your own, cut in place of this passage" data-on="change" data-do="data.cut"></textarea>'
    fields = (
        f'<div data-form class="stack"><input type="hidden" name="corpus" value="{e(corpus)}">'
        f'<input type="hidden" name="doc" value="{e(passage.doc_id)}">{chunk_fields(None, more)}{labelled("Text", own)}</div>'
    )
    return (
        f"<h2>{e(passage.title or passage.doc_id)}</h2><p class='note'>{e(' · '.join(facts))}</p>"
        f'<div id="corpus-text" class="text">{e(passage.text)}</div>'
        f"{html.fold('Try a chunking', fields, gist='the cuts are marked in the text', id='corpus-cutting')}"
    )


def cut(page: Page, event: Event) -> Patch:
    """Mark the cuts in the passage, or in the text that was typed."""
    chunking, own = chunking_of(event), str(event.data.get("text") or "")
    if own.strip():
        return {"#corpus-text": marked(own, chunking)}
    row = passages.row_of(page.workbench, event.text("corpus"), event.text("doc"))
    (passage,) = passages.passages_at(page.workbench, event.text("corpus"), [row or 0])
    text = marked(passage.text, chunking, passage.doc_id) if chunking else e(passage.text)
    return {"#corpus-text": text}


# a dataset


def open_dataset(page: Page, event: Event) -> Patch:
    """The records of a dataset."""
    name, find = event.query.get("id", ""), event.query.get("find", "")
    try:
        examples = passages.records(page.workbench, name, find)
    except RalleError as error:
        return missing(error)
    ids = [example.question.qid for example in examples]
    chosen = event.query.get("q", "")
    at = ids.index(chosen) if chosen in ids else 0
    line = next((x for x in library.datasets(page.workbench) if x.name == name), None)
    about = f"{len(page.workbench.asking.questions(name)):,} questions"
    about += f" · {line.kind}" if line else ""
    delete = (
        html.button("Delete…", "data.ask", what="dataset", id=name) if line and line.own else ""
    )
    use = html.link("Use in Build", html.address("build/one", set=name), "button")
    body = reader(
        "dataset",
        name,
        find,
        about=about,
        buttons=delete + use,
        listing=dataset_list(page, name, find, at),
        chosen=record_view(page, name, examples[at]) if examples else "",
    )
    return {"#v-data-dataset": body, "title": name}


def dataset_list(page: Page, name: str, find: str, at: int) -> str:
    """The windowed list of records."""
    total = len(passages.records(page.workbench, name, find))
    if not total:
        return html.empty("No question holds these words. Type others, or empty the filter.")
    note = f'<p class="note">{total:,} question{"s" * (total != 1)}</p>'
    key = {"id": name, "find": find}
    return note + html.window("data-records", key, total, "data.record", at=at, row=ROW)


def record_rows(page: Page, key: dict[str, Any], start: int, count: int) -> list[tuple[str, str]]:
    """The rows of the list."""
    examples = passages.records(page.workbench, str(key.get("id", "")), str(key.get("find", "")))
    return [
        (
            example.question.qid,
            f"<span><b class='cut'>{e(example.question.text)}</b><small>{e(' · '.join(example.gold.answers[:2]) or 'no answer')}</small></span>",
        )
        for example in examples[start : start + count]
    ]


def pick_record(page: Page, event: Event) -> Patch:
    """Show a record whole."""
    name = event.query.get("id", "")
    example = page.workbench.asking.example(name, event.text("id"))
    return {"#dataset-chosen": record_view(page, name, example)}


def record_view(page: Page, dataset: str, example: Example) -> str:
    """A question with its gold, the coverage of the dataset, and the record as it is."""
    gold, question = example.gold, example.question
    answers = " · ".join(gold.answers) or "none"
    pages = [f"{gold.titles.get(p, '')} ({p})".strip() for p in sorted(gold.pages)]
    facts = [
        ("Id", question.qid),
        ("Answers", answers),
        ("Must hold", " and ".join(" or ".join(group) for group in gold.required)),
        ("Gold pages", ", ".join(pages) or "none"),
        ("Reference", gold.reference),
        ("Turns before", str(len(question.history)) if question.history else ""),
    ]
    record = e(json.dumps(dict(example.record), ensure_ascii=False, indent=1, default=str))
    lazy = f'<div id="dataset-covered"><span data-lazy data-do="data.covered" data-id="{e(dataset)}">…</span></div>'
    build = html.link(
        "Open in Build", html.address("build/one", set=dataset, q=question.qid), "button"
    )
    search = html.link(
        "Search an index for it",
        html.address("data/index", set=dataset, q=question.qid),
        "button",
    )
    return (
        f"<h2>{e(question.text)}</h2>{html.defs(facts)}<div class='row'>{build}{search}</div>"
        f"{html.fold('Coverage by index', lazy, gist='share of its gold pages', id='dataset-coverage')}"
        f"{html.fold('Record', f'<pre class=pre>{record}</pre>', gist='as it is in the file', id='dataset-record')}"
    )


def covered(page: Page, event: Event) -> Patch:
    """The coverage of a dataset by every retriever: read when the fold is opened."""
    from rallebench.gui.places.data import badge

    shares = gold_coverage.index_coverage(page.workbench, event.text("id"))
    rows = [
        [
            html.link(name, html.address("data/index", id=name), "nm"),
            badge(share),
            f"{share.held:,} of {share.total:,}" if share else "–",
        ]
        for name, share in shares.items()
    ]
    return {"#dataset-covered": html.rows(["Index", "Coverage", ">Gold pages"], rows, kind="covs")}
