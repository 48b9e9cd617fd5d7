"""A person talks to a chain, stops it, unfolds its steps, and carries chains in and out, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from browsing import PATIENCE, expect, holds, says, there_are
from browsing import choose as choose_in

from rallebench.chains.saved import save_chain
from rallebench.core.entries import LLMEntry
from rallebench.core.types import Action, Chain
from rallebench.workspace.paths import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SEARCH = Action("retrieve", "{question}", "fstring", "starter-bm25", 3)
SLOW = " ".join(f"word{number}" for number in range(400))


@pytest.fixture(scope="module")
def stocked(served: tuple[str, Path]) -> str:
    """The address of the page, whose workspace has chains that need no weights, and a slow model."""
    address, folder = served
    Workspace(folder).save_llm(
        "slow", LLMEntry(backend="scripted", settings={"default": SLOW, "delay": 60})
    )
    answers = {
        "MARKUP": '<img src=x onerror="document.title=1"> ![i](http://example.invalid/i.png) **bold**'
    }
    settings = {"replies": answers, "default": "Christiaan Huygens"}
    Workspace(folder).save_llm("huygens", LLMEntry(backend="scripted", settings=settings))
    for name, template, llm in (
        ("chat-slow", "{question}", "slow"),
        ("chat-answers", "{response[0]} {question}", "huygens"),
        ("chat-remembers", "[{history}] {question}", "echo"),
        ("chat-broken", "{nothing}", "echo"),
    ):
        actions = (SEARCH, Action("generate", template, "fstring", llm))
        save_chain(Chain(name, actions), folder / "chains" / f"{name}.json")
    return address


@pytest.fixture
def chatting(stocked: str, page: Any) -> Any:
    page.click("#tab-chat-button")
    page.wait_for_selector("#chat-text textarea")
    says(page, "chat-chain-line", "starter")
    return page


def choose(page: Any, chain: str) -> None:
    choose_in(page, "chat-chain", chain)
    says(page, "chat-chain-line", chain)


def send(page: Any, text: str) -> None:
    page.fill("#chat-text textarea", text)
    page.press("#chat-text textarea", "Enter")


def wait_for(page: Any, text: str) -> None:
    says(page, "chat-conversation", text)


def wait_until_free(page: Any) -> None:
    page.wait_for_selector("#chat-send:not([disabled])", timeout=PATIENCE)


def conversation(page: Any) -> str:
    return str(page.inner_text("#chat-conversation"))


def test_an_answer_has_its_sources_and_steps_folded_under_it(chatting: Any) -> None:
    choose(chatting, "chat-answers")
    send(chatting, "Who discovered Titan?")
    wait_for(chatting, "2 · LLM huygens")
    there_are(chatting, "#chat-conversation .rb-hit", 0)  # steps are folded
    chatting.get_by_text("Sources: 3 passages").click()
    chatting.wait_for_selector("#chat-conversation .rb-hit")
    expect(chatting.locator("#chat-conversation mark.rb-answer")).to_have_text("Christiaan Huygens")
    chatting.get_by_text("1 · Retriever starter-bm25").click()
    chatting.wait_for_selector("#chat-conversation >> text=page 1047")


def test_a_turn_is_streamed_stopped_and_followed_by_the_next_without_mixing(chatting: Any) -> None:
    choose(chatting, "chat-slow")
    send(chatting, "first question")
    wait_for(chatting, "word3")
    expect(chatting.locator("#chat-send")).to_be_disabled()
    send(chatting, "too early")
    assert chatting.input_value("#chat-text textarea") == "too early", (
        "what cannot be sent yet is not lost"
    )
    chatting.click("#chat-stop")
    wait_for(chatting, "Stopped by you.")
    wait_until_free(chatting)
    said = conversation(chatting)
    assert "word3" in said and "word399" not in said and said.count("too early") == 0
    choose(chatting, "chat-answers")
    chatting.press("#chat-text textarea", "Enter")
    wait_for(chatting, "2 · LLM huygens")
    wait_until_free(chatting)
    assert conversation(chatting).startswith(said.split("1 · Retriever")[0]), (
        "the stopped turn stays as it was"
    )
    assert conversation(chatting).count("too early") == 1


def test_a_follow_up_sees_the_turns_before_it_and_clear_forgets_them(chatting: Any) -> None:
    choose(chatting, "chat-remembers")
    send(chatting, "alpha")
    wait_for(chatting, "[] alpha")
    wait_until_free(chatting)
    send(chatting, "beta")
    wait_for(chatting, "[User: alpha")
    wait_until_free(chatting)
    assert conversation(chatting).index("[] alpha") < conversation(chatting).index("[User: alpha")
    chatting.click("#chat-clear")
    chatting.wait_for_selector("text=Ask the chain something")
    send(chatting, "gamma")
    wait_for(chatting, "[] gamma")
    said = conversation(chatting)
    assert "alpha" not in said and "beta" not in said and "[User:" not in said


def test_an_error_stands_in_the_conversation_and_the_question_can_be_asked_again(
    chatting: Any,
) -> None:
    choose(chatting, "chat-answers")
    chatting.click("#tab-develop-button")
    choose_in(chatting, "develop-retriever-1", "starter-bm25")
    chatting.fill("#develop-template-2 textarea", "{nothing}")
    chatting.click("#tab-chat-button")
    choose_in(chatting, "chat-chain", "The chain in Develop")
    send(chatting, "Who discovered Titan?")
    chatting.wait_for_selector("#chat-conversation .rb-error", timeout=PATIENCE)
    wait_until_free(chatting)
    said = conversation(chatting)
    assert "Who discovered Titan?" in said and "there is no variable 'nothing'" in said
    choose(chatting, "chat-answers")
    chatting.click("#chat-conversation button[aria-label='Retry']")
    wait_for(chatting, "2 · LLM huygens")
    there_are(chatting, "#chat-conversation .rb-error", 0)


def test_markup_in_an_answer_is_shown_and_fetches_nothing(chatting: Any) -> None:
    asked: list[str] = []
    chatting.on("request", lambda request: asked.append(request.url))
    choose(chatting, "chat-answers")
    send(chatting, "MARKUP <b>please</b>")
    wait_for(chatting, "2 · LLM huygens")
    wait_for(chatting, "<img src=x onerror")
    wait_for(chatting, "<b>please</b>")
    there_are(chatting, "#chat-conversation img", 0)
    assert not [url for url in asked if "example.invalid" in url]


def test_two_visitors_talk_without_hearing_each_other(
    chatting: Any, stocked: str, browser: Any
) -> None:
    context = browser.new_context()
    other = context.new_page()
    other.goto(stocked)
    other.click("#tab-chat-button")
    choose(chatting, "chat-slow")
    choose(other, "chat-remembers")
    send(chatting, "a secret question")
    wait_for(chatting, "word3")
    send(other, "another question")
    wait_for(other, "[] another question")
    assert "secret" not in conversation(other) and "another" not in conversation(chatting)
    chatting.click("#chat-stop")
    wait_for(chatting, "Stopped by you.")
    context.close()


def test_a_chain_is_taken_away_and_brought_in_again(chatting: Any, tmp_path: Path) -> None:
    chatting.click("#tab-config-button")
    chatting.wait_for_selector("#config-download-json:not([disabled])", timeout=PATIENCE)
    with chatting.expect_download() as download:
        chatting.click("#config-download-json")
    assert download.value.suggested_filename == "starter.json"
    chain = json.loads(Path(download.value.path()).read_text())
    chain["name"], chain["actions"] = "brought", chain["actions"][:1]
    file = tmp_path / "brought.json"
    file.write_text(json.dumps(chain))
    chatting.set_input_files("#config-upload input[type=file]", file)
    chatting.wait_for_selector("text=Develop now holds 'brought' (1 action).", timeout=PATIENCE)
    chatting.click("#tab-develop-button")
    chatting.wait_for_selector("#develop-action-2", state="hidden", timeout=PATIENCE)
    holds(chatting, "develop-chain-name", "brought")
    chatting.click("#tab-config-button")
    chatting.fill("#config-paste textarea", "{oops")
    chatting.click("#config-import")
    chatting.wait_for_selector("text=The pasted text is not valid JSON", timeout=PATIENCE)
