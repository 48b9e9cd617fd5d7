"""Write docs/study.ipynb from the section "A study" of docs/python.md: its prose and its examples, without outputs.

python -m tools.notebook
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
COMMAND = "python -m tools.notebook"
SECTION = "A study"
INTRODUCTION = """# A study with rallebench

Made from [python.md](python.md) by `python -m tools.notebook`. Run the cells from top to bottom: they work offline, on a
CPU, and can be run twice.
"""


def from_manual(page: str) -> str:
    """The notebook of a page that has the section."""
    imports = re.findall(r"^```python\n(from rallebench import .*?)^```", page, re.M | re.S)[0]
    study = page.split(f"\n## {SECTION}\n")[1].split("\n## ")[0]
    cells = [_cell("markdown", INTRODUCTION), _cell("code", imports), *_cells(study)]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    value = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _cells(text: str) -> Iterator[dict[str, Any]]:
    """The cells of a section: text, code, text …; outputs in the page are left out."""
    text = re.sub(r"^```text\n.*?^```\n", "", text, flags=re.M | re.S)
    for number, part in enumerate(re.split(r"^```python\n(.*?)^```\n", text, flags=re.M | re.S)):
        if part.strip():
            yield _cell("code" if number % 2 else "markdown", part)


def _cell(kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}}
    cell["source"] = text.strip().splitlines(keepends=True)
    return cell | ({"outputs": [], "execution_count": None} if kind == "code" else {})


def main() -> None:
    """Write the notebook."""
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    (DOCS / "study.ipynb").write_text(from_manual(page), encoding="utf-8")


if __name__ == "__main__":
    main()
