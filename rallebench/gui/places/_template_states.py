"""The line below each template: its fault, or the tokens of its prompt against the model's window."""

from __future__ import annotations

from markupsafe import Markup

from rallebench.core.errors import RalleError
from rallebench.gui.frame import Page
from rallebench.gui.patches import PageEvent, Patch
from rallebench.gui.places._bench import Bench, bench_example
from rallebench.gui.wording import on_page
from rallebench.services.template_checks import TemplateCheck, check_template


def states(page: Page, bench: Bench) -> list[Markup]:
    """Draw the line of every action."""
    try:
        question = bench_example(page, bench).question
    except RalleError:
        return [Markup()] * len(bench.chain.actions)
    drawn, first_stale = [], bench.stale_from
    for index, action in enumerate(bench.chain.actions):
        earlier = [bench.steps[i] for i in range(index) if i in bench.steps]
        is_complete = len(earlier) == index and (first_stale is None or first_stale >= index)
        steps = earlier if is_complete else None
        drawn.append(state_html(check_template(page.workbench.models, action, question, steps)))
    return drawn


def states_patch(page: Page, bench: Bench) -> Patch:
    """Return a patch that redraws the lines, and marks the faults in the editors."""
    lines = {f"a{index}_state": line for index, line in enumerate(states(page, bench))}
    return Patch(lines, event=PageEvent("rb-checked"))


def state_html(check: TemplateCheck) -> Markup:
    """Draw the line of one template; "" if there is nothing to say."""
    if check.problem is not None:
        at = Markup() if check.at is None else Markup(' data-at="{}"').format(check.at)
        return Markup('<span class="bad"{}>{}</span>').format(at, on_page(check.problem))
    if check.tokens is None:
        return Markup()
    if check.window is None:
        return Markup('<span class="n">{:,} tokens</span>').format(check.tokens)
    kind = "n bad" if check.is_too_long else "n"
    return Markup('<span class="{}">{:,} of {:,} tokens</span>').format(
        kind, check.tokens, check.window
    )
