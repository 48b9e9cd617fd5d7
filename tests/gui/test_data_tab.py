"""The Data tab: its handlers called as plain functions on a small workspace."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from performing import prepared
from small_workspace import QUESTIONS, make_workspace

from rallebench.core.errors import BackendError, StoppedError, UsageError
from rallebench.core.events import Progress
from rallebench.core.experiments import Report
from rallebench.core.types import Passage
from rallebench.corpora.chunking import Chunking
from rallebench.engine.driver import ExperimentResult
from rallebench.experiments.tradeoff import Point, Tradeoff
from rallebench.gui import views_data, views_indexes, views_tradeoff
from rallebench.gui.tabs import (
    _data_build,
    _data_chunks,
    _data_combine,
    _data_corpora,
    _data_delete,
    _data_indexes,
    _data_search,
    _data_tradeoff,
    data,
)
from rallebench.gui.tabs._data_paths import STARTER_CORPUS, offered, whole_path
from rallebench.gui.tabs._data_settings import given
from rallebench.gui.works import builds_of, checks_of, imports_of
from rallebench.services.workbench import Workbench
from rallebench.workspace.indexes.estimate import Estimate

SKIP = gr.skip()
NAMES = ["builds"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``tiny`` (BM25), ``near`` (hnsw) over the same passages, the corpus as a file."""
    folder = make_workspace(tmp_path_factory.mktemp("data-tab"))
    bench = Workbench(folder)
    list(
        bench.data.build_index(
            "near", folder / "corpus.tsv", "hnsw", encoder="hashing", page_map=folder / "pages.json"
        )
    )
    bench.close()
    return folder


@pytest.fixture
def bench(made: Path, tmp_path: Path) -> Iterator[Workbench]:
    """A copy that a test may change."""
    shutil.copytree(made, tmp_path / "copy")
    workbench = Workbench(tmp_path / "copy")
    yield workbench
    workbench.close()


def place(bench: Workbench, name: str = "corpus.tsv") -> str:
    return str(bench.workspace.path / name)


def wait_for(condition: Any, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


# corpora and questions


def test_a_preview_shows_rows_pages_and_bad_rows_with_their_lines(
    bench: Workbench, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.tsv"
    bad.write_text("1\tTitan is <b>large</b>\tTitan\nno tabs here\n1\tagain\tTitan\n")
    (tmp_path / "pages.json").write_text('{"1": "page-one"}')
    seen = _data_corpora.on_preview(
        bench, _data_corpora.CORPUS, f'"{bad}"', "recognised", str(tmp_path / "pages.json")
    )
    assert "format tsv" in seen and "3 rows read" in seen and "page-one" in seen
    assert "&lt;b&gt;large" in seen and "<b>large" not in seen
    assert "2 bad" in seen and "line 2 has one column" in seen and "line 3 repeats the id" in seen


def test_a_preview_of_questions_shows_answers_and_gold_pages(bench: Workbench) -> None:
    seen = _data_corpora.on_preview(
        bench, _data_corpora.QUESTIONS, place(bench, "datasets/tiny-qa.jsonl"), "recognised", ""
    )
    assert (
        "8 rows read" in seen
        and "Who discovered Titan in 1655?" in seen
        and "Christiaan Huygens" in seen
    )


@pytest.mark.parametrize("path", ["", "  ", "/no/such/file.tsv"])
def test_a_preview_without_a_file_says_so(bench: Workbench, path: str) -> None:
    seen = _data_corpora.on_preview(bench, _data_corpora.CORPUS, path, "recognised", "")
    assert "rb-error" in seen and ("No file is given" in seen or "does not exist" in seen)


def imported(bench: Workbench, path: str, **fields: str) -> list[Any]:
    form = {
        "what": _data_corpora.CORPUS,
        "path": path,
        "form": "recognised",
        "pages": "",
        "name": "",
        "bad": "stop",
    }
    return _data_corpora.on_import(bench, *{**form, **fields}.values())


def test_an_imported_corpus_is_listed_with_what_was_left_out(
    bench: Workbench, tmp_path: Path
) -> None:
    bad = tmp_path / "moons.tsv"
    bad.write_text("1\tTitan\tTitan\nbad\n2\tCharon\tCharon\n")
    assert imported(bench, str(bad))[0] == ""
    wait_for(lambda: "moons" in imports_of(bench).ended())
    failed = _data_corpora.importing(bench)
    assert "rb-error" in failed and "line 2 has one column" in failed and bench.data.corpora() == {}
    assert imported(bench, str(bad), bad="leave out")[0] == ""
    wait_for(lambda: "moons" in imports_of(bench).ended())
    assert "Imported moons: 2 passages, 1 rows left out" in _data_corpora.importing(bench)
    assert "line 2 has one column" in _data_corpora.importing(bench)
    assert "moons.tsv" in views_data.corpora(bench.data.corpora())


def test_an_imported_question_set_can_be_chosen_at_once(bench: Workbench) -> None:
    source = place(bench, "datasets/tiny-qa.jsonl")
    said, _, _ = imported(bench, source, what=_data_corpora.QUESTIONS, name="mine")
    assert "Imported mine: 8 questions" in said
    assert "mine" in data.snapshot(bench)["search_sets"]


def test_a_corpus_is_deleted_only_after_a_second_button_that_names_it(bench: Workbench) -> None:
    list(bench.data.import_corpus("moons", Path(place(bench))))
    with pytest.raises(UsageError, match="No corpus is chosen"):
        _data_delete.on_ask(bench, "corpus", None)
    asked, sure, keep, said = _data_delete.on_ask(bench, "corpus", "moons")
    assert (asked, sure["value"], sure["visible"], keep["visible"], said) == (
        "moons",
        "Yes, delete moons",
        True,
        True,
        "",
    )
    assert "moons" in bench.data.corpora() and _data_delete.on_keep()[0] == ""
    assert "Deleted the corpus moons" in _data_delete.on_delete(bench, "corpus", asked)[-1]
    assert bench.data.corpora() == {}
    assert "no imported corpus" in _data_delete.on_delete(bench, "corpus", asked)[-1]


def test_a_question_set_is_deleted_after_a_second_button_that_tells_what_its_runs_lose(
    bench: Workbench, tmp_path: Path
) -> None:
    source = tmp_path / "asked.jsonl"
    source.write_bytes((bench.workspace.path / "datasets" / "tiny-qa.jsonl").read_bytes())
    imported(bench, str(source), what=_data_corpora.QUESTIONS)
    assert bench.data.own_question_sets() == ["asked", "tiny-qa"], (
        "the shipped ones cannot be deleted"
    )
    assert _data_delete.on_ask(bench, "question set", "asked")[-1] == "", "no run asked it"
    chain = bench.workspace.chain("closed")
    for name in ("whole", "halted"):
        list(bench.runs.run(prepared(bench.workspace, chain, "asked", name=name, track=False)))
    bench.runs.open("halted").set_state("stopped", done=3, total=8)
    asked, sure, _, told = _data_delete.on_ask(bench, "question set", "asked")
    assert sure["value"] == "Yes, delete asked"
    assert (
        "2 runs that asked it keep their questions, answers and scores; halted can no longer be resumed"
        in told
    )
    assert (
        "Deleted the question set asked. 2 runs"
        in _data_delete.on_delete(bench, "question set", asked)[-1]
    )
    assert "asked" not in bench.workspace.dataset_paths()
    again = told.split("can still be asked: ")[1].split(".</div>")[0]
    assert len(bench.asking.questions(again)) == 8, "what is said still works"
    assert bench.runs.open_question("whole", 1).example.question.text == QUESTIONS[0][1]
    for name in ("asked", "starter-qa", "../tiny-qa"):
        assert "There is no question set" in _data_delete.on_delete(bench, "question set", name)[-1]


# chunks


def test_cuts_are_marked_in_the_text_and_what_two_chunks_share(bench: Workbench) -> None:
    text = "one two three four five six <b>"
    seen = views_data.chunks(Passage("d", text), Chunking(3, 1))
    assert '<sup>1</sup><span class="rb-chunk-a">one two </span>' in seen
    assert '<sup>2</sup><span class="rb-chunk-both">three</span>' in seen
    assert '<span class="rb-chunk-b"> four </span>' in seen
    assert "&lt;b&gt;" in seen and "3 chunks" in seen and "3 – 3 words" in seen


def test_a_document_of_a_corpus_is_cut_by_preset_or_own_settings(bench: Workbench) -> None:
    preset = _data_chunks.on_show(bench, STARTER_CORPUS, 1, "", "kilt", "", 20, 5, "")
    assert " chunks<" in preset and "rb-chunk-both" in preset
    own = _data_chunks.on_show(bench, place(bench), 2, "", "own", "recursive", 30, 0, "characters")
    assert "Triton" in own and "rb-chunk-b" in own
    pasted = _data_chunks.on_show(
        bench, place(bench), 2, "my own text", "whole", "", None, None, ""
    )
    assert "my own text" in pasted and "1 chunk<" in pasted


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ((None, 1, "", "kilt", "", 10, 10, ""), "must lie between 0 and 9"),
        ((None, 1, "", "kilt", "", None, 0, ""), "The size of a chunk is empty"),
        (("nowhere", 1, "", "kilt", "", 10, 0, ""), "does not exist"),
        (("CORPUS", 99, "", "kilt", "", 10, 0, ""), "fewer than 99 documents"),
        (("CORPUS", 0.0, "x" * 0, "own", "sentences", 10, 0, "words"), "counts tokens"),
    ],
)
def test_a_cut_that_cannot_be_says_why(
    bench: Workbench, fields: tuple[Any, ...], sentence: str
) -> None:
    corpus = place(bench) if fields[0] == "CORPUS" else fields[0]
    assert sentence in _data_chunks.on_show(bench, corpus, *fields[1:])


def test_a_preset_fills_in_its_values() -> None:
    way, size, overlap, unit = _data_chunks.on_preset("barag")
    assert (size["value"], overlap["value"], way["visible"], unit["visible"]) == (
        1024,
        48,
        False,
        False,
    )
    assert not any(update["visible"] for update in _data_chunks.on_preset("whole"))


# build

FIELDS = ("whole", "blocks", 100, 0, "words")


def built(bench: Workbench, **fields: Any) -> list[Any]:
    """Press Build with the form filled like this."""
    names = [
        ("bm25", "k1"),
        ("bm25", "b"),
        ("hnsw", "m"),
        ("hnsw", "ef_construction"),
        ("hnsw", "threads"),
    ]
    form = {
        "name": "",
        "pages": "",
        "corpus": place(bench),
        "kind": "bm25",
        "encoder": "hashing",
        "cut": FIELDS,
    }
    form = {**form, "values": (1.2, None, 8, 20, 1), **fields}
    return _data_build.on_build(
        bench,
        names,
        form["name"],
        form["pages"],
        form["corpus"],
        form["kind"],
        form["encoder"],
        *form["cut"],
        *form["values"],
    )


def test_a_build_takes_kind_settings_pages_and_cutting_from_the_form(bench: Workbench) -> None:
    said, panel = built(
        bench, name="mine", pages=place(bench, "pages.json"), cut=("own", "blocks", 5, 1, "words")
    )
    assert said == "" and "mine" in panel
    wait_for(lambda: "mine" in builds_of(bench).ended())
    manifest = bench.data.manifest("mine")
    assert (manifest.parameters["k1"], manifest.parameters["b"]) == (1.2, 0.4), (
        "an emptied field keeps its default"
    )
    assert (
        manifest.chunking is not None and manifest.chunking["size"] == 5 and manifest.passages > 6
    )
    assert "Built mine: bm25" in _data_build.building(bench)
    assert "mine" in data.snapshot(bench)["compared"]
    assert _data_build.on_clear(bench) == views_data.empty(_data_build.NO_BUILD)


def test_the_shipped_corpus_brings_its_pages() -> None:
    assert str(_data_build.map_of("", STARTER_CORPUS)).endswith("page_map.json")
    assert _data_build.map_of("", "/other.tsv") is None


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"corpus": " "}, "No corpus is given"),
        ({"corpus": "nowhere.tsv"}, "does not exist"),
        ({"cut": ("own", "blocks", 3, 3, "words")}, "must lie between 0 and 2"),
        ({"name": "a/b"}, "cannot be a folder name"),
        ({"name": "titan"}, "is a language model of this workspace"),
        ({"pages": "nowhere.json"}, "does not exist"),
        ({"kind": "hnsw", "values": (0.9, 0.4, 1, 20, 1)}, "m must be a whole number from 2"),
        ({"kind": "hnsw", "encoder": "nobody"}, "no encoder"),
    ],
)
def test_a_build_that_cannot_work_says_why_once_and_leaves_nothing(
    bench: Workbench, fields: dict[str, Any], sentence: str
) -> None:
    before = sorted(bench.workspace.indexes.iterdir())
    said, _ = built(bench, **fields)
    if not said:  # found when the corpus was read
        wait_for(lambda: builds_of(bench).ended())
        said = _data_build.building(bench)
    assert "rb-error" in said and sentence in said
    wait_for(lambda: sorted(bench.workspace.indexes.iterdir()) == before)


def test_a_build_goes_on_without_its_page_can_be_seen_by_others_and_stopped(
    bench: Workbench, tmp_path: Path
) -> None:
    long = tmp_path / "long.tsv"
    long.write_text("".join(f"{n}\t{'word ' * 100}{n}\tT\n" for n in range(20_000)))
    assert built(bench, name="long", corpus=str(long), kind="hnsw")[0] == ""
    wait_for(lambda: "encoding passages" in _data_build.building(bench))
    shown = dict(
        zip(
            ["seen", "building", "builds"],
            data.on_refresh(bench, ["building", "builds"], None, None),
            strict=True,
        )
    )
    assert shown["building"]["choices"] == ["long"] and "a second" in shown["builds"]
    assert "being built" in data.index_table(bench)
    _data_build.on_stop(bench, "long")
    wait_for(lambda: not builds_of(bench).going_on())
    assert "was stopped; start it again to continue" in _data_build.building(bench)
    assert "no build goes on" in _data_build.on_stop(bench, "long")[0].lower()
    assert not list(bench.workspace.indexes.glob(".long*"))


def test_an_estimate_says_what_it_is_based_on(bench: Workbench) -> None:
    names = [("hnsw", "m"), ("hnsw", "ef_construction"), ("hnsw", "threads")]
    *_, last = _data_build.on_estimate(
        bench, names, place(bench), "hnsw", "hashing", *FIELDS, 8, 20, 1
    )
    assert (
        "Memory while searching" in last
        and "6 × 256 dimensions" in last
        and "Encoding: hashing encodes" in last
    )
    (wrong,) = list(
        _data_build.on_estimate(bench, names, place(bench), "hnsw", "hashing", *FIELDS, 1, 20, 1)
    )[-1:]
    assert "rb-error" in wrong and "m must be" in wrong


def test_an_estimate_that_does_not_fit_is_a_warning() -> None:
    huge = Estimate(
        "hnsw", 22_000_000, False, 1024, 10**12, 10**12, 10**13, 0, 1e6, 10**9, 10**9, ("why",)
    )
    shown = views_data.estimate(huge)
    assert "about 22,000,000" in shown and shown.count("rb-error") == 2


def test_only_the_chosen_kind_shows_its_settings() -> None:
    about, encoder, *groups = _data_build.on_kind("hnsw")
    kinds = list(_data_build.known_settings())
    assert "HNSW" in about["info"] and encoder["visible"]
    assert [kind for kind, group in zip(kinds, groups, strict=True) if group["visible"]] == ["hnsw"]
    assert _data_build.on_kind("bm25")[1]["visible"] is False
    assert given([("a", "x"), ("b", "x")], "b", [1, 2]) == {"x": 2}


# indexes


def test_the_table_names_built_first_use_damaged_and_combined(bench: Workbench) -> None:
    (bench.workspace.indexes / "hurt").mkdir()
    (bench.workspace.indexes / "hurt" / "manifest.json").write_text("{")
    table = data.index_table(bench)
    for text in (
        "tiny",
        "m 32, ef_construction 128",
        "on first use",
        "damaged",
        "rrf of starter-bm25",
    ):
        assert text in table, text


def test_a_whole_index_is_checked_and_a_changed_one_is_named(bench: Workbench) -> None:
    said, _ = _data_indexes.on_verify(bench, "near")
    wait_for(lambda: "near" in checks_of(bench).ended())
    assert (
        said == ""
        and "near is whole: " in _data_indexes.checking(bench)
        and "checked" in data.index_table(bench)
    )
    file = bench.workspace.indexes / "near" / "hnsw.faiss"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    _data_indexes.on_verify(bench, "near")
    wait_for(lambda: isinstance(checks_of(bench).ended().get("near"), BackendError))
    assert "hnsw.faiss was changed after the index was built" in _data_indexes.checking(bench)
    assert "damaged" in data.index_table(bench)


def test_a_loaded_index_is_not_deleted(bench: Workbench) -> None:
    list(bench.models.load("tiny", "retriever"))
    assert "unload it in Models" in _data_delete.on_delete(bench, "index", "tiny")[-1]
    bench.models.unload("tiny")
    assert "Deleted the index tiny" in _data_delete.on_delete(bench, "index", "tiny")[-1]
    assert [p.name for p in bench.workspace.indexes.iterdir()] == ["near"]
    assert "no built index" in _data_delete.on_delete(bench, "index", "tiny")[-1]
    assert "cannot be a folder name" in _data_delete.on_delete(bench, "index", "../tiny")[-1]


def test_cached_vectors_are_listed_and_deleted_and_the_index_stays_whole(bench: Workbench) -> None:
    (kept,) = bench.data.vectors()
    assert "hashing" in views_indexes.vectors([kept]) and "complete" in views_indexes.vectors(
        [kept]
    )
    assert "Deleted cached vectors" in _data_delete.on_delete(bench, "cached vectors", kept.key)[-1]
    assert bench.data.vectors() == []
    assert list(bench.data.verify_index("near"))[-1].files > 3


def test_retrievers_are_combined_under_a_name_and_searched(bench: Workbench) -> None:
    names = [("rrf", "weights"), ("rrf", "constant"), ("rrf", "depth"), ("rrf", "equal")]
    values = ("0.7,0.3", 60, 100, "passage")
    assert "No retriever is chosen" in _data_combine.on_combine(
        bench, names, [], "rrf", "both", *values
    )
    assert "takes 2" in _data_combine.on_combine(bench, names, ["tiny"], "rrf", "both", *values)
    said = _data_combine.on_combine(bench, names, ["tiny", "near"], "rrf", "both", *values)
    assert "Saved both in" in said
    saved = json.loads((bench.workspace.path / "retrievers.json").read_text())
    assert saved == {
        "both": {"kind": "rrf", "of": ["tiny", "near"], "settings": {"weights": "0.7,0.3"}}
    }
    assert "exists already" in _data_combine.on_combine(
        bench, names, ["tiny", "near"], "rrf", "both", *values
    )
    assert "Christiaan Huygens" in searched(bench, "both", "Who discovered Titan in 1655?")
    bench.models.unload("both")
    assert "what it was made of stays" in _data_delete.on_delete(bench, "combination", "both")[-1]


# search


def searched(
    bench: Workbench, name: str, query: str, k: float = 3, chosen: str | None = None, ef: Any = None
) -> str:
    return list(
        _data_search.on_search(
            bench, [("hnsw", "ef_search")], name, query, k, "tiny-qa", chosen, ef
        )
    )[-1]


def test_a_search_marks_the_gold_of_the_chosen_question(bench: Workbench) -> None:
    query, gold = _data_search.on_question(bench, "tiny-qa", "q5")
    assert query == "Who discovered Titan in 1655?" and "Christiaan Huygens" in gold
    seen = searched(bench, "tiny", query, chosen="q5")
    assert (
        "first gold page at rank 1" in seen
        and "answer in passage" not in seen.split("rb-hit-head")[0]
    )
    assert " ms" in seen and "3 of k = 3" in seen and "gold page" in seen
    assert "gold" not in searched(bench, "tiny", query), "without a question nothing is marked"


def test_a_gold_page_that_k_cuts_off_is_told(bench: Workbench) -> None:
    assert "k = 1 cut it" in searched(bench, "tiny", "largest moon of Neptune", k=1, chosen="q1")


def test_the_settings_of_the_search_are_used_and_checked(bench: Workbench) -> None:
    assert "3 of k = 3" in searched(bench, "near", "moon", ef=100)
    assert "ef_search must be a whole number from 1" in searched(bench, "near", "moon", ef=0)
    assert _data_search.on_retriever(bench, "near") != _data_search.on_retriever(bench, "tiny")


@pytest.mark.parametrize(
    ("name", "query", "k", "sentence"),
    [
        ("tiny", " ", 3, "The query is empty"),
        ("tiny", "moon", 0, "k is 0"),
        ("", "moon", 3, "No retriever is chosen"),
        ("nobody", "moon", 3, "no index 'nobody'"),
    ],
)
def test_a_search_that_cannot_be_says_why(
    bench: Workbench, name: str, query: str, k: float, sentence: str
) -> None:
    assert sentence in searched(bench, name, query, k).replace("&#x27;", "'")


# trade-off

POINTS = (
    Point(
        "a", "flat", {}, 10, 5, 1.0, {"Rprec": 0.5}, 5, 2.0, 1.0, 3.0, 400_000_000, 10**8, 3.0, 9
    ),
    Point(
        "a-near",
        "hnsw",
        {"ef_search": 16},
        10,
        5,
        0.9,
        {"Rprec": 0.4},
        5,
        0.2,
        0.1,
        3.0,
        500_000_000,
        10**8,
        9.0,
        9,
    ),
    Point(
        "a-near",
        "hnsw",
        {"ef_search": 64},
        10,
        5,
        0.99,
        {"Rprec": 0.5},
        5,
        0.5,
        0.2,
        3.0,
        None,
        10**8,
        9.0,
        9,
    ),
    Point(
        "words", "bm25", {}, 10, 5, None, {"Rprec": 0.6}, 5, 1.0, 1.0, None, 10**7, 10**7, 1.0, 9
    ),
    Point("<hurt>", "flat", error="It is <b>damaged</b>."),
)
RESULT = Tradeoff("mine", "tiny-qa", 10, 5, POINTS)


def test_a_result_is_a_table_a_file_and_a_command() -> None:
    table = views_tradeoff.whole(RESULT)
    assert (
        "0.9900" in table
        and "ef_search 64" in table
        and "&lt;b&gt;damaged" in table
        and "<hurt>" not in table
    )
    assert 'download="mine.csv"' in table and "recall is told of indexes over vectors" in table
    rows = views_tradeoff.as_csv(RESULT).splitlines()
    assert len(rows) == 6 and rows[2].startswith("a-near,hnsw,ef_search=16,0.9,0.4,")
    assert "rallebench tradeoff --workspace &#x27;/my space&#x27;" in views_tradeoff.command(
        RESULT, "/my space"
    )
    pair = replace(RESULT, points=[replace(RESULT.points[0], index="rrf:a,b"), *RESULT.points])
    assert f"--index &#x27;(rrf:a,b),{RESULT.points[0].index}" in views_tradeoff.command(pair, "w")


def test_a_plot_has_a_line_per_index_and_a_larger_marker_for_more_memory() -> None:
    drawn = views_tradeoff.figure(POINTS, "single_qps", "recall")
    traces = {trace.name: trace for trace in drawn.data}
    assert list(traces["a-near"].x) == [2000.0, 5000.0] and list(traces["a-near"].y) == [0.99, 0.9]
    assert set(traces) == {"a", "a-near", "words"} and not traces["words"].x
    assert traces["a"].marker.size[0] < max(traces["a-near"].marker.size)
    assert views_tradeoff.best_axis([POINTS[3]], "recall") == "Rprec"
    assert views_tradeoff.best_axis(POINTS, "recall") == "recall"
    for axis in views_tradeoff.AXES:
        assert views_tradeoff.value_of(POINTS[0], axis) is not None or axis.startswith("success")


def test_how_measuring_goes_and_ends_is_told(bench: Workbench) -> None:
    events = [Progress("a", message="exact neighbours")]
    assert "Measuring mine: a: exact neighbours" in views_tradeoff.measuring("mine", events)
    assert "Stopping mine" in views_tradeoff.measuring("mine", [], stopping=True)
    request = bench.experiments.request("tradeoff", "mine", {})
    report = Report(RESULT.as_json(), failed={"<hurt>": "It is damaged."})
    end = ExperimentResult(request, Path(), (), report, document=report.data)
    assert "5 settings, 1 of them failed" in views_tradeoff.ended("mine", end)
    assert "rb-note" in views_tradeoff.ended("mine", StoppedError("stopped"))
    assert "rb-error" in views_tradeoff.ended("mine", BackendError("broke"))


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (([], "tiny-qa", 10, 5, "", ""), "No index is ticked"),
        ((["tiny"], "tiny-qa", 0, 5, "", ""), "k is 0"),
        ((["near"], "tiny-qa", 3, 5, "ef_search=x", ""), "ef_search must be"),
        ((["tiny"], "tiny-qa", 3, 5, "", "a/b"), "cannot be a folder name"),
    ],
)
def test_a_measurement_that_cannot_be_says_why(
    bench: Workbench, asked: tuple[Any, ...], sentence: str
) -> None:
    said, _ = _data_tradeoff.on_measure(bench, *asked)
    assert "rb-error" in said and sentence in said


def test_a_measurement_is_followed_kept_and_opened(bench: Workbench) -> None:
    assert _data_tradeoff.on_open(bench, None, "single_qps", "recall")[0] == views_data.empty(
        _data_tradeoff.NO_RESULT
    )
    before = data.snapshot(bench)
    said, panel = _data_tradeoff.on_measure(bench, ["tiny"], "tiny-qa", 3, 5, "", "mine")
    assert said == "" and "mine" in panel
    wait_for(lambda: "Measured mine: 1 settings" in _data_tradeoff.measuring(bench), 60)
    table, plot, saving, command, up = _data_tradeoff.on_open(bench, "mine", "single_qps", "recall")
    assert (
        "5 questions of tiny-qa" in table
        and plot["visible"]
        and saving["visible"]
        and "--index tiny" in command
    )
    assert up == "Rprec", "BM25 has no recall against exact vectors"
    (update,) = data.changes(before, data.snapshot(bench), ["results"], {"results": None})
    assert update["value"] == "mine", "what was just measured is shown"


# refresh


def test_a_refresh_leaves_alone_what_has_not_changed_and_keeps_what_is_chosen(
    bench: Workbench,
) -> None:
    names = ["sources", "compared", "indexes", "index_table"]
    seen, *first = data.on_refresh(bench, names, None, "/my/own.tsv", ["tiny", "gone"], "gone")
    assert "value" not in first[0] and first[1]["value"] == ["tiny"] and first[2]["value"] == "near"
    _, *second = data.on_refresh(bench, names, seen, "/my/own.tsv", ["tiny"], "near")
    assert second == [SKIP] * 4
    bench.data.delete_index("near")
    _, sources, compared, indexes, table = data.on_refresh(
        bench, names, seen, "/my/own.tsv", ["tiny", "near"], "near"
    )
    assert (
        sources == SKIP
        and compared["value"] == ["tiny"]
        and indexes["value"] == "tiny"
        and "near" not in table
    )


def test_paths_are_taken_as_people_paste_them() -> None:
    assert whole_path(' "/my files/corpus.tsv" ') == "/my files/corpus.tsv"
    assert whole_path(None) == ""
    assert offered([("shown", "a")], "gone")["value"] == "a"
