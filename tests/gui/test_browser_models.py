"""Models in a real browser: test, load, add a server with a key, change, delete; a second window sees it all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from browsing import expect, go, press, says, visiting
from loopback import Loopback, serving

pytestmark = [pytest.mark.browser, pytest.mark.slow]

KEY = "sk-typed-0123456789abcdef"


@pytest.fixture
def models(tab: Any) -> Any:
    go(tab, "#/models/list")
    return tab


def card(tab: Any, name: str) -> Any:
    return tab.locator("#models-cards article").filter(has=tab.locator(f"a:text-is('{name}')"))


def test_a_model_is_tested_and_a_second_window_sees_it_loaded(
    models: Any, browser: Any, page_server: tuple[str, Path]
) -> None:
    with visiting(browser, page_server[0], "#/models/list") as other:
        here, beside = (card(window, "extractive-reader") for window in (models, other))
        expect(beside).to_contain_text("not tested")
        here.locator("button", has_text="Test").click()
        expect(here).to_contain_text("tokens/s")
        expect(here).to_contain_text("loaded")
        expect(beside).to_contain_text("loaded")
        beside.locator("button", has_text="Unload").click()
        expect(here).to_contain_text("ready")


def test_a_server_is_added_with_a_typed_key_tested_priced_and_deleted(
    models: Any, page_server: tuple[str, Path]
) -> None:
    with Loopback(serving("llama3", "qwen")) as server:
        models.fill("#models-add [name=base_url]", server.url)
        models.click("#models-key summary")
        models.fill("#models-add [name=key]", KEY)
        press(models, "Find models")
        says(models, "#models-found", "2 models there.")
        models.select_option("#models-add [name=model]", "qwen")
        press(models, "Add and test")
        expect(card(models, "qwen")).to_contain_text("answers")
        assert server.headers[-1]["authorization"] == f"Bearer {KEY}"
    file = page_server[1] / "llms.json"
    assert "qwen" in json.loads(file.read_text()) and KEY not in file.read_text()
    assert KEY not in (page_server[1] / "app.log").read_text()
    menu = card(models, "qwen").locator("details.menu")
    menu.locator("summary").click()
    menu.locator("button", has_text="Price").click()
    models.fill("dialog[open] [name=price_in]", "0.15")
    models.fill("dialog[open] [name=price_out]", "0.6")
    press(models, "Save")
    expect(card(models, "qwen")).to_contain_text("$0.15 in, $0.60 out a million")
    menu.locator("summary").click()
    menu.locator("button", has_text="Delete").click()
    models.locator("dialog[open] button.danger").click()
    expect(card(models, "qwen")).to_have_count(0)


def test_a_server_that_fails_or_is_down_says_so_where_it_was_asked(models: Any) -> None:
    models.fill("#models-add [name=base_url]", "http://127.0.0.1:9/v1")
    press(models, "Find models")
    says(models, "#models-add .problem", "http://127.0.0.1:9/v1")
    expect(models.locator("#models-add [name=base_url]")).to_have_value("http://127.0.0.1:9/v1")


def test_a_prompt_is_tried_and_settings_are_changed(models: Any) -> None:
    go(models, "#/models/one?id=echo")
    models.fill("#v-models-one [name=prompt]", "Which moon is that?")
    models.keyboard.press("Control+Enter")
    says(models, "#model-answer", "Which moon is that?")
    models.reload()
    says(models, "#model-answer", "Which moon is that?")
    models.locator("#v-models-one summary", has_text="Advanced").click()
    models.uncheck("#v-models-one [name=set-echo]")
    models.fill("#v-models-one [name=set-default]", "Triton")
    press(models, "Save")
    says(models, "#toasts", "Saved echo.")
    press(models, "Ask")
    says(models, "#model-answer", "Triton")
