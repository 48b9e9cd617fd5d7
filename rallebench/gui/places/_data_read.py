"""The passages of a corpus and the records of a dataset: a list that is filtered, and what is chosen beside it."""

from __future__ import annotations

from typing import Any

from rallebench.core.types import Example, Passage
from rallebench.gui import form, html
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import attributes, e
from rallebench.gui.places._data_chunks import chunk_fields, chunking_of, marked
from rallebench.gui.places._data_search import badge
from rallebench.render.numbers import plural
from rallebench.services import gold_coverage, library, passages

ROW = 50
NOUNS = {"corpus": "passage", "dataset": "question"}
"""View → what its list holds."""


def register(page: Page) -> None:
    """Both views."""
    page.view("data/corpus", open_corpus, back="data/list")
    page.view("data/dataset", open_dataset, back="data/list")
    page.rows("data-corpus", passage_rows)
    page.rows("data-dataset", record_rows)
    page.actions("read", corpus, dataset, refilter, cut, covered)


def reader(
    page: Page, event: Event, view: str, at: int, about: str, buttons: str, chosen: str
) -> Patch:
    """A header, the filtered list, and the chosen row beside it."""
    name, find = event.query.get("id", ""), event.query.get("find", "")
    title = html.crumb("Data", "#/data/list", name, about, buttons=buttons)
    follow = attributes(on="input", do="read.refilter")
    field = f'<input name="find" value="{e(find)}" data-filter aria-label="Filter" placeholder="Filter"{follow}>'
    body = (
        f'<div class="read-head">{title}</div><div class="cols read"><div class="start" data-form>{form.hidden(id=name, view=view)}{field}'
        f'<div id="{view}-list" class="stack grow">{listing(page, view, name, find, at)}</div></div>'
        f'<div id="{view}-chosen" class="chosen">{chosen}</div></div>'
    )
    return {f"#v-data-{view}": body, "title": name}


def listing(page: Page, view: str, name: str, find: str, at: int = -1) -> str:
    """The windowed list of the rows that hold some words."""
    rows = passages.corpus_rows if view == "corpus" else passages.records
    total, noun = len(rows(page.workbench, name, find)), NOUNS[view]
    if not total:
        return html.empty(f"No {noun} holds these words. Type others, or empty the filter.")
    key, label = {"id": name, "find": find}, f"{noun.capitalize()}s"
    window = html.window(f"data-{view}", key, total, f"read.{view}", at=at, row=ROW, label=label)
    return html.note(plural(total, noun)) + window


def list_row(title: str, below: str) -> str:
    """A row of a list."""
    return (
        f'<span><b class="cut" dir="auto">{e(title)}</b><small dir="auto">{e(below)}</small></span>'
    )


def refilter(page: Page, event: Event) -> Patch:
    """The list with the words that are typed; the address keeps them."""
    view, name, find = event.text("view"), event.text("id"), event.text("find")
    address = html.address(f"data/{view}", id=name, find=find)
    return {f"#{view}-list": listing(page, view, name, find), "address": address}


# a corpus


def open_corpus(page: Page, event: Event) -> Patch:
    """The passages of a corpus."""
    name, find = event.query.get("id", ""), event.query.get("find", "")
    rows = passages.corpus_rows(page.workbench, name, find)
    row = passages.row_of(page.workbench, name, event.query.get("q", ""))
    at = list(rows).index(row) if row is not None and row in rows else 0
    first = passages.passages_at(page.workbench, name, [rows[at]]) if rows else []
    chosen = passage_view(first[0], name) if first else ""
    about = buttons = ""
    if line := next((x for x in library.corpora(page.workbench) if x.name == name), None):
        pages = "" if line.pages is None else f"{line.pages:,} pages"
        about = html.dotted(f"{line.passages:,} passages", pages)
        if line.own:
            buttons = html.button("Delete…", "data.ask_delete", what="corpus", id=name)
    buttons += html.button("Build an index…", "data.build_form", id=name)
    return reader(page, event, "corpus", at, about, buttons, chosen)


def passage_rows(page: Page, key: dict[str, Any], start: int, count: int) -> list[tuple[str, str]]:
    """The rows of the list."""
    name, find = str(key.get("id", "")), str(key.get("find", ""))
    rows = list(passages.corpus_rows(page.workbench, name, find)[start : start + count])
    return [
        (passage.doc_id, list_row(passage.title or passage.doc_id, passage.text[:120]))
        for passage in passages.passages_at(page.workbench, name, rows)
    ]


def corpus(page: Page, event: Event) -> Patch:
    """Show a passage of a corpus whole."""
    name = event.query.get("id", "")
    row = passages.row_of(page.workbench, name, event.text("id"))
    if row is None:
        return {}
    (passage,) = passages.passages_at(page.workbench, name, [row])
    return {"#corpus-chosen": passage_view(passage, name)}


def passage_view(passage: Passage, corpus: str) -> str:
    """A passage, and how it could be cut."""
    words = f"{len(passage.text.split()):,} words"
    facts = html.dotted(f"id {passage.doc_id}", f"page {passage.page_id or 'none'}", words)
    more = form.on_change("read.cut")
    hint = "… or a text of your own, cut in place of this passage"
    own = form.area("text", "Text", rows=3, more=f' placeholder="{hint}"{more}')
    fields = form.hidden(corpus=corpus, doc=passage.doc_id) + chunk_fields(None, more) + own
    fields = f'<div data-form class="stack">{fields}</div>'
    gist = "the cuts are marked in the text"
    return (
        f'<h2 dir="auto">{e(passage.title or passage.doc_id)}</h2>{html.note(facts)}'
        f'<div id="corpus-text" class="text" dir="auto">{e(passage.text)}</div>'
        f"{html.fold('Try a chunking', fields, gist=gist, id='corpus-cutting')}"
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
    examples = passages.records(page.workbench, name, find)
    ids, qid = [example.question.qid for example in examples], event.query.get("q", "")
    at = ids.index(qid) if qid in ids else 0
    chosen = record_view(name, examples[at]) if examples else ""
    line = next((x for x in library.datasets(page.workbench) if x.name == name), None)
    total = f"{len(page.workbench.asking.questions(name)):,} questions"
    buttons = ""
    if line and line.own:
        buttons = html.button("Delete…", "data.ask_delete", what="dataset", id=name)
    buttons += html.link("Use in Build", html.address("build/one", set=name), "button")
    about = html.dotted(total, line.kind if line else "")
    return reader(page, event, "dataset", at, about, buttons, chosen)


def record_rows(page: Page, key: dict[str, Any], start: int, count: int) -> list[tuple[str, str]]:
    """The rows of the list."""
    examples = passages.records(page.workbench, str(key.get("id", "")), str(key.get("find", "")))
    rows = []
    for example in examples[start : start + count]:
        answers = html.dotted(*example.gold.answers[:2]) or "no answer"
        rows.append((example.question.qid, list_row(example.question.text, answers)))
    return rows


def dataset(page: Page, event: Event) -> Patch:
    """Show a record of a dataset whole."""
    name = event.query.get("id", "")
    example = page.workbench.asking.example(name, event.text("id"))
    return {"#dataset-chosen": record_view(name, example)}


def record_view(dataset: str, example: Example) -> str:
    """A question with its gold, the coverage of the dataset, and the record as it is."""
    gold, question = example.gold, example.question
    pages = [f"{gold.titles.get(p, '')} ({p})".strip() for p in sorted(gold.pages)]
    facts = [
        ("Id", question.qid),
        ("Answers", html.dotted(*gold.answers) or "none"),
        ("Must hold", " and ".join(" or ".join(group) for group in gold.required)),
        ("Gold pages", ", ".join(pages) or "none"),
        ("Reference", gold.reference),
        ("Turns before", str(len(question.history)) if question.history else ""),
    ]
    place = {"set": dataset, "q": question.qid}
    build = html.link("Open in Build", html.address("build/one", **place), "button")
    search = html.link("Search an index for it", html.address("data/index", **place), "button")
    lazy = f'<div id="dataset-covered"><span data-lazy{attributes(do="read.covered", id=dataset)}>…</span></div>'
    record = html.as_json(dict(example.record))
    return (
        f'<h2 dir="auto">{e(question.text)}</h2>{html.defs(facts)}<div class="row">{build}{search}</div>'
        f"{html.fold('Coverage by index', lazy, gist='share of its gold pages', id='dataset-coverage')}"
        f"{html.fold('Record', record, gist='as it is in the file', id='dataset-record')}"
    )


def covered(page: Page, event: Event) -> Patch:
    """The coverage of a dataset by every retriever: read when the fold is opened."""
    rows = []
    for name, share in gold_coverage.index_coverage(page.workbench, event.text("id")).items():
        count = f"{share.held:,} of {share.total:,}" if share else "–"
        rows.append([html.named(name, "data/index", id=name), badge(share), count])
    return {"#dataset-covered": html.rows(["Index", "Coverage", ">Gold pages"], rows, kind="covs")}
