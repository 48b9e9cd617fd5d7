"""What lower layers say with flags of the command line is said on the page with its fields."""

from __future__ import annotations

import pytest

from rallebench.gui.wording import on_page


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Name a folder with --set data=PATH.", "Name a folder with data=PATH."),
        ("--set noise=x: noise must be numbers.", "noise=x: noise must be numbers."),
        (
            "Models are missing; name them with --set models=A,B or one with --llm.",
            "Models are missing; name them with models=A,B or choose one.",
        ),
        (
            "these tasks have no gold documents; name --llm.",
            "these tasks have no gold documents; choose one.",
        ),
        (
            "that is measured only with a language model (--llm).",
            "that is measured only with a language model.",
        ),
        (
            "let a model propose some: --set propose=10 --llm L.",
            "let a model propose some: propose=10 and choose a model.",
        ),
        (
            "start the suite again with the same --name to continue.",
            "start the suite again with the same name to continue.",
        ),
        (
            "whether --limit draws articles at random",
            "whether the number asked for draws articles at random",
        ),
        ("An answer with -- and more is left alone.", "An answer with -- and more is left alone."),
    ],
)
def test_a_flag_is_called_as_its_field_is(said: str, shown: str) -> None:
    assert on_page(said) == shown
