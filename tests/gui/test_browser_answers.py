"""Answers in a browser: Markdown with code and formulas, the raw text, and copies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import expect, go, serving, visiting
from small_workspace import chain, generate, retrieve

pytestmark = pytest.mark.slow

ANSWER = r"""The **handbook** names two kinds:

1. a *closure*
2. `sort(key=len)`

| kind | price |
|---|--:|
| A | $5 |
| B | $7 |

```python
def area(r):  # of a circle
    return 3.14 * r ** 2
```

So \(a^2 < b\), and

$$\sum_{i=1}^{n} i = \frac{n(n+1)}{2}$$"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a page whose chain "writer" answers with Markdown."""
    folder: Path = tmp_path_factory.mktemp("answers")
    (folder / "chains").mkdir()
    writer = chain("writer", retrieve(target="starter-bm25", k=3), generate("{question}", "author"))
    (folder / "chains" / "writer.json").write_text(json.dumps(writer))
    author = {"backend": "scripted", "settings": {"default": ANSWER}}
    with serving(folder, models={"author": author}) as address:
        yield address


@pytest.fixture
def tab(browser: Any, url: str) -> Iterator[Any]:
    with visiting(browser, url) as visitor:
        visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
        visitor.wait_for_selector("body.ready")
        yield visitor


def clipboard(tab: Any) -> str:
    return str(tab.evaluate("() => navigator.clipboard.readText()"))


def copy(tab: Any, box: str) -> str:
    """Press the copy button inside an element, and return what it copied."""
    tab.evaluate("() => navigator.clipboard.writeText('nothing')")
    place = tab.locator(box).first
    place.hover()
    place.locator("> .copy").click()
    tab.wait_for_function("() => navigator.clipboard.readText().then(text => text !== 'nothing')")
    return clipboard(tab)


def test_build_draws_an_answer_and_copies_what_the_model_wrote(tab: Any) -> None:
    go(tab, "#/build/one?set=starter-qa&q=qa-006&chain=writer")
    tab.locator("#v-build-one [data-primary]").click()
    answer = tab.locator(".verdict .md")
    for part in ("ol li em", "table td", "pre .hl-k", "math msup", "math munderover"):
        expect(answer.locator(part).first).to_be_visible()
    answer.locator(".raw summary").click()
    expect(answer.locator(".raw pre")).to_have_text(ANSWER)
    assert copy(tab, ".verdict .copyable") == ANSWER
    assert copy(tab, "article.p .copyable").strip()


def test_a_button_pressed_while_another_chain_opens_runs_that_chain(tab: Any) -> None:
    go(tab, "#/build/one?set=starter-qa&q=qa-006&chain=starter")
    tab.evaluate(
        """() => {
          const press = () => document.querySelector('#v-build-one [data-primary]').click();
          addEventListener('hashchange', press, {once: true});
          location.hash = '#/build/one?set=starter-qa&q=qa-006&chain=writer';
        }"""
    )
    expect(tab.locator(".verdict .md ol li em").first).to_be_visible()


def test_chat_copies_an_answer_without_its_citation_marks(tab: Any) -> None:
    go(tab, "#/build/one?set=starter-qa&q=qa-006&chain=writer")
    expect(tab.locator(".verdict .md")).to_be_visible()
    go(tab, "#/build/chat")
    tab.locator("#v-build-chat textarea").first.fill("Which kinds are there?")
    tab.keyboard.press("Enter")
    expect(tab.locator(".turn .said pre .hl-k").first).to_be_visible()
    copied = copy(tab, ".turn .copyable")
    assert "def area(r):  # of a circle\n    return 3.14 * r ** 2" in copied and "[1]" not in copied


@pytest.mark.parametrize(
    ("label", "begins"),
    [
        ("Copy for a spreadsheet", "System\tBlock\t"),
        ("Copy as Markdown", "| System | Block |"),
        ("Copy as LaTeX", r"\begin{tabular}{l"),
    ],
)
def test_a_table_is_copied_in_three_forms(tab: Any, label: str, begins: str) -> None:
    go(tab, "#/experiments/published?table=ralle:2")
    tab.locator(".copy-table summary").first.click()
    tab.get_by_text(label).first.click()
    expect(tab.get_by_text("Copied").first).to_be_visible()
    assert clipboard(tab).startswith(begins)
