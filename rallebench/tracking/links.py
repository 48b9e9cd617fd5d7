"""``mlflow.json``: the MLflow runs to which a run folder was logged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError
from rallebench.core.files import write_json
from rallebench.core.json_values import JsonValue
from rallebench.core.own_files import parse, read_sealed

LINK = "mlflow.json"
MEND = "remove it and log the run again"


@dataclass(frozen=True, slots=True)
class MlflowLink:
    """The MLflow run of a run folder. ``tracking_uri``: without credentials; ``traces``: ids of the logged traces;
    ``assessed``: the checksum of their assessments; ``earlier``: the folder's runs in other stores.
    """

    run_id: str
    tracking_uri: str = ""
    experiment: str = ""
    experiment_id: str = ""
    traces: tuple[str, ...] = ()
    assessed: str = ""
    earlier: tuple[MlflowLink, ...] = ()

    @property
    def every(self) -> tuple[MlflowLink, ...]:
        """The folder's runs in all stores, the most recent first."""
        return (replace(self, earlier=()), *self.earlier)

    def to_json(self) -> dict[str, JsonValue]:
        """Return the content of ``mlflow.json``."""
        value: dict[str, JsonValue] = {
            "tracking_uri": self.tracking_uri,
            "experiment": self.experiment,
            "experiment_id": self.experiment_id,
            "run_id": self.run_id,
            "traces": list(self.traces),
            "assessed": self.assessed,
        }
        return (
            {**value, "earlier": [link.to_json() for link in self.earlier]}
            if self.earlier
            else value
        )

    @classmethod
    def from_json(cls, document: Any, *, path: Path) -> MlflowLink:
        """Read the link from ``document``, the content of the file ``path``. Raises BadFileError."""
        return parse(document, cls, path, MEND)


def read_link(run_folder: Path) -> MlflowLink | None:
    """Return the MLflow run to which a run folder was last logged; None if it was never logged or the file is
    damaged.
    """
    path = Path(run_folder) / LINK
    try:
        return MlflowLink.from_json(read_sealed(path, MEND), path=path)
    except BadFileError:
        return None


def write_link(run_folder: Path, link: MlflowLink, before: MlflowLink | None) -> None:
    """Write the link of a run folder, keeping its runs in other stores under ``earlier``."""
    known = before.every if before else ()
    earlier = tuple(other for other in known if other.run_id != link.run_id)
    write_json(Path(run_folder) / LINK, replace(link, earlier=earlier).to_json())
