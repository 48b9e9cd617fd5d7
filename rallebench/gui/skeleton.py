"""What stays on the page in every place: the header, the panels, and an empty section for each view."""

from __future__ import annotations

from rallebench import __version__
from rallebench.gui.frame import Page
from rallebench.gui.html import e

KEYS = (
    ("<kbd>Ctrl</kbd> <kbd>Enter</kbd>", "run, also while you type"),
    ("<kbd>Ctrl</kbd> <kbd>S</kbd>", "save the chain"),
    ("<kbd>J</kbd> <kbd>K</kbd>", "next, previous question"),
    ("<kbd>G</kbd> then <kbd>1</kbd> … <kbd>5</kbd>", "Build, Runs, Experiments, Data, Models"),
    ("<kbd>/</kbd>", "filter"),
    ("<kbd>Esc</kbd>", "close a panel"),
    ("<kbd>?</kbd>", "these keys"),
)


def skeleton(page: Page) -> str:
    """The page before anything is opened."""
    tabs = "".join(
        f'<a role="tab" aria-selected="false" data-place="{place.name}" href="#/{page.first_view(place.name)}">'
        f"{e(place.traits['label'])}</a>"
        for place in page.places
    )
    views = "".join(
        f'<section class="view" id="v-{view.replace("/", "-")}" hidden></section>'
        for view in page.views
    )
    keys = "".join(f"<dt>{key}</dt><dd>{use}</dd>" for key, use in KEYS)
    workspace = page.workbench.workspace.path.resolve()
    return f"""<div id="frame">
<header class="top"><a class="brand" href="#/{next(iter(page.views))}" title="rallebench {__version__}">rallebench</a>
<span class="workspace" title="{e(str(workspace))}">{e(workspace.name or str(workspace))}</span>
<nav role="tablist" aria-label="Places">{tabs}</nav><span class="gap"></span><span id="chain"></span>
<button id="job" type="button" hidden data-pop="#jobs" aria-label="Jobs"></button>
<button class="icon keys-button" type="button" data-pop="#keys" title="Keys" aria-label="Keys">?</button>
<button class="icon" type="button" onclick="rb.dark()" title="Light or dark" aria-label="Light or dark">◐</button></header>
<div class="pop" id="jobs" hidden><b>Jobs</b><div id="jobs-list"></div></div>
<div class="pop" id="keys" hidden><b>Keys</b><dl>{keys}</dl></div>
<p class="away-note" role="status">The program does not answer. Start rallebench again; this page continues by itself.</p>
<main>{views}<p class="first-wait">Opening…</p></main>
<aside class="drawer" id="drawer" hidden data-problems></aside>
<dialog id="dialog" data-problems></dialog>
<dialog id="confirm"><p></p><div class="buttons"><button class="keep" type="button">Cancel</button><button class="yes primary" type="button">Continue</button></div></dialog>
<div id="toasts" aria-live="polite"></div></div>"""
