"""MLflow's SQLite file: its tables are made, or migrated, beside it and then put in its place as one transaction.

MLflow commits a migration statement by statement. Interrupted in the middle, it leaves a file that neither it nor we can
go on from ("table logged_models already exists"). So all that takes long happens in a hidden file of the same folder,
under the lock of ``hold_setup``; an interrupted set-up leaves nothing but that file, and the next one starts it again.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import warnings
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rallebench.core.errors import BackendError, MissingPackageError

LOCK_PATIENCE = 10.0
"""Seconds to wait for a database that another program is writing to."""

SETUP_PATIENCE = 150.0
"""Seconds to wait while another process makes the tables; the first time takes some ten."""

SET_UP = {"alembic_version", "workspaces", "experiments"}
"""The tables that hold rows in a new database: its revision, the default workspace, the default experiment (id 0)."""

_REVISION = re.compile(r"^(down_)?revision(?:\s*:[^=\n]*)?\s*=\s*(.+)$", re.MULTILINE)


def hold_setup(database: Path) -> contextlib.AbstractContextManager[object]:
    """A held lock for the one process that may make or change tables: two at once would break the database.

    Leaving it as a context lets it go, from whatever thread.
    """
    from filelock import FileLock, Timeout

    try:
        return FileLock(f"{database}.lock", thread_local=False).acquire(timeout=SETUP_PATIENCE)
    except Timeout:
        raise BackendError(
            f"{database} is being set up by another process; wait for it and try again."
        ) from None


def prepare(database: Path, artifacts: str) -> None:
    """Give ``database`` MLflow's tables of this version, with all that it holds; quick and silent where it has them.

    A half-made database without a run, model, prompt or trace is made anew. An older one is copied, the copy migrated,
    and put in its place; until then the old one is as it was. ``artifacts``: where those of the default experiment go.
    Raises BackendError for a database of a newer MLflow, and for one that cannot be migrated; both stay as they are.
    """
    if _is_current(database):
        return
    with hold_setup(database):
        if _is_current(database):  # another process was faster
            return
        beside = database.with_name(f".{database.name}.part")
        try:
            _remove(beside)  # of a process that was killed: ours is the lock now
            if _holds_work(database):
                _migrated_copy(database, beside)
            else:
                _new(beside, artifacts)
            _copy(beside, database)
        finally:
            _remove(beside)


@lru_cache(maxsize=1)
def revisions() -> tuple[frozenset[str], str]:
    """All schema revisions that the installed MLflow knows, and the newest; read from its files, for importing it takes
    seconds."""
    spec = find_spec("mlflow")
    if spec is None or not spec.submodule_search_locations:
        raise MissingPackageError("mlflow", "(runs are tracked with it)")
    folder = (
        Path(next(iter(spec.submodule_search_locations))) / "store" / "db_migrations" / "versions"
    )
    own: set[str] = set()
    before: set[str] = set()
    for file in folder.glob("*.py"):
        for down, value in _REVISION.findall(file.read_text("utf-8")):
            (before if down else own).update(re.findall(r"\w{12,}", value))
    newest = own - before
    if len(newest) != 1:
        raise BackendError(
            "The installed mlflow is damaged; install it again: pip install --force-reinstall mlflow"
        )
    return frozenset(own), newest.pop()


def from_other_version(place: str) -> str:
    """The sentence for a database whose tables this MLflow does not know."""
    return (
        f"{place} was made by another version of MLflow. Back it up and run 'mlflow db upgrade {place}', "
        "or choose another tracking URI."
    )


def _is_current(database: Path) -> bool:
    with _opened(database) as db:
        if "alembic_version" not in _tables(db):
            return False
        found = {str(row[0]) for row in db.execute("SELECT version_num FROM alembic_version")}
    known, newest = revisions()
    if found - known:
        raise BackendError(from_other_version(f"sqlite:///{database}"))
    return newest in found


def _holds_work(database: Path) -> bool:
    """Whether anything was ever logged: a row that no set-up writes."""
    with _opened(database) as db:
        tables = _tables(db)
        own = [name for name in tables if name not in SET_UP]
        if any(db.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone() for name in own):
            return True
        return "experiments" in tables and bool(
            db.execute("SELECT 1 FROM experiments WHERE experiment_id <> 0 LIMIT 1").fetchone()
        )


def _new(beside: Path, artifacts: str) -> None:
    """A new database, with its default experiment."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    with _engine(beside) as (engine, utils):
        utils._initialize_tables(engine)
        SqlAlchemyStore(f"sqlite:///{beside}", artifacts).engine.dispose()


def _migrated_copy(database: Path, beside: Path) -> None:
    with _opened(database) as db:
        db.execute("BEGIN IMMEDIATE")  # what others would write now would be missing in the copy
        _copy(database, beside)
        try:
            with _engine(beside) as (engine, utils):
                utils._upgrade_db(engine)
        except Exception as error:
            reason = " ".join(str(getattr(error, "orig", None) or error).split())[:200]
            raise BackendError(
                f"{database} holds runs and is of an older MLflow, but cannot be migrated ({reason}); it is as it was. "
                "Put a backup of it in its place, or move it away and track the runs anew."
            ) from None


@contextlib.contextmanager
def _engine(database: Path) -> Iterator[tuple[Any, Any]]:
    """An engine for a file that nobody else reads, and MLflow's functions that change tables."""
    from mlflow.store.db import utils
    from sqlalchemy import event

    engine = utils.create_sqlalchemy_engine(f"sqlite:///{database}")
    # Thousands of small commits, each waiting for the disk, are the most of the time; an interrupted file is thrown away.
    event.listen(
        engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous=OFF")
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is deprecated inside MLflow is no matter of ours
            yield engine, utils
    finally:
        engine.dispose()


@contextlib.contextmanager
def _opened(database: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(
        sqlite3.connect(database, timeout=LOCK_PATIENCE, isolation_level=None)
    ) as db:
        yield db


def _tables(db: sqlite3.Connection) -> set[str]:
    found = db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    )
    return {row[0] for row in found}


def _copy(source: Path, target: Path) -> None:
    """All of ``source`` over ``target`` in one transaction: killed in the middle, SQLite brings the old ``target`` back."""
    with _opened(source) as old, _opened(target) as new:
        old.backup(new)


def _remove(database: Path) -> None:
    for ending in ("", "-journal", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            Path(f"{database}{ending}").unlink()
