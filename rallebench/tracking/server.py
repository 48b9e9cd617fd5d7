"""MLflow's own page over a workspace: started on loopback when asked for, ended with the program.

The server is a child of a small guard process (this file, run as a program) that ends it as soon
as its own standard input closes. So it never outlives us, however we end.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rallebench.core.errors import BackendError, BadFileError, RalleError, UsageError
from rallebench.core.files import read_json, write_json
from rallebench.core.hosts import mlflow_options
from rallebench.tracking.connection import (
    artifact_root,
    explained,
    import_mlflow,
    is_server,
    sqlite_file,
    tracking_uri_of,
    without_credentials,
)
from rallebench.tracking.database import prepare

START_PATIENCE = 90.0
"""Seconds for the server to answer; it took up to 50 on a loaded machine with two cores."""

MLFLOW_PORT = 5000
"""Where ``mlflow server`` listens unless it is told."""

_NOTE, _LOCK, _LOG = ".mlflow-ui.json", ".mlflow-ui.lock", ".mlflow-ui.log"

_lock = threading.Lock()
_servers: dict[str, UIServer] = {}


class UIServer:
    """MLflow's page: ``url`` to link to, and how far it is.

    ``process`` is None where the page is served by somebody else: a remote MLflow server, or
    another program over the same workspace.
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
        """Whether the page can be opened; returns at once. Raises BackendError if it never will."""
        if self.process is not None and self.process.poll() is not None:
            end = "was stopped" if self._stopped else f"ended: {self._last_words()}"
            raise BackendError(
                f"MLflow's page {end.rstrip('.')}. Start it again, or run 'mlflow server' yourself."
            )
        self._is_ready = self._is_ready or answers(self.url)
        if not self._is_ready and self.waited > START_PATIENCE:
            self.stop()
            raise BackendError(
                f"MLflow's page did not start within {START_PATIENCE:.0f} seconds; try again."
            )
        return self._is_ready

    def wait(self, seconds: float = START_PATIENCE) -> UIServer:
        """Wait until the page can be opened. Raises BackendError if that takes too long."""
        deadline = time.monotonic() + seconds
        while not self.ready():
            if time.monotonic() > deadline:
                raise BackendError(
                    f"MLflow's page is not ready after {seconds:.0f} seconds; it may still come."
                )
            time.sleep(0.2)
        return self

    @property
    def waited(self) -> float:
        """Seconds since it was started."""
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

    def _last_words(self) -> str:
        try:
            text = self._log.read_text("utf-8", "replace") if self._log else ""
        except OSError:
            text = ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        telling = [line for line in lines if "rror" in line and "Traceback" not in line] or lines
        return telling[-1][:200] if telling else "it said nothing"


def start_ui(
    workspace: Path,
    port: int = 0,
    *,
    tracking_uri: str | None = None,
    allowed_hosts: Sequence[str] = (),
) -> UIServer:
    """MLflow's page over the workspace's runs, starting now if it does not run yet; does not wait for it.

    ``port`` 0 takes a free one. Where the tracking URI names a server, that server's page is the
    page. ``allowed_hosts``: host names that it answers to beside those of loopback; a page that
    runs already keeps its own. Raises BackendError if it cannot be started.
    """
    workspace = Path(workspace).resolve()
    uri = tracking_uri_of(workspace, tracking_uri)
    if is_server(uri):
        return UIServer(without_credentials(uri), is_ready=True)
    with _lock:
        own = _servers.get(uri)
        if own is not None and own.process is not None and own.process.poll() is None:
            return own
        server = _other(workspace) or _start(workspace, port, uri, allowed_hosts)
        if server.process is not None:
            _servers[uri] = server
        return server


def open_command(workspace: Path, tracking_uri: str | None = None) -> str:
    """What to type in a terminal for the same page."""
    uri = without_credentials(tracking_uri_of(workspace, tracking_uri))
    if is_server(uri):
        return f"open {uri} in a browser"
    words = ["mlflow", "server", "--host", "127.0.0.1", "--backend-store-uri", uri]
    words += ["--default-artifact-root", artifact_root(workspace), "--workers", "1"]
    words += mlflow_options(MLFLOW_PORT)
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def page_address(workspace: Path, *, tracking_uri: str | None = None) -> str:
    """Where MLflow's page over the workspace can be opened now, '' where nobody shows it."""
    uri = tracking_uri_of(workspace, tracking_uri)
    if is_server(uri):
        return without_credentials(uri)
    url = _noted(workspace)
    return url if url and answers(url) else ""


def answers(url: str) -> bool:
    """Whether an MLflow server answers at ``url`` now."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"{url}/health", timeout=0.5) as answer:
            return bool(answer.status == 200)
    except (OSError, ValueError):
        return False


def _other(workspace: Path) -> UIServer | None:
    """The page that another program serves over this workspace, if there is one.

    The guard of a running server holds a lock, which the operating system frees with it.
    """
    from filelock import FileLock, Timeout

    try:
        workspace.mkdir(parents=True, exist_ok=True)
        with FileLock(workspace / _LOCK, timeout=0):
            return None
    except Timeout:
        pass
    except OSError as error:
        raise BackendError(
            f"{workspace} cannot be written to ({error.strerror or error})."
        ) from None
    url = _noted(workspace)
    return UIServer(url) if url else None


def _noted(workspace: Path) -> str:
    """The address that the newest server over the workspace has left there, '' if none has."""
    try:
        return str(read_json(workspace / _NOTE)["url"])
    except (BadFileError, KeyError, TypeError):
        return ""


def _start(workspace: Path, port: int, uri: str, allowed_hosts: Sequence[str]) -> UIServer:
    port = _free_port(port)
    options = ["server", "--host", "127.0.0.1", "--workers", "1", "--port"]
    command = [sys.executable, "-m", "mlflow", *options, str(port)]
    command += [
        "--default-artifact-root",
        artifact_root(workspace),
        *mlflow_options(port, allowed_hosts),
    ]
    process = _spawn_guard(workspace, command, uri)
    server = UIServer(f"http://127.0.0.1:{port}", process, workspace / _LOG)
    atexit.register(server.stop)
    write_json(workspace / _NOTE, {"url": server.url})
    return server


def _spawn_guard(workspace: Path, command: list[str], uri: str) -> subprocess.Popen[bytes]:
    guard = [sys.executable, "-m", "rallebench.tracking.server", str(workspace / _LOCK), *command]
    hidden: dict[str, Any] = (
        {"creationflags": 0x08000000} if os.name == "nt" else {"start_new_session": True}
    )
    try:
        with open(workspace / _LOG, "wb") as out:
            return subprocess.Popen(
                guard,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                env=_environment(uri),
                cwd=workspace,
                **hidden,
            )
    except OSError as error:
        raise BackendError(f"MLflow's page cannot be started: {error.strerror or error}.") from None


def _free_port(port: int) -> int:
    """``port`` if it is free, any free one for 0. Raises UsageError."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            raise UsageError(
                f"Port {port} cannot be used for MLflow's page; choose another, or 0 for any."
            ) from None
        return int(probe.getsockname()[1])


def _environment(uri: str) -> dict[str, str]:
    """Ours without MLflow's settings. The URI goes here, because anybody can read a command line."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MLFLOW_", "_MLFLOW_"))
    }
    package = str(Path(__file__).resolve().parents[2])
    return {
        **kept,
        "PYTHONSAFEPATH": "1",  # a mlflow.py in the workspace must not be imported
        "PYTHONPATH": os.pathsep.join(filter(None, [package, kept.get("PYTHONPATH", "")])),
        "MLFLOW_BACKEND_STORE_URI": uri,
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }


def guard(lock: str, command: list[str]) -> int:
    """Run ``command`` until it ends or standard input closes; hold ``lock`` meanwhile. Its exit code.

    The database of ``MLFLOW_BACKEND_STORE_URI`` has its tables before that: the server would make them in place.
    """
    from filelock import FileLock, Timeout

    processes: list[subprocess.Popen[bytes]] = []
    starting = threading.Lock()
    try:
        with FileLock(lock, timeout=5):
            threading.Thread(
                target=_end_with_input, args=(processes, starting), daemon=True
            ).start()
            uri = os.environ.get("MLFLOW_BACKEND_STORE_URI", "")
            if database := sqlite_file(uri):
                with explained(uri):
                    import_mlflow()
                    prepare(database, artifact_root(database.parent))
            options: dict[str, Any] = {} if os.name == "nt" else {"start_new_session": True}
            with starting:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)
                processes.append(process)
            code = process.wait()
            _end(process)
            return code
    except Timeout:
        print("another program already shows MLflow's page for this workspace")
    except RalleError as error:
        print(error)
    return 1


def _end_with_input(processes: list[subprocess.Popen[bytes]], starting: threading.Lock) -> None:
    with contextlib.suppress(OSError):
        while os.read(
            0, 4096
        ):  # not sys.stdin: its lock would break an end that comes from the other side
            pass
    with starting:
        if not processes:  # the tables are still being made, beside the database
            os._exit(1)
    _end(processes[0])


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process with all its children: politely, then not."""
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
