"""Buttons that save the plot above them: the browser draws the file, no server and no network is asked."""

from __future__ import annotations

from typing import Any

import gradio as gr

SAVE = """() => {
  const plot = document.querySelector('#%s .js-plotly-plot');
  if (!plot || !window.Plotly) return;
  const layout = {...plot.layout, paper_bgcolor: '#fff', plot_bgcolor: '#fff', font: {...plot.layout.font, color: '#334155'}};
  window.Plotly.downloadImage({data: plot.data, layout}, {
    format: '%s', filename: '%s', width: plot.clientWidth, height: plot.clientHeight, scale: %d});
}"""
"""On white, as papers and slides are; the page's own plots are transparent."""


def save_buttons(plot: str, name: str, *, visible: bool = True) -> Any:
    """A row of two buttons for the ``gr.Plot`` whose ``elem_id`` is ``plot``; files are called ``name``."""
    with gr.Row(visible=visible, elem_classes="rb-tools", elem_id=f"{plot}-saving") as row:
        for form, scale in (("png", 2), ("svg", 1)):
            button = gr.Button(
                f"Save as {form.upper()}",
                size="sm",
                elem_id=f"{plot}-{form}",
                min_width=110,
                scale=0,
            )
            button.click(None, None, None, js=SAVE % (plot, form, name, scale))
    return row
