"""Serve MLflow's own page for a workspace on loopback, for as long as this program runs.

The server runs under a small guard process (this file, run as a program). The guard ends the server when its own
standard input closes, so the server never outlives this program.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rallebench.core.errors import BackendError, BadFileError, RalleError
from rallebench.core.files import read_object, write_json
from rallebench.core.hosts import mlflow_options
from rallebench.core.locks import alone, held
from rallebench.tracking.connection import (
    artifact_root,
    find_tracking_uri,
    import_mlflow,
    is_server,
    mlflow_errors,
    open_store,
    sqlite_file,
    without_credentials,
)
from rallebench.tracking.database import prepare
from rallebench.tracking.view import address_of_runs

START_PATIENCE = 90.0
"""Seconds to wait for the server to start. On a loaded machine with two cores it took up to 50."""

_ADDRESS, _LOCK, _LOG = ".mlflow-ui.json", ".mlflow-ui.lock", ".mlflow-ui.log"

_starting = threading.Lock()
_servers: dict[str, UIServer] = {}


class UIServer:
    """MLflow's page: its ``url``, and whether it is ready.

    ``process`` is None if another program serves the page, such as a remote MLflow server or another rallebench on
    the same workspace.
    """

    def __init__(
        self,
        url: str,
        process: subprocess.Popen[bytes] | None = None,
        log: Path | None = None,
        *,
        is_ready: bool = False,
    ) -> None:
        self.url, self.process, self._log, self._is_ready = url, process, log, is_ready
        self._started = time.monotonic()
        self._stopped = False

    def ready(self) -> bool:
        """Return at once whether the page can be opened. Raises BackendError if the server has ended."""
        if self.process is not None and self.process.poll() is not None:
            end = "was stopped" if self._stopped else f"ended: {self._last_error()}"
            raise BackendError(
                f"MLflow's page {end.rstrip('.')}. Start it again, or run 'mlflow server' yourself."
            )
        self._is_ready = self._is_ready or answers(self.url)
        if not self._is_ready and self.seconds_since_start > START_PATIENCE:
            self.stop()
            raise BackendError(
                f"MLflow's page did not start within {START_PATIENCE:.0f} seconds; try again."
            )
        return self._is_ready

    @property
    def seconds_since_start(self) -> float:
        """Return the seconds since the server was started."""
        return time.monotonic() - self._started

    def stop(self) -> None:
        """End the server if this program started it."""
        self._stopped = True
        if self.process is None:
            return
        with contextlib.suppress(OSError):
            if self.process.stdin:
                self.process.stdin.close()
        try:
            self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _last_error(self) -> str:
        """Return the last error in the log, or its last line."""
        text = ""
        with contextlib.suppress(OSError, AttributeError):
            text = self._log.read_text("utf-8", "replace")  # type: ignore[union-attr]
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        errors = [line for line in lines if "rror" in line and "Traceback" not in line]
        return (errors or lines or ["its log is empty"])[-1][:200]


def start_ui(
    workspace: Path, *, tracking_uri: str | None = None, allowed_hosts: Sequence[str] = ()
) -> UIServer:
    """Start MLflow's page for the workspace's runs unless it is running; return without waiting for it.

    If the tracking URI names a server, its page is returned. ``allowed_hosts``: host names accepted in addition to
    loopback; a running page keeps its own list. Raises BackendError if the page cannot be started.
    """
    workspace = Path(workspace).resolve()
    uri = find_tracking_uri(workspace, tracking_uri)
    if is_server(uri):
        return UIServer(without_credentials(uri), is_ready=True)
    with _starting:
        server = _servers.get(uri)
        if server is not None and server.process is not None and server.process.poll() is None:
            return server
        # The guard of a running server holds the lock; the operating system releases it when the guard ends.
        if held(workspace / _LOCK):
            return UIServer(_stored_address(workspace))
        server = _servers[uri] = _start(workspace, uri, allowed_hosts)
        return server


def address_of_all(workspace: Path, tracking_uri: str | None = None) -> str:
    """Return the address on MLflow's page of all our runs, with their metrics as columns."""
    return address_of_runs(open_store(workspace, tracking_uri).experiment_id)


def answers(url: str) -> bool:
    """Return whether an MLflow server responds at ``url`` now."""
    import httpx

    try:
        return httpx.get(f"{url}/health", timeout=0.5, trust_env=False).status_code == 200
    except (httpx.HTTPError, httpx.InvalidURL):
        return False


def _stored_address(workspace: Path) -> str:
    """Return the URL of the workspace's newest server; '' if there was none."""
    try:
        return str(read_object(workspace / _ADDRESS)["url"])
    except (BadFileError, KeyError, TypeError):
        return ""


def _start(workspace: Path, uri: str, allowed_hosts: Sequence[str]) -> UIServer:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    options = ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    options += ["--default-artifact-root", artifact_root(workspace)]
    options += mlflow_options(port, allowed_hosts)
    guard = [sys.executable, "-m", "rallebench.tracking.server", str(workspace / _LOCK)]
    hidden: dict[str, Any] = (
        {"creationflags": 0x08000000} if os.name == "nt" else {"start_new_session": True}
    )
    try:
        workspace.mkdir(parents=True, exist_ok=True)
        with open(workspace / _LOG, "wb") as out:
            process = subprocess.Popen(
                [*guard, sys.executable, "-m", "mlflow", "server", *options],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                env=_environment(uri),
                cwd=workspace,
                **hidden,
            )
    except OSError as error:
        raise BackendError(f"MLflow's page cannot be started: {error.strerror or error}.") from None
    server = UIServer(f"http://127.0.0.1:{port}", process, workspace / _LOG)
    atexit.register(server.stop)
    write_json(workspace / _ADDRESS, {"url": server.url})
    return server


def _environment(uri: str) -> dict[str, str]:
    """Return our environment without MLflow's settings. The URI is passed in it, because command lines are public."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MLFLOW_", "_MLFLOW_"))
    }
    package = str(Path(__file__).resolve().parents[2])
    return {
        **inherited,
        "PYTHONSAFEPATH": "1",  # do not import a mlflow.py from the workspace
        "PYTHONPATH": os.pathsep.join(filter(None, [package, inherited.get("PYTHONPATH", "")])),
        "MLFLOW_BACKEND_STORE_URI": uri,
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }


def guard(lock: str, command: list[str]) -> int:
    """Run ``command`` until it ends or standard input closes, holding ``lock``; return its exit code.

    The tables of the database in ``MLFLOW_BACKEND_STORE_URI`` are created first, because the server would create them
    in place.
    """
    refusal = "another program already shows MLflow's page for this workspace"
    processes: list[subprocess.Popen[bytes]] = []
    starting = threading.Lock()

    def end_with_input() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):  # sys.stdin has a lock that would block the exit
                pass
        with starting:
            if not processes:  # the tables are still being created, in a hidden file
                os._exit(1)
        _end(processes[0])

    try:
        with alone(Path(lock), refusal, patience=5, stays=True):
            threading.Thread(target=end_with_input, daemon=True).start()
            uri = os.environ.get("MLFLOW_BACKEND_STORE_URI", "")
            if database := sqlite_file(uri):
                with mlflow_errors(uri):
                    import_mlflow()
                    prepare(database, artifact_root(database.parent))
            with starting:
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, start_new_session=os.name != "nt"
                )
                processes.append(process)
            code = process.wait()
            _end(process)
            return code
    except RalleError as error:
        print(error)
    return 1


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all its children: SIGTERM first, then SIGKILL."""
    if os.name == "nt":
        subprocess.run(
            ["taskkill", "/F", "/T", "/PID", str(process.pid)], capture_output=True, check=False
        )
        return
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGTERM)
        for _ in range(50 if process.poll() is None else 5):
            time.sleep(0.1)
            os.killpg(process.pid, 0)
        os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(guard(sys.argv[1], sys.argv[2:]))
