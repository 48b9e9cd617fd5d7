"""MLflow's page starts on loopback, runs once, and ends with the program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from run_folders import make_run

from rallebench.core.errors import BackendError
from rallebench.core.files import write_text
from rallebench.engine.store import SCORES
from rallebench.tracking import server
from rallebench.tracking.groups import Group, log_group
from rallebench.tracking.links import read_link
from rallebench.tracking.models import log_model
from rallebench.tracking.runs import log_run
from rallebench.tracking.server import UIServer, answers, start_ui

pytestmark = pytest.mark.slow

ROOT = Path(server.__file__).parents[2]


@pytest.fixture(scope="module")
def page(workspace: Path) -> UIServer:
    """One page for the module: it takes some 20 s to start."""
    return start_ui(workspace)


def wait(page: UIServer) -> None:
    """Wait until the page can be opened."""
    while not page.ready():
        time.sleep(0.2)


@pytest.fixture
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


GUARD = (sys.executable, "-m", "rallebench.tracking.server")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def guarded(tmp_path: Path, code: str) -> list[str]:
    """The command of a guard over a child that runs ``code``."""
    return [*GUARD, str(tmp_path / "lock"), sys.executable, "-c", code]


def alive(pid: int) -> bool:
    """Return whether a process is running; a zombie is not."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_the_page_starts_on_loopback_without_a_wait(workspace: Path, page: UIServer) -> None:
    assert page.url.startswith("http://127.0.0.1:")
    assert page.seconds_since_start < 5 or page.ready()
    started = time.monotonic()
    assert start_ui(workspace) is page
    assert time.monotonic() - started < 1


def test_the_page_is_found_by_another_program_there(workspace: Path, page: UIServer) -> None:
    wait(page)
    with urllib.request.urlopen(f"{page.url}/") as answer:
        assert b"<title>MLflow</title>" in answer.read()
    code = (
        "import sys; from rallebench.tracking.server import start_ui; "
        "page = start_ui(sys.argv[1]); print(page.url, page.process, page.ready())"
    )
    other = subprocess.run(
        [sys.executable, "-c", code, str(workspace)],
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT,
    )
    assert other.stdout.split() == [page.url, "None", "True"]


def status(url: str, **headers: str) -> int:
    """The status of a POST that searches experiments."""
    path = f"{url}/api/2.0/mlflow/experiments/search"
    request = urllib.request.Request(
        path, b'{"max_results": 1}', {"Content-Type": "application/json", **headers}
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_the_page_answers_to_its_own_names_and_to_pages_of_its_own_alone(page: UIServer) -> None:
    wait(page)
    port = page.url.rpartition(":")[2]
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", "localhost:9999"):
        assert status(page.url, Host=host) == 200, host
    for host in (
        "evil.example",
        f"10.evil.example:{port}",
        "192.168.evil.example",
        "localhost.evil.example",
        "",
    ):
        assert status(page.url, Host=host) == 403, host
    assert status(page.url, Origin=page.url) == 200
    assert status(page.url, Origin="http://evil.example") == 403


def test_a_run_logged_to_the_running_server_is_in_the_workspace_with_its_traces(
    workspace: Path, page: UIServer, client: Any
) -> None:
    wait(page)
    folder = make_run(workspace / "runs", "over http", 3, (1,))
    run_id = log_run(folder.path, workspace=workspace, tracking_uri=page.url)
    assert log_run(folder.path, workspace=workspace, tracking_uri=page.url) == run_id
    run = client.get_run(run_id)
    assert (run.data.params["chain.1.kind"], run.data.metrics["n_errors"]) == ("retrieve", 1)
    assert "output.jsonl" in {item.path for item in client.list_artifacts(run_id)}
    traces = client.search_traces(locations=[run.info.experiment_id], run_id=run_id)
    kinds = [[span.span_type for span in trace.data.spans] for trace in traces]
    assert sorted(kinds) == [["CHAIN", "RETRIEVER"], *[["CHAIN", "RETRIEVER", "LLM"]] * 2]


def test_a_server_gets_the_gold_and_the_scores_through_mlflows_client(
    workspace: Path, page: UIServer, client: Any
) -> None:
    wait(page)
    folder = make_run(workspace / "runs", "assessed over http", 3, (1,))
    run_id = log_run(folder.path, workspace=workspace, tracking_uri=page.url)
    lines = [{"qid": f"q{i}", "metric": "em", "value": 0.5} for i in (0, 2)]
    write_text(folder.path / SCORES, "".join(json.dumps(line) + "\n" for line in lines))
    log_run(folder.path, workspace=workspace, tracking_uri=page.url)
    experiment = client.get_run(run_id).info.experiment_id
    traces = client.search_traces(locations=[experiment], run_id=run_id)
    read = {trace.info.tags["rallebench.qid"]: trace.info.assessments for trace in traces}
    first = {each.name: each for each in read["q0"]}
    assert set(first) == {"expected_response", "em", "recall@5"}, "once each"
    assert (first["em"].value, first["em"].run_id) == (0.5, run_id)
    failed = {each.name: each for each in read["q1"]}
    assert (failed["em"].value, failed["em"].error.error_code) == (None, "QUESTION_FAILED")


def test_a_remote_server_takes_groups_prompts_and_models_too(
    workspace: Path, page: UIServer, client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    wait(page)
    folder = make_run(workspace / "runs", "remote child", 2, ())
    where = {"workspace": workspace, "tracking_uri": page.url}
    group = Group("remote", "sweep", [folder.path], rows=[{"em": 1.0}])
    parent = log_group(group, lambda path: log_run(path, **where), **where)
    link = read_link(folder.path)
    assert link is not None
    child = link.run_id
    tags = client.get_run(child).data.tags
    assert tags["mlflow.parentRunId"] == parent
    assert json.loads(tags["mlflow.linkedPrompts"])[0]["name"] == "read-two.1"
    assert client.get_run(child).inputs.dataset_inputs[0].dataset.name == "tiny-qa"
    assert [item.path for item in client.list_artifacts(parent)] == ["variants.json"]
    made = log_model(folder.path, child, "rallebench.services.mlflow_model:open_chain", **where)
    assert client.get_logged_model(made).status.value == "READY"
    assert not caplog.records


def test_a_stopped_page_answers_no_more_and_says_so(page: UIServer) -> None:
    wait(page)
    page.stop()
    assert not answers(page.url)
    with pytest.raises(BackendError, match="MLflow's page was stopped"):
        page.ready()


def test_a_server_of_runs_is_itself_the_page(tmp_path: Path, no_environment: None) -> None:
    found = start_ui(tmp_path, tracking_uri="https://me:secret@mlflow.example/base")
    assert (found.url, found.process, found.ready()) == ("https://mlflow.example/base", None, True)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_cannot_start_says_why(tmp_path: Path, no_environment: None) -> None:
    log = tmp_path / "log"
    log.write_text("one\nError: the database is damaged\nSee the logs above.\n")
    command = guarded(tmp_path, "raise SystemExit(3)")
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=ENVIRONMENT) as process:
        assert process.wait(30) == 3
        failed = UIServer("http://127.0.0.1:9", process, log)
        with pytest.raises(
            BackendError, match="MLflow's page ended: Error: the database is damaged"
        ):
            failed.ready()


@pytest.mark.skipif(os.name == "nt", reason="kill -9 is a Unix matter")
def test_the_server_ends_with_the_program_however_that_ends(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "sleep = 'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_DFL); time.sleep(60)'\n"
        "child = subprocess.Popen([sys.executable, '-c', sleep])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent_code = (
        "import subprocess, sys, time\n"
        "process = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", parent_code, *guarded(tmp_path, code)],
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert parent.stdout is not None
    grandchild = int(parent.stdout.readline())
    assert alive(grandchild)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 15
    while alive(grandchild) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive(grandchild)
