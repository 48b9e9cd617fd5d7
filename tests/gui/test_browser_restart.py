"""A tab that stays open while the program is killed and started again: it says so and goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import App, expect, go, press, says, visiting

pytestmark = [pytest.mark.browser, pytest.mark.slow]

AWAY = "The program does not answer. Start rallebench again; this page continues by itself."
SENTENCE = "Titan is the largest moon of Saturn, and number {} of its seas is made of methane. "


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    folder = tmp_path / "workspace"
    folder.mkdir()
    app = App(folder)
    yield app
    app.end()


def check_away(tab: Any) -> None:
    """Check that one sentence, and no other, says that the program is gone."""
    expect(tab.locator(".away-note")).to_be_visible()
    says(tab, ".away-note", AWAY)
    expect(tab.locator("[role=alert]")).to_have_count(0)


def test_an_open_tab_sees_a_killed_import_through_its_restart(
    browser: Any, app: App, tmp_path: Path
) -> None:
    folder = tmp_path / "seas"
    folder.mkdir()
    for number in range(16):
        text = "\n\n".join(SENTENCE.format(f"{number}-{n}") * 8 for n in range(4))
        (folder / f"sea{number}.md").write_text(f"# Sea {number}\n\n{text}\n")
    with visiting(browser, app.url, "#/data/list") as tab:
        says(tab, "#data-datasets", "100.0 %")
        tab.set_input_files("#data-import input[webkitdirectory]", str(folder))
        press(tab, "Build 3 indexes and open Build")
        says(tab, "#data-import", "seas-minilm: encoding")
        app.kill()
        expect(tab.locator("body.away")).to_have_count(1)
        press(tab, "New hybrid")
        check_away(tab)
        app.start()
        says(tab, "#toasts", "The program was restarted; this view shows its present state.")
        says(tab, "#data-import", "The corpus is complete; its indexes are missing: seas-minilm")
        expect(tab.locator("#data-import")).not_to_contain_text("It continues if you leave")
        says(tab, "#job", "1 job interrupted")
        press(tab, "Build the 2 missing indexes")
        says(tab, "#data-import", "Imported seas.")
        says(tab, "#data-indexes", "seas-hybrid")
        expect(tab.locator(".away-note")).not_to_be_visible()


def test_the_edited_chain_of_a_tab_outlives_the_program(browser: Any, app: App) -> None:
    with visiting(browser, app.url, "#/build/one") as tab:
        says(tab, "#v-build-one", "Generate")
        tab.click("#act-0 summary")
        tab.locator("#chain-form [name=a0_k]").fill("3")
        tab.keyboard.press("Tab")
        tab.wait_for_function("localStorage.getItem('rb-draft')")
        app.kill()
        expect(tab.locator("body.away")).to_have_count(1)
        app.start()
        says(tab, "#toasts", "The program was restarted")
        says(tab, "#build-draft", "Restore")
        go(tab, "#/runs/list")
        says(tab, "#v-runs-list", "No run")
