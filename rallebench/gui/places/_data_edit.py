"""A question of a dataset, edited in place: fields, gold pages chosen by a search, saving, adding, deleting."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from textwrap import shorten

from markupsafe import Markup

from rallebench.core.dataset_edits import EditableQuestion, Evidence, GoldPage, QuestionDraft
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.types import Hit
from rallebench.gui import form, html, panels
from rallebench.gui.addresses import DatasetAddress, IndexAddress, QuestionAddress
from rallebench.gui.events import Event, WindowState
from rallebench.gui.frame import Page
from rallebench.gui.patches import Patch
from rallebench.gui.places import _gold_choice
from rallebench.gui.places._versions import words_changed
from rallebench.services.dataset_edits import ChangedQuestionError
from rallebench.views import gold_coverage

UNANSWERABLE = "No answer is right; an answer should decline"
NEW = ""
"""Id of the question that is being added."""


@dataclass
class UnsavedQuestions:
    """The unsaved edits of a window: (dataset, id) → question. ``index``, ``hits``: the last search for a gold page; ``saved``:
    mark of a question before this window saved it → after it, for text typed meanwhile.
    """

    drafts: dict[tuple[str, str], EditableQuestion] = field(default_factory=dict)
    index: str = ""
    hits: tuple[Hit, ...] = ()
    saved: dict[str, str] = field(default_factory=dict)

    def mark(self, event: Event) -> str:
        """Return the mark of the question that the form of an event was drawn from, or that this window made of it."""
        return self.saved.get(event.text("mark"), event.text("mark"))

    def replace(self, before: str, after: str) -> None:
        """Record that this window saved a question."""
        earlier = {old for old, new in self.saved.items() if new == before}
        self.saved |= dict.fromkeys({before, *earlier} - {after}, after)
        self.saved.pop(after, None)


def register(page: Page) -> None:
    page.actions("edit", new, find, take, drop, keep, save, discard, delete)


def unsaved_questions(session: WindowState, dataset: str) -> dict[str, EditableQuestion]:
    """Return the unsaved questions of a dataset by id."""
    drafts = session.state(UnsavedQuestions).drafts
    return {qid: question for (name, qid), question in drafts.items() if name == dataset}


# the pane


def pane(page: Page, event: Event, dataset: str, qid: str) -> Markup:
    """Draw the fields of a question; ``NEW``: of one to be added."""
    draft = unsaved_questions(event.session, dataset).get(qid)
    is_edited = draft is not None
    if draft is None:
        draft = EditableQuestion(NEW, QuestionDraft(""), "")
        if qid != NEW:
            draft = page.workbench.edits.read(dataset, qid)
    hidden = form.hidden_fields(id=dataset, qid=qid, mark=draft.mark)
    title, own = Markup(), Markup()
    if qid == NEW:
        title = Markup("<h2>Add a question</h2>")
        own = form.text("own", "Id", hint="given automatically")
    return Markup(
        '<div id="edit-form" class="stack edit" data-form data-problems{}>{}{}{}{}{}{}<div class="row">{}</div></div>'
    ).format(
        html.attributes(own=f"{dataset}/{qid}"),
        title,
        hidden,
        draft_fields(draft.draft),
        gold_part(page, event, dataset, draft.draft),
        form.text(
            "group", "Article or group", draft.draft.group, "none", more=form.on_change("edit.keep")
        ),
        own,
        buttons(dataset, qid, is_edited),
    )


def draft_fields(draft: QuestionDraft) -> Markup:
    follow = form.on_change("edit.keep")
    return Markup().join(
        (
            form.area("text", "Question", draft.text, rows=2, more=follow),
            form.area(
                "answers", "Right answers, one a line", "\n".join(draft.answers), 3, more=follow
            ),
            form.check("unanswerable", UNANSWERABLE, draft.unanswerable, more=follow),
        )
    )


def buttons(dataset: str, qid: str, is_edited: bool) -> Markup:
    if qid == NEW:
        add = html.button("Add the question", "edit.save", kind="primary", save="1")
        return add + html.button("Cancel", "edit.discard", kind="quiet")
    drawn = html.button("Save", "edit.save", kind="primary", save="1", title="Ctrl S")
    drawn += Markup('<span id="edit-state">{}</span>').format(state(is_edited))
    drawn += html.button("Delete", "edit.delete", kind="quiet")
    return (
        drawn
        + html.link("Open in Build", QuestionAddress(dataset, qid).href, "button quiet")
        + html.link("Search an index for it", IndexAddress(set=dataset, q=qid).href, "button quiet")
    )


def state(is_edited: bool) -> Markup:
    """Draw the mark of unsaved changes, with the way back."""
    if not is_edited:
        return Markup()
    undo = html.button("Discard changes", "edit.discard", kind="quiet")
    return Markup('<small class="note" data-unsaved>Unsaved changes</small>{}').format(undo)


# gold pages


def gold_part(page: Page, event: Event, dataset: str, draft: QuestionDraft) -> Markup:
    """Draw the gold pages and the search for further ones."""
    index = event.session.state(UnsavedQuestions).index
    search = Markup('<div class="ask">{}{}{}</div><div id="edit-hits"></div>').format(
        _gold_choice.query_field("edit.find"),
        _gold_choice.index_choice(
            list(page.workspace.retrievers()),
            index or gold_coverage.usual_index(page.workspace, dataset),
        ),
        html.button("Search", "edit.find"),
    )
    return Markup('<div id="edit-gold">{}</div>{}').format(
        gold_list(draft.evidence),
        html.fold("Find a gold page", search, gist="by searching an index", id="edit-find"),
    )


def gold_list(evidence: Evidence) -> Markup:
    """Draw the gold pages, with the field by which the form sends them."""
    value = json.dumps(
        [[[page.page_id, page.title, page.doc_id] for page in pages] for pages in evidence],
        ensure_ascii=False,
    )
    return _gold_choice.page_list(evidence, "edit") + form.hidden_fields(gold=value)


def read_evidence(event: Event) -> Evidence:
    """Return the gold pages in the form. Raises UsageError if it was not drawn by this page."""
    try:
        sets = json.loads(event.raw_text("gold") or "[]")
        if all(is_page(page) for pages in sets for page in pages):
            return tuple(tuple(GoldPage(*page) for page in pages) for pages in sets)
    except (TypeError, ValueError, RecursionError):
        pass
    raise UsageError("The gold pages cannot be read; reload the page.")


def is_page(value: object) -> bool:
    """Return whether a value has the three texts of a gold page."""
    if not isinstance(value, list) or len(value) != 3:
        return False
    return all(isinstance(text, str) for text in value) and any(value)


def read_form(event: Event) -> QuestionDraft:
    return QuestionDraft(
        event.raw_text("text"),
        tuple(event.raw_text("answers").splitlines()),
        read_evidence(event),
        event.flag("unanswerable"),
        event.text("group"),
    )


def find(page: Page, event: Event) -> Iterator[Patch]:
    """Search for passages that may hold the answer."""
    draft, unsaved = read_form(event), event.session.state(UnsavedQuestions)
    unsaved.index = event.text("index")
    unsaved.hits = yield from _gold_choice.search(
        page.workbench.data, unsaved.index, event.text("query"), draft, "edit"
    )


def take(page: Page, event: Event) -> Patch:
    """Make a page gold, or remove it."""
    return with_evidence(page, event, _gold_choice.take(read_evidence(event), event))


def drop(page: Page, event: Event) -> Patch:
    """Remove a gold page."""
    return with_evidence(page, event, _gold_choice.drop(read_evidence(event), event))


def with_evidence(page: Page, event: Event, evidence: Evidence) -> Patch:
    draft = replace(read_form(event), evidence=evidence).tidy()
    hits = event.session.state(UnsavedQuestions).hits
    drawn = _gold_choice.hit_list(hits, draft, "edit") if hits else Markup()
    return remember(page, event, draft) | Patch(
        {"edit-gold": gold_list(draft.evidence), "edit-hits": drawn}
    )


# actions


def new(page: Page, event: Event) -> Patch:
    """Open the fields of a question to be added."""
    return Patch(go=DatasetAddress(event.text("id"), event.read(DatasetAddress).find, new="1").href)


def keep(page: Page, event: Event) -> Patch:
    """Keep an unsaved edit in this window, so that another question can be read meanwhile."""
    return remember(page, event, read_form(event))


def remember(page: Page, event: Event, draft: QuestionDraft) -> Patch:
    name, qid = event.text("id"), event.text("qid")
    unsaved = event.session.state(UnsavedQuestions)
    drafts = unsaved.drafts
    stored: QuestionDraft | None = None
    with suppress(RalleError):
        stored = page.workbench.edits.read(name, qid).draft if qid != NEW else QuestionDraft("")
    drafts.pop((name, qid), None)
    is_edited = draft.tidy() != stored
    if is_edited:
        drafts[name, qid] = EditableQuestion(qid, draft, unsaved.mark(event))
    return Patch({"edit-state": state(is_edited)} if qid != NEW else {})


def save(page: Page, event: Event) -> Patch:
    """Save the question. If another window changed it meanwhile, ask first."""
    name, qid, draft = event.text("id"), event.text("qid"), read_form(event)
    unsaved = event.session.state(UnsavedQuestions)
    known = {} if event.flag("over") else {qid: unsaved.mark(event)}
    edits, say = page.workbench.edits, "Saved."
    if qid == NEW:
        (qid,) = edits.add(name, draft, qid=event.text("own")).added
        say = f"Added as {qid}."
    else:
        try:
            say = say if edits.change(name, {qid: draft}, known) else "Nothing was changed."
        except ChangedQuestionError as error:
            return ask_over(page, event, draft, error)
        unsaved.replace(unsaved.mark(event), edits.read(name, qid).mark)
    forget(event, name)
    return open_question(page, event, name, qid) | Patch(dialog="", say=say)


def ask_over(page: Page, event: Event, draft: QuestionDraft, error: ChangedQuestionError) -> Patch:
    """Show the question as another window saved it, and ask which one stays."""
    name, qid = event.text("id"), event.text("qid")
    if error.record is None:
        again = {"id": name, "qid": NEW, "own": qid}
        do, label, title = "edit.save", "Add it again", f"{qid} was deleted in another window"
        body = Markup("<p>{}</p>").format("Your version is added as a new question at the end.")
    else:
        again = {"id": name, "qid": qid, "over": "on"}
        do, label, title = "edit.save", "Save over it", f"{qid} was changed in another window"
        theirs = page.workbench.edits.read(name, qid).draft
        lines = (
            ("Question", theirs.text, draft.text),
            ("Right answers", "\n".join(theirs.answers), "\n".join(draft.tidy().answers)),
            ("Gold pages", page_words(theirs), page_words(draft.tidy())),
        )
        body = html.note("Their version, with your changes marked. History keeps both.") + Markup(
            '<div class="diff">{}</div>'
        ).format(
            Markup().join(
                Markup("<div><small>{}</small><p>{}</p></div>").format(
                    part, words_changed(old, new)
                )
                for part, old, new in lines
            )
        )
    texts = {"text": draft.text, "answers": "\n".join(draft.answers), "group": draft.group}
    flags = {"unanswerable": "on"} if draft.unanswerable else {}
    sent = form.hidden_fields(**texts, **flags, gold=event.raw_text("gold"))
    return panels.ask(title, body + sent, label, do, keep="Keep theirs", **again)


def page_words(draft: QuestionDraft) -> str:
    return " or ".join(" and ".join(page.page_id for page in pages) for pages in draft.evidence)


def discard(page: Page, event: Event) -> Patch:
    """Return to the saved question."""
    name, qid = event.text("id"), event.text("qid")
    forget(event, name)
    return open_question(page, event, name, qid)


def delete(page: Page, event: Event) -> Patch:
    """Delete the question. The message offers to bring it back."""
    name, qid = event.text("id"), event.text("qid")
    following, text = neighbour(page, name, qid), page.workbench.edits.read(name, qid).draft.text
    page.workbench.edits.delete(name, [qid], {qid: event.text("mark")})
    forget(event, name)
    number = len(page.workbench.edits.history(name).edits)
    undo = html.button("Bring back", "edits.undo", id=name, number=number)
    return open_question(page, event, name, following) | Patch(
        say=f"Deleted “{shorten(text, 80, placeholder=' …')}”.", undo=undo
    )


def neighbour(page: Page, name: str, qid: str) -> str:
    """Return the question after a question, or the one before the last."""
    ids = [example.question.qid for example in page.workspace.questions(name)]
    place = ids.index(qid) if qid in ids else 0
    return next(iter([*ids[place + 1 :], *ids[:place][-1:]]), "")


def forget(event: Event, name: str) -> None:
    event.session.state(UnsavedQuestions).drafts.pop((name, event.text("qid")), None)


def open_question(page: Page, event: Event, name: str, qid: str) -> Patch:
    """Open a question of the dataset anew, under the filter of the address."""
    query = event.read(DatasetAddress)
    return Patch(go=DatasetAddress(name, query.find, qid).href)


def missing_pages(page: Page, pages: Collection[str]) -> Markup:
    """Warn about gold pages that no corpus has; "" if there are none, or a corpus cannot be read."""
    ids = set(pages)
    for corpus in gold_coverage.indexed_corpora(page.workspace) if ids else ():
        indexed = gold_coverage.indexed_pages(page.workspace, corpus)
        if indexed is None:
            return Markup()
        ids -= indexed
    if not ids:
        return Markup()
    words = f"gold {'page' if len(ids) == 1 else 'pages'} {', '.join(sorted(ids)[:3])}"
    return html.warning(f"No corpus has the {words}, so a search cannot find the answer there.")
