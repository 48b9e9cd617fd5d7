"""Build in a real browser: keyboard, staleness, addresses, reload, two windows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from browsing import PATIENCE, expect, go, press, says, serving, visiting
from loopback import Behaviour, Loopback, fail, hang

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RESULT = "#build-result"


@pytest.fixture
def build(tab: Any) -> Any:
    tab.locator(".verdict").first.wait_for(timeout=PATIENCE)
    return tab


def test_the_page_opens_with_a_verdict_and_the_answer_in_sight(build: Any) -> None:
    box = build.locator(".verdict h2").bounding_box()
    assert box and box["y"] < 250
    says(build, RESULT, "gold")
    expect(build.locator("[data-place=build]")).to_have_attribute("aria-selected", "true")


def test_j_and_k_move_through_the_questions_and_the_address_follows(build: Any) -> None:
    first = build.inner_text(".asked-question h1")
    build.keyboard.type("jjj")
    says(build, ".asked-question", "qa-004")
    assert "q=qa-004" in build.url
    build.keyboard.type("kkk")
    expect(build.locator(".asked-question h1")).to_have_text(first)


def test_a_list_that_was_drawn_again_is_forgotten_by_the_browser(build: Any) -> None:
    expect(build.locator("#list-build-questions .r em").first).to_be_visible()
    build.evaluate("window.left = new WeakRef(document.querySelector('#list-build-questions'))")
    for place in ("models/list", "build/one"):  # the place is drawn again when it is opened
        go(build, f"#/{place}")
        build.wait_for_function("rb.idle()")
    # The new editors take over from the old ones, which hold their part of the page.
    build.wait_for_selector("#a1_template[data-editor=on]", state="attached")
    build.wait_for_selector("#a0_template[data-editor=on]", state="attached")
    assert build.evaluate("!window.left.deref()?.isConnected")
    build.context.new_cdp_session(build).send("HeapProfiler.collectGarbage")
    assert build.evaluate("window.left.deref() === undefined")


@pytest.mark.parametrize("key", ["Enter", "Control+Enter"])
def test_an_impossible_k_is_said_at_its_field_until_it_is_mended(build: Any, key: str) -> None:
    if not build.locator("[name=a0_k]").is_visible():
        build.click("#act-0 summary")
    for value, said in (("0", "k is 0;"), ("99999", "k is 99999;"), ("", "k is empty;")):
        build.fill("[name=a0_k]", value)
        build.press("[name=a0_k]", key)
        says(build, "#chain-form .field-pair + .problem", said)
        build.wait_for_timeout(500)  # the edit is sent, too
        build.wait_for_function("rb.idle()")
        says(build, "#chain-form .field-pair + .problem", said)
        expect(build.locator(".problem[role=alert]")).to_have_count(1)
        expect(build.locator("[name=a0_k]")).to_have_attribute("aria-invalid", "true")
    build.fill("[name=a0_k]", "3")
    expect(build.locator(".problem[role=alert]")).to_have_count(0)
    build.press("[name=a0_k]", key)
    expect(build.locator(".stale")).to_have_count(0)
    says(build, "#what-0", "k 3")


@pytest.mark.parametrize("key", ["Enter", "Control+Enter"])
def test_enter_asks_the_question_that_was_typed(build: Any, key: str) -> None:
    build.fill("#build-words", "Which sea is the coldest?")
    build.press("#build-words", key)
    expect(build.locator(".asked-question h1")).to_have_text("Which sea is the coldest?")
    says(build, RESULT, "No verdict")
    assert "ask=Which" in build.url


def test_an_edit_marks_what_is_out_of_date_until_it_runs_again(build: Any) -> None:
    build.fill("#a1_template", "Only {question}")
    expect(build.locator("#build-result.stale .verdict")).to_have_css("opacity", "0.6")
    expect(build.locator(RESULT)).to_have_css("opacity", "1")  # the error is shown in it
    expect(build.locator("#out-1.stale")).to_have_count(1)
    expect(build.locator("#out-0.stale")).to_have_count(0)
    build.keyboard.press("Control+Enter")
    expect(build.locator(".stale")).to_have_count(0)
    says(build, "#out-1", "Only Which")
    says(build, "#out-1", "Before")
    expect(build.locator("#chain .dot")).to_be_visible()


def test_typing_keeps_its_focus_and_single_letters_do_nothing_in_a_field(build: Any) -> None:
    question = build.inner_text(".asked-question h1")
    build.click("#build-words")
    build.keyboard.type("jkg2 moon", delay=30)
    says(build, "#build-list", "Ask “jkg2 moon”")
    assert build.input_value("#build-words") == "jkg2 moon"
    assert build.evaluate("document.activeElement.id") == "build-words"
    assert build.inner_text(".asked-question h1") == question and "#/build" in build.url


def test_an_edited_chain_survives_a_reload_and_a_visit_elsewhere(build: Any) -> None:
    build.on("dialog", lambda dialog: dialog.accept())
    build.fill("#a1_template", "Mine {question}")
    expect(build.locator("#chain .dot")).to_be_visible()
    go(build, "#/models/list")
    build.go_back()
    expect(build.locator("#a1_template")).to_have_value("Mine {question}")
    build.reload()
    expect(build.locator("#a1_template")).to_have_value("Mine {question}")


def test_edits_of_a_window_that_is_gone_are_offered_again(build: Any, browser: Any) -> None:
    build.fill("#a1_template", "Mine {question}")
    expect(build.locator("#chain .dot")).to_be_visible()
    build.wait_for_function("localStorage.getItem('rb-draft')?.includes('Mine')")
    other = build.context.new_page()
    other.goto(build.url)
    other.wait_for_selector(".verdict", timeout=PATIENCE)
    expect(other.locator("#build-draft")).to_be_empty()  # their window is still open
    build.close()
    other.evaluate("sessionStorage.clear()")
    other.reload()
    says(other, "#build-draft", "Your unsaved edits of starter are still here.")
    press(other, "Restore")
    expect(other.locator("#a1_template")).to_have_value("Mine {question}")
    expect(other.locator("#build-draft")).to_be_empty()


def test_back_and_forward_return_to_places(build: Any) -> None:
    build.keyboard.type("g2")
    build.wait_for_selector("#v-runs-list:not([hidden])")
    build.click("[data-place=data]")
    build.wait_for_selector("#v-data-list:not([hidden])")
    build.go_back()
    build.wait_for_selector("#v-runs-list:not([hidden])")
    build.go_forward()
    build.wait_for_selector("#v-data-list:not([hidden])")


def test_two_windows_share_no_question(build: Any, browser: Any, page_server: Any) -> None:
    with visiting(browser, page_server[0], "#/build/one?q=qa-007") as other:
        says(other, ".asked-question", "qa-007")
        build.reload()
        assert "qa-007" not in build.inner_text(".asked-question")


def test_an_error_stands_where_it_happened_and_goes_when_mended(build: Any) -> None:
    build.click("#act-0 .what")
    build.fill("#a0_template", "{nobody}")
    build.keyboard.press("Control+Enter")
    says(build, RESULT, "nobody")
    build.fill("#a0_template", "{question}")
    build.keyboard.press("Control+Enter")
    says(build, ".verdict", "gold")
    expect(build.locator(".problem")).to_have_count(0)


def test_drawers_close_with_escape_and_return_the_focus(build: Any) -> None:
    press(build, "Versions")
    says(build, "#drawer", "Versions of starter")
    build.keyboard.press("Escape")
    expect(build.locator("#drawer")).to_be_hidden()
    assert build.evaluate("document.activeElement.textContent") == "Versions"


def test_a_variant_shows_which_answers_flip(build: Any) -> None:
    go(build, "#/build/few")
    press(build, "Add a variant")
    build.fill("#variant-form [name=a0_k]", "1")
    press(build, "Add and ask")
    expect(build.get_by_role("button", name="All answered")).to_be_visible()
    says(build, "#few-head-1", "k 1")


def test_a_chat_answer_comes_with_its_sources(build: Any) -> None:
    go(build, "#/build/chat")
    build.fill("#chat-text", "Which planet has a moon called Titan?")
    build.keyboard.press("Control+Enter")
    says(build, "#turns", "sources")
    expect(build.locator("#chat-side article").first).to_be_visible()


def ask_in_chat(build: Any, question: str) -> None:
    """Ask in Chat, and wait for the answer."""
    build.fill("#chat-text", question)
    build.keyboard.press("Control+Enter")
    says(build, "#turns", question)
    expect(build.locator("#chat-buttons").get_by_role("button", name="Send")).to_be_visible()


def test_a_conversation_of_three_turns_is_cited_branched_opened_and_saved(
    build: Any, page_server: tuple[str, Path]
) -> None:
    go(build, "#/build/chat")
    ask_in_chat(build, "Which planet has a moon called Titan?")
    expect(build.locator(".searched")).to_have_count(0)
    ask_in_chat(build, "Who discovered it?")
    searched = "Who discovered it? (Titan, Mercury, Sun)"
    says(build, "#t1 .searched", searched)
    ask_in_chat(build, "Which two streams join to form the Danube?")

    mark = build.locator("#t1 .cite").first
    mark.focus()
    build.keyboard.press("Enter")
    expect(build.locator("#chat-side .cited mark").first).to_be_visible()
    says(build, "#chat-side [role=status]", "its words are the closest")
    assert mark.get_attribute("aria-label").endswith("Show the passage")
    expect(build.locator("#drawer .page-text .cited")).to_be_in_viewport()
    build.keyboard.press("Escape")

    build.locator("#t1").get_by_role("button", name="Edit").click()
    build.fill("#dialog textarea", "Who was Huygens?")
    build.keyboard.press("Control+Enter")
    says(build, "#t3", "2 of 2")
    expect(build.locator("#t2")).to_have_count(0)
    build.locator("#t3").get_by_role("button", name="Earlier branch").click()
    says(build, "#t2", "Danube")
    build.locator("#t2").get_by_role("button", name="Regenerate").click()
    says(build, "#t4", "This is the same answer as before.")

    build.locator("#t1").get_by_role("button", name="Save as question").click()
    build.fill("#dialog [name=dataset]", "from-chat")
    build.fill("#dialog [name=answers]", "Christiaan Huygens")
    build.locator("#dialog").get_by_role("button", name="Save as question").click()
    says(build, "#toasts", "Saved in from-chat, which holds 1 question now.")
    (line,) = (page_server[1] / "datasets" / "from-chat.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["input"] == searched

    build.locator("#t1").get_by_role("button", name="Open in Build").click()
    says(build, ".asked-question", searched)
    says(build, RESULT, "No verdict")


def test_answers_are_marked_by_keys_and_stay_marked_after_a_reload(build: Any) -> None:
    go(build, "#/build/chat")
    for question in ("Which planet has a moon called Titan?", "Who found Uranus?"):
        ask_in_chat(build, question)
    build.keyboard.press("Escape")
    build.keyboard.press("r")
    expect(build.locator("#t1 .marks .right")).to_have_attribute("aria-pressed", "true")
    build.locator("#t0 .marks .wrong").focus()
    build.keyboard.press("w")
    expect(build.locator("#dialog [name=answers]")).to_be_focused()
    build.keyboard.type("Saturn")
    press(build, "Keep the correction here")
    says(build, "#t0 .correction", "Saturn")
    build.reload()
    says(build, "#chat-list .on", "✓ 1 ✕ 1")
    says(build, "#t0 .correction", "Saturn")


def test_a_source_opens_its_page_at_the_passage_and_has_an_address(build: Any) -> None:
    door = build.locator("#build-result .open-page").first
    address = door.get_attribute("href")
    door.click()
    expect(build.locator("#drawer .cited-passage")).to_be_in_viewport()
    build.keyboard.press("Escape")
    go(build, address)
    expect(build.locator("#v-data-page .cited-passage")).to_be_in_viewport()
    build.reload()
    expect(build.locator("#v-data-page .cited-passage")).to_be_in_viewport()


def test_what_an_action_gave_never_cuts_the_k_of_the_action(build: Any) -> None:
    line = """() => {
        document.querySelector('#gist-0').textContent = '5 passages · gold at rank 1 · '.repeat(9);
        const what = document.querySelector('#act-0 .what');
        return [what.textContent.endsWith('k 5'), what.scrollWidth - what.clientWidth];
    }"""
    assert build.evaluate(line) == [True, 0]


def test_every_control_has_a_name_for_screen_readers(build: Any) -> None:
    nameless = """() => [...document.querySelectorAll('.view:not([hidden]) :is(input, select, textarea, button)')]
        .filter(el => el.offsetParent && el.type !== 'hidden' && !el.labels?.length && !el.ariaLabel && !el.textContent.trim() && !el.title)
        .map(el => el.outerHTML.slice(0, 120))"""
    for address in ("#/build/one", "#/build/few", "#/build/chat", "#/build/agent"):
        go(build, address)
        assert build.evaluate(nameless) == [], address


def test_every_form_of_the_code_is_shown_and_saved(build: Any) -> None:
    press(build, "Code")
    for label, words in (("YAML", "actions:"), ("Python", "import"), ("JSON", '"actions"')):
        build.locator("#drawer .seg button", has_text=label).click()
        says(build, "#drawer .code", words)
    with build.expect_download() as saved:
        press(build, "Download")
    assert saved.value.suggested_filename == "starter.json"


def test_a_prompt_is_edited_and_its_flip_seen_by_the_keyboard_alone(build: Any) -> None:
    build.keyboard.press("j")
    says(build, ".asked-question", "qa-002")
    while not build.locator("#act-1 .cm-content:focus").count():
        build.keyboard.press("Tab")
    build.keyboard.press("Control+A")
    build.keyboard.type("Malta")
    expect(build.locator("#build-result.stale")).to_be_visible()
    build.keyboard.press("Control+Enter")
    says(build, "#build-result .verdict h2", "Right")
    says(build, "#out-1", "Before")
    build.keyboard.press("Escape")
    build.keyboard.type("g2")
    build.wait_for_selector("#v-runs-list:not([hidden])")


@pytest.fixture
def server(build: Any, page_server: tuple[str, Path], request: Any) -> Any:
    """A model behind a server that misbehaves as the test's parameter demands, selected in the chain."""
    behaviour: Behaviour = request.param
    with Loopback(behaviour) as loopback:
        file = page_server[1] / "llms.json"
        entries = json.loads(file.read_text())
        settings = {"base_url": loopback.url, "model": "m"}
        name = f"slow-{loopback.port}"  # a loaded model keeps its address
        far = {"backend": "openai_compatible", "settings": settings}
        file.write_text(json.dumps({**entries, name: far}))
        build.reload()
        build.wait_for_selector(".verdict", timeout=PATIENCE)
        build.select_option("#chain-form [name=a1_target]", name)
        yield loopback
        file.write_text(json.dumps(entries))


@pytest.mark.parametrize("server", [hang(60)], indirect=True)
def test_a_server_that_hangs_is_told_and_stopped_after_a_reload(build: Any, server: Any) -> None:
    build.on("dialog", lambda dialog: dialog.accept())
    build.keyboard.press("Control+Enter")
    says(build, "#one-status", "Waiting for slow")
    build.reload()
    says(build, "#one-status", "Waiting for slow")
    build.locator("#one-status button").click()
    expect(build.locator("#one-status button")).to_have_count(0)
    says(build, "#build-result", "Stopped before there was an answer")
    says(build, "#one-status", "Stopped")
    build.keyboard.press("j")
    says(build, "#one-status", "Waiting for slow")
    build.locator("#one-status button").click()
    says(build, "#one-status", "Stopped")


@pytest.mark.parametrize("server", [fail(500, "out of memory")], indirect=True)
def test_a_server_that_fails_says_why_while_it_is_asked_again(build: Any, server: Loopback) -> None:
    build.keyboard.press("Control+Enter")
    says(build, "#out-1", "out of memory")
    build.locator("#one-status button").click()
    says(build, "#one-status", "Stopped")


def test_the_program_ends_in_order_while_a_model_hangs(browser: Any, tmp_path: Path) -> None:
    with Loopback(hang(60)) as loopback, serving(tmp_path) as url:
        settings = {"base_url": loopback.url, "model": "m"}
        far = {"echo": {"backend": "openai_compatible", "settings": settings}}
        (tmp_path / "llms.json").write_text(json.dumps(far))
        visitor = browser.new_page()
        visitor.goto(url)
        assert loopback.until(lambda: bool(loopback.bodies), 60)


@pytest.mark.parametrize("server", [hang(60)], indirect=True)
def test_a_button_that_is_drawn_again_while_it_is_pressed_is_still_clicked(
    build: Any, server: Any
) -> None:
    build.keyboard.press("Control+Enter")
    says(build, "#one-status", "Waiting for slow")
    button = build.locator("#one-status button")
    box = button.bounding_box()
    build.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    build.mouse.down()
    again = build.locator("#one-status").inner_html()
    build.evaluate("html => rb.apply({'#one-status': html + ' '})", again)
    build.mouse.up()
    says(build, "#one-status", "Stopped")
    says(build, "#build-result", "Stopped before there was an answer")


def test_an_episode_of_an_agent_is_edited_and_continued(build: Any) -> None:
    go(build, "#/build/agent")
    build.select_option("#agent-form [name=llm]", "echo")
    build.locator("#agent-buttons .primary").click()
    edit = build.locator("#agent-episode .piece.action button").first
    expect(edit).to_be_visible()
    edit.click()
    build.fill("#drawer [name=text]", "Finish[Johann Elert Bode]")
    build.keyboard.press("Control+Enter")
    says(build, "#agent-side", "Right")
    says(build, "#agent-episode", "Finish[Johann Elert Bode]")
    build.reload()
    says(build, "#agent-side", "Right")
    press(build, "Keep as a run")
    build.wait_for_selector("#v-runs-run:not([hidden])")
