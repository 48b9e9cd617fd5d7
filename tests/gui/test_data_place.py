"""Data: its views and actions on a small workspace, without a browser."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_views import ended, opened_page, refused, text_of, texts, view_of
from small_workspace import make_workspace, record, write_lines

from rallebench.core.chunking import Chunking
from rallebench.core.errors import (
    BadFileError,
    NotFoundError,
    RalleError,
    SettingError,
    UsageError,
)
from rallebench.core.experiment_reports import BuilderReport
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.places._bench import Bench
from rallebench.gui.places._data_build import mark_chunks
from rallebench.gui.places._data_builders import outcome as outcome
from rallebench.gui.places._import_state import ImportState

TEXT = "It happened in a town by the sea, and <b>everybody</b> remembers. " * 20
REPLIES = {
    "most of its facts": '{"recent": true}',
    "Read the text[\\s\\S]*One": "Where did the first festival happen?",
    "Read the text": "I cannot.",
    "answered completely": '{"answerable": true}',
    "from what you know": '{"known": false}',
}


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    folder = make_workspace(tmp_path / "workspace")
    models = json.loads((folder / "llms.json").read_text())
    models["writer"] = {"backend": "scripted", "settings": {"replies": REPLIES}}
    (folder / "llms.json").write_text(json.dumps(models))
    with opened_page(folder) as page:
        yield page


def place(page: Page, name: str = "corpus.tsv") -> str:
    return str(page.workbench.workspace.path / name)


# lists


def test_the_lists_name_what_there_is_and_coverage_follows(page: Page) -> None:
    body = view_of(page, "data/list")
    assert "…" in texts(body) and 'data-lazy data-do="data.refresh"' in body
    patch = page.call("data.refresh")
    assert "starter 371 220" in texts(patch.html["data-corpora"]).replace(
        "comes with rallebench ", ""
    )
    assert "tiny words corpus.tsv" in texts(patch.html["data-indexes"])
    row = texts(patch.html["data-datasets"]).partition("tiny-qa ")[2]
    assert row.startswith("8 short answers 0.0 % 100.0 %")


def test_a_dataset_that_no_corpus_covers_is_named_with_its_way_out(page: Page) -> None:
    lost = [record("x1", "Which sea?", "Black Sea", "nowhere")]
    write_lines(page.workspace.path / "datasets" / "lost.jsonl", lost)
    warning = texts(page.call("data.refresh").html["data-datasets"])
    assert "lost cannot be scored on any corpus here." in warning
    assert "Import the corpus that these questions are about" in warning
    assert "tiny-qa cannot" not in warning, "a corpus here has its gold pages"


def test_a_damaged_index_and_a_damaged_list_of_combinations_are_sentences(page: Page) -> None:
    folder = page.workbench.workspace.indexes / "broken"
    folder.mkdir()
    (folder / "manifest.json").write_text("{}")
    assert "broken – – – – damaged" in texts(page.call("data.refresh").html["data-indexes"])
    (page.workbench.workspace.path / "retrievers.json").write_text("[")
    patch = page.call("data.refresh")
    assert (
        "retrievers.json" in patch.html["data-indexes"] and "tiny-qa" in patch.html["data-datasets"]
    )


def test_names_are_escaped(page: Page) -> None:
    write_lines(Path(place(page, "datasets")) / "<img src=x>.jsonl", [{"id": "1", "input": "<b>?"}])
    patch = page.call("data.refresh")
    assert "<img" not in patch.html["data-datasets"] and "&lt;img" in patch.html["data-datasets"]


def test_a_deletion_tells_what_breaks_and_is_confirmed(page: Page) -> None:
    dialog = page.call("data.ask_delete", {"what": "index", "id": "tiny"}).dialog
    assert "Delete the index tiny?" in dialog and "the chain read" in dialog.lower()
    assert page.workbench.workspace.index_folder("tiny"), "nothing is deleted yet"
    patch = page.call("data.delete", {"what": "index", "id": "tiny"})
    assert "Deleted the index tiny" in patch.say and patch.dialog == ""
    assert "tiny" not in texts(patch.html["data-indexes"])
    dialog = page.call("data.ask_delete", {"what": "dataset", "id": "tiny-qa"}).dialog
    assert "Nothing else uses it." in dialog
    assert "tiny-qa" in page.call("data.delete", {"what": "dataset", "id": "tiny-qa"}).say
    refused(page, "data.delete", {"what": "", "id": "x"}, "Nothing is chosen")


def test_a_loaded_index_is_not_deleted_and_is_unloaded_from_its_menu(page: Page) -> None:
    page.call("models.load", {"id": "tiny", "what": "retriever"})
    ended(page, "load", "tiny")
    patch = page.call("data.refresh")
    assert "loaded" in patch.html["data-indexes"] and "models.unload" in patch.html["data-indexes"]
    refused(page, "data.delete", {"what": "index", "id": "tiny"}, "is loaded")
    assert "Unloaded tiny" in page.call("models.unload", {"id": "tiny"}).say


def test_verifying_is_a_job_and_its_end_is_the_state(page: Page) -> None:
    page.call("data.verify", {"id": "tiny"})
    ended(page, "check", "tiny")
    assert "checked" in texts(page.call("data.refresh").html["data-indexes"])
    (page.workbench.workspace.indexes / "tiny" / "offsets.npy").write_bytes(b"x")
    page.call("data.verify", {"id": "tiny"})
    assert ended(page, "check", "tiny").error is not None
    assert "damaged" in texts(page.call("data.refresh").html["data-indexes"])


def test_an_index_is_put_into_the_chain_of_build(page: Page) -> None:
    page.open("build/one?chain=read&set=tiny-qa")
    assert page.call("data.use", {"id": "starter-bm25"}).go == "#/build/one"
    bench = page.session("w").state(Bench)
    assert bench.chain.actions[0].target == "starter-bm25" and bench.past


# import


def preview(page: Page, **fields: Any) -> str:
    return "".join(map(str, page.call("import.preview", fields).html.values()))


def test_a_guessed_encoding_is_shown_and_another_can_be_chosen(page: Page) -> None:
    Path(place(page, "old.tsv")).write_bytes("1\tŁódź leży w Polsce.\tŁódź\n".encode("cp1250"))
    shown = texts(preview(page, path=place(page, "old.tsv")))
    assert "1 file read as Windows-1252, since it is not UTF-8: old.tsv." in shown
    assert "Łódź" not in shown
    fields = {"kind": "corpus", "form": "tsv", "name": "lodz", "encoding": "cp1250"}
    shown = preview(page, **fields)
    assert "Łódź leży w Polsce." in shown and "Windows-1252, since" not in shown
    page.call("import.start", {**fields, "indexes": [], "encoder": "hashing", "cut": "whole"})
    ended(page, "import", "lodz")
    stored = Path(place(page, "corpora/lodz/passages.jsonl")).read_text(encoding="utf-8")
    assert "Łódź leży w Polsce." in stored


def test_an_import_from_a_typed_path_to_its_indexes(page: Page) -> None:
    body = preview(page, path=f'"{place(page)}"')
    assert "corpus.tsv is a corpus" in texts(body) and "Titan is the largest moon" in body
    assert body.count(" checked") == 3, "words, dense and hybrid are ticked"
    fields = {"kind": "corpus", "form": "tsv", "name": "moons", "pages": place(page, "pages.json")}
    indexes = {"indexes": ["bm25", "dense", "hybrid"], "encoder": "hashing", "cut": "whole"}
    page.call("import.start", {**fields, **indexes})
    ended(page, "import", "moons")
    panel = page.call("import.show").html["data-import"]
    assert "<progress" not in panel, "what is done has no bar left"
    assert "Imported moons." in panel and "moons-hybrid" in panel and "step 3 of 3" in texts(panel)
    patch = page.call("data.refresh")
    assert all(
        f"moons-{way}" in patch.html["data-indexes"] for way in ("bm25", "hashing", "hybrid")
    )
    assert "step 1 of 3" in texts(page.call("import.again").html["data-import"])


def test_the_preview_survives_a_reload_and_belongs_to_its_window(page: Page) -> None:
    preview(page, path=place(page))
    assert "step 2 of 3" in text_of(page, "data/list")
    assert "step 1 of 3" in text_of(page, "data/list", window="other")


def test_questions_in_the_usual_form_are_a_dataset(page: Page, tmp_path: Path) -> None:
    rows = [
        {"question": "Who opened it?", "answers": ["Irma Talvik", "Talvik"]},
        {"question": "Who is the mayor?", "answers": ["Otto " * 2_000]},
    ]
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, rows)))
    body = texts(preview(page, path=str(tmp_path / "own.jsonl")))
    assert "is a dataset" in body and "Irma Talvik · Talvik" in body
    assert len(body) < 2_000, "a long answer is cut"


def test_what_cannot_be_read_is_not_offered_for_import(page: Page, tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").write_text('{"ask": "Who?"}\n')
    body = preview(page, path=str(tmp_path / "own.jsonl"))
    assert (
        "No column is named like a question. Choose the one that holds the questions. ask Who?"
        in texts(body)
    )
    assert "import.start" not in body and "Build when done" not in body


def test_an_uploaded_archive_is_unpacked_and_recognised(page: Page, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        archive.write(place(page, "datasets/tiny-qa.jsonl"), "tiny-qa.jsonl")
    files = [{"path": str(tmp_path / "set.zip"), "name": "set.zip"}]
    body = preview(page, files=files)
    assert "is a dataset" in texts(body) and "Which moon of Saturn" in body and "BM25" not in body
    page.call("import.start", {"kind": "dataset", "form": "kilt", "name": "again"})
    assert ended(page, "import", "again").error is None
    assert "again" in page.workbench.workspace.dataset_paths()


def test_questions_without_known_gold_are_warned_of_before_and_after_their_import(
    page: Page, tmp_path: Path
) -> None:
    (tmp_path / "own.csv").write_text("question,gold_text,source\nWhich moon?,Titan,titan.md\n")
    body = texts(preview(page, path=str(tmp_path / "own.csv")))
    assert "None of 1 question has an answer" in body
    assert "look like gold: &#39;gold_text&#39; (1 row)" in body
    page.call("import.start", {"kind": "dataset", "form": "csv", "name": "own"})
    assert ended(page, "import", "own").error is None
    panel = text_of(page, "data/list")
    assert "0 with answers, 0 with gold pages, 1 with neither" in panel
    assert "&#39;source&#39; (1 row) may name gold pages" in panel


def test_a_preview_shows_the_gold_pages_that_a_column_names_as_the_import_does(
    page: Page, tmp_path: Path
) -> None:
    (tmp_path / "titan.md").write_text("Titan is the largest moon of Saturn.")
    list(page.workbench.data.import_corpus("moons", tmp_path / "titan.md"))
    (tmp_path / "own.csv").write_text("question,answer,source\nWhich moon?,Titan,titan.md\n")
    body = texts(preview(page, path=str(tmp_path / "own.csv")))
    named = "names pages of the corpus &#39;moons&#39; in 1 of 1 row"
    assert "Titan 1 gold page" in body and named in body and "No question names" not in body
    page.call("import.start", {"kind": "dataset", "form": "csv", "name": "own"})
    assert ended(page, "import", "own").error is None
    assert named in text_of(page, "data/list")


def test_the_words_of_an_import_stay_on_the_pages_of_its_dataset_and_corpus(
    page: Page, tmp_path: Path
) -> None:
    rows = '{"question": "Which moon?", "gold_text": "Titan"}\n{"question": \n'
    (tmp_path / "own.jsonl").write_text(rows)
    preview(page, files=[{"path": str(tmp_path / "own.jsonl"), "name": "own.jsonl"}])
    start = {"kind": "dataset", "form": "jsonl", "name": "own", "skip_bad": True}
    page.call("import.start", start)
    assert ended(page, "import", "own").error is None
    body = texts(view_of(page, "data/dataset?id=own"))
    assert "Import 1 bad row left out · 2 warnings" in body
    assert "own.jsonl, line 2 is not valid JSON" in body and "cache" not in body
    assert "look like gold: &#39;gold_text&#39; (1 row)" in body
    (tmp_path / "danube.txt").write_text("The Danube flows into the Black Sea.")
    (tmp_path / "empty.txt").write_text("")
    sent = [
        {"path": str(tmp_path / n), "name": f"r/{n}"}
        for n in ("danube.txt", "empty.txt", "own.jsonl")
    ]
    preview(page, files=sent)
    page.call("import.start", {"kind": "corpus", "name": "r", "indexes": [], "skip_bad": True})
    assert ended(page, "import", "r").error is None
    body = texts(view_of(page, "data/corpus?id=r"))
    assert "1 file of other kinds left out of r: 1 .jsonl" in body and "cache" not in body
    assert "Import 1 bad row left out · 1 warning" in body and "has no text" in body
    assert 'id="import-said"' not in view_of(page, "data/dataset?id=tiny-qa")


def test_files_that_a_folder_leaves_out_are_named_before_and_after_its_import(
    page: Page, tmp_path: Path
) -> None:
    folder = tmp_path / "rivers"
    folder.mkdir()
    (folder / "danube.txt").write_text("The Danube flows into the Black Sea.")
    (folder / "rhine.odt").write_text("x")
    left = "1 file of other kinds left out of rivers: 1 .odt (rhine.odt)"
    assert left in texts(preview(page, path=str(folder)))
    page.call("import.start", {"kind": "corpus", "name": "rivers", "indexes": []})
    assert ended(page, "import", "rivers").error is None
    assert left in text_of(page, "data/list")


def test_dropped_files_are_counted_and_have_a_name_of_their_own(page: Page, tmp_path: Path) -> None:
    names = ("rivers.txt", "lakes.txt", "seas.txt")
    for name in names:
        (tmp_path / name).write_text(f"About {name[:-4]} and where they are.")
    body = preview(page, files=[{"path": str(tmp_path / n), "name": n} for n in names])
    assert "files is a corpus of 3 files" in texts(body) and 'name="name" value="files"' in body
    page.call("import.start", {"kind": "corpus", "name": "water", "indexes": []})
    assert ended(page, "import", "water").error is None
    assert "files, documents" in text_of(page, "data/list")


def test_chunks_follow_the_form_and_bad_rows_are_shown(page: Page, tmp_path: Path) -> None:
    long = "\t".join(["d1", "A river flows to the sea. " * 100, "River"])
    (tmp_path / "long.tsv").write_text(f"{long}\nbad row\n")
    body = preview(page, path=str(tmp_path / "long.tsv"))
    assert "First passages" in body and "d1#0" not in body and "1 bad row." in texts(body)
    assert "1 of 1 passage (100 %) is longer than the 254 tokens that minilm reads" in texts(body)
    patch = page.call("import.rechunk", {"cut": "default"}).html["import-chunks"]
    assert "First chunks" in patch and "d1#2" in patch and "longer" not in patch
    small = page.call("import.rechunk", {"cut": "default", "size": "40"}).html["import-chunks"]
    assert "d1#5" in small
    patch = page.call("import.rechunk", {"cut": "whole"})
    assert (
        "First passages" in patch.html["import-chunks"]
        and "d1#0" not in patch.html["import-chunks"]
    )
    own = {"cut": "own", "size": "10", "overlap": "2", "how": "blocks", "unit": "words"}
    assert "d1#5" in page.call("import.rechunk", own).html["import-chunks"]
    refused(page, "import.rechunk", {**own, "size": ""}, "size of a chunk is empty")
    refused(page, "import.rechunk", {**own, "overlap": "10"}, "overlap")


def test_a_page_map_is_uploaded_beside_the_corpus(page: Page) -> None:
    preview(page, path=place(page))
    files = [{"path": place(page, "pages.json"), "name": "pages.json"}]
    assert "pages.json" in preview(page, files=files, kind="corpus", form="tsv", **{"as": "pages"})
    assert page.session("w").state(ImportState).source == Path(place(page))


def test_an_import_that_fails_says_so_in_the_panel(page: Page, tmp_path: Path) -> None:
    (tmp_path / "rows.tsv").write_text("d1\tone\t\nd1\ttwice\t\n")
    preview(page, path=str(tmp_path / "rows.tsv"))
    page.call("import.start", {"kind": "corpus", "form": "tsv", "name": "rows", "cut": "whole"})
    ended(page, "import", "rows")
    panel = page.call("import.show").html["data-import"]
    assert "problem" in panel and "d1" in panel and "tick the field" in panel
    assert "rows" not in page.workbench.workspace.corpus_cards()
    back = page.call("import.show", {"step": "preview"}).html["data-import"]
    assert "step 2 of 3" in texts(back) and "Leave bad rows out" in back


@pytest.mark.parametrize("text", [' "/a b" ', "'/a b'", "/a b"])
def test_paths_are_taken_as_people_paste_them(text: str) -> None:
    assert Event("", {"path": text}).path("path") == Path("/a b")


# build and combine


def test_an_index_is_built_from_the_drawer(page: Page) -> None:
    drawer = page.call("data.build_form", {"id": "corpus.tsv"}).drawer
    assert "Build an index" in drawer and "K1" in drawer
    settings = page.call("data.build_kind", {"kind": "hnsw", "corpus": "moons"}).html[
        "build-settings"
    ]
    assert "Encoder" in settings and "Ef construction" in settings
    assert 'value="moons-hnsw"' in settings
    fields = {"kind": "hnsw", "path": place(page), "name": "near", "encoder": "hashing"}
    more = {"set-m": "8", "pages": place(page, "pages.json"), "cut": "whole"}
    assert page.call("data.build", {**fields, **more}).drawer == ""
    ended(page, "build", "near")
    manifest = page.workbench.workspace.manifests()["near"]
    assert manifest.parameters["m"] == 8 and manifest.passages_without_page == 0


def test_the_shipped_corpus_brings_its_pages(page: Page) -> None:
    fields = {"kind": "bm25", "corpus": "starter", "name": "mine", "cut": "kilt", "size": "100"}
    page.call("data.build", fields)
    ended(page, "build", "mine")
    assert page.workbench.workspace.manifests()["mine"].passages_without_page == 0


def test_an_estimate_says_what_a_build_takes_and_how_that_was_measured(page: Page) -> None:
    fields = {"kind": "bm25", "path": place(page), "cut": "whole"}
    view = texts(page.call("data.estimate", fields).html["build-estimate"])
    assert all(words in view for words in ("Passages 6", "Memory while building", "was measured"))


def test_retrievers_are_combined_under_a_name(page: Page) -> None:
    drawer = page.call("data.combine_form", {"parts": "tiny"}).drawer
    assert 'value="tiny" checked' in drawer and "Weights" in drawer
    rerank = page.call("data.combine_way", {"way": "llm-rerank"}).html["combine-settings"]
    assert "titan" in rerank and "Window" in rerank
    fields = {"way": "rrf", "parts": ["tiny", "starter-bm25"], "set-depth": "50", "name": "both"}
    assert page.call("data.combine", fields).go == "#/data/index?id=both"
    saved = json.loads(Path(place(page, "retrievers.json")).read_text())
    assert saved["both"]["settings"] == {"depth": 50}, "only what differs from the defaults"
    refused(page, "data.combine", {"way": "rrf", "name": "none"}, "No retriever is chosen")
    refused(page, "data.combine", fields, "exists already")


# search


def test_a_search_marks_the_gold_of_the_chosen_question(page: Page) -> None:
    body = view_of(page, "data/index?id=tiny&set=tiny-qa&q=q4")
    assert "Which river flows through ten countries?" in body and "6" in texts(body)
    fields = {"id": "tiny", "query": "river ten countries", "k": "3", "set": "tiny-qa", "q": "q4"}
    found = page.call("index.search", fields).html["index-hits"]
    assert "gold page" in found and "first gold page at rank 1" in found and "Danube" in found
    cut = page.call("index.search", {**fields, "query": "moon", "q": "q6", "k": "1"}).html[
        "index-hits"
    ]
    assert "cuts it off" in cut or "rank 1" in cut


def test_a_search_offers_the_questions_whose_gold_the_index_holds(page: Page) -> None:
    assert '<option value="tiny-qa" selected>' in view_of(page, "data/index?id=tiny")
    starter = view_of(page, "data/index?id=starter-bm25")
    assert '<option value="starter-qa" selected>' in starter


def test_another_index_is_asked_the_same_question(page: Page) -> None:
    fields = {"id": "starter-bm25", "set": "tiny-qa", "q": "q4", "query": "Which river?"}
    go = page.call("index.switch", fields).go
    body = view_of(page, go)
    assert 'value="Which river?"' in body and 'value="q4"' in body
    assert '<option value="starter-bm25" selected>' in body


def test_a_question_is_chosen_by_id_or_words(page: Page) -> None:
    patch = page.call("index.offer", {"id": "tiny", "set": "tiny-qa", "q": "lamar"})
    assert "In which state is Lamar County?" in patch.html["index-query"]
    assert patch.address.endswith("set=tiny-qa&q=q3")
    unknown = {"id": "tiny", "set": "tiny-qa", "q": "zebra"}
    refused(page, "index.offer", unknown, "No question of tiny-qa")


def test_the_settings_of_a_search_are_used_and_checked(page: Page) -> None:
    list(page.workbench.data.build_index("near", place(page), "hnsw", encoder="hashing"))
    assert "Ef search" in view_of(page, "data/index?id=near")
    fields = {"id": "near", "query": "moon", "k": "2", "set": "tiny-qa", "q": ""}
    hits = page.call("index.search", {**fields, "knob-ef_search": "40"}).html["index-hits"]
    assert "2 of k = 2" in hits
    refused(
        page, "index.search", {**fields, "knob-ef_search": "0"}, "ef_search must be", SettingError
    )


def test_an_address_that_names_nothing_goes_back_and_says_so(page: Page) -> None:
    for address in ("index?id=nothing", "corpus?id=nothing", "dataset?id=nothing"):
        patch = page.open(f"data/{address}")
        assert patch.go == "#/data/list" and "nothing" in patch.say


# reading


def rows(page: Page, view: str, **key: str) -> list[tuple[str, str]]:
    name, key = f"data-{view}", {"view": view, "find": "", **key}
    return page.list_rows({"list": name, "key": key, "start": 0, "count": 100}).rows


def test_a_corpus_is_read_filtered_and_cut(page: Page) -> None:
    list(page.workbench.data.import_corpus("moons", Path(place(page))))
    body = view_of(page, "data/corpus?id=moons&q=4")
    assert "The Danube flows through ten countries" in body and 'data-at="3"' in body
    assert len(rows(page, "corpus", id="moons")) == 6
    patch = page.call("read.refilter", {"view": "corpus", "id": "moons", "find": "pluto"})
    assert patch.address == "#/data/corpus?id=moons&find=pluto"
    assert "1 passage" in patch.html["corpus-list"]
    assert [row[0] for row in rows(page, "corpus", id="moons", find="pluto")] == ["6"]
    empty = page.call("read.refilter", {"view": "corpus", "id": "moons", "find": "zebra"})
    assert "No passage holds these words" in empty.html["corpus-list"]
    passage = page.call("read.pick", {"view": "corpus", "id": "2", "index": 1}, id="moons").html[
        "corpus-chosen"
    ]
    assert "Triton" in passage
    own = {"corpus": "moons", "doc": "2", "cut": "own", "size": "4"}
    assert "3 chunks" in page.call("read.cut", own).html["corpus-text"]
    pasted = page.call("read.cut", {**own, "text": "one two three four five"}).html["corpus-text"]
    assert "2 chunks, 1 to 4 words" in pasted and "five" in pasted


def test_what_two_chunks_share_is_marked() -> None:
    view = mark_chunks("a b c d", Chunking(3, 1))
    assert 'class="chunk both">c<' in view.replace("> ", ">") and "2 chunks" in view


def test_a_dataset_is_read_with_its_gold_and_its_coverage(page: Page) -> None:
    body = view_of(page, "data/dataset?id=tiny-qa&q=q5")
    question = '<textarea name="text" rows="2" dir="auto"'
    assert question in body, "Arabic and Hebrew begin at the right"
    assert "Who discovered Titan in 1655?" in body and "p5" in body and 'data-at="4"' in body
    assert [row[0] for row in rows(page, "dataset", id="tiny-qa", find="pluto")] == ["q6"]
    record = page.call("read.pick", {"view": "dataset", "id": "q3"}, id="tiny-qa").html[
        "dataset-chosen"
    ]
    assert "Texas" in record and "wikipedia_id" in record
    covered = texts(page.call("read.covered", {"id": "tiny-qa"}).html["dataset-covered"])
    assert "tiny 100.0 % 6 of 6" in covered and "starter-bm25 0.0 % 0 of 6" in covered


# builders


@pytest.fixture
def builder_page(page: Page) -> Page:
    articles = page.workbench.workspace.path / "articles.jsonl"
    named = [{"title": t, "content": f"{t}. {TEXT}", "date": "2022-01-01"} for t in ("One", "Two")]
    write_lines(articles, named)
    fields = {"maker": "barag", "name": "mine", "llm": "writer", "path": str(articles)}
    ticks = ("recency", "answers", "answerable", "closed_book", "leaks", "forced")
    page.call("builder.start", {**fields, **{f"set-{name}": "on" for name in ticks}})
    ended(page, "dataset builder", "mine")
    return page


def test_every_builder_shows_its_own_settings(page: Page) -> None:
    drawn = view_of(page, "data/builder")
    assert "Articles of a corpus" in drawn
    assert "question set" not in drawn and "its questions as a dataset" in drawn
    form = page.call("builder.redraw", {"maker": "templates"}).html["builder-form"]
    assert "Tables" in form and "Articles of a corpus" not in form
    assert "extractive-reader" not in form, "a model that only copies is not offered"


def test_a_dataset_without_a_question_is_no_success() -> None:
    assert 'class="bad"' in outcome(BuilderReport(name="mine"))
    assert 'class="good"' in outcome(BuilderReport(name="mine", questions=2))


def test_a_builder_goes_on_as_a_job_and_its_stages_are_read(builder_page: Page) -> None:
    body = view_of(builder_page, "data/builder?id=mine&stage=4-questions")
    words = texts(body)
    assert "mine: 1 question." in words and "1 no question in the reply" in words
    assert "Where did the first festival happen?" in words
    assert "&lt;b&gt;everybody" in body or "everybody" not in body
    left = builder_page.call(
        "builder.rows", {"id": "mine", "stage": "4-questions", "which": "left out"}
    )
    assert "no question in the reply" in left.html["builder-rows"]
    assert "Where did" not in left.html["builder-rows"]
    assert "mine" in view_of(builder_page, "data/builder")


def test_an_edited_row_stays_when_the_builder_continues(builder_page: Page) -> None:
    rows = builder_page.workbench.workspace.path / "experiments" / "mine" / "4-questions.jsonl"
    row = next(r for r in map(json.loads, rows.read_text().splitlines()) if not r["question"])
    data = {"id": "mine", "stage": "4-questions", "row": row["id"]}
    assert "&#34;question&#34;" in builder_page.call("builder.edit", data).dialog
    changed = {**row, "question": "What was by the sea?", "keep": True}
    builder_page.call("builder.save", {**data, "json": json.dumps(changed)})
    builder_page.call("builder.continue", {"id": "mine"})
    assert ended(builder_page, "dataset builder", "mine").result.stored.questions == 2
    stages = texts(builder_page.call("builder.follow", {"id": "mine"}).html["builder-stages"])
    assert "1 changed by hand" in stages
    builder_page.call("builder.toggle", data)
    stored = {r["id"]: r for r in map(json.loads, rows.read_text().splitlines())}
    assert stored[row["id"]]["keep"] is False
    refused(builder_page, "builder.save", {**data, "json": "{"}, "not valid JSON")


def test_an_annotator_keeps_corrects_or_rejects_row_after_row(builder_page: Page) -> None:
    data = {"id": "mine", "stage": "4-questions"}
    file = builder_page.workbench.workspace.path / "experiments" / "mine" / "4-questions.jsonl"
    assert (
        "Check row by row (0 of 1)" in builder_page.call("builder.rows", data).html["builder-rows"]
    )
    articles = builder_page.call("builder.rows", {"id": "mine", "stage": "1-articles"}).html[
        "builder-rows"
    ]
    assert "Check row by row" not in articles, "an article needs no correction"
    drawer = builder_page.call("builder.check", data).drawer
    assert "Check 1 of 1" in drawer and "Where did the first festival happen?" in drawer
    kept = next(r for r in map(json.loads, file.read_text().splitlines()) if r["question"])
    place = {**data, "row": kept["id"], "f:question": "Where was the festival?", "keep": "yes"}
    refused(builder_page, "builder.checked", {**place, "f:question": " "}, "question is empty")
    refused(builder_page, "builder.checked", {**place, "f:stamp": "x"}, "has no field 'stamp'")
    answers = {"f:answers": "by the sea\n\nat the shore"}
    patch = builder_page.call("builder.checked", {**place, **answers})
    assert "Every row is checked" in patch.say and "checked" in patch.html["builder-rows"]
    builder_page.call("builder.continue", {"id": "mine"})
    ended(builder_page, "dataset builder", "mine")
    dataset = (builder_page.workbench.workspace.path / "datasets" / "mine.jsonl").read_text()
    assert "Where was the festival?" in dataset and "at the shore" in dataset
    builder_page.call("builder.checked", {**data, "row": kept["id"], "keep": ""})
    assert "(1 of 1)" in builder_page.call("builder.rows", data).html["builder-rows"]
    builder_page.call("builder.continue", {"id": "mine"})
    assert ended(builder_page, "dataset builder", "mine").result.stored.questions == 0


def test_a_plan_and_a_try_say_what_a_builder_will_do(page: Page) -> None:
    article = {"title": "One", "content": TEXT, "date": "2022-01-01"}
    write_lines(Path(place(page, "a.jsonl")), [article])
    fields = {"maker": "barag", "name": "later", "llm": "writer", "path": place(page, "a.jsonl")}
    plan = texts(page.call("builder.plan", fields).html["builder-plan"])
    assert "4-questions" in plan and not (page.workbench.workspace.path / "experiments").exists()
    assert "Plan" in page.call("builder.pilot", fields).html["builder-plan"]
    assert page.call("builder.replan", fields).html == {}
    assert (
        "4-questions"
        in page.call("builder.replan", {**fields, "planned": "on"}).html["builder-plan"]
    )


# refusals

BASES: dict[str, dict[str, Any]] = {
    "import.preview": {},
    "data.build": {"kind": "bm25", "path": "corpus.tsv", "name": "new", "cut": "whole"},
    "index.search": {"id": "tiny", "query": "moon", "k": "3", "set": "tiny-qa", "q": ""},
    "builder.start": {"maker": "barag", "name": "later", "llm": "writer", "path": "a.jsonl"},
}


@pytest.mark.parametrize(
    ("action", "fields", "sentence", "kind"),
    [
        ("import.preview", {}, "No file is given", UsageError),
        ("import.preview", {"path": "/nowhere/x.tsv"}, "does not exist", NotFoundError),
        ("import.preview", {"files": []}, "No file is given", UsageError),
        ("data.build", {"path": "/nowhere.tsv"}, "does not exist|nowhere", NotFoundError),
        ("data.build", {"name": "titan"}, "is a language model", UsageError),
        ("data.build", {"set-k1": "-1"}, "k1 must be", SettingError),
        (
            "data.build",
            {"source": "/a.npy", "kind": "flat", "encoder": "hashing"},
            "a.npy",
            BadFileError,
        ),
        ("index.search", {"query": ""}, "query is empty", UsageError),
        ("index.search", {"k": "0"}, "k is 0", UsageError),
        ("index.search", {"k": "two"}, "must be a number", UsageError),
        ("builder.start", {"name": ""}, "needs a name", UsageError),
        ("builder.start", {"limit": "some"}, "must be a number", UsageError),
        ("builder.start", {"path": ""}, "[Aa]rticles", UsageError),
        ("builder.start", {"name": "tiny-qa"}, "exists already", UsageError),
    ],
)
def test_what_cannot_be_says_why(
    page: Page,
    monkeypatch: pytest.MonkeyPatch,
    action: str,
    fields: Any,
    sentence: str,
    kind: type[RalleError],
) -> None:
    monkeypatch.chdir(page.workbench.workspace.path)
    write_lines(Path(place(page, "a.jsonl")), [{"title": "One", "content": TEXT}])
    refused(page, action, {**BASES[action], **fields}, sentence, kind)
    assert page.workbench.jobs.list("build") == ()


# columns in roles, and names of the hub


def test_columns_whose_names_do_not_tell_are_chosen_with_their_first_values(
    page: Page, tmp_path: Path
) -> None:
    (tmp_path / "their.csv").write_text(
        "nr,frage,antwort,text <b>\n1,Which moon?,Titan,x\n2,Which sea?,Black Sea,<i>y\n"
    )
    body = preview(page, path=str(tmp_path / "their.csv"))
    words = texts(body)
    assert (
        "No column is named like a question." in words
        and "frage Which moon? antwort Titan" in words
    )
    assert "No question can be read" not in words and str(tmp_path) not in words
    assert (
        'name="column_question"' in body
        and '<details class="fold" id="import-columns" open' in body
    )
    assert "import.start" not in body and "text &lt;b&gt;" in body
    fields = {"kind": "dataset", "form": "csv", "name": "their", "column_question": "frage"}
    body = preview(page, **fields, column_answer="antwort")
    assert re.findall(r'<ol class="values">(.+?)</ol>', body) == [
        '<li dir="auto">Which moon?</li><li dir="auto">Which sea?</li>',
        '<li dir="auto">Titan</li><li dir="auto">Black Sea</li>',
    ]
    assert "First questions" in texts(body) and "import.start" in body
    page.call("import.start", {**fields, "column_answer": "antwort", "column_id": "nr"})
    assert ended(page, "import", "their").error is None
    assert [x.gold.answers for x in page.workspace.questions("their")] == [
        ("Titan",),
        ("Black Sea",),
    ]
    notes = json.loads(Path(place(page, "datasets/their.import.json")).read_text())
    assert notes["columns"] == {"question": "frage", "answer": "antwort", "id": "nr"}


def test_a_file_of_questions_without_its_column_is_not_imported(page: Page, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "moon.txt").write_text("The moon is round.")
    (tmp_path / "q.csv").write_text("nr,frage\n1,Is it round?\n")
    preview(page, path=str(tmp_path / "docs"))
    files = [{"path": str(tmp_path / "q.csv"), "name": "my q.csv"}]
    asked = page.call("import.ask", {"files": files}).html["import-asked"]
    assert "No column is named like a question." in texts(asked) and "cache" not in asked
    fields = {"kind": "corpus", "form": "folder", "name": "docs", "cut": "whole"}
    refused(page, "import.start", fields, "Choose the column of my q.csv that holds the questions")
    assert "docs" not in page.workspace.corpus_cards()


def test_columns_that_are_as_guessed_are_not_given_and_others_are_forgotten_with_their_kind(
    page: Page, tmp_path: Path
) -> None:
    rows = [{"question": "Who?", "answer": "Ada", "note": "n", "page": {"id": "p"}, "text": "Ada."}]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    body = preview(page, path=str(tmp_path / "own.jsonl"))
    assert "Question: question · Answer: answer" in texts(body)
    state = page.session("w").state(ImportState)
    same = {"kind": "dataset", "form": "jsonl", "name": "own", "column_question": "question"}
    preview(page, **same, column_answer="answer", column_page="")
    assert page.session("w").state(ImportState).columns is None
    body = preview(page, **same, column_answer="note", column_page="page.id")
    assert "1 gold page" in texts(body)
    state = page.session("w").state(ImportState)
    assert state.columns == {"question": "question", "answer": "note", "page": "page.id"}
    body = preview(page, **{**same, "kind": "corpus"}, column_answer="note")
    assert page.session("w").state(ImportState).columns is None and 'name="column_text"' in body
    body = texts(preview(page, kind="corpus", form="jsonl", column_text="x"))
    assert "own.jsonl has no column" in body and "it has question, answer" in body


def test_a_wrong_name_of_the_hub_is_refused_where_it_is_typed(page: Page) -> None:
    refused(page, "import.preview", {"path": "hf:a/b/c"}, "is not the name of a dataset on the hub")
