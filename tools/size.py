"""Lines of every package of rallebench/ and tests/, as ruff would format them at 100 columns.

python tools/size.py [--json]
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
TREES = ("rallebench", "tests")


def ruff() -> list[str]:
    """The ruff beside this Python, or the one on the path."""
    beside = Path(sys.executable).with_name("ruff")
    return [str(beside)] if beside.exists() else [shutil.which("ruff") or "ruff"]


def lines_per_package() -> dict[str, Counter[str]]:
    """Tree → package → lines. Modules at the top of a tree are the package ``.``."""
    sizes: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for tree in TREES:
            copy = Path(folder) / tree
            shutil.copytree(
                PROJECT / tree,
                copy,
                ignore=lambda path, names: [
                    name
                    for name in names
                    if not name.endswith(".py") and not (Path(path) / name).is_dir()
                ],
            )
        subprocess.run(
            [*ruff(), "format", "-q", "--isolated", "--line-length", "100", folder], check=True
        )
        for tree in TREES:
            sizes[tree] = Counter()
            for file in (Path(folder) / tree).rglob("*.py"):
                parts = file.relative_to(Path(folder) / tree).parts
                sizes[tree][parts[0] if len(parts) > 1 else "."] += file.read_text("utf-8").count(
                    "\n"
                )
    return sizes


def main() -> None:
    sizes = lines_per_package()
    if "--json" in sys.argv[1:]:
        print(json.dumps(sizes, indent=1, sort_keys=True))
        return
    for tree, packages in sizes.items():
        for package, lines in sorted(packages.items()):
            print(f"{tree + '/' + package:32}{lines:>8,}")
        total = sum(packages.values())
        print(f"{tree + ' without gui':32}{total - packages['gui']:>8,}")
        print(f"{tree:32}{total:>8,}\n")


if __name__ == "__main__":
    main()
