"""A small interpreter for the expression of an eval template, over plain values only.

Only nodes with a handler can run, and each operation is paid for before it runs. Names refer only to the template's
variables, calls only to the tables of ``safe_methods`` and ``safe_functions``.

Reasons against simpleeval 1.0.8: with the same methods it built 810 MB by ``join`` and 100 MB from ``'%99999999d' % 1``
and ``'x'.zfill(99999999)``, ran out of 2 GB in ``replace``, took 1.5 to 2 s for sums of lists, nested lists and
``9**4000000``, ignored ``!r`` in f-strings, returned bound methods as values, and has neither set comprehensions nor
``.format``. Fixing all this would replace its handlers with this file.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from rallebench.chains.safe_format import check_spec, format_value
from rallebench.chains.safe_functions import FUNCTIONS, arithmetic, holds
from rallebench.chains.safe_methods import METHODS, elements
from rallebench.chains.safe_syntax import Parsed
from rallebench.chains.safe_values import (
    NUMBERS,
    STEP,
    Budget,
    TemplateRefused,
    Value,
    check_key,
    clip,
    item,
    join_texts,
    kind,
)

Scope = Mapping[str, Value]
_TROUBLE = (TypeError, ValueError, ArithmeticError, LookupError)


def evaluate(parsed: Parsed, variables: Scope, budget: Budget) -> Value:
    """Evaluate a checked expression over plain ``variables``. Raises TemplateRefused with the position."""
    return _Evaluation(parsed, budget).value(parsed.body, variables)


class _Evaluation:
    """One evaluation: a checked tree and its budget."""

    def __init__(self, parsed: Parsed, budget: Budget) -> None:
        self.parsed = parsed
        self.budget = budget

    def value(self, node: ast.expr, scope: Scope) -> Value:
        """Evaluate ``node``. An error has the position of the innermost failing node."""
        try:
            self.budget.left -= STEP  # spend(STEP), inlined in the most frequent line
            if self.budget.left < 0:
                self.budget.spend(0)
            return _HANDLERS[type(node)](self, node, scope)
        except TemplateRefused as refusal:
            if refusal.at is None:
                refusal.at = self.parsed.place(node)
            raise
        except _TROUBLE as error:
            raise TemplateRefused(
                f"{_source(node)} cannot be computed: {_reason(error)}", self.parsed.place(node)
            ) from None

    def values(self, nodes: Iterable[ast.expr], scope: Scope) -> list[Value]:
        return [self.value(node, scope) for node in nodes]

    # ── names and indexes ──

    def constant(self, node: ast.Constant, scope: Scope) -> Value:
        return node.value

    def name(self, node: ast.Name, scope: Scope) -> Value:
        return scope[node.id]

    def subscript(self, node: ast.Subscript, scope: Scope) -> Value:
        container = self.value(node.value, scope)
        if isinstance(node.slice, ast.Slice):
            return self.part(container, node.slice, scope)
        key = self.value(node.slice, scope)
        try:
            return item(container, key, "", self.budget)
        except TemplateRefused:
            return item(
                container, key, _source(node.value), self.budget
            )  # evaluated again, for the message

    def part(self, container: Value, node: ast.Slice, scope: Scope) -> Value:
        bounds = [
            None if bound is None else self.value(bound, scope)
            for bound in (node.lower, node.upper, node.step)
        ]
        if type(container) not in (str, list, tuple):
            raise TemplateRefused(f"{kind(container)} cannot be sliced")
        span = slice(*bounds)
        length = len(range(*span.indices(len(container))))
        if type(container) is str:
            self.budget.text(length, container.isascii())
        else:
            self.budget.elements(length)
        return container[span]

    # ── operators ──

    def chain(self, node: ast.BinOp, scope: Scope) -> Value:
        """Evaluate ``a + b + c …`` without recursion; texts are joined once, at the end."""
        links: list[ast.BinOp] = []
        leftmost: ast.expr = node
        while isinstance(leftmost, ast.BinOp):
            links.append(leftmost)
            leftmost = leftmost.left
        total = self.value(leftmost, scope)
        texts: list[str] = []
        for link in reversed(links):
            self.budget.spend(STEP)
            right = self.value(link.right, scope)
            if (
                isinstance(link.op, ast.Add)
                and type(right) is str
                and (texts or type(total) is str)
            ):
                texts = texts or [total]
                texts.append(right)
                continue
            if texts:
                total, texts = join_texts(texts, self.budget), []
            try:
                total = arithmetic(link.op, total, right, self.budget)
            except TemplateRefused as refusal:
                refusal.at = self.parsed.place(link.right)
                raise
        return join_texts(texts, self.budget) if texts else total

    def unary(self, node: ast.UnaryOp, scope: Scope) -> Value:
        operand = self.value(node.operand, scope)
        if isinstance(node.op, ast.Not):
            return not operand
        if type(operand) not in NUMBERS:
            raise TemplateRefused(f"a sign before {kind(operand)} is not allowed")
        return -operand if isinstance(node.op, ast.USub) else +operand

    def boolean(self, node: ast.BoolOp, scope: Scope) -> Value:
        last: Value = None
        for part in node.values:
            last = self.value(part, scope)
            if bool(last) is isinstance(node.op, ast.Or):
                break
        return last

    def compare(self, node: ast.Compare, scope: Scope) -> bool:
        left = self.value(node.left, scope)
        for operator, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator, scope)
            if not holds(operator, left, right, self.budget):
                return False
            left = right
        return True

    def conditional(self, node: ast.IfExp, scope: Scope) -> Value:
        return self.value(node.body if self.value(node.test, scope) else node.orelse, scope)

    # ── texts and calls ──

    def fstring(self, node: ast.JoinedStr, scope: Scope) -> str:
        return join_texts((self.value(part, scope) for part in node.values), self.budget)

    def format_field(self, node: ast.FormattedValue, scope: Scope) -> str:
        value = self.value(node.value, scope)
        conversion = "" if node.conversion < 0 else chr(node.conversion)
        spec = self.value(node.format_spec, scope) if node.format_spec else ""
        check_spec(spec)
        return format_value(value, conversion, spec, self.budget)

    def call(self, node: ast.Call, scope: Scope) -> Value:
        if isinstance(node.func, ast.Attribute):
            receiver = self.value(node.func.value, scope)
            method = METHODS.get(type(receiver), {}).get(node.func.attr)
            if method is None:
                raise TemplateRefused(f"{kind(receiver)} has no method .{node.func.attr}")
            arguments: tuple[Value, ...] = (receiver, *self.values(node.args, scope))
        else:
            assert isinstance(node.func, ast.Name)
            method = FUNCTIONS[node.func.id]
            arguments = tuple(self.values(node.args, scope))
        named = {word.arg or "": self.value(word.value, scope) for word in node.keywords}
        return method(self.budget, *arguments, **named)

    # ── displays and comprehensions ──

    def display(self, node: ast.List | ast.Tuple | ast.Set, scope: Scope) -> Value:
        self.budget.elements(len(node.elts))
        members = self.values(node.elts, scope)
        if isinstance(node, ast.Set):
            return {check_key(value, self.budget) for value in members}
        return tuple(members) if isinstance(node, ast.Tuple) else members

    def dictionary(self, node: ast.Dict, scope: Scope) -> dict[Value, Value]:
        self.budget.elements(2 * len(node.keys))
        return {
            check_key(self.value(key, scope), self.budget): self.value(value, scope)
            for key, value in zip(node.keys, node.values, strict=True)
            if key is not None
        }

    def comprehension(self, node: Any, scope: Scope) -> Value:
        inner = dict(scope)
        rounds = self.rounds(node.generators, inner)
        if isinstance(node, ast.DictComp):
            return {
                check_key(self.value(node.key, inner), self.budget): self.value(node.value, inner)
                for _ in rounds
            }
        if isinstance(node, ast.SetComp):
            return {check_key(self.value(node.elt, inner), self.budget) for _ in rounds}
        return [self.value(node.elt, inner) for _ in rounds]

    def rounds(
        self, generators: list[ast.comprehension], scope: dict[str, Value]
    ) -> Iterator[None]:
        """Yield once for each combination that meets the conditions, with its names bound in ``scope``."""
        first, inner = generators[0], generators[1:]
        for element in elements(self.value(first.iter, scope), self.budget):
            self.budget.elements(1)
            self.budget.spend(STEP)
            self.bind(first.target, element, scope)
            if all(self.value(condition, scope) for condition in first.ifs):
                if inner:
                    yield from self.rounds(inner, scope)
                else:
                    yield

    def bind(self, target: ast.expr, value: Value, scope: dict[str, Value]) -> None:
        if isinstance(target, ast.Name):
            scope[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = elements(value, self.budget)
            if len(parts) != len(target.elts):
                raise TemplateRefused(
                    f"{len(parts)} values cannot be assigned to {len(target.elts)} names"
                )
            for name, part in zip(target.elts, parts, strict=True):
                self.budget.spend(STEP // 2)
                self.bind(name, part, scope)


_HANDLERS: Mapping[type[ast.expr], Callable[[_Evaluation, Any, Scope], Value]] = {
    ast.Constant: _Evaluation.constant,
    ast.Name: _Evaluation.name,
    ast.Subscript: _Evaluation.subscript,
    ast.BinOp: _Evaluation.chain,
    ast.UnaryOp: _Evaluation.unary,
    ast.BoolOp: _Evaluation.boolean,
    ast.Compare: _Evaluation.compare,
    ast.IfExp: _Evaluation.conditional,
    ast.JoinedStr: _Evaluation.fstring,
    ast.FormattedValue: _Evaluation.format_field,
    ast.Call: _Evaluation.call,
    ast.List: _Evaluation.display,
    ast.Tuple: _Evaluation.display,
    ast.Set: _Evaluation.display,
    ast.Dict: _Evaluation.dictionary,
    ast.ListComp: _Evaluation.comprehension,
    ast.SetComp: _Evaluation.comprehension,
    ast.DictComp: _Evaluation.comprehension,
    ast.GeneratorExp: _Evaluation.comprehension,
}


def _source(node: ast.AST) -> str:
    """Return the source of ``node``, shortened, for a message."""
    try:
        text: str = ast.unparse(node)
        return clip(text)
    except (RecursionError, ValueError):
        return "this"


def _reason(error: Exception) -> str:
    """Return Python's own message, unless it would name functions of this package."""
    words = str(error) or type(error).__name__
    if any(
        sign in words
        for sign in ("positional argument", "keyword argument", "keyword-only", "multiple values")
    ):
        return "it was given the wrong arguments"
    return words
