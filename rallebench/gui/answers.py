"""Draw answers of chains and models: as plain text, or as Markdown with the raw text one click away."""

from __future__ import annotations

import re
from collections.abc import Iterable

from markupsafe import Markup

from rallebench.gui import html
from rallebench.gui.html import escape
from rallebench.gui.markdown import is_formatted, safe_markdown
from rallebench.views.steps import is_span, spans

Place = tuple[int, str, int]
"""(start, class, end) of a highlighted span of a text."""

LONG = 160
"""Characters beyond which an answer is a text and not a few words."""

_OPEN, _CLOSE = "\ue002", "\ue003"
"""Private-use characters that enclose a gold answer until the text is HTML."""
_EITHER = re.compile(f"[{_OPEN}{_CLOSE}]")


def places(text: str, gold: Iterable[str], answer: str = "") -> list[Place]:
    """Return the positions of gold answers, and of a wrong answer, in a text."""
    marks = [(start, "", end) for start, end in spans(text, tuple(gold))]
    if is_span(answer):
        marks += [(start, "answer", end) for start, end in spans(text, (answer.strip(),))]
    return marks


def mark_gold(text: str, gold: Iterable[str]) -> Markup:
    """Highlight gold answers in the text."""
    return highlight(text, places(text, gold))


def highlight(text: str, marks: Iterable[Place]) -> Markup:
    """Draw the text with its highlights; if some overlap, only the first is drawn."""
    parts, at = Markup(), 0
    for start, kind, end in sorted(marks):
        if start >= at:
            parts += Markup('{}<mark class="{}">{}</mark>').format(
                text[at:start], kind, text[start:end]
            )
            at = end
    return parts + escape(text[at:])


def draw_answer(
    text: str, gold: Iterable[str] = (), *, with_raw: bool = True, name: str = "the answer"
) -> Markup:
    """Draw an answer with its gold answers highlighted, or a placeholder for an empty one.

    ``with_raw``: offer to copy it, and to read a formatted answer as it came; ``name``: of the answer, for that button.

    >>> print(draw_answer("It is Paris", ["Paris"], with_raw=False))
    <span class="plain">It is <mark class="">Paris</mark></span>
    >>> print(draw_answer("It is **Paris**", ["Paris"], with_raw=False))
    <div class="md"><p>It is <strong><mark>Paris</mark></strong></p></div>
    """
    if not text:
        return Markup("<em>empty</em>")
    size = " long" if len(text) > LONG else ""
    if not is_formatted(text):
        plain = Markup('<span class="plain{}">{}</span>').format(size, mark_gold(text, gold))
        return html.copyable(plain, name) if with_raw else plain
    if not with_raw:
        return Markup('<div class="md{}">{}</div>').format(size, _marked_markdown(text, gold))
    raw = Markup('<details class="raw"><summary>Raw text</summary>{}</details>').format(
        html.pre(text, "pre")
    )
    inside = _marked_markdown(text, gold) + raw
    formatted = Markup('<div class="md{}">{}</div>').format(size, inside)
    return html.copyable(formatted, name)


def _marked_markdown(text: str, gold: Iterable[str]) -> Markup:
    """Render Markdown with highlights; a span that crosses a tag is left without."""
    text, at, pieces = _EITHER.sub("", text), 0, list[str]()
    for start, _, end in sorted(places(text, gold)):
        if start >= at:
            pieces += [text[at:start], _OPEN, text[start:end], _CLOSE]
            at = end
    drawn, *others = safe_markdown("".join((*pieces, text[at:]))).split(_OPEN)
    for other in others:
        inside, _, after = other.partition(_CLOSE)
        drawn += inside if "<" in inside else Markup("<mark>{}</mark>").format(inside)
        drawn += after
    return drawn


def answer_line(verdict: str, answer: str, more: str = "") -> Markup:
    """Draw an answer with its verdict, if any, and a remark; both are HTML."""
    sign = html.mark(verdict) if verdict else Markup()
    return Markup('<div class="ans" dir="auto">{}<div>{}</div>{}</div>').format(sign, answer, more)
