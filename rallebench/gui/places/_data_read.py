"""Browse the passages of a corpus or the records of a dataset: a filtered list next to the chosen row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from rallebench.core.declining import accepted_answers
from rallebench.core.numbers import plural
from rallebench.core.types import Example, Passage
from rallebench.gui import form, html
from rallebench.gui.addresses import (
    CorpusAddress,
    DatasetAddress,
    IndexAddress,
    Query,
    QuestionAddress,
)
from rallebench.gui.events import Event, Rows, RowWindow
from rallebench.gui.frame import Page
from rallebench.gui.html import attributes, escape
from rallebench.gui.patches import Patch
from rallebench.gui.places import _data_edit
from rallebench.gui.places._data_build import chunk_fields, form_chunking, mark_chunks
from rallebench.gui.places._data_imported import warning_list
from rallebench.gui.places._data_search import badge, delete_button
from rallebench.services import uploads
from rallebench.views import gold_coverage, library, passages
from rallebench.views.edit_histories import edited_questions

ROW = 50
VIEWS: Mapping[str, type[CorpusAddress] | type[DatasetAddress]] = {
    "corpus": CorpusAddress,
    "dataset": DatasetAddress,
}
NOUNS = {"corpus": "passage", "dataset": "question"}
"""View → noun for the items in its list."""


@dataclass(frozen=True)
class ReadList(Query):
    """The list of a view: passages of a corpus, or questions of a dataset."""

    view: str = ""
    id: str = ""
    find: str = ""


def register(page: Page) -> None:
    page.view("data/corpus", open_corpus, back="data/list")
    page.view("data/dataset", open_dataset, back="data/list")
    for view in NOUNS:
        page.rows(f"data-{view}", list_rows)
    page.actions("read", pick, refilter, cut, reads=True)
    page.action("read.covered", coverage_table, reads=True)


def reader(
    event: Event,
    view: str,
    total: int,
    at: int,
    about: str,
    buttons: str,
    chosen: str,
    notes: str,
) -> Patch:
    """Draw a header with the import's notes, the filtered list, and the chosen row next to it."""
    query = event.read(VIEWS[view])
    name, find = query.id, query.find
    title = html.crumb("Data", "#/data/list", name, about, buttons=buttons)
    field = form.filter_field(f"{view}-find", find, "read.refilter", name="find")
    body = Markup(
        '<div class="read-head">{}{}</div><div class="cols read"><div class="start" data-form>{}{}'
        '<div id="{}-list" class="stack grow">{}</div></div>'
        '<div id="{}-chosen" class="chosen">{}</div></div>'
    ).format(
        title,
        notes,
        form.hidden_fields(id=name, view=view),
        field,
        view,
        listing(view, name, find, total, at),
        view,
        chosen,
    )
    return Patch({f"v-data-{view}": body}, title=name)


def origin_notes(origin: str, columns: Mapping[str, str]) -> tuple[str, ...]:
    """Return sentences about where the rows come from, and which columns were given roles.

    >>> origin_notes("hf:a/b?revision=1", {"question": "q"})
    ('Imported from hf:a/b?revision=1.', 'Columns by hand: question is q.')
    """
    roles = ", ".join(f"{role} is {column or 'no column'}" for role, column in columns.items())
    return tuple(
        filter(
            None,
            (
                f"Imported from {origin}." if origin else "",
                f"Columns by hand: {roles}." if roles else "",
            ),
        )
    )


def said_at_import(
    page: Page,
    skipped: int,
    problems: Sequence[str],
    warnings: Sequence[str],
    notes: Sequence[str] = (),
) -> Markup:
    """Draw the data lost or guessed during the import; "" if there is none."""
    parts = [plural(skipped, "bad row") + " left out"] if skipped else []
    parts += [plural(len(warnings), "warning")] if warnings else []
    parts += [plural(len(notes), "note")] if notes else []
    if not parts:
        return Markup()
    body = warning_list(warnings, notes)
    if skipped:
        rest = plural(skipped - len(problems), "further bad row") if skipped > len(problems) else ""
        lines = html.bullets(
            uploads.as_sent(page.workspace, line) for line in filter(None, [*problems, rest])
        )
        body += Markup('<div class="warn"><b>{}.</b>{}</div>').format(parts[0], lines)
    return html.fold("Import", body, gist=html.join_facts(*parts), id="import-said")


def listing(view: str, name: str, find: str, total: int, at: int = -1) -> Markup:
    """Draw the windowed list of the ``total`` rows that contain the words."""
    noun = NOUNS[view]
    if not total:
        return html.empty(f"No {noun} holds these words. Type others, or empty the filter.")
    key, label = ReadList(view, name, find), f"{noun.capitalize()}s"
    window = html.window(f"data-{view}", key, total, "read.pick", at=at, row=ROW, label=label)
    return html.note(plural(total, noun)) + window


def fitting(page: Page, view: str, name: str, find: str) -> Sequence[Any]:
    """Return the rows of a corpus or the examples of a dataset that contain the words."""
    rows = passages.corpus_rows if view == "corpus" else passages.records
    return rows(page.workspace, name, find)


def list_rows(page: Page, request: RowWindow) -> Rows:
    """Return the requested rows of either list."""
    key = request.read(ReadList)
    part = fitting(page, key.view, key.id, key.find)[request.part]
    if key.view == "corpus":
        listed_passages = passages.passages_at(page.workspace, key.id, list(part))
        lines = [(p.doc_id, p.title or p.doc_id, p.text[:240]) for p in listed_passages]
    else:
        unsaved = _data_edit.unsaved_questions(request.session, key.id)
        marks = {
            **edited_questions(page.workbench.edits.history(key.id)),
            **dict.fromkeys(unsaved, "unsaved changes"),
        }
        answers = [
            html.join_facts(
                marks.get(example.question.qid, ""),
                *accepted_answers(example.gold)[:2],
            )
            or "no answer"
            for example in part
        ]
        lines = [(x.question.qid, x.question.text, below) for x, below in zip(part, answers)]
    row = Markup('<span><b class="cut" dir="auto">{}</b><small dir="auto">{}</small></span>')
    return Rows([(id, row.format(title, below)) for id, title, below in lines])


def pick(page: Page, event: Event) -> Patch:
    """Show a row of either list in full."""
    view, name, id = event.text("view"), event.read(CorpusAddress).id, event.text("id")
    if view == "corpus":
        chosen = passage_view(passages.load_passage(page.workspace, name, id), name)
    else:
        chosen = record_pane(page, event, name, page.workbench.asking.example(name, id))
    return Patch({f"{view}-chosen": chosen})


def refilter(page: Page, event: Event) -> Patch:
    """Filter the list by the typed words, which are kept in the address."""
    view, name, find = event.choice("view", VIEWS), event.text("id"), event.text("find")
    total = len(fitting(page, view, name, find))
    address = VIEWS[view](id=name, find=find).href
    return Patch({f"{view}-list": listing(view, name, find, total)}, address=address)


# a corpus


def open_corpus(page: Page, event: Event) -> Patch:
    query = event.read(CorpusAddress)
    name, find = query.id, query.find
    rows = passages.corpus_rows(page.workspace, name, find)
    row = passages.passage_row(page.workspace, name, query.q)
    at = list(rows).index(row) if row is not None and row in rows else 0
    first = passages.passages_at(page.workspace, name, [rows[at]]) if rows else []
    chosen = passage_view(first[0], name) if first else Markup()
    about, buttons = "", Markup()
    if line := next((x for x in library.corpora(page.workspace) if x.name == name), None):
        pages = "" if line.pages is None else plural(line.pages, "page")
        about = html.join_facts(plural(line.passages, "passage"), pages)
        buttons = delete_button("corpus", name, line.own)
    buttons += html.button("Build an index…", "data.build_form", id=name)
    notes = Markup()
    if card := page.workspace.corpus_cards().get(name):
        problems = [problem.message for problem in card.problems]
        remarks = origin_notes(card.origin, card.columns)
        notes = said_at_import(page, card.skipped, problems, card.warnings, remarks)
    return reader(event, "corpus", len(rows), at, about, buttons, chosen, notes)


def passage_view(passage: Passage, corpus: str) -> Markup:
    """Draw a passage, and a preview of its chunks."""
    words = plural(len(passage.text.split()), "word")
    facts = html.join_facts(f"id {passage.doc_id}", f"page {passage.page_id or 'none'}", words)
    more = form.on_change("read.cut")
    hint = "… or a text of your own, cut in place of this passage"
    own = form.area("text", "Text", rows=3, more=Markup(' placeholder="{}"{}').format(hint, more))
    fields = form.hidden_fields(corpus=corpus, doc=passage.doc_id) + chunk_fields(None, more) + own
    fields = Markup('<div data-form class="stack">{}</div>').format(fields)
    gist = "the cuts are marked in the text"
    return Markup(
        '<h2 dir="auto">{}</h2>{}<div id="corpus-text" class="text" dir="auto">{}</div>{}'
    ).format(
        passage.title or passage.doc_id,
        html.note(facts),
        passage.text,
        html.fold("Try a chunking", fields, gist=gist, id="corpus-cutting"),
    )


def cut(page: Page, event: Event) -> Patch:
    """Mark the chunks of the passage or the typed text."""
    chunking, own = form_chunking(event), event.raw_text("text")
    if own.strip():
        return Patch({"corpus-text": mark_chunks(own, chunking)})
    passage = passages.load_passage(page.workspace, event.text("corpus"), event.text("doc"))
    text = (
        mark_chunks(passage.text, chunking, passage.doc_id, passage.title)
        if chunking
        else escape(passage.text)
    )
    return Patch({"corpus-text": text})


# a dataset


def open_dataset(page: Page, event: Event) -> Patch:
    query = event.read(DatasetAddress)
    name, find = query.id, query.find
    examples = passages.records(page.workspace, name, find)
    ids, qid = [example.question.qid for example in examples], query.q
    at = ids.index(qid) if qid in ids else 0
    refusal = page.workbench.edits.refusal(name)
    chosen = Markup()
    if query.new and not (refusal or page.read_only):
        at, chosen = -1, _data_edit.pane(page, event, name, _data_edit.NEW)
    elif examples:
        chosen = record_pane(page, event, name, examples[at])
    line = next((x for x in library.datasets(page.workspace) if x.name == name), None)
    total = plural(len(page.workspace.questions(name)), "question")
    buttons = edit_buttons(name, refusal) + delete_button("dataset", name, bool(line and line.own))
    buttons += html.link("Use in Build", QuestionAddress(set=name).href, "button")
    about = html.join_facts(total, line.kind if line else "")
    imported = page.workbench.data.import_notes(name)
    remarks = (*origin_notes(imported.origin, imported.columns), *imported.notes)
    notes = said_at_import(page, imported.skipped, imported.problems, imported.warnings, remarks)
    return reader(event, "dataset", len(examples), at, about, buttons, chosen, notes)


def edit_buttons(name: str, refusal: str) -> Markup:
    """Draw the ways to edit a dataset; of one that cannot be edited, the way to a copy."""
    if refusal:
        return html.button("Edit a copy", "edits.copy_form", id=name, title=refusal)
    return Markup().join(
        (
            html.button("Add a question", "edit.new", id=name),
            html.button("Add from a run…", "edits.run_form", id=name),
            html.button("History", "edits.show", id=name),
        )
    )


def record_pane(page: Page, event: Event, dataset: str, example: Example) -> Markup:
    """Draw a question: with fields if it can be edited, otherwise to be read."""
    gold, question = example.gold, example.question
    facts = [
        ("Id", question.qid),
        ("Must hold", " and ".join(" or ".join(group) for group in gold.required)),
        ("Reference", gold.reference),
        ("Turns before", str(len(question.history)) if question.history else ""),
    ]
    lazy = Markup('<div id="dataset-covered"><span data-lazy{}>…</span></div>').format(
        attributes(do="read.covered", id=dataset)
    )
    more = html.fold(
        "Coverage by index", lazy, gist="share of its gold pages", id="dataset-coverage"
    ) + html.fold(
        "Record",
        html.as_json(dict(example.record)),
        gist="as it is in the file",
        id="dataset-record",
    )
    if page.read_only or page.workbench.edits.refusal(dataset):
        return record_view(dataset, example, facts) + more
    warning = _data_edit.missing_pages(page, gold.pages)
    fields = _data_edit.pane(page, event, dataset, question.qid)
    return Markup("{}{}{}{}").format(warning, fields, html.defs(facts), more)


def record_view(dataset: str, example: Example, facts: list[tuple[str, str]]) -> Markup:
    """Draw a question that is only read."""
    gold, question = example.gold, example.question
    pages = [f"{gold.titles[p]} ({p})" if gold.titles.get(p) else p for p in sorted(gold.pages)]
    first, *rest = facts
    answers = ("Answers", html.join_facts(*accepted_answers(gold)) or "none")
    facts = [first, answers, ("Gold pages", ", ".join(pages) or "none"), *rest]
    build = html.link("Open in Build", QuestionAddress(dataset, question.qid).href, "button")
    at = IndexAddress(set=dataset, q=question.qid).href
    search = html.link("Search an index for it", at, "button")
    return Markup('<h2 dir="auto">{}</h2>{}<div class="row">{}{}</div>').format(
        question.text, html.defs(facts), build, search
    )


def coverage_table(page: Page, event: Event) -> Patch:
    """Draw the dataset's coverage by every retriever; computed only when the section is opened."""
    rows = []
    for name, share in gold_coverage.index_coverage(page.workspace, event.text("id")).items():
        count = f"{share.held:,} of {share.total:,}" if share else "–"
        rows.append([html.name_link(name, IndexAddress(id=name)), badge(share), count])
    return Patch(
        {"dataset-covered": html.rows(["Index", "Coverage", ">Gold pages"], rows, kind="covs")}
    )
