"""Encode the starter's passages anew, after its corpus, its page map or the encoder has changed.

    python -m tools.starter_vectors      # writes rallebench/starter/vectors/

A test compares a sample of them with the encoder's own.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from rallebench.core.events import complete
from rallebench.workspace.indexes.build import build_index
from rallebench.workspace.indexes.recipes import starter_recipe
from rallebench.workspace.indexes.vectors import PROGRESS, STARTER_VECTORS, VECTORS, kept_vectors


def write_vectors(target: Path = STARTER_VECTORS) -> int:
    """Write the vectors into ``target``; return their number."""
    shutil.rmtree(target, ignore_errors=True)  # else they would be taken instead of encoding
    with tempfile.TemporaryDirectory() as folder:
        complete(build_index(Path(folder) / "indexes", "starter", starter_recipe("starter-minilm")))
        (cached,) = kept_vectors(Path(folder) / "cache" / "vectors")
        target.mkdir()
        for name in (VECTORS, PROGRESS):
            shutil.copyfile(cached.folder / name, target / name)
    return cached.passages


if __name__ == "__main__":
    print(f"{write_vectors()} vectors are in {STARTER_VECTORS}")
