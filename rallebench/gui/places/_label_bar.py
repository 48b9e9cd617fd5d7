"""The parts of label mode in a run: the grades of an answer, its passages, and the question without its gold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from markupsafe import Markup

from rallebench.core.errors import RalleError
from rallebench.core.labels import GRADES, KEYS, AnswerLabel, Grade, RunAnswer
from rallebench.core.types import Episode, Passage
from rallebench.gui import form, html
from rallebench.gui.addresses import RunAddress
from rallebench.gui.answers import draw_answer
from rallebench.gui.events import WindowState
from rallebench.gui.frame import Page
from rallebench.gui.html import attributes
from rallebench.gui.places._steps import article
from rallebench.services.labels import usual_person
from rallebench.views import labels as views
from rallebench.views.run_questions import QuestionRow, open_question
from rallebench.views.run_views import OpenRun

OPEN, BLIND = "open", "blind"
"""Modes of labelling, as the address has them: with and without sight of gold and verdicts."""
GRADE_SIGNS = {"right": "✓", "partly": "≈", "wrong": "✕"}
GOLD_WRONG_KEY = next(key for key, grade in KEYS.items() if grade == "gold-wrong")
MOST_PASSAGES = 20
"""Retrieved pages that can be labelled."""


@dataclass
class Labeller:
    """The person who labels in a window."""

    name: str = field(default_factory=usual_person)


def begin_labelling(
    page: Page, session: WindowState, run: OpenRun, query: RunAddress, ids: Sequence[str]
) -> RunAddress:
    """Open the first question of the filtered list that the person has not labelled; an open one of the list stays."""
    if query.q in ids or not ids:
        return query
    return replace(query, q=next_to_label(page, session, run, ids) or ids[0])


def next_to_label(page: Page, session: WindowState, run: OpenRun, ids: Sequence[str]) -> str:
    """Return the first of these questions that the person has not labelled; "" if there is none."""
    left = views.open_to(page.workspace, run.folder, session.state(Labeller).name)
    return next((qid for qid in ids if qid in left), "")


def bar(page: Page, session: WindowState, run: OpenRun, qid: str, mode: str) -> Markup:
    """Draw the grades with their keys, the person's label, and the fields that go with it; or say that there is none."""
    inside = inside_bar(page, session, run, qid, mode)
    return Markup('<div id="run-label" class="stack" data-form>{}</div>').format(inside)


def offered_grades(mode: str) -> dict[str, Grade]:
    """Return key → grade in a mode; who labels blind sees no gold, so cannot call it wrong."""
    return {
        key: grade for key, grade in KEYS.items() if not (mode == BLIND and grade == "gold-wrong")
    }


def inside_bar(
    page: Page,
    session: WindowState,
    run: OpenRun,
    qid: str,
    mode: str,
    *,
    pooled: bool = False,
    correcting: bool = False,
) -> Markup:
    """Draw the content of the bar. ``pooled``: with the passages of other runs; ``correcting``: with the focus in the field
    for the right answer.
    """
    try:
        answer = views.find_answer(page.workspace, run.folder, qid)
    except RalleError as error:
        return html.note(error)
    person = session.state(Labeller).name
    labels = page.workbench.labels.book(answer.dataset).answers.get(answer.key, {})
    own = labels.get(person)
    grades = Markup().join(
        grade_button(key, grade, own) for key, grade in offered_grades(mode).items()
    )
    others = [
        f"{GRADES[label.grade]} ({label.who})"
        for label in labels.values()
        if label.who != person and mode == OPEN
    ]
    fields = [
        form.text("note", "Note", own.note if own else ""),
        form.text("who", "Labelled by", person),
    ]
    if mode == OPEN:
        follow = attributes(do="labels.give", on="enter", grade=GOLD_WRONG_KEY)
        fields.insert(
            1,
            form.text(
                "right",
                "Right answer, if the gold is wrong",
                " | ".join(own.right if own else ()),
                "Enter saves it and moves on",
                more=follow + Markup(" data-begin") * correcting,
            ),
        )
    return Markup(
        '<div class="chips" role="group" aria-label="Label of the answer">{}</div>{}<div class="row">{}</div>{}{}'
    ).format(
        grades,
        html.note(html.join_facts(*others)),
        Markup().join(fields),
        form.hidden_fields(run=run.name, qid=qid, mode=mode, pooled=str(int(pooled))),
        passages(page, run, answer, pooled=pooled),
    )


def row_label(
    page: Page, session: WindowState, run: OpenRun, row: QuestionRow, mode: str
) -> Markup:
    """Draw the grades of a row's answer, blind only the person's own; '' if there is none."""
    if not views.is_answered(row):
        return Markup()
    answer = views.as_answer(run.folder.description().dataset, run.folder, row)
    labels = page.workbench.labels.book(answer.dataset).answers.get(answer.key, {})
    person = session.state(Labeller).name
    own = [label.grade for who, label in labels.items() if mode == OPEN or who == person]
    words = ", ".join(
        f"{GRADE_SIGNS.get(grade, '')} {GRADES[grade].lower()}".strip() for grade in own
    )
    return Markup("<s>label</s><b>{}</b>").format(words) if words else Markup()


def grade_button(key: str, grade: Grade, own: AnswerLabel | None) -> Markup:
    """Draw the button of a grade, pressed if it is the person's own."""
    on = own is not None and own.grade == grade
    data = attributes(do="labels.give", grade=key, key=key, turn=1)
    label = "Skip" if grade == "skip" else GRADES[grade]
    return Markup(
        '<button type="button" class="{}" aria-pressed="{}" title="{}"{}><b>{}</b> {}</button>'
    ).format("on" if on else "", str(on).lower(), f"Key {key}", data, key, label)


def passages(page: Page, run: OpenRun, answer: RunAnswer, *, pooled: bool) -> Markup:
    """Draw the retrieved pages with a switch each: relevant or not, as people labelled them in any run. ``pooled``: also those
    that other runs retrieved for the question.
    """
    pages = retrieved_pages(open_question(page.workspace, run.folder, answer.qid)[1])
    of_run = len(pages)
    if pooled:
        for passage in views.pooled_passages(page.workspace, run.folder, answer.qid):
            pages.setdefault(passage.page_id or passage.doc_id, passage)
    book, rows = page.workbench.labels.book(answer.dataset), Markup()
    for rank, passage in enumerate(pages.values(), 1):
        doc_id = "" if passage.page_id else passage.doc_id
        relevant = book.relevance(answer.key.question, passage.page_id, doc_id)
        switch = Markup().join(
            relevance_button(words, value, passage, relevant)
            for words, value in (("Relevant", True), ("Not relevant", False))
        )
        name = passage.title or passage.page_id or passage.doc_id
        rows += Markup(
            '<div class="row"><span dir="auto">{} {}</span><span class="gap"></span>{}</div>'
        ).format(rank if rank <= of_run else "other run:", name, switch)
    if not pooled:
        rows += html.button("Passages of other runs", "labels.pool", kind="quiet")
    elif len(pages) == of_run:
        rows += html.note("Other runs retrieved no further page for this question.")
    gist = f"{len(pages)} of this and other runs" if pooled else "relevant or not"
    return html.fold("Passages", rows, gist=gist, id="run-passages", opened=pooled)


def relevance_button(label: str, value: bool, passage: Passage, relevant: bool | None) -> Markup:
    on = relevant is value
    data = attributes(
        do="labels.passage", page=passage.page_id or passage.doc_id, relevant=int(value)
    )
    return Markup('<button type="button" class="{}" aria-pressed="{}"{}>{}</button>').format(
        "quiet on" if on else "quiet", str(on).lower(), data, label
    )


def retrieved_pages(episode: Episode | None) -> dict[str, Passage]:
    """Return id → the best passage of each retrieved page."""
    pages: dict[str, Passage] = {}
    for hit in episode.hits if episode else ():
        pages.setdefault(hit.passage.page_id or hit.passage.doc_id, hit.passage)
    return dict(list(pages.items())[:MOST_PASSAGES])


def preview(page: Page, session: WindowState, run: OpenRun, qid: str, mode: str) -> Markup:
    """Draw the grades with the question and its answer, before the trace is read."""
    example, episode = open_question(page.workspace, run.folder, qid)
    answer = draw_answer(episode.answer) if episode else Markup()
    return bar(page, session, run, qid, mode) + Markup(
        '<h2 class="question" dir="auto">{}</h2><div class="ans" dir="auto">{}</div>'
    ).format(example.question.text, answer)


def blind_view(page: Page, run: OpenRun, qid: str) -> Markup:
    """Draw a question with its answer and passages, without gold, verdict and scores."""
    example, episode = open_question(page.workspace, run.folder, qid)
    head = Markup('<h2 class="question" dir="auto">{}</h2>').format(example.question.text)
    if episode is None:
        return head + html.note("Not asked yet")
    hits = {hit.passage.doc_id: hit for hit in reversed(episode.hits)}
    best = sorted(hits.values(), key=lambda hit: episode.hits.index(hit))[:MOST_PASSAGES]
    texts = Markup().join(article(rank, hit, ()) for rank, hit in enumerate(best, 1))
    return head + Markup('<div class="ans" dir="auto">{}</div>{}').format(
        draw_answer(episode.answer), texts
    )
