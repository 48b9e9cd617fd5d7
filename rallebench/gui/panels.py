"""Patches that open views, dialogs and drawers."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from rallebench.gui.html import NOTHING, button, dialog
from rallebench.gui.patches import Patch


def view(name: str, title: str, *parts: str, kind: str = "", more: Markup = NOTHING) -> Patch:
    """Open a view made of ``parts``. ``kind``: "wide" for tables; ``more``: attributes of the view."""
    place, kind = f"v-{name.replace('/', '-')}", f"wrap-page {kind}".strip()
    inside = Markup('<div class="{}"{}>{}</div>').format(kind, more, Markup().join(parts))
    return Patch({place: inside}, title=title)


def ask(title: str, body: str, label: str, do: str, *, keep: str = "Cancel", **data: Any) -> Patch:
    """Open a dialog with the fields of ``body`` and one button."""
    yes = button(label, do, kind="primary", **data)
    return Patch(dialog=dialog(title, body, yes, keep=keep))


def ask_delete(thing: str, sentence: str, do: str, **data: Any) -> Patch:
    """Ask for confirmation before deleting; ``sentence``: the consequences."""
    yes = button("Delete", do, kind="danger", **data)
    body = Markup("<p>{}</p>").format(sentence)
    return Patch(dialog=dialog(f"Delete {thing}?", body, yes, keep="Keep it"))


def drawer(title: str, *parts: str) -> Patch:
    """Open a panel on the right; its parts are HTML."""
    close = button("Close", kind="quiet", close="1")
    head = Markup('<div class="dh"><h2>{}</h2>{}</div>').format(title, close)
    return Patch(drawer=head + Markup().join(parts))


def form_drawer(title: str, fields: str, *buttons: str) -> Patch:
    """Open a panel of fields that its buttons send."""
    inside = Markup('{}<div class="buttons">{}</div>').format(fields, Markup().join(buttons))
    return drawer(
        title, Markup('<div data-form data-problems class="stack">{}</div>').format(inside)
    )
