"""Where MLflow keeps its records, and how a broken place becomes one sentence.

MLflow itself retries an unreachable place for minutes, so every place is tried here first.
Nothing here sets MLflow's global tracking URI: clients are made for one URI each.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sqlite3
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from rallebench.core.errors import BackendError, MissingPackageError, RalleError, UsageError
from rallebench.tracking import database as databases
from rallebench.tracking.database import from_other_version, prepare

log = logging.getLogger(__name__)

ANSWER_PATIENCE = 4.0
"""Seconds for a server to answer at all, and again to read from its store: together less than ten."""

_SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}
"""Taken unless the user's environment says otherwise; MLflow alone would retry for over ten minutes. An artifact
of many megabytes that the server passes on to an object store takes a while, so the last is not shorter."""

_DATABASES = {"postgresql": 5432, "mysql": 3306, "mssql": 1433}

_opening = threading.Lock()
_opened: set[str] = set()


def tracking_uri_of(workspace: Path, setting: str | None = None) -> str:
    """The tracking URI: the setting, else ``MLFLOW_TRACKING_URI``, else ``mlflow.db`` in the workspace."""
    return setting or os.environ.get("MLFLOW_TRACKING_URI", "") or default_uri(workspace)


def default_uri(workspace: Path) -> str:
    """``sqlite:///…/mlflow.db``. Raises UsageError for a folder name that such an address cannot hold."""
    path = (Path(workspace).resolve() / "mlflow.db").as_posix()
    if any(character in path for character in "?#%"):
        raise UsageError(
            f"MLflow cannot keep its database in {Path(workspace).resolve()}: the name holds one of "
            "'?', '#', '%'. Choose another workspace, or give a tracking URI."
        )
    return f"sqlite:///{path}"


def artifact_root(workspace: Path) -> str:
    """Where artifacts go when no MLflow server keeps them, as a ``file:`` URI."""
    return (Path(workspace).resolve() / "mlartifacts").as_uri()


def without_credentials(uri: str) -> str:
    """A URI that may be shown and stored.

    >>> without_credentials("postgresql://me:s3cret@db.example/runs?sslpassword=x")
    'postgresql://db.example/runs'
    """
    return re.sub(r"(?<=://)[^/\s]*@", "", uri).split("?")[0]


def is_server(uri: str) -> bool:
    """Whether the URI names an MLflow server, which then keeps the artifacts too."""
    return uri.startswith(("http://", "https://", "databricks"))


def import_mlflow() -> Any:
    """The package ``mlflow``: 3–4 s the first time, so never at the top of a module."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import mlflow
    except ImportError:
        raise MissingPackageError("mlflow", "(runs are tracked with it)") from None
    # What is deprecated inside MLflow is no matter of ours. Its loggers tell of every migration, and
    # print tracebacks of errors that we report ourselves.
    warnings.filterwarnings("ignore", module=r"(mlflow|sqlalchemy|alembic)\b")
    logging.getLogger("mlflow").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
    return mlflow


def connect(uri: str) -> Any:
    """An ``MlflowClient`` for ``uri``; makes the tables of a new database. Raises RalleError."""
    with explained(uri):
        database = _check_place(uri)
        mlflow = import_mlflow()
        with _opening:
            if uri in _opened:
                return mlflow.MlflowClient(tracking_uri=uri)
            if database:
                prepare(database, artifact_root(database.parent))
            client = mlflow.MlflowClient(tracking_uri=uri)
            _opened.add(uri)
            return client


def experiment_of(client: Any, name: str, workspace: Path, uri: str) -> str:
    """The id of the experiment ``name``, made if it is new. Raises RalleError."""
    with explained(uri):
        found = client.get_experiment_by_name(name)
        if found is None:
            folder = re.sub(r"[^\w.\-]+", "_", name).strip(".") or "experiment"
            location = None if is_server(uri) else f"{artifact_root(workspace)}/{folder}"
            try:
                return str(client.create_experiment(name, artifact_location=location))
            except Exception:
                found = client.get_experiment_by_name(name)  # another process was faster
                if found is None:
                    raise
        if found.lifecycle_stage == "deleted":
            raise BackendError(
                f"The MLflow experiment {name!r} was deleted; restore it in MLflow "
                f"(mlflow experiments restore -x {found.experiment_id}) or log to another experiment."
            )
        return str(found.experiment_id)


@contextlib.contextmanager
def explained(uri: str) -> Iterator[None]:
    """Turn whatever MLflow raises in the block into a BackendError: one sentence, without credentials."""
    try:
        yield
    except RalleError:
        raise
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            error.name or "mlflow", f"(the tracking URI {without_credentials(uri)} needs it)"
        ) from error
    except Exception as error:
        if type(error).__module__.startswith("rallebench") or isinstance(
            error, (TypeError, AttributeError, KeyError)
        ):
            log.exception("logging to MLflow failed", exc_info=error)
        raise BackendError(sentence(error, uri)) from error


def sentence(error: BaseException, uri: str) -> str:
    """What went wrong at ``uri``, and what to do."""
    where, text = without_credentials(uri), _text(error, uri)
    low = str(error).lower()
    if "database is locked" in low:
        return f"{where} is locked by another program; close that program (or wait for it) and try again."
    if "readonly database" in low or "read-only" in low or "permission denied" in low:
        return f"{where} cannot be written to; make it writable or choose another tracking URI."
    if "unable to open database" in low:
        return f"{where} cannot be opened; make its folder writable or choose another tracking URI."
    if "not a database" in low or "malformed" in low:
        return f"{where} is damaged or no SQLite database; move it away or choose another tracking URI."
    if "disk is full" in low or "no space left" in low:
        return f"The disk is full, so MLflow could not write to {where}; free space and try again."
    if "database schema" in low or "can't locate revision" in low:
        return from_other_version(where)
    if re.search("error code 40[13]", low):
        return (
            f"{where} refuses access; set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, "
            "or MLFLOW_TRACKING_TOKEN."
        )
    return f"MLflow at {where} failed: {text[:300]}"


def _text(error: BaseException, uri: str) -> str:
    """The error's first line, with whatever is secret in ``uri`` hidden."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = (lines[0] if lines else type(error).__name__).replace(uri, without_credentials(uri))
    found = re.search(r"://[^/\s:]*:([^/\s]*)@", uri)
    for secret in {found[1], unquote(found[1])} if found else ():
        text = text.replace(secret, "***") if len(secret) > 2 else text
    return text


def sqlite_file(uri: str) -> Path | None:
    """The file of an SQLite URI; None for another store, for memory, and for SQLite's own ``file:`` form."""
    if not uri.startswith("sqlite"):
        return None
    from sqlalchemy import make_url

    name = make_url(uri).database or ":memory:"
    return None if name == ":memory:" or name.startswith("file:") else Path(name)


def _check_place(uri: str) -> Path | None:
    """Find out within seconds whether ``uri`` can work; returns the file of an SQLite URI."""
    if uri.startswith(("http://", "https://")):
        _check_server(uri)
        return None
    scheme = uri.split("://")[0].split("+")[0]
    if "://" not in uri or scheme not in {"sqlite", *_DATABASES}:
        return None
    if scheme == "sqlite":
        file = sqlite_file(uri)
        if file is not None:
            _check_sqlite(file, uri)
        return file
    from sqlalchemy import make_url

    url = make_url(uri)
    if url.host:
        _check_port(url.host, url.port or _DATABASES[scheme], uri)
    return None


def _check_server(uri: str) -> None:
    import httpx

    where = without_credentials(uri)
    try:
        # A server is healthy while its database hangs; the second request is the cheapest that reads from it.
        for path in ("health", "api/2.0/mlflow/experiments/get-by-name?experiment_name=Default"):
            answer = httpx.get(f"{uri.rstrip('/')}/{path}", timeout=ANSWER_PATIENCE)
            if answer.status_code in (502, 503, 504):
                break
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise BackendError(
            f"No MLflow server answers at {where} ({type(error).__name__}); "
            "start it, or choose another tracking URI."
        ) from None
    if answer.status_code in (502, 503, 504):
        raise BackendError(
            f"The MLflow server at {where} is not ready (HTTP {answer.status_code}); try again later."
        )


def _check_port(host: str, port: int, uri: str) -> None:
    import socket

    try:
        socket.create_connection((host, port), timeout=ANSWER_PATIENCE).close()
    except OSError as error:
        raise BackendError(
            f"No database answers at {without_credentials(uri)} ({error.strerror or error}); "
            "start it, or choose another tracking URI."
        ) from None


def _check_sqlite(path: Path, uri: str) -> None:
    """Raise unless the file is, or can become, MLflow's database."""
    if uri in _opened and not path.exists():
        raise BackendError(
            f"{path} was removed while it was in use; start the program again to make a new one."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(
        sqlite3.connect(path, timeout=databases.LOCK_PATIENCE, isolation_level=None)
    ) as database:
        tables = {
            row[0]
            for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        database.execute("BEGIN IMMEDIATE")
        database.execute("ROLLBACK")
    if tables and not tables & {"experiments", "alembic_version"}:
        raise UsageError(
            f"{path} is a database of another program, not MLflow's; choose another tracking URI."
        )
