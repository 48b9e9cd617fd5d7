"""One index: what it says of itself, and a search with its knobs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.types import Example, Gold
from rallebench.gui import form, html
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import e
from rallebench.gui.wording import on_page
from rallebench.services import catalog, library
from rallebench.services.data import Search
from rallebench.services.library import RetrieverLine

OFFERED = 200
"""Questions of a dataset that a field offers."""


def register(page: Page) -> None:
    """The view and its actions."""
    page.view("data/index", open_index)
    page.actions(
        "data", search=search, search_questions=offer, search_switch=switch, index_head=again
    )


def line_of(page: Page, name: str) -> RetrieverLine:
    """The line of a retriever. Raises NotFoundError with the names that there are."""
    lines = {line.name: line for line in library.retrievers(page.workbench)}
    if name not in lines:
        page.workbench.workspace.retriever(name)  # says what is wrong with the name
        return RetrieverLine(name, "", about="written out", own=False)
    return lines[name]


def open_index(page: Page, event: Event) -> Patch:
    """The index that the address names, else the first; with the query of the address it is searched by the button."""
    names = [line.name for line in library.retrievers(page.workbench)]
    name = event.query.get("id") or next(iter(names), "")
    try:
        line = line_of(page, name)
    except RalleError as error:
        return {"go": "#/data/list", "say": on_page(error)}
    body = (
        f'<div class="wrap-page wide" data-form data-problems><div id="index-head">{head(page, line)}</div>'
        f'<div class="index-cols"><div class="stack">{search_form(page, event, name, names)}<div id="index-hits">{hint()}</div></div>'
        f'<aside class="stack" id="index-about">{about(page, line)}</aside></div>'
        '<span data-follow="*" data-do="data.index_head"></span></div>'
    )
    return {"#v-data-index": body, "title": name}


def switch(page: Page, event: Event) -> Patch:
    """Open another index with the same question."""
    query = {"id": event.text("id"), "set": event.text("set"), "q": event.text("q")}
    return {"go": html.address("data/index", **query, query=event.text("query"))}


def hint() -> str:
    """What to do before anything is searched."""
    return '<p class="note">Type a query, or choose a question, whose gold is then marked. The index is loaded if it is not.</p>'


def head(page: Page, line: RetrieverLine) -> str:
    """The name, the state and the buttons."""
    from rallebench.gui.places.data import KINDS, state

    verb = ("Unload", "data.unload") if line.state == "loaded" else ("Load", "data.load")
    built = line.bytes is not None
    buttons = [
        state(line),
        html.button(*verb, id=line.name),
        html.button("Verify", "data.verify", id=line.name) if built and not line.parts else "",
        html.button("Use in Build", "data.use", id=line.name),
    ]
    kind = KINDS.get(line.kind, line.kind)
    return html.crumb(
        "Data",
        "#/data/list",
        line.name,
        " · ".join(filter(None, [kind, line.corpus])),
        buttons="".join(buttons),
    )


def again(page: Page, event: Event) -> Patch:
    """The head as it is now."""
    name = event.text("id") or event.query.get("id", "")
    if not name:
        return {}
    line = line_of(page, name)
    return {"#index-head": head(page, line), "#index-about": about(page, line)}


def search_form(page: Page, event: Event, name: str, names: list[str]) -> str:
    """Query, k, knobs, and the question whose gold is marked."""
    sets = list(page.workbench.workspace.dataset_paths())
    chosen = event.query.get("set") or catalog.DEFAULT_DATASET
    question = event.query.get("q", "")
    query = event.query.get("query", "")
    if question and not query:
        with suppress(RalleError):
            query = page.workbench.asking.example(chosen, question).question.text
    follow = ' data-on="change" data-do="data.search_questions"'
    knobs = page.workbench.data.knobs_of(name)
    fields = form.draw(knobs, {}, {}, prefix="knob-")
    gist = ", ".join(knobs)
    more = html.fold("Search settings", fields, gist=gist, id="index-knobs") if knobs else ""
    other = ' data-on="change" data-do="data.search_switch"'
    index = form.labelled("Index", form.select("id", names, name, more=other))
    return (
        f'<div class="ask"><span id="index-query">{query_field(query)}</span>'
        '<input name="k" type="number" min="1" max="1000" value="10" aria-label="k" title="k: how many passages">'
        f"{html.button('Search', 'data.search', kind='primary')}</div>"
        f'<div class="pair three">{index}{form.labelled("Dataset", form.select("set", sets, chosen, more=follow))}'
        f'<label class="field"><span>Question whose gold is marked</span><span id="index-question">{question_field(page, chosen, question)}</span></label></div>{more}'
    )


def question_field(page: Page, dataset: str, chosen: str) -> str:
    """A field that offers questions of a dataset."""
    options = ""
    with suppress(RalleError):
        for example in page.workbench.asking.questions(dataset)[:OFFERED]:
            question = example.question
            options += f'<option value="{e(question.qid)}">{e(question.text[:140])}</option>'
    return (
        f'<input name="q" list="index-questions" value="{e(chosen)}" placeholder="id, or words of it" '
        f'data-on="change" data-do="data.search_questions"><datalist id="index-questions">{options}</datalist>'
    )


def example_of(page: Page, event: Event) -> Example | None:
    """The question that is chosen by its id, or by words that it holds; None if none is. Raises UsageError."""
    words = event.text("q")
    if not words:
        return None
    questions = page.workbench.asking.questions(event.text("set"))
    for example in questions:
        if example.question.qid == words:
            return example
    lower = words.lower()
    for example in questions:
        if lower in example.question.text.lower():
            return example
    raise UsageError(f"No question of {event.text('set')} has the id or the words {words!r}.")


def offer(page: Page, event: Event) -> Patch:
    """Take the chosen question as the query."""
    example = example_of(page, event)
    query = {"set": event.text("set")}
    query |= {"q": example.question.qid} if example else {}
    address = html.address("data/index", id=event.text("id"), **query)
    text_of = example.question.text if example else event.text("query")
    return {
        "address": address,
        "#index-query": query_field(text_of),
        "#index-question": question_field(page, query["set"], query.get("q", "")),
    }


def query_field(query: str) -> str:
    """The field of the query."""
    return (
        f'<input name="query" value="{e(query)}" data-filter aria-label="Query" placeholder="Query" '
        'data-on="enter" data-do="data.search">'
    )


def search(page: Page, event: Event) -> Iterator[Patch]:
    """Search, loading what is not loaded."""
    example = example_of(page, event)
    gold = example.gold if example else Gold()
    query = event.text("query") or (example.question.text if example else "")
    name, k = event.text("id"), event.whole("k", "k")
    k = 10 if k is None else k
    known = page.workbench.data.knobs_of(name)
    values = form.read(known, event, prefix="knob-", owner=f"index {name!r}")
    knobs = {key: value for key, value in values.items() if event.text(f"knob-{key}")}
    for piece in page.workbench.data.search(name, query, k, knobs=knobs, gold_pages=gold.pages):
        if isinstance(piece, Search):
            yield {"#index-hits": hits(piece, gold, k)}
        else:
            yield {"#index-hits": f'<p class="note">{e(piece)} …</p>'}


def hits(result: Search, gold: Gold, k: int) -> str:
    """The ranked passages, the gold ones marked."""
    facts = [f"{len(result.hits)} of k = {k}", html.duration(result.milliseconds / 1000)]
    if gold.pages:
        rank = result.gold_rank
        facts.append(
            f"first gold page at rank {rank}" + (f": k = {k} cuts it off" if rank > k else "")
            if rank
            else f"no gold page among the first {result.depth}"
        )
    items = ""
    for rank, hit in enumerate(result.hits, 1):
        passage = hit.passage
        is_gold = passage.page_id in gold.pages
        tag = '<em class="tag gold">gold page</em>' if is_gold else ""
        items += (
            f'<article class="bit{" g" if is_gold else ""}"><h4><b>{rank}</b> {e(passage.title or passage.doc_id)} {tag}'
            f'<span class="n">{hit.score:.3f}</span></h4><p>{e(passage.text)}</p></article>'
        )
    if not result.hits:
        items = '<p class="note">No passage has a word of the query.</p>'
    return f'<h3 class="sub">Passages <small>{e(" · ".join(facts))}</small></h3>{items}'


def about(page: Page, line: RetrieverLine) -> str:
    """What an index is: facts, then its whole manifest."""
    manifest = page.workbench.workspace.manifests().get(line.name)
    if manifest is None:
        entry = page.workbench.workspace.combinations().get(line.name)
        facts = [("Made of", ", ".join(line.parts)), ("About", line.about)]
        whole = entry.model_dump(exclude_defaults=True) if entry else {}
    else:
        facts = [
            ("Corpus", line.corpus),
            ("Passages", f"{manifest.passages:,}"),
            ("Without a page", f"{manifest.passages_without_page:,}"),
            (
                "Encoder",
                f"{manifest.encoder_name}, {manifest.dim} dimensions" if manifest.dim else "",
            ),
            ("Chunking", words_of_cut(manifest.chunking)),
            ("Disk", html.amount(manifest.bytes)),
            ("Built in", html.duration(manifest.seconds)),
            ("Fingerprint", manifest.fingerprint),
        ]
        whole = manifest.model_dump()
    users = library.users(page.workbench.workspace, line.name, "retriever")
    facts.append(("Used by", ", ".join(users)))
    manifest_text = e(json.dumps(whole, ensure_ascii=False, indent=1, default=str))
    fold = html.fold(
        "Manifest" if manifest else "Entry",
        f'<pre class="pre">{manifest_text}</pre>',
        id="index-manifest",
    )
    fold = fold if whole else ""
    what = "combination" if line.parts else "index"
    delete = (
        html.button("Delete…", "data.ask", kind="danger", what=what, id=line.name)
        if line.own and (line.bytes is not None or line.parts or line.state == "damaged")
        else ""
    )
    return (
        f'<h3 class="sub first">About</h3>{html.defs(facts)}{fold}<div class="row">{delete}</div>'
    )


def words_of_cut(chunking: dict[str, Any] | None) -> str:
    """The cutting of an index in a few words."""
    if not chunking:
        return "rows stay whole"
    overlap = f", overlap {chunking['overlap']}" if chunking.get("overlap") else ""
    return f"{chunking['size']} {chunking.get('unit', 'words')}{overlap}"
