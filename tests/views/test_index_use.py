"""Memory and time of indexes, as runs and trade-offs measured them."""

from __future__ import annotations

from pathlib import Path

from rallebench.core.experiment_reports import Point, TradeoffReport
from rallebench.core.experiments import RequestContent
from rallebench.engine.experiment_store import ExperimentStore
from rallebench.views.index_use import IndexUse, index_use
from rallebench.workspace.paths import WorkspaceFolder


def test_an_index_that_nothing_has_measured_is_left_out(tmp_path: Path) -> None:
    assert index_use(WorkspaceFolder(tmp_path), {}) == {}


def test_loaded_now_comes_before_a_trade_off_and_the_first_index_as_it_is_built_counts(
    tmp_path: Path,
) -> None:
    points = (
        Point("docs-hnsw", "hnsw", single_ms=2.0, encode_ms=20.0, ram=5_000_000),
        Point("docs-hnsw", "hnsw", {"ef_search": 9}, single_ms=9.0, ram=6_000_000),
        Point("docs-bm25", "bm25", single_ms=1.0, ram=4_000_000),
        Point("gone", "bm25", error="It could not be opened."),
    )
    report = TradeoffReport("toff", "qa", 10, 4, points)
    store, request = ExperimentStore(tmp_path), RequestContent()
    store.save_request("toff", "tradeoff", request, {}, "trade-off")
    store.save_report("toff", request, report)
    use = index_use(WorkspaceFolder(tmp_path), {"docs-bm25": 7_000_000})
    assert use == {
        "docs-hnsw": IndexUse(5_000_000, 22.0, "the trade-off toff", "the trade-off toff"),
        "docs-bm25": IndexUse(7_000_000, 1.0, "the trade-off toff", "loaded now"),
    }
