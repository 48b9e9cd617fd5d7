"""Paths of the checkout and of the golden files, and syntax trees of the modules."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
GOLDEN = PROJECT / "tests" / "golden"


@cache
def syntax_trees() -> dict[str, ast.Module]:
    """Path below ``rallebench`` → its syntax tree."""
    root = PROJECT / "rallebench"
    gc.disable()  # the trees stay, so collecting frees nothing and takes three quarters of the time
    try:
        return {
            path.relative_to(root).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
            for path in sorted(root.rglob("*.py"))
        }
    finally:
        gc.enable()


@cache
def modules() -> dict[str, ast.Module]:
    """Dotted name below ``rallebench`` → syntax tree, packages by their own name."""
    return {
        name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): tree
        for name, tree in syntax_trees().items()
    }
