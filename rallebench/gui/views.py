"""Core values → what a component shows. Pure: no widgets, no workbench, everything escaped."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

from rallebench.chains.chain import prompt_of, wiki_id_title
from rallebench.core.types import Example, Generate, Gold, Hit, Retrieve, Step
from rallebench.engine.cost import Prices, usd_of, why_unknown
from rallebench.metrics import card
from rallebench.metrics.cost import completion_tokens_of, first_token_of, prompt_tokens_of, speed
from rallebench.metrics.text import find_answers
from rallebench.render import costs, numbers
from rallebench.render.html import badge, empty, note  # noqa: F401 - the tabs use all three

EMPTY_PROMPT = "Interpret or execute the action to see its prompt."
EMPTY_RESPONSE = "Execute the action to see what comes back."


def marked(text: str, answers: Sequence[str], mark: bool = True) -> str:
    """The text as HTML, gold answers marked where they stand, at word boundaries."""
    if not mark or not answers:
        return escape(text)
    parts, at = [], 0
    for start, end, _ in find_answers(text, answers):
        if start < at:
            continue
        parts += [
            escape(text[at:start]),
            '<mark class="rb-answer">',
            escape(text[start:end]),
            "</mark>",
        ]
        at = end
    return "".join([*parts, escape(text[at:])])


def text_box(label: str, body: str, extra: str = "") -> str:
    """A labelled read-only text; ``body`` and ``extra`` are HTML."""
    return f'<div class="rb-label"><span>{escape(label)}</span>{extra}</div><div class="rb-text" dir="auto">{body}</div>'


def error(message: str) -> str:
    """One sentence about what went wrong."""
    return f'<div class="rb-error">{escape(message)}</div>'


def prompt(text: str, gold: Gold, mark: bool, waiting: bool = False) -> str:
    """An interpreted prompt with the gold answers marked."""
    found = (
        len({start for start, _, _ in find_answers(text, gold.answers)})
        if mark and gold.answers
        else 0
    )
    extra = badge(f"gold answer ×{found}", "good") if found else ""
    return text_box(
        "Prompt" + (", not executed yet" if waiting else ""),
        marked(text, gold.answers, mark),
        extra,
    )


def step_prompt(step: Step, gold: Gold, mark: bool) -> str:
    """The prompt of an executed step; a system prompt stands above it."""
    shown = prompt(prompt_of(step.request), gold, mark)
    if isinstance(step.request, Generate):
        system = "".join(
            text_box(message.role.capitalize(), escape(message.content))
            for message in step.request.messages[:-1]
        )
        return system + shown
    return shown


def cost(step: Step, prices: Prices | None = None) -> str:
    """Time, tokens, speed, dollars, and whether the reply came from memory, as badges with their definitions."""
    took = numbers.text(step.seconds, "seconds")
    share = f" (its share of a batch of {step.batch})" if step.batch > 1 else ""
    parts = [badge(took, about=f"Seconds that this step took{share}.")]
    if step.cached:
        about = f"This time nothing was asked; all costs are those of then{share}."
        parts = [badge("from memory", about=about), badge(f"took {took} then", about=about)]
    if isinstance(step.request, Generate):
        parts += _model_cost(step, prices or {})
        if step.reply.finish_reason not in ("stop", ""):
            parts.append(badge(f"ended: {step.reply.finish_reason}", "bad"))
        if step.reply.confidence is not None:
            parts.append(badge(f"confidence {step.reply.confidence:.2f}"))
    return "".join(parts)


def _model_cost(step: Step, prices: Prices) -> list[str]:
    assert isinstance(step.request, Generate)
    first, rate = first_token_of(step), speed([step])
    parts = []
    if first is not None:
        parts.append(
            badge(
                f"first token {numbers.text(first, 'seconds')}",
                about=card("first_token_seconds")["definition"],
            )
        )
    counted = costs.tokens(prompt_tokens_of(step), completion_tokens_of(step))
    parts.append(
        badge(
            counted,
            about="Prompt + completion tokens, as the model's own tokenizer or server counts them.",
        )
    )
    if rate is not None:
        parts.append(badge(costs.speed(rate), about=card("tokens_per_second")["definition"]))
    dollars = usd_of(step, prices)
    if dollars is None:
        why = why_unknown(step, prices)
        return [
            *parts,
            badge(
                "$ unknown",
                about=f"The price of this answer is not known for {step.request.llm}: {why}.",
            ),
        ]
    return [
        *parts,
        badge(
            numbers.text(sum(dollars), "usd"),
            about="US dollars: tokens times the model's prices per million.",
        ),
    ]


def response(
    step: Step,
    gold: Gold,
    mark: bool,
    gold_rank: int | None = None,
    depth: int = 100,
    prices: Prices | None = None,
) -> str:
    """What came back: passages as a ranked list, or the answer's text; ``prices`` of the language models."""
    if isinstance(step.request, Retrieve):
        return passages(step, gold, mark, gold_rank, depth)
    found = bool(find_answers(step.reply.text, gold.answers)) if mark and gold.answers else None
    extra = cost(step, prices)
    if found is not None:
        extra += badge("gold answer found", "good") if found else badge("no gold answer", "bad")
    body = marked(step.reply.text, gold.answers, mark) or '<span class="rb-empty">empty</span>'
    return text_box("Response", body, extra) + (note(step.reply.note) if step.reply.note else "")


def passages(step: Step, gold: Gold, mark: bool, gold_rank: int | None, depth: int) -> str:
    """Retrieved passages, best first, with gold pages and gold answers marked."""
    assert isinstance(step.request, Retrieve)
    extra = cost(step) + badge(f"{len(step.reply.hits)} of k = {step.request.k}")
    if gold.pages and mark:
        extra += rank_badge(gold_rank, step.request.k, depth)
    return ranked(step.reply.hits, gold, mark, extra) + _strings(step)


def ranked(hits: Sequence[Hit], gold: Gold, mark: bool, extra: str) -> str:
    """Passages, best first, with gold pages and gold answers marked; ``extra``: badges above them."""
    shown = "".join(_hit(rank, hit, gold, mark) for rank, hit in enumerate(hits, 1))
    shown = shown or '<div class="rb-empty">No passage was found for this query.</div>'
    return f'<div class="rb-label"><span>Passages</span>{extra}</div><div class="rb-hits">{shown}</div>'


def _strings(step: Step) -> str:
    """The two strings that later templates see, to the last separator."""
    seen = (("response", step.reply.text), ("wiki_id_title", wiki_id_title(step)))
    boxes = "".join(text_box(name, escape(text)) for name, text in seen)
    return (
        f'<details class="rb-label"><summary>As later templates see it</summary>{boxes}</details>'
    )


def rank_badge(rank: int | None, k: int, depth: int) -> str:
    """Where the first gold page is, looked for down to ``depth``."""
    if rank is None:
        return badge(f"gold page not among the first {depth}", "bad")
    if rank > k:
        return badge(f"first gold page at rank {rank}: k = {k} cut it", "bad")
    return badge(f"first gold page at rank {rank}", "good")


def _hit(rank: int, hit: Hit, gold: Gold, mark: bool) -> str:
    passage = hit.passage
    is_gold = mark and passage.page_id in gold.pages
    title = escape(passage.title or "(no title)")
    title = f'<mark class="rb-page">{title}</mark>' if is_gold else title
    badges = badge("gold page", "page") if is_gold else ""
    if mark and gold.answers and find_answers(passage.text, gold.answers):
        badges += badge("answer in passage", "good")
    page = f"page {escape(passage.page_id)}" if passage.page_id else "no page id"
    return (
        f'<div class="rb-hit{" gold" if is_gold else ""}"><div class="rb-hit-head"><b>{rank}</b> <b dir="auto">{title}</b>'
        f"<span>{page}</span>{badges}<span class='score'>{hit.score:.4f}</span></div>"
        f'<div dir="auto">{marked(passage.text, gold.answers, mark)}</div></div>'
    )


def gold_line(example: Example) -> str:
    """The gold answers and pages of a question, for the reader's eye only."""
    gold = example.gold
    if not gold.answers and not gold.pages:
        return note("This question has no gold: nothing can be marked or scored.")
    answers = (
        " ".join(f'<mark class="rb-answer">{escape(a)}</mark>' for a in gold.answers[:8])
        or "none given"
    )
    more = f" and {len(gold.answers) - 8} more" if len(gold.answers) > 8 else ""
    pages = " ".join(
        f'<mark class="rb-page">{escape(gold.titles.get(p) or p)}</mark>'
        for p in _in_order(gold.pages, gold)
    )
    return f'<div class="rb-label"><span>Gold answers:</span> {answers}{more} <span>Gold pages:</span> {pages or "none given"}</div>'


def _in_order(pages: Collection[str], gold: Gold) -> list[str]:
    order = list(gold.titles)
    return sorted(
        pages, key=lambda page: (order.index(page) if page in gold.titles else len(order), page)
    )


def progress_bar(done: int, total: int) -> str:
    """A bar; an unknown total shows an empty one."""
    share = 100 * done / total if total else 0
    return f'<div class="rb-bar" role="progressbar" aria-valuenow="{share:.0f}"><div style="width:{share:.1f}%"></div></div>'


def duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> duration(5), duration(75), duration(7300)
    ('5 s', '1 min 15 s', '2 h 1 min')
    """
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"
