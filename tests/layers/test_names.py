"""A class name names one class, an identifier names a thing, and code is laid out by ruff."""

from __future__ import annotations

import ast
import tokenize
from collections import Counter
from collections.abc import Iterator

from project import PROJECT, syntax_trees

ROOT = PROJECT / "rallebench"
FILLERS = {"one", "found", "asked", "said", "told", "shown", "kept", "given", "wanted", "made"} | {
    "there",
    "whoever",
    "nobody",
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Every name in the code: variables, attributes, arguments, functions, classes, aliases."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            yield node.name


def fillers(tree: ast.AST) -> list[str]:
    return [name for name in bound_names(tree) if name.strip("_").lower() in FILLERS]


def duplicated_classes() -> list[str]:
    """Public names shared by two classes at the top of a module."""
    counts = Counter(
        node.name
        for tree in syntax_trees().values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return sorted(name for name, count in counts.items() if count > 1)


def unformatted(source: str, lines: Iterator[str]) -> list[int]:
    """Lines with ``# fmt: skip`` (or off) outside tables, which are constants of literals."""
    marks = [
        token.start[0]
        for token in tokenize.generate_tokens(lambda: next(lines, ""))
        if token.type == tokenize.COMMENT and "fmt:" in token.string.replace("fmt :", "fmt:")
    ]
    tables = [
        range(node.lineno, node.end_lineno + 1)
        for node in ast.parse(source).body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        and isinstance(node.value, (ast.Dict, ast.List, ast.Tuple, ast.Set))
        and node.end_lineno
    ]
    return [line for line in marks if not any(line in table for table in tables)]


def programs() -> dict[str, ast.Module]:
    """Path → the syntax tree of every benchmark and tool."""
    paths = [
        path for folder in ("benchmarks", "tools") for path in (PROJECT / folder).rglob("*.py")
    ]
    return {
        path.relative_to(PROJECT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in paths
    }


def test_no_identifier_is_a_filler_word() -> None:
    present = {
        name: sorted(set(words))
        for name, tree in {**syntax_trees(), **programs()}.items()
        if (words := fillers(tree))
    }
    assert present == {}, "name the thing"


def test_a_public_class_name_names_one_class() -> None:
    assert duplicated_classes() == [], "class names that another module has too"


def test_only_tables_of_data_are_laid_out_by_hand() -> None:
    marked = {}
    for name in syntax_trees():
        source = (ROOT / name).read_text(encoding="utf-8")
        if "fmt:" in source and (lines := unformatted(source, iter(source.splitlines(True)))):
            marked[name] = lines
    assert marked == {}


def test_the_filler_check_sees_every_kind_of_name() -> None:
    source = """
import os as found
class Said: pass
class Row:
    kept: int
def told(asked, *, made): self.given = 1
for one in (): pass
with open("x") as shown: pass
[there for there in ()]
try: pass
except OSError as wanted: pass
print(nobody)
"""
    assert sorted(name.lower() for name in fillers(ast.parse(source))) == sorted(
        FILLERS - {"nobody", "whoever"}
    )


def test_a_mark_outside_a_table_is_seen() -> None:
    source = "A = {1: 2}  # fmt: skip\nprint( 1 )  # fmt: skip\n"
    assert unformatted(source, iter(source.splitlines(True))) == [2]
