"""The published tables: figures as printed, averages that follow from their cells, doubts that name inconsistent cells."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from project import PROJECT

from rallebench.core.errors import NotFoundError
from rallebench.experiments.benchmarks import published_names, published_table, table_file
from rallebench.papers.crud.factors import FACTORS
from rallebench.papers.ralle.sets import SETS

WORKPLACE_NOTE = re.compile(r", see SPEC [\d.]+| \(SPEC [\d.]+\)")
"""A reference in a doubt to a file outside of the project."""


FIVE = {"ralle", "rgb", "barag", "crud", "reval"}


@pytest.fixture(scope="session")
def shared_published() -> Path:
    folder = PROJECT.parent / "shared" / "published"
    if not folder.is_dir():
        pytest.skip("the published tables do not lie beside this checkout")
    return folder


@pytest.mark.parametrize("name", published_names())
def test_every_table_names_its_source_and_has_the_same_columns_in_every_row(name: str) -> None:
    table = published_table(name)
    of_a_table = re.fullmatch(r"arXiv:\d{4}\.\d{5}, (Table \w+|running text)", table.source)
    assert of_a_table if name.split("_")[0] in FIVE else table.source.startswith("arXiv:")
    assert table.about and table.rows
    for row in table.rows:
        assert not table.columns or tuple(row.values) == table.columns
        assert all(row.values[column] is not None for column in row.brackets)
        assert all(table.unit(column) for column in row.values)


def test_tables_stand_by_paper_and_then_by_number() -> None:
    names = published_names()
    papers = [name.split("_")[0] for name in names]
    assert len([*groupby(papers)]) == len({*papers})
    numbered = [name for name in names if name.startswith("ralle_table")]
    assert numbered == [f"ralle_table{n}" for n in range(1, len(numbered) + 1)]


def test_every_table_of_the_five_papers_is_shipped_also_in_a_wheel() -> None:
    names = published_names()
    papers = [name.split("_")[0] for name in names]
    assert sum(paper in FIVE for paper in papers) == 39
    assert {*papers} - FIVE == {"beir", "mtrag", "browsecomp"}
    project = (PROJECT / "pyproject.toml").read_text()
    (packaged,) = re.findall(r"package-data\]\nrallebench = \[(.*)\]", project)
    for folder in ("papers/*", "experiments/benchmarks/*"):
        assert f'"{folder}/*.json", "{folder}/published/*.json"' in packaged


def test_the_shipped_copies_hold_the_figures_of_the_checked_tables(shared_published: Path) -> None:
    def content(path: Path) -> dict[str, Any]:
        value = json.loads(WORKPLACE_NOTE.sub("", path.read_text(encoding="utf-8")))
        return {key: value[key] for key in value if key != "source"}

    for path in (p for p in shared_published.glob("*.json") if p.name.split("_")[0] in FIVE):
        assert content(table_file(path.stem)) == content(shared_published / path.name), path.name


def test_every_beir_set_has_its_number_of_questions_and_the_parts_of_cqadupstack_sum_up() -> None:
    table = published_table("beir_table2")
    assert set(table.n) == {row.system for row in table.rows}
    parts = [n for name, n in table.n.items() if name.startswith("cqadupstack-")]
    assert len(parts) == 12 and sum(parts) == table.n["cqadupstack"] == 13145
    assert "beir-cellar/beir" in table.source and "MTEB" in table.source


LLAMA = {"system": "e5 + Llama2-70B", "block": "downstream"}
CELLS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("ralle_table2", LLAMA, {"FEV": 49.9, "WnWi": 48.6, "WnCw": 45.6, "WoW": 13.2}),
    ("ralle_table3", {"system": "e5 (Flat)"}, {"NQ": 65.2, "Avg": 55.2}),
    ("ralle_table8", {"system": "BM25"}, {"NQ": 42.5, "Avg": 41.6}),
    ("ralle_table4", {"system": "e5 (DiskANN)"}, {"Memory": 10.9}),
    ("ralle_table9", {"system": "e5 (Flat)"}, {"NQ": 0.171, "Avg": 0.169}),
    ("rgb_table1", {"system": "ChatGPT"}, {"en_0": 96.33, "zh_0.8": 70.67}),
    ("rgb_table3", {"system": "ChatGPT"}, {"en_Rej": 24.67, "en_Rej*": 45.0}),
    ("rgb_table7", {"system": "ChatGPT", "language": "en"}, {"Acc": 89, "CR": 57.14}),
    ("barag_table2", {"system": "BARAG"}, {"relevance": 4.67, "n_in": 224000, "retrievals": 138}),
    ("crud_table3", {"task": "summarization", "base": True}, {"bleu": 23.69, "length": 205.9}),
    ("beir_table2", {"system": "scifact"}, {"BM25": 66.5, "BM25 flat": 67.89}),
    ("beir_table2", {"system": "robust04"}, {"BM25": 40.8, "BM25 flat": 40.7}),
    ("mtrag_table1", {"system": "Elser", "form": "rewrite"}, {"R@5": 52, "nDCG@5": 48}),
    ("browsecomp_table2", {"system": "BM25"}, {"evidence R@5": 1.2, "gold nDCG@10": 1.7}),
    ("browsecomp_table1", {"system": "o3", "retriever": "BM25"}, {"accuracy": 49.28}),
    ("crud_table9", {"task": "error correction"}, {"chunk_size": "larger"}),
]


@pytest.mark.parametrize(("name", "which", "cells"), CELLS)
def test_figures_are_those_that_are_printed(
    name: str, which: Mapping[str, Any], cells: Mapping[str, Any]
) -> None:
    row = published_table(name).row(**which)
    assert {column: row.values[column] for column in cells} == cells


def test_has_answer_of_both_wned_sets_is_printed() -> None:
    table = published_table("ralle_table2")
    found = table.shares(table.row("e5 + Llama2-70B", block="downstream"), brackets=True)
    assert (found["WnWi"], found["WnCw"]) == (0.514, 0.514)
    assert set(found) == {one.label for one in SETS.values() if one.short}


@pytest.mark.parametrize(
    ("name", "digits", "doubtful"),
    [
        ("ralle_table3", 1, {"e5 (DiskANN), without REWRITE-EL"}),
        ("ralle_table8", 1, {"RAG"}),
        ("ralle_table9", 3, set()),
    ],
)
def test_printed_averages_follow_from_their_cells_but_for_the_doubtful_ones(
    name: str, digits: int, doubtful: set[str]
) -> None:
    table, wrong = published_table(name), set()
    for row in table.rows:
        if row.values["Avg"] is not None:
            gap = abs(row.values["Avg"] - fmean(row.values[kilt.label] for kilt in SETS.values()))
            assert gap < 10**-digits
            wrong |= {row.system} if gap > 0.5 * 10**-digits + 1e-9 else set()
    assert wrong == doubtful
    for system in wrong:
        assert any(system.replace(",", "") in doubt for doubt in table.doubts)


@pytest.mark.parametrize(
    ("factor", "table", "setting"),
    [
        ("chunk", "crud_table3", "chunk_size"),
        ("overlap", "crud_table4", "chunk_overlap_percent"),
        ("topk", "crud_table7", "top-k"),
    ],
)
def test_the_grid_varies_to_the_values_of_the_paper(factor: str, table: str, setting: str) -> None:
    printed = {row.settings[setting] for row in published_table(table).rows}
    assert sorted(printed) == list(FACTORS[factor].papers)


def test_a_cell_has_as_many_digits_as_are_printed() -> None:
    agents, ranks = published_table("barag_table3"), published_table("reval_table3")
    expected = ["4.71", "4.66", "224k", "24k", "256"]
    assert [agents.cell_text(agents.row("NRAG"), column) for column in agents.columns] == expected
    first = ranks.rows[0]
    assert ranks.cell_text(first, "KS_rank").isdecimal() and "." in ranks.cell_text(first, "all")
    empty = published_table("ralle_table4")
    assert empty.cell_text(empty.row("BM25"), "Memory") == ""


def test_an_unknown_table_or_an_ambiguous_row_is_refused() -> None:
    with pytest.raises(NotFoundError, match="ralle_table2"):
        published_table("ralle_table_2")
    with pytest.raises(LookupError, match="2 rows"):
        published_table("ralle_table2").row("e5 + Llama2-70B")
