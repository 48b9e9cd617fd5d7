"""A person adds a server from a preset, asks it a question, changes and deletes it, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from browsing import PATIENCE, choose, field, fill, holds, says
from loopback import Loopback, serving

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_server_is_added_from_a_preset_asked_changed_and_deleted(
    page: Any, served: tuple[str, Path]
) -> None:
    entries = served[1] / "llms.json"
    says(page, "models-table", "echo")
    page.click("#models-add-panel > button")
    page.locator("#models-add-group").get_by_label("Servers").check()
    choose(page, "models-add-preset", "Ollama")
    says(page, "models-add-facts", "ollama serve")
    page.locator("#models-add-preset input").focus()
    field(page, "models-add-name").focus()
    holds(page, "models-add-name", "ollama")
    holds(page, "models-add-base-url", "http://127.0.0.1:11434/v1")
    with Loopback(serving("llama3.2", "qwen2.5:0.5b", text="The <b>Kura</b>.")) as server:
        fill(page, "models-add-base-url", server.url)
        page.click("#models-add-find")
        says(page, "models-add-found", "The server has 2 models")
        choose(page, "models-add-model", "llama3.2")
        page.click("#models-add-ask")
        says(page, "models-add-answer", "The <b>Kura</b>.")
        assert server.bodies[-1]["model"] == "llama3.2"
    assert json.loads(entries.read_text())["ollama"]["settings"] == {
        "model": "llama3.2",
        "base_url": server.url,
    }
    page.locator("#models-table tr", has_text="ollama").locator(".rb-badge.good").wait_for(
        timeout=PATIENCE
    )

    page.click("#models-own-panel > button")
    choose(page, "models-own-chosen", "ollama")
    page.click("#models-own-edit")
    says(
        page, "models-add-facts", "Change ollama below"
    )  # the button said so already, since the saving
    says(page, "models-add", "Save the changes to ollama")
    page.fill("#models-add-settings textarea", '{"max_tokens": 9}')
    page.click("#models-add")
    says(page, "models-add-status", "loaded with its earlier settings")
    assert json.loads(entries.read_text())["ollama"]["settings"]["max_tokens"] == 9

    page.click("#models-own-panel > button")
    choose(page, "models-own-chosen", "ollama")
    page.click("#models-own-delete")
    says(page, "models-own-status", "ollama is loaded; unload it above")
    box = page.locator("#models-loaded input")
    box.fill("ollama")
    box.press("Enter")
    page.click("#models-unload")
    says(page, "models-progress", "Unloaded ollama")
    page.click("#models-own-delete")
    page.click("#models-own-delete-sure")
    says(page, "models-own-status", "Deleted ollama")
    assert "ollama" not in json.loads(entries.read_text())
    page.locator("#models-table tr", has_text="ollama").wait_for(state="detached", timeout=PATIENCE)


def test_a_model_that_cannot_be_added_is_a_sentence_and_the_form_stays(
    page: Any, served: tuple[str, Path]
) -> None:
    page.click("#models-add-panel > button")
    choose(page, "models-add-preset", "Qwen2.5 0.5B")
    says(page, "models-add-needs", "of RAM")
    fill(page, "models-add-name", "echo")
    page.click("#models-add")
    says(page, "models-add-status", "There is a language model 'echo' already")
    holds(page, "models-add-model", "Qwen/Qwen2.5-0.5B-Instruct")
    page.click("#models-add-anew")
    for control in ("models-add-name", "models-add-model", "models-add-preset"):
        holds(page, control, "")
