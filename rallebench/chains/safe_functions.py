"""The functions of eval templates: Python's own, over plain values, each paid for before it runs.

Iterators, and generator expressions too, are lists here, so that their length is known and paid for. An error in a
later element therefore shows even if any() or all() would have stopped before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cmp_to_key

from rallebench.chains.safe_limits import ELEMENT, STEP, Budget, TemplateRefused
from rallebench.chains.safe_methods import Method, elements
from rallebench.chains.safe_values import NUMBERS, Value, as_text, check_number, kind, less


def _str(budget: Budget, value: Value = "", /) -> str:
    return as_text(value, budget)


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
            raise TemplateRefused(f"sum is only allowed over numbers, and here is {kind(number)}")
        total = check_number(total + number)
    return total


def _sorted(budget: Budget, values: Value, /, *, reverse: bool = False) -> list[Value]:
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


def _reversed(budget: Budget, values: Value, /) -> list[Value]:
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


def _tested(values: Value, budget: Budget) -> Iterable[Value]:
    items: Iterable[Value] = elements(values, budget, ordered=False)
    budget.spend(8 * _len(budget, values))
    return items


def _any(budget: Budget, values: Value, /) -> bool:
    return any(_tested(values, budget))


def _all(budget: Budget, values: Value, /) -> bool:
    return all(_tested(values, budget))


def _range(budget: Budget, *bounds: int) -> list[int]:
    numbers = range(*bounds)
    budget.elements(len(numbers))
    return list(numbers)


FUNCTIONS: Mapping[str, Method] = {
    "str": _str,
    "int": _int,
    "float": _float,
    "len": _len,
    "min": _extreme("min", less),
    "max": _extreme("max", lambda candidate, best, budget: less(best, candidate, budget)),
    "sum": _sum,
    "sorted": _sorted,
    "reversed": _reversed,
    "enumerate": _enumerate,
    "zip": _zip,
    "any": _any,
    "all": _all,
    "range": _range,
}
