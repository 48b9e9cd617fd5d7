"""Pieces of HTML that all places use. Pure; every text is escaped here or by ``e``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote, urlencode

from rallebench.core.errors import RalleError
from rallebench.gui.wording import on_page

SIGNS = dict(zip(("right", "wrong", "lost", "format", "failed", "none"), "✓✕✕≈!·"))
VERDICTS = {
    "right": "right",
    "wrong": "wrong",
    "lost": "not retrieved",
    "format": "wrong format",
    "failed": "failed",
    "none": "not asked yet",
}
"""Verdict of a question → what it is called."""


def e(value: Any) -> str:
    """Text for HTML, also within an attribute; an error in the words of the page."""
    return escape(on_page(value) if isinstance(value, RalleError) else str(value), quote=True)


def attributes(**values: Any) -> str:
    """``data-`` attributes; ``run_id`` → ``data-run-id``, ``with_`` → ``data-with``; None is left out.

    >>> attributes(do="runs.delete", run_id='a"b', with_="#form", more=None)
    ' data-do="runs.delete" data-run-id="a&quot;b" data-with="#form"'
    """
    if "form" in values:
        raise ValueError("data-form marks a form; give the value another name")
    return "".join(
        f' data-{name.rstrip("_").replace("_", "-")}="{e(value)}"'
        for name, value in values.items()
        if value is not None
    )


def button(
    label: str,
    do: str = "",
    *,
    kind: str = "",
    title: str = "",
    disabled: bool = False,
    **data: Any,
) -> str:
    """A button. ``kind``: "primary" (one a view), "quiet", "danger"; ``data``: its ``data-`` attributes."""
    more = ' disabled aria-disabled="true"' if disabled else ""
    tip = f' title="{e(title)}"' if title else ""
    run = " data-primary" if kind == "primary" else ""
    return f'<button type="button" class="{kind}"{run}{tip}{attributes(do=do or None, **data)}{more}>{e(label)}</button>'


def stop_stream(action: str) -> str:
    """The button that ends the stream of an action."""
    return button("Stop", kind="quiet", stop=action)


def link(label: str, address: str, kind: str = "link") -> str:
    """A link within the page. ``kind``: "link", "nm" (a name), "button", "" (an entry of a menu)."""
    return f'<a class="{kind}" href="{e(address)}">{e(label)}</a>'


def dotted(*words: str | None) -> str:
    """Facts in one line, the empty ones left out.

    >>> dotted("2 steps", "", "0.4 s")
    '2 steps · 0.4 s'
    """
    return " · ".join(filter(None, words))


def named(label: str, view: str, **query: Any) -> str:
    """The name of a thing, which opens its view."""
    return link(label, address(view, **query), "nm")


def note(sentence: object) -> str:
    """A remark, "" for none."""
    return f'<p class="note">{e(sentence)}</p>' if sentence else ""


def heading(title: str, about: str = "", *, first: bool = False) -> str:
    """The heading of a part; ``first``: nothing stands above it."""
    small = f" <small>{e(about)}</small>" if about else ""
    return f'<h3 class="sub{" first" if first else ""}">{e(title)}{small}</h3>'


def bullets(lines: Iterable[object], kind: str = "") -> str:
    """A list of texts, "" for none."""
    items = "".join(f"<li>{e(on_page(line))}</li>" for line in lines)
    return f'<ul class="{kind}">{items}</ul>' if items else ""


def pre(text: str, kind: str = "pre") -> str:
    """A text with its lines and blanks as they are."""
    return f'<pre class="{kind}" tabindex="0">{e(text)}</pre>'


def as_json(value: Any) -> str:
    """A record as indented JSON."""
    return pre(json.dumps(value, ensure_ascii=False, indent=1, default=str))


def address(view: str, **query: Any) -> str:
    """The address of a view; empty values are left out.

    >>> address("data/index", id="a b", q="")
    '#/data/index?id=a%20b'
    """
    chosen = {key: value for key, value in query.items() if value != ""}
    values = urlencode(chosen, quote_via=quote, safe=":,")
    return f"#/{view}?{values}" if values else f"#/{view}"


def defs(pairs: Iterable[tuple[str, str]]) -> str:
    """Facts by their names; the empty ones are left out."""
    rows = "".join(f"<dt>{e(key)}</dt><dd>{e(value)}</dd>" for key, value in pairs if value)
    return f'<dl class="defs">{rows}</dl>'


def view(name: str, title: str, *parts: str, kind: str = "", more: str = "") -> dict[str, str]:
    """The patch that opens a view: its parts below each other. ``kind``: "wide" for tables; ``more``: attributes of the whole."""
    place, kind = f"#v-{name.replace('/', '-')}", f"wrap-page {kind}".strip()
    return {place: f'<div class="{kind}"{more}>{"".join(parts)}</div>', "title": title}


def follow(do: str) -> str:
    """What calls an action whenever any job has news."""
    return f"<span{attributes(follow='*', do=do)}></span>"


def dialog(title: str, body: str, *buttons: str, keep: str = "Cancel") -> str:
    """A question to the user with its buttons; ``body`` is HTML whose fields the buttons send."""
    ends = button(keep, close="1") + "".join(buttons)
    return f'<h2>{e(title)}</h2><div data-form class="stack">{body}<div class="buttons">{ends}</div></div>'


def ask(
    title: str, body: str, label: str, do: str, *, keep: str = "Cancel", **data: Any
) -> dict[str, str]:
    """The patch that asks for what the fields of ``body`` hold, with one button that does it."""
    yes = button(label, do, kind="primary", **data)
    return {"dialog": dialog(title, body, yes, keep=keep)}


def ask_delete(thing: str, sentence: str, do: str, **data: Any) -> dict[str, str]:
    """The patch that asks before something is deleted; ``sentence``: what else breaks."""
    yes = button("Delete", do, kind="danger", **data)
    return {"dialog": dialog(f"Delete {thing}?", f"<p>{e(sentence)}</p>", yes, keep="Keep it")}


def drawer(title: str, *parts: str) -> dict[str, str]:
    """The patch that opens a panel at the right of the page; its parts are HTML."""
    close = button("Close", kind="quiet", close="1")
    return {"drawer": f'<div class="dh"><h2>{e(title)}</h2>{close}</div>{"".join(parts)}'}


def form_drawer(title: str, fields: str, *buttons: str) -> dict[str, str]:
    """The patch that opens a panel with fields, which its buttons send."""
    inside = f'{fields}<div class="buttons">{"".join(buttons)}</div>'
    return drawer(title, f'<div data-form data-problems class="stack">{inside}</div>')


def mark(verdict: str) -> str:
    """The mark of a verdict, named for screen readers."""
    name = VERDICTS.get(verdict, verdict)
    return f'<i class="m {verdict}" role="img" title="{e(name)}" aria-label="{e(name)}">{SIGNS.get(verdict, "·")}</i>'


def chips(
    items: Iterable[tuple[str, str, int | None]],
    chosen: str,
    do: str,
    name: str = "only",
    **data: Any,
) -> str:
    """Filters with counts: (value, label, count); the pressed one sends ``name=value``."""
    buttons = ""
    for value, label, count in items:
        on = value == chosen
        counted = f" <b>{count:,}</b>" if count is not None else ""
        buttons += f'<button type="button" class="{"on" if on else ""}" aria-pressed="{str(on).lower()}"{attributes(do=do, **{name: value}, **data)}>{e(label)}{counted}</button>'
    return f'<div class="chips" role="group">{buttons}</div>'


def choice(address: str, title: str, about: str, on: bool, kind: str = "") -> str:
    """A link of several of which the present one is marked, with a line about it."""
    current = " aria-current=true" if on else ""
    names = f"{kind} on".strip() if on else kind
    return f'<a href="{e(address)}" class="{names}"{current}><b>{e(title)}</b><small>{e(about)}</small></a>'


def segments(items: Iterable[tuple[str, str]], chosen: str, label: str = "Mode") -> str:
    """A switch between views: (address, label)."""
    links = "".join(
        f'<a href="{e(address)}" class="{"on" if address == chosen else ""}"{" aria-current=page" if address == chosen else ""}>{e(words)}</a>'
        for address, words in items
    )
    return f'<nav class="seg" aria-label="{e(label)}">{links}</nav>'


def fold(title: str, inside: str, *, gist: str = "", id: str = "", opened: bool = False) -> str:
    """A part that opens. ``title`` and ``gist`` are text, ``inside`` is HTML; with an ``id`` it stays open when it is drawn again."""
    name = f' id="{e(id)}"' if id else ""
    return f'<details class="fold"{name}{" open" if opened else ""}><summary>{e(title)}<em>{e(gist)}</em></summary><div>{inside}</div></details>'


def menu(*buttons: str, label: str) -> str:
    """The menu at the end of a row. ``label`` names the row: by it an open menu stays open when the list is drawn again."""
    return f'<details class="menu"><summary title="{e(label)}" aria-label="{e(label)}">⋯</summary><div>{"".join(buttons)}</div></details>'


STATES = {
    **dict.fromkeys(("loaded", "answers", "checked", "kept", "ready"), "good"),
    **dict.fromkeys(("failed", "no answer", "damaged"), "bad"),
    **dict.fromkeys(("loading", "waiting", "cancelling", "testing", "building", "running"), "busy"),
}
"""State of a thing → the kind of its dot."""


def state(word: str, about: str = "", kind: str = "") -> str:
    """The state of a thing with its dot. ``kind``: "good", "bad", "busy"; by the word where it is empty."""
    return f'<span class="state {kind or STATES.get(word, "")}" title="{e(about)}">{e(word)}</span>'


def progress(share: float | None, title: str = "") -> str:
    """A bar; it moves to and fro where the share is not known. ``title``: what it is the progress of."""
    value = "" if share is None else f' value="{100 * share:.0f}"'
    label = f' aria-label="Progress of {e(title)}"' if title else ""
    return f'<progress max="100"{value}{label}></progress>'


def doing(words: str, button: str = "", share: float | None = None) -> str:
    """Work that goes on: how far it is, and its button."""
    return f'<div class="doing"><span>{e(words)}</span>{button}{progress(share)}</div>'


def empty(sentence: str, action: str = "") -> str:
    """An empty place: what to do, with the button that does it."""
    return f'<div class="empty"><p>{e(sentence)}</p>{action}</div>'


def problem(error: object) -> str:
    """What went wrong, in the words of the page, where it happened; "" for nothing."""
    return f'<p class="problem">{e(on_page(error))}</p>' if error else ""


def warning(sentence: object) -> str:
    """A warning, "" for none."""
    return f'<p class="warn">{e(on_page(sentence))}</p>' if sentence else ""


def crumb(place: str, address: str, title: str, about: str = "", *, buttons: str = "") -> str:
    """The heading of an object: the way back, its name, a line about it, its buttons."""
    return f'<div class="crumb"><a href="{e(address)}">{e(place)}</a><span>/</span><h1>{e(title)}</h1><small>{e(about)}</small><span class="gap"></span>{buttons}</div>'


def rows(
    heads: Sequence[str],
    lines: Iterable[Sequence[str]],
    *,
    kind: str = "",
    addresses: Sequence[str] = (),
    abouts: Sequence[str] = (),
    marked: Sequence[bool] = (),
) -> str:
    """A table of HTML cells. A heading that begins with ">" is a column of numbers; ``addresses``: one a row; ``abouts``: one
    a heading; ``marked``: which rows stand out."""
    sides, top, body = ["n" if head.startswith(">") else "" for head in heads], "", ""
    for index, head in enumerate(heads):
        about = f' title="{e(abouts[index])}"' if abouts else ""
        top += f'<th scope="col" class="{sides[index]}"{about}>{e(head.lstrip(">"))}</th>'
    for index, line in enumerate(lines):
        cells = "".join(f'<td class="{side}">{cell}</td>' for side, cell in zip(sides, line))
        target = f' data-href="{e(addresses[index])}" tabindex="0"' if addresses else ""
        target += ' class="mine"' if marked and marked[index] else ""
        body += f"<tr{target}>{cells}</tr>"
    return f'<table class="t {kind}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'


def window(
    list: str,
    key: Mapping[str, Any],
    total: int,
    pick: str,
    *,
    at: int = -1,
    row: int = 62,
    label: str = "Questions",
) -> str:
    """A list whose rows come as they are scrolled into sight; see ``Page.rows``. ``row``: the height of a row in pixels."""
    return (
        f'<div class="list" id="list-{e(list)}" role="listbox" tabindex="0" aria-label="{e(label)}" data-list="{e(list)}" '
        f'data-key="{e(json.dumps(key))}" data-total="{total}" data-at="{at}" data-row="{row}" data-pick="{e(pick)}"><div class="pane"></div></div>'
    )
