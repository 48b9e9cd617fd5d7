"""Versions of the chain: saved versions and those executed in this window, with their differences; and saving."""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from datetime import datetime
from itertools import zip_longest

from markupsafe import Markup

from rallebench.core.types import Action, Chain
from rallebench.gui import form, html, panels
from rallebench.gui.answers import answer_line
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.html import escape
from rallebench.gui.patches import Patch
from rallebench.gui.places._bench import Bench, read_bench, window_bench
from rallebench.gui.places._chain import KINDS
from rallebench.gui.places._one import chain_patch
from rallebench.render.numbers import moment
from rallebench.views import chain_versions
from rallebench.views.chain_versions import Version


def register(page: Page) -> None:
    """Register the actions of this drawer."""
    page.actions("versions", show, restore, reads=True)
    page.actions("versions", name, save, save_as)


def all_versions(page: Page, bench: Bench) -> list[tuple[str, Version, str, str]]:
    """Return (origin, version, answer, verdict) of the saved versions and of versions only executed, newest first."""
    saved = chain_versions.versions(page.workspace, bench.chain.name)
    listed = [(f"version {v.number}, saved", v, "", "") for v in saved]
    for at, chain, answer, kind, qid in reversed(bench.history):
        if all(chain.actions != other[1].chain.actions for other in listed):
            listed.append((f"executed on {qid}", Version(chain, at), answer, kind))
    return sorted(listed, key=lambda item: -item[1].time)


def clock(version: Version) -> str:
    """Format the time of a version."""
    return moment(datetime.fromtimestamp(version.time))


def show(page: Page, event: Event) -> Patch:
    """Open the drawer."""
    bench = read_bench(page, event)
    rows = Markup()
    for index, (source, version, answer, kind) in enumerate(all_versions(page, bench)):
        reply = answer_line(kind, escape(answer)) if kind else Markup()
        back, changes = Markup("<small>as it is now</small>"), Markup()
        if version.chain.actions != bench.chain.actions:
            back = html.button("Bring back", "versions.restore", index=index)
            changes = difference(version.chain, bench.chain)
        label = Markup(
            '<input name="label" maxlength="80" value="{}" placeholder="Name this version" aria-label="Name of the version"{}>'
        ).format(
            chain_versions.version_name(page.workspace, bench.chain.name, version.chain),
            form.on_change("versions.name", index=index),
        )
        rows += Markup(
            '<section class="version"><h3>{} <small>{}</small><span class="gap"></span>{}</h3>{}{}{}</section>'
        ).format(clock(version), source, back, label, reply, changes)
    note = "Changes from that version to the current chain are marked. Every run and every save adds a version."
    return panels.drawer(f"Versions of {bench.chain.name}", html.note(note), rows)


def name(page: Page, event: Event) -> Patch:
    """Name a version of the chain, or remove its name."""
    bench = window_bench(page, event)
    listed, label = all_versions(page, bench), event.text("label").strip()
    chain = listed[event.position("index", len(listed))][1].chain
    page.workbench.asking.name_version(replace(chain, name=bench.chain.name), label)
    return Patch(say=f"Named the version {label}." if label else "The version has no name now.")


def restore(page: Page, event: Event) -> Patch:
    """Restore a version. Undo returns to the current one."""
    bench = window_bench(page, event)
    listed = all_versions(page, bench)
    bench.edit(listed[event.position("index", len(listed))][1].chain)
    return Patch(drawer="") | chain_patch(page, bench)


def difference(old: Chain, new: Chain) -> Markup:
    """Show the differences between two chains, action by action."""
    rows = Markup()
    for number, (before, after) in enumerate(zip_longest(old.actions, new.actions), 1):
        if before != after:
            name = KINDS[(after or before).kind]
            rows += Markup("<div><small>{} {}</small><p>{}</p></div>").format(
                number, name, _change_words(before, after)
            )
    return Markup('<div class="diff">{}</div>').format(
        rows or Markup("<small>The same actions.</small>")
    )


def _change_words(before: Action | None, after: Action | None) -> Markup:
    if before is None or after is None:
        only = before or after
        assert only is not None
        words = Markup("<del>{}: {}</del>") if before else Markup("<ins>{}: {}</ins>")
        return words.format(only.target or "action", only.template[:200])
    lines = []
    for label, old, new in (
        ("kind", KINDS[before.kind], KINDS[after.kind]),
        ("", before.target, after.target),
        ("k", str(before.k), str(after.k)),
        ("settings", str(dict(before.generation)), str(dict(after.generation))),
    ):
        if old != new:
            lines.append(Markup("{} <del>{}</del> <ins>{}</ins>").format(label, old, new))
    if before.template != after.template:
        lines.append(words_changed(before.template, after.template))
    return Markup("<br>").join(lines)


def words_changed(old: str, new: str) -> Markup:
    """Highlight removed and added words in a text."""
    a, b = (re.findall(r"\w+|\s+|[^\w\s]", text) for text in (old, new))
    parts = Markup()
    for kind, i, j, k, m in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        gone, came = "".join(a[i:j]), "".join(b[k:m])
        if kind == "equal":
            parts += escape(gone)
        else:
            parts += Markup("<del>{}</del>").format(gone) if gone else Markup()
            parts += Markup("<ins>{}</ins>").format(came) if came else Markup()
    return parts.replace("\n", Markup("<br>"))


def save(page: Page, event: Event) -> Patch:
    """Ask for the name under which to save."""
    bench = read_bench(page, event)
    body = form.text("as", "Name", bench.chain.name, more=form.on_enter("versions.save_as"))
    body += html.note(
        "A chain of this name is kept as an earlier version. Runs keep the chain they were made with."
    )
    return panels.ask("Save the chain", body, "Save", "versions.save_as")


def save_as(page: Page, event: Event) -> Patch:
    """Save the chain in the workspace; ask before replacing a chain that this window does not know."""
    bench, name = window_bench(page, event), event.text("as")
    other = chain_versions.replaced_by(page.workspace, name, bench.known.get(name))
    if other is not None and other.chain.actions != bench.chain.actions and not event.flag("over"):
        body = Markup(
            "<p>{} was saved with other actions ({}), not from this window. It stays in Versions.</p>"
        ).format(name, clock(other))
        title, fields = f"Save over {name}?", {"as": name, "over": "on"}
        return panels.ask(title, body, "Save over it", "versions.save_as", **fields)
    path = page.workbench.asking.save_chain(bench.chain, name)
    bench.chain = Chain(path.stem, bench.chain.actions, bench.chain.about)
    bench.known[path.stem] = bench.chain
    return Patch(dialog="", say=f"Saved as {path.stem}.") | chain_patch(page, bench)
