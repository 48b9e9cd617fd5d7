"""MLflow's SQLite file. Tables are created or migrated in a hidden file, which is then copied in one transaction.

MLflow commits a migration statement by statement. An interrupted migration leaves a file that MLflow cannot migrate
again ("table logged_models already exists"). So the slow work is done in a hidden file in the same folder, under a
lock. An interruption leaves only that file, and the next attempt replaces it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from rallebench.core.errors import BackendError
from rallebench.core.locks import alone

LOCK_PATIENCE = 10.0
"""Seconds to wait while another program writes to the database."""

SETUP_PATIENCE = 150.0
"""Seconds to wait while another process creates the tables; this takes about ten the first time."""

OTHER_VERSION = (
    "{place} was made by another version of MLflow. Back it up and run 'mlflow db upgrade {place}', "
    "or choose another tracking URI."
)

INITIAL_TABLES = {"alembic_version", "workspaces", "experiments"}
"""Tables that have rows in a new database: revision, default workspace, default experiment (id 0)."""


def prepare(database: Path, artifacts: str) -> None:
    """Give ``database`` the tables of the installed MLflow; quick and silent if they are up to date.

    A half-created database without a run, model, prompt or trace is created again. An older one is copied, the copy
    is migrated, and the result is copied back; the original stays unchanged until then. ``artifacts``: the artifact
    folder of the default experiment. Raises BackendError if the database belongs to a newer MLflow or the migration
    fails; the database is then unchanged. Raises UsageError if another process is setting it up.
    """
    if _is_current(database):
        return
    part = database.with_name(f".{database.name}.part")
    refusal = f"{database} is being set up by another process; wait for it and try again."
    # Two simultaneous migrations would break the database.
    with alone(Path(f"{database}.lock"), refusal, patience=SETUP_PATIENCE, stays=True):
        if _is_current(database):  # another process was faster
            return
        try:
            _remove(part)  # a killed process left it, because we hold the lock now
            if _holds_work(database):
                _migrated_copy(database, part)
            else:
                _create(part, artifacts)
            _copy(part, database)
        finally:
            _remove(part)


@lru_cache(maxsize=1)
def revisions() -> tuple[frozenset[str], str]:
    """Return all schema revisions of the installed MLflow, and the newest."""
    from alembic.script import ScriptDirectory
    from mlflow.store.db.utils import _get_alembic_config

    scripts = ScriptDirectory.from_config(_get_alembic_config("sqlite://"))
    known = frozenset(script.revision for script in scripts.walk_revisions())
    return known, str(scripts.get_current_head())


@contextlib.contextmanager
def open_database(database: Path) -> Iterator[sqlite3.Connection]:
    """Open a connection that commits each statement and waits LOCK_PATIENCE for locks."""
    with contextlib.closing(
        sqlite3.connect(database, timeout=LOCK_PATIENCE, isolation_level=None)
    ) as db:
        yield db


def list_tables(db: sqlite3.Connection) -> set[str]:
    """Return the names of a database's own tables."""
    rows = db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    )
    return {row[0] for row in rows}


def _is_current(database: Path) -> bool:
    with open_database(database) as db:
        if "alembic_version" not in list_tables(db):
            return False
        versions = {str(row[0]) for row in db.execute("SELECT version_num FROM alembic_version")}
    revision_ids, newest = revisions()
    if versions - revision_ids:
        raise BackendError(OTHER_VERSION.format(place=f"sqlite:///{database}"))
    return newest in versions


def _holds_work(database: Path) -> bool:
    """Return whether anything was logged, that is, whether there are rows that no setup writes."""
    with open_database(database) as db:
        tables = list_tables(db)
        queries = [f'SELECT 1 FROM "{name}" LIMIT 1' for name in tables - INITIAL_TABLES]
        if "experiments" in tables:
            queries.append("SELECT 1 FROM experiments WHERE experiment_id <> 0 LIMIT 1")
        return any(db.execute(query).fetchone() for query in queries)


def _create(part: Path, artifacts: str) -> None:
    """Create a new database with its default experiment."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    with _engine(part) as (engine, utils):
        utils._initialize_tables(engine)
        SqlAlchemyStore(f"sqlite:///{part}", artifacts).engine.dispose()


def _migrated_copy(database: Path, part: Path) -> None:
    with open_database(database) as db:
        db.execute("BEGIN IMMEDIATE")  # later writes would be missing from the copy
        _copy(database, part)
        try:
            with _engine(part) as (engine, utils):
                utils._upgrade_db(engine)
        except Exception as error:
            reason = " ".join(str(getattr(error, "orig", None) or error).split())[:200]
            raise BackendError(
                f"{database} holds runs and comes from an older MLflow, but cannot be migrated ({reason}); it is "
                "unchanged. Put a backup of it in its place, or move it away and track the runs again."
            ) from None


@contextlib.contextmanager
def _engine(database: Path) -> Iterator[tuple[Any, Any]]:
    """Return an engine for a file used only by this process, and MLflow's module for migrations."""
    from mlflow.store.db import utils
    from sqlalchemy import event

    engine = utils.create_sqlalchemy_engine(f"sqlite:///{database}")
    # Most of the time is spent waiting for the disk at thousands of small commits. An interrupted file
    # is discarded, so it need not be durable.
    event.listen(
        engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous=OFF")
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # MLflow itself uses deprecated functions
            yield engine, utils
    finally:
        engine.dispose()


def _copy(source: Path, target: Path) -> None:
    """Copy ``source`` over ``target`` in one transaction; after a kill, SQLite restores ``target``."""
    with open_database(source) as old, open_database(target) as new:
        old.backup(new)


def _remove(database: Path) -> None:
    for ending in ("", "-journal", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            Path(f"{database}{ending}").unlink()
