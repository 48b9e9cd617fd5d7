"""Runs, groups of runs and traces sent to MLflow, and MLflow's own page."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rallebench.core.errors import RalleError
from rallebench.core.types import Episode
from rallebench.engine.store import RunFolder
from rallebench.services.grouping import group_of
from rallebench.services.models import ModelManager
from rallebench.tracking.groups import Group
from rallebench.tracking.view import OUR_PAGE
from rallebench.workspace.paths import Workspace


class Tracking:
    """The verbs about MLflow. What is lost when it cannot be reached is said in a sentence; the run stays complete."""

    def __init__(
        self,
        workspace: Workspace,
        models: ModelManager,
        tracking_uri: str | None,
        allowed_hosts: Sequence[str],
    ) -> None:
        self._workspace, self._models = workspace, models
        self._tracking_uri, self._allowed_hosts = tracking_uri, allowed_hosts
        self.page = OUR_PAGE
        """The address of our page, to which logged runs link back."""

    def track_run(self, folder: RunFolder) -> str:
        """Log a finished run to MLflow; '' or one sentence saying why that did not work."""
        try:
            self.log_run(folder)
        except RalleError as error:
            return (
                f"The run is complete but was not logged to MLflow: {error} It can be logged later."
            )
        return ""

    def log_run(self, folder: RunFolder) -> str:
        """Log a run to MLflow, with where it lost its questions; the id it has there. Raises RalleError."""
        from rallebench.analysis.waterfall import lost
        from rallebench.tracking.runs import log_run

        stages = lost(folder, self._workspace)
        return log_run(
            folder.path,
            workspace=self._workspace.path,
            tracking_uri=self._tracking_uri,
            waterfall=stages,
            page=self.page,
        )

    def log_group(self, group: Group) -> str:
        """Put several runs below one parent run in MLflow; the parent's id. Raises RalleError."""
        from rallebench.tracking.groups import log_group

        return log_group(
            group,
            workspace=self._workspace.path,
            tracking_uri=self._tracking_uri,
            page=self.page,
        )

    def track_experiment(self, document: Mapping[str, Any], kind: str) -> str:
        """Put an experiment's runs below one parent in MLflow; '' or one sentence on why that did not work."""
        group = group_of(self._workspace, document, kind)
        if group is None:
            return ""
        try:
            self.log_group(group)
        except RalleError as error:
            return (
                f"The {group.kind} {group.name!r} is complete but was not put together in MLflow: {error} "
                "It can be logged later."
            )
        return ""

    def trace(self, episode: Episode, question: str, source: str = "") -> None:
        """Hand one episode of ``develop`` or ``chat`` to MLflow's traces; returns at once and never fails."""
        from rallebench.tracking.live import trace_later

        trace_later(
            episode,
            question,
            workspace=self._workspace.path,
            tracking_uri=self._tracking_uri,
            source=source,
            prices=self._models.prices(),
        )

    def start_mlflow(self, run: RunFolder | None = None) -> Iterator[str]:
        """Start MLflow's own page on loopback, yielding what goes on, and last the address there of ``run``, else of all runs.

        A run that was not logged yet is logged. Raises BackendError.
        """
        from rallebench.tracking.runs import read_link
        from rallebench.tracking.server import address_of_all, start_ui
        from rallebench.tracking.view import address_of_run

        if run is not None and not read_link(run.path):
            yield "Logging the run to MLflow …"
            self.log_run(run)

        server = start_ui(
            self._workspace.path, tracking_uri=self._tracking_uri, allowed_hosts=self._allowed_hosts
        )
        while not server.ready():
            yield f"MLflow is starting ({server.waited:.0f} s; the first time takes longest) …"
            time.sleep(1.0)
        if run is not None:
            yield server.url + address_of_run(read_link(run.path))
        else:
            yield server.url + address_of_all(self._workspace.path, self._tracking_uri)
