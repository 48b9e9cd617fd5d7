"""A workspace where nothing may be written, and what killed processes left in one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_workspace import CommandLine, in_a_process, make_workspace

from rallebench.core.files import write_text
from rallebench.services.workbench import Workbench

ASK = ("ask", "--chain", "read", "--question", "Which moon of Saturn has a thick atmosphere?")
RUN = ("run", "--chain", "read", "--dataset", "tiny-qa", "--no-mlflow", "--name")
NOBODY = 65534


@pytest.fixture
def workspace() -> Iterator[Path]:
    """A workspace that every user can reach, which the folders of pytest are not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield make_workspace(folder / "workspace")
    shutil.rmtree(folder)


@pytest.fixture
def rallebench(capfd: pytest.CaptureFixture[str], workspace: Path) -> CommandLine:
    return CommandLine(capfd, workspace)


@pytest.fixture
def ordinary_user(workspace: Path) -> Iterator[None]:
    """What the owner may not write, root still may: so root becomes an ordinary user for a test."""
    if os.name != "posix":
        pytest.skip("permissions of POSIX")
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    yield
    if root:
        os.seteuid(0)
    for path in [workspace, *workspace.rglob("*")]:
        path.chmod(0o755)


def read_only(*folders: Path) -> None:
    """``folders`` with all that is in them; the user of ``ordinary_user`` is not their owner, or has no right."""
    for folder in folders:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o555)


@pytest.mark.parametrize("cached", [False, True])
def test_ask_works_on_a_read_only_workspace_without_the_reply_cache_and_says_so(
    cached: bool,
    workspace: Path,
    rallebench: CommandLine,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if cached:
        assert rallebench(*ASK).code == 0
    read_only(workspace)
    request.getfixturevalue("ordinary_user")
    ran = rallebench(*ASK)
    assert ran.code == 0, ran.err
    assert "Titan" in ran.out
    assert (
        "memo.sqlite cannot be written" in caplog.text
        and "choose another --workspace" in caplog.text
    )
    assert "Traceback" not in ran.err


def test_a_run_needs_no_reply_cache_and_says_so(
    workspace: Path,
    rallebench: CommandLine,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name in ("cache", "runs"):
        (workspace / name).mkdir()
    read_only(workspace)
    (workspace / "runs").chmod(0o777)
    request.getfixturevalue("ordinary_user")
    ran = rallebench(*RUN, "mine")
    assert ran.code == 0, ran.err
    assert "memo.sqlite cannot be written" in caplog.text
    assert (workspace / "runs" / "mine" / "report.json").exists()


def test_a_run_where_runs_cannot_be_written_is_one_sentence(
    workspace: Path, rallebench: CommandLine, request: pytest.FixtureRequest
) -> None:
    read_only(workspace)
    request.getfixturevalue("ordinary_user")
    ran = rallebench(*RUN, "mine")
    assert ran.code in (1, 2)
    assert "Traceback" not in ran.err
    assert "runs" in ran.last and "choose another" in ran.last


def test_a_file_in_place_of_the_cache_folder_is_said_on_standard_error_and_no_obstacle(
    workspace: Path,
) -> None:
    (workspace / "cache").write_text("no folder")
    ran = in_a_process(*RUN, "mine", "--workspace", workspace)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("memo.sqlite cannot be written") == 1
    assert "Traceback" not in ran.stderr


# ── what killed processes left ───────────────────────────────────────────────


def killed_while_writing(path: Path) -> int:
    """A process that is killed in the middle of ``files.writing``; its id."""
    code = (
        "import os, signal, sys; from pathlib import Path; from rallebench.core.files import writing\n"
        "with writing(Path(sys.argv[1])) as handle: handle.write(b'half'); handle.flush(); os.kill(os.getpid(), 9)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)]) as process:
        assert process.wait(30) != 0
    return process.pid


def parts(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.part"))


def test_what_a_killed_process_left_half_written_is_gone_at_the_next_opening(
    workspace: Path,
) -> None:
    (workspace / "runs" / "mine").mkdir(parents=True)
    pid = killed_while_writing(workspace / "runs" / "mine" / "state.json")
    half = workspace / "runs" / f".other.{pid}.77.part"
    half.mkdir()
    (half / "questions.jsonl").write_text("{}")
    assert len(parts(workspace)) == 2
    Workbench(workspace).close()
    assert parts(workspace) == []


def test_what_a_living_process_is_writing_stays(workspace: Path) -> None:
    pid = os.getppid()
    (workspace / "runs" / f".other.{pid}.77.part").mkdir(parents=True)
    (workspace / f".llms.json.{pid}.x1.part").write_text("half")
    Workbench(workspace).close()
    assert len(parts(workspace)) == 2


def test_a_half_written_file_of_an_earlier_process_with_the_same_number_is_gone(
    workspace: Path,
) -> None:
    """In a container the program has the same process id at every start."""
    old = workspace / f".llms.json.{os.getpid()}.x1.part"
    old.write_text("half")
    os.utime(old, (1_000_000_000, 1_000_000_000))
    Workbench(workspace).close()
    assert parts(workspace) == []
    write_text(workspace / "llms.json", "{}")
    assert parts(workspace) == []
