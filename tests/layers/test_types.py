"""Named things are values: dictionaries of anything, string subscripts and ``Any`` may only become fewer.

JSON of the user (settings, tool arguments, records) is ``core.types.Json``, which does not count. When a package has far fewer
than its ceiling allows, lower the ceiling.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from project import PROJECT

ROOT = PROJECT / "rallebench"
READERS = frozenset(
    [
        "core/costs.py",
        "core/entries.py",
        "core/experiment_reports.py",
        "core/own_files.py",
        "core/report.py",
        "core/stored_experiments.py",
        "engine/experiment_store.py",
        "engine/record.py",
        "engine/rowfile.py",
        "engine/run_files.py",
        "engine/store.py",
        "services/stored_conversations.py",
        "tracking/links.py",
        "workspace/entries.py",
    ]
)
"""The modules that read and write files of the workspace; only they know the keys."""
TYPED = ("core", "engine", "services", "views")
"""Packages with named types in all public functions."""
SLACK = 12
"""A ceiling may exceed the count by this many."""
FURTHER_HINTS, FURTHER_KEYS = 4, 12
"""A new module that registers something, such as a format that reads rows by their keys, adds this to a ceiling."""
PACKAGES = sorted({path.relative_to(ROOT).parts[0] for path in ROOT.glob("*/*.py")})
HINTS: dict[str, int] = {
    "analysis": 25,
    "chains": 11,
    "checkpoints": 5,
    "cli": 5,
    "core": 22,
    "corpora": 1,
    "datasets": 7,
    "encoders": 10,
    "engine": 15,
    "environments": 28,
    "experiments": 70,
    "gui": 24,
    "http": 10,
    "llms": 42,
    "metrics": 13,
    "papers": 50,
    "reader": 4,
    "render": 6,
    "retrievers": 5,
    "sandbox": 7,
    "server": 9,
    "services": 17,
    "tracking": 6,
    "vector_indexes": 9,
    "views": 6,
    "workflows": 6,
    "workspace": 14,
}
SUBSCRIPTS: dict[str, int] = {
    "analysis": 110,
    "api": 1,
    "chains": 30,
    "checkpoints": 19,
    "cli": 15,
    "core": 62,
    "corpora": 19,
    "datasets": 104,
    "encoders": 31,
    "engine": 32,
    "environments": 58,
    "experiments": 108,
    "gui": 76,
    "http": 38,
    "llms": 106,
    "metrics": 41,
    "papers": 158,
    "reader": 12,
    "remote": 7,
    "render": 8,
    "retrievers": 26,
    "sandbox": 22,
    "server": 20,
    "services": 75,
    "tracking": 35,
    "vector_indexes": 47,
    "views": 84,
    "workflows": 20,
    "workspace": 71,
}
REGISTERING: dict[str, int] = {
    "cli": 23,
    "corpora": 7,
    "datasets": 14,
    "encoders": 4,
    "environments": 3,
    "experiments": 8,
    "gui": 5,
    "llms": 4,
    "metrics": 20,
    "papers": 18,
    "retrievers": 8,
    "vector_indexes": 7,
    "workflows": 1,
}
"""Modules that register something; update the number together with a ceiling."""
SIGNATURES: dict[str, int] = {"core": 0, "engine": 0, "services": 0, "views": 0}


@cache
def trees(package: str) -> dict[str, ast.Module]:
    """Path → syntax tree of each module of a package."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / package).rglob("*.py"))
    }


def is_dictionary(node: ast.AST) -> bool:
    """Return whether a hint is a dictionary of anything by text keys."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("dict", "Mapping", "MutableMapping")
        and isinstance(node.slice, ast.Tuple)
        and [ast.unparse(part) for part in node.slice.elts] == ["str", "Any"]
    )


def is_user_json(node: ast.Assign) -> bool:
    """Return whether a statement defines ``core.types.Json``."""
    return ast.unparse(node.targets[0]) == "Json"


def aliases(tree: ast.Module) -> Iterator[str]:
    """The names at the top of a module for such a dictionary; a user's own JSON is allowed."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and is_dictionary(node.value):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


@cache
def known_aliases() -> frozenset[tuple[str, str]]:
    """(module, name) of every alias."""
    return frozenset(
        (f"rallebench.{path.removesuffix('.py').replace('/', '.')}", name)
        for package in PACKAGES
        for path, tree in trees(package).items()
        for name in aliases(tree)
        if name != "Json"
    )


def hints(tree: ast.Module) -> int:
    """The number of dictionaries of anything, aliases included."""
    names = {name for name in aliases(tree) if name != "Json"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            imported = {name.name for name in node.names}
            names |= {name for module, name in known_aliases() if module == node.module} & imported
    user_json = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and is_user_json(node)
    ]
    return sum(
        (is_dictionary(node) and node not in user_json)
        or (isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load))
        for node in ast.walk(tree)
    )


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def subscripts(tree: ast.Module) -> int:
    """The number of constant text keys: ``x["…"]`` and ``x.get("…")``."""
    return sum(
        (isinstance(node, ast.Subscript) and is_text(node.slice))
        or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "get"
            and bool(node.args)
            and is_text(node.args[0])
        )
        for node in ast.walk(tree)
    )


def signatures(tree: ast.Module) -> int:
    """The number of public functions with ``Any`` in their signature."""
    return sum(has_any(node) for node in public_functions(tree.body))


def public_functions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef]:
    """The functions without a leading ``_``, including those of public classes; a value's JSON form does not count."""
    for node in body:
        name = getattr(node, "name", "_")
        if name.startswith("_") or name in ("to_json", "from_json"):
            continue
        if isinstance(node, ast.ClassDef):
            yield from public_functions(node.body)
        elif isinstance(node, ast.FunctionDef):
            yield node


def has_any(node: ast.FunctionDef) -> bool:
    arguments = node.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    given = (*every, *filter(None, [arguments.vararg, arguments.kwarg]))
    annotations = filter(None, [*(argument.annotation for argument in given), node.returns])
    return any(
        isinstance(part, ast.Name) and part.id == "Any"
        for annotation in annotations
        for part in ast.walk(annotation)
    )


def registers(tree: ast.Module) -> bool:
    """Return whether a module registers something: ``DATASETS.register``, ``METRICS.register_judge`` …"""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr.startswith("register")
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id.isupper()
        for node in ast.walk(tree)
    )


@cache
def further_modules(package: str) -> int:
    """The number of modules that register something and did not exist when the ceilings were set."""
    return max(0, sum(map(registers, trees(package).values())) - REGISTERING.get(package, 0))


def too_many_or_few(
    counts: Counter[str], ceilings: dict[str, int], further: int = 0
) -> dict[str, str]:
    """Package → its proper ceiling, if the count is above it, or far below; ``further``: the addition for a new module."""
    names = {*counts, *ceilings}
    rooms = {name: further * further_modules(name) for name in names if further}
    return {
        name: f"{counts[name]}, the ceiling is {ceilings.get(name, 0)}"
        for name in sorted(names)
        if not -rooms.get(name, 0) <= ceilings.get(name, 0) - counts[name] <= SLACK
    }


def test_dictionaries_of_anything_only_become_fewer() -> None:
    counts = Counter({p: sum(map(hints, trees(p).values())) for p in PACKAGES})
    assert too_many_or_few(counts, HINTS, FURTHER_HINTS) == {}, (
        "use a frozen dataclass, or lower the ceiling"
    )


def test_constant_text_keys_only_become_fewer() -> None:
    counts = Counter(
        {
            package: sum(subscripts(t) for path, t in trees(package).items() if path not in READERS)
            for package in PACKAGES
        }
    )
    assert too_many_or_few(counts, SUBSCRIPTS, FURTHER_KEYS) == {}, (
        "use attributes, or lower the ceiling"
    )


def test_signatures_with_any_only_become_fewer() -> None:
    counts = Counter({p: sum(map(signatures, trees(p).values())) for p in TYPED})
    assert too_many_or_few(counts, SIGNATURES) == {}, "name the type, or lower the ceiling"


def test_readers_exist() -> None:
    assert [path for path in READERS if not (ROOT / path).is_file()] == []


SOURCE = """
Row = dict[str, Any]
def f(a: Mapping[str, Any], b: Row) -> dict[str, int]: return a["x"] + a.get("y", 0) + b[0]
def _g(a: Any): return a.get(1)
class C:
    def h(self, *, x: list[Any]): ...
    def to_json(self) -> dict[str, Any]: ...
"""


def test_counting_sees_hints_keys_and_signatures() -> None:
    tree = ast.parse(SOURCE)
    assert (hints(tree), subscripts(tree), signatures(tree)) == (4, 2, 2)
    assert list(aliases(tree)) == ["Row"]
    assert ("rallebench.core.experiments", "Row") in known_aliases()


@pytest.mark.slow
def test_mypy_finds_nothing(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
