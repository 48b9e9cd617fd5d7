"""Every view of the page over a small workspace, with axe-core and measures of its width and its controls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from browsing import PATIENCE, go, press
from page_views import opened_page, run_of, stored_noise

AXE = Path(__file__).parent / "vendor" / "axe-core-4.14.1.js"
SERIOUS = ("serious", "critical")


@dataclass(frozen=True)
class Screen:
    """A view by its address; ``ready``: what it shows when it is drawn; ``presses``: buttons to press first."""

    address: str
    ready: str
    presses: tuple[str, ...] = ()
    opens: str = ""


SCREENS = {
    "one question": Screen("#/build/one?set=tiny-qa", "#v-build-one .verdict"),
    "code": Screen("#/build/one?set=tiny-qa", "#drawer:not([hidden])", ("Code",)),
    "versions": Screen("#/build/one?set=tiny-qa", "#drawer:not([hidden])", ("Versions",)),
    "new run": Screen("#/build/one?set=tiny-qa", "#dialog[open]", ("Run on a dataset",)),
    "keys": Screen("#/runs/list", "#keys:not([hidden])", opens=".keys-button"),
    "jobs": Screen("#/runs/list", "#jobs:not([hidden])", opens="#job"),
    "a few questions": Screen("#/build/few?set=tiny-qa", "#v-build-few .grid"),
    "chat": Screen("#/build/chat", "#v-build-chat textarea"),
    "agent": Screen("#/build/agent", "#agent-form"),
    "runs": Screen("#/runs/list", "#v-runs-list .runrow:not(.head)"),
    "menu": Screen("#/runs/list", "#v-runs-list details.menu[open]", opens="#v-runs-list details.menu > summary"),
    "run": Screen("#/runs/run?id=first", "#v-runs-run .tile, #v-runs-run .tiles"),
    "compare": Screen("#/runs/compare?a=first&b=second", "#v-runs-compare h1, #v-runs-compare .judge"),
    "experiments": Screen("#/experiments/list", "#v-experiments-list h1"),
    "sweep": Screen("#/experiments/list?kind=sweep", "#x-plan .x-big"),
    "suite": Screen("#/experiments/list?kind=suite", "#x-plan"),
    "published": Screen("#/experiments/published?table=ralle:2", "#v-experiments-published table"),
    "experiment": Screen("#/experiments/one?id=noise", "#v-experiments-one h1"),
    "labels": Screen("#/experiments/one?id=noise", "#drawer:not([hidden])", ("Label the errors",)),
    "data": Screen("#/data/list", "#v-data-list table, #v-data-list .t"),
    "corpus": Screen("#/data/corpus?id=starter", "#v-data-corpus h1"),
    "dataset": Screen("#/data/dataset?id=tiny-qa", "#v-data-dataset h1"),
    "gold pages": Screen("#/data/gold?id=tiny-qa", "#v-data-gold h1"),
    "index": Screen("#/data/index?id=tiny", "#v-data-index h1"),
    "builder": Screen("#/data/builder", "#v-data-builder h1"),
    "models": Screen("#/models/list", "#v-models-list .mc, #v-models-list .card"),
    "model": Screen("#/models/one?id=echo", "#v-models-one h1"),
}  # fmt: skip


def make_views(workspace: Path) -> None:
    """Make a workspace with two runs and an experiment, so that every view has something to show."""
    with opened_page(workspace) as page:
        run_of(page.workbench, "first")
        run_of(page.workbench, "second", settings=("k=1",))
    file = stored_noise(workspace / "experiments") / "errors-to-label.csv"
    rows = (f",q{i},,Who {i}?,Io,Rhea" for i in range(3))
    file.write_text("\n".join(("part,qid,category,question,required,prediction", *rows)) + "\n")


def show(tab: Any, screen: Screen) -> None:
    """Open a view and wait until it is drawn."""
    tab.keyboard.press("Escape")
    go(tab, "#/models/list")
    go(tab, screen.address)
    for words in screen.presses:
        press(tab, words)
    if screen.opens:
        tab.locator(screen.opens).first.click()
    tab.locator(screen.ready).first.wait_for(timeout=PATIENCE)


@cache
def axe_source() -> str:
    return AXE.read_text(encoding="utf-8")


def violations(tab: Any) -> list[str]:
    """The violations of axe-core that are serious or critical, each with its first elements."""
    if not tab.evaluate("() => Boolean(window.axe)"):
        tab.evaluate(axe_source())
    report = tab.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{v['id']} ({v['impact']}): {n['target']} {n['html'][:160]} {n['failureSummary'][:200]!r}"
        for v in report["violations"]
        if v["impact"] in SERIOUS
        for n in v["nodes"][:6]
    ]


def darken(tab: Any, on: bool) -> None:
    """Show the page in dark or light, without the transitions in between."""
    tab.evaluate("on => document.body.classList.contains('dark') === on || rb.dark()", on)


TOO_WIDE = """() => {
    const wide = innerWidth + 1, out = [];
    if (document.documentElement.scrollWidth <= wide - 1) return out;
    for (const el of document.querySelectorAll('#frame *')) {
        const box = el.getBoundingClientRect();
        if (!box.width || box.right <= wide) continue;
        let up = el.parentElement;
        while (up && getComputedStyle(up).overflowX === 'visible') up = up.parentElement;
        if (!up || up === document.documentElement || up === document.body)
            out.push(`${el.tagName}.${el.className} ${Math.round(box.right)}`);
    }
    return out.slice(0, 8).concat('page ' + document.documentElement.scrollWidth);
}"""
"""The elements that reach beyond the window, if the page is wider than it."""

SMALL = """() => {
    const out = new Set();
    const all = '#frame :is(button, summary, select, input, textarea, nav a, a.button, label.chip)';
    for (const el of document.querySelectorAll(all)) {
        if (!el.checkVisibility({checkOpacity: true}) || el.closest('.sr, .cm-editor')) continue;
        const target = /checkbox|radio/.test(el.type) ? el.closest('label') || el : el;
        const box = target.getBoundingClientRect();
        const own = parseFloat(getComputedStyle(target, '::after').height) || 0;
        if (box.height && Math.max(box.height, own) < 31.5)
            out.add(`${target.tagName}.${target.className} ${Math.round(box.height)} ${target.textContent.trim().slice(0, 20)}`);
    }
    return [...out];
}"""
"""The controls that are lower than 32 pixels."""
