"""A read-only workspace, and the remains of killed processes in a workspace."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from performing import prepared
from small_workspace import CommandLine, in_a_process, make_workspace

from rallebench.core.files import writing
from rallebench.core.parts import remove_all_abandoned
from rallebench.services.workbench import Workbench

ASK = ("ask", "--chain", "read", "--question", "Which moon of Saturn has a thick atmosphere?")
RUN = "run --chain read --dataset tiny-qa --no-mlflow --name"
NOBODY = 65534


@pytest.fixture
def workspace() -> Iterator[Path]:
    """A workspace that every user can reach, unlike the folders of pytest."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield make_workspace(folder / "workspace")
    shutil.rmtree(folder)


@pytest.fixture
def ordinary_user(workspace: Path) -> Iterator[None]:
    """Root may write everything, so root becomes an ordinary user during a test."""
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
    """``folders`` with all contents; the user of ``ordinary_user`` is not the owner, or has no right to write."""
    for folder in folders:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o555)


@pytest.mark.parametrize("cached", [False, True])
def test_ask_works_on_a_read_only_workspace_without_the_reply_cache_and_says_so(
    cached: bool, workspace: Path, cli: CommandLine, request: pytest.FixtureRequest
) -> None:
    if cached:
        assert cli(*ASK).code == 0
    read_only(workspace)
    request.getfixturevalue("ordinary_user")
    ran = cli(*ASK)
    assert ran.code == 0, ran.err
    assert "Titan" in ran.out
    (warning,) = [line for line in ran.err.splitlines() if "memo.sqlite cannot be written" in line]
    assert warning.startswith("Warning: ") and "use another workspace" in warning
    assert "Traceback" not in ran.err


def without_cache(workspace: Path) -> None:
    """Only runs are writable."""
    for name in ("cache", "runs"):
        (workspace / name).mkdir()
    read_only(workspace)
    (workspace / "runs").chmod(0o777)


def test_a_run_needs_no_reply_cache_and_says_so_on_standard_error_and_in_its_state(
    workspace: Path, cli: CommandLine, request: pytest.FixtureRequest
) -> None:
    without_cache(workspace)
    request.getfixturevalue("ordinary_user")
    ran = cli(f"{RUN} mine")
    assert ran.code == 0, ran.err
    (warning,) = [line for line in ran.err.splitlines() if "memo.sqlite cannot be written" in line]
    assert warning.startswith("Warning: ")
    assert (workspace / "runs" / "mine" / "report.json").exists()
    assert "memo.sqlite cannot be written" in (workspace / "runs/mine/state.json").read_text()


def test_the_page_shows_the_warning_beside_a_run_and_after_an_executed_chain(
    workspace: Path, request: pytest.FixtureRequest
) -> None:
    from rallebench.gui.frame import PLACES, Page

    assert PLACES.names(), "imported while the standard library can be read"
    without_cache(workspace)
    request.getfixturevalue("ordinary_user")
    bench = Workbench(workspace)
    try:
        chain = bench.workspace.chain("read")
        run = prepared(bench.workspace, chain, "tiny-qa", name="mine", track=False)
        job = bench.runs.start(run)
        assert job.wait(60)
        assert job.done and "memo.sqlite cannot be written" in job.warning
        page = Page(bench)
        page.open("build/one?set=tiny-qa&chain=read")
        assert "memo.sqlite cannot be written" in page.open("build/one").html["v-build-one"]
    finally:
        bench.close()


def test_a_run_where_runs_cannot_be_written_is_one_sentence(
    workspace: Path, cli: CommandLine, request: pytest.FixtureRequest
) -> None:
    read_only(workspace)
    request.getfixturevalue("ordinary_user")
    ran = cli(f"{RUN} mine")
    assert ran.code in (1, 2)
    assert "Traceback" not in ran.err
    assert "runs" in ran.last and "choose another" in ran.last


@pytest.mark.slow
def test_a_file_in_place_of_the_cache_folder_is_said_and_no_obstacle(workspace: Path) -> None:
    (workspace / "cache").write_text("no folder")
    ran = in_a_process(f"{RUN} mine --workspace", workspace)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("memo.sqlite cannot be written") == 1
    assert "Traceback" not in ran.stderr


# ── remains of killed processes ──────────────────────────────────────────────


IN_THE_MIDDLE = """
import contextlib, sys, time
from pathlib import Path
from rallebench.core.files import writing
from rallebench.core.parts import beside
with contextlib.ExitStack() as stack:
    for path in sys.argv[1:]:
        handle = stack.enter_context(writing(Path(path)))
        handle.write(b"half")
        folder = stack.enter_context(beside(Path(path).parent, "other"))
        (folder / "questions.jsonl").write_text("{}")
    print("writing", flush=True)
    time.sleep(60)
"""
"""A process in the middle of writing a file and a folder beside it."""


@contextlib.contextmanager
def a_process_writing(*paths: Path) -> Iterator[subprocess.Popen[str]]:
    code = [sys.executable, "-c", IN_THE_MIDDLE, *map(str, paths)]
    with subprocess.Popen(code, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "writing\n"
            yield process
        finally:
            process.kill()


def unfinished_files(folder: Path) -> list[str]:
    return sorted(path.name for kind in ("part", "lock") for path in folder.rglob(f".*.*.{kind}"))


def test_what_a_killed_process_left_half_written_goes_at_the_next_opening(workspace: Path) -> None:
    """A killed suite or builder leaves files as deep as a run's."""
    with a_process_writing(
        workspace / "runs" / "mine" / "state.json",
        workspace / "experiments" / "mine" / "asked.jsonl",
    ):
        assert len(unfinished_files(workspace)) == 8
    assert len(unfinished_files(workspace)) == 8, "a killed process cannot clean up"
    Workbench(workspace).close()
    assert unfinished_files(workspace) == []


def test_what_a_living_process_is_writing_stays_however_long_it_takes(workspace: Path) -> None:
    with a_process_writing(workspace / "runs" / "mine" / "state.json"):
        (workspace / "runs" / ".left.0f4b66d01c2e.part").mkdir()
        for path in workspace.rglob(".*.part"):
            os.utime(path, (1_000_000_000, 1_000_000_000))
        Workbench(workspace).close()
        assert len(unfinished_files(workspace)) == 4 and not list(workspace.rglob(".left.*"))


def test_a_part_of_our_own_process_is_abandoned_unless_its_lock_is_held(workspace: Path) -> None:
    """In a container the program has the same process id at every start."""
    with writing(workspace / "llms.json") as handle:
        handle.write(b"{}")
        (workspace / ".retrievers.json.0f4b66d01c2e.part").write_text("half")
        Workbench(workspace).close()
        assert [name.split(".")[1] for name in unfinished_files(workspace)] == ["llms", "llms"]
    assert unfinished_files(workspace) == []
    assert (workspace / "llms.json").read_text() == "{}"


def test_a_lock_that_outlived_its_part_is_gone_at_the_next_opening(workspace: Path) -> None:
    (workspace / ".llms.json.0f4b66d01c2e.lock").write_text("")
    Workbench(workspace).close()
    assert unfinished_files(workspace) == []


def test_hidden_files_of_other_programs_stay(workspace: Path) -> None:
    (workspace / ".mlflow.db.part").write_text("another program's own lock says who writes it")
    (workspace / ".film.mkv.part").write_text("a download")
    Workbench(workspace).close()
    assert sorted(path.name for path in workspace.glob(".*.part")) == [
        ".film.mkv.part",
        ".mlflow.db.part",
    ]


def test_a_file_system_without_locks_takes_files_and_loses_none(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")

    def refuse_lock(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse_lock)
    with writing(workspace / "llms.json") as handle:
        handle.write(b"{}")
        remove_all_abandoned(workspace)
        assert len(list(workspace.glob(".llms.json.*.part"))) == 1
    assert (workspace / "llms.json").read_text() == "{}" and unfinished_files(workspace) == []
