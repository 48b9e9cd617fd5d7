"""A person imports a corpus, builds an index, searches it and compares two, in a real browser."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import PATIENCE, choose, fill, holds, open_tab, press, says
from small_workspace import PASSAGES, QUESTIONS, record

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def data(page: Any) -> Iterator[Any]:
    """The Data tab."""
    open_tab(page, "Data")
    page.locator("#data-sections").wait_for(timeout=PATIENCE)
    yield page


def test_from_a_dropped_file_to_an_index_that_is_searched_with_its_gold(
    data: Any, tmp_path: Path, served: tuple[str, Path]
) -> None:
    corpus, questions = tmp_path / "moons.tsv", tmp_path / "moon-qa.jsonl"
    corpus.write_text(
        "".join(f"{page}\t{text}\t{title}\n" for _, text, title, page in PASSAGES) + "bad\n"
    )
    questions.write_text("".join(json.dumps(record(*row)) + "\n" for row in QUESTIONS))
    fill(data, "data-import-path", str(tmp_path / "mons.tsv"))
    press(data, "data-import-start", "data-import-status", "mons.tsv does not exist")
    fill(data, "data-import-path", str(corpus))
    press(data, "data-import-preview", "data-import-rows", "line 7 has one column")
    data.wait_for_function(
        "document.querySelector('#data-import-status').innerText.trim() == ''", timeout=PATIENCE
    )
    fill(data, "data-import-path", "")
    data.locator("#data-import-drop input[type=file]").set_input_files(str(corpus))
    path = "document.querySelector('#data-import-path').querySelector('input, textarea').value"
    data.wait_for_function(
        f"{path}.endsWith('moons.tsv')", timeout=PATIENCE
    )  # its rows were shown already
    says(data, "data-import-rows", "line 7 has one column")
    data.locator("#data-import-bad").get_by_label("leave out").check()
    press(
        data,
        "data-import-start",
        "data-import-progress",
        "Imported moons: 6 passages, 1 rows left out",
    )
    says(data, "data-corpora", "moons")
    data.locator("#data-import-what").get_by_label("a question set").check()
    fill(data, "data-import-path", str(questions))
    press(data, "data-import-preview", "data-import-rows", "Who discovered Titan in 1655?")
    press(data, "data-import-start", "data-import-status", "Imported moon-qa: 8 questions")

    open_tab(data, "Build an index")
    choose(data, "data-build-corpus", "moons")
    press(data, "data-build-estimate", "data-build-status", "6 passages, counted")
    press(
        data,
        "data-build-start",
        "data-build-progress",
        "Built moons-bm25: bm25, 6 passages of moons",
    )

    open_tab(data, "Search")
    choose(data, "data-search-retriever", "moons-bm25")
    choose(data, "data-search-dataset", "moon-qa")
    fill(data, "data-search-words", "discovered")
    says(data, "data-search-question", "(1 offered)")
    choose(data, "data-search-question", "Who discovered Titan in 1655?")
    says(data, "data-search-gold", "Christiaan Huygens")
    press(data, "data-search-ask", "data-search-found", "first gold page at rank 1")

    open_tab(data, "Indexes")
    data.locator("#data-indexes", has_text="moons-bm25").wait_for(timeout=PATIENCE)
    choose(data, "data-index-chosen", "moons-bm25")
    data.click("#data-index-delete")
    data.locator("#data-index-delete-sure", has_text="Yes, delete moons-bm25").click()
    says(data, "data-index-delete-status", "unload it in Models")
    assert (served[1] / "indexes" / "moons-bm25").is_dir()


def test_a_second_window_sees_a_build_that_goes_on_and_stops_it(
    data: Any, tmp_path: Path, served: tuple[str, Path]
) -> None:
    corpus = tmp_path / "long.tsv"
    corpus.write_text("".join(f"{n}\t{'word ' * 100}{n}\tT\n" for n in range(60_000)))
    open_tab(data, "Build an index")
    fill(data, "data-build-corpus", str(corpus))
    data.locator("#data-build-corpus input").press("Enter")
    data.locator("#data-build-kind").get_by_label("flat", exact=True).check()
    data.locator("#data-build-encoder input").wait_for(timeout=PATIENCE)
    choose(data, "data-build-encoder", "hashing")
    press(data, "data-build-start", "data-build-progress", "long-flat: encoding passages")
    second = data.context.new_page()
    second.goto(served[0])
    open_tab(second, "Data")
    open_tab(second, "Build an index")
    says(second, "data-build-progress", "a second")
    holds(second, "data-build-going", "long-flat")
    press(
        second, "data-build-stop", "data-build-progress", "was stopped; start it again to continue"
    )
    data.bring_to_front()  # Chromium slows the timers of a window that is not in front
    says(data, "data-build-progress", "was stopped; start it again to continue")
    deadline = time.monotonic() + 20
    while list((served[1] / "indexes").glob("*long-flat*")):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_the_cuts_of_a_shipped_document_are_drawn_anew_when_a_setting_changes(data: Any) -> None:
    open_tab(data, "Chunk preview")
    press(data, "data-chunks-show", "data-chunks-shown", "chunk")
    fill(data, "data-chunks-size", "12")
    fill(data, "data-chunks-overlap", "4")
    data.locator("#data-chunks-shown .rb-chunk-both").first.wait_for(timeout=PATIENCE)
    says(data, "data-chunks-shown", "– 12 words")
    shared = data.locator("#data-chunks-shown .rb-chunk-both").all_inner_texts()
    numbers = data.locator("#data-chunks-shown sup").all_inner_texts()
    assert {len(text.split()) for text in shared} == {4}
    assert numbers == [str(number) for number in range(1, len(shared) + 2)], (
        "neighbours share one piece each"
    )
    says(data, "data-chunks-shown", f"{len(numbers)} chunks")


def test_indexes_are_compared_and_nothing_is_fetched_from_elsewhere(
    data: Any, served: tuple[str, Path]
) -> None:
    asked: list[str] = []
    data.on("request", lambda request: asked.append(request.url))
    open_tab(data, "Trade-off")
    data.locator("#data-tradeoff-indexes").get_by_label("starter-bm25").check()
    fill(data, "data-tradeoff-limit", "4")
    fill(data, "data-tradeoff-name", "first")
    press(data, "data-tradeoff-start", "data-tradeoff-progress", "Measured first")
    says(data, "data-tradeoff-table", "4 questions of starter-qa")
    data.locator("#data-tradeoff-plot .js-plotly-plot").wait_for(timeout=PATIENCE)
    says(data, "data-tradeoff-command", "--index starter-bm25")
    with data.expect_download() as taken:
        data.click("#data-tradeoff-csv")
    assert Path(taken.value.path()).read_text().startswith("index,kind,settings,recall")
    assert (served[1] / "experiments" / "first" / "report.json").is_file()
    assert not [url for url in asked if not url.startswith((served[0], "data:", "blob:"))]
