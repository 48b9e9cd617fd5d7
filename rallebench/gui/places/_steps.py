"""Draw the request and reply of a step: passages with gold highlights, prompts, replies, costs."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from rallebench.core.choices import Choice
from rallebench.core.declining import accepted_answers
from rallebench.core.numbers import plural
from rallebench.core.prices import Prices
from rallebench.core.types import Example, Generate, Gold, Hit, Retrieve, Step
from rallebench.core.waterfall import OF_UNANSWERABLE, STAGES
from rallebench.gui import figures, html
from rallebench.gui.addresses import PageAddress
from rallebench.gui.answers import (
    Place,
    answer_line,
    draw_answer,
    highlight,
    mark_gold,
    places,
)
from rallebench.gui.places._pages import page_link
from rallebench.gui.wording import on_page
from rallebench.render.numbers import text as in_words
from rallebench.views.steps import price as price_of
from rallebench.views.steps import sent_text, spans, titles_and_ids
from rallebench.views.steps import tokens as tokens_of
from rallebench.views.verdicts import STATIONS, Verdict

TITLES = {
    "right": "Right",
    "wrong": "Wrong",
    "lost": "Wrong",
    "format": "Wrong format",
    "failed": "Failed",
    "none": "No verdict",
}

LONG_BEFORE, BEFORE_MARK = 150, 60
"""Text before a passage's first highlight: the maximum characters shown in full, and the number kept of longer text."""


def passages(
    hits: Sequence[Hit], gold: Gold, k: int, answer: str = "", beyond: int = 3, *, index: str = ""
) -> Markup:
    """Draw ranked passages of a retriever (``index``); ``beyond``: the number after the first k, shown below a
    divider.
    """
    # without gold answers, no answer can be called wrong
    wrong = answer if gold.answers and not spans(answer, gold.answers) else ""
    rows = Markup()
    first_gold = gold_rank(hits, gold)
    for rank, hit in enumerate(hits, 1):
        if rank > k + beyond and rank != first_gold:
            continue
        if rank == k + 1 or (rank == first_gold and rank > k + beyond):
            rows += Markup('<div class="beyond"><span>{}</span></div>').format(
                f"beyond k = {k}" if rank == k + 1 else "…"
            )
        rows += passage(rank, hit, gold, rank > k, wrong, index=index)
    return rows or html.note("No passage was retrieved for this query.")


def passage(
    rank: int, hit: Hit, gold: Gold, far: bool = False, wrong: str = "", *, index: str = ""
) -> Markup:
    """Draw one passage with its rank, highlights and score."""
    is_gold = hit.passage.page_id in gold.pages
    has = bool(spans(hit.passage.text, gold.answers))
    tags = Markup('<em class="tag gold">gold page</em>') if is_gold else Markup()
    tags += Markup('<em class="tag good">has the answer</em>') if has else Markup()
    kinds = f"{'g ' if is_gold else ''}{'far' if far else ''}".strip()
    marks = places(hit.passage.text, gold.answers, wrong)
    return article(rank, hit, marks, tags, kinds, index)


def article(
    rank: int, hit: Hit, marks: Sequence[Place], tags: str = "", kinds: str = "", index: str = ""
) -> Markup:
    """Draw a passage with its rank, score and highlights; ``tags``: HTML after its title; ``index``: its retriever,
    through which its page opens at the first highlight.
    """
    name = f"passage {rank}, {hit.passage.title or hit.passage.doc_id}"
    of_page = f"score {hit.score:.6g}, page {hit.passage.page_id}, passage {hit.passage.doc_id}"
    return Markup(
        '<article class="{}" tabindex="0"><h3><b>{}</b><span dir="auto">{}</span>{}'
        '<span class="n" title="{}">{:#.3g}</span></h3>{}{}</article>'
    ).format(
        f"p {kinds}".strip(),
        rank,
        hit.passage.title or hit.passage.doc_id,
        tags,
        of_page,
        hit.score,
        html.copyable(
            Markup('<p dir="auto">{}</p>').format(excerpt(hit.passage.text, marks)), name
        ),
        page_link(PageAddress(index, q=hit.passage.doc_id, at=first_span(marks)), name)
        if index
        else "",
    )


def first_span(marks: Sequence[Place]) -> str:
    """Return the first highlight as an address has it; '' without one."""
    start, _, end = min(marks, default=(0, "", 0))
    return f"{start}-{end}" if end else ""


def excerpt(text: str, marks: Sequence[Place]) -> Markup:
    """Draw a passage with its highlights.

    A collapsed passage shows only its first lines, so long text before the first highlight is cut.
    """
    first = min((start for start, _, _ in marks), default=0)
    at = text.rfind(" ", 0, first - BEFORE_MARK) if first > LONG_BEFORE else -1
    if at < 0:
        return highlight(text, marks)
    rest = [(start - at - 1, kind, end - at - 1) for start, kind, end in marks]
    return Markup('<span class="lead">{}</span> <span>{}</span>').format(
        text[:at], highlight(text[at + 1 :], rest)
    )


def tokens(step: Step) -> str:
    """Format the tokens in and out; "" if the backend does not count them."""
    counted = tokens_of([step])
    return "" if counted is None else f"{counted[0]:,} + {counted[1]:,} tokens"


def price(steps: Sequence[Step], prices: Prices) -> str:
    """Format the price of some steps: "none" for local models, "unknown" without a known price."""
    dollars = price_of(steps, prices)
    return "unknown" if dollars is None else in_words(dollars, "usd") if dollars else "none"


def gold_rank(hits: Sequence[Hit], gold: Gold) -> int:
    """Return the rank of the first passage from a gold page, from 1; 0 if there is none."""
    ranks = (n for n, hit in enumerate(hits, 1) if hit.passage.page_id in gold.pages)
    return next(ranks, 0)


def gist(step: Step, gold: Gold) -> Markup:
    """Summarise the output of a step in one line."""
    if isinstance(step.request, Retrieve):
        at = Markup()
        if rank := gold_rank(step.reply.hits, gold):
            at = Markup('<span class="good">gold at rank {}</span>').format(rank)
        elif gold.pages:
            at = Markup('<span class="bad">no gold page</span>')
        words = html.join_facts_html(plural(len(step.reply.hits), "passage"), at)
    else:
        words = Markup("<span dir=auto>{}</span>").format(" ".join(step.reply.text.split())[:60])
    about = "The reply was in the cache; its time is that of the original call."
    cached = Markup('<span title="{}">cached</span>').format(about) if step.cached else Markup()
    return html.join_facts_html(words, figures.duration(step.seconds), cached)


def output(
    step: Step,
    gold: Gold,
    before: Step | None,
    verdicts: tuple[str, str] = ("", ""),
) -> Markup:
    """Draw the output of an action: the current result next to the previous one, the prompt as sent, the reply as
    received.
    """
    if isinstance(step.request, Retrieve):
        return _retrieval(step, step.request.query, gold)
    versions = _version("Now", step, verdicts[0])
    versions += _version("Before", before, verdicts[1]) if before is not None else Markup()
    earlier = step.request.messages[:-1] if isinstance(step.request, Generate) else ()
    system = Markup().join(_part(m.role.capitalize(), m.content) for m in earlier)
    sent = system + _part("", mark_gold(sent_text(step), gold.answers), name="the prompt as sent")
    counted = tokens_of([step])
    gist_of = plural(counted[0], "token") if counted else ""
    thinking = _part("Thinking", step.reply.thinking) if step.reply.thinking else Markup()
    reply = (
        thinking
        + _part("", step.reply.text or Markup("<em>empty</em>"), name="the raw reply")
        + html.note(step.reply.note)
    )
    ended = step.reply.finish_reason
    whole = "whole" if ended in ("stop", "") else f"ended: {ended}"
    prompt = html.fold("Prompt as sent", sent, gist=gist_of, opened=True)
    choice = draw_choice(step.reply.choice) if step.reply.choice else Markup()
    return Markup('<div class="versions">{}</div>{}{}{}').format(
        versions, choice, prompt, html.fold("Reply as it came", reply, gist=whole)
    )


def draw_choice(choice: Choice) -> Markup:
    """Draw the options of a typed decision with a bar each, the most probable first, and how it was made."""
    bars = html.defs(
        (name, html.join_facts_html(html.progress(share), figures.number(100 * share, 1, "%")))
        for name, share in choice.ranking
    )
    return html.heading("Choice", choice.chosen or "none") + bars + html.note(choice.basis)


def _retrieval(step: Step, query: str, gold: Gold) -> Markup:
    listed = Markup().join(
        Markup('<li class="{}" dir="auto">{}</li>').format(
            "g" if hit.passage.page_id in gold.pages else "",
            hit.passage.title or hit.passage.doc_id,
        )
        for hit in step.reply.hits
    )
    texts = _part("{response}", step.reply.text)
    texts += _part("{wiki_id_title}", titles_and_ids(step))
    size = plural(len(step.reply.text), "character")
    return Markup(
        '{}<h3 class="label">Passages <small>{}</small></h3><ol class="tiny">{}</ol>{}'
    ).format(
        _part("Query as sent", query, "q"),
        figures.duration(step.seconds),
        listed,
        html.fold("As later templates see it", texts, gist=size),
    )


def _part(title: str, text: str, kind: str = "pre", name: str = "") -> Markup:
    """Draw a text unchanged below its title; both are HTML. ``name``: of a text without a title."""
    head = Markup('<h3 class="label">{}</h3>').format(title) if title else Markup()
    body = Markup('<p class="{}" dir="auto">{}</p>').format(kind, text)
    return head + html.copyable(body, name or title)


def _version(title: str, step: Step, verdict: str) -> Markup:
    facts = html.join_facts(figures.duration(step.seconds), tokens(step))
    answer = answer_line(verdict, draw_answer(step.reply.text, name=f"the reply {title.lower()}"))
    return Markup('<section><h3 class="label">{}</h3>{}<small>{}</small></section>').format(
        title, answer, facts
    )


def result(
    example: Example,
    steps: Sequence[Step],
    answer: str,
    error: str,
    verdict: Verdict,
    prices: Prices,
) -> Markup:
    """Draw the verdict, the answer above the gold, the stage at which it was lost, five numbers, and the passages."""
    gold = example.gold
    why = "The question has no gold answer to compare with." if verdict.kind == "none" else ""
    retrievals = [s for s in steps if isinstance(s.request, Retrieve)]
    passage_list = _passages(retrievals[-1], gold, answer, verdict) if retrievals else Markup()
    below = html.note(why), stations(verdict), facts(steps, verdict, prices)
    return (
        verdict_box(verdict.kind, TITLES[verdict.kind], gold, answer, error, *below) + passage_list
    )


def verdict_box(
    kind: str, title: str, gold: Gold, answer: str, error: object, *below: str
) -> Markup:
    """Draw a verdict, the answer or error above the gold, and further facts below."""
    pairs = Markup('<dt>answer</dt><dd dir="auto">{}</dd>').format(draw_answer(answer))
    if error:
        pairs = Markup('<dt>error</dt><dd class="bad">{}</dd>').format(on_page(error))
    pairs += gold_line(gold)
    head = Markup("<h2>{}{}</h2><dl>{}</dl>").format(html.mark(kind), title, pairs)
    return Markup('<section class="verdict {}" aria-live="polite">{}{}</section>').format(
        kind, head, Markup().join(below)
    )


def gold_line(gold: Gold) -> Markup:
    """Draw the accepted answers as a row of the verdict; "" if there are none."""
    accepted = accepted_answers(gold)
    if not accepted:
        return Markup()
    others = Markup(" or ").join(Markup("“{}”").format(a) for a in accepted[1:4])
    more = Markup("<small>or {}</small>").format(others) if others else Markup()
    return Markup('<dt>gold</dt><dd class="good" dir="auto">{} {}</dd>').format(accepted[0], more)


def gold_box(gold: Gold) -> Markup:
    """Draw the accepted answers where a verdict will stand; "" if there are none."""
    line = gold_line(gold)
    return Markup('<section class="expected"><dl>{}</dl></section>').format(line) if line else line


def question_html(question: str, below: str) -> Markup:
    """Draw the question; ``below``: its gold and origin as HTML."""
    title = Markup('<h1 dir="auto">{}</h1>').format(question)
    return Markup('<div class="asked-question">{}<p>{}</p></div>').format(title, below)


def folds(steps: Sequence[Step], gold: Gold, first: str = "", answer: str | None = None) -> Markup:
    """Draw every step in a collapsible section.

    ``first``: title of the first step, if it is not its request. ``answer``: the answer of a run; its first two steps
    and all model steps are then open.
    """
    rows, of_run = Markup(), answer is not None
    for n, step in enumerate(steps, 1):
        request, inside = step.request, Markup()
        name = "Note" if hasattr(request, "text") else "Tool"
        if isinstance(request, Retrieve):
            name = f"Retrieve · {request.retriever} · k {request.k}"
            inside = (
                passages(step.reply.hits, gold, request.k, answer or "", index=request.retriever)
                if of_run
                else Markup()
            )
        elif isinstance(request, Generate):
            name = f"{'Choose' if step.reply.choice else 'Generate'} · {request.llm}"
        name = first if n == 1 and first else name
        is_open = of_run and (n <= 2 or isinstance(request, Generate))
        opened = Markup(" open") if is_open else html.NOTHING
        id = Markup(' id="step-{}"').format(n) if of_run else Markup()
        about = html.join_facts_html(gist(step, gold), tokens(step))
        head = Markup('<summary><b class="no">{}</b>{}<em>{}</em></summary>').format(n, name, about)
        inside = inside or output(step, gold, None)
        rows += Markup('<details class="fold"{}{}>{}<div>{}</div></details>').format(
            id, opened, head, inside
        )
    return rows


def _passages(step: Step, gold: Gold, answer: str, verdict: Verdict) -> Markup:
    """Draw the passages of a retrieval, with the rank of the first gold page."""
    assert isinstance(step.request, Retrieve)
    hits, k = verdict.deeper or step.reply.hits, step.request.k
    at = first_gold(verdict.rank, k, len(hits), gold)
    about = html.join_facts(f"{len(step.reply.hits)} of k = {k}", at)
    return html.heading("Passages", about) + passages(
        hits, gold, k, answer, index=step.request.retriever
    )


def first_gold(rank: int | None, k: int, depth: int, gold: Gold) -> str:
    """Describe the rank of the first gold page in a retrieval; "" for a question without gold pages."""
    if rank:
        return f"first gold page at rank {rank}{f': k = {k} cuts it off' * (rank > k)}"
    return f"no gold page among the first {depth}" if gold.pages else ""


def stations(verdict: Verdict) -> Markup:
    """Draw the stages retrieved, in the prompt, in the answer, format, and the stage at which the question was lost; for an
    unanswerable question, whether the answer declines.
    """
    if verdict.kind in ("none", "failed"):
        return Markup()
    if verdict.stage in OF_UNANSWERABLE:
        return html.note(f"{STAGES[verdict.stage].capitalize()}.")
    items = Markup()
    for index, name in enumerate(STATIONS):
        state, note = "ok", ""
        if verdict.lost_at is not None and index >= verdict.lost_at:
            state = "bad" if index == verdict.lost_at else "off"
            note = "lost here" if state == "bad" else "not reached"
        elif not verdict.retrieves and index < 2:
            state, note = "off", "no passages"
        elif index == 0 and verdict.rank:
            note = f"gold page at rank {verdict.rank}"
        elif verdict.stage == "right_without_support" and index < 2:
            state, note = "off", "no support"
        sign = {"ok": "✓", "bad": "✕", "off": "·"}[state]
        items += Markup('<li class="{}"><b>{}</b><span>{}</span><small>{}</small></li>').format(
            state, sign, name, note
        )
    return Markup('<ol class="way">{}</ol>').format(items)


def facts(steps: Sequence[Step], verdict: Verdict, prices: Prices) -> Markup:
    """Draw EM, F1, time, tokens and price of a question."""
    counted = tokens_of(steps)
    return numbers_box(
        *(
            ("–" if score is None else figures.number(100 * score, 0, "%"), name)
            for score, name in ((verdict.em, "EM"), (verdict.f1, "F1"))
        ),
        (figures.duration(sum(step.seconds for step in steps)), "time"),
        (f"{counted[0]:,} + {counted[1]:,}" if counted else "–", "tokens"),
        (price(steps, prices), "price"),
    )


def numbers_box(*pairs: tuple[str, str]) -> Markup:
    """Draw figures side by side, each above its name."""
    cells = Markup().join(
        Markup("<span><b>{}</b>{}</span>").format(value, name) for value, name in pairs
    )
    return Markup('<div class="facts">{}</div>').format(cells)
