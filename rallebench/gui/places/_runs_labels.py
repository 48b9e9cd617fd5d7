"""Label mode of a run: an answer is labelled by a key, and the next one of the list without a label opens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from markupsafe import Markup

from rallebench.core.errors import UsageError
from rallebench.core.numbers import plural
from rallebench.gui import form, html
from rallebench.gui.addresses import DatasetAddress, RunAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.patches import Download, Patch
from rallebench.gui.places import _label_bar, _runs_one
from rallebench.gui.places._label_bar import BLIND, OPEN, Labeller
from rallebench.services.labels import CorrectedCopy
from rallebench.views import labels as views
from rallebench.views.run_views import OpenRun


def register(page: Page) -> None:
    page.actions("labels", choose_mode, summary, pool, export, reads=True)
    page.actions("labels", give, passage, plan, corrected_copy)


def choose_mode(page: Page, event: Event) -> Patch:
    """Begin to label at the first question of the list without a label, or end at the open one."""
    query, mode = event.read(RunAddress), event.choice("mode", ("", OPEN, BLIND))
    if mode and not query.label:
        query = replace(query, q="")
    only = query.only if mode or query.only not in views.CHIPS else ""
    return Patch(go=replace(query, label=mode, only=only).href)


def give(page: Page, event: Event) -> Iterator[Patch]:
    """Label the answer, and open the question after it: first its answer, so that the next key can follow, then its trace.

    Where the gold is called wrong for the first time without a right answer, the question stays open for one.
    """
    run, query = _runs_one.folder(page, event), event.read(RunAddress)
    mode, qid = event.choice("mode", (OPEN, BLIND)), event.text("qid")
    offered = _label_bar.offered_grades(mode)
    grade, person = offered[event.choice("grade", offered)], set_person(event)
    right = event.text("right").split(" | ") if grade == "gold-wrong" else []
    ids = [row.qid for row in _runs_one.fitting(page, run, query.only, query.words)]
    at = ids.index(qid) if qid in ids else len(ids)
    answer = views.find_answer(page.workspace, run.folder, qid)
    earlier = page.workbench.labels.book(answer.dataset).answers.get(answer.key, {}).get(person)
    page.workbench.labels.give(
        answer,
        grade,
        who=person,
        note=event.text("note"),
        blind=mode == BLIND,
        right=right,
    )
    if right == [""] and (earlier is None or earlier.grade != "gold-wrong"):
        yield _ask_right_answer(page, event, run, replace(query, q=qid))
        return
    left = ids[at + 1 :]
    following = _label_bar.next_to_label(page, event.session, run, left) or next(iter(left), qid)
    query = replace(query, q=following)
    yield Patch(
        {"run-question": _label_bar.preview(page, event.session, run, following, mode)},
        address=query.href,
    )
    yield Patch(
        {
            "run-rows": _runs_one.listing(page, run, query),
            "run-chips": _runs_one.chips(page, run, query),
            "run-question": _runs_one.detail(page, event, run, query),
        }
    )


def _ask_right_answer(page: Page, event: Event, run: OpenRun, query: RunAddress) -> Patch:
    """Put the focus into the field for the right answer of the open question."""
    inside = _label_bar.inside_bar(
        page, event.session, run, query.q, query.label or OPEN, correcting=True
    )
    return Patch(
        {
            "run-rows": _runs_one.listing(page, run, query),
            "run-chips": _runs_one.chips(page, run, query),
            "run-label": inside,
        }
    )


def set_person(event: Event) -> str:
    """Keep the name of the person in the window, and return it."""
    labeller = event.session.state(Labeller)
    labeller.name = event.text("who") or labeller.name
    return labeller.name


def passage(page: Page, event: Event) -> Patch:
    """Label a retrieved page as relevant or not."""
    run, qid = _runs_one.folder(page, event), event.text("qid")
    passage = views.find_passage(page.workspace, run.folder, qid, event.text("page"))
    answer = views.find_answer(page.workspace, run.folder, qid)
    person = set_person(event)
    page.workbench.labels.give_passage(answer, passage, event.flag("relevant"), who=person)
    mode, pooled = event.choice("mode", (OPEN, BLIND)), event.flag("pooled")
    bar = _label_bar.inside_bar(page, event.session, run, qid, mode, pooled=pooled)
    return Patch({"run-label": bar})


def pool(page: Page, event: Event) -> Patch:
    """Show the passages of other runs, too."""
    run, mode = _runs_one.folder(page, event), event.choice("mode", (OPEN, BLIND))
    qid = event.text("qid")
    bar = _label_bar.inside_bar(page, event.session, run, qid, mode, pooled=True)
    return Patch({"run-label": bar})


def export(page: Page, event: Event) -> Patch:
    """Save the labels as a file: CSV, or TREC qrels with the relevance that people gave."""
    run, shape = _runs_one.folder(page, event), event.choice("shape", ("csv", "qrels"))
    if shape == "csv":
        lines = views.csv_of_labels(views.run_labels(page.workspace, run.folder))
    else:
        lines = views.qrels_of_labels(run.folder)
    return Patch(download=Download(f"{run.name}-labels.{shape}", "".join(lines)))


def corrected_copy(page: Page, event: Event) -> Patch:
    """Copy the dataset with the right answers that people gave where the gold is wrong, and open the copy."""
    dataset, name = _runs_one.folder(page, event).folder.description().dataset, event.text("copy")
    if not name:
        raise UsageError("Give the corrected copy a name.")
    for piece in page.workbench.labels.corrected_copy(dataset, name):
        if isinstance(piece, CorrectedCopy):
            copy = piece
    changed = (
        f"{name} is a copy of {dataset} with {plural(len(copy.questions), 'corrected question')}."
    )
    left = ""
    if copy.uncorrected:
        left = f" Without a right answer: {', '.join(copy.uncorrected)}."
    return Patch(dialog="", go=DatasetAddress(name).href, say=changed + left)


def summary(page: Page, event: Event) -> Patch:
    """Show the counts and the agreement, with the form that draws a sample."""
    return Patch(dialog=summary_dialog(page, _runs_one.folder(page, event)))


def summary_dialog(page: Page, run: OpenRun) -> Markup:
    labels = views.run_labels(page.workspace, run.folder)
    sentences = Markup().join(html.note(sentence) for sentence in labels.sentences)
    columns = list(run.report.estimates) if run.report else []
    graders = (
        form.select(
            name,
            columns,
            "",
            blank="all answers alike" if name == "first" else "–",
            more=Markup(' aria-label="{}"').format(label),
        )
        for name, label in (("first", "Grader"), ("second", "Other grader"))
    )
    fields = form.text("size", "Answers to draw", "40")
    disagree = Markup('<div class="field"><span>More where graders disagree</span>{}</div>').format(
        Markup().join(graders)
    )
    draw = html.button("Draw a sample", "labels.plan", kind="primary", run=run.name)
    saves = Markup().join(
        html.button(f"Save as {name}", "labels.export", run=run.name, shape=key)
        for name, key in (("CSV", "csv"), ("qrels", "qrels"))
    )
    copy = form.text("copy", "Corrected copy of the dataset", "", f"{labels.dataset}-corrected")
    copy += html.button("Copy with corrected gold", "labels.corrected_copy", run=run.name)
    files = html.fold(
        "Files", Markup('<div class="row">{}</div>{}').format(saves, copy), id="labels-files"
    )
    return html.dialog("Labels", sentences + fields + disagree + files, draw, keep="Close")


def plan(page: Page, event: Event) -> Patch:
    """Draw a sample of answers to label, and list them."""
    run = _runs_one.folder(page, event)
    graders = tuple(filter(None, (event.text("first"), event.text("second"))))
    sample = page.workbench.labels.plan(
        views.run_answers(page.workspace, run.folder),
        int(event.number("size", "Answers to draw") or 0),
        graders=graders,
        apart=views.disagreements(run.folder, graders) if graders else (),
        who=event.session.state(Labeller).name,
    )
    mode = event.read(RunAddress).label or OPEN
    place = RunAddress(run.name, only=views.SAMPLE, label=mode)
    return Patch(dialog="", go=place.href, say=f"Drew {plural(len(sample.answers), 'answer')}.")
