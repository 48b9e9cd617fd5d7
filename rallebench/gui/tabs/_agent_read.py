"""The part of the Agent tab that opens an episode of a run."""

from __future__ import annotations

from typing import Any

import gradio as gr

from rallebench.core.errors import UsageError
from rallebench.services.episodes import Episodes, agent_runs, open_episode, questions_of
from rallebench.services.workbench import Workbench

SHOWN = 500
"""Questions of a run that are offered."""

UNCHOSEN = "Choose a run of an agent and one of its questions."


def draw_read() -> dict[str, Any]:
    """A run of an agent, one of its questions, and buttons that open it or its neighbours."""
    with (
        gr.Accordion("Read an episode of a run", open=False, elem_id="agent-read") as box,
        gr.Row(elem_classes="rb-tools"),
    ):
        run = gr.Dropdown(
            [],
            value=None,
            label="Run of an agent",
            allow_custom_value=True,
            elem_id="agent-read-run",
            scale=4,
        )
        question = gr.Dropdown(
            [],
            value=None,
            label="Question",
            allow_custom_value=True,
            elem_id="agent-read-question",
            scale=6,
        )
        go = gr.Button("Open", elem_id="agent-read-open", scale=0, min_width=90, size="md")
        back = gr.Button(
            "Previous", elem_id="agent-read-previous", scale=0, min_width=90, size="md"
        )
        on = gr.Button("Next", elem_id="agent-read-next", scale=0, min_width=90, size="md")
    return {"box": box, "run": run, "question": question, "go": go, "back": back, "on": on}


def on_unfold(workbench: Workbench, run: str | None, qid: str | None) -> list[Any]:
    """The runs that agents have made by now, and the questions of the chosen one."""
    names = agent_runs(workbench)
    chosen = run if run in names else names[0] if names else None
    return [
        gr.update(choices=names, value=chosen),
        on_run_chosen(workbench, chosen, qid if chosen == run else None),
    ]


def on_run_chosen(workbench: Workbench, run: str | None, qid: str | None = None) -> Any:
    """The questions that the run has answered; ``qid`` is chosen, or the first."""
    if not run:
        return gr.update(choices=[], value=None)
    offers = [(" ".join(q.text.split())[:160], q.qid) for q in questions_of(workbench, run)[:SHOWN]]
    return gr.update(choices=offers, value=qid or (offers[0][1] if offers else None))


def beside(workbench: Workbench, run: str | None, qid: str | None, step: int) -> str:
    """The question ``step`` places behind one of a run. Raises UsageError."""
    if not run or not qid:
        raise UsageError(UNCHOSEN)
    ids = [question.qid for question in questions_of(workbench, run)]
    if qid not in ids:
        raise UsageError(
            f"The run {run!r} holds no episode for the question {qid!r}; choose another."
        )
    place = ids.index(qid) + step
    if not 0 <= place < len(ids):
        raise UsageError(
            f"That is the {'last' if step > 0 else 'first'} of the {len(ids)} episodes of {run}."
        )
    return ids[place]


def open_it(workbench: Workbench, lives: Episodes, run: str | None, qid: str | None) -> str:
    """Read the episode and remember it; its name. Raises UsageError."""
    if not run or not qid:
        raise UsageError(UNCHOSEN)
    return lives.add(open_episode(workbench, run, qid)).name
