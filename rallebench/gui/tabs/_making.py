"""Make a question set: choose a maker, articles and a model, follow its stages, look into each, continue."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.runs import RunOptions
from rallebench.experiments import BUILDERS
from rallebench.gui import views, views_making
from rallebench.gui.session import guard
from rallebench.gui.tabs._data_paths import corpora_choices, on_upload, whole_path
from rallebench.gui.tabs._data_settings import Known, draw_settings, given, show_group
from rallebench.gui.wording import on_page
from rallebench.gui.works import Works
from rallebench.services.builders import (
    builder_request,
    builders_begun,
    first_rows,
    open_builder,
    stage_files,
)
from rallebench.services.workbench import Workbench
from rallebench.workspace.paths import READER

NOTHING = "Nothing is being made. What is being made goes on if you leave this page."
NO_SET = "No question set is chosen; those that were begun are listed here, the newest first."
SHOWN = ("all", "kept", "left out", "unknown")


def known_settings() -> Known:
    """Maker → its settings."""
    return {name: BUILDERS.entry(name).form for name in BUILDERS.names()}


def has_articles(maker: str) -> bool:
    """Whether a maker starts from articles."""
    return bool(BUILDERS.entry(maker).traits.get("articles", True))


def about_of(maker: str) -> str:
    """One line about a maker."""
    return views_making.about(BUILDERS.entry(maker).about)


def writers(workbench: Workbench) -> list[str]:
    """The models that can write."""
    return [name for name, entry in workbench.workspace.llms().items() if entry.backend != READER]


def draw_making(workbench: Workbench) -> dict[str, Any]:
    """The section; returns the components that a refresh fills."""
    works, makers = Works(workbench.jobs, "making"), list(BUILDERS.names())
    with gr.Row(equal_height=True):
        maker = gr.Dropdown(
            makers,
            value=makers[0],
            label="Maker",
            elem_id="data-make-maker",
            scale=2,
            min_width=130,
        )
        name = gr.Textbox(
            label="Name",
            placeholder="of the question set",
            max_lines=1,
            elem_id="data-make-name",
            scale=3,
            min_width=150,
        )
        llm = gr.Dropdown(
            writers(workbench),
            value=None,
            label="Model",
            allow_custom_value=True,
            elem_id="data-make-llm",
            scale=3,
            min_width=180,
        )
        limit = gr.Textbox(
            label="Articles or questions at most",
            placeholder="all",
            max_lines=1,
            elem_id="data-make-limit",
            scale=2,
            min_width=150,
        )
    about = gr.HTML(about_of(makers[0]), elem_id="data-make-about", elem_classes="rb-flush")
    with gr.Row(equal_height=True, elem_classes="rb-tools") as asked_for:
        articles = gr.Dropdown(
            corpora_choices(workbench),
            value=None,
            label="Articles",
            allow_custom_value=True,
            elem_id="data-make-articles",
            info="a folder (.txt, .md, .html, .pdf), a list (.jsonl), an imported corpus, or a MediaWiki dump (.xml, .bz2)",
            scale=7,
            min_width=320,
        )
        upload = gr.UploadButton("Upload", elem_id="data-make-upload", scale=1, min_width=110)
    with gr.Accordion("Settings", open=False, elem_id="data-make-settings"):
        form = draw_settings(known_settings(), "data-make", makers[0])
    with gr.Row(elem_classes="rb-tools"):
        start = gr.Button("Make", variant="primary", elem_id="data-make-start", scale=4)
        stop = gr.Button("Stop", elem_id="data-make-stop", scale=1, min_width=110)
    said = gr.HTML(elem_id="data-make-status", elem_classes="rb-flush")
    panel = gr.HTML(views.empty(NOTHING), elem_id="data-make-progress", elem_classes="rb-flush")
    upload.upload(on_upload, [upload], [articles], show_progress="hidden")
    maker.change(
        partial(guard, on_maker),
        [maker],
        [said, about, asked_for, *form.groups.values()],
        show_progress="hidden",
    )
    asked = [maker, name, articles, llm, limit, *form.inputs]
    start.click(
        partial(guard, on_make, workbench, works, form.names),
        asked,
        [said, panel],
        show_progress="hidden",
    )
    stop.click(partial(guard, on_stop, works), None, [said], show_progress="hidden")
    draw_kept(workbench, works, said, panel)
    return {"made_from": articles, "writers": llm}


def draw_kept(workbench: Workbench, works: Works, said: gr.HTML, panel: gr.HTML) -> None:
    """What was begun or made: its stages, the first rows of each, and continuing it."""
    gr.Markdown("### Stages")
    with gr.Row(equal_height=True, elem_classes="rb-tools"):
        chosen = gr.Dropdown(
            [], label="Question set", elem_id="data-make-chosen", scale=3, min_width=160
        )
        stage = gr.Dropdown([], label="Stage", elem_id="data-make-stage", scale=3, min_width=160)
        shown = gr.Radio(
            SHOWN, value="all", label="Rows", elem_id="data-make-shown", scale=6, min_width=420
        )
        again = gr.Button("Continue", elem_id="data-make-continue", scale=1, min_width=110)
    stages = gr.HTML(views.empty(NO_SET), elem_id="data-make-stages", elem_classes="rb-flush")
    rows = gr.HTML(elem_id="data-make-rows", elem_classes="rb-flush")
    seen = gr.State(None)
    again.click(
        partial(guard, on_continue, workbench, works),
        [chosen],
        [said, panel],
        show_progress="hidden",
    )
    look = partial(guard, on_rows, workbench)
    chosen.change(
        partial(guard, on_open, workbench), [chosen, stage], [stages, stage], show_progress="hidden"
    ).then(look, [chosen, stage, shown], [rows], show_progress="hidden")
    gr.on([stage.input, shown.input], look, [chosen, stage, shown], [rows], show_progress="hidden")
    gr.Timer(1.0).tick(
        partial(guard, on_tick, workbench, works),
        [seen, chosen, stage],
        [seen, panel, chosen, stages, stage],
        show_progress="hidden",
    )


def on_maker(maker: str) -> list[Any]:
    """Show what the maker needs; what was wrong with the one before goes."""
    return [
        "",
        about_of(maker),
        gr.update(visible=has_articles(maker)),
        *show_group(BUILDERS.names(), maker),
    ]


def number_of(text: str) -> int | None:
    """A number of articles; None for all. Raises UsageError."""
    text = (text or "").strip()
    if text and not (text.isdecimal() and 0 < int(text) < 10**9):
        raise UsageError(
            f"The number is {text!r}; it must be a whole number from 1, or empty for all."
        )
    return int(text) if text else None


def on_make(
    workbench: Workbench,
    works: Works,
    names: list[tuple[str, str]],
    maker: str,
    name: str,
    articles: str,
    llm: str,
    limit: str,
    *fields: Any,
) -> list[str]:
    """Make in the background; the panel follows it."""
    try:
        settings = BUILDERS.settings(maker, given(names, maker, fields))
        if not (name or "").strip():
            raise UsageError("The question set needs a name.")
        place = whole_path(articles) if has_articles(maker) else ""
        start(
            workbench,
            works,
            builder_request(
                workbench.workspace,
                maker,
                name.strip(),
                settings,
                place,
                (llm or "").strip(),
                number_of(limit),
            ),
        )
    except RalleError as error:
        return [views.error(on_page(str(error))), panel_of(works)]
    return ["", panel_of(works)]


def start(workbench: Workbench, works: Works, request: ExperimentRequest) -> None:
    """Begin a making, or join it; what is wrong at once is raised and not told again."""
    what, name = (request.kind, repr(request.as_json())), request.name
    work = workbench.experiments.run(request, RunOptions(track=False))
    try:
        next(works.follow(name, what, lambda: work), None)
    except RalleError:
        if name not in works.going_on():
            works.forget(name)
        raise


def on_continue(workbench: Workbench, works: Works, name: str | None) -> list[str]:
    """Go on with what was begun, as it was asked for last; its files may have been edited meanwhile."""
    try:
        if not name:
            raise UsageError("No question set is chosen.")
        start(workbench, works, open_builder(workbench.workspace, name).request)
    except RalleError as error:
        return [views.error(on_page(str(error))), panel_of(works)]
    return ["", panel_of(works)]


def panel_of(works: Works) -> str:
    """What goes on, and how the last ones ended."""
    shown = [
        views_making.going_on(name, works.said(name), name in works.stopping())
        for name in works.going_on()
    ]
    shown += [views_making.ended(name, end) for name, end in reversed(works.ended().items())][:2]
    return "".join(shown) or views.empty(NOTHING)


def on_stop(works: Works) -> str:
    """Stop after what is being answered; the panel says so."""
    if not works.going_on():
        return views.note("Nothing is being made, so there is nothing to stop.")
    works.stop()
    return ""


def on_tick(
    workbench: Workbench, works: Works, seen: Any, chosen: str | None, stage: str | None
) -> list[Any]:
    """Follow what goes on; a question set that is new, or has just ended, is opened."""
    going, names = list(works.going_on()), builders_begun(workbench.workspace)
    now = [going, list(works.ended()), names]
    if now == seen:
        return [seen, panel_of(works) if going else gr.skip(), gr.skip(), gr.skip(), gr.skip()]
    ended = [name for name in (seen[0] if seen else []) if name not in going and name in names]
    value = ended[-1] if ended else chosen if chosen in names else names[0] if names else None
    opens = on_open(workbench, value, stage) if value == chosen else [gr.skip(), gr.skip()]
    return [now, panel_of(works), gr.update(choices=names, value=value), *opens]


def on_open(workbench: Workbench, name: str | None, stage: str | None) -> list[Any]:
    """Show the stages of a question set as their files have them now."""
    if not name:
        return [views.empty(NO_SET), gr.update(choices=[], value=None)]
    try:
        found = open_builder(workbench.workspace, name)
    except RalleError as error:
        return [views.error(str(error)), gr.update(choices=[], value=None)]
    choices = [(views_making.stage_name(label), label) for label in found.stages]
    value = stage if stage in found.stages else [None, *found.stages][-1]
    shown = (
        views_making.stages(found.stages)
        if found.stages
        else views.empty("This maker keeps no stages.")
    )
    return [
        shown + (views_making.done(found.report) if found.report else ""),
        gr.update(choices=choices, value=value),
    ]


def on_rows(workbench: Workbench, name: str | None, stage: str | None, shown: str) -> str:
    """The first rows of a stage."""
    if not name or not stage:
        return ""
    try:
        rows = list(first_rows(workbench.workspace, name, stage, shown))
    except RalleError as error:
        return views.error(str(error))
    return views_making.rows(rows, str(place_of(workbench, name, stage)))


def place_of(workbench: Workbench, name: str, stage: str) -> Path:
    """The file of a stage."""
    folder = open_builder(workbench.workspace, name).request.folder
    return next(path for path in stage_files(folder) if path.stem == stage)
