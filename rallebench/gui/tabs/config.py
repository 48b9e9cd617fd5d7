"""Config: the chain of Develop as a file in every form, files into the form, and the command line for it."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.processing_utils import save_bytes_to_cache
from gradio.utils import get_upload_folder

from rallebench.chains.ralle import load_chain_file
from rallebench.chains.saved import chain_to_json
from rallebench.core.errors import RalleError, UsageError
from rallebench.core.types import Chain
from rallebench.gui import develop_output as executed
from rallebench.gui import form, views, views_config
from rallebench.gui.session import Session
from rallebench.gui.tabs import TABS
from rallebench.services.standalone import script
from rallebench.services.workbench import Workbench
from rallebench.workspace.paths import DEFAULT_DATASET

FORMS = (
    ("json", "JSON", "json", ".json"),
    ("yaml", "YAML", "yaml", ".yaml"),
    ("ralle", "RaLLe experiment", "json", "-ralle.json"),
    ("python", "Python program", "python", ".py"),
)
"""(key, shown name, language, how the file's name ends) of every form in which a chain can be taken away."""

UNSAVED = "The chain is not saved as it stands now: save it first, then the command finds it."

SHOWN = 2 * len(FORMS) + 4
"""How many components ``exported`` fills: texts, downloads, RaLLe's note, command, its note, the name."""


@TABS.register("config", order=10, label="Config")
def build(workbench: Workbench, session: Session, tab: gr.Tab, page: gr.Blocks) -> None:
    """Take the chain of Develop away as a file, or bring one in."""
    dataset = session.dataset or gr.State(DEFAULT_DATASET)
    with gr.Row():
        with gr.Column(scale=6, min_width=420):
            gr.Markdown("### The chain in Develop")
            status = gr.HTML(visible=False, padding=False, elem_id="config-status")
            with gr.Tabs():
                drawn = [draw_form(*row) for row in FORMS]
            ralle = gr.HTML(visible=False, padding=False, elem_id="config-ralle-note")
            gr.Markdown("### The same on the command line")
            command = gr.Code(
                language="shell",
                show_label=False,
                interactive=False,
                lines=1,
                max_lines=9,
                wrap_lines=True,
                elem_id="config-command",
            )
            command_note = gr.HTML(visible=False, padding=False, elem_id="config-command-note")
        with gr.Column(scale=4, min_width=360):
            gr.Markdown("### Save it in the workspace")
            with gr.Row(equal_height=True):
                name = gr.Textbox(
                    show_label=False,
                    placeholder="a name",
                    max_lines=1,
                    container=False,
                    elem_id="config-name",
                    scale=3,
                )
                save = gr.Button("Save chain", elem_id="config-save", scale=1, min_width=110)
            saved = gr.HTML(visible=False, padding=False, elem_id="config-saved")
            gr.Markdown("### Bring a chain in")
            upload = gr.File(
                label="A chain file, in our form or RaLLe's (.json, .yaml)",
                file_types=[".json", ".yaml", ".yml"],
                height=160,
                elem_id="config-upload",
            )
            paste = gr.Textbox(
                label="Or the text of one", lines=8, max_lines=20, elem_id="config-paste"
            )
            bring = gr.Button(
                "Fill Develop with this text", variant="primary", elem_id="config-import"
            )
            brought = gr.HTML(visible=False, padding=False, elem_id="config-imported")

    shown = [*(d for _, d in drawn), *(c for c, _ in drawn), ralle, command, command_note, name]
    current = [dataset, *session.form]
    filled = [brought, *shown, *session.form, *session.groups, *session.executed]
    tab.select(partial(on_tab, workbench), current, [status, *shown], show_progress="hidden")
    saving = partial(on_save, workbench), [name, *current], [saved, session.form[0], *shown]
    save.click(*saving, show_progress="hidden")
    upload.upload(
        partial(on_upload, workbench), [upload, dataset], filled, show_progress_on=[upload]
    )
    bring.click(partial(on_import, workbench), [paste, dataset], filled, show_progress="hidden")


def draw_form(
    key: str, label: str, language: Any, ending: str
) -> tuple[gr.Code, gr.DownloadButton]:
    """The text of the chain in one form, and the button that takes it away."""
    with gr.Tab(label, elem_id=f"config-tab-{key}"):
        code = gr.Code(
            language=language,
            show_label=False,
            interactive=False,
            max_lines=24,
            wrap_lines=True,
            elem_id=f"config-{key}",
        )
        button = gr.DownloadButton(
            f"Download {label}", interactive=False, size="sm", elem_id=f"config-download-{key}"
        )
    return code, button


def exported(workbench: Workbench, dataset: str, chain: Chain) -> list[Any]:
    """What the tab shows of a chain: downloads, texts, RaLLe's note, command, its note, the name."""
    stem = views_config.file_stem(chain.name)
    texts = (
        views_config.as_json(chain),
        views_config.as_yaml(chain),
        views_config.as_ralle(chain, dataset or DEFAULT_DATASET),
        script(chain, workbench.workspace.path.resolve(), f"{stem}.py"),
    )
    files = [download(text, stem + ending) for text, (*_, ending) in zip(texts, FORMS, strict=True)]
    named = is_saved(workbench, chain)
    space = workbench.workspace
    base = space.base.folder.resolve() if space.base else None
    command = views_config.commands(chain.name, dataset or DEFAULT_DATASET, space.path, base)
    note = "" if named else views.note(UNSAVED)
    return [*files, *texts, told(views_config.ralle_note(chain)), command, told(note), chain.name]


def told(html: str) -> Any:
    """A message's update; an empty one takes no room."""
    return gr.update(value=html, visible=bool(html))


def nothing() -> list[Any]:
    """What the tab shows where there is no chain: empty texts, nothing to take away."""
    gone = gr.update(value=None, interactive=False)
    return [*[gone] * len(FORMS), *[""] * len(FORMS), told(""), "", told(""), gr.skip()]


def download(text: str, name: str) -> Any:
    """A download button's update. The file lies under its content's hash, so no two visitors' files meet."""
    path = save_bytes_to_cache(text.encode("utf-8", "replace"), name, get_upload_folder())
    return gr.update(value=path, interactive=True)


def is_saved(workbench: Workbench, chain: Chain) -> bool:
    """Whether the chain's name, given to the command line, means these very actions."""
    if chain.name not in workbench.workspace.chain_paths():
        return False
    try:
        known = workbench.workspace.chain(chain.name)
    except RalleError:
        return False
    return bool(chain_to_json(known)["actions"] == chain_to_json(chain)["actions"])


def read_file(path: Path, what: str) -> Chain:
    """The chain of a file; a message names it ``what``, not the place where the page has put it."""
    try:
        return load_chain_file(path)
    except RalleError as error:
        raise UsageError(str(error).replace(str(path), what)) from None


def read_text(text: str) -> Chain:
    """The chain of a pasted text: JSON if it begins like JSON, YAML otherwise. Raises UsageError."""
    if not text.strip():
        raise UsageError("There is no text to read; paste a chain, or choose a file above.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / (
            "pasted.json" if text.lstrip().startswith(("{", "[")) else "pasted.yaml"
        )
        path.write_text(text, encoding="utf-8", errors="replace")
        return read_file(path, "The pasted text")


def filled_with(workbench: Workbench, dataset: str, chain: Chain) -> list[Any]:
    """The message, this tab and the form in Develop after a chain was brought in."""
    space = workbench.workspace
    actions = f"{len(chain.actions)} action" + ("s" if len(chain.actions) > 1 else "")
    message = views.note(f"Develop now holds {chain.name!r} ({actions}).", "good")
    unknown = views_config.unknown_targets(
        chain, {"retrieve": space.retriever, "generate": space.llm}
    )
    if unknown:
        message += views.note(
            f"Not known in this workspace: {'; '.join(unknown)}. Choose another one in Develop."
        )
    return [
        told(message),
        *exported(workbench, dataset, chain),
        *form.write_chain(chain),
        *executed.blank(),
    ]


def unfilled(message: str) -> list[Any]:
    """Only a message: this tab, the form and what was executed stay as they are."""
    filled = SHOWN + len(form.write_chain(Chain("", ())))
    return [told(views.error(message)), *[gr.skip()] * filled, *executed.unchanged()]


def on_tab(workbench: Workbench, dataset: str, *values: Any) -> list[Any]:
    """Show the chain as it stands in Develop now."""
    try:
        return [told(""), *exported(workbench, dataset, form.read_chain(values))]
    except RalleError as error:
        return [told(views.error(f"{error} Mend it in Develop, then come back.")), *nothing()]


def on_save(workbench: Workbench, name: str, dataset: str, *values: Any) -> list[Any]:
    """Save the chain of Develop under a name; Develop then shows that name."""
    before = set(workbench.workspace.chain_paths())
    try:
        path = workbench.asking.save_chain(form.read_chain(values), name or "")
        chain = workbench.workspace.chain(str(path))
    except RalleError as error:
        return [told(views.error(str(error))), *[gr.skip()] * (SHOWN + 1)]
    return [
        told(views.note(views_config.saved(path, before), "good")),
        chain.name,
        *exported(workbench, dataset, chain),
    ]


def on_upload(workbench: Workbench, path: str, dataset: str) -> list[Any]:
    """Fill the form in Develop with a chosen file."""
    try:
        return filled_with(workbench, dataset, read_file(Path(path), Path(path).name))
    except RalleError as error:
        return unfilled(str(error))


def on_import(workbench: Workbench, text: str, dataset: str) -> list[Any]:
    """Fill the form in Develop with a pasted text."""
    try:
        return filled_with(workbench, dataset, read_text(text or ""))
    except RalleError as error:
        return unfilled(str(error))
