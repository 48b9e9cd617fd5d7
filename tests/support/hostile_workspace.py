"""A workspace in which every text from outside tries to become script in the page."""

from __future__ import annotations

import json
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest
from building import built
from page_views import ended, stored_noise
from small_workspace import chain, generate, record, retrieve, scripted, write_lines

from rallebench.core.events import complete
from rallebench.core.prompts import prompts_folder
from rallebench.core.runs import RunOptions
from rallebench.gui.frame import Page
from rallebench.views.run_requests import BenchmarkOptions, of_chain

NAME = "a\"'><img src=x onerror=window.__pwned=1>"
"""Leaves an attribute and adds an element; also a valid file name."""
TEXT = (
    f"{NAME}</script></textarea></title><script>window.__pwned=1</script>"
    '<a href="javascript:window.__pwned=1">a</a> [a](javascript:window.__pwned=1)'
    " ![a](x) `<img src=x onerror=window.__pwned=1>` onerror=window.__pwned=1 {{1+1}} ${1+1}"
)
PLAIN = TEXT.replace("{{1+1}}", "").replace("${1+1}", "")
"""The text without braces, for a prompt, where braces mark fields."""
OWN_CHAIN = "own<img src=x onerror=window.__pwned=1>"
PLANTED = "window.__pwned"
SCRIPTING = {"script", "img", "iframe", "object", "embed", "link", "base", "meta", "form", "style"}


class Shown(HTMLParser):
    """The elements and the text of some HTML. ``injected``: elements of no template of ours; ``pressable``: (action, its
    data); ``lists``: (name, key) of windowed lists."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.injected: list[str] = []
        self.pressable: list[tuple[str, dict[str, str]]] = []
        self.lists: list[tuple[str, dict[str, str]]] = []
        self.fields: dict[str, str] = {}
        self.text = self._select = ""
        self.feed(str(html))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        handlers = [n for n, v in attrs if n.startswith("on") and "createElement" not in (v or "")]
        links = [v for n, v in attrs if n in ("href", "src", "action") and "script:" in (v or "")]
        if tag in SCRIPTING or handlers or links:
            self.injected.append(str(self.get_starttag_text()))
        values = {name: value or "" for name, value in attrs}
        data = {n[5:].replace("-", "_"): v for n, v in values.items() if n.startswith("data-")}
        if "data-list" in values:
            self.lists.append((data["list"], json.loads(data["key"])))
        if "data-do" in values:
            self.pressable.append((values["data-do"], data))
        self._note_field(tag, values)
        self.text += " ".join(values.values())

    def _note_field(self, tag: str, values: dict[str, str]) -> None:
        """Return the value for this field that a form would send."""
        name = values.get("name", "")
        if (
            tag == "option"
            and self._select
            and ("selected" in values or not self.fields[self._select])
        ):
            self.fields[self._select] = values.get("value", "")
        self._select = self._select if tag == "option" else name if tag == "select" else ""
        if name and (values.get("type") not in ("checkbox", "radio") or "checked" in values):
            self.fields[name] = values.get("value", "")

    def handle_data(self, data: str) -> None:
        self.text += data


def plant_in_prompts(folder: Path, patched: pytest.MonkeyPatch) -> None:
    """Replace the checkout's prompt files by copies below ``folder`` with a hostile text in each prompt and chain."""
    planted = Path(shutil.copytree(prompts_folder(), folder / "prompts"))
    for path in planted.rglob("*.txt"):
        mark = f"{PLAIN} ({path.relative_to(planted)})"
        path.write_text(f"{path.read_text('utf-8')}\n{mark}\n", "utf-8")
    for path in (planted / "chains").glob("*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "about": TEXT}), "utf-8")
    for module in list(sys.modules.values()):
        if getattr(module, "prompts_folder", None) is prompts_folder:
            patched.setattr(module, "prompts_folder", lambda: planted)


def plant_in_own_prompts(folder: Path) -> None:
    """Put a user's own prompt files into a workspace: a chain, the text of a chat, a re-ranker's prompt under a hostile
    name."""
    own = folder / "prompts"
    for name in ("chains", "chat"):
        (own / name).mkdir(parents=True)
    (own / "chat" / "standalone.txt").write_text(f"{PLAIN} (own chat) {{history}} {{question}}")
    actions = retrieve(target="hostile"), generate(f"{PLAIN} {{response[0]}}", NAME)
    content = {**chain(OWN_CHAIN, *actions), "about": TEXT}
    (own / "chains" / f"{OWN_CHAIN}.json").write_text(json.dumps(content))
    ranking = own / f"{NAME}.txt".replace("/", "")
    ranking.write_text(f"{PLAIN} {{passages}} {{query}} {{count}}")
    entry = {
        "kind": "llm-rerank",
        "of": ["hostile"],
        "settings": {"llm": NAME, "prompt": str(ranking)},
    }
    (folder / "retrievers.json").write_text(json.dumps({"reranked": entry}))


def make_hostile_workspace(folder: Path) -> Path:
    """Models, a chain, a dataset, a corpus, an index, a run and an experiment, all hostile."""
    for name in ("chains", "datasets", "corpora"):
        (folder / name).mkdir(parents=True)
    models = scripted({NAME: {"default": TEXT}, "mute": {"replies": []}})
    models[NAME]["about"] = TEXT
    (folder / "llms.json").write_text(json.dumps(models))
    prompt = f"{PLAIN} {{response[0]}} {{question}}"
    actions = retrieve(target="hostile"), generate(prompt, NAME)
    content = {**chain(NAME, *actions), "about": TEXT}
    (folder / "chains" / f"{NAME}.json".replace("/", "")).write_text(json.dumps(content))
    rows = [record(f"{NAME}{i}", f"Titan? {TEXT}", TEXT, f"p{NAME}") for i in range(3)]
    rows += [
        {**record(f"q{i}", TEXT, "Titan", "p"), "category": TEXT, NAME: TEXT} for i in range(2)
    ]
    for dataset in (NAME, "hostile"):
        write_lines(folder / "datasets" / f"{dataset}.jsonl", rows)
    lines = "".join(f"{NAME}{i}\tTitan {TEXT}\t{TEXT}\n" for i in range(4))
    (folder / "corpus.tsv").write_text("id\ttext\ttitle\n" + lines)
    pages = {f"{NAME}{i}": f"p{NAME}" for i in range(4)}
    (folder / "pages.json").write_text(json.dumps(pages))
    built(
        folder / "indexes", "hostile", folder / "corpus.tsv", "bm25", page_map=folder / "pages.json"
    )
    plant_in_own_prompts(folder)
    return folder


def fill_hostile_workspace(page: Page) -> None:
    """Let the page make the others: a corpus, runs with a judge, an agent's episode, an experiment, a conversation."""
    workbench, folder = page.workbench, page.workbench.workspace.path
    page.call("import.preview", {"path": str(folder / "corpus.tsv")})
    page.call("import.start", {"kind": "corpus", "form": "tsv", "name": "hostile"})
    ended(page, "import", "hostile")
    options = BenchmarkOptions(
        dataset="hostile", run=RunOptions(track=False), metrics=("em", f"truthfulness:{NAME}")
    )
    for name in ("first", "second"):
        complete(workbench.runs.run(of_chain(workbench.workspace, NAME, options, run=name)))
        page.call("runs.rename", {"id": name, "as": f"{NAME}{name}"})
    noise = stored_noise(folder / "experiments", "hostile", notes=[TEXT], made=TEXT)
    content = json.loads((noise / "experiment.json").read_text())
    content |= {"noun": TEXT, "request": {**content["request"], "llm": NAME}}
    (noise / "experiment.json").write_text(json.dumps(content))
    page.open(f"build/one?set={quote(NAME)}&chain={quote(NAME)}")
    for _ in range(2):  # the second is rewritten to stand alone, by the prompt of a chat
        page.call("chat.send", {"text": TEXT})
    chosen = {"workflow": "react", "env": "wikipedia", "llm": NAME, "question": "q0"}
    page.call("agent.run", chosen)


def addresses(page: Page) -> list[str]:
    """Every view, with every hostile thing that it can show."""
    name = quote(NAME)
    own = {
        "build/one": f"set={name}&chain={name}",
        "build/few": f"q={name}0,{name}1",
        "runs/run": "id=first",
        "experiments/one": "id=hostile",
        "runs/compare": "a=first&b=second",
        "data/corpus": "id=hostile",
        "data/index": f"id=hostile&q={quote(TEXT)}",
        "data/page": f"index=hostile&q={name}0",
    }
    listed = [f"{view}?{own.get(view, f'id={name}')}" for view in page.views]
    return [
        *listed,
        f"build/one?chain={quote(OWN_CHAIN)}",
        "experiments/list",
        "runs/compare?r0=first&r1=second",
        "runs/run?id=first&part=metrics",
        f"runs/list?words={name}",
    ]
