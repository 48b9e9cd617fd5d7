"""What a step was asked and answered, as HTML: passages with gold marks, prompts, replies, costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rallebench.core.types import Example, Generate, Gold, Hit, Retrieve, Step
from rallebench.gui.html import e, fold, mark, number
from rallebench.render import numbers
from rallebench.services.steps import Prices, is_span, prompt_of, spans, wiki_id_title
from rallebench.services.steps import price as price_of
from rallebench.services.steps import tokens as tokens_of
from rallebench.services.verdicts import STATIONS, Verdict

TITLES = {
    "right": "Right",
    "wrong": "Wrong",
    "lost": "Wrong",
    "format": "Wrong format",
    "failed": "Failed",
    "none": "No verdict",
}


def seconds(value: float | None) -> str:
    """Two decimals below 10 s, then whole; milliseconds below 0.1 s.

    >>> seconds(0.038), seconds(0.487), seconds(12.4), seconds(None)
    ('38 ms', '0.49 s', '12 s', '–')
    """
    if value is None:
        return "–"
    if value < 0.1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.2f} s" if value < 10 else f"{value:,.0f} s"


def marked(text: str, gold: Iterable[str], answer: str = "") -> str:
    """The text with gold answers marked, and a wrong answer marked as such."""
    found = [(start, end, "") for start, end in spans(text, tuple(gold))]
    if is_span(answer):
        found += [(start, end, "answer") for start, end in spans(text, (answer.strip(),))]
    parts, at = [], 0
    for start, end, kind in sorted(found, key=lambda span: (span[0], span[2])):
        if start < at:
            continue
        parts += [e(text[at:start]), f'<mark class="{kind}">', e(text[start:end]), "</mark>"]
        at = end
    return "".join([*parts, e(text[at:])])


def passages(hits: Sequence[Hit], gold: Gold, k: int, answer: str = "", beyond: int = 3) -> str:
    """Ranked passages; ``beyond``: how many after the first k are shown below a divider."""
    wrong = "" if spans(answer, gold.answers) else answer
    rows = ""
    first_gold = next((n for n, h in enumerate(hits, 1) if h.passage.page_id in gold.pages), 0)
    for rank, hit in enumerate(hits, 1):
        if rank > k + beyond and rank != first_gold:
            continue
        if rank == k + 1 or (rank == first_gold and rank > k + beyond):
            rows += f'<div class="beyond"><span>{f"beyond k = {k}" if rank == k + 1 else "…"}</span></div>'
        rows += passage(rank, hit, gold, rank > k, wrong)
    return rows or '<p class="note">No passage was retrieved for this query.</p>'


def passage(rank: int, hit: Hit, gold: Gold, far: bool, wrong: str = "") -> str:
    """One passage with its rank, marks and score."""
    is_gold = hit.passage.page_id in gold.pages
    has = bool(spans(hit.passage.text, gold.answers))
    tags = '<em class="tag gold">gold page</em>' if is_gold else ""
    tags += '<em class="tag good">has the answer</em>' if has else ""
    text = hit.passage.text
    return (
        f'<article class="p{" g" if is_gold else ""}{" far" if far else ""}" tabindex="0"><h4><b>{rank}</b><span dir="auto">{e(hit.passage.title or hit.passage.doc_id)}</span>{tags}'
        f'<span class="n" title="page {e(hit.passage.page_id)}, passage {e(hit.passage.doc_id)}">{hit.score:.3f}</span></h4><p dir="auto">{marked(text, gold.answers, wrong)}</p></article>'
    )


def tokens(step: Step) -> str:
    """Tokens in + out, "" where the backend counts none."""
    counted = tokens_of([step])
    return "" if counted is None else f"{counted[0]:,} + {counted[1]:,} tokens"


def price(steps: Sequence[Step], prices: Prices) -> str:
    """The price of some steps: "none" for local models, "unknown" where a price is not set."""
    dollars = price_of(steps, prices)
    return "unknown" if dollars is None else numbers.text(dollars, "usd") if dollars else "none"


def gist(step: Step, gold: Gold) -> str:
    """What a step gave, on one line."""
    if isinstance(step.request, Retrieve):
        rank = next(
            (n for n, h in enumerate(step.reply.hits, 1) if h.passage.page_id in gold.pages), 0
        )
        at = (
            f' · <span class="good">gold at rank {rank}</span>'
            if rank
            else ' · <span class="bad">no gold page</span>'
            if gold.pages
            else ""
        )
        words = f"{len(step.reply.hits)} passages{at}"
    else:
        words = f"<span dir=auto>{e(' '.join(step.reply.text.split())[:60])}</span>"
    cached = (
        ' · <span title="The reply was in the cache; its time is that of the original call.">cached</span>'
        if step.cached
        else ""
    )
    return f"{words} · {seconds(step.seconds)}{cached}"


def output(
    step: Step,
    gold: Gold,
    before: Step | None,
    prices: Prices,
    verdicts: tuple[str, str] = ("", ""),
) -> str:
    """The output of an action: the result now beside the one before, the prompt as sent, the reply as it came."""
    if isinstance(step.request, Retrieve):
        listed = "".join(
            f'<li class="{"g" if hit.passage.page_id in gold.pages else ""}" dir="auto">{e(hit.passage.title or hit.passage.doc_id)}</li>'
            for hit in step.reply.hits
        )
        head = f'<h5>Query as sent</h5><p class="q" dir="auto">{e(step.request.query)}</p><h5>Passages <small>{seconds(step.seconds)}</small></h5><ol class="tiny">{listed}</ol>'
        strings = f'<h5>{{response}}</h5><p class="pre">{e(step.reply.text)}</p><h5>{{wiki_id_title}}</h5><p class="pre">{e(wiki_id_title(step))}</p>'
        return head + fold(
            "As later templates see it", strings, gist=f"{len(step.reply.text):,} characters"
        )
    facts = " · ".join(filter(None, [seconds(step.seconds), tokens(step)]))
    now = _version("Now", step, facts, verdicts[0])
    earlier = (
        _version("Before", before, seconds(before.seconds), verdicts[1])
        if before is not None
        else ""
    )
    system = ""
    if isinstance(step.request, Generate):
        system = "".join(
            f"<h5>{e(m.role.capitalize())}</h5><p class=pre>{e(m.content)}</p>"
            for m in step.request.messages[:-1]
        )
    sent = f'{system}<p class="pre" dir="auto">{marked(prompt_of(step.request), gold.answers)}</p>'
    ended = step.reply.finish_reason
    reply = f'<p class="pre" dir="auto">{e(step.reply.text) or "<em>empty</em>"}</p>' + (
        f'<p class="note">{e(step.reply.note)}</p>' if step.reply.note else ""
    )
    whole = "whole" if ended in ("stop", "") else f"ended: {ended}"
    return (
        f'<div class="versions">{now}{earlier}</div>'
        + fold(
            "Prompt as sent",
            sent,
            gist=f"{counted[0]:,} tokens" if (counted := tokens_of([step])) else "",
            id="",
            opened=True,
        )
        + fold("Reply as it came", reply, gist=whole)
    )


def _version(title: str, step: Step, facts: str, verdict: str) -> str:
    sign = mark(verdict) if verdict else ""
    return f'<section><h5>{title}</h5><p class="ans" dir="auto">{sign}{e(step.reply.text) or "<em>empty</em>"}</p><small>{facts}</small></section>'


def result(
    example: Example,
    steps: Sequence[Step],
    answer: str,
    error: str,
    verdict: Verdict,
    prices: Prices,
) -> str:
    """The verdict, the answer over the gold, where it was lost, five numbers, and the passages."""
    gold = example.gold
    said = (
        f'<dt>answer</dt><dd dir="auto">{e(answer) or "<em>empty</em>"}</dd>'
        if not error
        else f'<dt>error</dt><dd class="bad">{e(error)}</dd>'
    )
    others = " or ".join(f"“{e(a)}”" for a in gold.answers[1:4])
    accepted = (
        f'<dt>gold</dt><dd class="good" dir="auto">{e(gold.answers[0])} <small>{f"or {others}" if others else ""}</small></dd>'
        if gold.answers
        else ""
    )
    retrievals = [s for s in steps if isinstance(s.request, Retrieve)]
    shown = ""
    if retrievals:
        step = retrievals[-1]
        assert isinstance(step.request, Retrieve)
        hits = verdict.deeper or step.reply.hits
        at = (
            f"first gold page at rank {verdict.rank}"
            if verdict.rank
            else f"no gold page among the first {len(hits)}"
            if gold.pages
            else ""
        )
        cut = (
            f": k = {step.request.k} cut it"
            if verdict.rank and verdict.rank > step.request.k
            else ""
        )
        about = " · ".join(
            filter(None, [f"{len(step.reply.hits)} of k = {step.request.k}", at + cut])
        )
        shown = f'<h3 class="sub">Passages <small>{about}</small></h3>{passages(hits, gold, step.request.k, answer)}'
    title = TITLES[verdict.kind]
    why = (
        '<p class="note">The question has no gold answer to compare with.</p>'
        if verdict.kind == "none"
        else ""
    )
    return (
        f'<section class="verdict {verdict.kind}" aria-live="polite"><h2>{mark(verdict.kind)}{title}</h2>{why}<dl>{said}{accepted}</dl>'
        f"{stations(verdict, retrievals)}{facts(steps, verdict, prices)}</section>{shown}"
    )


def stations(verdict: Verdict, retrievals: Sequence[Step]) -> str:
    """Retrieved, in the prompt, in the answer, format: where the question was lost."""
    if verdict.kind in ("none", "failed"):
        return ""
    items = ""
    for index, name in enumerate(STATIONS):
        state = "ok"
        note = ""
        if verdict.lost_at is not None and index >= verdict.lost_at:
            state = "bad" if index == verdict.lost_at else "off"
            note = "lost here" if state == "bad" else "not reached"
        elif index == 0 and verdict.rank:
            note = f"gold page at rank {verdict.rank}"
        elif verdict.stage == "right_without_support" and index < 2:
            state, note = "off", "no support"
        sign = {"ok": "✓", "bad": "✕", "off": "·"}[state]
        items += (
            f'<li class="{state}"><b>{sign}</b><span>{name}</span><small>{e(note)}</small></li>'
        )
    return f'<ol class="way">{items}</ol>'


def facts(steps: Sequence[Step], verdict: Verdict, prices: Prices) -> str:
    """EM, F1, time, tokens and price of a question."""
    counted = tokens_of(steps)
    em = "–" if verdict.em is None else f"{verdict.em:.0f}"
    f1 = "–" if verdict.f1 is None else number(100 * verdict.f1, unit="%")
    values = [
        (em, "EM"),
        (f1, "F1"),
        (seconds(sum(step.seconds for step in steps)), "time"),
        (f"{counted[0]:,} + {counted[1]:,}" if counted else "–", "tokens"),
        (price(steps, prices), "price"),
    ]
    return f'<div class="facts">{"".join(f"<span><b>{value}</b>{name}</span>" for value, name in values)}</div>'
