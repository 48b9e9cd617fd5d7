"""The columns of our experiments on MLflow's own page, and links between its page and ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from rallebench.tracking.links import MlflowLink

VIEW = "rallebench"
VIEW_TAG = f"mlflow.sharedViewState.{VIEW}"
"""MLflow stores a shared view of an experiment's runs in a tag; a page's address selects the view by name."""

METRICS = (
    "em",
    "f1",
    "Rprec",
    "KILT-f1",
    "accuracy",
    "recall_at_5",
    "sec per query",
    "cost_total_usd",
    "n_errors",
)
"""Metrics shown as columns of the view, in this order."""

COLUMNS = (*(f"metrics.`{name}`" for name in METRICS), "attributes.`Dataset`")
WIDTHS = dict.fromkeys(COLUMNS, 86)
"""In pixels: with MLflow's side panels, four metrics are visible on a screen 1440 wide."""
VIEW_STATE = json.dumps(
    {"selectedColumns": COLUMNS, "columnOrder": COLUMNS, "columnWidths": WIDTHS}
)

OUR_PAGE = "http://127.0.0.1:7860"
"""Default address of our page."""


def show_metrics(client: Any, experiment_id: str, tags: Mapping[str, str]) -> None:
    """Set an experiment's view to our columns. ``tags``: the experiment's tags."""
    if tags.get(VIEW_TAG) != VIEW_STATE:
        client.set_experiment_tag(experiment_id, VIEW_TAG, VIEW_STATE)


def address_of_runs(experiment_id: str) -> str:
    """Return the address on MLflow's page of an experiment's runs with our columns."""
    return f"/#/experiments/{experiment_id}/runs?viewStateShareKey={VIEW}"


def address_of_run(link: MlflowLink | None) -> str:
    """Return the address of a logged run on MLflow's page; "" without a link."""
    return f"/#/experiments/{link.experiment_id}/runs/{link.run_id}" if link else ""


def our_address(page: str, run: str) -> str:
    """Return the address of a run on our page.

    >>> our_address("http://127.0.0.1:7860", "night noise=0.2")
    'http://127.0.0.1:7860/#/runs/run?id=night%20noise%3D0.2'
    """
    return f"{page.rstrip('/')}/#/runs/run?id={quote(run, safe='')}"
