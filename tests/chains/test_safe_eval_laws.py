"""A law: every expression allowed in the eval dialect has the same value as in Python."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rallebench.chains.template import render
from rallebench.core.errors import TemplateError

VALUES: dict[str, Any] = {
    "question": "Who wrote Emma? [SEP] author",
    "history": "",
    "prompt": ["p one", "p two"],
    "response": ["lorem ipsum", "Jane Austen"],
    "wiki_id_title": ["Emma, 12; Emma (name), 34", ""],
    "documents": [
        [{"rank": 1, "title": "T1", "score": 1.0}, {"rank": 2, "title": "T2", "score": 0.5}],
        [],
    ],
}

Code = st.SearchStrategy[str]
COMPARED = ["<", "<=", "==", "!=", ">", ">="]
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=4).map(repr)


def code(form: str, *parts: Code) -> Code:
    """Replace each ``§`` in ``form`` by generated code, in brackets if it could come apart."""
    return st.tuples(*parts).map(lambda drawn: _inserted(form, drawn))


def _inserted(form: str, parts: tuple[str, ...]) -> str:
    first, *others = form.split("§")
    return first + "".join(part + other for part, other in zip(parts, others, strict=True))


def one(*choices: str) -> Code:
    return st.sampled_from(choices)


LEAVES: dict[str, Code] = {
    "text": one("question", "response[0]", "response[1]", "documents[0][0]['title']", "response[5]")
    | any_text,
    "number": st.integers(-9, 99).map(str) | one("0.5", "1e3", "True", "documents[0][1]['score']"),
    "truth": one("True", "False", "question == ''"),
    "texts": one(
        "response", "prompt", "[]", "question.split()", "[d['title'] for d in documents[0]]"
    ),
}
PLAIN = "strip lower upper title capitalize swapcase casefold"
METHODS = one(
    *(f"{name}()" for name in PLAIN.split()),
    "lstrip('a ')",
    *("zfill(7)", "ljust(8)", "rjust(-1)", "center(9, '*')"),
    *("replace('e', 'ee')", "replace('', '.', 2)"),
)
BOUNDS = one("0:1", "1:", ":-1", "::-1", "-3:7:2", "9:")


@cache
def expressions(kind: str, depth: int = 3) -> Code:
    """Python code for a text, a number, a truth value or a list of texts, if it has a value."""
    if depth == 0:
        return LEAVES[kind]
    text, number, truth, texts = (expressions(name, depth - 1) for name in LEAVES)
    index = number | st.integers(-3, 5).map(str)
    rules: dict[str, list[Code]] = {
        "text": [
            code("(§ + §)", text, text),
            code("(§) * §", text, st.integers(-1, 4).map(str)),
            code("(§).§", text, METHODS),
            code("(§).join(§)", text, texts),
            code("(§)[§]", text, BOUNDS),
            code("(§)[§]", text | texts, index),
            code("(§ if § else §)", text, truth, text),
            code("str(§)", number | truth | texts),
            code(
                "§.format(§, §)",
                one("'{}:{}'", "'{1!r:>9}{0}'", "'{{{0}}}'", "'{}{}{}'"),
                text,
                number,
            ),
            code(
                "f'{§§}'",
                one("question", "len(question)", "prompt[7]"),
                one("", "!r", ":>20", "!s:.3", ":d"),
            ),
        ],
        "number": [
            code("(§ § §)", number, one("+", "-", "*", "/", "//", "%"), number),
            code("(§).§(§)", text, one("find", "rfind", "count", "index", "rindex"), text),
            code("len(§)", text | texts),
            code("int(§)", text | number),
            code("-(§)", number),
            code("max(§, §)", number, number),
            code("sum(len(w) for w in §)", texts),
        ],
        "truth": [
            code("(§ § §)", number, one(*COMPARED), number),
            code("(§ § §)", text, one(*COMPARED, "in", "not in"), text),
            code("(§ § §)", texts, one(*COMPARED), texts),
            code("(§ § §)", text, one("in", "not in"), texts),
            code("(§ § §)", truth, one("and", "or"), truth),
            code("(not §)", truth),
            code("(§).§(§)", text, one("startswith", "endswith"), text),
            code("§(str(w).isalpha() for w in §)", one("any", "all"), texts),
        ],
        "texts": [
            code("(§).split(§)", text, text),
            code(
                "(§).§", text, one("split()", "rsplit(None, 2)", "splitlines()", "partition('e')")
            ),
            code("[§, §]", text, text),
            code("(§)[§]", texts, BOUNDS),
            code("(§ + §)", texts, texts),
            code("sorted(§, reverse=§)", texts, truth),
            code(
                "[§ for w in § if len(w) > 1]",
                one("w", "w.upper()", "w + question", "w[1]", "len(w)"),
                texts,
            ),
            code("[f'{n}{a}{b!r}' for n, (a, b) in enumerate(zip(§, §))]", texts, texts),
            code("sorted({w for w in §})", texts),
            code("[k + str(v) for k, v in {w: len(w) for w in §}.items()]", texts),
        ],
    }
    return st.one_of(LEAVES[kind], *rules[kind])


@settings(max_examples=200, database=None, derandomize=True)
@given(one("text", "number", "truth").flatmap(expressions))
def test_an_expression_means_what_python_says(template: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", SyntaxWarning
            )  # Python warns of an index that is not a number
            expected = eval(template, dict(VALUES))
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError):
        with pytest.raises(TemplateError):
            render(template, "eval", VALUES)
    else:
        assert render(template, "eval", VALUES) == str(expected)


def test_the_law_is_not_about_errors_only() -> None:
    """Most generated expressions have a value; otherwise the law above would be empty."""
    values = errors = 0

    @settings(max_examples=200, database=None, derandomize=True)
    @given(expressions("text"))
    def count(template: str) -> None:
        nonlocal values, errors
        try:
            render(template, "eval", VALUES)
            values += 1
        except TemplateError:
            errors += 1

    count()
    assert values > errors > 0
