"""The functions that an eval template may call: Python's, over plain values, each paid for before it runs.

What Python returns as an iterator, a generator expression included, is a list here, so that its length is
known and paid for; so an error in a later element shows even where any() or all() would have stopped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cmp_to_key

from rallebench.chains.safe_limits import ELEMENT, STEP, Budget, Refused
from rallebench.chains.safe_methods import Method, elements
from rallebench.chains.safe_values import NUMBERS, Value, as_text, check_number, kind, less


def _str(budget: Budget, value: Value = "", /) -> str:
    return as_text(value, budget)


def _int(budget: Budget, value: Value = 0, /) -> int:
    if type(value) is str and len(value) > 100:
        raise Refused("int of a text of more than 100 characters is not allowed")
    if type(value) not in (str, *NUMBERS):
        raise Refused(f"int of {kind(value)} is not allowed")
    result: int = check_number(int(value))
    return result


def _float(budget: Budget, value: Value = 0.0, /) -> float:
    if type(value) is str and len(value) > 1000:
        raise Refused("float of a text of more than 1,000 characters is not allowed")
    if type(value) not in (str, *NUMBERS):
        raise Refused(f"float of {kind(value)} is not allowed")
    return float(value)


def _len(budget: Budget, value: Value, /) -> int:
    if type(value) not in (str, list, tuple, dict, set):
        raise Refused(f"{kind(value)} has no length")
    return len(value)


_NOTHING = object()


def _extreme(name: str, better: Callable[[Value, Value, Budget], bool]) -> Method:
    def call(budget: Budget, *values: Value, default: Value = _NOTHING) -> Value:
        candidates = elements(values[0], budget, ordered=False) if len(values) == 1 else values
        if not candidates:
            if default is _NOTHING:
                raise Refused(f"{name} of nothing is not allowed: give it default=...")
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
            raise Refused(f"sum is only allowed over numbers, and here is {kind(number)}")
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
            key=cmp_to_key(lambda one, other: -less(one, other, budget)),
            reverse=bool(reverse),
        )
    return sorted(unsorted, reverse=bool(reverse))


def _reversed(budget: Budget, values: Value, /) -> list[Value]:
    found = elements(values, budget)
    budget.elements(len(found))
    return list(reversed(found))


def _enumerate(budget: Budget, values: Value, /, start: int = 0) -> list[Value]:
    found = elements(values, budget)
    budget.elements(2 * len(found))
    return list(enumerate(found, check_number(start)))


def _zip(budget: Budget, *values: Value) -> list[Value]:
    found = [elements(value, budget) for value in values]
    rows = min(map(len, found), default=0)
    budget.elements(rows)
    budget.spend(rows * (ELEMENT + 8 * len(found)))
    return list(zip(*found, strict=False))


def _tested(values: Value, budget: Budget) -> Iterable[Value]:
    found: Iterable[Value] = elements(values, budget, ordered=False)
    budget.spend(8 * _len(budget, values))
    return found


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
