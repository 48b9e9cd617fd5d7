"""Experiments as values: tables, figures, notes, runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rallebench.api.runs import Run
from rallebench.core.experiment_reports import SuiteReport
from rallebench.core.experiments import Report
from rallebench.core.improvements import Improvement, find_improvement
from rallebench.core.tables import Figure, Table
from rallebench.core.types import Chain
from rallebench.render import report, text


@dataclass(frozen=True, repr=False)
class ExperimentRun:
    """An experiment that has ended: its ``tables``, ``figures`` and ``notes``, its ``runs``, and the ``folder`` of its files.

    ``failed``: part → reason. Call the experiment again with its name after mending the cause.
    """

    name: str
    folder: Path
    report: Report
    runs: tuple[Run, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        return self.report.tables

    @property
    def figures(self) -> tuple[Figure, ...]:
        return self.report.figures

    @property
    def notes(self) -> tuple[str, ...]:
        return self.report.notes

    @property
    def failures(self) -> Mapping[str, str]:
        return self.report.failed

    @property
    def _sentences(self) -> list[str]:
        failed = [f"{part} failed: {reason}" for part, reason in self.failures.items()]
        return [*self.notes, *failed]

    def __repr__(self) -> str:
        runs = f"{self.name}: {len(self.runs)} runs in {self.folder}"
        return text.blocks([runs, *self.tables, *self._sentences])

    def _repr_html_(self) -> str:
        return "".join(map(str, map(report.block, [*self.tables, *self.figures, *self._sentences])))


class ImprovementRun(ExperimentRun):
    """An improvement of a chain that has ended: its ``outcome`` and, if there is one, the best ``chain``."""

    @property
    def outcome(self) -> Improvement:
        """The difference of the best variant on unseen articles; as text one sentence."""
        outcome = find_improvement(SuiteReport(data=self.report.data))
        assert outcome is not None
        return outcome

    @property
    def chain(self) -> Chain | None:
        """The best variant, saved under the name of the improvement; None if no variant was better."""
        return self.report.chain
