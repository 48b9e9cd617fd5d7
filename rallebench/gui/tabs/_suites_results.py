"""What suites came to: tables and plots of one, two beside each other, their files, and every single answer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import gradio as gr

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.tables import Figure
from rallebench.engine.cost import recorded_prices
from rallebench.engine.experiment_store import StoredExperiment
from rallebench.engine.score import examples_of
from rallebench.engine.store import RunFolder
from rallebench.experiments import SUITES
from rallebench.gui import views, views_answers, views_suite_plots, views_suites
from rallebench.gui.saving import save_buttons
from rallebench.gui.session import Session, guard
from rallebench.gui.tabs._suites_form import SuiteForm, filled
from rallebench.render import plotly
from rallebench.render.html import csv_link, file_link
from rallebench.services.experimenting import by_question, differences, pairs_of, values_of
from rallebench.services.workbench import Workbench

NO_RESULT = (
    "No suite is chosen; those that were run in this workspace are listed here, the newest first."
)
NO_RUN = "Choose a part to list its questions with their answers and values."
NO_ANSWER = "Click a question to read every prompt, the raw reply, and what was read of it."
MOST_PLOTS = 8
MOST_BYTES = 20_000_000
"""A larger file is fetched from its folder: a link would hold all of it."""
WIDTHS = ["5%", "27%", "21%", "17%", "9%", "6%", "7%", "8%"]


def draw(
    workbench: Workbench, session: Session, tab: gr.Tab, form: SuiteForm, request: list[Any]
) -> gr.Dropdown:
    """Results and answers, and what they do; returns the dropdown of suites that were run."""
    chosen, other, fill = draw_choice()
    whole = gr.HTML(views.empty(NO_RESULT), elem_id="suites-result", elem_classes="rb-flush")
    with gr.Row(visible=False, equal_height=True, elem_classes="rb-tools") as two:
        pair = gr.Dropdown(
            [], label="Runs of both", allow_custom_value=True, elem_id="suites-pair", scale=5
        )
        compare = gr.Button(
            "Compare these runs, question by question", elem_id="suites-compare", scale=3
        )
    plots = draw_plots()
    with gr.Row(visible=False, equal_height=True) as taking:
        file = gr.Dropdown(
            [], label="Files that it made", allow_custom_value=True, elem_id="suites-file", scale=5
        )
        link = gr.HTML(elem_id="suites-link", elem_classes="rb-flush")
    part, which, counted, table, detail = draw_reader()
    clicked = gr.State("")

    shown = [whole, two, pair, taking, file, link, part, *plots]
    gr.on(
        [chosen.change, other.change],
        partial(guard, on_open, workbench),
        [chosen, other],
        shown,
        show_progress="hidden",
    )
    tab.select(
        partial(guard, on_names, workbench),
        [chosen, other],
        [chosen, other],
        show_progress="hidden",
    )
    fill.click(partial(guard, on_fill, workbench, form), [chosen], [*request, *form.inputs])
    compare.click(
        partial(guard, on_compare, workbench),
        [chosen, other, pair],
        [session.tabs, session.compare_runs],
    )
    file.change(partial(guard, on_file, workbench), [chosen, file], [link], show_progress="hidden")
    part.change(
        partial(guard, on_part, workbench),
        [part],
        [which, counted, table, detail],
        show_progress_on=[counted],
    )
    which.input(
        partial(guard, on_which, workbench),
        [part, which],
        [counted, table],
        show_progress_on=[counted],
    )
    select = table.select(on_select, None, [clicked], show_progress="hidden")
    select.then(
        partial(guard, on_answer, workbench), [part, clicked], [detail], show_progress="hidden"
    )
    return chosen


def draw_choice() -> tuple[gr.Dropdown, gr.Dropdown, gr.Button]:
    """Which suite, beside which other."""
    gr.Markdown("### Results", elem_classes="rb-section")
    with gr.Row(equal_height=True, elem_classes="rb-tools"):
        chosen = gr.Dropdown(
            [],
            value=None,
            label="Suite that was run",
            allow_custom_value=True,
            elem_id="suites-chosen",
            scale=4,
        )
        other = gr.Dropdown(
            [""], value="", label="Beside", allow_custom_value=True, elem_id="suites-other", scale=4
        )
        fill = gr.Button("Fill the form with it", elem_id="suites-fill", scale=1, min_width=220)
    return chosen, other, fill


def draw_plots() -> list[Any]:
    """The plots, two in a row, each with its buttons; then the columns they stand in, hidden until there is something to draw."""
    plots, columns = [], []
    with gr.Row():
        for number in range(1, MOST_PLOTS + 1):
            with gr.Column(visible=False, min_width=520) as column:
                plots.append(gr.Plot(show_label=False, elem_id=f"suites-plot-{number}"))
                save_buttons(f"suites-plot-{number}", f"suite-plot-{number}")
            columns.append(column)
    return [*plots, *columns]


def draw_reader() -> tuple[gr.Dropdown, gr.Dropdown, gr.HTML, gr.Dataframe, gr.HTML]:
    """The questions of a part, and one of them."""
    gr.Markdown("### Read the answers", elem_classes="rb-section")
    with gr.Row(equal_height=True):
        part = gr.Dropdown(
            [], value=None, label="Part", allow_custom_value=True, elem_id="suites-part", scale=4
        )
        which = gr.Dropdown(
            [views_answers.ALL],
            value=views_answers.ALL,
            label="Questions",
            info="all, or those that ended so",
            allow_custom_value=True,
            elem_id="suites-which",
            scale=2,
        )
    counted = gr.HTML(views.empty(NO_RUN), elem_id="suites-counted", elem_classes="rb-flush")
    table = gr.Dataframe(
        headers=list(views_answers.COLUMNS),
        interactive=False,
        wrap=True,
        show_label=False,
        max_height=420,
        column_widths=WIDTHS,
        visible=False,
        elem_id="suites-answers",
    )
    return part, which, counted, table, gr.HTML(elem_id="suites-answer", elem_classes="rb-flush")


# results


def on_names(workbench: Workbench, chosen: str | None, other: str | None) -> list[Any]:
    """The suites that were run until now."""
    names = workbench.experiments.suites()
    value = chosen if chosen in names else next(iter(names), None)
    return [
        gr.update(choices=names, value=value),
        gr.update(choices=["", *names], value=other if other in names else ""),
    ]


def on_open(workbench: Workbench, chosen: str | None, other: str | None) -> list[Any]:
    """Show a suite, or two beside each other."""
    if not chosen:
        return [
            views.empty(NO_RESULT),
            *[gr.update(visible=False), gr.skip()] * 2,
            "",
            gr.update(choices=[], value=None),
            *drawn(()),
        ]
    try:
        found = workbench.experiments.open_suite(chosen)
        second = workbench.experiments.open_suite(other) if other and other != chosen else None
        gaps = differences(workbench.workspace, found, second) if second else None
        shown = (
            views_suites.beside(found, second, gaps)
            if second and gaps
            else views_suites.whole(found)
        )
    except RalleError as error:
        return [
            views.error(str(error)),
            *[gr.update(visible=False), gr.skip()] * 2,
            "",
            gr.update(choices=[], value=None),
            *drawn(()),
        ]
    pairs, files, parts = (
        pairs_of(found, second) if second else {},
        files_of(workbench, found),
        parts_of(workbench, found),
    )
    return [
        shown,
        gr.update(visible=bool(pairs)),
        gr.update(choices=list(pairs), value=next(iter(pairs), None)),
        gr.update(visible=bool(files)),
        gr.update(choices=files, value=None),
        "",
        gr.update(choices=parts, value=parts[0][1] if parts else None),
        *drawn(views_suite_plots.plots_of(found, second)),
    ]


def drawn(plots: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Updates of all plots and their columns."""
    made = [gr.update(value=plotly.figure(Figure(**one))) for one in plots[:MOST_PLOTS]]
    lacking = MOST_PLOTS - len(made)
    hidden = [gr.update(visible=True)] * len(made) + [gr.update(visible=False)] * lacking
    return [*made, *[gr.update(value=None)] * lacking, *hidden]


def parts_of(workbench: Workbench, found: StoredExperiment) -> list[tuple[str, str]]:
    """(label, run) of every part; of a suite that has not ended, the runs that bear its name."""
    if found.report is not None:
        return [(part["label"], part["run"]) for part in found.report["parts"]]
    begun = [run.name for run in workbench.runs.list() if run.name.startswith(f"{found.name} ")]
    return [(name[len(found.name) + 1 :], name) for name in sorted(begun)]


def on_compare(
    workbench: Workbench, chosen: str | None, other: str | None, pair: str | None
) -> list[Any]:
    """Open the two runs of a part in Compare; the time makes a second click on it count."""
    if not chosen or not other:
        raise UsageError("Choose two suites that were run, to have their runs compared.")
    pairs = pairs_of(
        workbench.experiments.open_suite(chosen), workbench.experiments.open_suite(other)
    )
    if pair not in pairs:
        raise UsageError("Choose a part that both suites have.")
    return [gr.Tabs(selected="compare"), {"runs": list(pairs[pair]), "at": time.time()}]


def on_fill(workbench: Workbench, form: SuiteForm, chosen: str | None) -> list[Any]:
    """Put what was asked for into the form: to continue, or to run it again with a change."""
    if not chosen:
        raise UsageError("No suite is chosen; choose one that was run.")
    found = workbench.experiments.open_suite(chosen)
    if found.kind not in SUITES or not found.request:
        raise UsageError(
            f"What {chosen!r} was asked for is not known; it was made by another version."
        )
    asked = found.request
    limit = "" if asked.get("limit") is None else str(asked["limit"])
    return [
        found.kind,
        asked.get("llm") or None,
        limit,
        found.name,
        *filled(form, found.kind, asked.get("settings") or {}),
    ]


def files_of(workbench: Workbench, found: StoredExperiment) -> list[str]:
    """The files that a suite has made and that are there, below its folder."""
    folder = workbench.experiments.store.folder(found.name)
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    )


def on_file(workbench: Workbench, chosen: str | None, file: str | None) -> str:
    """A link that saves the chosen file."""
    if not chosen or not file:
        return ""
    if file not in files_of(workbench, workbench.experiments.open_suite(chosen)):
        raise UsageError(f"{chosen!r} has no file {file!r}; choose one of the list.")
    path = workbench.experiments.store.folder(chosen) / file
    if path.stat().st_size > MOST_BYTES:
        return views.note(f"The file is large; it lies at {path}.")
    return file_link(file, path.read_bytes())


# answers


def on_part(workbench: Workbench, run: str | None) -> list[Any]:
    """List the questions of a part."""
    if not run:
        return [gr.skip(), views.empty(NO_RUN), gr.update(value=[], visible=False), ""]
    try:
        folder = workbench.runs.open(run)
        found = views_answers.filters(folder.episodes())
        listed = listing(folder, views_answers.ALL)
    except RalleError as error:
        return [gr.skip(), views.error(str(error)), gr.update(value=[], visible=False), ""]
    return [gr.update(choices=found, value=views_answers.ALL), *listed, views.empty(NO_ANSWER)]


def on_which(workbench: Workbench, run: str | None, which: str) -> list[Any]:
    """List those that fit."""
    if not run:
        return [views.empty(NO_RUN), gr.update(value=[], visible=False)]
    return listing(workbench.runs.open(run), which)


def listing(folder: RunFolder, which: str) -> list[Any]:
    """How many questions fit, and the table of them."""
    examples, episodes = examples_of(folder), folder.episodes()
    found = views_answers.rows(examples, episodes, by_question(values_of(folder)), which)
    more = (
        f", the first {views_answers.MOST_ROWS:,} that fit"
        if len(found) == views_answers.MOST_ROWS
        else ""
    )
    text = f"{len(found)} of {len(examples)} questions{more}. {NO_ANSWER if found else 'None fits; choose others.'}"
    link = csv_link(f"{folder.name}.csv", [views_answers.COLUMNS, *found]) if found else ""
    return [
        f'<div class="rb-label">{text}</div>{link}',
        gr.update(value=found, visible=bool(found)),
    ]


def on_select(event: gr.SelectData) -> str:
    """The place of the question that was clicked. Gradio gives no event to a partial."""
    return str(event.row_value[0])


def on_answer(workbench: Workbench, run: str | None, clicked: str) -> str:
    """Everything that happened to one question."""
    if not run or not clicked.isdecimal():
        return views.empty(NO_ANSWER)
    folder = workbench.runs.open(run)
    examples = examples_of(folder)
    example = examples[int(clicked) - 1] if 0 < int(clicked) <= len(examples) else None
    episode = folder.episodes().get(example.question.qid) if example else None
    if example is None or episode is None:
        raise UsageError(
            f"The run {run!r} has no answer number {clicked} any more; choose the part again."
        )
    own = by_question(values_of(folder)).get(episode.qid, {})
    return views_answers.answer(
        example, episode, own, told_of(workbench, run), recorded_prices(folder.spec())
    )


def told_of(workbench: Workbench, run: str) -> dict[str, str]:
    """Metric → its definition, from the run's report, or of an earlier version's run from that of its suite."""
    if own := (workbench.runs.open(run).report() or {}).get("definitions"):
        return dict(own)
    for name in workbench.experiments.suites():
        if run.startswith(f"{name} "):
            try:
                return dict(
                    (workbench.experiments.open_suite(name).report or {}).get("definitions", {})
                )
            except RalleError:
                return {}
    return {}
