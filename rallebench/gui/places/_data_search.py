"""One index: kind, state, coverage and manifest, and a search form with the index's settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from markupsafe import Markup

from rallebench.core.errors import RalleError
from rallebench.core.numbers import plural
from rallebench.core.types import Gold
from rallebench.gui import figures, form, html, panels
from rallebench.gui.addresses import IndexAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.patches import Patch
from rallebench.gui.places._steps import first_gold, passage
from rallebench.services.data import Search
from rallebench.views import library, passages
from rallebench.views.gold_coverage import Coverage
from rallebench.views.library import RetrieverLine

OFFERED = 200
"""Maximum questions of a dataset that a field offers."""
KINDS = {
    "bm25": "words",
    "flat": "dense, exact",
    "numpy-flat": "dense, exact",
    "hnsw": "dense, graph",
    "hnswlib": "dense, graph",
    "ivf-sq8": "dense, 8-bit",
    "diskann": "dense, on disk",
    "faiss": "dense, Faiss's",
    "rrf": "hybrid, by rank",
    "scores": "hybrid, by score",
    "union": "hybrid, sampled",
    "rerank": "reranked",
    "llm-rerank": "reranked by a model",
}
"""Kind of index or combination → its display name; the exact name is the tooltip."""


def register(page: Page) -> None:
    page.view("data/index", open_index, back="data/list")
    page.actions("index", search, offer, switch, refresh, reads=True)


def state(line: RetrieverLine) -> Markup:
    words = line.state or "ready"
    about = line.about if words in ("damaged", "not built") else ""
    return html.state(words, about)


def switch_button(line: RetrieverLine) -> Markup:
    if line.state == "loaded":
        return html.button("Unload", "models.unload", id=line.name)
    return html.button("Load", "models.load", id=line.name, what="retriever")


def badge(share: Coverage | None, *, loading: bool = False) -> Markup:
    """Draw the coverage of a dataset by a corpus or an index."""
    if loading:
        return Markup('<span class="cov">…</span>')
    if share is None or share.share is None:
        why = "not known before it is loaded" if share is None else "no gold pages are named"
        return Markup('<span class="cov" title="{}">–</span>').format(why)
    levels = ((0.95, "full"), (0.5, "some"), (1e-9, "low"))
    level = next((name for least, name in levels if share.share >= least), "")
    words = f"{share.held:,} of {plural(share.total, 'gold page')} there"
    return Markup('<span class="cov {}" title="{}">{:.1f} %</span>').format(
        level, words, 100 * share.share
    )


def delete_button(what: str, name: str, able: bool) -> Markup:
    """Draw the button that asks before deleting; "" if the item cannot be deleted."""
    return html.button("Delete…", "data.ask_delete", what=what, id=name) if able else Markup()


def index_buttons(line: RetrieverLine) -> Markup:
    """Draw the actions on an index or a combination."""
    built = line.bytes is not None or line.state == "damaged"
    able, what = line.own and bool(line.parts or built), "combination" if line.parts else "index"
    return (
        html.button("Use in Build", "data.use", id=line.name)
        + (switch_button(line) if line.state != "damaged" else Markup())
        + (
            html.button("Verify", "data.verify", id=line.name)
            if built and not line.parts
            else Markup()
        )
        + html.button("Combine or rerank…", "data.combine_form", parts=line.name)
        + delete_button(what, line.name, able)
    )


def retriever_line(page: Page, name: str) -> RetrieverLine:
    """Return the row of a retriever. Raises NotFoundError with the known names."""
    lines = {
        line.name: line for line in library.retrievers(page.workspace, page.workbench.data.states())
    }
    if name not in lines:
        page.workspace.retriever(name)  # raises an error with the reason
        return RetrieverLine(name, "", about="written out", own=False)
    return lines[name]


def open_index(page: Page, event: Event) -> Patch:
    """Open the index in the address, otherwise the first. A query in the address is run only by the button."""
    names = [line.name for line in library.retrievers(page.workspace, page.workbench.data.states())]
    query = event.read(IndexAddress)
    name = query.id or next(iter(names), "")
    line = retriever_line(page, name)
    hint = "Type a query, or choose a question, whose gold is then marked. The index is loaded first if necessary."
    body = Markup(
        '<div id="index-head">{}</div><div class="index-cols"><div class="stack">{}'
        '<div id="index-hits">{}</div></div><aside class="stack" aria-label="About the index" id="index-about">{}</aside></div>{}'
    ).format(
        head(line),
        search_form(page, query, name, names),
        html.note(hint),
        about(page, line),
        html.follow("index.refresh"),
    )
    return panels.view(
        "data/index", name, body, kind="wide", more=Markup(" data-form data-problems")
    )


def switch(page: Page, event: Event) -> Patch:
    id, dataset, qid = event.text("id"), event.text("set"), event.text("q")
    return Patch(go=IndexAddress(id, dataset, qid, event.text("query")).href)


def head(line: RetrieverLine) -> Markup:
    buttons = state(line) + index_buttons(line)
    about = html.join_facts(KINDS.get(line.kind, line.kind), line.corpus)
    return html.crumb("Data", "#/data/list", line.name, about, buttons=buttons)


def refresh(page: Page, event: Event) -> Patch:
    """Redraw the heading."""
    name = event.text("id") or event.read(IndexAddress).id
    if not name:
        return Patch()
    line = retriever_line(page, name)
    return Patch({"index-head": head(line), "index-about": about(page, line)})


def search_form(page: Page, query: IndexAddress, name: str, names: list[str]) -> Markup:
    """Draw the query, k, the search settings, and the question whose gold is highlighted."""
    sets = list(page.workspace.dataset_paths())
    corpus = retriever_line(page, name).corpus
    chosen = query.set or library.fitting_dataset(page.workspace, corpus)
    question, words = query.q, query.query
    if question and not words:
        with suppress(RalleError):
            words = page.workbench.asking.example(chosen, question).question.text
    knobs = page.workbench.data.search_settings(name)
    more = Markup()
    if knobs:
        fields = form.draw(knobs, {}, {}, prefix="knob-")
        more = html.fold("Search settings", fields, gist=", ".join(knobs), id="index-knobs")
    field = Markup('<span id="index-question">{}</span>').format(
        question_field(page, chosen, question)
    )
    choices = (
        form.chooser("Index", "id", names, name, more=form.on_change("index.switch")),
        form.chooser("Dataset", "set", sets, chosen, more=form.on_change("index.offer")),
        form.label_field("Question whose gold is marked", field),
    )
    return Markup(
        '<div class="ask"><span id="index-query">{}</span>'
        '<input name="k" type="number" min="1" max="1000" value="10" aria-label="k" title="k: how many passages">{}</div>'
        '<div class="pair three">{}</div>{}'
    ).format(
        query_field(words),
        html.button("Search", "index.search", kind="primary"),
        Markup().join(choices),
        more,
    )


def question_field(page: Page, dataset: str, chosen: str) -> Markup:
    offered: list[tuple[str, str]] = []
    with suppress(RalleError):
        questions = (x.question for x in page.workspace.questions(dataset)[:OFFERED])
        offered = [(question.qid, question.text[:140]) for question in questions]
    follow, options = form.on_change("index.offer"), form.suggestions("index-questions", offered)
    return Markup(
        '<input name="q" list="index-questions" value="{}" placeholder="id, or words of it"{}>{}'
    ).format(chosen, follow, options)


query_field = partial(
    form.filter_field, "index-words", do="index.search", hint="Query", name="query", on="enter"
)


def offer(page: Page, event: Event) -> Patch:
    """Use the chosen question as the query."""
    dataset, query, qid = event.text("set"), event.text("query"), ""
    if example := passages.find_example(page.workspace, dataset, event.text("q")):
        query, qid = example.question.text, example.question.qid
    return Patch(
        {"index-query": query_field(query), "index-question": question_field(page, dataset, qid)},
        address=IndexAddress(id=event.text("id"), set=dataset, q=qid).href,
    )


def search(page: Page, event: Event) -> Iterator[Patch]:
    """Search, loading the retriever if necessary."""
    example = passages.find_example(page.workspace, event.text("set"), event.text("q"))
    gold = example.gold if example else Gold()
    query = event.text("query") or (example.question.text if example else "")
    name, k = event.text("id"), event.whole("k", "k")
    k = 10 if k is None else k
    known = page.workbench.data.search_settings(name)
    values = form.read(known, event, prefix="knob-", owner=f"index {name!r}")
    knobs = {key: value for key, value in values.items() if event.text(f"knob-{key}")}
    for piece in page.workbench.data.search(name, query, k, knobs=knobs, gold_pages=gold.pages):
        news = hits(piece, gold, k, name) if isinstance(piece, Search) else html.note(f"{piece} …")
        yield Patch({"index-hits": news})


def hits(result: Search, gold: Gold, k: int, index: str) -> Markup:
    """Draw the ranked passages with the gold ones highlighted."""
    where = first_gold(result.gold_rank, k, result.depth, gold)
    took = figures.duration(result.milliseconds / 1000)
    head = html.heading("Passages", html.join_facts(f"{len(result.hits)} of k = {k}", took, where))
    items = Markup().join(
        passage(rank, hit, gold, index=index) for rank, hit in enumerate(result.hits, 1)
    )
    return head + (items or html.note("No passage has a word of the query."))


def about(page: Page, line: RetrieverLine) -> Markup:
    manifest = page.workspace.manifests().get(line.name)
    if manifest is None:
        entry = page.workspace.combinations().get(line.name)
        facts = [("Made of", ", ".join(line.parts)), ("About", line.about)]
        title, whole = "Entry", entry.model_dump(exclude_defaults=True) if entry else {}
    else:
        encoder = f"{manifest.encoder_name}, {manifest.dim} dimensions" if manifest.dim else ""
        facts = [
            ("Corpus", line.corpus),
            ("Passages", f"{manifest.passages:,}"),
            ("Without a page", f"{manifest.passages_without_page:,}"),
            ("Encoder", encoder),
            ("Chunking", library.cut_words(manifest.chunking)),
            ("Note", manifest.words_note),
            ("Warning", " ".join(manifest.warnings)),
            ("Longer than the encoder reads", library.long_passages_sentence(manifest)),
            ("Disk", figures.amount(manifest.bytes)),
            ("Built in", figures.duration(manifest.seconds)),
            ("Fingerprint", manifest.fingerprint),
        ]
        title, whole = "Manifest", manifest.model_dump()
    users = page.workspace.users(line.name, "retriever")
    facts.append(("Used by", ", ".join(users)))
    fold = html.fold(title, html.as_json(whole), id="index-manifest") if whole else Markup()
    return Markup("{}{}{}").format(html.heading("About", first=True), html.defs(facts), fold)
