"""Check a template while it is edited: its faults, and the tokens of its prompt against the model's window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rallebench.chains.chain import plan
from rallebench.chains.template import check
from rallebench.core.backends import TokenCounting, fit_to_model
from rallebench.core.errors import RalleError, TemplateError
from rallebench.core.types import Action, Generate, Question, Step
from rallebench.services.models import ModelManager


@dataclass(frozen=True, slots=True)
class TemplateCheck:
    """The state of a template. ``at``: character of the fault, if known; ``tokens``: of the prompt as it would be sent,
    None where the model is not loaded, is busy or does not count; ``window``: tokens that the model reads.
    """

    problem: RalleError | None = None
    at: int | None = None
    tokens: int | None = None
    window: int | None = None

    @property
    def is_too_long(self) -> bool:
        """True if the prompt does not fit the model's window."""
        return None not in (self.tokens, self.window) and (self.tokens or 0) > (self.window or 0)


def check_template(
    models: ModelManager, action: Action, question: Question, steps: Sequence[Step] | None
) -> TemplateCheck:
    """Check an action's template. ``steps``: those of the earlier actions, None while one is missing.

    Loads nothing and waits for no model.
    """
    try:
        check(action.template, action.dialect)
        request = None if steps is None else plan(action, question, steps)
    except TemplateError as error:
        return TemplateCheck(error, error.at)
    except RalleError:
        return TemplateCheck()  # no model is chosen yet
    model = models.backends.llms.get(action.target)
    if not isinstance(request, Generate) or not isinstance(model, TokenCounting):
        return TemplateCheck()
    try:
        tokens = model.count_tokens(fit_to_model(request, model))
    except RalleError as error:  # such as a prompt beyond the window
        return TemplateCheck(error)
    return TemplateCheck(tokens=tokens, window=model.context_window)
