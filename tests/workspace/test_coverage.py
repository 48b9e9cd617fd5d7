"""Gold pages missing from an index are reported before anything is loaded: for runs, sweeps and suites, on the page and in
the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from performing import plan, prepared, streamed
from small_workspace import RECORDS, CommandLine, record, write_lines

from rallebench.core.events import Warned
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.runs import PreparedRun
from rallebench.datasets.reading import read_questions
from rallebench.experiments import SUITES
from rallebench.services.workbench import Workbench
from rallebench.workspace.coverage import MOST_PASSAGES, coverage
from rallebench.workspace.paths import WorkspaceFolder

FOREIGN = [record(f"f{n}", "Who?", "Nobody", f"other {n}") for n in range(4)]
SENTENCE = "0 of 4 gold pages are in this index (tiny); the others cannot be retrieved"


@pytest.fixture
def workspace(workspace: Path) -> Path:
    write_lines(workspace / "datasets" / "foreign.jsonl", FOREIGN)
    half = [*FOREIGN[:1], RECORDS[0], RECORDS[1], RECORDS[7]]
    write_lines(workspace / "datasets" / "half.jsonl", half)
    return workspace


def told(folder: Path, dataset: str, *retrievers: str, **more: Any) -> dict[str, str]:
    space = WorkspaceFolder(folder)
    return coverage(space, retrievers, read_questions(space.dataset(dataset)[1]), **more)


def test_distinct_gold_pages_are_counted_in_each_index(workspace: Path) -> None:
    assert told(workspace, "foreign", "tiny")["tiny"].startswith(SENTENCE)
    assert told(workspace, "half", "tiny")["tiny"].startswith("2 of 3 gold pages"), (
        "two questions share a page"
    )
    assert told(workspace, "tiny-qa", "tiny") == {"tiny": ""}
    both = told(workspace, "half", "tiny", "several:tiny,starter-bm25")
    assert both["several:tiny,starter-bm25"].startswith("2 of 3 gold pages")


def test_without_gold_pages_or_readable_indexes_nothing_is_claimed(workspace: Path) -> None:
    bare = [{"id": "1", "input": "Who?", "output": [{"answer": "x"}]}]
    write_lines(workspace / "datasets" / "bare.jsonl", bare)
    assert told(workspace, "bare", "tiny") == {} and told(workspace, "foreign", "nowhere") == {}
    assert told(workspace, "foreign", "tiny", at_most=5) == {} and MOST_PASSAGES > 6


def test_the_starter_corpus_is_known_before_its_index_is_built(workspace: Path) -> None:
    assert not (workspace / "indexes" / "starter-bm25").exists()
    assert told(workspace, "starter-qa", "starter-bm25") == {"starter-bm25": ""}
    assert told(workspace, "foreign", "starter-hybrid")["starter-hybrid"].startswith(
        "0 of 4 gold pages"
    )
    assert not (workspace / "indexes" / "starter-bm25").exists()


def run_of(workspace: Path, dataset: str = "foreign") -> tuple[Workbench, PreparedRun]:
    workbench = Workbench(workspace)
    plan = prepared(
        workbench.workspace, workbench.workspace.chain("read"), dataset, name="r", track=False
    )
    return workbench, plan


def test_a_run_tells_before_it_loads_anything_and_keeps_the_warning(workspace: Path) -> None:
    workbench, plan = run_of(workspace)
    assert plan.warnings[0].startswith(SENTENCE), "the page can tell it when the run is planned"
    stages: Iterator[Any] = streamed(workbench.runs.run(plan))
    first = next(stages)
    assert isinstance(first, Warned) and first.message.startswith(SENTENCE)
    assert not workbench.models.status() and not (workspace / "runs" / "r").exists(), (
        "nothing is loaded or written yet"
    )
    *_, last = stages
    assert last.warnings == plan.warnings and SENTENCE in workbench.runs.open("r").state().message
    workbench.close()


def test_a_run_whose_gold_pages_are_all_there_warns_of_nothing(workspace: Path) -> None:
    workbench, plan = run_of(workspace, "tiny-qa")
    events = list(workbench.runs.run(plan))
    assert not plan.warnings and not any(isinstance(event, Warned) for event in events)
    workbench.close()


def test_the_terminal_tells_it_for_a_run_a_sweep_and_suites(cli: CommandLine) -> None:
    requests = (
        "run --chain read --dataset foreign --name run --no-mlflow",
        "sweep --chain read --vary k=1,2 --dataset foreign --name sweep --no-mlflow",
        "suite kilt-nq --set file=foreign --set retriever=tiny --llm titan --name suite --no-mlflow",
    )
    for request in requests:
        first, *_ = cli(request).err.splitlines()
        assert first.startswith("Warning: ") and SENTENCE in first, request
    report = json.loads((cli.workspace / "experiments" / "suite" / "report.json").read_text())
    assert any(SENTENCE in note for note in report["notes"])
    state = json.loads((cli.workspace / "runs" / "suite nq read" / "state.json").read_text())
    assert SENTENCE in state["message"]


def test_the_plan_of_a_suite_tells_it(workspace: Path) -> None:
    settings = SUITES.settings("kilt-nq", {"file": "foreign", "retriever": "tiny"})
    planned = plan("kilt-nq", ExperimentRequest(WorkspaceFolder(workspace), "titan", settings), "s")
    assert planned.notes[0].startswith(f"foreign: {SENTENCE}")
