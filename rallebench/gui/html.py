"""Pieces of HTML shared by all places."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from markupsafe import Markup
from markupsafe import escape as escape_text

from rallebench.core.errors import RalleError
from rallebench.gui.addresses import Door, Query
from rallebench.gui.wording import on_page

NOTHING = Markup()
SIGNS = dict(zip(("right", "wrong", "lost", "format", "failed", "none"), "✓✕✕≈!·"))
VERDICTS = {
    "right": "right",
    "wrong": "wrong",
    "lost": "not retrieved",
    "format": "wrong format",
    "failed": "failed",
    "none": "no verdict",
}
"""Verdict on a question → its display name."""


def escape(value: Any) -> Markup:
    """Escape text as HTML, with errors in the page's wording; HTML is returned unchanged."""
    return escape_text(on_page(value) if isinstance(value, RalleError) else value)


def attributes(**values: Any) -> Markup:
    """Return ``data-`` attributes: ``run_id`` becomes ``data-run-id``, ``with_`` becomes ``data-with``; None is left
    out.

    >>> print(attributes(do="runs.delete", run_id='a"b', with_="#form", more=None))
     data-do="runs.delete" data-run-id="a&#34;b" data-with="#form"
    """
    if "form" in values:
        raise ValueError("data-form marks a form; give the value another name")
    return Markup().join(
        Markup(' data-{}="{}"').format(name.rstrip("_").replace("_", "-"), value)
        for name, value in values.items()
        if value is not None
    )


def door(to: Door, inside: str) -> Markup:
    """Draw the content of a cell, as HTML, so that a click on the cell or Enter opens a trace."""
    return Markup('<div class="door" role="button" tabindex="0"{}>{}</div>').format(
        attributes(trace=to.trace), inside
    )


def button(
    label: str,
    do: str = "",
    *,
    kind: str = "",
    title: str = "",
    disabled: bool = False,
    about: str = "",
    **data: Any,
) -> Markup:
    """Draw a button. ``kind``: "primary" (one per view), "quiet", "danger"; ``data``: its ``data-`` attributes.

    ``about``: what it acts on, for the names of equal buttons of several things.
    """
    named = Markup(' aria-label="{} {}"').format(label, about) if about else Markup()
    more = Markup(' disabled aria-disabled="true"') if disabled else Markup()
    tip = Markup(' title="{}"').format(title) if title else Markup()
    run = Markup(" data-primary") if kind == "primary" else NOTHING
    return Markup('<button type="button" class="{}"{}{}{}{}{}>{}</button>').format(
        kind, run, tip, named, attributes(do=do or None, **data), more, label
    )


def stop_stream(action: str) -> Markup:
    """Draw a button that ends the stream of an action."""
    return button("Stop", kind="quiet", stop=action)


def link(label: str, address: str, kind: str = "link") -> Markup:
    """Draw a link within the page. ``kind``: "link", "nm" (a name), "button", "" (a menu entry)."""
    return Markup('<a class="{}" href="{}">{}</a>').format(kind, address, label)


def join_facts(*words: str | None) -> str:
    """Join facts on one line, without empty ones.

    >>> join_facts("2 steps", "", "0.4 s")
    '2 steps · 0.4 s'
    """
    return " · ".join(filter(None, words))


def join_facts_html(*parts: str | None) -> Markup:
    """Join facts on one line, where some are HTML; empty ones are left out."""
    return Markup(" · ").join(filter(None, parts))


def name_link(label: str, place: Query) -> Markup:
    """Link a name to the view of the item."""
    return link(label, place.href, "nm")


def note(sentence: object) -> Markup:
    """Draw a remark; "" if there is none."""
    return Markup('<p class="note">{}</p>').format(on_page(sentence)) if sentence else Markup()


def heading(title: str, about: str = "", *, first: bool = False) -> Markup:
    """Draw the heading of a section; ``first``: for the first section."""
    small = Markup(" <small>{}</small>").format(about) if about else Markup()
    return Markup('<h2 class="sub{}">{}{}</h2>').format(" first" if first else "", title, small)


def hidden_title(title: str) -> Markup:
    """Draw the title of a view that shows none, for screen readers."""
    return Markup('<h1 class="sr">{}</h1>').format(title)


def bullets(lines: Iterable[object], kind: str = "") -> Markup:
    """Draw a list of texts; "" if there are none."""
    items = Markup().join(Markup("<li>{}</li>").format(on_page(line)) for line in lines)
    return Markup('<ul class="{}">{}</ul>').format(kind, items) if items else Markup()


def pre(text: str, kind: str = "pre") -> Markup:
    """Draw a text that keeps its line breaks and spaces."""
    return Markup('<pre class="{}" tabindex="0">{}</pre>').format(kind, text)


def copyable(body: str, name: str = "the text") -> Markup:
    """Draw a text, as HTML, with a button that copies it. Of a formatted answer it copies the raw text.

    ``name``: of the text, for the label of the button.
    """
    return Markup(
        '<div class="copyable">{}<button type="button" class="copy" data-copy="text" title="Copy" '
        'aria-label="Copy {}"></button></div>'
    ).format(body, name)


TABLE_SHAPES = (
    ("tsv", "Copy for a spreadsheet"),
    ("markdown", "Copy as Markdown"),
    ("latex", "Copy as LaTeX"),
)


def copyable_table(table: str) -> Markup:
    """Draw a table, as HTML, with a menu that copies it."""
    buttons = Markup().join(
        Markup('<button type="button" data-copy="{}">{}</button>').format(shape, label)
        for shape, label in TABLE_SHAPES
    )
    copies = Markup(
        '<details class="menu copy-table"><summary title="Copy the table" aria-label="Copy the table"></summary>'
        "<div>{}</div></details>"
    ).format(buttons)
    return Markup('<div class="copyable">{}{}</div>').format(table, copies)


def as_json(value: Any) -> Markup:
    """Draw a record as indented JSON."""
    return copyable(pre(json.dumps(value, ensure_ascii=False, indent=1, default=str)))


def defs(pairs: Iterable[tuple[str, str]]) -> Markup:
    """Draw facts as a definition list, without empty ones."""
    rows = Markup().join(
        Markup("<dt>{}</dt><dd>{}</dd>").format(key, value) for key, value in pairs if value
    )
    return Markup('<dl class="defs">{}</dl>').format(rows)


def follow(do: str) -> Markup:
    """Return an element that triggers an action whenever a job changes."""
    return Markup("<span{}></span>").format(attributes(follow="*", do=do))


def dialog(title: str, body: str, *buttons: str, keep: str = "Cancel") -> Markup:
    """Draw a dialog with buttons; ``body``: HTML whose fields the buttons send."""
    ends = button(keep, close="1") + Markup().join(buttons)
    return Markup(
        '<h2>{}</h2><div data-form class="stack">{}<div class="buttons">{}</div></div>'
    ).format(title, body, ends)


def mark(verdict: str) -> Markup:
    """Draw the symbol of a verdict, with its name for screen readers."""
    name = VERDICTS.get(verdict, verdict)
    return Markup('<i class="m {}" role="img" title="{}" aria-label="{}">{}</i>').format(
        verdict, name, name, SIGNS.get(verdict, "·")
    )


def chips(
    items: Iterable[tuple[str, str, int | str | None]],
    chosen: str,
    do: str,
    name: str = "only",
    keys: Mapping[str, str] = MappingProxyType({}),
    **data: Any,
) -> Markup:
    """Draw filters with counts: (value, label, count); a click sends ``name=value``, as does the key of a value in ``keys``."""
    buttons = Markup()
    for value, label, count in items:
        on = value == chosen
        counted = (
            Markup()
            if count is None
            else Markup(" <b>{}</b>").format(count if isinstance(count, str) else f"{count:,}")
        )
        buttons += Markup(
            '<button type="button" class="{}" aria-pressed="{}"{}>{}{}</button>'
        ).format(
            "on" if on else "",
            str(on).lower(),
            attributes(do=do, key=keys.get(value), **{name: value}, **data),
            label,
            counted,
        )
    return Markup('<div class="chips" role="group">{}</div>').format(buttons)


def choice(address: str, title: str, about: str, on: bool, kind: str = "") -> Markup:
    """Draw a link in a group in which the current one is highlighted; ``about``: a line below it."""
    current = Markup(" aria-current=true") if on else NOTHING
    names = f"{kind} on".strip() if on else kind
    return Markup('<a href="{}" class="{}"{}><b>{}</b><small>{}</small></a>').format(
        address, names, current, title, about
    )


def segments(items: Iterable[tuple[str, str]], chosen: str, label: str = "Mode") -> Markup:
    """Draw a switch between views: (address, label)."""
    links = Markup().join(
        Markup('<a href="{}" class="{}"{}>{}</a>').format(
            address,
            "on" if address == chosen else "",
            Markup(" aria-current=page") if address == chosen else NOTHING,
            words,
        )
        for address, words in items
    )
    return Markup('<nav class="seg" aria-label="{}">{}</nav>').format(label, links)


def fold(
    title: str,
    inside: str,
    *,
    gist: str = "",
    id: str = "",
    opened: bool = False,
    about: str = "",
) -> Markup:
    """Draw a collapsible section. ``title`` and ``gist`` are text, ``inside`` is HTML; with an ``id`` it stays open
    across redraws. ``about``: what it belongs to, for the names of equal sections.
    """
    more = Markup('<span class="sr"> {}</span>').format(about) if about else Markup()
    name = Markup(' id="{}"').format(id) if id else Markup()
    return Markup(
        '<details class="fold"{}{}><summary>{}{}<em>{}</em></summary><div>{}</div></details>'
    ).format(name, Markup(" open") if opened else NOTHING, title, more, gist, inside)


def menu(*buttons: str, label: str) -> Markup:
    """Draw the menu of a row. ``label`` names the row, so that an open menu stays open across redraws."""
    return Markup(
        '<details class="menu"><summary title="{}" aria-label="{}">⋯</summary><div>{}</div></details>'
    ).format(label, label, Markup().join(buttons))


STATES = {
    **dict.fromkeys(("loaded", "answers", "checked", "kept", "ready"), "good"),
    **dict.fromkeys(("failed", "no answer", "damaged"), "bad"),
    **dict.fromkeys(("loading", "waiting", "cancelling", "testing", "building", "running"), "busy"),
}
"""State of an item → the kind of its dot."""


def state(word: str, about: str = "", kind: str = "") -> Markup:
    """Draw the state of an item with a coloured dot. ``kind``: "good", "bad", "busy"; '' derives it from the word."""
    return Markup('<span class="state {}" title="{}">{}</span>').format(
        kind or STATES.get(word, ""), about, word
    )


def progress(share: float | None, title: str = "") -> Markup:
    """Draw a progress bar, which oscillates if the share is unknown. ``title``: the name of the work."""
    value = Markup() if share is None else Markup(' value="{:.0f}"').format(100 * share)
    label = Markup(' aria-label="Progress of {}"').format(title) if title else Markup()
    return Markup('<progress max="100"{}{}></progress>').format(value, label)


def doing(words: str, button: str = "", share: float | None = None) -> Markup:
    """Draw work in progress with its bar and button."""
    return Markup('<div class="doing"><span>{}</span>{}{}</div>').format(
        words, button, progress(share)
    )


def empty(sentence: str, action: str = "") -> Markup:
    """Draw an empty list with the next step and a button for it."""
    return Markup('<div class="empty"><p>{}</p>{}</div>').format(sentence, action)


def problem(error: object) -> Markup:
    """Draw an error in the page's wording next to its cause; "" for None."""
    return Markup('<p class="problem">{}</p>').format(on_page(error)) if error else Markup()


def warning(sentence: object) -> Markup:
    """Draw a warning; "" if there is none."""
    return Markup('<p class="warn">{}</p>').format(on_page(sentence)) if sentence else Markup()


def crumb(place: str, address: str, title: str, about: str = "", *, buttons: str = "") -> Markup:
    """Draw the heading of an item: the way back, its name, a line about it, its buttons."""
    return Markup(
        '<div class="crumb"><a href="{}">{}</a><span>/</span><h1>{}</h1><small>{}</small><span class="gap"></span>'
        '<div class="crumb-buttons">{}</div></div>'
    ).format(address, place, title, about, buttons)


def rows(
    heads: Sequence[str],
    lines: Iterable[Sequence[str]],
    *,
    kind: str = "",
    addresses: Sequence[str] = (),
    abouts: Sequence[str] = (),
    marked: Sequence[bool] = (),
    sorts: Sequence[str] = (),
) -> Markup:
    """Draw a table of HTML cells. Headings that begin with ">" mark columns of numbers.

    ``addresses``: one per row, "" for none; ``abouts``: one per heading; ``marked``: highlighted rows; ``sorts``: value of
    ``aria-sort`` per heading, "" if the list cannot be sorted by it.
    """
    sides, top, body = ["n" if head.startswith(">") else "" for head in heads], Markup(), Markup()
    for index, head in enumerate(heads):
        about = Markup(' title="{}"').format(abouts[index]) if abouts else Markup()
        if sorts and sorts[index]:
            about += Markup(' aria-sort="{}"').format(sorts[index])
        top += Markup('<th scope="col" class="{}"{}>{}</th>').format(
            sides[index], about, head.lstrip(">")
        )
    for index, line in enumerate(lines):
        cells = Markup().join(
            Markup('<td class="{}">{}</td>').format(side, cell) for side, cell in zip(sides, line)
        )
        target = (
            Markup(' data-href="{}" tabindex="0"').format(addresses[index])
            if addresses and addresses[index]
            else Markup()
        )
        target += Markup(' class="mine"') if marked and marked[index] else Markup()
        body += Markup("<tr{}>{}</tr>").format(target, cells)
    return Markup('<table class="t {}"><thead><tr>{}</tr></thead><tbody>{}</tbody></table>').format(
        kind, top, body
    )


def window(
    list: str,
    key: Query,
    total: int,
    pick: str,
    *,
    at: int = -1,
    row: int = 62,
    label: str = "Questions",
) -> Markup:
    """Draw a list that loads its rows as they scroll into view; see ``Page.list_rows``. ``row``: the height of a row
    in pixels.
    """
    data = attributes(
        list=list, key=json.dumps(key.values()), total=total, at=at, row=row, pick=pick
    )
    role = "listbox" if pick else "group"  # rows that are not picked hold controls of their own
    return Markup(
        '<div class="list" id="list-{}" role="{}" tabindex="0" aria-label="{}"{}><div class="pane"></div></div>'
    ).format(list, role, label, data)
