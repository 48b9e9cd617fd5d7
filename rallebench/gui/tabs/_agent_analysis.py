"""Analyse agents' runs, below the Agent tab."""

from __future__ import annotations

import gradio as gr

from rallebench.workbench import Workbench


def draw_analysis(workbench: Workbench) -> None:
    """Draw the part of the page inside the tab that is being drawn."""
    gr.Markdown("### Analyse agents' runs")
