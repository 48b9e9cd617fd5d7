"""The part of the Agent tab that opens an episode of a run."""

from __future__ import annotations

from typing import Any

import gradio as gr

from rallebench.errors import UsageError
from rallebench.live.opened import agent_runs, opened, questions_of
from rallebench.live.watching import Lives
from rallebench.workbench import Workbench

SHOWN = 500
"""Questions of a run that are offered."""


def draw_read() -> dict[str, Any]:
    """A run of an agent, one of its questions, and a button that opens it."""
    with gr.Accordion("Read an episode of a run", open=False, elem_id="agent-read") as box, gr.Row(elem_classes="rb-tools"):
        run = gr.Dropdown([], value=None, label="Run of an agent", allow_custom_value=True, elem_id="agent-read-run", scale=4)
        question = gr.Dropdown([], value=None, label="Question", allow_custom_value=True, elem_id="agent-read-question", scale=6)
        go = gr.Button("Open", elem_id="agent-read-open", scale=0, min_width=110, size="md")
    return {"box": box, "run": run, "question": question, "go": go}


def on_unfold(workbench: Workbench, chosen: str | None) -> Any:
    """The runs that agents have made by now."""
    names = agent_runs(workbench)
    return gr.update(choices=names, value=chosen if chosen in names else names[0] if names else None)


def on_run_chosen(workbench: Workbench, run: str | None) -> Any:
    """The questions that the run has answered."""
    if not run:
        return gr.update(choices=[], value=None)
    offers = [(" ".join(q.text.split())[:160], q.qid) for q in questions_of(workbench, run)[:SHOWN]]
    return gr.update(choices=offers, value=offers[0][1] if offers else None)


def open_it(workbench: Workbench, lives: Lives, run: str | None, qid: str | None) -> str:
    """Read the episode and remember it; its name. Raises UsageError."""
    if not run or not qid:
        raise UsageError("Choose a run of an agent and one of its questions.")
    return lives.add(opened(workbench, run, qid)).name
