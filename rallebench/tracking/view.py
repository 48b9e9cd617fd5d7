"""The columns of our experiments on MLflow's own page, and the links between its page and ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from rallebench.tracking.links import MlflowLink

VIEW = "rallebench"
VIEW_TAG = f"mlflow.sharedViewState.{VIEW}"
"""MLflow keeps a shared view of an experiment's runs in a tag; its page opens it by the name in the address."""

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
"""Metrics that are columns of the view, in this order."""

COLUMNS = (*(f"metrics.`{name}`" for name in METRICS), "attributes.`Dataset`")
WIDTHS = dict.fromkeys(COLUMNS, 86)
"""In pixels: four metrics are in sight on a screen of 1440 with MLflow's side panels."""
VIEW_STATE = json.dumps(
    {"selectedColumns": COLUMNS, "columnOrder": COLUMNS, "columnWidths": WIDTHS}
)

OUR_PAGE = "http://127.0.0.1:7860"
"""The address of our page when it is opened without options."""


def show_metrics(client: Any, experiment_id: str, tags: Mapping[str, str]) -> None:
    """Give an experiment the view with our columns. ``tags``: those that it has."""
    if tags.get(VIEW_TAG) != VIEW_STATE:
        client.set_experiment_tag(experiment_id, VIEW_TAG, VIEW_STATE)


def address_of_runs(experiment_id: str) -> str:
    """The address of an experiment's runs with our columns, within MLflow's page."""
    return f"/#/experiments/{experiment_id}/runs?viewStateShareKey={VIEW}"


def address_of_run(link: MlflowLink | None) -> str:
    """The address of a logged run within MLflow's page, "" without a link."""
    return f"/#/experiments/{link.experiment_id}/runs/{link.run_id}" if link else ""


def our_address(page: str, run: str) -> str:
    """The address of a run within our page.

    >>> our_address("http://127.0.0.1:7860", "night noise=0.2")
    'http://127.0.0.1:7860/#/runs/run?id=night%20noise%3D0.2'
    """
    return f"{page.rstrip('/')}/#/runs/run?id={quote(run, safe='')}"
