"""Names of scholar tables and their files, without opening them."""

from __future__ import annotations

from pathlib import Path

from rallebench.core.files import sha256_file
from rallebench.core.own_folders import list_files
from rallebench.core.starter import STARTER
from rallebench.core.types import digest
from rallebench.workspace.paths import WorkspaceFolder

STARTER_TABLE = "starter-scholars"
"""Scholar table of every workspace; its scholars are fictional."""


def scholar_tables(workspace: WorkspaceFolder) -> dict[str, Path]:
    """Return name → file of every scholar table; the starter's comes first and is made on first use."""
    own = list_files(workspace.path / "scholars", "*.sqlite")
    return {STARTER_TABLE: _starter_file(workspace), **{path.stem: path for path in own}}


def _starter_file(workspace: WorkspaceFolder) -> Path:
    files = sorted((STARTER / "scholars").glob("*.jsonl"))
    return (
        workspace.cache
        / f"{STARTER_TABLE}-{digest([sha256_file(file) for file in files])[:12]}.sqlite"
    )
