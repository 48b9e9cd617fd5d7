"""Arithmetic and comparison of plain values; results are bounded, or paid for in advance."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from rallebench.chains.safe_limits import Budget, TemplateRefused
from rallebench.chains.safe_methods import count_equal, search_cost
from rallebench.chains.safe_values import NUMBERS, Value, check_key, check_number, equal, kind, less

SIGNS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
PERCENT = "formatting a text with % is not allowed: use .format(...) or an f-string"
_MOST_EXPONENT = 64

_NUMERIC: Mapping[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
    ast.FloorDiv: lambda left, right: left // right,
    ast.Mod: lambda left, right: left % right,
    ast.Pow: lambda left, right: left**right,
}


def arithmetic(operator: ast.operator, left: Value, right: Value, budget: Budget) -> Value:
    """``left + right`` and so on, for numbers; concatenation of lists, repetition of texts and lists."""
    if type(left) in NUMBERS and type(right) in NUMBERS:
        if (
            isinstance(operator, ast.Pow)
            and type(left) is not float
            and abs(right) > _MOST_EXPONENT
        ):
            raise TemplateRefused(
                f"a power with an exponent beyond {_MOST_EXPONENT} is not allowed"
            )
        return check_number(
            _NUMERIC[type(operator)](left, right)
        )  # at most 4,096 bits before the check
    if isinstance(operator, ast.Add) and type(left) is type(right) and type(left) in (list, tuple):
        budget.elements(len(left) + len(right))
        return left + right
    if isinstance(operator, ast.Mult):
        sequence, times = (right, left) if type(left) in (int, bool) else (left, right)
        if type(sequence) in (str, list, tuple) and type(times) in (int, bool):
            return _repeated(sequence, max(0, times), budget)
    if isinstance(operator, ast.Mod) and type(left) is str:
        raise TemplateRefused(PERCENT)
    sign = SIGNS[type(operator)]
    hint = (
        ": use str(...) or an f-string" if sign == "+" and str in (type(left), type(right)) else ""
    )
    raise TemplateRefused(f"{kind(left)} {sign} {kind(right)} is not allowed{hint}")


def _repeated(sequence: Value, times: int, budget: Budget) -> Value:
    if type(sequence) is str:
        budget.text(len(sequence) * times, sequence.isascii())
    else:
        budget.elements(len(sequence) * times)
    return sequence * times


def holds(operator: ast.cmpop, left: Value, right: Value, budget: Budget) -> bool:
    """Whether the comparison of ``left`` with ``right`` is true."""
    negated = isinstance(operator, (ast.NotEq, ast.NotIn, ast.IsNot))
    if isinstance(operator, (ast.Eq, ast.NotEq)):
        return equal(left, right, budget) is not negated
    if isinstance(operator, (ast.In, ast.NotIn)):
        return _contains(right, left, budget) is not negated
    if isinstance(operator, (ast.Is, ast.IsNot)):
        if right is not None:
            raise TemplateRefused("'is' is only allowed with None: use ==")
        return (left is None) is not negated
    if isinstance(operator, (ast.Gt, ast.GtE)):
        left, right = right, left
    return less(left, right, budget, or_equal=isinstance(operator, (ast.LtE, ast.GtE)))


def _contains(container: Value, value: Value, budget: Budget) -> bool:
    if type(container) is str:
        budget.spend(search_cost(container, value))
        return value in container
    if type(container) in (dict, set):
        return check_key(value, budget) in container
    if type(container) in (list, tuple):
        return count_equal(budget, container, value) > 0
    raise TemplateRefused(f"'in' is not allowed with {kind(container)}")
