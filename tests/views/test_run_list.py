"""The list of runs: read again only where files have changed, filtered and sorted by all columns, with marks."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from run_folders import make_run, mean, report

from rallebench import Workspace
from rallebench.cli.main import main
from rallebench.core.errors import RalleError, UsageError
from rallebench.engine.run_marks import MARKS, RunMarks, write_marks
from rallebench.engine.store import RunFolder
from rallebench.views import run_columns, run_index, run_list
from rallebench.workspace.paths import WorkspaceFolder

STATE = {
    "state": "done",
    "done": 6,
    "total": 6,
    "errors": 0,
    "message": "",
    "updated": 1.0,
    "pid": 1,
}


def add_run(workspace: Path, name: str, em: float, created: str = "2026-11-02T10:00:00") -> Path:
    """A finished run with this EM, whose files are old enough to be trusted."""
    folder = make_run(workspace / "runs", name, failed=(), created=created).path
    content = report(6, 0, em=mean(em, 6), f1=mean(em + 0.1, 6))
    (folder / "report.json").write_text(json.dumps(content))
    (folder / "state.json").write_text(json.dumps(STATE))
    os.utime(folder, (1_700_000_000, 1_700_000_000 + len(name)))
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    add_run(tmp_path, "low", 0.2)
    add_run(tmp_path, "high", 0.7, "2026-10-01T10:00:00")
    return tmp_path


def names(workspace: Path, where: str = "", sort: str = "") -> list[str]:
    return [row.name for row in run_columns.arrange_runs(WorkspaceFolder(workspace), where, sort)]


def test_runs_are_filtered_and_sorted_by_any_column(workspace: Path) -> None:
    assert names(workspace, "em<50") == ["low"]
    assert names(workspace, "f1>75 dataset:tiny") == ["high"]
    assert names(workspace, "created>2026-10-31 model:my-llm k=2") == ["low"]
    assert names(workspace, sort="-em") == ["high", "low"]
    assert names(workspace, sort="created") == ["high", "low"]
    with pytest.raises(UsageError, match="Did you mean em"):
        names(workspace, "emm<50")


def test_the_command_line_and_python_take_the_same_filter(
    workspace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    line = ["list", "runs", "--where", "em<50", "--json", "--workspace", str(workspace)]
    assert main(line) == 0
    assert [row["name"] for row in json.loads(capfd.readouterr().out)["runs"]] == ["low"]
    assert main(["list", "runs", "--where", "em<", "--workspace", str(workspace)]) == 2
    assert "'em<' at character 1 needs a number" in capfd.readouterr().err
    assert main(["list", "metrics", "--where", "name:rouge", "--workspace", str(workspace)]) == 0
    assert "rougel" in capfd.readouterr().out
    with Workspace(workspace, track=False) as ws:
        assert [row.name for row in ws.runs(sort="-em")] == ["high", "low"]
        with pytest.raises(RalleError, match="needs a number"):
            ws.runs("em<")


def test_only_changed_runs_are_read_again(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    read_summary = run_index.read_summary
    monkeypatch.setattr(
        run_index, "read_summary", lambda run: (read.append(run.name), read_summary(run))[1]
    )
    folder = WorkspaceFolder(workspace)
    first = run_list.rows(folder)
    assert sorted(read) == ["high", "low"] and run_list.rows(folder) is first
    assert run_list.rows(WorkspaceFolder(workspace))[0].metrics == first[0].metrics
    assert len(read) == 2, "another program reads the stored summaries"
    write_marks(RunFolder(workspace / "runs" / "low"), RunMarks(("night",)))
    assert {row.name: row.tags for row in run_list.rows(folder)} == {"low": ("night",), "high": ()}
    assert read[2:] == ["low"]
    shutil.rmtree(workspace / "runs" / "high")
    assert [row.name for row in run_list.rows(folder)] == ["low"]
    assert [row.name for row in run_list.rows(WorkspaceFolder(workspace))] == ["low"]


def test_a_file_that_is_changed_in_place_is_noticed(workspace: Path) -> None:
    folder = WorkspaceFolder(workspace)
    run_list.rows(folder)
    (workspace / "runs" / "low" / "report.json").write_text("{")
    low = next(row for row in run_list.rows(folder) if row.name == "low")
    assert "report.json is not valid JSON" in low.problem


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0 cut off"])
def test_a_damaged_file_of_summaries_only_costs_time(workspace: Path, content: bytes) -> None:
    (workspace / "cache").mkdir()
    (workspace / "cache" / run_list.CACHE).write_bytes(content)
    for _ in range(2):
        assert names(workspace, sort="name") == ["high", "low"]


def test_damaged_marks_are_one_sentence(workspace: Path) -> None:
    (workspace / "runs" / "low" / MARKS).write_text('{"tags": 3}')
    row = run_list.run_row(WorkspaceFolder(workspace), "low")
    assert row.tags == () and row.title.endswith(
        "(marks.json was damaged by another program; tag the run again)"
    )
