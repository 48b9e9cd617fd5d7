"""A law: nan, infinities and -0.0 compare as in Python, also inside lists, tuples and dicts.

Python takes two elements of a container for equal if they are one object, and evaluates ``==`` only for others: ``x == x``
is false for nan, ``[x] == [x]`` is true.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rallebench.chains.template import render
from rallebench.core.errors import TemplateError

NAN = float("nan")
VALUES: dict[str, Any] = {
    "question": "x",
    "response": [NAN, float("nan"), math.inf, -math.inf, -0.0, 0.0, 0, 1, True, 1.0],
    "prompt": [
        *([NAN], [NAN, 1], (NAN,), [[NAN]], {"a": NAN}, {"a": [NAN]}),
        *([0.0], [-0.0], [], [math.inf, NAN]),
    ],
}

Code = st.SearchStrategy[str]
WRITTEN = ["float('nan')", "float('inf')", "float('-inf')", "-0.0", "0.0", "1"]
NUMBERS = st.sampled_from([*(f"response[{n}]" for n in range(10)), *WRITTEN])
LISTS = st.sampled_from([f"prompt[{n}]" for n in (0, 1, 3, 6, 7, 8, 9)])
COMPARED = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
FOUND = st.sampled_from(["in", "not in"])
MIXED = LISTS | NUMBERS | st.sampled_from(["prompt[2]", "prompt[4]", "prompt[5]"])


def code(form: str, *parts: Code) -> Code:
    return st.tuples(*parts).map(lambda drawn: form.format(*drawn))


@cache
def lists(depth: int) -> Code:
    """Code of a list, sometimes a tuple, whose elements are numbers or such lists."""
    if depth == 0:
        return LISTS
    inner = lists(depth - 1)
    several = st.lists(NUMBERS | inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]")
    numbers = st.lists(NUMBERS, max_size=4)
    return st.one_of(
        inner,
        several,
        numbers.map(lambda parts: f"[{', '.join(parts)}]"),
        numbers.map(lambda parts: f"[({''.join(part + ', ' for part in parts)})]"),
        code("({} + {})", inner, inner),
        code("({} * 2)", st.lists(NUMBERS, max_size=2).map(lambda parts: f"[{', '.join(parts)}]")),
        code("[{} for x in {}]", st.sampled_from(["x", "[x]", "(x, x)"]), inner),
        code("sorted({})", inner),
        code("{}[:2]", several),
    )


EXPRESSIONS = st.one_of(
    code("{} {} {}", NUMBERS, COMPARED, NUMBERS),
    code("{} {} {} {} {}", NUMBERS, COMPARED, NUMBERS, COMPARED, NUMBERS),
    code("{} {} {}", lists(2), COMPARED, lists(2)),
    code("[x == x for x in {}]", lists(2)),
    code("[x {} y for x in {} for y in {}]", COMPARED, lists(1), lists(1)),
    code("{} {} {}", MIXED, FOUND, lists(2)),
    code("[x {} {} for x in {}]", FOUND, lists(1), lists(1)),
    code("{{'a': {}}} == {{'a': {}}}", MIXED, MIXED),
    code("{} == {}", MIXED, MIXED),
    code("{} in {{{}, {}}}", NUMBERS, NUMBERS, NUMBERS),
    code("{{{}}} == {{{}}}", NUMBERS, NUMBERS),
    code("len({{{}, {}, {}}})", NUMBERS, NUMBERS, NUMBERS),
    code("{}({}, {}, {})", st.sampled_from(["min", "max"]), NUMBERS, NUMBERS, NUMBERS),
    code("{}({})", st.sampled_from(["min", "max", "sorted"]), lists(2)),
    code("sorted({}, reverse=True)", lists(2)),
    code("({}).{}({})", lists(2), st.sampled_from(["count", "index"]), MIXED),
)


def outcome(template: str) -> str | None:
    try:
        return str(eval(f"str({template})", dict(VALUES)))
    except (TypeError, ValueError, LookupError):
        return None


@pytest.mark.slow
@settings(max_examples=1_500, database=None, derandomize=True)
@given(EXPRESSIONS)
def test_comparisons_with_nan_are_pythons(template: str) -> None:
    expected = outcome(template)
    if expected is None:
        with pytest.raises(TemplateError):
            render(f"str({template})", "eval", VALUES)
    else:
        assert render(f"str({template})", "eval", VALUES) == expected


def test_the_law_is_about_values_of_both_kinds() -> None:
    seen: dict[str | None, int] = {}

    @settings(max_examples=600, database=None, derandomize=True)
    @given(EXPRESSIONS)
    def count(template: str) -> None:
        result = outcome(template)
        seen[result] = seen.get(result, 0) + 1

    count()
    assert seen["True"] > 40 and seen["False"] > 40 and seen[None] > 0 and len(seen) > 40


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("response[0] == response[0]", False),
        ("response[0] != response[0]", True),
        ("[response[0]] == [response[0]]", True),
        ("response[0] in response", True),
        ("float('nan') in response", False),
        ("[response[0]] != [response[1]]", True),
        ("[response[0]] <= [response[1]]", False),
        ("[response[0]] <= [response[0]]", True),
        ("[response[0]] >= [response[0], 1]", False),
        ("(response[0],) == (response[0],)", True),
        ("prompt[4] == {'a': response[0]}", True),
        ("response.count(response[0]) == 1", True),
        ("response.index(response[1]) == 1", True),
        ("[float('nan')] == [float('nan')]", False),
    ],
)
def test_elements_are_compared_by_identity_first(template: str, value: bool) -> None:
    assert render(template, "eval", VALUES) == str(value) == str(eval(template, dict(VALUES)))
