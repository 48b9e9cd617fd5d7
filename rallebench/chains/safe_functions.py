"""The functions and operators of eval templates: Python's own, over plain values, each paid for before it runs.

Iterators and generator expressions are lists here, so that their length is known and paid for. Therefore an error in a
later element shows even if any() or all() would have stopped before it.
"""

from __future__ import annotations

import ast
import math
import operator as operators
from collections.abc import Callable, Iterable, Mapping
from functools import cmp_to_key

from rallebench.chains.safe_methods import Method, count_equal, elements, search_cost
from rallebench.chains.safe_values import (
    ELEMENT,
    NUMBERS,
    STEP,
    Budget,
    TemplateRefused,
    Value,
    as_text,
    check_key,
    check_number,
    equal,
    kind,
    less,
)


def _int(budget: Budget, value: Value = 0, /) -> int:
    if type(value) is str and len(value) > 100:
        raise TemplateRefused("int of a text of more than 100 characters is not allowed")
    if type(value) not in (str, *NUMBERS):
        raise TemplateRefused(f"int of {kind(value)} is not allowed")
    result: int = check_number(int(value))
    return result


def _float(budget: Budget, value: Value = 0.0, /) -> float:
    if type(value) is str and len(value) > 1000:
        raise TemplateRefused("float of a text of more than 1,000 characters is not allowed")
    if type(value) not in (str, *NUMBERS):
        raise TemplateRefused(f"float of {kind(value)} is not allowed")
    return float(value)


def _len(budget: Budget, value: Value, /) -> int:
    if type(value) not in (str, list, tuple, dict, set):
        raise TemplateRefused(f"{kind(value)} has no length")
    return len(value)


_NOTHING = object()


def _extreme(name: str, better: Callable[[Value, Value, Budget], bool]) -> Method:
    def call(budget: Budget, *values: Value, default: Value = _NOTHING) -> Value:
        candidates = elements(values[0], budget, ordered=False) if len(values) == 1 else values
        if not candidates:
            if default is _NOTHING:
                raise TemplateRefused(f"{name} of nothing is not allowed: give it default=...")
            return default
        best = candidates[0]
        for candidate in candidates[1:]:
            budget.spend(STEP)
            if better(candidate, best, budget):
                best = candidate
        return best

    return call


def _sum(budget: Budget, values: Value, /, start: Value = 0) -> Value:
    total = check_number(start)
    for number in elements(values, budget, ordered=False):
        budget.spend(STEP // 2)
        if type(number) not in NUMBERS:
            raise TemplateRefused(
                f"sum is only allowed over numbers, but one of these is {kind(number)}"
            )
        total = check_number(total + number)
    return total


def _sort_values(budget: Budget, values: Value, /, *, reverse: bool = False) -> list[Value]:
    unsorted = elements(values, budget, ordered=False)
    levels = 1 + math.ceil(math.log2(len(unsorted) + 1))
    budget.elements(len(unsorted))
    kinds = {type(value) for value in unsorted}
    if kinds == {str}:
        budget.spend(levels * (20 * len(unsorted) + 2 * sum(map(len, unsorted))))
    elif kinds <= set(NUMBERS):
        budget.spend(levels * 20 * len(unsorted))
    else:
        budget.spend(levels * STEP * len(unsorted))
        return sorted(
            unsorted,
            key=cmp_to_key(lambda first, second: -less(first, second, budget)),
            reverse=bool(reverse),
        )
    return sorted(unsorted, reverse=bool(reverse))


def _reverse_values(budget: Budget, values: Value, /) -> list[Value]:
    items = elements(values, budget)
    budget.elements(len(items))
    return list(reversed(items))


def _enumerate(budget: Budget, values: Value, /, start: int = 0) -> list[Value]:
    items = elements(values, budget)
    budget.elements(2 * len(items))
    return list(enumerate(items, check_number(start)))


def _zip(budget: Budget, *values: Value) -> list[Value]:
    columns = [elements(value, budget) for value in values]
    rows = min(map(len, columns), default=0)
    budget.elements(rows)
    budget.spend(rows * (ELEMENT + 8 * len(columns)))
    return list(zip(*columns, strict=False))


def _check_each(values: Value, budget: Budget) -> Iterable[Value]:
    items: Iterable[Value] = elements(values, budget, ordered=False)
    budget.spend(8 * _len(budget, values))
    return items


def _range(budget: Budget, *bounds: int) -> list[int]:
    numbers = range(*bounds)
    budget.elements(len(numbers))
    return list(numbers)


FUNCTIONS: Mapping[str, Method] = {
    "str": lambda budget, value="", /: as_text(value, budget),
    "int": _int,
    "float": _float,
    "len": _len,
    "min": _extreme("min", less),
    "max": _extreme("max", lambda candidate, best, budget: less(best, candidate, budget)),
    "sum": _sum,
    "sorted": _sort_values,
    "reversed": _reverse_values,
    "enumerate": _enumerate,
    "zip": _zip,
    "any": lambda budget, values, /: any(_check_each(values, budget)),
    "all": lambda budget, values, /: all(_check_each(values, budget)),
    "range": _range,
}

# ── operators ────────────────────────────────────────────────────────────────

OPERATORS: Mapping[type[ast.operator], tuple[str, Callable[[Value, Value], Value]]] = {
    ast.Add: ("+", operators.add),
    ast.Sub: ("-", operators.sub),
    ast.Mult: ("*", operators.mul),
    ast.Div: ("/", operators.truediv),
    ast.FloorDiv: ("//", operators.floordiv),
    ast.Mod: ("%", operators.mod),
    ast.Pow: ("**", operators.pow),
}
"""Node → its sign, and its function over two numbers."""

PERCENT = "formatting a text with % is not allowed: use .format(...) or an f-string"
_MOST_EXPONENT = 64


def arithmetic(operator: ast.operator, left: Value, right: Value, budget: Budget) -> Value:
    """Evaluate ``left + right`` and so on for numbers, concatenation of lists, repetition of texts and lists."""
    sign, calculate = OPERATORS[type(operator)]
    if type(left) in NUMBERS and type(right) in NUMBERS:
        is_power = isinstance(operator, ast.Pow) and type(left) is not float
        if is_power and abs(right) > _MOST_EXPONENT:
            raise TemplateRefused(
                f"a power with an exponent beyond {_MOST_EXPONENT} is not allowed"
            )
        # at most 4,096 bits before the check
        return check_number(calculate(left, right))
    if isinstance(operator, ast.Add) and type(left) is type(right) and type(left) in (list, tuple):
        budget.elements(len(left) + len(right))
        return left + right
    if isinstance(operator, ast.Mult):
        sequence, times = (right, left) if type(left) in (int, bool) else (left, right)
        if type(sequence) in (str, list, tuple) and type(times) in (int, bool):
            return _repeat(sequence, max(0, times), budget)
    if isinstance(operator, ast.Mod) and type(left) is str:
        raise TemplateRefused(PERCENT)
    text_and_other = sign == "+" and str in (type(left), type(right))
    hint = ": use str(...) or an f-string" if text_and_other else ""
    raise TemplateRefused(f"{kind(left)} {sign} {kind(right)} is not allowed{hint}")


def _repeat(sequence: Value, times: int, budget: Budget) -> Value:
    if type(sequence) is str:
        budget.text(len(sequence) * times, sequence.isascii())
    else:
        budget.elements(len(sequence) * times)
    return sequence * times


def holds(operator: ast.cmpop, left: Value, right: Value, budget: Budget) -> bool:
    """Return whether the comparison of ``left`` with ``right`` is true."""
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
