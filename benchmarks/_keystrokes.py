"""Typing in the prompt editor of the page, and in a bare CodeMirror in the same browser: time from a key to its frame."""

from __future__ import annotations

from typing import Any

import _report

CHARACTERS = 20_000
PAUSE_AFTER, PAUSE = 20, 600
"""Keys before a pause, and its milliseconds, in which the page checks the prompt and counts its tokens."""
EDITOR = "#act-1 .cm-content"
FAST_FRAMES = ("--disable-gpu-vsync", "--disable-frame-rate-limit")
"""Flags of Chromium: a frame is drawn as soon as its work is done, so that no waiting for the screen is measured."""
VENDORED = "new URL('codemirror-6.43.15.js', document.querySelector('link[rel=preload][as=font]').href).href"

WATCH_KEYS = """() => {
    window.keyTimes = [];
    addEventListener('keydown', event => requestAnimationFrame(() => {
        const painted = new MessageChannel();  // its message comes after the frame
        painted.port1.onmessage = () => keyTimes.push(performance.now() - event.timeStamp);
        painted.port2.postMessage(0);
    }), true);
}"""

BARE = """async ([vendored, text]) => {
    const kit = await import(vendored);
    const extensions = [kit.history(), kit.EditorView.lineWrapping, kit.keymap.of(kit.defaultKeymap)];
    const state = kit.EditorState.create({doc: text, extensions});
    new kit.EditorView({state, parent: document.body}).focus();
}"""


def long_prompt(characters: int) -> str:
    """A prompt of paragraphs with variables, so many characters long."""
    paragraph = "Answer {question} from the passages in a few words, or decline. " * 6 + "\n\n"
    return (paragraph * (characters // len(paragraph) + 1))[:characters]


def type_keys(page: Any, count: int) -> list[float]:
    """Milliseconds from each key to its frame, typed in the middle of the text."""
    page.keyboard.press("Control+Home")
    for _ in range(20):
        page.keyboard.press("ArrowDown")
    page.wait_for_timeout(PAUSE)
    page.evaluate(WATCH_KEYS)
    for number in range(count):
        page.keyboard.press("abcdefghij klmnopqrs"[number % 20])
        page.wait_for_timeout(PAUSE if number % PAUSE_AFTER == PAUSE_AFTER - 1 else 30)
    return list(page.evaluate("keyTimes"))


def type_by_turns(browser: Any, url: str, rounds: int, count: int) -> dict[str, list[float]]:
    """Milliseconds a key in the editor of the page and in a bare one, with the same text."""
    figures: dict[str, list[float]] = {"typing": [], "bare typing": []}
    text = long_prompt(CHARACTERS)
    for _ in range(rounds):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        page.goto(url)
        page.wait_for_selector(EDITOR, timeout=60_000)
        page.wait_for_selector(".verdict", timeout=60_000)
        page.fill("#a1_template", text)
        page.wait_for_timeout(PAUSE)
        page.wait_for_function("rb.idle()")
        page.click(EDITOR)
        figures["typing"] += type_keys(page, count)
        vendored = page.evaluate(VENDORED)
        bare = context.new_page()
        bare.route(
            "**/bare", lambda route: route.fulfill(body="<body></body>", content_type="text/html")
        )
        bare.goto(f"{url}bare")
        bare.evaluate(BARE, [vendored, text])
        figures["bare typing"] += type_keys(bare, count)
        context.close()
    return figures


def percentile(samples: list[float], share: float) -> float:
    """The sample below which this share of them lies."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def keystroke_measures(figures: dict[str, list[float]]) -> list[_report.Measure]:
    """Return the median and the 95th percentile, compared with a bare CodeMirror."""
    ours, bare, beside = figures["typing"], figures["bare typing"], "a bare CodeMirror"
    slow, bare_slow = ([percentile(samples, 0.95)] for samples in (ours, bare))
    name = f"a key in a prompt of {CHARACTERS:,} characters"
    return [
        _report.Measure(name, "ms", ours, bare, beside, most=16),
        _report.Measure(f"{name}, 95th percentile", "ms", slow, bare_slow, beside, most=16),
    ]
