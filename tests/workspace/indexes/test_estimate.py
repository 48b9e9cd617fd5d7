"""The cost of a build is estimated in advance, close to the real one, with a warning if it exceeds the machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_retrieval import save_colbert, save_splade

from rallebench.core.chunking import Chunking
from rallebench.core.errors import UsageError
from rallebench.retrievers import kinds, needs_encoder, needs_model
from rallebench.services.workbench import Workbench
from rallebench.workspace.indexes.estimate import BuildEstimate, estimate_build, sample_corpus
from rallebench.workspace.indexes.recipes import index_recipe
from rallebench.workspace.opening import Encoders
from rallebench.workspace.paths import WorkspaceFolder

PASSAGES = 3000
SLOW = ("diskann", "diskann-memory")
"""Kinds that start a process of their own for seconds; the others show that the sums are right."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "long.tsv"
    lines = (
        f"{n}\t{' '.join(f'word{(n * k) % 997}' for k in range(1, 40))}\tTitle {n}\n"
        for n in range(PASSAGES)
    )
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    return Workbench(tmp_path_factory.mktemp("estimates"))


def estimated(bench: Workbench, corpus: str | Path, kind: str, **more: Any) -> BuildEstimate:
    """The estimate with the small encoder, without the sentences before it."""
    found = list(bench.data.estimate_build(str(corpus), kind, **{"encoder": "hashing", **more}))[-1]
    assert isinstance(found, BuildEstimate)
    return found


@pytest.mark.parametrize(
    "kind", [kind for kind in kinds() if kind not in SLOW and kind != "milvus"]
)
def test_the_disk_is_told_within_a_quarter(bench: Workbench, corpus: Path, kind: str) -> None:
    own: dict[str, Any] = {}
    if needs_model(kind):
        save = save_splade if kind == "splade" else save_colbert
        words = " ".join(["title", *(f"word{n}" for n in range(997))])
        model = save(bench.workspace.path / "models" / kind, text=words)
        own = {"parameters": {"model": str(model), "device": "cpu"}}
    told = estimated(bench, corpus, kind, **own)
    assert abs(told.passages - PASSAGES) <= PASSAGES * 0.02 and not told.counted
    *_, made = bench.data.build_index(f"as-{kind}", corpus, kind, encoder="hashing", **own)
    shared = (
        4 * 256 * PASSAGES if kind in ("numpy-flat", "ivf-sq8") else 0
    )  # the index's vectors are the cached ones
    took = made.bytes + (4 * 256 * PASSAGES if needs_encoder(kind) else 0) - shared
    assert told.disk == pytest.approx(took, rel=0.25)
    assert told.ram_build > 0 or kind == "numpy-flat"
    assert 0 < told.seconds < 60


def test_vectors_that_are_kept_already_cost_nothing_again(tmp_path: Path, corpus: Path) -> None:
    bench = Workbench(tmp_path)
    list(bench.data.import_corpus("long", corpus))
    first = estimated(bench, "long", "flat")
    list(bench.data.build_index("long-flat", "long", "flat", encoder="hashing"))
    second = estimated(bench, "long", "hnsw")
    assert first.counted and first.vectors == 4 * 256 * PASSAGES and second.vectors == 0
    assert any("are kept already" in line for line in second.basis)
    of_index = estimated(bench, bench.workspace.indexes / "long-flat", "bm25")
    assert (of_index.passages, of_index.counted) == (PASSAGES, True), "an index is a corpus, too"


def test_cutting_is_counted(bench: Workbench, corpus: Path) -> None:
    whole, cut = (
        estimated(bench, corpus, "bm25", chunking=chunking) for chunking in (None, Chunking(10))
    )
    assert cut.passages == pytest.approx(4 * whole.passages, rel=0.05)


def test_a_corpus_that_fits_into_the_sample_is_counted(tmp_path: Path) -> None:
    small = tmp_path / "small.tsv"
    small.write_text("1\tone\tA\n2\ttwo\tB\n")
    sample = sample_corpus(small)
    assert (sample.passages, sample.counted) == (2, True)


def test_what_does_not_fit_this_machine_is_warned_of(bench: Workbench, corpus: Path) -> None:
    fits = estimated(bench, corpus, "hnsw")
    assert fits.warnings == ()
    (memory, disk) = replace(fits, free_ram=1, free_disk=1).warnings
    assert "of memory and 0.0 MB are free" in memory and "ivf-sq8" in memory
    assert "of disk and 0.0 MB are free" in disk
    (searching,) = replace(fits, ram_build=0, free_ram=1).warnings
    assert searching.startswith("Searching needs")


@pytest.mark.parametrize(
    ("kind", "more", "sentence"),
    [
        ("cake", {}, "no index kind 'cake'"),
        ("hnsw", {"parameters": {"m": 1}}, "m must be a whole number from 2"),
        ("flat", {"encoder": "nobody"}, "no encoder 'nobody'"),
    ],
)
def test_a_wrong_request_is_refused(
    bench: Workbench, corpus: Path, kind: str, more: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        estimated(bench, corpus, kind, **more)


def test_an_estimate_leaves_nothing_in_the_workspace(tmp_path: Path, corpus: Path) -> None:
    workspace = WorkspaceFolder(tmp_path)
    recipe = index_recipe(corpus, "hnsw", encoder="hashing")
    list(estimate_build(workspace, recipe, Encoders()))
    assert list(tmp_path.iterdir()) == []
