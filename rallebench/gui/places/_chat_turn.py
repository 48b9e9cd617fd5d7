"""Draw a turn of a conversation and the sources of its answer as HTML."""

from __future__ import annotations

import re

from markupsafe import Markup

from rallebench.core.declining import declines
from rallebench.core.numbers import plural
from rallebench.core.types import Gold
from rallebench.gui import figures, html
from rallebench.gui.addresses import DatasetAddress, PageAddress
from rallebench.gui.answers import Place
from rallebench.gui.frame import Page
from rallebench.gui.html import attributes
from rallebench.gui.markdown import safe_markdown
from rallebench.gui.places._steps import article, folds, price, tokens
from rallebench.services.citations import HOW, Citation
from rallebench.services.conversations import Mark, Talk, Turn

_OPEN, _CLOSE = "\ue000", "\ue001"
"""Private-use characters, which no text contains; they enclose citation numbers until the answer is HTML."""


def turns_html(page: Page, talk: Talk) -> Markup:
    """Draw the open branch of a conversation."""
    if not talk.turns:
        return html.empty("Ask the chain something. Its sources appear beside the answer.")
    return Markup().join(turn_html(page, talk, turn) for turn in talk.path)


def turn_html(page: Page, talk: Talk, turn: Turn) -> Markup:
    """Draw a turn: question, search query, answer with citations, steps, buttons."""
    answer, end = Markup(), Markup()
    plain_question = re.sub(f"[{_OPEN}{_CLOSE}]", "", turn.question)
    if turn.state == "done":
        answer, end = (
            html.copyable(answer_html(turn), f"the answer to {plain_question}"),
            remark(talk, turn),
        )
    elif turn.answer:
        answer = safe_markdown(turn.answer)
    elif turn.state == "running":
        answer = Markup('<span class="note">{}</span>').format(turn.activity)
    if turn.state == "failed":
        end = html.problem(turn.error)
    elif turn.state == "stopped":
        end = html.note("Stopped by you.")
    over = turn.state != "running"
    steps = steps_fold(page, turn) if over and (turn.steps or turn.rewriting) else Markup()
    return Markup(
        '<section class="turn {}" id="t{}"><h2 dir="auto">{}</h2>{}<div class="said md" dir="auto">{}</div>{}{}'
        '{}<div class="row">{}</div></section>'
    ).format(
        turn.mark,
        turn.number,
        turn.question,
        search_query(turn),
        answer,
        end,
        correction_html(turn),
        steps,
        buttons(talk, turn),
    )


def search_query(turn: Turn) -> Markup:
    """Return the search query if it differs from the question as typed."""
    if turn.rewriting is None or turn.standalone == turn.question:
        return Markup()
    refused = ""
    if turn.is_rewriting_refused:
        refused = "The model's rewriting could not be used, so the earlier names are joined."
    return Markup('<p class="note searched">Searched for: <q dir="auto">{}</q> {}</p>').format(
        turn.standalone, refused
    )


def buttons(talk: Talk, turn: Turn) -> Markup:
    """Draw the marks and actions of a turn, and links to its other branches."""
    number = turn.number
    row = html.button("Sources", "chat.sources", kind="quiet", index=number)
    if turn.state == "running":
        return branches(talk, turn) + row
    marks = mark_button(turn, "right", "✓ Right") + mark_button(turn, "wrong", "✕ Wrong")
    marks += html.button("Save as question", "chat.keep", index=number)
    row += html.button("Regenerate", "chat.regenerate", kind="quiet", index=number)
    row += html.button("Edit", "chat.edit", kind="quiet", index=number)
    row += html.button("Open in Build", "chat.open_in_build", kind="quiet", index=number)
    return Markup(
        '<span class="marks" role="group" aria-label="Was it right?">{}</span>{}{}'
    ).format(marks, branches(talk, turn), row)


def mark_button(turn: Turn, mark: Mark, label: str) -> Markup:
    """Draw the button that marks an answer, or removes the mark; its key is the first letter of the mark."""
    on, key = turn.mark == mark, mark[:1]
    data = attributes(do=f"chat.{mark}", index=turn.number, key=key)
    return Markup(
        '<button type="button" class="{}" aria-pressed="{}" title="{}"{}>{}</button>'
    ).format(f"{mark} on" if on else mark, str(on).lower(), f"Key {key.upper()}", data, label)


def correction_html(turn: Turn) -> Markup:
    """Draw the right answers that a person gave, and the dataset that holds them; "" without them."""
    gold = turn.correction
    if gold is None or not gold.answers:
        return Markup()
    answers = Markup(" · ").join(
        Markup("<mark>{}</mark>").format(answer) for answer in gold.answers
    )
    tags = Markup(" ").join(
        Markup('<em class="tag gold" dir="auto">{}</em>').format(title or page_id)
        for page_id, title in gold.pages.items()
    )
    saved = Markup()
    if gold.dataset:
        place = DatasetAddress(id=gold.dataset, find=gold.question[:60]).href
        saved = Markup("saved in {}").format(html.link(gold.dataset, place))
    facts = html.join_facts_html(answers, tags, saved)
    return Markup('<p class="note correction" dir="auto">Right answer: {}</p>').format(facts)


def branches(talk: Talk, turn: Turn) -> Markup:
    """Draw "2 of 3" with links to the previous and next branch; "" for a single branch."""
    others = talk.branches(turn)
    if len(others) < 2:
        return Markup()
    at, parts = others.index(turn), Markup()
    for to, sign, label in ((at - 1, "‹", "Earlier branch"), (at + 1, "›", "Later branch")):
        off = not 0 <= to < len(others) or talk.is_busy
        data = attributes(do="chat.branch", index=others[max(0, min(to, len(others) - 1))].number)
        more = Markup(' disabled aria-disabled="true"') if off else Markup()
        arrow = Markup(
            '<button type="button" class="quiet" aria-label="{}" title="{}"{}{}>{}</button>'
        ).format(label, label, data, more, sign)
        parts += (
            arrow
            if parts
            else Markup('{}<span class="note">{} of {}</span>').format(arrow, at + 1, len(others))
        )
    return Markup(
        '<span class="branches" role="group" aria-label="Branches of this question">{}</span>'
    ).format(parts)


def answer_html(turn: Turn) -> Markup:
    """Draw the answer with a citation mark after each supported sentence."""
    text, listed = "", list[Citation]()
    for sentence in turn.cited_sentences:
        plain = re.sub(f"[{_OPEN}{_CLOSE}]", "", sentence.text)
        words = plain.rstrip()
        marks = ""
        for citation in sentence.citations:
            marks += f"{_OPEN}{len(listed)}{_CLOSE}"
            listed.append(citation)
        text += f"{words}{marks}{plain[len(words) :]}"

    first, *others = safe_markdown(text).split(_OPEN)
    answer = first
    for part in others:
        number, _, rest = part.partition(_CLOSE)
        answer += citation_button(turn, listed[int(number)], int(number)) + rest
    return answer


def citation_button(turn: Turn, citation: Citation, number: int) -> Markup:
    """Draw a citation mark that opens its passage; ``number``: its position in the answer."""
    title = turn.sources[citation.number - 1].passage.title
    about = f"Source {citation.number}, {title}: {HOW[citation.how]}. Show the passage"
    data = attributes(do="chat.sources", index=turn.number, cite=number)
    return Markup(
        '<button type="button" class="cite {}" id="c{}-{}" title="{}" aria-label="{}"{}>[{}]</button>'
    ).format(citation.how, turn.number, number, about, about, data, citation.number)


def remark(talk: Talk, turn: Turn) -> Markup:
    """Return a caveat for the reader if the answer is empty, uncached or unsupported."""
    if not turn.answer.strip():
        return html.note("The answer is empty.")
    if declines(turn.answer):
        return html.note("This is the same answer as before." if talk.repeats(turn) else "")
    words = []
    sentences = [sentence for sentence in turn.cited_sentences if sentence.text.strip()]
    unmarked = sum(not sentence.citations for sentence in sentences)
    if turn.sources and unmarked == len(sentences):
        words.append("No passage holds the words of this answer.")
    elif turn.sources and unmarked:
        words.append("No passage holds the words of the sentences without a mark.")
    if talk.repeats(turn):
        words.append("This is the same answer as before.")
    return html.note(" ".join(words))


def steps_fold(page: Page, turn: Turn) -> Markup:
    """Draw the steps of a turn with their costs, starting with the rewriting of the question."""
    prices = page.workbench.models.prices_of_use()
    steps = ((turn.rewriting,) if turn.rewriting else ()) + turn.steps
    facts = html.join_facts(
        figures.duration(sum(step.seconds for step in steps)),
        tokens(steps[-1]),
        f"price {price(steps, prices)}",
        plural(len(turn.sources), "source"),
    )
    first = "Rewritten question" if turn.rewriting else ""
    inside = folds(steps, Gold(), first)
    return html.fold("Steps", inside, gist=facts, id=f"turn-{turn.number}")


def listed_citations(turn: Turn) -> list[Citation]:
    """Return the citations of an answer in the order of their marks."""
    return [citation for sentence in turn.cited_sentences for citation in sentence.citations]


def cited_page(turn: Turn, cite: int) -> PageAddress | None:
    """Return the page of a citation at its span; None if there is none."""
    citations = listed_citations(turn)
    if not 0 <= cite < len(citations):
        return None
    citation = citations[cite]
    hit = turn.sources[citation.number - 1]
    at = "{}-{}".format(*citation.place) if citation.place else ""
    index = turn.find_retriever(hit)
    return PageAddress(index, q=hit.passage.doc_id, at=at) if index else None


def sources_html(turn: Turn | None, cite: int | None = None) -> Markup:
    """Draw the sources of an answer with the cited spans; the chosen citation is scrolled into view."""
    if turn is None or (turn.state == "running" and not turn.sources):
        return html.empty("The sources of an answer appear here.")
    citations = listed_citations(turn)
    chosen = citations[cite] if cite is not None and 0 <= cite < len(citations) else None
    rows = Markup()
    for number, hit in enumerate(turn.sources, 1):
        marks: list[Place] = []
        for citation in [chosen] if chosen else citations:
            if citation.number == number and citation.place:
                marks.append((citation.place[0], "", citation.place[1]))
        kinds = "" if chosen is None else "cited" if chosen.number == number else "far"
        cited = number in {citation.number for citation in citations}
        tag = Markup('<em class="tag good">cited</em>') if cited else Markup()
        rows += article(number, hit, marks, tag, kinds, turn.find_retriever(hit))
    pages = len({hit.passage.page_id or hit.passage.doc_id for hit in turn.sources})
    counts = f"{plural(len(turn.sources), 'passage')}, {plural(pages, 'page')}" if rows else ""
    about = html.join_facts(counts, f"of “{cut(turn.question)}”")
    head = html.heading("Sources", about, first=True)
    return head + status(turn, chosen) + (rows or html.empty("The prompt contained no passage."))


def cut(question: str) -> str:
    """Return the beginning of a question."""
    return question if len(question) <= 60 else f"{question[:58].rstrip()} …"


def status(turn: Turn, chosen: Citation | None) -> Markup:
    """Describe how the chosen passage supports its sentence, for screen readers."""
    words = ""
    if chosen is not None:
        passage = turn.sources[chosen.number - 1].passage
        span = passage.text[slice(*chosen.place)] if chosen.place else ""
        quoted = f": “{span}”" if span else ""
        words = f"[{chosen.number}] {passage.title or passage.doc_id}: {HOW[chosen.how]}{quoted}"
    return Markup('<p class="note" role="status" dir="auto">{}</p>').format(words)
