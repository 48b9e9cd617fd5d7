"""Gold pages chosen by searching: question by question, the pages of an index with the answer marked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from markupsafe import Markup

from rallebench.core.dataset_edits import Evidence, GoldPage, QuestionDraft
from rallebench.core.errors import UsageError
from rallebench.core.numbers import plural
from rallebench.core.types import Example, Hit
from rallebench.gui import form, html
from rallebench.gui.addresses import DatasetAddress, GoldAddress
from rallebench.gui.events import Event, Rows, RowWindow, WindowState
from rallebench.gui.frame import Page
from rallebench.gui.patches import Patch
from rallebench.gui.places import _gold_choice
from rallebench.services import gold_search
from rallebench.views import gold_coverage

ROW = 50


@dataclass
class GoldChoices:
    """The unsaved choices of a window for a dataset. ``chosen``: id → gold pages; ``proposed``: id → a page that waits for a person;
    ``hits``: of the open question ``qid``.
    """

    dataset: str = ""
    index: str = ""
    chosen: dict[str, Evidence] = field(default_factory=dict)
    proposed: dict[str, GoldPage] = field(default_factory=dict)
    qid: str = ""
    hits: tuple[Hit, ...] = ()


def register(page: Page) -> None:
    page.view("data/gold", open_gold, back="data/list")
    page.rows("data-gold", list_rows)
    page.actions("gold", pick, search, switch, propose, reads=True)
    page.actions("gold", take, drop, accept, accept_all, save)


def window_choices(page: Page, session: WindowState, dataset: str) -> GoldChoices:
    """Return the window's choices for a dataset; another dataset begins anew."""
    choices = session.state(GoldChoices)
    if choices.dataset != dataset:
        choices = GoldChoices(dataset, gold_coverage.usual_index(page.workspace, dataset))
        session.put(choices)
    return choices


def open_draft(page: Page, choices: GoldChoices) -> QuestionDraft:
    """Return the open question with its chosen pages, else those of the dataset."""
    draft = page.workbench.edits.read(choices.dataset, choices.qid).draft
    return replace(draft, evidence=choices.chosen.get(choices.qid, draft.evidence))


def has_gold(choices: GoldChoices, example: Example) -> bool:
    """Return whether a question has gold pages, saved or not."""
    saved = example.gold.provenance or example.gold.passages
    return bool(choices.chosen.get(example.question.qid, saved))


# the view


def open_gold(page: Page, event: Event) -> Iterator[Patch]:
    """Open the question in the address, else the first without a gold page, and search for it."""
    query = event.read(GoldAddress)
    if not query.id:
        raise UsageError("The address names no dataset; choose one of the list in Data.")
    examples = page.workspace.questions(query.id)
    choices = window_choices(page, event.session, query.id)
    if query.index:
        choices.index = query.index
    qids = [x.question.qid for x in examples]
    without = next((x.question.qid for x in examples if not has_gold(choices, x)), qids[0])
    choices.qid, choices.hits = query.q if query.q in qids else without, ()
    body = Markup(
        '<div class="read-head" data-form data-problems><div id="gold-bar">{}</div><div id="gold-status"></div></div>'
        '<div class="cols read"><div class="start"><div id="gold-list" class="stack grow">{}</div></div>'
        '<div id="gold-chosen" class="chosen" data-form data-problems>{}</div></div>'
    ).format(bar(page, choices), listing(page, choices), chosen_view(page, choices))
    yield Patch({"v-data-gold": body}, title=f"Gold pages of {query.id}")
    yield from search_open_question(page, choices, "")


def bar(page: Page, choices: GoldChoices) -> Markup:
    """Draw the counts, the index, and what can be done with all questions."""
    examples = page.workspace.questions(choices.dataset)
    have = sum(has_gold(choices, x) for x in examples)
    about = f"{have:,} of {plural(len(examples), 'question')} with a gold page"
    names = list(page.workspace.retrievers())
    more = Markup(' class="auto"{}').format(form.on_change("gold.switch", id=choices.dataset))
    refusal = page.workbench.edits.refusal(choices.dataset)
    count = len(choices.chosen)
    buttons = _gold_choice.index_choice(names, choices.index, more)
    buttons += html.button("Propose pages with the answer", "gold.propose", id=choices.dataset)
    if choices.proposed:
        label = f"Accept all {plural(len(choices.proposed), 'proposal')}"
        buttons += html.button(label, "gold.accept_all", id=choices.dataset)
    label = f"Save gold of {plural(count, 'question')}" if count else "Save"
    off = not count or bool(refusal)
    buttons += html.button(
        label, "gold.save", kind="primary", disabled=off, title=refusal, id=choices.dataset
    )
    unsaved = Markup("<span data-unsaved></span>") if count else Markup()
    title = html.crumb(
        choices.dataset,
        DatasetAddress(choices.dataset).href,
        "Gold pages",
        about,
        buttons=Markup('<div class="row" id="gold-buttons">{}{}</div>').format(buttons, unsaved),
    )
    return Markup("{}{}").format(title, html.warning(refusal))


def listing(page: Page, choices: GoldChoices) -> Markup:
    """Draw the windowed list of the questions."""
    examples = page.workspace.questions(choices.dataset)
    at = next((n for n, x in enumerate(examples) if x.question.qid == choices.qid), 0)
    key = GoldAddress(choices.dataset)
    return html.window("data-gold", key, len(examples), "gold.pick", at=at, row=ROW)


def list_rows(page: Page, request: RowWindow) -> Rows:
    """Return the requested questions, each with its gold pages or proposal."""
    dataset = request.read(GoldAddress).id
    choices = window_choices(page, request.session, dataset)
    row = Markup('<span><b class="cut" dir="auto">{}</b><small dir="auto">{}</small></span>')
    lines = []
    for example in page.workspace.questions(dataset)[request.part]:
        qid, below = example.question.qid, Markup('<span class="bad">no gold page</span>')
        if has_gold(choices, example):
            new = " · not saved" if qid in choices.chosen else ""
            below = Markup('<span class="good">✓</span> {}{}').format(
                page_names(choices, example), new
            )
        elif proposal := choices.proposed.get(qid):
            below = Markup("proposed: {}").format(proposal.title or proposal.page_id)
        lines.append((qid, row.format(example.question.text, below)))
    return Rows(lines)


def page_names(choices: GoldChoices, example: Example) -> str:
    """Return the first gold pages of a question in words."""
    gold = example.gold
    if (chosen := choices.chosen.get(example.question.qid)) is not None:
        pages = [page.title or page.page_id or page.doc_id for own in chosen for page in own]
    elif gold.pages:
        pages = [gold.titles.get(page, page) for page in sorted(gold.pages)]
    else:
        pages = sorted(frozenset().union(*gold.passages))
    return html.join_facts(*pages[:2])


def chosen_view(page: Page, choices: GoldChoices, news: str = "Searching …") -> Markup:
    """Draw the open question with its answers, its gold pages, and the pages of the search."""
    draft = open_draft(page, choices)
    keys = "1 to 9 take or remove a page · Y accepts the proposal, N rejects it · J and K next and previous question"
    return Markup(
        '<h2 dir="auto">{}</h2>{}{}{}{}<div class="ask">{}</div><div id="gold-hits">{}</div>{}'
    ).format(
        draft.text,
        html.defs((("Answers", html.join_facts(*draft.answers) or "none"),)),
        _gold_choice.page_list(draft.evidence, "gold"),
        proposal_line(choices),
        form.hidden_fields(id=choices.dataset, qid=choices.qid),
        _gold_choice.query_field("gold.search"),
        _gold_choice.hit_list(choices.hits, draft, "gold") if choices.hits else html.note(news),
        html.note(keys),
    )


def proposal_line(choices: GoldChoices) -> Markup:
    """Draw the proposal for the open question, which only a person accepts."""
    if (proposal := choices.proposed.get(choices.qid)) is None:
        return Markup()
    yes = html.button("Accept it", "gold.accept", title="Key Y", key="y", answer="yes")
    no = html.button("Reject it", "gold.accept", kind="quiet", title="Key N", key="n", answer="no")
    words = Markup('<span>Proposed, since it contains the answer: <b dir="auto">{}</b></span>')
    return Markup('<div class="row proposal">{}{}{}</div>').format(
        words.format(proposal.title or proposal.page_id), yes, no
    )


# actions


def search_open_question(page: Page, choices: GoldChoices, query: str) -> Iterator[Patch]:
    """Search for the open question, or for other words, and draw the pages."""
    draft = open_draft(page, choices)
    choices.hits = yield from _gold_choice.search(
        page.workbench.data, choices.index, query, draft, "gold"
    )


def pick(page: Page, event: Event) -> Iterator[Patch]:
    """Open another question."""
    choices = window_choices(page, event.session, event.read(GoldAddress).id)
    choices.qid, choices.hits = event.text("id"), ()
    yield Patch({"gold-chosen": chosen_view(page, choices)})
    yield from search_open_question(page, choices, "")


def search(page: Page, event: Event) -> Iterator[Patch]:
    """Search for other words than the question's."""
    choices = window_choices(page, event.session, event.text("id"))
    yield from search_open_question(page, choices, event.text("query"))


def switch(page: Page, event: Event) -> Iterator[Patch]:
    """Search another index."""
    choices = window_choices(page, event.session, event.text("id"))
    choices.index = event.text("index")
    address = GoldAddress(choices.dataset, choices.index, choices.qid).href
    yield Patch(address=address)
    yield from search_open_question(page, choices, "")


def take(page: Page, event: Event) -> Patch:
    """Make a page gold, or remove it."""
    choices = window_choices(page, event.session, event.text("id"))
    return choose(page, choices, _gold_choice.take(open_draft(page, choices).evidence, event))


def drop(page: Page, event: Event) -> Patch:
    """Remove a gold page."""
    choices = window_choices(page, event.session, event.text("id"))
    return choose(page, choices, _gold_choice.drop(open_draft(page, choices).evidence, event))


def choose(page: Page, choices: GoldChoices, evidence: Evidence) -> Patch:
    """Keep the gold pages of the open question until they are saved."""
    choices.chosen[choices.qid] = evidence
    choices.proposed.pop(choices.qid, None)
    return drawn_again(page, choices)


def accept(page: Page, event: Event) -> Patch:
    """Accept or reject the proposal for the open question."""
    choices = window_choices(page, event.session, event.text("id"))
    proposal = choices.proposed.pop(choices.qid, None)
    if proposal and event.text("answer") == "yes":
        choices.chosen[choices.qid] = ((proposal,),)
    return drawn_again(page, choices)


def accept_all(page: Page, event: Event) -> Patch:
    """Accept all proposals; they are saved by a further press."""
    choices = window_choices(page, event.session, event.text("id"))
    choices.chosen |= {qid: ((own,),) for qid, own in choices.proposed.items()}
    choices.proposed.clear()
    return drawn_again(page, choices)


def drawn_again(page: Page, choices: GoldChoices) -> Patch:
    return Patch(
        {
            "gold-bar": bar(page, choices),
            "gold-list": listing(page, choices),
            "gold-chosen": chosen_view(page, choices, "No page was found."),
        }
    )


def propose(page: Page, event: Event) -> Iterator[Patch]:
    """Propose a page with the answer for each question that has no gold page."""
    choices = window_choices(page, event.session, event.text("id"))
    examples = page.workspace.questions(choices.dataset)
    open_ones = [x for x in examples if x.gold.answers and not has_gold(choices, x)]
    done, count = 0, len(open_ones)
    for piece in gold_search.propose_pages(page.workbench.data, choices.index, open_ones):
        if isinstance(piece, str):
            yield Patch({"gold-status": html.note(f"{piece} …")})
            continue
        done += 1
        if piece.page:
            choices.proposed[piece.qid] = piece.page
        words = html.doing(f"{done:,} of {plural(count, 'question')} searched", share=done / count)
        yield Patch({"gold-status": words})
    say = f"{plural(len(choices.proposed), 'proposal')} for {plural(count, 'question')} without a gold page. Check and accept them."
    yield drawn_again(page, choices) | Patch({"gold-status": html.note(say)})


def save(page: Page, event: Event) -> Patch:
    """Write the chosen pages into the dataset as one edit, which its history can undo."""
    choices = window_choices(page, event.session, event.text("id"))
    changed = gold_search.save_pages(page.workbench.edits, choices.dataset, choices.chosen)
    choices.chosen.clear()
    say = f"Saved the gold pages of {plural(changed, 'question')}."
    return drawn_again(page, choices) | Patch({"gold-status": Markup()}, say=say)
