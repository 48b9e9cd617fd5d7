"""Gold pages that an index lacks are told before anything is loaded or asked: for runs, sweeps and suites, on the page and in the terminal."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from performing import plan, prepared, streamed, sweep
from small_workspace import (
    RECORDS,
    CommandLine,
    chain,
    generate,
    make_workspace,
    record,
    retrieve,
    write_lines,
)

from rallebench.core.events import Operation, Warned
from rallebench.core.experiments import ExperimentRequest
from rallebench.datasets.reading import read_questions
from rallebench.experiments import SUITES
from rallebench.experiments.prepared_run import PreparedRun
from rallebench.services.jobs import Job
from rallebench.services.workbench import Workbench
from rallebench.workspace.coverage import MOST_PASSAGES, coverage
from rallebench.workspace.paths import Workspace

FOREIGN = [record(f"f{n}", "Who?", "Nobody", f"other {n}") for n in range(4)]
SENTENCE = "0 of 4 gold pages are in this index (tiny); the others cannot be retrieved"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = make_workspace(tmp_path / "workspace")
    write_lines(folder / "datasets" / "foreign.jsonl", FOREIGN)
    half = [*FOREIGN[:1], RECORDS[0], RECORDS[1], RECORDS[7]]
    write_lines(folder / "datasets" / "half.jsonl", half)
    (folder / "chains").mkdir(exist_ok=True)
    reads = json.dumps(chain("reads", retrieve(), generate()))
    (folder / "chains" / "reads.json").write_text(reads)
    return folder


@pytest.fixture
def rallebench(capfd: pytest.CaptureFixture[str], folder: Path) -> CommandLine:
    return CommandLine(capfd, folder)


def told(folder: Path, dataset: str, *retrievers: str, **more: Any) -> dict[str, str]:
    workspace = Workspace(folder)
    return coverage(workspace, retrievers, read_questions(workspace.dataset(dataset)[1]), **more)


def test_distinct_gold_pages_are_counted_in_each_index(folder: Path) -> None:
    assert told(folder, "foreign", "tiny")["tiny"].startswith(SENTENCE)
    assert told(folder, "half", "tiny")["tiny"].startswith("2 of 3 gold pages"), (
        "two questions share a page"
    )
    assert told(folder, "tiny-qa", "tiny") == {"tiny": ""}
    both = told(folder, "half", "tiny", "several:tiny,starter-bm25")
    assert both["several:tiny,starter-bm25"].startswith("2 of 3 gold pages")


def test_without_gold_pages_or_readable_indexes_nothing_is_claimed(folder: Path) -> None:
    bare = [{"id": "1", "input": "Who?", "output": [{"answer": "x"}]}]
    write_lines(folder / "datasets" / "bare.jsonl", bare)
    assert told(folder, "bare", "tiny") == {} and told(folder, "foreign", "nowhere") == {}
    assert told(folder, "foreign", "tiny", at_most=5) == {} and MOST_PASSAGES > 6


def test_the_starter_corpus_is_known_before_its_index_is_built(folder: Path) -> None:
    assert not (folder / "indexes" / "starter-bm25").exists()
    assert told(folder, "starter-qa", "starter-bm25") == {"starter-bm25": ""}
    assert told(folder, "foreign", "starter-hybrid")["starter-hybrid"].startswith(
        "0 of 4 gold pages"
    )
    assert not (folder / "indexes" / "starter-bm25").exists()


def run_of(folder: Path, dataset: str = "foreign") -> tuple[Workbench, PreparedRun]:
    workbench = Workbench(folder)
    plan = prepared(
        workbench.workspace, workbench.workspace.chain("reads"), dataset, name="r", track=False
    )
    return workbench, plan


def test_a_run_tells_before_it_loads_anything_and_keeps_the_warning(folder: Path) -> None:
    workbench, plan = run_of(folder)
    assert plan.warnings[0].startswith(SENTENCE), "the page can tell it when the run is planned"
    stages: Iterator[Any] = streamed(workbench.runs.run(plan))
    first = next(stages)
    assert isinstance(first, Warned) and first.message.startswith(SENTENCE)
    assert not workbench.models.status() and not (folder / "runs" / "r").exists(), (
        "nothing is loaded or written yet"
    )
    *_, last = stages
    assert (
        last.warnings == plan.warnings and SENTENCE in workbench.runs.open("r").state()["message"]
    )
    workbench.close()


def test_a_run_whose_gold_pages_are_all_there_warns_of_nothing(folder: Path) -> None:
    workbench, plan = run_of(folder, "tiny-qa")
    events = list(workbench.runs.run(plan))
    assert not plan.warnings and not any(isinstance(event, Warned) for event in events)
    workbench.close()


def test_the_terminal_tells_it_first_for_a_run_a_sweep_and_a_suite(
    rallebench: CommandLine, folder: Path
) -> None:
    requests = (
        "run --chain reads --dataset foreign --name run --no-mlflow",
        "sweep --chain reads --vary k=1,2 --dataset foreign --name sweep --no-mlflow",
        "suite kilt-nq --set file=foreign --set retriever=tiny --llm titan --name suite --no-mlflow",
    )
    for request in requests:
        first, *_ = rallebench(request).err.splitlines()
        assert first.startswith("Warning: ") and SENTENCE in first, request
    report = json.loads((folder / "experiments" / "suite" / "report.json").read_text())
    assert any(SENTENCE in note for note in report["notes"])
    state = json.loads((folder / "runs" / "suite nq read" / "state.json").read_text())
    assert SENTENCE in state["message"]


def test_a_sweep_tells_each_index_once_before_its_first_variant(folder: Path) -> None:
    workbench = Workbench(folder)
    reads = workbench.workspace.chain("reads")
    first = next(sweep(workbench, "s", reads, ["k=1,2"], "foreign", track=False))
    assert isinstance(first, Warned) and SENTENCE in first.message and not workbench.models.status()
    workbench.close()


def test_the_plan_of_a_suite_tells_it(folder: Path) -> None:
    settings = SUITES.settings("kilt-nq", {"file": "foreign", "retriever": "tiny"})
    planned = plan("kilt-nq", ExperimentRequest(Workspace(folder), "titan", settings), "s")
    assert planned.notes[0].startswith(f"foreign: {SENTENCE}")


def test_the_job_of_a_run_says_it_from_the_start(folder: Path) -> None:
    workbench, plan = run_of(folder)
    release = threading.Event()

    def work(job: Job) -> Operation[None]:
        yield from (Warned("", sentence) for sentence in plan.warnings)
        release.wait(10)

    job = workbench.jobs.submit("run", "r", plan, work)
    next(job.follow())
    assert SENTENCE in job.warning
    release.set()
    assert job.wait(10)
    workbench.close()
