"""The editor of a prompt: variables, completion, faults at their place, tokens, full screen, undo."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browsing import expect, go, says, visiting

pytestmark = pytest.mark.slow

PROMPT = "#act-1 .cm-content"
FIELD = "#a1_template"


@pytest.fixture
def build(browser: Any, page_server: Any) -> Iterator[Any]:
    with visiting(browser, page_server[0]) as visitor:
        visitor.wait_for_selector(PROMPT)
        visitor.wait_for_selector(".verdict")
        yield visitor


def type_prompt(build: Any, text: str) -> None:
    """Replace the prompt by typing."""
    build.click(PROMPT)
    build.keyboard.press("Control+A")
    build.keyboard.type(text)


def test_variables_are_marked_while_one_types(build: Any) -> None:
    type_prompt(build, "Say {question} {missing} {{brace}}")
    expect(build.locator("#act-1 .tv:not(.unknown)")).to_have_text("{question}")
    expect(build.locator("#act-1 .tv.unknown")).to_have_text("{missing}")
    says(build, "#a1_state .bad", "there is no variable 'missing'")
    expect(build.locator("#act-1 .cm-lintRange-error")).to_be_visible()
    expect(build.locator(FIELD)).to_have_value("Say {question} {missing} {{brace}}")


def test_a_brace_offers_the_variables(build: Any) -> None:
    type_prompt(build, "Say {")
    build.wait_for_selector(".cm-tooltip-autocomplete")
    build.keyboard.type("resp")
    expect(build.locator(".cm-tooltip-autocomplete li")).to_have_text(["response[0]"])
    build.wait_for_timeout(100)  # the list ignores a key that comes at once
    build.keyboard.press("Enter")
    expect(build.locator(FIELD)).to_have_value("Say {response[0]}")
    build.keyboard.type(" {")
    build.wait_for_selector(".cm-tooltip-autocomplete")
    build.keyboard.press("Escape")  # closes the list alone
    expect(build.locator(".cm-tooltip-autocomplete")).to_have_count(0)
    build.keyboard.type("{x}}")
    expect(build.locator(FIELD)).to_have_value("Say {response[0]} {{x}}")


def test_the_eval_dialect_is_coloured_and_checked(build: Any) -> None:
    build.click("#a1_more > summary")
    build.locator("#act-1 [name=a1_dialect]").select_option("eval")
    type_prompt(build, "'; '.join(d['text'] for d in documents[0]")
    says(build, "#a1_state .bad", "Template")
    build.keyboard.press("End")
    build.keyboard.type(")")
    expect(build.locator("#a1_state .bad")).to_have_count(0)
    assert build.locator("#act-1 .cm-line span[class]").count() > 3


def test_a_key_opens_the_full_screen_and_escape_leaves_it(build: Any) -> None:
    build.click(PROMPT)
    expect(build.locator("#act-1 > .body.wide")).to_be_visible()
    build.keyboard.press("Control+Shift+F")
    box = build.locator(".editor.full").bounding_box()
    assert box["width"] > 1200 and box["height"] > 800
    build.keyboard.press("Escape")
    expect(build.locator(".editor.full")).to_have_count(0)
    build.click("#build-words")
    expect(build.locator("#act-1 > .body.wide")).to_have_count(0)


def test_undo_belongs_to_the_field_and_survives_a_run(build: Any) -> None:
    type_prompt(build, "Only {question}")
    build.keyboard.press("Control+Enter")
    says(build, "#out-1", "Only Which")
    go(build, "#/models/list")
    go(build, "#/build/one")  # draws the chain again
    build.wait_for_function("rb.idle()")
    build.wait_for_selector(f"{FIELD}[data-editor=on]", state="attached")
    build.click(PROMPT)
    build.keyboard.press("Control+Z")
    expect(build.locator(FIELD)).not_to_have_value("Only {question}")
    build.keyboard.press("Control+Y")
    expect(build.locator(FIELD)).to_have_value("Only {question}")


def test_the_editor_gets_its_frames_at_once_while_endless_animations_rest(build: Any) -> None:
    build.wait_for_function("window.rallebenchIdle")
    frame = "new Promise(done => { requestAnimationFrame(() => done('frame')); setTimeout(() => done('late'), 4500) })"
    assert build.evaluate(frame) == "frame"
    loop = """new Promise(done => {
        let frames = 0;
        const draw = () => { frames++; requestAnimationFrame(draw); };
        draw();
        setTimeout(() => done(frames), 1500);
    })"""
    assert build.evaluate(loop) <= 2


def test_a_long_prompt_is_in_the_form_when_it_is_read(build: Any) -> None:
    type_prompt(build, "")
    text = "{question} " + "word " * 4000
    build.keyboard.insert_text(text)
    build.keyboard.type("end")
    build.keyboard.press("Control+Enter")  # reads the form before the typing rests
    says(build, "#out-1", "end")
    expect(build.locator(FIELD)).to_have_value(f"{text}end")


def test_the_field_itself_is_edited_where_the_editor_cannot_be_fetched(
    browser: Any, page_server: Any
) -> None:
    context = browser.new_context()
    visitor = context.new_page()
    visitor.route("**/vendor/codemirror*", lambda route: route.abort())
    visitor.goto(page_server[0])
    visitor.wait_for_selector(".verdict")
    visitor.click(FIELD)
    visitor.keyboard.press("Control+A")
    visitor.keyboard.type("Plain {question}")
    expect(visitor.locator("#chain .dot")).to_be_visible()
    context.close()
