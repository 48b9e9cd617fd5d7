"""The lines of a workspace's corpora, datasets and indexes; coverage; consequences of a deletion; passages and records."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from small_workspace import chain, generate, retrieve, write_lines

from rallebench.core.errors import NotFoundError, UsageError
from rallebench.services import builders
from rallebench.services.workbench import Workbench
from rallebench.views import gold_coverage, library, passages
from rallebench.views.gold_coverage import Coverage


def import_corpus(bench: Workbench, name: str = "moons") -> Workbench:
    place = bench.workspace.path
    list(bench.data.import_corpus(name, place / "corpus.tsv", page_map=place / "pages.json"))
    return bench


def test_corpora_and_datasets_have_counts_and_the_own_ones_can_be_deleted(bench: Workbench) -> None:
    starter, moons = library.corpora(import_corpus(bench).workspace)
    assert (starter.name, starter.own, starter.passages, starter.pages) == (
        "starter",
        False,
        371,
        220,
    )
    assert (moons.name, moons.own, moons.passages, moons.pages) == ("moons", True, 6, 6)
    own, *others = library.datasets(bench.workspace)
    assert (own.name, own.questions, own.kind, own.own) == ("tiny-qa", 8, "short answers", True)
    assert not any(line.own for line in others)
    kinds = {line.name: line.kind for line in others}
    assert kinds["starter-fact"] == "yes or no" and kinds["starter-eli5"] == "long answers"
    assert (
        kinds["starter-multihop"] == "several pages"
        and kinds["starter-unanswerable"] == "no gold page"
    )


def test_a_dataset_that_cannot_be_read_is_listed_with_its_sentence(bench: Workbench) -> None:
    path = bench.workspace.path / "datasets" / "odd.jsonl.gz"
    path.write_bytes(b"\x1f\x8b no gzip")
    line = next(line for line in library.datasets(bench.workspace) if line.name == "odd")
    assert line.questions is None and "damaged gzip" in line.problem


def test_retrievers_say_built_missing_damaged_combined_and_loaded(bench: Workbench) -> None:
    folder = bench.workspace.indexes / "broken"
    folder.mkdir()
    (folder / "manifest.json").write_text("{}")
    bench.data.combine("both", "rrf", ["tiny", "starter-bm25"], {})
    list(bench.models.load("tiny", "retriever"))
    lines = {line.name: line for line in library.retrievers(bench.workspace, bench.data.states())}
    assert lines["tiny"].state == "loaded" and lines["tiny"].passages == 6
    assert lines["broken"].state == "damaged" and "manifest.json" in lines["broken"].about
    assert lines["starter-minilm"].bytes is None and not lines["starter-minilm"].own
    assert lines["both"].parts == ("tiny", "starter-bm25") and lines["both"].own
    assert lines["both"].corpus == "corpus.tsv, starter" and not lines["starter-hybrid"].own


def test_coverage_is_told_for_every_corpus_and_index(bench: Workbench) -> None:
    import_corpus(bench)
    assert gold_coverage.coverage(bench.workspace, "tiny-qa", "moons") == Coverage(6, 6)
    assert gold_coverage.coverage(bench.workspace, "tiny-qa", "corpus.tsv") == Coverage(6, 6)
    starter = gold_coverage.coverage(bench.workspace, "tiny-qa", "starter")
    assert starter is not None and starter.share == 0
    nothing = gold_coverage.coverage(bench.workspace, "starter-unanswerable", "moons")
    assert nothing is not None and nothing.share is None
    shares = gold_coverage.index_coverage(bench.workspace, "tiny-qa")
    assert shares["tiny"] == Coverage(6, 6) and shares["starter-hybrid"] == Coverage(0, 6)
    assert gold_coverage.best_corpus({"a": Coverage(1, 6), "b": Coverage(5, 6), "c": None}) == "b"


def test_an_index_made_of_another_index_is_over_that_ones_corpus() -> None:
    manifests: dict[str, Any] = {
        "cut": SimpleNamespace(corpus="starter-minilm"),
        "again": SimpleNamespace(corpus="cut"),
        "moon-cut": SimpleNamespace(corpus="moons-bm25"),
        "moons-bm25": SimpleNamespace(corpus="moons"),
    }
    corpora = [gold_coverage.corpus_of_index(name, manifests) for name in manifests]
    assert corpora == ["starter", "starter", "moons", "moons"]


def test_a_deletion_says_what_else_it_breaks(bench: Workbench) -> None:
    import_corpus(bench)
    bench.data.combine("both", "rrf", ["tiny", "starter-bm25"], {})
    path = bench.workspace.path / "chains" / "written.json"
    path.write_text(
        json.dumps(chain("written", retrieve(target="rrf:tiny,starter-bm25"), generate()))
    )
    lost = library.lost_with(bench.workspace, "index", "tiny")
    assert (
        "the chain read" in lost.lower()
        and "the chain written" in lost
        and "the retriever both" in lost
    )
    assert library.lost_with(bench.workspace, "corpus", "moons") == ""
    list(bench.data.build_index("m", "moons", "bm25"))
    assert library.lost_with(bench.workspace, "corpus", "moons").startswith("m was built from it")
    assert "the chain" in library.lost_with(bench.workspace, "model", "titan").lower()
    assert library.lost_with(bench.workspace, "combination", "both") == ""
    list(bench.models.load("starter-bm25", "retriever"))
    assert "built again" in library.lost_with(bench.workspace, "index", "starter-bm25")


def test_passages_and_records_are_read_by_place_and_filtered_by_words(bench: Workbench) -> None:
    import_corpus(bench)
    assert len(passages.corpus_rows(bench.workspace, "moons")) == 6
    rows = list(passages.corpus_rows(bench.workspace, "moons", "DANUBE"))
    (danube,) = passages.passages_at(bench.workspace, "moons", rows)
    assert (
        danube.title == "Danube"
        and passages.passage_row(bench.workspace, "moons", danube.doc_id) == rows[0]
    )
    assert len(passages.corpus_rows(bench.workspace, "starter")) == 371
    first = passages.passages_at(bench.workspace, "starter", [0])[0]
    assert passages.passage_row(bench.workspace, "starter", first.doc_id) == 0
    assert passages.passage_row(bench.workspace, "starter", "nobody") is None
    assert [x.question.qid for x in passages.records(bench.workspace, "tiny-qa", "danube")] == [
        "q4",
        "q7",
    ]
    with pytest.raises(NotFoundError, match="There is no corpus 'x' to read"):
        passages.corpus_rows(bench.workspace, "x")


def test_a_row_of_a_builder_is_edited_whole_and_only_as_a_row(bench: Workbench) -> None:
    folder = bench.workspace.path / "experiments" / "mine"
    folder.mkdir(parents=True)
    (folder / "experiment.json").write_text("{}")
    rows = [{"id": "a", "keep": True, "stamp": "1.2"}, {"id": "b", "keep": True}]
    write_lines(folder / "1-articles.jsonl", rows)
    workspace = bench.workspace
    changed = '{"id": "b", "keep": false, "title": "New"}'
    builders.edit_row(workspace, "mine", "1-articles", "b", changed)
    assert builders.stage_row(workspace, "mine", "1-articles", "b") == json.loads(changed)
    assert builders.stage_row(workspace, "mine", "1-articles", "a") == rows[0]
    for text, sentence in (
        ("{", "not valid JSON"),
        ('{"id": "c"}', "whose 'id' is 'b'"),
        ('{"id": "b", "keep": 1}', "true or false"),
    ):
        with pytest.raises(UsageError, match=sentence):
            builders.edit_row(workspace, "mine", "1-articles", "b", text)
    with pytest.raises(NotFoundError, match="no row 'z'"):
        builders.stage_row(workspace, "mine", "1-articles", "z")
    with pytest.raises(NotFoundError, match="no stage"):
        builders.stage_file(workspace, "mine", "9-x")


def test_an_index_and_its_hybrid_are_not_built_in_data_and_in_models_alike(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    in_data = library.retriever_states(bench.workspace, bench.data.states())
    in_models = {line.name: line.state for line in bench.model_lines.retrievers(in_data)}
    bench.close()
    starter = ("starter-bm25", "starter-minilm", "starter-hybrid")
    assert [in_data[name] for name in starter] == ["not built"] * 3
    assert [in_models[name] for name in starter] == ["not built"] * 3
