"""MLflow's SQLite file is whole at every moment: it is made and migrated in a copy, and any interruption is harmless."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from rallebench.core.errors import BackendError
from rallebench.tracking.connection import connect, default_uri, import_mlflow
from rallebench.tracking.database import prepare, revisions
from rallebench.tracking.live import WRITER
from rallebench.tracking.server import start_ui

OLDER = "0584bdc529eb"
"""The revision before the tables of logged models."""

SET_UP = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
from rallebench.tracking.connection import connect
connect(sys.argv[1])
"""


def upgraded(path: Path, revision: str) -> Path:
    """A database with the tables of ``revision``, made by MLflow's own migrations."""
    import_mlflow()
    assert WRITER.flush(30), "Alembic migrates one database at a time in a process"
    from alembic import command
    from mlflow.store.db import utils

    engine = utils.create_sqlalchemy_engine(f"sqlite:///{path}")
    utils.InitialBase.metadata.create_all(engine)
    config = utils._get_alembic_config(f"sqlite:///{path}")
    config.attributes["connection"] = engine
    command.upgrade(config, revision)
    engine.dispose()
    return path


def with_a_run(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "INSERT INTO experiments (experiment_id, name, lifecycle_stage) VALUES (7, 'mine', 'active')"
        )
        db.execute(
            "INSERT INTO runs (run_uuid, name, experiment_id, lifecycle_stage) VALUES ('r1', 'first', 7, 'active')"
        )
    return path


def half_migrated(path: Path) -> Path:
    """The state after a killed process: a table of the next revision exists, the revision does not."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE logged_models (model_id TEXT)")
    return path


def revision_of(path: Path) -> str:
    with closing(sqlite3.connect(path)) as db:
        return str(db.execute("SELECT version_num FROM alembic_version").fetchone()[0])


def beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


def test_the_newest_revision_is_the_one_that_mlflow_itself_finds() -> None:
    import_mlflow()
    from mlflow.store.db.utils import _get_latest_schema_revision

    assert revisions()[1] == _get_latest_schema_revision()
    assert {OLDER, revisions()[1]} <= revisions()[0]


def test_a_new_database_appears_whole_and_alone(tmp_path: Path) -> None:
    client = connect(default_uri(tmp_path))
    assert [one.name for one in client.search_experiments()] == ["Default"]
    assert revision_of(tmp_path / "mlflow.db") == revisions()[1]
    assert {p.name for p in tmp_path.iterdir()} == {"mlflow.db", "mlflow.db.lock"}


@pytest.mark.slow
def test_a_half_made_database_without_a_run_is_made_anew(tmp_path: Path) -> None:
    half_migrated(upgraded(tmp_path / "mlflow.db", OLDER))
    beside(tmp_path / "mlflow.db").write_bytes(b"half")
    client = connect(default_uri(tmp_path))
    assert client.create_experiment("mine")
    assert not beside(tmp_path / "mlflow.db").exists()


@pytest.mark.slow
def test_an_older_database_is_migrated_with_its_runs(tmp_path: Path) -> None:
    with_a_run(upgraded(tmp_path / "mlflow.db", OLDER))
    client = connect(default_uri(tmp_path))
    assert client.get_experiment("7").name == "mine"
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as db:
        assert db.execute("SELECT name FROM runs").fetchall() == [("first",)]
    assert revision_of(tmp_path / "mlflow.db") == revisions()[1]


def test_a_half_migrated_database_with_a_run_stays_as_it_was(tmp_path: Path) -> None:
    path = half_migrated(with_a_run(upgraded(tmp_path / "mlflow.db", OLDER)))
    before = path.read_bytes()
    with pytest.raises(
        BackendError,
        match=r"mlflow\.db holds runs .*already exists.*Put a backup of it in its place",
    ):
        connect(default_uri(tmp_path))
    assert path.read_bytes() == before
    assert not beside(path).exists()


def test_a_whole_database_is_not_written_to(workspace: Path, tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    path.write_bytes((workspace / "mlflow.db").read_bytes())
    before = path.read_bytes(), path.stat().st_mtime_ns
    prepare(path, "file:///nowhere")
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert list(tmp_path.iterdir()) == [path]


def interrupted(folder: Path, number: int, size: int) -> bool:
    """A set-up in another process, which gets signal ``number`` once its file has ``size`` bytes. True if the signal ended
    it."""
    command = [sys.executable, "-c", SET_UP, default_uri(folder)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        part = beside(folder / "mlflow.db")
        while process.poll() is None and not (part.exists() and part.stat().st_size >= size):
            time.sleep(0.002)
        while process.poll() is None:  # Python drops an interrupt that falls into a destructor
            process.send_signal(number)
            time.sleep(0.05)
    return process.returncode != 0


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupted_set_up_is_made_good_by_the_next(tmp_path: Path) -> None:
    for number, size in (
        (signal.SIGTERM, 1),
        (signal.SIGINT, 100_000),
        (signal.SIGKILL, 200_000),
        (signal.SIGKILL, 400_000),
    ):
        for _ in range(10):
            if interrupted(tmp_path, number, size):
                break
            (tmp_path / "mlflow.db").unlink()  # the process ended before the signal
        else:
            pytest.fail(f"signal {number} never came in time")
    assert connect(default_uri(tmp_path)).create_experiment("mine")
    assert not beside(tmp_path / "mlflow.db").exists()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_killed_migration_leaves_the_older_database_as_it_was(tmp_path: Path) -> None:
    path = with_a_run(upgraded(tmp_path / "mlflow.db", OLDER))
    before = path.read_bytes()
    assert interrupted(tmp_path, signal.SIGKILL, len(before) + 20_000)
    assert path.read_bytes() == before
    assert connect(default_uri(tmp_path)).get_experiment("7").name == "mine"


@pytest.mark.slow
def test_two_set_ups_at_once_both_succeed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SET_UP, default_uri(tmp_path)]
    processes = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    assert connect(default_uri(tmp_path)).create_experiment("mine")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_page_that_is_stopped_while_making_tables_can_be_started_again(tmp_path: Path) -> None:
    server = start_ui(tmp_path)
    while not beside(tmp_path / "mlflow.db").exists():
        assert not server.ready()
        time.sleep(0.002)
    server.stop()
    server = start_ui(tmp_path)
    try:
        while not server.ready():
            time.sleep(0.2)
        assert revision_of(tmp_path / "mlflow.db") == revisions()[1]
    finally:
        server.stop()
