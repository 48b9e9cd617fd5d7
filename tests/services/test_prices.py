"""The price of using a model comes from its entry, everywhere alike."""

from __future__ import annotations

from typing import Any

import pytest

from rallebench.core.entries import LLMEntry
from rallebench.core.prices import FREE
from rallebench.core.types import Generate, Message, Reply, Step
from rallebench.engine.cost import total
from rallebench.gui.places._steps import price
from rallebench.services.workbench import Workbench
from rallebench.tracking.traces import span_content
from rallebench.views import run_views
from rallebench.views.answers import show_step
from rallebench.workspace.prices import price_of_use

PRICES = {"prompt": 1.0, "completion": 2.0}
HERE, THERE = "http://127.0.0.1:9/v1", "https://models.example/v1"


def server(**settings: Any) -> LLMEntry:
    return LLMEntry(backend="openai_compatible", settings={"model": "m", **settings})


def priced_step(llm: str, tokens: int = 1000) -> Step:
    return Step(
        Generate(llm, (Message("user", "Who?"),)),
        Reply("Ada", prompt_tokens=tokens, completion_tokens=tokens // 2),
    )


ENTRIES = (
    (server(base_url=HERE), None, "unknown"),
    (server(base_url=THERE), None, "unknown"),
    (server(), None, "unknown"),
    (server(base_url=HERE, prices=PRICES), PRICES, "$0.002"),
    (LLMEntry(backend="scripted", settings={"default": "x"}), FREE, "none"),
)


@pytest.mark.parametrize(("entry", "prices", "words"), ENTRIES)
def test_a_use_costs_what_the_entry_says_wherever_it_is_said(
    bench: Workbench, entry: LLMEntry, prices: Any, words: str
) -> None:
    bench.workspace.save_llm("far", entry)
    assert price_of_use(entry) == prices
    dollars = 0.002 if prices == PRICES else None
    of_step = price([priced_step("far")], bench.models.prices_of_use())
    of_run, why = run_views.price_text(bench.workspace, dollars, ["far"])
    assert of_step == of_run and of_step.startswith(words)
    assert ("this machine" in why) == (words == "none")
    assert bench.forecasts._is_free({"far"}) == (words == "none")


def test_a_model_that_is_gone_and_tokens_that_nobody_counted_have_no_known_price(
    bench: Workbench,
) -> None:
    assert run_views.price_text(bench.workspace, None, ["gone"])[0] == "unknown"
    assert price([priced_step("gone")], bench.models.prices_of_use()) == "unknown"
    bench.workspace.save_llm("far", server(base_url=HERE, prices=PRICES))
    words, why = run_views.price_text(bench.workspace, None, ["far"])
    assert words == "unknown" and "counts no tokens" in why
    assert price([priced_step("far", 0)], bench.models.prices_of_use()) == "unknown"


def test_a_free_model_needs_no_count_of_tokens(bench: Workbench) -> None:
    prices, step = bench.models.prices_of_use(), priced_step("titan", 0)
    assert price([step], prices) == "none"
    assert total([step], prices).usd == 0 and show_step(step, prices).to_json()["usd"] == 0
    assert span_content(step, prices).attributes["usd"] == 0, "in MLflow, too"
