"""Imports of datasets, run to their end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rallebench.core.events import complete
from rallebench.datasets.importing import ImportedDataset, import_dataset


def imported_dataset(folder: Path, name: str, source: Path, **settings: Any) -> ImportedDataset:
    """The dataset of a file, imported into a folder."""
    return complete(import_dataset(folder, name, source, **settings))
