"""Examples in the manual: the Python blocks of a page, run in order, and the output below them."""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import re
from typing import Any

BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def examples(page: str) -> list[tuple[str, str]]:
    """(code, expected output or '') of every Python block."""
    return [(code, output or "") for code, output in BLOCK.findall(page)]


def run_cell(code: str, names: dict[str, Any]) -> str:
    """The output of a cell as in a notebook: printed text, and the value of its last expression."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
            if value is not None:
                print(repr(value))
    return printed.getvalue()


def mismatch(expected: str, output: str) -> str:
    """The reason why an output is not the expected one, where ``...`` stands for any text; '' if it is."""
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    if doctest.OutputChecker().check_output(expected, output, options):
        return ""
    return f"expected:\n{expected}\ngot:\n{output}"
