"""The chain as code: JSON, YAML, RaLLe's form, a Python program, the command line; and bringing one in."""

from __future__ import annotations

import json
import re
import shlex
import tempfile
from pathlib import Path
from typing import Any

import yaml

from rallebench.chains.ralle import experiment_to_json, load_chain_file
from rallebench.chains.template import names_used
from rallebench.core.errors import RalleError, TemplateError, UsageError
from rallebench.core.types import Chain
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import button, e, warning
from rallebench.gui.places._bench import bench_of
from rallebench.gui.places._chain import read_chain
from rallebench.services.chain_versions import is_saved
from rallebench.services.standalone import script
from rallebench.workspace.entries import chain_to_json

FORMS = (
    ("json", "JSON", ".json"),
    ("yaml", "YAML", ".yaml"),
    ("ralle", "RaLLe", "-ralle.json"),
    ("python", "Python", ".py"),
    ("command", "Command line", ""),
)
NOT_IN_RALLE = frozenset({"documents", "history"})
"""Variables that RaLLe's own templates do not have."""


def register(page: Page) -> None:
    """Add the actions of this drawer."""
    for name, handler in (
        ("code", open_code),
        ("download", download),
        ("import", import_text),
        ("import-file", import_file),
    ):
        page.action(f"build.{name}", handler)


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """YAML whose long templates read as text."""


def _represent(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


_Dumper.add_representer(str, _represent)


def code(page: Page, chain: Chain, dataset: str, form: str) -> str:
    """The chain in one of FORMS."""
    if form == "json":
        return json.dumps(chain_to_json(chain), ensure_ascii=False, indent=2) + "\n"
    if form == "yaml":
        return str(
            yaml.dump(
                chain_to_json(chain),
                Dumper=_Dumper,
                sort_keys=False,
                allow_unicode=True,
                width=4096,
            )
        )
    if form == "ralle":
        return json.dumps(experiment_to_json(chain, dataset), ensure_ascii=False, indent=4) + "\n"
    if form == "python":
        return script(chain, page.workbench.workspace.path.resolve(), f"{stem(chain.name)}.py")
    return commands(page, chain.name, dataset)


def commands(page: Page, chain: str, dataset: str) -> str:
    """The command lines that do what the page does with a saved chain."""
    space = page.workbench.workspace
    where = f"--workspace {shlex.quote(str(space.path))}"
    if space.base is not None:
        where += f" --base-settings {shlex.quote(str(space.base.folder.resolve()))}"
    name = f"--chain {shlex.quote(chain)}"
    return (
        f"python -m rallebench run {name} --dataset {shlex.quote(dataset)} {where}\n"
        f"python -m rallebench ask {name} --question 'Your question' {where}\n"
    )


def stem(name: str) -> str:
    """A chain's name as the name of a file.

    >>> stem("retrieve-read/06 nq"), stem("../..")
    ('retrieve-read-06-nq', 'chain')
    """
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "chain"


def caveat(page: Page, chain: Chain, form: str) -> str:
    """What the reader of a form must know, "" if nothing."""
    if form == "command" and not is_saved(page.workbench, chain):
        return "The chain has unsaved changes. Save it first, then the command finds it."
    if form != "ralle":
        return ""
    used: set[str] = set()
    for action in chain.actions:
        try:
            used |= names_used(action.template, action.dialect)
        except TemplateError:
            continue
    names = " and ".join(f"{{{name}}}" for name in sorted(used & NOT_IN_RALLE))
    return (
        f"RaLLe can load this file but not run it: its templates do not know {names}."
        if names
        else ""
    )


def open_code(page: Page, event: Event) -> Patch:
    """The drawer, with one form shown."""
    bench, form = bench_of(page, event), event.text("form", "json")
    if event.text("count"):
        bench.edit(read_chain(event))
    tabs = "".join(
        button(label, "build.code", kind="on" if key == form else "", form=key)
        for key, label, _ in FORMS
    )
    text = code(page, bench.chain, bench.dataset, form)
    take = "" if form == "command" else button("Download", "build.download", form=form)
    bring = (
        '<h3 class="sub">Bring a chain in</h3><div class="drop" data-upload="build.import-file"><label class="link">Choose a file<input type="file" hidden accept=".json,.yaml,.yml"></label><small>a chain of rallebench or an experiment of RaLLe</small></div>'
        f'<div data-form class="stack"><label class="field"><span>Or paste its text</span><textarea class="mono" name="text" rows="3"></textarea></label>{button("Use this chain", "build.import")}</div>'
    )
    return {
        "drawer": f'<div class="dh"><h2>Code</h2>{button("Close", "", kind="quiet", close="1")}</div><div class="seg">{tabs}</div>{warning(caveat(page, bench.chain, form))}<pre class="pre code" tabindex="0">{e(text)}</pre><div class="row">{take}</div>{bring}'
    }


def download(page: Page, event: Event) -> Patch:
    """The chain as a file."""
    bench, form = bench_of(page, event), event.text("form")
    ending = next(ending for key, _, ending in FORMS if key == form)
    return {
        "download": {
            "name": stem(bench.chain.name) + ending,
            "text": code(page, bench.chain, bench.dataset, form),
        }
    }


def read_file(path: Path, what: str) -> Chain:
    """The chain of a file; a message names it ``what``."""
    try:
        return load_chain_file(path)
    except RalleError as error:
        raise UsageError(str(error).replace(str(path), what)) from None


def import_text(page: Page, event: Event) -> Patch:
    """The chain of a pasted text."""
    text = event.text("text")
    if not text:
        raise UsageError("There is no text to read; paste a chain, or choose a file.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("pasted.json" if text.startswith(("{", "[")) else "pasted.yaml")
        path.write_text(text, encoding="utf-8", errors="replace")
        return brought(page, event, read_file(path, "The pasted text"))


def import_file(page: Page, event: Event) -> Patch:
    """The chain of a file."""
    file = event.data["files"][0]
    return brought(page, event, read_file(Path(file["path"]), file["name"]))


def brought(page: Page, event: Event, chain: Chain) -> Patch:
    """The chain in Build; Undo returns to the one before."""
    from rallebench.gui.places.build import chain_patch

    bench = bench_of(page, event)
    bench.edit(chain)
    missing = unknown_targets(page, chain)
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


def unknown_targets(page: Page, chain: Chain) -> list[str]:
    """What the chain names and this workspace does not know."""
    space, found = page.workbench.workspace, []
    for number, action in enumerate(chain.actions, 1):
        try:
            {"retrieve": space.retriever, "generate": space.llm}.get(action.kind, str)(
                action.target
            )
        except RalleError:
            found.append(f"action {number} names {action.target or 'nothing'}")
    return found
