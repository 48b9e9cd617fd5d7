"""The folder of a workspace's experiments: entries are found by their kind and their noun."""

from __future__ import annotations

from pathlib import Path

from rallebench.core.experiments import RequestContent
from rallebench.engine.experiment_store import ExperimentStore


def test_an_experiment_is_found_by_the_kind_and_the_noun_it_was_saved_with(tmp_path: Path) -> None:
    store = ExperimentStore(tmp_path)
    store.save_request("night", "kilt-nq", RequestContent(), {}, "suite")
    store.save_request("day", "sweep", RequestContent(), {}, "sweep")
    assert store.names(("sweep",)) == ["day"] and store.names(("kilt-nq",)) == ["night"]
    assert (store.find_kind("night"), store.find_noun("night")) == ("kilt-nq", "suite")


def test_an_experiment_that_is_damaged_or_not_there_has_no_kind_and_no_noun(tmp_path: Path) -> None:
    store = ExperimentStore(tmp_path)
    store.save_request("torn", "sweep", RequestContent(), {}, "sweep")
    (store.folder("torn") / "experiment.json").write_text("{")
    for name in ("torn", "nobody"):
        assert (store.find_kind(name), store.find_noun(name)) == ("", "")
