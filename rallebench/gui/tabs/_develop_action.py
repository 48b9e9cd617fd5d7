"""The widgets of one action of the chain form."""

from __future__ import annotations

from typing import Any

import gradio as gr

from rallebench.gui import form, views
from rallebench.types import Chain
from rallebench.workbench import Workbench


def draw_action(workbench: Workbench, chain: Chain, index: int) -> dict[str, Any]:
    """The widgets of action ``index``, by field name."""
    shown = index < len(chain.actions)
    action = chain.actions[index] if shown else form.added(Chain("", ())).actions[0]
    value = form.action_values(action)
    row: dict[str, Any] = {}

    def elem(part: str) -> str:
        return f"develop-{part}-{index + 1}"

    with gr.Column(visible=shown, elem_classes="rb-action", elem_id=elem("action")) as row["group"]:
        with gr.Row(elem_classes="rb-tools"):
            gr.Markdown(f"### Action {index + 1}", elem_classes="rb-action-title")
            row["interpret"] = gr.Button(
                "Interpret prompt only", size="sm", elem_id=elem("interpret"), scale=0, min_width=170
            )
            row["execute"] = gr.Button(
                "Execute this action",
                size="sm",
                elem_id=elem("execute"),
                scale=0,
                min_width=160,
                variant="secondary",
            )
            row["up"] = gr.Button("Move up", size="sm", elem_id=elem("up"), scale=0, min_width=90)
            row["down"] = gr.Button("Move down", size="sm", elem_id=elem("down"), scale=0, min_width=100)
            row["remove"] = gr.Button("Remove", size="sm", elem_id=elem("remove"), scale=0, min_width=80)
        with gr.Row():
            with gr.Column(scale=4, min_width=320):
                row["kind"] = gr.Radio(
                    form.KINDS, value=value["kind"], label="Function", elem_id=elem("kind")
                )
                row["template"] = gr.Textbox(
                    value["template"],
                    label="Prompt template",
                    lines=5,
                    max_lines=16,
                    elem_id=elem("template"),
                    info=form.EXAMPLES[value["dialect"]],
                )
                row["dialect"] = gr.Radio(
                    form.DIALECTS, value=value["dialect"], label="Dialect", elem_id=elem("dialect")
                )
                with gr.Row():
                    row["retriever"] = gr.Dropdown(
                        list(workbench.workspace.retrievers()),
                        value=value["retriever"],
                        label="Retriever",
                        allow_custom_value=True,
                        visible=action.kind == "retrieve",
                        elem_id=elem("retriever"),
                        scale=3,
                    )
                    row["k"] = gr.Number(
                        value["k"],
                        label="k (passages)",
                        precision=0,
                        minimum=1,
                        visible=action.kind == "retrieve",
                        elem_id=elem("k"),
                        scale=1,
                        min_width=90,
                    )
                    row["llm"] = gr.Dropdown(
                        list(workbench.workspace.llms()),
                        value=value["llm"],
                        label="Language model",
                        allow_custom_value=True,
                        visible=action.kind == "generate",
                        elem_id=elem("llm"),
                        scale=3,
                    )
                with gr.Accordion(
                    "Generation settings (empty = the model's own)",
                    open=False,
                    visible=action.kind == "generate",
                ) as row["settings"]:
                    with gr.Row():
                        row["max_tokens"] = gr.Textbox(
                            value["max_tokens"],
                            label="Max tokens",
                            placeholder="model's own",
                            max_lines=1,
                            elem_id=elem("max-tokens"),
                            min_width=90,
                        )
                        row["temperature"] = gr.Textbox(
                            value["temperature"],
                            label="Temperature",
                            placeholder="model's own",
                            max_lines=1,
                            elem_id=elem("temperature"),
                            min_width=90,
                        )
                        row["seed"] = gr.Textbox(
                            value["seed"],
                            label="Seed",
                            placeholder="model's own",
                            max_lines=1,
                            elem_id=elem("seed"),
                            min_width=90,
                        )
                    row["system"] = gr.Textbox(
                        value["system"], label="System prompt", lines=1, max_lines=6, elem_id=elem("system")
                    )
                    row["stop"] = gr.Textbox(
                        value["stop"],
                        label="Stop strings, one a line (\\n for a line end)",
                        lines=1,
                        max_lines=4,
                        elem_id=elem("stop"),
                    )
                    row["options"] = gr.Textbox(
                        value["options"],
                        label="Other settings as JSON",
                        placeholder='{"top_p": 0.9}',
                        lines=1,
                        elem_id=elem("options"),
                    )
            with gr.Column(scale=4, min_width=320):
                row["prompt"] = gr.HTML(views.empty(views.EMPTY_PROMPT), elem_id=elem("prompt"))
            with gr.Column(scale=5, min_width=320):
                row["response"] = gr.HTML(views.empty(views.EMPTY_RESPONSE), elem_id=elem("response"))
    return row
