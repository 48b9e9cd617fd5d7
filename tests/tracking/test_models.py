"""A tuned chain as an MLflow model: it answers as Chat does, and contains no secret."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from small_workspace import PROJECT, CommandLine, make_workspace

from rallebench.core.errors import UsageError
from rallebench.core.events import complete
from rallebench.core.types import Episode, Message
from rallebench.services.workbench import Workbench
from rallebench.tracking.connection import default_uri
from rallebench.tracking.models import turns

QUESTION = "Which river flows through ten countries?"
EARLIER = [
    {"role": "user", "content": "Who discovered Titan?"},
    {"role": "assistant", "content": "Huygens"},
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with chains that answer with the found titles; one of them reads the conversation."""
    folder = make_workspace(tmp_path_factory.mktemp("models") / "workspace")
    echo = {"kind": "generate", "template": "{history} | {response[0]}", "target": "echo"}
    found = {"kind": "retrieve", "template": "{question}", "target": "tiny", "k": 2}
    chain = {"format": "rallebench-chain/1", "name": "told", "actions": [found, echo]}
    (folder / "chains" / "told.json").write_text(json.dumps(chain))
    return folder


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], place: Path) -> CommandLine:
    """The command line."""
    return CommandLine(capfd, place)


@pytest.fixture
def track(cli: CommandLine, place: Path, workspace: Path) -> Callable[[], Any]:
    """Log a run, which the first test makes, and its chain to a store that has its tables already."""
    if not (place / "runs" / "one").exists():
        cli.json("run", "--chain", "told", "--dataset", "tiny-qa", "--name", "one", "--no-mlflow")
    return lambda: cli.json("track", "one", "--model", "--tracking-uri", default_uri(workspace))


@pytest.fixture
def model(track: Callable[[], Any]) -> str:
    """The address of the logged model."""
    return str(track()["mlflow_model"])


@pytest.fixture
def address(workspace: Path, model: str) -> Iterator[str]:
    """The model, with MLflow looking into that store."""
    import mlflow

    mlflow.set_tracking_uri(default_uri(workspace))
    yield model
    # MLflow keeps the address in the environment, where later tests would find it.
    mlflow.set_tracking_uri(None)


def chatted(place: Path, text: str, history: list[dict[str, str]]) -> str:
    """The answer of Chat."""
    workbench = Workbench(place)
    chain = workbench.workspace.chain("told")
    earlier = [Message(turn["role"], turn["content"]) for turn in history]
    with workbench.models.lease("the test") as lease:
        complete(lease.load_for(chain.llms, chain.retrievers))
        *_, episode = workbench.asking.chat(chain, earlier, text)
    workbench.close()
    assert isinstance(episode, Episode) and not episode.error
    return episode.answer


@pytest.mark.filterwarnings("ignore::Warning")  # from MLflow and pydantic, while any model loads
def test_a_loaded_model_answers_as_chat_does(place: Path, address: str) -> None:
    import mlflow
    from pandas import DataFrame

    loaded = mlflow.pyfunc.load_model(address, model_config={"workspace": str(place)})
    table = loaded.predict(
        DataFrame({"question": [QUESTION, QUESTION], "history": [None, EARLIER]})
    )
    alone, after = chatted(place, QUESTION, []), chatted(place, QUESTION, EARLIER)
    assert table["answer"].tolist() == [alone, after] and alone != after
    assert (
        "Danube" in alone and table["pages"][0][0] == "p4" and table["error"].tolist() == ["", ""]
    )
    assert loaded.predict([QUESTION])["answer"].tolist() == [alone]


def test_the_same_run_again_keeps_its_model_and_the_model_knows_its_run(
    client: Any, track: Callable[[], Any], model: str
) -> None:
    again = track()
    assert again["mlflow_model"] == model
    logged = client.get_logged_model(model.removeprefix("models:/"))
    assert (logged.name, logged.source_run_id, logged.status.value) == (
        "told",
        again["mlflow_run_id"],
        "READY",
    )


def test_a_logged_model_holds_the_chain_and_neither_secrets_nor_the_workspaces_place(
    client: Any, place: Path, model: str
) -> None:
    # The first test that logged to that database made the experiment, and so chose the place of its artifacts.
    where = client.get_logged_model(model.removeprefix("models:/")).artifact_location
    folder = Path(url2pathname(urlsplit(where).path))
    chain = json.loads((folder / "artifacts" / "chain.json").read_text("utf-8"))
    assert [action["target"] for action in chain["actions"]] == ["tiny", "echo"]
    whole = "".join(
        file.read_text("utf-8")
        for file in folder.rglob("*")
        if file.suffix != ".pyc" and file.is_file()
    )
    assert str(place) not in whole


@pytest.mark.parametrize(
    "given",
    [
        QUESTION,
        [QUESTION],
        (QUESTION,),
        {"question": QUESTION},
        [{"question": QUESTION, "history": None}],
        {"question": [QUESTION]},
        {"question": [QUESTION], "history": [float("nan")]},
    ],
)
def test_a_question_may_be_given_in_many_ways(given: Any) -> None:
    assert turns(given) == [(QUESTION, [])]


def test_a_history_may_be_json_text() -> None:
    assert turns([{"question": QUESTION, "history": json.dumps(EARLIER)}]) == [(QUESTION, EARLIER)]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (3, "Give a question"),
        ([""], "Row 1 has no question"),
        ([QUESTION, {"text": "?"}], "Row 2 has no question"),
        ([{"question": QUESTION, "history": "[{"}], "not valid JSON"),
        (
            [{"question": QUESTION, "history": [{"role": "system", "content": ""}]}],
            "must hold messages",
        ),
        ({"question": 3}, "Give a question"),
    ],
)
def test_what_is_no_question_is_one_sentence(given: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        turns(given)


@pytest.mark.slow
def test_mlflow_serves_the_model_in_a_process_of_its_own(
    place: Path, workspace: Path, model: str, tmp_path: Path
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "PYTHONPATH": str(PROJECT),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "MLFLOW_TRACKING_URI": default_uri(workspace),
        "RALLEBENCH_WORKSPACE": str(place),
    }
    serve = f"-m mlflow models serve -m {model} --env-manager local -p {port}"
    with open(tmp_path / "log", "wb") as log:
        server = subprocess.Popen(
            [sys.executable, *serve.split()],
            env=environment,
            cwd=tmp_path,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        body = json.dumps(
            {"dataframe_records": [{"question": QUESTION, "history": EARLIER}]}
        ).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/invocations", body, headers)
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        deadline = time.monotonic() + 120
        while True:
            try:
                with direct.open(request, timeout=30) as reply:
                    (told,) = json.loads(reply.read())["predictions"]
                break
            except OSError:
                assert time.monotonic() < deadline and server.poll() is None, (
                    tmp_path / "log"
                ).read_text()
                time.sleep(0.5)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(20)
    assert told["answer"] == chatted(place, QUESTION, EARLIER)
