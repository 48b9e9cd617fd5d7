"""Versions of the chain: saved ones and those executed in this window, with what changed, and saving."""

from __future__ import annotations

import difflib
import time

from rallebench.core.types import Action, Chain
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import button, e, mark
from rallebench.gui.places._bench import Bench, bench_of
from rallebench.gui.places._chain import KINDS, read_chain
from rallebench.gui.places._one import chain_patch
from rallebench.services.chain_versions import Version, save, versions


def register(page: Page) -> None:
    """Add the actions of this drawer."""
    for name, handler in (
        ("versions", open_versions),
        ("restore", restore),
        ("save", ask_name),
        ("save-as", save_as),
    ):
        page.action(f"build.{name}", handler)


def all_versions(page: Page, bench: Bench) -> list[tuple[str, Version, str, str]]:
    """(where from, version, answer, verdict), the newest first."""
    executed = [
        ("executed", Version(chain, at), answer, kind)
        for at, chain, answer, kind in reversed(bench.history)
    ]
    distinct = [
        item
        for i, item in enumerate(executed)
        if all(item[1].chain != other[1].chain for other in executed[:i])
    ]
    saved = [("saved", version, "", "") for version in versions(page.workbench, bench.chain.name)]
    return [*distinct, *saved]


def open_versions(page: Page, event: Event) -> Patch:
    """The drawer."""
    bench = bench_of(page, event)
    bench.edit(read_chain(event))
    rows = ""
    for index, (source, version, answer, kind) in enumerate(all_versions(page, bench)):
        clock = time.strftime("%d %b %H:%M", time.localtime(version.time))
        said = (
            f'<p class="ans" dir="auto">{mark(kind)}{e(answer)}</p>' if source == "executed" else ""
        )
        same = version.chain.actions == bench.chain.actions
        back = (
            "<small>as it is now</small>"
            if same
            else button("Bring back", "build.restore", index=index)
        )
        rows += f'<section class="version"><h4>{clock} <small>{source}</small><span class="gap"></span>{back}</h4>{said}{"" if same else difference(version.chain, bench.chain)}</section>'
    nothing = '<p class="note">No earlier version yet. Every run and every save adds one.</p>'
    return {
        "drawer": f'<div class="dh"><h2>Versions of {e(bench.chain.name)}</h2>{button("Close", "", kind="quiet", close="1")}</div><p class="note">Marked: what changed from that version to the chain as it is now.</p>{rows or nothing}'
    }


def restore(page: Page, event: Event) -> Patch:
    """Bring a version back; Undo returns from it."""
    bench = bench_of(page, event)
    bench.edit(all_versions(page, bench)[int(event.text("index"))][1].chain)
    return {"drawer": "", **chain_patch(page, bench), "event": {"name": "rb-stale", "index": 0}}


def difference(old: Chain, new: Chain) -> str:
    """What changed from one chain to another, action by action."""
    rows = ""
    for index in range(max(len(old.actions), len(new.actions))):
        before = old.actions[index] if index < len(old.actions) else None
        after = new.actions[index] if index < len(new.actions) else None
        if before == after:
            continue
        name = KINDS[(after or before).kind]  # type: ignore[union-attr]
        rows += f"<div><small>{index + 1} {name}</small><p>{_changed(before, after)}</p></div>"
    return f'<div class="diff">{rows or "<small>The same actions.</small>"}</div>'


def _changed(before: Action | None, after: Action | None) -> str:
    if before is None or after is None:
        only = before or after
        assert only is not None
        return f"<{'del' if before else 'ins'}>{e(only.target or 'action')}: {e(only.template[:200])}</{'del' if before else 'ins'}>"
    lines = []
    for label, old, new in (
        ("kind", KINDS[before.kind], KINDS[after.kind]),
        ("", before.target, after.target),
        ("k", str(before.k), str(after.k)),
        ("settings", str(dict(before.generation)), str(dict(after.generation))),
    ):
        if old != new:
            lines.append(f"{label} <del>{e(old)}</del> <ins>{e(new)}</ins>")
    if before.template != after.template:
        lines.append(words_changed(before.template, after.template))
    return "<br>".join(lines)


def words_changed(old: str, new: str) -> str:
    """A text with the words that went and came."""
    a, b = _words(old), _words(new)
    parts = []
    for kind, i, j, k, m in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        gone, came = "".join(a[i:j]), "".join(b[k:m])
        if kind == "equal":
            parts.append(e(gone))
        else:
            parts += [
                f"<del>{e(gone)}</del>" if gone else "",
                f"<ins>{e(came)}</ins>" if came else "",
            ]
    return "".join(parts).replace("\n", "<br>")


def _words(text: str) -> list[str]:
    import re

    return re.findall(r"\w+|\s+|[^\w\s]", text)


def ask_name(page: Page, event: Event) -> Patch:
    """Under which name to save."""
    bench = bench_of(page, event)
    bench.edit(read_chain(event))
    field = f'<label class="field"><span>Name</span><input name="as" value="{e(bench.chain.name)}" data-on="enter" data-do="build.save-as" autofocus></label>'
    return {
        "dialog": f'<h2>Save the chain</h2><div data-form>{field}<p class="note">A chain of this name is kept as an earlier version. Runs keep the chain they were made with.</p>'
        f'<div class="buttons">{button("Cancel", "", close="1")}{button("Save", "build.save-as", kind="primary")}</div></div>'
    }


def save_as(page: Page, event: Event) -> Patch:
    """Save the chain in the workspace."""
    bench = bench_of(page, event)
    path = save(page.workbench, bench.chain, event.text("as"))
    bench.chain = Chain(path.stem, bench.chain.actions, bench.chain.about)
    return {"dialog": "", "say": f"Saved as {path.stem}.", **chain_patch(page, bench)}
