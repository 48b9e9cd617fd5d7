"""An error of a lower layer names no flag; its mend is worded with the fields of the page."""

from __future__ import annotations

import ast
import re

import pytest
from project import PROJECT

from rallebench.core.errors import Hint, UsageError
from rallebench.gui.wording import on_page

FLAG = re.compile(r"(?<!\S)--[a-z][a-z-]+")
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


def test_a_sentence_without_a_hint_is_left_alone() -> None:
    assert on_page("An answer with -- and more.") == "An answer with -- and more."


def test_no_error_below_the_front_ends_names_a_flag() -> None:
    verbs = (PROJECT / "rallebench" / "cli").glob("*.py")
    own = {flag for file in verbs for flag in re.findall(r"--[a-z][a-z-]+", file.read_text())}
    assert "--chain" in own
    flags = [
        f"{path.relative_to(PROJECT)}:{text.lineno}: {text.value}"
        for path in sorted((PROJECT / "rallebench").rglob("*.py"))
        if path.relative_to(PROJECT).parts[1] not in FRONT_ENDS
        for error in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(error, ast.Raise)
        for text in ast.walk(error)
        if isinstance(text, ast.Constant)
        and isinstance(text.value, str)
        and own.intersection(FLAG.findall(text.value))
    ]
    assert flags == []
