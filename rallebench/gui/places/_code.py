"""Show the chain as JSON, YAML, RaLLe's format, a Python program or commands, and import a chain."""

from __future__ import annotations

from markupsafe import Markup

from rallebench.core.types import Chain
from rallebench.gui import form, html, panels
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.patches import Download, Patch
from rallebench.gui.places._bench import read_bench, window_bench
from rallebench.gui.places._one import chain_patch
from rallebench.views import chain_forms


def register(page: Page) -> None:
    """Register the actions of this drawer."""
    page.actions("code", show, download, paste, reads=True)
    page.actions("code", upload)


def show(page: Page, event: Event) -> Patch:
    """Open the drawer with one format."""
    bench, shape = read_bench(page, event), event.choice("shape", chain_forms.FORMS, "json")
    tabs = Markup().join(
        html.button(label, "code.show", kind="on" if key == shape else "", shape=key)
        for key, (label, _) in chain_forms.FORMS.items()
    )
    text = chain_forms.code(page.workspace, bench.chain, bench.dataset, shape)
    _, ending = chain_forms.FORMS[shape]
    take = html.button("Download", "code.download", shape=shape) if ending else Markup()
    about = "a chain of rallebench or an experiment of RaLLe"
    pasted = form.area("text", "Or paste its text", rows=3, more=Markup(' class="mono"'))
    use = html.button("Use this chain", "code.paste")
    return panels.drawer(
        "Code",
        Markup('<div class="seg">{}</div>').format(tabs),
        html.warning(chain_forms.caveat(page.workspace, bench.chain, shape)),
        html.copyable(html.pre(text, "pre code"), "the code"),
        Markup('<div class="row">{}</div>').format(take),
        html.heading("Bring a chain in"),
        form.drop("code.upload", about, accept=".json,.yaml,.yml"),
        Markup('<div data-form class="stack">{}{}</div>').format(pasted, use),
    )


def download(page: Page, event: Event) -> Patch:
    """Download the chain as a file."""
    bench, shape = window_bench(page, event), event.choice("shape", chain_forms.FORMS)
    name = chain_forms.file_stem(bench.chain.name) + chain_forms.FORMS[shape][1]
    text = chain_forms.code(page.workspace, bench.chain, bench.dataset, shape)
    return Patch(download=Download(name=name, text=text))


def paste(page: Page, event: Event) -> Patch:
    """Import a chain from pasted text."""
    return open_in_build(page, event, chain_forms.read_text(event.text("text")))


def upload(page: Page, event: Event) -> Patch:
    """Import a chain from a file."""
    file = event.file()
    return open_in_build(page, event, chain_forms.read_file(file.path, file.name))


def open_in_build(page: Page, event: Event, chain: Chain) -> Patch:
    """Open an imported chain in Build. Undo restores the previous one."""
    bench = window_bench(page, event)
    bench.edit(chain)
    sentence = f"{chain.name} is open. Undo returns to the chain before."
    if missing := chain_forms.unknown_targets(page.workspace, chain):
        sentence = f"Not known here: {'; '.join(missing)}. Choose another."
    return Patch(drawer="", say=sentence) | chain_patch(page, bench)
