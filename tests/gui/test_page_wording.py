"""The mend of an error is worded with the fields of the page."""

from __future__ import annotations

import pytest

from rallebench.core.errors import Hint, UsageError
from rallebench.gui.wording import on_page


@pytest.mark.parametrize(
    ("hint", "mend"),
    [
        (Hint("set", "data=PATH"), "fill in Data"),
        (Hint("set", "answerable=false"), "fill in Answerable not ticked"),
        (Hint("choose", "llm"), "choose one"),
        (Hint("choose", "llm", "questions=0"), "choose one, or do without: Questions (0)"),
        (Hint("leave-out", "page-map"), "leave the field page map empty"),
    ],
)
def test_a_hint_is_worded_with_fields(hint: Hint, mend: str) -> None:
    assert (
        on_page(UsageError("Something is missing.", hint=hint)) == f"Something is missing; {mend}."
    )


def test_a_sentence_without_a_hint_is_left_alone() -> None:
    assert on_page("An answer with -- and more.") == "An answer with -- and more."
