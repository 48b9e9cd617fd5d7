"""The package runs with every Python from 3.10 on. Constructs that need a newer one are found here."""

from __future__ import annotations

import ast

from project import PROJECT, syntax_trees


def test_every_class_variable_names_its_type() -> None:
    # Python 3.10 refuses to evaluate a bare ClassVar, which pydantic does for every dataclass that it checks.
    bare = [
        f"{path}:{node.lineno}"
        for path, tree in syntax_trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.annotation, ast.Name)
        and node.annotation.id == "ClassVar"
    ]
    assert not bare


def test_every_module_is_of_the_syntax_of_the_oldest_python() -> None:
    for path in (PROJECT / "rallebench").rglob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 10))
