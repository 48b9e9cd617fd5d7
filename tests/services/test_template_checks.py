"""A template is checked while it is edited: the fault with its place, the tokens of the prompt, the model's window."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rallebench.core.backends import Backends
from rallebench.core.errors import BackendError, RalleError
from rallebench.core.types import Action, Generate, Question, Reply, Step
from rallebench.services.models import ModelManager
from rallebench.services.template_checks import TemplateCheck, check_template

QUESTION = Question("q", "Who discovered Titan?")
NOTE = Step(Generate("m", ()), Reply("Saturn"))


class Counting:
    """A model that counts words, and reads ``window`` of them."""

    fingerprint = "counting"

    def __init__(self, window: int | None = 3) -> None:
        self.context_window = window

    def generate(self, batch: Sequence[Generate]) -> list[Reply | RalleError]:
        raise AssertionError("a check asks no model")

    def count_tokens(self, request: Generate) -> int | None:
        text = request.messages[-1].content
        if "refuse" in text:
            raise BackendError("The prompt does not fit the window.")
        return None if "busy" in text else len(text.split())


def check(
    template: str, *steps: Step, dialect: str = "fstring", window: int | None = 3
) -> TemplateCheck:
    models = cast(ModelManager, SimpleNamespace(backends=Backends(llms={"m": Counting(window)})))
    action = Action("generate", template, cast(Any, dialect), "m")
    return check_template(models, action, QUESTION, steps)


def test_the_prompt_is_counted_as_it_would_be_sent() -> None:
    assert check("{question}") == TemplateCheck(tokens=3, window=3)
    assert check("{question} {response[0]}", NOTE).tokens == 4
    assert check("{question} {response[0]}", NOTE).is_too_long
    assert not check("{question} {response[0]}", NOTE, window=None).is_too_long


@pytest.mark.parametrize(
    ("template", "dialect", "at"),
    [("{missing}", "fstring", 1), ("ab {question", "fstring", 3), ("'a' + missing", "eval", 6)],
)
def test_a_fault_has_its_place(template: str, dialect: str, at: int) -> None:
    checked = check(template, dialect=dialect)
    assert checked.problem is not None and checked.at is not None and abs(checked.at - at) <= 1


def test_an_output_that_is_missing_is_a_fault() -> None:
    assert check("{response[1]}", NOTE).problem is not None


@pytest.mark.parametrize("template", ["busy", "{question} busy"])
def test_a_busy_model_is_not_waited_for(template: str) -> None:
    assert check(template).tokens is None and check(template).problem is None


def test_a_prompt_that_the_model_refuses_is_a_fault_without_a_place() -> None:
    refused = check("refuse")
    assert "does not fit" in str(refused.problem) and refused.at is None


def test_without_the_earlier_steps_or_a_loaded_model_only_the_template_is_checked() -> None:
    models = cast(ModelManager, SimpleNamespace(backends=Backends()))
    action = Action("generate", "{question}", "fstring", "m")
    assert check_template(models, action, QUESTION, ()) == TemplateCheck()
    assert check_template(models, action, QUESTION, None) == TemplateCheck()
