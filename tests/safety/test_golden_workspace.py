"""A workspace from an earlier version: its runs are opened, resumed, compared and exported without calling a model."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scenario import BASELINES, REPORTS, STEPS, WORKSPACE, call, golden, inside, normal, words

from rallebench.llms.scripted import Scripted

RUNS = sorted(path.name for path in (WORKSPACE / "runs").iterdir())
RESUMED = {
    "stopped": words(
        "run --chain slow --dataset tiny-qa --name stopped --resume --batch-size 1 --no-mlflow"
    ),
    "whole": words("run --chain slow --dataset tiny-qa --name whole --resume --no-mlflow"),
    "chain": [*STEPS["chain"], "--resume"],
    "agent-react": [*STEPS["agent react"], "--resume"],
    "baselines": BASELINES,
    "build barag": STEPS["build barag"],
    **{
        label: STEPS[label]
        for label in words("sweep rgb-noise rgb-rejection crud-qa1 kilt barag-modes reval")
    },
}
SLOW = {"crud-qa1", "reval", "barag-modes", "rgb-rejection", "whole"}


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """All requests to a scripted model, in order."""
    requests: list[Any] = []
    generate, stream = Scripted.generate, Scripted.stream

    def record(self: Scripted, batch: Any) -> Any:
        requests.extend(batch)
        return generate(self, batch)

    def record_stream(self: Scripted, request: Any) -> Any:
        requests.append(request)
        return stream(self, request)

    monkeypatch.setattr(Scripted, "generate", record)
    monkeypatch.setattr(Scripted, "stream", record_stream)
    return requests


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Path]:
    """A copy, as the current folder."""
    with inside(golden(tmp_path / "w")) as folder:
        yield folder


def stored(folder: Path, run: str, name: str) -> str:
    return (folder / "runs" / run / name).read_text("utf-8")


def result(*arguments: str) -> Any:
    code, value, err = call(*arguments)
    assert code == 0, err
    return value


@pytest.mark.parametrize(
    "label",
    [pytest.param(label, marks=pytest.mark.slow if label in SLOW else ()) for label in RESUMED],
)
def test_what_was_run_is_continued_without_asking_a_model(
    label: str, workspace: Path, requests: list[Any]
) -> None:
    report = normal(result(*RESUMED[label]))
    assert requests == []
    for run in RUNS:
        assert stored(workspace, run, "run.json") == stored(WORKSPACE, run, "run.json"), run
        if run != "stopped":
            assert stored(workspace, run, "episodes.jsonl") == stored(
                WORKSPACE, run, "episodes.jsonl"
            ), run
    file = REPORTS / f"{label.replace(' ', '-')}.json"
    if file.exists() and os.environ.get("UPDATE_GOLDEN"):
        text = json.dumps(report, ensure_ascii=False, sort_keys=True, indent=1) + "\n"
        file.write_text(text, encoding="utf-8")
    if file.exists():
        assert report == json.loads(file.read_text("utf-8"))


def test_the_stopped_run_is_completed_from_the_cache(workspace: Path, requests: list[Any]) -> None:
    before = stored(workspace, "stopped", "episodes.jsonl")
    report = result(*RESUMED["stopped"])
    after = stored(workspace, "stopped", "episodes.jsonl")
    assert 0 < before.count("\n") < after.count("\n") == report["n"] == 8 and after.startswith(
        before
    )
    assert requests == []


def test_the_stopped_run_asks_what_remains_uncached(workspace: Path, requests: list[Any]) -> None:
    remaining = 8 - stored(workspace, "stopped", "episodes.jsonl").count("\n")
    shutil.rmtree(workspace / "cache")
    result(*RESUMED["stopped"])
    assert len(requests) == remaining > 0


@pytest.mark.parametrize("label", ["chain", "agent-react", "rgb-noise"])
def test_a_new_run_of_the_same_request_has_the_same_spec_and_answers_from_the_cache(
    label: str, workspace: Path, requests: list[Any]
) -> None:
    shutil.rmtree(workspace / "runs")
    shutil.rmtree(workspace / "experiments", ignore_errors=True)
    result(*(word for word in RESUMED[label] if word != "--resume"))
    assert requests == []
    runs = sorted(path.name for path in (workspace / "runs").iterdir())
    assert runs and set(runs) <= set(RUNS)
    for run in runs:
        ours, theirs = (
            json.loads(stored(folder, run, "run.json")) for folder in (workspace, WORKSPACE)
        )
        for key in ("spec", "fingerprint", "metrics", "dataset_file"):
            assert ours[key] == theirs[key], (run, key)


def test_runs_are_compared_with_each_other_and_with_imported_predictions(workspace: Path) -> None:
    two = result("compare", "chain", "imported")
    assert (two["runs"], two["n"], two["a"], two["b"]) == (["chain", "imported"], 8, 0.125, 0.625)
    assert len(two["flipped"]) == 4
    assert result("compare", "chain", "imported", "whole")["n"] == 8


EXPORTS = (
    ("chain", "trec", 16),
    ("chain", "qrels", 8),
    ("chain", "kilt", 8),
    ("chain", "jsonl", 8),
    ("chain", "csv", 8),
    ("react wikipedia", "r-eval", 3),
    ("imported", "kilt", 8),
    ("barag-modes naive", "jsonl", 3),
)


def test_runs_are_exported(workspace: Path) -> None:
    for run, format, lines in EXPORTS:
        export = result("export", run, "--format", format)
        assert export["lines"] == lines and export["text"], (run, format)


def test_every_run_is_listed_in_a_report_and_analysed(workspace: Path) -> None:
    assert result("report", *RUNS[:3], "--out", "report.html")["runs"] == RUNS[:3]
    assert "<html" in Path("report.html").read_text("utf-8")
    chain = result("analyse", "chain")["runs"][0]
    assert (chain["run"], chain["n"]) == ("chain", 8)
    assert result("analyse", "react wikipedia", "--aspect", "errors")["runs"] == ["react wikipedia"]


def test_every_run_is_opened(workspace: Path) -> None:
    for run in RUNS:
        assert result("export", run, "--format", "jsonl")["lines"] == stored(
            WORKSPACE, run, "episodes.jsonl"
        ).count("\n")


def test_the_index_is_searched(workspace: Path) -> None:
    (answer,) = result("search", "--index", "tiny", "-k", "2", "moon of Pluto")
    assert answer["hits"][0]["page_id"] == "p6"


@pytest.mark.slow
def test_a_tradeoff_measures_the_same_qualities(workspace: Path) -> None:
    assert normal(result(*STEPS["tradeoff"])) == json.loads(
        (REPORTS / "tradeoff.json").read_text("utf-8")
    )
