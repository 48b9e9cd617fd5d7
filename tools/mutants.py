"""Changes 200 places of rallebench, one at a time, and sees whether the tests notice.

    python tools/mutants.py list                 # choose them (seeded) and write tools/mutants.json
    python tools/mutants.py run [SECONDS]        # go on with those that have no result yet, one process at a time

A mutant is known by the name of its function, the source text of the place, its number among equal ones there, and the new
text, not by its module: after a move it is found again. One whose place is gone is recorded as ``gone``. The tests of a
mutant are the examples of its module, the files that name its module or function or mirror its folder, at most MOST, and
the golden workspace. Each is made in a copy of the project, so that a killed process leaves nothing behind.
"""

from __future__ import annotations

import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).with_name("mutants.json")
NUMBER, SEED, MOST, PATIENCE = 200, 20261123, 25, 600
FLIPPED = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}


class Mutant(NamedTuple):
    """``number`` counts equal pairs of source and change in functions of that name, over all modules in their order."""

    function: str
    source: str
    change: str
    number: int


class Place(NamedTuple):
    file: Path
    start: tuple[int, int]
    end: tuple[int, int]


def changes(node: ast.AST, text: str) -> Iterator[str]:
    """New source texts of an expression or a statement."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in FLIPPED:
        left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
        yield f"({left} {FLIPPED[type(node.ops[0])]} {right})"
    elif isinstance(node, ast.BoolOp):
        word = " or " if isinstance(node.op, ast.And) else " and "
        yield "(" + word.join(f"({ast.unparse(value)})" for value in node.values) + ")"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"bool({ast.unparse(node.operand)})"
    elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        if not isinstance(node.value, bool):
            yield repr(node.value + 1)
    elif isinstance(node, ast.Return) and node.value is not None and text != "return None":
        yield "return None"
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        sign = "-" if isinstance(node.op, ast.Add) else "+"
        if not any(
            isinstance(side, (ast.JoinedStr, ast.Constant))
            and isinstance(getattr(side, "value", ""), str)
            for side in (node.left, node.right)
        ):
            yield f"({ast.unparse(node.left)} {sign} {ast.unparse(node.right)})"


def inner(function: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a function's body but those of functions in it, of texts in braces, and of annotations."""
    queue = list(getattr(function, "body", ()))
    while queue:
        node = queue.pop(0)
        if isinstance(
            node,
            (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.JoinedStr, ast.AnnAssign),
        ):
            continue
        yield node
        queue.extend(ast.iter_child_nodes(node))


def places(root: Path) -> dict[Mutant, Place]:
    """All possible mutants of a project and where they are."""
    result: dict[Mutant, Place] = {}
    counts: Counter[tuple[str, str, str]] = Counter()
    for file in sorted((root / "rallebench").rglob("*.py")):
        if "gui" in file.relative_to(root).parts:
            continue
        tree = ast.parse(file.read_text("utf-8"))
        for function in ast.walk(tree):
            if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            for node in inner(function):
                if not isinstance(node, (ast.expr, ast.stmt)):
                    continue
                source = ast.unparse(node)
                for change in changes(node, source):
                    key = (function.name, source, change)
                    start, end = (
                        (node.lineno, node.col_offset),
                        (node.end_lineno or 0, node.end_col_offset or 0),
                    )
                    result[Mutant(*key, counts[key])] = Place(file, start, end)
                    counts[key] += 1
    return result


def choose(root: Path) -> list[Mutant]:
    """NUMBER mutants, at most one a function."""
    functions: dict[str, list[Mutant]] = {}
    for mutant in places(root):
        functions.setdefault(mutant.function, []).append(mutant)
    draw = random.Random(SEED)
    return [draw.choice(functions[name]) for name in draw.sample(sorted(functions), NUMBER)]


def tests_of(root: Path, mutant: Mutant, place: Place) -> list[str]:
    """The module's own examples, test files that name the function or the module or mirror its folder, the most telling
    first, and the golden workspace."""
    path = place.file.relative_to(root).with_suffix("")
    module = ".".join(path.parts).removesuffix(".__init__")
    parent, _, name = module.rpartition(".")
    named = re.compile(
        rf"\b{re.escape(module)}\b|from {re.escape(parent)} import [^#]*?\b{re.escape(name)}\b"
    )
    function = re.compile(rf"\b{re.escape(mutant.function)}\b")
    mirrors = [root / "tests" / Path(*path.parts[1:depth]) for depth in range(2, len(path.parts))]
    weights: dict[Path, int] = {}
    for file in (root / "tests").rglob("test_*.py"):
        text = file.read_text("utf-8")
        weight = 4 * bool(function.search(text)) + 3 * bool(named.search(text))
        weight += sum(2 for mirror in mirrors if mirror in file.parents)
        if weight and "safety" not in file.parts:
            weights[file] = weight
    best = sorted(weights, key=lambda file: (-weights[file], file))[:MOST]
    golden = root / "tests" / "safety" / "test_golden_workspace.py"
    return [str(file.relative_to(root)) for file in (place.file, *best, golden)]


def change(place: Place, text: str) -> None:
    """Write the mutant's text at its place."""
    lines = place.file.read_bytes().splitlines(keepends=True)
    (first, begin), (last, end) = place.start, place.end
    before, after = lines[first - 1][:begin], lines[last - 1][end:]
    lines[first - 1 : last] = [before + text.encode() + after]
    place.file.write_bytes(b"".join(lines))


def judge(mutant: Mutant) -> dict[str, str]:
    """``killed`` or ``survived`` with the tests that ran, ``gone``, or ``late`` if they took too long (also killed)."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        shutil.copytree(
            PROJECT,
            root,
            ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", "runs", "cache"),
        )
        shutil.copytree(PROJECT / "tests" / "golden", root / "tests" / "golden", dirs_exist_ok=True)
        place = places(root).get(mutant)
        if place is None:
            return {"result": "gone"}
        change(place, mutant.change)
        tests = tests_of(root, mutant, place)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-n",
            "0",
            "-x",
            "-q",
            "--no-header",
            "--tb=no",
            *tests,
        ]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                command, cwd=root, env=environment, capture_output=True, text=True, timeout=PATIENCE
            )
        except subprocess.TimeoutExpired:
            return {"result": "late", "tests": " ".join(tests)}
        result = {0: "survived", 1: "killed", 2: "killed"}.get(
            done.returncode, f"exit code {done.returncode}"
        )
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        return {"result": result, "tests": failed[0] if failed else " ".join(tests)}


def save(rows: list[dict[str, object]]) -> None:
    beside = RESULTS.with_suffix(".new")
    beside.write_text(json.dumps(rows, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    beside.replace(RESULTS)


def main(words: list[str]) -> None:
    if words[:1] == ["list"]:
        save([{**mutant._asdict()} for mutant in choose(PROJECT)])
        return
    os.nice(19)
    rows = json.loads(RESULTS.read_text("utf-8"))
    end = time.monotonic() + float(words[1] if words[1:] else "inf")
    for row in rows:
        if "result" not in row and time.monotonic() < end:
            row.update(judge(Mutant(row["function"], row["source"], row["change"], row["number"])))
            save(rows)
            print(
                row["result"],
                row["function"],
                row["source"][:60],
                "→",
                row["change"][:60],
                flush=True,
            )
    print(dict(Counter(row.get("result", "not run") for row in rows)))


if __name__ == "__main__":
    main(sys.argv[1:])
