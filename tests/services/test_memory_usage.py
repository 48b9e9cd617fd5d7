"""Memory of a run's models and indexes: recorded beside its fingerprint, and never 0 if unknown."""

from __future__ import annotations

import re

import pytest
from small_workspace import CommandLine, add_llm, make_workspace

from rallebench.analysis import deployment
from rallebench.core.comparison import Measure
from rallebench.core.memory import Memory
from rallebench.core.report import Estimate, MemoryUse, RunReport
from rallebench.engine.store import RunFolder
from rallebench.metrics import read_card
from rallebench.render import svg
from rallebench.services.loaded import LoadedBackend, LoadedTable
from rallebench.tracking.metrics import counts
from rallebench.workspace.paths import WorkspaceFolder

BOTH = "rrf:tiny,starter-bm25"
EM = Measure("em", read_card("em"))


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> WorkspaceFolder:
    folder = make_workspace(tmp_path_factory.mktemp("footprint") / "workspace")
    add_llm(folder, "far", "openai_compatible", base_url="http://127.0.0.1:9/v1", model="m")
    return WorkspaceFolder(folder)


def loaded_table(workspace: WorkspaceFolder, *rows: tuple[str, str, int, int]) -> LoadedTable:
    """A table with (name, kind, ram, vram) of each row."""
    table = LoadedTable(workspace)
    for name, kind, ram, vram in rows:
        table.rows[name] = LoadedBackend(name, kind, "", ram, vram, 1.0)
    return table


def test_what_is_elsewhere_or_too_small_to_measure_is_unknown(workspace: WorkspaceFolder) -> None:
    llm = "language model"
    rows = (("far", llm, 9, 0), ("titan", llm, 5, 7), ("tiny", "retriever", -3, 0))
    footprint = loaded_table(workspace, *rows).footprint(["far", "titan", "tiny", "not loaded"])
    assert footprint == {"far": None, "titan": Memory(5, 7), "tiny": None}


def test_a_combination_is_counted_with_its_parts_and_nothing_twice(
    workspace: WorkspaceFolder,
) -> None:
    sizes = (("tiny", 4), ("starter-bm25", 2), (BOTH, 0), ("other", 9))
    table = loaded_table(workspace, *((name, "retriever", ram, 0) for name, ram in sizes))
    table.parts[BOTH] = [("tiny", "retriever"), ("starter-bm25", "retriever")]
    assert table.footprint([BOTH, "tiny"]) == {
        BOTH: Memory(0, 0),
        "tiny": Memory(4, 0),
        "starter-bm25": Memory(2, 0),
    }


def test_a_run_keeps_it_outside_its_fingerprint_and_mlflow_gets_it(
    workspace: WorkspaceFolder, capfd: pytest.CaptureFixture[str]
) -> None:
    cli = CommandLine(capfd, workspace.path)
    words = "run --chain read --llm titan --dataset tiny-qa --no-mlflow --limit 2 --name"
    assert [cli(words, name).code for name in ("one", "two")] == [0, 0]
    one, two = (RunFolder.open(workspace.runs, name) for name in ("one", "two"))
    assert set(one.description().memory or {}) == {"titan", "tiny"}
    assert one.description().fingerprint == two.description().fingerprint
    assert (one.report() or RunReport()).memory is not None
    assert counts(RunReport(memory=MemoryUse(12)))["memory_bytes"] == 12.0
    assert counts(RunReport(memory=MemoryUse(None, ("far",))))["memory_bytes"] is None


def test_a_bubble_is_as_large_as_the_memory_and_hollow_where_nobody_knows() -> None:
    def report(held: int | None) -> RunReport:
        names = ("em", "seconds", "prompt_tokens", "completion_tokens")
        known = RunReport(memory=MemoryUse(held))
        return known.with_means(dict.fromkeys(names, Estimate(0.5)))

    named = [("big", report(4_000_000)), ("small", report(1_000_000)), ("<b>far", report(None))]
    drawn = svg.figure(deployment.figure(named, EM, "seconds_per_question"))
    big, small, _ = map(float, re.findall(r'<circle[^>]* r="([\d.]+)"', drawn))
    assert big == 2 * small, "the area tells the memory"
    (note,) = deployment.notes(named, "em", "seconds_per_question")
    assert "Hollow, because it is unknown: <b>far." in note and "memory that the run" in note
    assert " · memory: 4.0 MB</title>" in drawn and " · memory unknown</title>" in drawn
    assert drawn.count('fill="none" stroke') == 1 and "<b>" not in drawn
    assert svg.figure(deployment.figure([], EM, "seconds_per_question")) == ""
