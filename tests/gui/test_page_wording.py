"""An error of a lower layer names no flag; its mend is worded with the fields of the page."""

from __future__ import annotations

import ast
import re

import pytest
from project import PROJECT

from rallebench.core.errors import Hint, UsageError
from rallebench.gui.wording import on_page

FLAG = re.compile(r"(^|\W)--[a-z]{3,}")
FRONT_ENDS = {"cli", "gui"}


@pytest.mark.parametrize(
    ("hint", "mend"),
    [
        (Hint("set", "data=PATH"), "fill in data=PATH"),
        (Hint("set", "answerable=false"), "fill in answerable not ticked"),
        (Hint("choose", "llm"), "choose one"),
        (Hint("choose", "llm", "questions=0"), "choose one, or do without: questions=0"),
        (Hint("leave-out", "page-map"), "leave the field page map empty"),
    ],
)
def test_a_hint_is_worded_with_fields(hint: Hint, mend: str) -> None:
    assert (
        on_page(UsageError("Something is missing.", hint=hint)) == f"Something is missing; {mend}."
    )


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("Start the server, or correct base_url.", "Start the server, or correct the address."),
        (
            "OPENAI_API_KEY is not set: if the server wants a key, set it and start rallebench anew.",
            "If the server wants a key, type it under Key.",
        ),
    ],
)
def test_what_is_said_of_a_server_names_the_fields_of_its_card(sentence: str, words: str) -> None:
    assert (on_page(sentence), on_page(UsageError(sentence))) == (words, words)


def test_a_sentence_without_a_hint_is_left_alone() -> None:
    assert on_page("An answer with -- and more.") == "An answer with -- and more."


def test_no_error_below_the_front_ends_names_a_flag() -> None:
    flags = [
        f"{path.relative_to(PROJECT)}:{text.lineno}: {text.value}"
        for path in sorted((PROJECT / "rallebench").rglob("*.py"))
        if path.relative_to(PROJECT).parts[1] not in FRONT_ENDS
        for error in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(error, ast.Raise)
        for text in ast.walk(error)
        if isinstance(text, ast.Constant)
        and isinstance(text.value, str)
        and FLAG.search(text.value)
        and "pip install" not in text.value
    ]
    assert flags == []
