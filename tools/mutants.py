"""Changes 200 places of rallebench, one at a time, and sees whether the tests notice.

Needs coverage. A mutant is known by the name of its function, the source text of the place, its number among equal ones
there, and the new text, not by its module: after a move it is found again. One whose place is gone is recorded as ``gone``,
and by hand as ``equal`` one that changes no result.
The tests of a mutant are those that execute its lines, at most MAX_TESTS, and the golden workspace. Each mutant is made in a copy
of the project, so that a killed process leaves nothing behind.
"""

from __future__ import annotations

import argparse
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
COVERAGE = PROJECT / ".coverage"
NUMBER, SEED, MAX_TESTS, MUTANT_SECONDS = 200, 20261123, 60, 600
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


def cover() -> None:
    """Run the default tests, and note in COVERAGE which test executes which line.

    Left out are those in a browser, and those that become another user, who may not write COVERAGE.
    """
    measured = ["--source=rallebench", f"--data-file={COVERAGE}", "-m", "pytest"]
    chosen = ["-n", "0", "-m", "not slow and not browser", "--ignore=tests/cli/test_unwritable.py"]
    subprocess.run([sys.executable, "-m", "coverage", "run", *measured, *chosen], cwd=PROJECT)


def tests_of(place: Place) -> list[str]:
    """The module's own examples, test functions that execute a place, those that mirror its folder first, and the golden
    workspace."""
    from coverage.sqldata import CoverageData

    data = CoverageData(str(COVERAGE))
    data.read()
    lines = data.contexts_by_lineno(str(place.file))
    # A line inside a statement may have no record of its own.
    first = max((n for n in lines if n <= place.start[0] and any(lines[n])), default=0)
    inside = [first, *range(place.start[0], place.end[0] + 1)]
    contexts = {context for line in inside for context in lines.get(line, ())}
    functions = {context for context in contexts if context.startswith("tests.")}
    folder = place.file.relative_to(PROJECT / "rallebench").parts[0]
    order = sorted(functions, key=lambda name: (not name.startswith(f"tests.{folder}."), name))
    chosen = [
        f"{name.rpartition('.')[0].replace('.', '/')}.py::{name.rpartition('.')[2]}"
        for name in order
    ]
    golden = "tests/safety/test_golden_workspace.py"
    return [str(place.file.relative_to(PROJECT)), *chosen[:MAX_TESTS], golden]


def change(place: Place, text: str) -> None:
    """Write the mutant's text at its place."""
    lines = place.file.read_bytes().splitlines(keepends=True)
    (first, begin), (last, end) = place.start, place.end
    before, after = lines[first - 1][:begin], lines[last - 1][end:]
    lines[first - 1 : last] = [before + text.encode() + after]
    place.file.write_bytes(b"".join(lines))


def judge(mutant: Mutant) -> dict[str, str]:
    """``killed`` or ``survived`` with the tests that ran, ``gone``, or ``late`` if they took too long (also killed)."""
    place = places(PROJECT).get(mutant)
    if place is None:
        return {"result": "gone"}
    tests = tests_of(place)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        left_out = shutil.ignore_patterns(".git", ".venv", "__pycache__", "runs", "cache")
        shutil.copytree(PROJECT, root, ignore=left_out)
        shutil.copytree(PROJECT / "tests" / "golden", root / "tests" / "golden", dirs_exist_ok=True)
        change(place._replace(file=root / place.file.relative_to(PROJECT)), mutant.change)
        options = ["-n", "0", "-x", "-q", "--no-header", "--tb=no"]
        # Of the module only its examples: some have a class or a function whose name begins like a test's.
        options += ["-o", "python_classes=", "-o", "python_functions=test_*"]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *options, *tests],
                cwd=root,
                env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                text=True,
                timeout=MUTANT_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return {"result": "late", "tests": f"{len(tests)} tests"}
    # If a test module can no longer be imported, pytest names it and exits with 4.
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    if failed:
        return {"result": "killed", "tests": failed[0]}
    result = {0: "survived", 1: "killed", 2: "killed"}.get(
        done.returncode, f"exit code {done.returncode}"
    )
    return {"result": result, "tests": f"{len(tests)} tests"}


def save(rows: list[dict[str, object]]) -> None:
    beside = RESULTS.with_suffix(".new")
    beside.write_text(json.dumps(rows, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    beside.replace(RESULTS)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help=f"choose them (seeded) and write {RESULTS.name}")
    verbs.add_parser("cover", help="note which test executes which line; needed before run")
    run = verbs.add_parser("run", help="go on with those without a result, one process at a time")
    run.add_argument("seconds", nargs="?", type=float, default=float("inf"))
    run.add_argument("--survivors", action="store_true", help="those that survived, once more")
    flags = parser.parse_args()
    if flags.verb == "list":
        save([{**mutant._asdict()} for mutant in choose(PROJECT)])
    elif flags.verb == "cover":
        cover()
    elif COVERAGE.is_file():
        run_mutants(flags.seconds, "survived" if flags.survivors else None)
    else:
        parser.error("No test is known to execute a line yet; run `python tools/mutants.py cover`.")


def run_mutants(seconds: float, result: str | None) -> None:
    """Judge every mutant with this recorded result, for so many seconds."""
    rows = json.loads(RESULTS.read_text("utf-8"))
    end = time.monotonic() + seconds
    for row in rows:
        if row.get("result") == result and time.monotonic() < end:
            row.update(judge(Mutant(*(row[name] for name in Mutant._fields))))
            save(rows)
            line = f"{row['function']} {row['source'][:60]} → {row['change'][:60]}"
            print(row["result"], line, flush=True)
    print(dict(Counter(row.get("result", "not run") for row in rows)))


if __name__ == "__main__":
    main()
