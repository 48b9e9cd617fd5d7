"""What a step was asked and answered, as HTML: passages with gold marks, prompts, replies, costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rallebench.core.types import Example, Generate, Gold, Hit, Retrieve, Step
from rallebench.gui import figures, html
from rallebench.gui.html import e
from rallebench.render.numbers import text as in_words
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

LONG_BEFORE, BEFORE_MARK = 150, 60
"""Characters before the first mark of a passage from which they are left out, and how many of them stay."""


Place = tuple[int, str, int]
"""(start, class, end) of a marked span of a text."""


def places(text: str, gold: Iterable[str], answer: str = "") -> list[Place]:
    """Where a text holds gold answers, and a wrong answer."""
    marks = [(start, "", end) for start, end in spans(text, tuple(gold))]
    if is_span(answer):
        marks += [(start, "answer", end) for start, end in spans(text, (answer.strip(),))]
    return marks


def marked(text: str, gold: Iterable[str]) -> str:
    """The text with gold answers marked."""
    return highlighted(text, places(text, gold))


def highlighted(text: str, marks: Iterable[Place]) -> str:
    """The text with its marks; of those that overlap only the first."""
    parts, at = "", 0
    for start, kind, end in sorted(marks):
        if start >= at:
            parts += f'{e(text[at:start])}<mark class="{kind}">{e(text[start:end])}</mark>'
            at = end
    return parts + e(text[at:])


def passages(hits: Sequence[Hit], gold: Gold, k: int, answer: str = "", beyond: int = 3) -> str:
    """Ranked passages; ``beyond``: how many after the first k are shown below a divider."""
    wrong = "" if spans(answer, gold.answers) else answer
    rows = ""
    first_gold = gold_rank(hits, gold)
    for rank, hit in enumerate(hits, 1):
        if rank > k + beyond and rank != first_gold:
            continue
        if rank == k + 1 or (rank == first_gold and rank > k + beyond):
            rows += f'<div class="beyond"><span>{f"beyond k = {k}" if rank == k + 1 else "…"}</span></div>'
        rows += passage(rank, hit, gold, rank > k, wrong)
    return rows or html.note("No passage was retrieved for this query.")


def passage(rank: int, hit: Hit, gold: Gold, far: bool = False, wrong: str = "") -> str:
    """One passage with its rank, marks and score."""
    is_gold = hit.passage.page_id in gold.pages
    has = bool(spans(hit.passage.text, gold.answers))
    tags = '<em class="tag gold">gold page</em>' if is_gold else ""
    tags += '<em class="tag good">has the answer</em>' if has else ""
    kinds = f"{'g ' if is_gold else ''}{'far' if far else ''}".strip()
    return article(rank, hit, places(hit.passage.text, gold.answers, wrong), tags, kinds)


def article(rank: int, hit: Hit, marks: Sequence[Place], tags: str = "", kinds: str = "") -> str:
    """A passage with its rank, its score and its marks; ``tags``: HTML behind its title."""
    of_page = f"page {e(hit.passage.page_id)}, passage {e(hit.passage.doc_id)}"
    return (
        f'<article class="{f"p {kinds}".strip()}" tabindex="0"><h4><b>{rank}</b><span dir="auto">{e(hit.passage.title or hit.passage.doc_id)}</span>{tags}'
        f'<span class="n" title="{of_page}">{hit.score:#.4g}</span></h4><p dir="auto">{excerpt(hit.passage.text, marks)}</p></article>'
    )


def excerpt(text: str, marks: Sequence[Place]) -> str:
    """A passage with its marks, HTML. Of a closed passage only the first lines are in sight, so what stands long before the
    first mark is left out of them."""
    first = min((start for start, _, _ in marks), default=0)
    at = text.rfind(" ", 0, first - BEFORE_MARK) if first > LONG_BEFORE else -1
    if at < 0:
        return highlighted(text, marks)
    rest = [(start - at - 1, kind, end - at - 1) for start, kind, end in marks]
    return (
        f'<span class="lead">{e(text[:at])}</span> <span>{highlighted(text[at + 1 :], rest)}</span>'
    )


def tokens(step: Step) -> str:
    """Tokens in + out, "" where the backend counts none."""
    counted = tokens_of([step])
    return "" if counted is None else f"{counted[0]:,} + {counted[1]:,} tokens"


def price(steps: Sequence[Step], prices: Prices) -> str:
    """The price of some steps: "none" for local models, "unknown" where a price is not set."""
    dollars = price_of(steps, prices)
    return "unknown" if dollars is None else in_words(dollars, "usd") if dollars else "none"


def gold_rank(hits: Sequence[Hit], gold: Gold) -> int:
    """The rank of the first passage of a gold page, from 1; 0 if there is none."""
    ranks = (n for n, hit in enumerate(hits, 1) if hit.passage.page_id in gold.pages)
    return next(ranks, 0)


def gist(step: Step, gold: Gold) -> str:
    """What a step gave, on one line."""
    if isinstance(step.request, Retrieve):
        at = ""
        if rank := gold_rank(step.reply.hits, gold):
            at = f'<span class="good">gold at rank {rank}</span>'
        elif gold.pages:
            at = '<span class="bad">no gold page</span>'
        words = html.dotted(f"{len(step.reply.hits)} passages", at)
    else:
        words = f"<span dir=auto>{e(' '.join(step.reply.text.split())[:60])}</span>"
    about = "The reply was in the cache; its time is that of the original call."
    cached = f'<span title="{about}">cached</span>' if step.cached else ""
    return html.dotted(words, figures.duration(step.seconds), cached)


def answer_of(text: str) -> str:
    """An answer, or a word where it is empty."""
    return e(text) or "<em>empty</em>"


def output(
    step: Step,
    gold: Gold,
    before: Step | None,
    verdicts: tuple[str, str] = ("", ""),
) -> str:
    """The output of an action: the result now beside the one before, the prompt as sent, the reply as it came."""
    if isinstance(step.request, Retrieve):
        return _retrieval(step, step.request.query, gold)
    versions = _version("Now", step, verdicts[0])
    versions += _version("Before", before, verdicts[1]) if before is not None else ""
    earlier = step.request.messages[:-1] if isinstance(step.request, Generate) else ()
    system = "".join(_part(e(m.role.capitalize()), e(m.content)) for m in earlier)
    sent = system + _part("", marked(prompt_of(step.request), gold.answers))
    counted = tokens_of([step])
    gist_of = f"{counted[0]:,} tokens" if counted else ""
    thinking = _part("Thinking", e(step.reply.thinking)) if step.reply.thinking else ""
    reply = thinking + _part("", answer_of(step.reply.text)) + html.note(step.reply.note)
    ended = step.reply.finish_reason
    whole = "whole" if ended in ("stop", "") else f"ended: {ended}"
    prompt = html.fold("Prompt as sent", sent, gist=gist_of, opened=True)
    return f'<div class="versions">{versions}</div>{prompt}{html.fold("Reply as it came", reply, gist=whole)}'


def _retrieval(step: Step, query: str, gold: Gold) -> str:
    listed = "".join(
        f'<li class="{"g" if hit.passage.page_id in gold.pages else ""}" dir="auto">{e(hit.passage.title or hit.passage.doc_id)}</li>'
        for hit in step.reply.hits
    )
    texts = _part("{response}", e(step.reply.text))
    texts += _part("{wiki_id_title}", e(wiki_id_title(step)))
    size = f"{len(step.reply.text):,} characters"
    return (
        f'{_part("Query as sent", e(query), "q")}<h5>Passages <small>{figures.duration(step.seconds)}</small></h5><ol class="tiny">{listed}</ol>'
        f"{html.fold('As later templates see it', texts, gist=size)}"
    )


def _part(title: str, text: str, kind: str = "pre") -> str:
    """A text as it is, below its title; both are HTML."""
    head = f"<h5>{title}</h5>" if title else ""
    return f'{head}<p class="{kind}" dir="auto">{text}</p>'


def answer_line(verdict: str, answer: str, more: str = "") -> str:
    """An answer with the mark of its verdict, if it has one, and what stands behind it; both are HTML."""
    sign = html.mark(verdict) if verdict else ""
    return f'<p class="ans" dir="auto">{sign}<span>{answer}</span>{more}</p>'


def _version(title: str, step: Step, verdict: str) -> str:
    facts = html.dotted(figures.duration(step.seconds), tokens(step))
    answer = answer_line(verdict, answer_of(step.reply.text))
    return f"<section><h5>{title}</h5>{answer}<small>{facts}</small></section>"


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
    why = "The question has no gold answer to compare with." if verdict.kind == "none" else ""
    retrievals = [s for s in steps if isinstance(s.request, Retrieve)]
    passage_list = _passages(retrievals[-1], gold, answer, verdict) if retrievals else ""
    below = html.note(why), stations(verdict), facts(steps, verdict, prices)
    return (
        verdict_box(verdict.kind, TITLES[verdict.kind], gold, answer, error, *below) + passage_list
    )


def verdict_box(kind: str, title: str, gold: Gold, answer: str, error: object, *below: str) -> str:
    """A verdict, the answer or the error over the gold, and below it what stands beside them."""
    pairs = f'<dt>answer</dt><dd dir="auto">{answer_of(answer)}</dd>'
    if error:
        pairs = f'<dt>error</dt><dd class="bad">{e(error)}</dd>'
    if gold.answers:
        others = " or ".join(f"“{e(a)}”" for a in gold.answers[1:4])
        more = f"<small>or {others}</small>" if others else ""
        pairs += f'<dt>gold</dt><dd class="good" dir="auto">{e(gold.answers[0])} {more}</dd>'
    head = f"<h2>{html.mark(kind)}{title}</h2><dl>{pairs}</dl>"
    return f'<section class="verdict {kind}" aria-live="polite">{head}{"".join(below)}</section>'


def question_html(question: str, below: str) -> str:
    """The question that is answered; ``below``: its gold and where it is from, HTML."""
    title = f'<h1 dir="auto">{e(question)}</h1>'
    return f'<div class="asked-question">{title}<p>{below}</p></div>'


def folds(steps: Sequence[Step], gold: Gold, first: str = "", answer: str | None = None) -> str:
    """Every step, folded; ``first``: the name of the first where that is not what it asks. ``answer``: that of a run, whose
    first two steps and those of the model are open."""
    rows, of_run = "", answer is not None
    for n, step in enumerate(steps, 1):
        request, inside = step.request, ""
        name = "Note" if hasattr(request, "text") else "Tool"
        if isinstance(request, Retrieve):
            name = f"Retrieve · {request.retriever} · k {request.k}"
            inside = passages(step.reply.hits, gold, request.k, answer or "") if of_run else ""
        elif isinstance(request, Generate):
            name = f"Generate · {request.llm}"
        name = first if n == 1 and first else name
        opened = " open" if of_run and (n <= 2 or isinstance(request, Generate)) else ""
        id, about = f' id="step-{n}"' if of_run else "", html.dotted(gist(step, gold), tokens(step))
        head = f'<summary><b class="no">{n}</b>{e(name)}<em>{about}</em></summary>'
        inside = inside or output(step, gold, None)
        rows += f'<details class="fold"{id}{opened}>{head}<div>{inside}</div></details>'
    return rows


def _passages(step: Step, gold: Gold, answer: str, verdict: Verdict) -> str:
    """The passages of a retrieval, and at which rank the first gold page is."""
    assert isinstance(step.request, Retrieve)
    hits, k = verdict.deeper or step.reply.hits, step.request.k
    at = first_gold(verdict.rank, k, len(hits), gold)
    about = html.dotted(f"{len(step.reply.hits)} of k = {k}", at)
    return html.heading("Passages", about) + passages(hits, gold, k, answer)


def first_gold(rank: int | None, k: int, depth: int, gold: Gold) -> str:
    """At which rank the first gold page of a retrieval is, "" for a question without gold pages."""
    if rank:
        return f"first gold page at rank {rank}{f': k = {k} cuts it off' * (rank > k)}"
    return f"no gold page among the first {depth}" if gold.pages else ""


def stations(verdict: Verdict) -> str:
    """Retrieved, in the prompt, in the answer, format: where the question was lost."""
    if verdict.kind in ("none", "failed"):
        return ""
    items = ""
    for index, name in enumerate(STATIONS):
        state, note = "ok", ""
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
    return numbers_box(
        *(
            ("–" if score is None else figures.number(100 * score, unit="%"), name)
            for score, name in ((verdict.em, "EM"), (verdict.f1, "F1"))
        ),
        (figures.duration(sum(step.seconds for step in steps)), "time"),
        (f"{counted[0]:,} + {counted[1]:,}" if counted else "–", "tokens"),
        (price(steps, prices), "price"),
    )


def numbers_box(*pairs: tuple[str, str]) -> str:
    """Figures side by side, each over its name."""
    cells = "".join(f"<span><b>{value}</b>{name}</span>" for value, name in pairs)
    return f'<div class="facts">{cells}</div>'
