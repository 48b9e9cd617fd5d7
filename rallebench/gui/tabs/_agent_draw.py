"""The parts of the Agent tab: who acts, the question, the buttons, the panel, what is edited and what comes after."""

from __future__ import annotations

from typing import Any

import gradio as gr

from rallebench.environments import ENVIRONMENTS
from rallebench.gui import views, views_agent
from rallebench.gui.tabs import _agent_form as form_of
from rallebench.gui.tabs.develop import QUESTION, choices
from rallebench.services.workbench import Workbench
from rallebench.workspace.paths import DEFAULT_DATASET

Widgets = dict[str, Any]

KEEPS_OPEN = """
const touched = new Map();
element.addEventListener("click", function (event) {
    const summary = event.target.closest("summary");
    const details = summary && summary.parentElement;
    if (details && details.dataset.key) touched.set(details.dataset.key, !details.open);
});
let drawn = "";
new MutationObserver(function () {
    const episode = element.querySelector("[data-episode]");
    if (episode && episode.dataset.episode !== drawn) {
        drawn = episode.dataset.episode;
        touched.clear();
    }
    element.querySelectorAll("details[data-key]").forEach(function (details) {
        const wanted = touched.get(details.dataset.key);
        if (wanted !== undefined && wanted !== details.open) details.open = wanted;
    });
}).observe(element, { childList: true, subtree: true });
"""
"""What a visitor unfolded stays unfolded when the same episode is drawn again."""


def draw_agent(workbench: Workbench) -> Widgets:
    """Workflow, environment and model."""
    with gr.Row(equal_height=True):
        return {
            "workflow": gr.Dropdown(
                form_of.workflows(),
                value=form_of.FIRST,
                label="Workflow",
                allow_custom_value=True,
                elem_id="agent-workflow",
            ),
            "env": gr.Dropdown(
                list(ENVIRONMENTS.names()),
                value=form_of.FIRST_ENV,
                label="Environment",
                allow_custom_value=True,
                elem_id="agent-env",
            ),
            "llm": gr.Dropdown(
                list(workbench.workspace.llms()),
                value=None,
                label="Language model",
                allow_custom_value=True,
                elem_id="agent-llm",
            ),
        }


def draw_question(workbench: Workbench) -> Widgets:
    """Question set, search and question, and the gold of the chosen one."""
    examples = workbench.asking.questions(DEFAULT_DATASET)
    with gr.Row(equal_height=True):
        dataset = gr.Dropdown(
            list(workbench.workspace.dataset_paths()),
            value=DEFAULT_DATASET,
            label="Question set",
            allow_custom_value=True,
            elem_id="agent-dataset",
            scale=2,
        )
        find = gr.Textbox(
            label="Search in the set",
            placeholder="words of a question",
            elem_id="agent-find",
            scale=2,
            max_lines=1,
        )
        question = gr.Dropdown(
            choices(examples, ""),
            value=examples[0].question.qid,
            label=QUESTION,
            allow_custom_value=True,
            elem_id="agent-question",
            scale=6,
        )
    gold = gr.HTML(views.gold_line(examples[0]), elem_id="agent-gold", elem_classes="rb-flush")
    return {"dataset": dataset, "find": find, "question": question, "gold": gold}


def draw_tools() -> Widgets:
    """Run, stop, marks, and the episodes so far."""
    with gr.Row(elem_classes="rb-tools"):
        return {
            "run": gr.Button(
                "Run", variant="primary", elem_id="agent-run", scale=2, min_width=140, size="md"
            ),
            "stop": gr.Button("Stop", elem_id="agent-stop", scale=1, min_width=90, size="md"),
            "mark": gr.Checkbox(
                True,
                label="Mark gold",
                elem_id="agent-mark",
                scale=0,
                min_width=130,
                container=False,
            ),
            "episodes": gr.Dropdown(
                [],
                value=None,
                label="Episodes since the program was started",
                allow_custom_value=True,
                elem_id="agent-episodes",
                scale=5,
            ),
        }


def draw_edit() -> Widgets:
    """An action to edit, and to go on from; hidden while there is none."""
    with gr.Row(visible=False, elem_classes="rb-tools") as group:
        at = gr.Dropdown(
            [], label="Go on from action", allow_custom_value=True, elem_id="agent-action", scale=4
        )
        text = gr.Textbox(
            label="with this in its place", lines=1, max_lines=14, elem_id="agent-edit", scale=6
        )
        go = gr.Button(
            "Continue from here", elem_id="agent-continue", scale=0, min_width=190, size="md"
        )
    return {"group": group, "at": at, "text": text, "go": go}


def draw_after() -> Widgets:
    """What an episode, or its agent, can be used for next."""
    with gr.Row(elem_classes="rb-tools"):
        send = gr.Button(
            "Send this episode to Compare",
            elem_id="agent-compare",
            scale=2,
            min_width=220,
            size="md",
        )
        limit = gr.Textbox(
            "20",
            label="Questions",
            placeholder="all",
            max_lines=1,
            elem_id="agent-limit",
            scale=1,
            min_width=150,
        )
        start = gr.Button(
            "Benchmark this agent", elem_id="agent-benchmark", scale=2, min_width=180, size="md"
        )
        track = gr.Checkbox(
            True,
            label="Log to MLflow",
            elem_id="agent-track",
            scale=0,
            min_width=150,
            container=False,
        )
    said = gr.HTML(elem_id="agent-status", elem_classes="rb-flush")
    return {"send": send, "benchmark": start, "limit": limit, "track": track, "said": said}


def draw_panel() -> gr.HTML:
    """The episode."""
    return gr.HTML(
        views.empty(views_agent.NOTHING),
        elem_id="agent-episode",
        elem_classes="rb-flush",
        js_on_load=KEEPS_OPEN,
    )
