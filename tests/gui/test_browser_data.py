"""Data in a real browser: from own files to a searched index, menus, reading by keyboard, reload and two windows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from browsing import PATIENCE, expect, go, press, says, visiting
from small_workspace import PASSAGES, RECORDS, write_lines

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def data(tab: Any) -> Any:
    go(tab, "#/data/list")
    says(tab, "#data-datasets", "100.0 %")
    return tab


def moons(folder: Path) -> Path:
    """A folder with one document for each page of the questions."""
    (folder / "sub").mkdir(parents=True)
    for doc_id, text, title, _ in PASSAGES:
        (folder / "sub" / f"{doc_id}.md").write_text(f"# {title}\n\n{text}\n")
    return folder


def test_from_a_dropped_folder_to_a_search_that_marks_the_gold(data: Any, tmp_path: Path) -> None:
    data.set_input_files("#data-import input[webkitdirectory]", str(moons(tmp_path / "moons")))
    says(data, "#data-import", "moons is a corpus")
    says(data, "#data-import", "Titan is the largest moon of Saturn")
    expect(data.locator("#data-import [name=indexes]:checked")).to_have_count(3)
    data.select_option("#data-import [name=encoder]", "hashing")
    press(data, "Build 3 indexes and open Build")
    data.wait_for_selector("#v-build-one:not([hidden]) *", timeout=PATIENCE)
    says(data, "#v-build-one", "moons-hybrid")
    go(data, "#/data/list")
    says(data, "#data-import", "Imported moons.")
    says(data, "#data-indexes", "moons-hybrid")
    says(data, "#data-corpora", "moons")
    records = [
        {**row, "output": [{"answer": "x", "provenance": [{"wikipedia_id": f"sub/{n}.md"}]}]}
        for n, row in enumerate(RECORDS[:6], 1)
    ]
    press(data, "Import another")
    data.fill("#data-import [name=path]", str(write_lines(tmp_path / "moon-qa.jsonl", records)))
    data.keyboard.press("Enter")
    says(data, "#data-import", "is a dataset")
    press(data, "Import")
    says(data, "#data-import", "6 questions")
    expect(data.locator("#data-datasets")).not_to_contain_text("cannot be scored")
    go(data, "#/data/index?id=moons-hybrid&set=moon-qa&q=q4")
    press(data, "Search")
    says(data, "#index-hits", "first gold page at rank")
    expect(data.locator("#index-hits .p.g")).to_have_count(1)
    says(data, "#index-head", "loaded")


def test_from_a_folder_and_a_table_of_questions_to_the_first_answers(
    data: Any, tmp_path: Path
) -> None:
    data.set_input_files("#data-import input[webkitdirectory]", str(moons(tmp_path / "lunar")))
    says(data, "#data-import", "Counted in 6 documents.")
    table = tmp_path / "ask.csv"
    lines = [f'"{row["input"]}",{row["output"][0]["answer"]}\n' for row in RECORDS]
    table.write_text("question,answer\n" + "".join(lines))
    data.set_input_files("#import-asked input[type=file]", str(table))
    says(data, "#import-asked .firsts", str(RECORDS[2]["input"]))
    says(data, "#import-chunks", "0 of 8")
    data.select_option("#data-import [name=cut]", "own")
    data.fill("#data-import [name=size]", "1")
    says(data, "#import-chunks", "2 of 8")
    expect(data.locator("#import-chunks .border")).to_have_count(1)
    data.select_option("#data-import [name=cut]", "default")
    data.fill("#data-import [name=size]", "")
    says(data, "#import-chunks", "0 of 8")
    data.select_option("#data-import [name=encoder]", "hashing")
    press(data, "Build 3 indexes and try 8 questions")
    data.wait_for_selector("#v-build-few:not([hidden]) *", timeout=PATIENCE)
    says(data, "#v-build-few", "All answered")
    says(data, "#few-grid", "lunar · lunar-bm25")
    expect(data.locator("#few-grid td")).to_have_count(24)


def test_long_names_and_paths_do_not_widen_the_import_or_the_list_of_indexes(
    data: Any, page_server: tuple[str, Path], tmp_path: Path
) -> None:
    folder = moons(tmp_path / "moons")
    (folder / ("a-very-long-name-without-a-blank" * 3 + ".md")).write_text("")
    data.set_input_files("#data-import input[webkitdirectory]", str(folder))
    says(data, "#data-import", "1 bad row")
    wider = "node => node.scrollWidth > node.clientWidth"
    assert not data.locator("#data-import").evaluate(wider)
    long = "an-index-with-a-name-that-is-long-64w-flat-b151b924"
    data.locator("#data-indexes td .nm").first.evaluate(
        "(node, name) => (node.textContent = name)", long
    )
    assert not data.locator("#data-indexes").evaluate(wider)


def test_the_steps_of_an_import_survive_a_reload_and_are_not_shared(
    data: Any, browser: Any, page_server: tuple[str, Path], tmp_path: Path
) -> None:
    place = write_lines(tmp_path / "own.jsonl", RECORDS)
    data.fill("#data-import [name=path]", str(place))
    press(data, "Preview")
    says(data, "#data-import", "step 2 of 3")
    data.reload()
    says(data, "#data-import", "step 2 of 3")
    with visiting(browser, page_server[0], "#/data/list") as other:
        says(other, "#data-import", "step 1 of 3")


def test_what_is_wrong_is_said_where_it_happened(data: Any) -> None:
    data.fill("#data-import [name=path]", "/nowhere/at-all.tsv")
    press(data, "Preview")
    says(data, "#data-import .problem", "/nowhere/at-all.tsv does not exist")


def test_a_row_menu_deletes_after_it_says_what_breaks(
    data: Any, page_server: tuple[str, Path]
) -> None:
    path = page_server[1] / "retrievers.json"
    path.write_text(json.dumps({"mix": {"kind": "rrf", "of": ["starter-bm25", "starter-minilm"]}}))
    go(data, "#/models/list")
    go(data, "#/data/list")
    row = data.locator("#data-indexes tr", has_text="mix")
    row.locator("summary").click()
    row.locator("button", has_text="Delete").click()
    says(data, "dialog[open]", "Delete the combination mix?")
    data.keyboard.press("Escape")
    assert "mix" in path.read_text()
    row.locator("summary").focus()
    data.keyboard.press("Enter")
    row.locator("button", has_text="Delete").focus()
    data.keyboard.press("Enter")
    says(data, "dialog[open]", "Nothing else uses it.")
    data.locator("dialog[open] button.danger").click()
    expect(row).to_have_count(0)


def test_an_open_row_menu_stays_open_with_its_focus_when_the_list_is_drawn_again(data: Any) -> None:
    row = data.locator(
        "#data-indexes tr", has=data.locator("summary[title='Actions for starter-bm25']")
    )
    row.locator("summary").focus()
    data.keyboard.press("Enter")
    row.locator("button", has_text="Use in Build").focus()
    data.evaluate(
        """() => { const list = document.querySelector('#data-indexes'); window.before = list.firstElementChild;
        rb.apply({'#data-indexes': list.innerHTML.replaceAll(' open=""', '') + '<!-- news -->'}); }"""
    )
    assert data.evaluate("!window.before.isConnected")
    expect(data.locator("#data-indexes details.menu[open]")).to_have_count(1)
    expect(row.locator("details.menu")).to_have_attribute("open", "")
    expect(row.locator("button", has_text="Use in Build")).to_be_focused()
    data.keyboard.press("Escape")
    expect(row.locator("summary")).to_be_focused()


def test_records_are_read_with_j_and_k_and_the_filter_by_slash(data: Any) -> None:
    go(data, "#/data/dataset?id=starter-qa&q=qa-006")
    says(data, "#dataset-chosen", "tongue")
    data.keyboard.press("j")
    says(data, "#dataset-chosen", "qa-007")
    data.wait_for_function("location.hash.includes('q=qa-007')", timeout=PATIENCE)
    data.reload()
    says(data, "#dataset-chosen", "qa-007")
    data.keyboard.press("/")
    data.keyboard.type("crocodile", delay=20)
    says(data, "#dataset-list", "2 questions")
    assert data.evaluate("document.activeElement.name") == "find"
    data.wait_for_function("location.hash.includes('find=crocodile')", timeout=PATIENCE)
    data.go_back()
    data.wait_for_selector("#v-data-list:not([hidden]) *", timeout=PATIENCE)


def test_cuts_are_drawn_anew_when_a_setting_changes(data: Any) -> None:
    go(data, "#/data/corpus?id=starter")
    data.click("#corpus-cutting summary")
    data.select_option("#corpus-cutting [name=cut]", "own")
    data.fill("#corpus-cutting [name=size]", "20")
    data.keyboard.press("Tab")
    says(data, "#corpus-text", "chunks, ")
    assert data.locator("#corpus-text .chunk.b").count()


def test_an_index_is_used_in_build(data: Any) -> None:
    go(data, "#/data/index?id=starter-bm25")
    press(data, "Use in Build")
    data.wait_for_selector("#v-build-one:not([hidden]) *", timeout=PATIENCE)
    says(data, "#v-build-one", "starter-bm25")


def test_columns_are_chosen_beside_their_first_values_and_the_preview_follows(
    data: Any, tmp_path: Path
) -> None:
    rows = [
        {"nr": n, "frage": f"Which moon has the number {n}?", "antwort": {"text": [name]}, "quelle": f"p{n}"}
        for n, name in enumerate(("Titan", "Rhea", "Iapetus", "Dione"), 1)
    ]  # fmt: skip
    data.fill("#data-import [name=path]", str(write_lines(tmp_path / "their.jsonl", rows)))
    press(data, "Preview")
    says(data, "#data-import", "Choose the one that holds the questions.")
    expect(data.locator("#import-columns")).to_have_attribute("open", "")
    data.select_option("#import-columns [name=column_question]", "frage")
    says(data, "#data-import", "Which moon has the number 3?")
    data.select_option("#import-columns [name=column_answer]", "antwort.text")
    says(data, "#data-import .firsts", "Titan")
    data.select_option("#import-columns [name=column_page]", "quelle")
    says(data, "#data-import .firsts", "1 gold page")
    expect(data.locator("#import-columns .values li")).to_have_count(9)
    wider = "node => node.scrollWidth > node.clientWidth"
    assert not data.locator("#data-import").evaluate(wider)
    data.screenshot(path=tmp_path / "columns.png")
    press(data, "Import")
    says(data, "#data-import", "Imported their.")
    says(data, "#data-import", "4 with answers")


def test_gold_pages_are_chosen_by_keys_and_saved(data: Any, page_server: tuple[str, Path]) -> None:
    rows = [
        {"id": "a", "input": "Which animal has a bifurcated penis?", "output": [{"answer": "x"}]},
        {"id": "b", "input": "What do crocodiles eat?", "output": [{"answer": "fish"}]},
    ]
    path = write_lines(page_server[1] / "datasets" / "bare.jsonl", rows)
    go(data, "#/data/gold?id=bare&index=starter-bm25")
    says(data, "#gold-hits", "1 Take as gold")
    data.keyboard.press("1")
    says(data, "#gold-hits", "1 Remove")
    says(data, "#gold-bar", "1 of 2 questions with a gold page")
    data.keyboard.press("j")
    says(data, "#gold-chosen h2", "crocodiles")
    says(data, "#gold-hits", "2 Take as gold")
    data.keyboard.press("2")
    says(data, "#gold-bar", "2 of 2 questions")
    press(data, "Save gold of 2 questions")
    says(data, "#toasts", "Saved the gold pages of 2 questions.")
    saved = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(row["output"][-1]["provenance"] for row in saved)
