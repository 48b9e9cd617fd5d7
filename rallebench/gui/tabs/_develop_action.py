"""The widgets of one action of the chain form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gradio as gr

from rallebench.core.types import Chain
from rallebench.gui import form, views
from rallebench.services.workbench import Workbench

Widgets = dict[str, Any]
Name = Callable[[str], str]
"""A widget's part in the action, as in ``template`` → its id on the page."""

BUTTONS = (
    ("interpret", "Interpret prompt only", 170),
    ("execute", "Execute this action", 160),
    ("up", "Move up", 90),
    ("down", "Move down", 100),
    ("remove", "Remove", 80),
)
"""(key, label, least width in pixels)"""


def draw_action(workbench: Workbench, chain: Chain, index: int) -> Widgets:
    """The widgets of action ``index``, by field name."""
    action = form.rows(chain)[index]
    value = form.action_values(action)
    name: Name = f"develop-{{}}-{index + 1}".format
    shown = index < len(chain.actions)
    with gr.Column(visible=shown, elem_classes="rb-action", elem_id=name("action")) as group:
        buttons = draw_buttons(index, name)
        with gr.Row():
            with gr.Column(scale=4, min_width=320):
                asked = draw_prompt(value, name) | draw_target(workbench, value, name)
                settings = draw_settings(value, name)
            with gr.Column(scale=4, min_width=320):
                prompt = draw_output(views.EMPTY_PROMPT, name("prompt"))
            with gr.Column(scale=5, min_width=320):
                response = draw_output(views.EMPTY_RESPONSE, name("response"))
    return {"group": group, **buttons, **asked, **settings, "prompt": prompt, "response": response}


def draw_buttons(index: int, name: Name) -> Widgets:
    """The action's number, and what can be done with it."""
    with gr.Row(elem_classes="rb-tools"):
        gr.Markdown(f"### Action {index + 1}", elem_classes="rb-action-title")
        return {
            key: gr.Button(label, size="sm", elem_id=name(key), scale=0, min_width=width)
            for key, label, width in BUTTONS
        }


def draw_prompt(value: Mapping[str, Any], name: Name) -> Widgets:
    """What kind of action it is, and its template."""
    return {
        "kind": gr.Radio(form.KINDS, value=value["kind"], label="Function", elem_id=name("kind")),
        "template": gr.Textbox(
            value["template"],
            label="Prompt template",
            lines=5,
            max_lines=16,
            elem_id=name("template"),
            info=form.EXAMPLES[value["dialect"]],
        ),
        "dialect": gr.Radio(
            form.DIALECTS, value=value["dialect"], label="Dialect", elem_id=name("dialect")
        ),
    }


def draw_target(workbench: Workbench, value: Mapping[str, Any], name: Name) -> Widgets:
    """Who is asked; only what the function needs is shown. What ``k`` may be is said by ``form``."""
    retrieves, generates = value["kind"] == "retrieve", value["kind"] == "generate"
    with gr.Row():
        return {
            "retriever": gr.Dropdown(
                list(workbench.workspace.retrievers()),
                value=value["retriever"],
                label="Retriever",
                allow_custom_value=True,
                visible=retrieves,
                elem_id=name("retriever"),
                scale=2,
            ),
            "k": gr.Number(
                value["k"],
                label="k (passages)",
                visible=retrieves,
                elem_id=name("k"),
                scale=1,
                min_width=110,
            ),
            "llm": gr.Dropdown(
                list(workbench.workspace.llms()),
                value=value["llm"],
                label="Language model",
                allow_custom_value=True,
                visible=generates,
                elem_id=name("llm"),
                scale=3,
            ),
        }


def draw_settings(value: Mapping[str, Any], name: Name) -> Widgets:
    """How a model is asked; an empty field leaves it to the model."""
    generates = value["kind"] == "generate"
    with gr.Accordion("Generation settings", open=False, visible=generates) as settings:
        with gr.Row():
            numbers = {
                key: gr.Textbox(
                    value[key],
                    label=label,
                    placeholder="model's own",
                    max_lines=1,
                    elem_id=name(key.replace("_", "-")),
                    min_width=90,
                )
                for key, label in (
                    ("max_tokens", "Max tokens"),
                    ("temperature", "Temperature"),
                    ("seed", "Seed"),
                )
            }
        system = gr.Textbox(
            value["system"], label="System prompt", lines=1, max_lines=6, elem_id=name("system")
        )
        stop = gr.Textbox(
            value["stop"],
            label="Stop strings, one a line (\\n for a line end)",
            lines=1,
            max_lines=4,
            elem_id=name("stop"),
        )
        options = gr.Textbox(
            value["options"],
            label="Other settings as JSON",
            placeholder='{"top_p": 0.9}',
            lines=1,
            elem_id=name("options"),
        )
    return {"settings": settings, **numbers, "system": system, "stop": stop, "options": options}


def draw_output(message: str, elem_id: str) -> gr.HTML:
    """Where a prompt or a response will stand."""
    return gr.HTML(views.empty(message), elem_id=elem_id, elem_classes="rb-flush")
