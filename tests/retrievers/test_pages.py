"""Whole pages in place of passages: each page once, in the order of its first passage, its overlapping chunks merged."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_workspace import CommandLine, make_workspace, write_lines

TEXTS = {
    "ulm": "Ulm lies on the Danube. "
    + "Its church tower is the highest of all. " * 4
    + "The end of Ulm.",
    "linz": "Linz lies on the Danube. "
    + "It has a harbour and a bridge of iron. " * 4
    + "The end of Linz.",
    "bonn": "Bonn lies on the Rhine.",
}


@pytest.fixture
def cli(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> CommandLine:
    cli = CommandLine(capfd, make_workspace(tmp_path / "w"))
    rows = [{"id": i, "text": text, "title": i.title()} for i, text in TEXTS.items()]
    corpus = write_lines(cli.workspace / "towns.jsonl", rows)
    chunks = ("--chunk-size", "12", "--chunk-overlap", "4")
    cli.json("index", "--corpus", corpus, "--name", "towns", "--kind", "bm25", *chunks)
    return cli


def test_the_pages_of_the_passages_are_whole_and_each_comes_once(cli: CommandLine) -> None:
    (cut,) = cli.json("search", "--index", "towns", "-k", 8, "Danube church tower")
    (found,) = cli.json("search", "--index", "pages:towns", "-k", 8, "Danube church tower")
    order = list(dict.fromkeys(hit["page_id"] for hit in cut["hits"]))
    assert len(cut["hits"]) > len(order)
    assert [hit["page_id"] for hit in found["hits"]] == order
    assert {hit["page_id"]: hit["text"] for hit in found["hits"]} == {i: TEXTS[i] for i in order}
    assert found["hits"][0]["score"] == cut["hits"][0]["score"]


def test_fewer_passages_give_a_prefix_of_the_pages(cli: CommandLine) -> None:
    (many,) = cli.json("search", "--index", "pages:towns", "-k", 8, "Danube")
    (few,) = cli.json("search", "--index", "pages:towns", "-k", 1, "Danube")
    assert few["hits"] == many["hits"][:1]


def test_the_pages_of_a_combination_are_those_of_its_list(cli: CommandLine) -> None:
    (found,) = cli.json("search", "--index", "pages:(rrf:towns,tiny)", "-k", 4, "Danube Black Sea")
    assert "p4" in {hit["page_id"] for hit in found["hits"]} and len(found["hits"]) > 1
    assert all(hit["text"] == TEXTS.get(hit["page_id"], hit["text"]) for hit in found["hits"])
    assert "takes 1" in cli("search --index pages:towns,tiny Danube").last
