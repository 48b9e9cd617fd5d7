"""Connect to the MLflow store, and report MLflow's errors in one sentence.

MLflow retries an unreachable store for minutes, so every store is checked here first. MLflow's global tracking URI is
never set: each client has its own.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from rallebench.core.errors import BackendError, MissingPackageError, RalleError, UsageError
from rallebench.tracking.database import OTHER_VERSION, list_tables, open_database, prepare
from rallebench.tracking.view import show_metrics

log = logging.getLogger(__name__)

EXPERIMENT = "rallebench"
"""The MLflow experiment that contains our runs."""

ANSWER_PATIENCE = 4.0
"""Seconds to wait for a server's response, and again for a response from its store: less than ten together."""

_SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}
"""Defaults that the user's environment may override. MLflow's own retries last over ten minutes.
The timeout is long because a server may upload an artifact of many megabytes to an object store."""

_DATABASE_PORTS = {"postgresql": 5432, "mysql": 3306, "mssql": 1433}

_OTHER_URI = "or choose another tracking URI."
_CAUSES = {
    "database is locked": "{place} is locked by another program; close that program and try again.",
    "readonly database|read-only|permission denied": "{place} cannot be written to; make it "
    f"writable {_OTHER_URI}",
    "unable to open database": "{place} cannot be opened; make its folder writable " + _OTHER_URI,
    "not a database|malformed": "{place} is damaged or no SQLite database; move it away "
    + _OTHER_URI,
    "disk is full|no space left|quota exceeded": "The disk is full or a quota on it is used up, so MLflow could not write to {place}; "
    "free space and try again.",
    "database schema|can't locate revision": OTHER_VERSION,
    "error code 40[13]": "{place} refuses access; set MLFLOW_TRACKING_USERNAME and "
    "MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN.",
}
"""Pattern in an error's text → the sentence shown to the user."""

_connecting = threading.Lock()
_connected: set[str] = set()


def find_tracking_uri(workspace: Path, setting: str | None = None) -> str:
    """Return the setting, or ``MLFLOW_TRACKING_URI``, or ``mlflow.db`` in the workspace."""
    return setting or os.environ.get("MLFLOW_TRACKING_URI", "") or default_uri(workspace)


def default_uri(workspace: Path) -> str:
    """Return ``sqlite:///…/mlflow.db``. Raises UsageError if a URI cannot contain the folder's name."""
    path = (Path(workspace).resolve() / "mlflow.db").as_posix()
    if any(character in path for character in "?#%"):
        raise UsageError(
            f"MLflow cannot keep its database in {Path(workspace).resolve()}: the name holds one "
            "of '?', '#', '%'. Choose another workspace, or give a tracking URI."
        )
    return f"sqlite:///{path}"


def artifact_root(workspace: Path) -> str:
    """Return the ``file:`` URI for artifacts, used if there is no MLflow server to store them."""
    return (Path(workspace).resolve() / "mlartifacts").as_uri()


def without_credentials(uri: str) -> str:
    """Remove the credentials from a URI so that it can be shown and stored.

    >>> without_credentials("postgresql://me:s3cret@db.example/runs?sslpassword=x")
    'postgresql://db.example/runs'
    """
    return re.sub(r"(?<=://)[^/\s]*@", "", uri).split("?")[0]


def is_server(uri: str) -> bool:
    """Return whether the URI names an MLflow server, which then stores the artifacts too."""
    return uri.startswith(("http://", "https://", "databricks"))


def import_mlflow() -> Any:
    """Import ``mlflow``, which takes 3–4 s the first time; so it is never imported at the top of a module."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import mlflow
    except ImportError:
        raise MissingPackageError("mlflow", "(runs are tracked with it)") from None
    # MLflow logs every migration, and tracebacks of errors that we report ourselves.
    warnings.filterwarnings("ignore", module=r"(mlflow|sqlalchemy|alembic)\b")
    logging.getLogger("mlflow").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
    return mlflow


def connect(uri: str) -> Any:
    """Return an ``MlflowClient`` for ``uri``, after creating the tables of a new database. Raises RalleError."""
    with mlflow_errors(uri):
        database = _check_place(uri)
        mlflow = import_mlflow()
        with _connecting:
            if database and uri not in _connected:
                prepare(database, artifact_root(database.parent))
            client = mlflow.MlflowClient(tracking_uri=uri)
            _connected.add(uri)
            return client


@dataclass(frozen=True, slots=True)
class MlflowStore:
    """The store of our runs: the tracking URI, a client for it, and the id of the experiment EXPERIMENT."""

    uri: str
    client: Any
    experiment_id: str


def open_store(workspace: Path, tracking_uri: str | None = None) -> MlflowStore:
    """Open the store, creating our experiment if needed. ``tracking_uri``: see ``find_tracking_uri``. Raises
    RalleError.
    """
    uri = find_tracking_uri(workspace, tracking_uri)
    client = connect(uri)
    with mlflow_errors(uri):
        experiment = client.get_experiment_by_name(EXPERIMENT)
        if experiment is None:
            location = None if is_server(uri) else f"{artifact_root(workspace)}/{EXPERIMENT}"
            try:
                client.create_experiment(EXPERIMENT, artifact_location=location)
            except Exception:  # another process may have created it first
                if client.get_experiment_by_name(EXPERIMENT) is None:
                    raise
            experiment = client.get_experiment_by_name(EXPERIMENT)
        if experiment.lifecycle_stage == "deleted":
            raise BackendError(
                f"The MLflow experiment {EXPERIMENT!r} was deleted; restore it (mlflow experiments "
                f"restore -x {experiment.experiment_id}) or choose another tracking URI."
            )
        show_metrics(client, experiment.experiment_id, experiment.tags)
        return MlflowStore(uri, client, str(experiment.experiment_id))


@contextlib.contextmanager
def mlflow_errors(uri: str) -> Iterator[None]:
    """Convert MLflow's errors in the block into a BackendError of one sentence, without credentials."""
    try:
        yield
    except RalleError:
        raise
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            error.name or "mlflow", f"(the tracking URI {without_credentials(uri)} needs it)"
        ) from error
    except Exception as error:
        if isinstance(error, (TypeError, AttributeError, KeyError)):
            log.exception("logging to MLflow failed", exc_info=error)
        raise BackendError(sentence(error, uri)) from error


def sentence(error: BaseException, uri: str) -> str:
    """Describe the failure at ``uri`` and its remedy in one sentence."""
    place = without_credentials(uri)
    for pattern, text in _CAUSES.items():
        if re.search(pattern, str(error).lower()):
            return text.format(place=place)
    return f"MLflow at {place} failed: {first_line(error, uri)[:300]}"


def first_line(error: BaseException, uri: str) -> str:
    """Return the first line of the error, without the secrets in ``uri``."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = (lines[0] if lines else type(error).__name__).replace(uri, without_credentials(uri))
    login = re.search(r"://[^/\s:]*:([^/\s]*)@", uri)
    for secret in {login[1], unquote(login[1])} if login else ():
        text = text.replace(secret, "***") if len(secret) > 2 else text
    return text


def sqlite_file(uri: str) -> Path | None:
    """Return the file of an SQLite URI; None for other stores, in-memory databases and ``file:`` names."""
    if not uri.startswith("sqlite"):
        return None
    from sqlalchemy import make_url

    name = make_url(uri).database or ":memory:"
    return None if name == ":memory:" or name.startswith("file:") else Path(name)


def _check_place(uri: str) -> Path | None:
    """Check within seconds whether ``uri`` is usable; return the file of an SQLite URI."""
    if uri.startswith(("http://", "https://")):
        _check_server(uri)
    elif database := sqlite_file(uri):
        _check_sqlite(database, uri)
        return database
    elif (scheme := re.split(r"\+|://", uri)[0]) in _DATABASE_PORTS and "://" in uri:
        _check_port(uri, _DATABASE_PORTS[scheme])
    return None


def _check_server(uri: str) -> None:
    import httpx

    place = without_credentials(uri)
    try:
        # A server may be healthy while its database hangs, so the second request reads from its store.
        for path in ("health", "api/2.0/mlflow/experiments/get-by-name?experiment_name=Default"):
            status = httpx.get(f"{uri.rstrip('/')}/{path}", timeout=ANSWER_PATIENCE).status_code
            if status in (502, 503, 504):
                raise BackendError(
                    f"The MLflow server at {place} is not ready (HTTP {status}); try again later."
                )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise BackendError(
            f"No MLflow server answers at {place} ({type(error).__name__}); start it, {_OTHER_URI}"
        ) from None


def _check_port(uri: str, default_port: int) -> None:
    import socket

    from sqlalchemy import make_url

    url = make_url(uri)
    if not url.host:
        return
    try:
        address = (url.host, url.port or default_port)
        socket.create_connection(address, timeout=ANSWER_PATIENCE).close()
    except OSError as error:
        raise BackendError(
            f"No database answers at {without_credentials(uri)} ({error.strerror or error}); "
            f"start it, {_OTHER_URI}"
        ) from None


def _check_sqlite(path: Path, uri: str) -> None:
    """Raise an error unless the file is, or can become, MLflow's database."""
    if uri in _connected and not path.exists():
        raise BackendError(
            f"{path} was removed while it was in use; start the program again to make a new one."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_database(path) as database:
        tables = list_tables(database)
        database.execute("BEGIN IMMEDIATE")
        database.execute("ROLLBACK")
    if tables and not tables & {"experiments", "alembic_version"}:
        raise UsageError(
            f"{path} is a database of another program, not MLflow's; choose another tracking URI."
        )
