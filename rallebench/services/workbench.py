"""The workbench: its parts provide the operations of the page and the command line."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rallebench.core.parts import remove_all_abandoned
from rallebench.services.asking import Asking
from rallebench.services.context import EngineParts
from rallebench.services.data import Data
from rallebench.services.dataset_edits import DatasetEdits
from rallebench.services.experiments import Experiments
from rallebench.services.jobs import JobManager
from rallebench.services.models import ModelManager
from rallebench.services.runs import Runs
from rallebench.services.tracking import Tracking
from rallebench.workspace.paths import WorkspaceFolder

if TYPE_CHECKING:
    from rallebench.services.forecasts import Forecasts
    from rallebench.services.labels import Labels
    from rallebench.services.model_lines import ModelLines

CLOSE_SECONDS = 5.0
"""Seconds that ``close`` waits for all work to end."""


class Workbench:
    """The only mutable object of the product. Its parts do the work; its own only operation is ``close``.

    ``models`` loads and unloads models. ``asking`` answers single questions. ``runs`` and ``experiments`` start and
    open benchmarks. ``data`` imports, indexes and searches. ``edits`` changes the questions of datasets. ``labels`` keeps what
    people say of answers. ``tracking`` logs to MLflow. ``jobs`` runs work in
    threads. ``forecasts`` predicts the cost of experiments. ``model_lines`` lists and tests models. All operations
    are safe to call from several sessions at once.
    """

    def __init__(
        self,
        workspace: Path,
        *,
        base_settings: Path | None = None,
        mcp_servers: Path | None = None,
        tracking_uri: str | None = None,
        allow_python: bool = False,
        allowed_hosts: Sequence[str] = (),
        read_only: bool = False,
    ) -> None:
        """``allow_python``: allow agents to run programs written by a model. ``mcp_servers``: the file of servers whose tools
        agents may call.

        ``allowed_hosts``: additional host names accepted by MLflow's page, for example of a proxy.

        ``read_only``: change no file of the workspace and load no language model. The page and the calls of other
        programs then refuse everything that starts or changes something.
        """
        self.workspace = WorkspaceFolder(workspace, base_settings, mcp_servers, read_only=read_only)
        if not read_only:
            remove_all_abandoned(self.workspace.path)
        self.tracking_uri = tracking_uri
        self.allow_python, self.allowed_hosts = allow_python, allowed_hosts
        self.jobs = JobManager()
        self.models = ModelManager(self.workspace, self.jobs)
        self.data = Data(self.workspace, self.models, self.jobs)
        self.edits = DatasetEdits(self.workspace)
        self.tracking = Tracking(self.workspace, self.models, tracking_uri, allowed_hosts)
        self.asking = Asking(
            self.workspace, self.models, self.jobs, self.tracking.trace, allow_python
        )
        parts = EngineParts(
            self.workspace, self.models, self.tracking, lambda: self.asking.reply_cache
        )
        self.runs = Runs(parts, self.jobs, allow_python)
        self.experiments = Experiments(parts, self.jobs, self.runs)

    @cached_property
    def labels(self) -> Labels:
        from rallebench.services.labels import Labels

        return Labels(self.workspace, self.edits)

    @cached_property
    def forecasts(self) -> Forecasts:
        from rallebench.services.forecasts import Forecasts

        return Forecasts(
            self.workspace, self.models, self.jobs, self.runs, self.experiments, self.asking
        )

    @cached_property
    def model_lines(self) -> ModelLines:
        from rallebench.services.model_lines import ModelLines

        return ModelLines(self.workspace, self.models, self.jobs, self.asking)

    def close(self) -> None:
        """Stop all jobs and unload all models, before the process ends or when the workbench is no longer needed.

        Jobs get CLOSE_SECONDS to finish, delete partial output and release their models.
        """
        deadline = time.monotonic() + CLOSE_SECONDS
        self.jobs.close(CLOSE_SECONDS)
        self.models.leases.wait(deadline - time.monotonic())
        self.models.close()
        self.asking.close()
