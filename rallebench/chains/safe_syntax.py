"""The checked syntax tree of an eval template; nothing is evaluated here.

Three gates in order: a scan of the text (length, nesting, brackets and quotes), Python's parser, and a walk over the
tree that permits only the nodes of ``safe_eval``.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from functools import lru_cache

from rallebench.chains.safe_format import parse_format
from rallebench.chains.safe_functions import FUNCTIONS, OPERATORS, PERCENT
from rallebench.chains.safe_methods import METHOD_NAMES
from rallebench.chains.safe_values import (
    INTEGER_BOUND,
    MAX_CODE,
    MAX_NESTING,
    MAX_TEMPLATE,
    TemplateRefused,
    check_limit,
    clip,
)

_MARK = re.compile(r"""[()\[\]{}#]|'''|\"""|'|\"|\d{41}""", re.ASCII)
_PREFIX = re.compile(r"[rRbBuUfFtT]{1,2}$")
_ENDS = {
    "'": re.compile(r"[^'\\\r\n]*(?:\\.[^'\\\r\n]*)*'", re.DOTALL),
    '"': re.compile(r'[^"\\\r\n]*(?:\\.[^"\\\r\n]*)*"', re.DOTALL),
    "'''": re.compile(r"[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''", re.DOTALL),
    '"""': re.compile(r'[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""', re.DOTALL),
}
_PAIRS = {")": "(", "]": "[", "}": "{"}
_STATEMENT = re.compile(
    r"\s*(import|from|def|class|while|for|with|return|del|global|nonlocal|raise|try|assert|async|pass|if|exec|print)\b"
)
_FILE = "<template>"

_ALLOWED_NODES = (
    "Expression Constant Name Load Store Attribute Call keyword Subscript Slice BinOp UnaryOp "
    "BoolOp Compare IfExp operator unaryop boolop cmpop JoinedStr FormattedValue List Tuple "
    "Set Dict ListComp SetComp DictComp GeneratorExp comprehension"
)
_ALLOWED: tuple[type[ast.AST], ...] = tuple(getattr(ast, name) for name in _ALLOWED_NODES.split())
_REFUSED = {
    ast.Lambda: "lambda",
    ast.NamedExpr: "an assignment (:=)",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.Starred: "unpacking with *",
}
Comprehension = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A checked expression; ``names``: its variables and their first positions."""

    body: ast.expr
    names: dict[str, int]
    line_starts: tuple[int, ...]
    text: str

    def place(self, node: ast.AST) -> int:
        """Return the position of ``node`` in the template, from 0."""
        return _place(node, self.text, self.line_starts)


def parse(text: str) -> Parsed:
    """Parse and check an eval template. Raises TemplateRefused with the position."""
    check_limit(len(text), MAX_TEMPLATE, "a template of {} characters")
    return _cached_parse(text) if len(text) <= 2_000 else _parse(text)


def _parse(text: str) -> Parsed:
    if not text.strip():
        raise TemplateRefused("the template is empty")
    _scan(text)
    starts = (0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text)))
    # inside brackets an expression may have several lines
    tree = _python_tree(f"({text}\n)", text, starts)
    try:
        names = _check(tree.body, text, starts)
    except _At as error:
        raise TemplateRefused(error.message, _place(error.node, text, starts)) from None
    return Parsed(tree.body, names, starts, text)


_cached_parse = lru_cache(maxsize=32)(_parse)


def _place(node: ast.AST, text: str, starts: tuple[int, ...]) -> int:
    line = min(getattr(node, "lineno", 1), len(starts)) - 1
    column = getattr(node, "col_offset", 0) - (line == 0)  # the added bracket
    end = starts[line + 1] if line + 1 < len(starts) else len(text)
    before = text[starts[line] : end].encode("utf-8", "surrogatepass")[: max(0, column)]
    return starts[line] + len(before.decode("utf-8", "ignore"))


# ── first gate: the text ─────────────────────────────────────────────────────


def _scan(text: str) -> None:
    """Check that brackets and quotes match, and the limits of nesting and code. Raises TemplateRefused.

    Brackets within an f-string are left to Python's parser, because quotes nest differently in its versions; instead, a
    template with an f-string must be short.
    """
    open_brackets: list[tuple[str, int]] = []
    position = in_strings = 0
    while mark := _MARK.search(text, position):
        start, position = mark.span()
        sign = mark[0]
        if sign[0] in "'\"":
            if _is_fstring(text, start):
                return _check_code_length(len(text), " with an f-string")
            end = _ENDS[sign].match(text, position)
            if not end:
                raise TemplateRefused(f"the quote {sign} is not closed", start)
            in_strings += end.end() - position - len(sign)
            position = end.end()
        elif sign == "#":
            line_end = re.compile(r"[\r\n]|$").search(text, position)
            position = line_end.start() if line_end else len(text)
        elif sign in "([{":
            open_brackets.append((sign, start))
            if len(open_brackets) > MAX_NESTING:
                too_deep = f"brackets nested more than {MAX_NESTING} deep are not allowed"
                raise TemplateRefused(too_deep, start)
        elif sign in ")]}":
            if not open_brackets or open_brackets.pop()[0] != _PAIRS[sign]:
                raise TemplateRefused(f"this '{sign}' closes nothing", start)
        else:
            raise TemplateRefused("a number of more than 40 digits is not allowed", start)
        _check_code_length(position - in_strings)
    if open_brackets:
        raise TemplateRefused(f"this '{open_brackets[-1][0]}' is not closed", open_brackets[-1][1])
    return _check_code_length(len(text) - in_strings)


def _is_fstring(text: str, quote: int) -> bool:
    prefix = _PREFIX.search(text, max(0, quote - 2), quote)
    return prefix is not None and any(letter in "fFtT" for letter in prefix[0])


def _check_code_length(length: int, what: str = "") -> None:
    if length > MAX_CODE:
        raise TemplateRefused(
            f"a template{what} may have at most {MAX_CODE:,} characters outside of plain texts in quotes"
        )


# ── second gate: Python's parser ─────────────────────────────────────────────


def _python_tree(source: str, text: str, starts: tuple[int, ...]) -> ast.Expression:
    try:
        with warnings.catch_warnings():
            # from Python 3.12 on, '\T' in RaLLe's own configs is a warning
            warnings.filterwarnings("ignore", module=re.escape(_FILE))
            return ast.parse(source, _FILE, mode="eval")
    except SyntaxError as error:
        line = min(error.lineno or 1, len(starts)) - 1
        at = starts[line] + max(0, (error.offset or 1) - 1 - (line == 0))
        raise TemplateRefused(_why_no_expression(text, error.msg), min(at, len(text))) from None
    except (RecursionError, MemoryError):
        raise TemplateRefused("the expression is nested too deeply or is too long") from None
    except UnicodeEncodeError as error:
        half = "half of a surrogate pair is not allowed: it is not a character"
        raise TemplateRefused(half, error.start - 1) from None
    except (ValueError, OverflowError) as error:  # a null byte, before Python 3.11.4
        reason = clip(str(error), 100)
        raise TemplateRefused(f"this is not a Python expression ({reason})") from None


def _why_no_expression(text: str, reason: str) -> str:
    if statement := _STATEMENT.match(text):
        return f"'{statement[1]}' is not allowed: an eval template is one expression, not a program"
    return f"this is not a Python expression ({clip(reason, 100)})"


# ── third gate: the tree ─────────────────────────────────────────────────────


class _At(Exception):
    def __init__(self, message: str, node: ast.AST) -> None:
        super().__init__(message)
        self.message = message
        self.node = node


def _check(body: ast.expr, text: str, starts: tuple[int, ...]) -> dict[str, int]:
    """Return the free names of a tree. Raises _At for a forbidden node, or one deeper than ``MAX_NESTING``."""
    names: dict[str, int] = {}
    stack: list[tuple[ast.AST, int, frozenset[str]]] = [(body, 1, frozenset())]
    while stack:
        node, depth, local = stack.pop()
        if depth > MAX_NESTING:
            raise _At(f"an expression nested more than {MAX_NESTING} deep is not allowed", node)
        _check_node(node)
        if isinstance(node, ast.Name) and node.id not in local:
            if node.id in FUNCTIONS:
                raise _At(f"the function {node.id} can only be called, as in {node.id}(...)", node)
            names.setdefault(node.id, _place(node, text, starts))
        children = _scoped_children(node, local)
        # a chain a + b + c nests to the left, but is evaluated without recursion
        stack.extend(
            (child, depth + (not (isinstance(node, ast.BinOp) and child is node.left)), scope)
            for child, scope in reversed(children)
        )
    return names


def _scoped_children(node: ast.AST, local: frozenset[str]) -> list[tuple[ast.AST, frozenset[str]]]:
    """Return the parts of ``node`` to check, each with the names bound by surrounding comprehensions."""
    if isinstance(node, ast.Call):
        # the names of function and method were checked with the call itself
        receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        values = [word.value for word in node.keywords]
        return [(child, local) for child in (*receiver, *node.args, *values)]
    if not isinstance(node, Comprehension):
        return [(child, local) for child in ast.iter_child_nodes(node)]
    children: list[tuple[ast.AST, frozenset[str]]] = []
    for generator in node.generators:
        children.append((generator.iter, local))
        local = local | _targets(generator)
        children.extend((condition, local) for condition in generator.ifs)
    results = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
    return [*children, *((result, local) for result in results)]


def _targets(generator: ast.comprehension) -> frozenset[str]:
    if generator.is_async:
        raise _At("async is not allowed", generator.iter)
    names = set()
    for node in ast.walk(generator.target):
        if isinstance(node, ast.Name):
            if node.id in FUNCTIONS or node.id.startswith("__"):
                raise _At(f"{clip(node.id)!r} is not allowed as a name of your own", node)
            names.add(node.id)
        elif not isinstance(node, (ast.Tuple, ast.List, ast.expr_context)):
            raise _At("only names are allowed between 'for' and 'in'", generator.target)
    return frozenset(names)


def _check_node(node: ast.AST) -> None:
    if not isinstance(node, _ALLOWED):
        raise _At(f"{_REFUSED.get(type(node), type(node).__name__)} is not allowed", node)
    if isinstance(node, ast.Constant):
        _check_constant(node)
    elif isinstance(node, ast.Attribute):
        raise _At(_why_no_attribute(node.attr), node)
    elif isinstance(node, ast.Call):
        _check_call(node)
    elif isinstance(node, ast.BinOp) and type(node.op) not in OPERATORS:
        operator = type(node.op).__name__
        raise _At(f"the operator {operator} is not allowed: only + - * / // % and ** are", node)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _is_text(node.left):
        raise _At(PERCENT, node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        raise _At("the operator ~ is not allowed", node)
    elif isinstance(node, ast.Dict) and None in node.keys:
        raise _At("unpacking with ** is not allowed", node)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _check_constant(node: ast.Constant) -> None:
    value = node.value
    if type(value) not in (str, int, float, bool, type(None)):
        allowed = "only texts, numbers, True, False and None are"
        raise _At(f"{clip(repr(value))} is not allowed: {allowed}", node)
    if type(value) is int and value >= INTEGER_BOUND:
        raise _At("a whole number beyond 2**64 is not allowed", node)


def _check_call(node: ast.Call) -> None:
    if any(word.arg is None for word in node.keywords):
        raise _At("unpacking with ** is not allowed", node)
    if isinstance(node.func, ast.Attribute):
        if node.func.attr not in METHOD_NAMES:
            raise _At(_why_no_attribute(node.func.attr), node)
        if node.func.attr == "format" and isinstance(node.func.value, ast.Constant):
            _check_format(node.func.value)
    elif not isinstance(node.func, ast.Name):
        raise _At("only functions and methods can be called, by their names", node)
    elif node.func.id not in FUNCTIONS:
        known = ", ".join(FUNCTIONS)
        raise _At(f"calling {clip(node.func.id)!r} is not allowed: the functions are {known}", node)


def _check_format(node: ast.Constant) -> None:
    try:
        parse_format(node.value if isinstance(node.value, str) else "")
    except TemplateRefused as refusal:
        raise _At(f"in the text before .format, {refusal.message}", node) from None


def _why_no_attribute(name: str) -> str:
    if name.startswith("_"):
        return f"attributes that begin with an underscore, such as .{clip(name)}, are not allowed"
    if name in METHOD_NAMES:
        return f"the method .{name} can only be called, as in .{name}(...)"
    return f"the attribute .{clip(name)} is not allowed: only the harmless methods of texts, lists and dicts are"
