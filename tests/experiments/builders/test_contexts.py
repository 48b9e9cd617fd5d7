"""Contextual chunks: a model writes each passage's context once; an index reads both, the prompt gets the passage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from building import built
from performing import build
from small_workspace import read_lines, scripted

from rallebench.core.errors import BadFileError, NotFoundError, UsageError
from rallebench.core.experiments import ExperimentResult
from rallebench.experiments import BUILDERS
from rallebench.experiments.builders.contexts import passages_on_pages
from rallebench.services.workbench import Workbench
from rallebench.workspace.paths import WorkspaceFolder

PASSAGES = [
    ("a1", "It is the largest moon.", "Titan", "A"),
    ("a2", "Its air is thick.", "Titan", "A"),
    ("a3", "A probe landed there.", "Titan", "A"),
    ("b1", "It orbits backwards.", "Triton", "B"),
    ("c1", "Silent.", "", ""),
]
REPLIES = {
    "Its air": "The atmosphere of\n Titan, Saturn's moon.",
    "Silent": " ",
    "probe": "Huygens.",
}


@pytest.fixture
def space(tmp_path: Path) -> Path:
    corpus = tmp_path / "c.jsonl"
    names = ("id", "text", "title", "page_id")
    corpus.write_text("\n".join(json.dumps(dict(zip(names, row))) for row in PASSAGES))
    built(tmp_path / "space" / "indexes", "plain", corpus, "bm25")
    replies = {f"(?s)<passage>\n{key}": reply for key, reply in REPLIES.items()}
    replies = {key.replace("probe", "A probe"): reply for key, reply in replies.items()}
    models = {"writer": {"replies": replies, "default": "Of a moon."}, "mute": {"default": ""}}
    (tmp_path / "space" / "llms.json").write_text(json.dumps(scripted(models)))
    return tmp_path / "space"


def make(space: Path, llm: str = "writer", index: str = "plain") -> ExperimentResult:
    settings = BUILDERS.settings("contexts", {"index": index})
    return build(WorkspaceFolder(space), "contexts", "own", settings, "", llm)


def test_each_passage_is_shown_with_its_page_around_it(space: Path) -> None:
    folder = space / "indexes" / "plain"
    documents = {entry.id: entry.document for entry in passages_on_pages(folder, 3000, None)}
    texts = [text for _, text, _, _ in PASSAGES]
    assert documents["a2"] == "\n".join(texts[:3]) and documents["b1"] == texts[3]
    assert documents["c1"] == "Silent."
    narrow = {entry.id: entry.document for entry in passages_on_pages(folder, 20, None)}
    assert narrow["a1"] == "\n".join(texts[:2]) and narrow["a3"] == "\n".join(texts[1:3])
    assert len(list(passages_on_pages(folder, 0, 2))) == 2


def test_contexts_are_found_and_passages_returned(space: Path) -> None:
    result = make(space)
    rows = {row["id"]: row for row in read_lines(result.folder / "1-contexts.jsonl")}
    assert rows["a2"]["context"] == "The atmosphere of Titan, Saturn's moon."
    assert (rows["c1"]["keep"], rows["c1"]["why"]) == (False, "the model wrote nothing")
    assert result.report.notes[0] == "1 of 5 passages have no context and stand alone."
    corpus = result.folder / "contexts-corpus.jsonl"
    lines = {line["id"]: line for line in read_lines(corpus)}
    assert (
        lines["a3"]["text"] == "Huygens.\nA probe landed there." and lines["a3"]["page_id"] == "A"
    )
    assert lines["c1"]["text"] == "Silent."
    built(space / "indexes", "contextual", corpus, "bm25")
    bench = Workbench(space)
    list(bench.models.load("originals:contextual,plain", "retriever"))
    retriever = bench.models.backends.retrievers["originals:contextual,plain"]
    (hits,) = retriever.search(["huygens"], 1)
    assert hits[0].passage.text == "A probe landed there." and hits[0].passage.page_id == "A"
    assert retriever.page_ids() == bench.models.backends.retrievers["plain"].page_ids()


def test_an_edited_context_stays_and_nothing_is_asked_twice(space: Path) -> None:
    result = make(space)
    path = result.folder / "1-contexts.jsonl"
    rows = read_lines(path)
    rows[0]["context"] = "Written by a person."
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    models = json.loads((space / "llms.json").read_text())
    models["writer"]["settings"]["replies"] = {}
    (space / "llms.json").write_text(json.dumps(models))
    again = make(space)
    lines = {
        line["id"]: line["text"] for line in read_lines(again.folder / "contexts-corpus.jsonl")
    }
    assert lines["a1"].startswith("Written by a person.\n")
    assert lines["a3"].startswith("Huygens.\n")


def test_bad_requests_are_one_sentence_and_leave_nothing(space: Path) -> None:
    with pytest.raises(BadFileError, match="No passage got a context"):
        make(space, llm="mute")
    assert not (space / "experiments" / "own" / "contexts-corpus.jsonl").exists()
    with pytest.raises(NotFoundError, match="'plane'"):
        make(space, index="plane")
    with pytest.raises(UsageError, match="language model writes"):
        make(space, llm="")


def test_an_index_of_other_chunks_is_refused(space: Path, tmp_path: Path) -> None:
    (tmp_path / "o.jsonl").write_text(json.dumps({"id": "z9", "text": "another moon"}))
    built(space / "indexes", "other", tmp_path / "o.jsonl", "bm25")
    bench = Workbench(space)
    list(bench.models.load("originals:other,plain", "retriever"))
    retriever = bench.models.backends.retrievers["originals:other,plain"]
    with pytest.raises(UsageError, match=r"'z9' of 'other' is not in 'plain'"):
        retriever.search(["moon"], 1)
