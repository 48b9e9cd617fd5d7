"""The chain as code: JSON, YAML, RaLLe's form, a Python program, the command line; and bringing one in."""

from __future__ import annotations

from pathlib import Path

from rallebench.core.types import Chain
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import button, e, warning
from rallebench.gui.places._bench import bench_of
from rallebench.gui.places._chain import read_chain
from rallebench.gui.places._one import chain_patch
from rallebench.services.chain_forms import (
    FORMS,
    caveat,
    code,
    file_stem,
    read_file,
    read_text,
    unknown_targets,
)

LABELS = {
    "json": "JSON",
    "yaml": "YAML",
    "ralle": "RaLLe",
    "python": "Python",
    "command": "Command line",
}


def register(page: Page) -> None:
    """Add the actions of this drawer."""
    for name, handler in (
        ("code", open_code),
        ("download", download),
        ("import", import_text),
        ("import-file", import_file),
    ):
        page.action(f"build.{name}", handler)


def open_code(page: Page, event: Event) -> Patch:
    """The drawer, with one form shown."""
    bench, form = bench_of(page, event), event.text("shape", "json")
    if event.text("count"):
        bench.edit(read_chain(event))
    tabs = "".join(
        button(label, "build.code", kind="on" if key == form else "", shape=key)
        for key, label in LABELS.items()
    )
    text = code(page.workbench, bench.chain, bench.dataset, form)
    take = "" if form == "command" else button("Download", "build.download", shape=form)
    bring = (
        '<h3 class="sub">Bring a chain in</h3><div class="drop" data-upload="build.import-file"><label class="link">Choose a file<input type="file" hidden accept=".json,.yaml,.yml"></label><small>a chain of rallebench or an experiment of RaLLe</small></div>'
        f'<div data-form class="stack"><label class="field"><span>Or paste its text</span><textarea class="mono" name="text" rows="3"></textarea></label>{button("Use this chain", "build.import")}</div>'
    )
    return {
        "drawer": f'<div class="dh"><h2>Code</h2>{button("Close", "", kind="quiet", close="1")}</div><div class="seg">{tabs}</div>{warning(caveat(page.workbench, bench.chain, form))}<pre class="pre code" tabindex="0">{e(text)}</pre><div class="row">{take}</div>{bring}'
    }


def download(page: Page, event: Event) -> Patch:
    """The chain as a file."""
    bench, form = bench_of(page, event), event.text("shape")
    return {
        "download": {
            "name": file_stem(bench.chain.name) + FORMS[form],
            "text": code(page.workbench, bench.chain, bench.dataset, form),
        }
    }


def import_text(page: Page, event: Event) -> Patch:
    """The chain of a pasted text."""
    return brought(page, event, read_text(event.text("text")))


def import_file(page: Page, event: Event) -> Patch:
    """The chain of a file."""
    file = event.data["files"][0]
    return brought(page, event, read_file(Path(file["path"]), file["name"]))


def brought(page: Page, event: Event, chain: Chain) -> Patch:
    """The chain in Build; Undo returns to the one before."""
    bench = bench_of(page, event)
    bench.edit(chain)
    missing = unknown_targets(page.workbench, chain)
    said = (
        f"Not known here: {'; '.join(missing)}. Choose another."
        if missing
        else f"{chain.name} is open. Undo returns to the chain before."
    )
    return {
        "drawer": "",
        "say": said,
        **chain_patch(page, bench),
        "event": {"name": "rb-stale", "index": 0},
    }
