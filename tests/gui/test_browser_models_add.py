"""A person adds a server from a preset, asks it a question, changes and deletes it, in a real browser."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).resolve().parent.parent / "llms"))

from loopback import Loopback, serving

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PATIENCE = 60_000


def wait_for_text(page: Any, control: str, text: str) -> None:
    page.locator(f"#{control}", has_text=text).wait_for(timeout=PATIENCE)


def choose(page: Any, control: str, text: str) -> None:
    """Choose what a drop-down offers."""
    box, offered = page.locator(f"#{control} input"), page.locator("ul[role=listbox] li", has_text=text)
    box.click()
    offered.first.wait_for(timeout=PATIENCE)
    box.fill(text)
    offered.first.click()
    page.wait_for_timeout(500)


def value(page: Any, control: str) -> str:
    return str(page.locator(f"#{control}").locator("input, textarea").first.input_value())


def test_a_server_is_added_from_a_preset_asked_changed_and_deleted(page: Any, served: tuple[str, Path]) -> None:
    entries = served[1] / "llms.json"
    wait_for_text(page, "models-table", "echo")
    page.click("#models-add-panel > button")
    page.locator("#models-add-group").get_by_label("Servers").check()
    choose(page, "models-add-preset", "Ollama")
    wait_for_text(page, "models-add-facts", "ollama serve")
    page.locator("#models-add-preset input").focus()
    page.locator("#models-add-name").locator("input, textarea").first.focus()
    assert (value(page, "models-add-name"), value(page, "models-add-base-url")) == ("ollama", "http://127.0.0.1:11434/v1")
    with Loopback(serving("llama3.2", "qwen2.5:0.5b", text="The <b>Kura</b>.")) as server:
        page.locator("#models-add-base-url").locator("input, textarea").first.fill(server.url)
        page.click("#models-add-find")
        wait_for_text(page, "models-add-found", "The server has 2 models")
        choose(page, "models-add-model", "llama3.2")
        page.click("#models-add-ask")
        wait_for_text(page, "models-add-answer", "The <b>Kura</b>.")
        assert server.bodies[-1]["model"] == "llama3.2"
    assert json.loads(entries.read_text())["ollama"]["settings"] == {"model": "llama3.2", "base_url": server.url}
    page.locator("#models-table tr", has_text="ollama").locator(".rb-badge.good").wait_for(timeout=PATIENCE)

    page.click("#models-own-panel > button")
    choose(page, "models-own-chosen", "ollama")
    page.click("#models-own-edit")
    wait_for_text(page, "models-add-facts", "Change ollama below")  # the button said so already, since the saving
    wait_for_text(page, "models-add", "Save the changes to ollama")
    page.fill("#models-add-settings textarea", '{"max_tokens": 9}')
    page.click("#models-add")
    wait_for_text(page, "models-add-status", "loaded with its earlier settings")
    assert json.loads(entries.read_text())["ollama"]["settings"]["max_tokens"] == 9

    page.click("#models-own-panel > button")
    choose(page, "models-own-chosen", "ollama")
    page.click("#models-own-delete")
    wait_for_text(page, "models-own-status", "ollama is loaded; unload it above")
    box = page.locator("#models-loaded input")
    box.fill("ollama")
    box.press("Enter")
    page.click("#models-unload")
    wait_for_text(page, "models-progress", "Unloaded ollama")
    page.click("#models-own-delete")
    page.click("#models-own-delete-sure")
    wait_for_text(page, "models-own-status", "Deleted ollama")
    assert "ollama" not in json.loads(entries.read_text())
    page.locator("#models-table tr", has_text="ollama").wait_for(state="detached", timeout=PATIENCE)


def test_a_model_that_cannot_be_added_is_a_sentence_and_the_form_stays(page: Any, served: tuple[str, Path]) -> None:
    page.click("#models-add-panel > button")
    choose(page, "models-add-preset", "Qwen2.5 0.5B")
    wait_for_text(page, "models-add-needs", "of RAM")
    page.locator("#models-add-name").locator("input, textarea").first.fill("echo")
    page.click("#models-add")
    wait_for_text(page, "models-add-status", "There is a language model 'echo' already")
    assert value(page, "models-add-model") == "Qwen/Qwen2.5-0.5B-Instruct"
    page.click("#models-add-anew")
    page.wait_for_function("() => !document.querySelector('#models-add-name').querySelector('input, textarea').value")
    assert value(page, "models-add-model") == "" and value(page, "models-add-preset") == ""
