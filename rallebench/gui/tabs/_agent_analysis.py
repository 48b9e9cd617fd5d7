"""Analyse agents' runs, below the Agent tab: R-Eval's tables and plots over runs that are chosen."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from rallebench.analysis.agents.reading import read
from rallebench.analysis.agents.report import Analysis, AnalysisOptions, analyse
from rallebench.core.errors import RalleError, UsageError
from rallebench.engine.store import RunFolder
from rallebench.gui import views, views_agents
from rallebench.gui.session import guard
from rallebench.render import plotly
from rallebench.services.comparing import read_sizes, runs_of
from rallebench.services.workbench import Workbench

NOTHING = (
    "Choose runs of agents, or a run of the suite 'reval' for all of its systems, and press Analyse. Benchmark this agent, "
    "above, makes a run; logs of R-Eval become runs with rallebench import."
)
MOST_PLOTS = 8


def draw_analysis(workbench: Workbench, tab: gr.Tab | None = None) -> None:
    """The section, inside the tab that is being drawn; with ``tab`` its runs are listed anew whenever that is opened."""
    gr.Markdown("### Analyse agents' runs", elem_classes="rb-section")
    with gr.Row(equal_height=True):
        runs = gr.Dropdown(
            offered(workbench),
            value=[],
            multiselect=True,
            label="Runs",
            info="of agents, or whole suite runs",
            elem_id="agent-analysis-runs",
            scale=6,
        )
        aspects = [(label, name) for name, label in views_agents.ASPECT_NAMES.items()]
        aspect = gr.Dropdown(
            aspects,
            value="performance",
            label="Aspect",
            info="R-Eval's analyses",
            elem_id="agent-analysis-aspect",
            scale=3,
        )
    with gr.Row(equal_height=True, elem_classes="rb-tools"):
        compat = gr.Dropdown(
            [
                ("real denominators, observations only", "corrected"),
                ("as R-Eval's code counts", "original"),
            ],
            value="corrected",
            label="Counted",
            info="classes of errors and scores",
            elem_id="agent-analysis-compat",
            scale=3,
        )
        reference = gr.Textbox(
            label="Reference",
            info="a system or run that the others are divided by; default: the first",
            max_lines=1,
            visible=False,
            elem_id="agent-analysis-reference",
            scale=3,
        )
        sizes = gr.Textbox(
            label="Sizes",
            info="billions of parameters, as in my-llm=7 other=13; default: as the names tell",
            max_lines=1,
            visible=False,
            elem_id="agent-analysis-sizes",
            scale=3,
        )
        start = gr.Button(
            "Analyse", variant="primary", elem_id="agent-analysis-start", scale=1, min_width=140
        )
    shown = gr.HTML(views.empty(NOTHING), elem_id="agent-analysis-shown", elem_classes="rb-flush")
    plots = draw_plots()
    command = gr.HTML(elem_id="agent-analysis-command", elem_classes="rb-flush")
    aspect.change(on_aspect, [aspect], [reference, sizes], show_progress="hidden")
    start.click(
        partial(guard, on_analyse, workbench),
        [runs, aspect, compat, reference, sizes],
        [shown, command, *plots],
        show_progress_on=[shown],
    )
    (runs.focus if tab is None else tab.select)(
        partial(guard, on_offer, workbench), [runs], [runs], show_progress="hidden"
    )


def draw_plots() -> list[gr.Plot]:
    """Two in a row, hidden until there is something to draw."""
    with gr.Row(equal_height=True):
        return [
            gr.Plot(
                visible=False,
                show_label=False,
                min_width=480,
                elem_id=f"agent-analysis-plot-{number}",
            )
            for number in range(1, MOST_PLOTS + 1)
        ]


def offered(workbench: Workbench) -> list[str]:
    """Runs of the suite ``reval`` that have ended, and runs of agents, the newest first."""
    suites = [name for name in workbench.experiments.list("suite") if _is_grid(workbench, name)]
    return suites + [run.name for run in workbench.runs.list() if _is_agents(run)]


def _is_grid(workbench: Workbench, name: str) -> bool:
    try:
        found = workbench.experiments.open(name, "suite run")
    except RalleError:
        return False
    return found.kind.split("-")[0] == "reval" and found.report is not None


def _is_agents(run: RunFolder) -> bool:
    try:
        settings = run.spec()["spec"]["settings"]
        return bool(run.report()) and ("agent" in settings or "system" in settings)
    except RalleError:
        return False


def on_offer(workbench: Workbench, chosen: list[str] | None) -> Any:
    """The runs that there are now."""
    names = offered(workbench)
    there = [name for name in chosen or [] if name in names]
    return (
        gr.update(choices=names)
        if there == (chosen or [])
        else gr.update(choices=names, value=there)
    )


def on_aspect(aspect: str) -> list[Any]:
    """Show what an aspect asks for."""
    return [gr.update(visible=aspect == "normalization"), gr.update(visible=aspect == "deployment")]


def on_analyse(
    workbench: Workbench, runs: list[str], aspect: str, compat: str, reference: str, sizes: str
) -> list[Any]:
    """Tables and plots of the chosen runs."""
    try:
        found = analysed(workbench, runs, aspect, compat, reference, sizes)
    except RalleError as error:
        return [views.error(str(error)), "", *plots_of({})]
    given = (sizes or "").split() if aspect == "deployment" else []
    told = (reference or "").strip() if aspect == "normalization" else ""
    same = views_agents.command(
        runs, aspect, compat == "original", told, given, str(workbench.workspace.path)
    )
    more = len(found.figures) - MOST_PLOTS
    cut = (
        views.note(f"{more} more plots are in the HTML file that the command line writes.")
        if more > 0
        else ""
    )
    return [views_agents.whole(found) + cut, same, *plots_of(found.figures)]


def analysed(
    workbench: Workbench, runs: list[str], aspect: str, compat: str, reference: str, sizes: str
) -> Analysis:
    """What the section asks for. Raises RalleError."""
    if not runs:
        raise UsageError("No run is chosen; choose runs of agents above.")
    original = compat == "original"
    folders = [workbench.runs.open(name) for name in runs_of(workbench, runs)]
    given = read_sizes((sizes or "").split()) if aspect == "deployment" else {}
    told = (reference or "").strip() if aspect == "normalization" else ""
    return analyse(read(folders, original=original), aspect, AnalysisOptions(original, told, given))


def plots_of(figures: Any) -> list[Any]:
    """An update for every plot; those that are not needed are hidden."""
    drawn = [plotly.figure(value) for value in list(figures.values())[:MOST_PLOTS]]
    return [
        gr.update(value=drawn[i], visible=True)
        if i < len(drawn)
        else gr.update(value=None, visible=False)
        for i in range(MOST_PLOTS)
    ]
