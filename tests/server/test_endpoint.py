"""A tuned chain answers other programs as a model would: OpenAI's form, whole or streamed, with its sources."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from small_workspace import CommandLine, make_workspace
from starlette.testclient import TestClient

from rallebench.core.errors import UsageError
from rallebench.core.hosts import access_of
from rallebench.core.types import Action, Chain, Generate, Message, Question
from rallebench.engine.single import Delta
from rallebench.llms import LLMS
from rallebench.server.endpoint import application, key_for
from rallebench.services.workbench import Workbench

SEARCH = Action("retrieve", "{question}", "fstring", "tiny", 2)
READ = Chain(
    "read", (SEARCH, Action("generate", "[{history}] {response[0]} {question}", "fstring", "titan"))
)
ECHO = Chain("echo", (Action("generate", "[{history}] {question}", "fstring", "echo"),))
BROKEN = Chain("broken", (Action("generate", "{question}", "fstring", "mute"),))
SHOUT = Chain(
    "shout",
    (
        SEARCH,
        Action("generate", "{question}", "fstring", "titan"),
        Action("identity", "{response[1]}!"),
    ),
)
CHAINS = {chain.name: chain for chain in (READ, ECHO, BROKEN, SHOUT)}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    return Workbench(make_workspace(tmp_path_factory.mktemp("serving") / "workspace"))


@pytest.fixture(scope="module")
def client(bench: Workbench) -> Iterator[TestClient]:
    with TestClient(application(bench, CHAINS), base_url="http://localhost:8001") as client:
        yield client


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def ask(client: TestClient, **body: Any) -> Any:
    return client.post("/v1/chat/completions", json=body)


def events(text: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_the_served_chains_are_listed_as_models(client: TestClient) -> None:
    assert [model["id"] for model in client.get("/v1/models").json()["data"]] == list(CHAINS)


def test_an_answer_is_its_chains_and_has_its_sources(client: TestClient, bench: Workbench) -> None:
    question = "Which moon of Saturn has a thick atmosphere?"
    *_, episode = bench.asking.execute_chain(READ, Question("q", question))
    found = ask(client, model="read", messages=user(question)).json()
    assert found["choices"][0]["message"] == {"role": "assistant", "content": episode.answer}  # type: ignore[union-attr]
    assert found["rallebench"]["sources"][0] | {"score": 0, "text": ""} == {
        "doc_id": "1",
        "page_id": "p1",
        "title": "Titan (moon)",
        "score": 0,
        "text": "",
    }
    assert (
        found["usage"]["total_tokens"]
        == found["usage"]["prompt_tokens"] + found["usage"]["completion_tokens"]
        > 0
    )


def test_earlier_turns_are_the_history_and_a_system_message_is_not_used(client: TestClient) -> None:
    told = [
        {"role": "system", "content": "SECRET"},
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "one"},
        {"role": "user", "content": [{"type": "text", "text": "second"}]},
    ]
    said = ask(client, model="echo", messages=told).json()["choices"][0]["message"]["content"]
    assert said == "[User: first\nAssistant: one] second"


@pytest.mark.parametrize("name", ["echo", "shout"])
def test_a_streamed_answer_is_the_whole_one_in_pieces(client: TestClient, name: str) -> None:
    whole = ask(client, model=name, messages=user("Say it")).json()["choices"][0]["message"][
        "content"
    ]
    streamed = events(ask(client, model=name, messages=user("Say it"), stream=True).text)
    pieces = [event["choices"][0]["delta"].get("content", "") for event in streamed]
    assert "".join(pieces) == whole
    assert streamed[-1]["choices"][0]["finish_reason"] == "stop" and "usage" in streamed[-1]


def test_half_a_surrogate_pair_is_answered_as_an_escape(client: TestClient) -> None:
    body = json.dumps({"model": "echo", "messages": user("who \ud800 is")})
    head = {"Content-Type": "application/json"}
    whole = client.post("/v1/chat/completions", content=body, headers=head)
    assert whole.status_code == 200 and "\ud800" in whole.json()["choices"][0]["message"]["content"]
    streamed = client.post(
        "/v1/chat/completions", content=body[:-1] + ', "stream": true}', headers=head
    )
    assert "\ud800" in "".join(
        event["choices"][0]["delta"].get("content", "") for event in events(streamed.text)
    )


def test_a_chain_that_fails_is_an_error_whole_and_streamed(client: TestClient) -> None:
    ran = ask(client, model="broken", messages=user("x"))
    assert ran.status_code == 500 and ran.json()["error"]["type"] == "server_error"
    streamed = events(ask(client, model="broken", messages=user("x"), stream=True).text)
    assert streamed[-1]["error"]["message"] == ran.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"model": "nobody", "messages": user("x")}, 404, "There is no chain 'nobody'"),
        ({"model": ["nobody"], "messages": user("x")}, 404, "There is no chain ['nobody']"),
        ({"messages": []}, 400, "at least one user message"),
        ({"messages": [{"role": ["user"], "content": "x"}]}, 400, "Message 1 has no known role"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, 400, "must be a user's question"),
        ({"messages": user("  ")}, 400, "must be a user's question"),
        ({"messages": [{"role": "robot", "content": "x"}]}, 400, "Message 1 has no known role"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            400,
            "other than text",
        ),
        ({"messages": user("x"), "n": 2}, 400, "n must be 1"),
        (
            {"messages": user("x"), "stream": "false"},
            400,
            "'stream' must be true or false, without quotes.",
        ),
        (
            {"messages": user("x"), "stream": 1},
            400,
            "'stream' must be true or false, without quotes.",
        ),
        ([1], 400, "must be a JSON object"),
    ],
)
def test_a_wrong_request_is_told(client: TestClient, body: Any, status: int, sentence: str) -> None:
    ran = client.post("/v1/chat/completions", json=body)
    assert ran.status_code == status and sentence in ran.json()["error"]["message"]


def test_a_path_that_is_not_served_is_an_error_openais_clients_read(client: TestClient) -> None:
    for ran, status in (
        (client.get("/v1/embeddings"), 404),
        (client.get("/v1/chat/completions"), 405),
    ):
        assert (
            ran.status_code == status
            and "is not served; POST /v1/chat/completions" in ran.json()["error"]["message"]
        )


def test_a_taken_port_is_refused_first(cli: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = cli("serve --chain read --port", str(taken.getsockname()[1]))
    assert (
        ran.code == 2
        and "cannot be listened on (Address already in use); choose another port" in ran.last
    )
    assert "load" not in ran.err
    assert "Two chains have one name" in cli("serve --chain read --chain read").last


def test_a_page_of_another_site_cannot_ask(client: TestClient) -> None:
    ran = client.post(
        "/v1/chat/completions",
        content=json.dumps({"messages": user("x")}),
        headers={"content-type": "text/plain"},
    )
    assert ran.status_code == 415
    foreign = {"origin": "https://evil.example"}
    ran = client.post("/v1/chat/completions", json={"messages": user("x")}, headers=foreign)
    assert ran.status_code == 403 and "A page of another site" in ran.json()["error"]["message"]
    ran = client.get("/v1/models", headers={"host": "evil.example"})
    assert (
        ran.status_code == 421
        and "start it with the allowed host evil.example" in ran.json()["error"]["message"]
    )


def test_another_name_is_answered_where_it_is_allowed(bench: Workbench) -> None:
    access = access_of("127.0.0.1", ["bench.example"])
    with TestClient(
        application(bench, CHAINS, access=access), base_url="http://bench.example"
    ) as client:
        assert client.get("/v1/models").status_code == 200


def test_the_media_type_may_be_in_any_case_and_have_parameters(client: TestClient) -> None:
    body = json.dumps({"model": "echo", "messages": user("x")})
    for media_type in ("APPLICATION/JSON", "Application/Json; charset=utf-8"):
        ran = client.post(
            "/v1/chat/completions", content=body, headers={"content-type": media_type}
        )
        assert ran.status_code == 200


def test_a_body_without_end_is_refused(client: TestClient) -> None:
    assert ask(client, messages=user("x" * 5_000_000)).status_code == 413


def test_with_a_key_only_who_sends_it_is_answered(bench: Workbench) -> None:
    with TestClient(
        application(bench, CHAINS, key="secret"), base_url="http://localhost:8001"
    ) as client:
        assert client.get("/v1/models").status_code == 401
        assert (
            client.get("/v1/models", headers={"authorization": "Bearer wrong"}).status_code == 401
        )
        assert (
            client.get("/v1/models", headers={"authorization": "Bearer secret"}).status_code == 200
        )
        assert client.get("/health").status_code == 200


def test_another_address_than_this_machines_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RALLEBENCH_API_KEY", raising=False)
    assert key_for("127.0.0.1") == key_for("::1") == ""
    with pytest.raises(UsageError, match="set RALLEBENCH_API_KEY"):
        key_for("0.0.0.0")
    monkeypatch.setenv("RALLEBENCH_API_KEY", "k")
    assert key_for("0.0.0.0") == "k"


@contextlib.contextmanager
def listening(bench: Any) -> Iterator[int]:
    """The port of a real server of the chains."""
    import uvicorn

    with socket.create_server(("127.0.0.1", 0)) as address:
        served = application(bench, CHAINS)
        config = uvicorn.Config(served, log_config=None, log_level="warning", access_log=False)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [address]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + 20
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.02)
        yield address.getsockname()[1]
        server.should_exit = True
        thread.join(10)


class Endless:
    """A workbench whose chains answer until their answer is closed."""

    def __init__(self) -> None:
        self.started, self.closed = threading.Event(), threading.Event()
        self.asking = self

    def chat(self, chain: Chain, history: list[Message], question: str) -> Iterator[Delta]:
        self.started.set()
        try:
            while True:
                time.sleep(0.005)
                yield Delta(0, "word ")
        finally:
            self.closed.set()


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_may_go_away_meanwhile(stream: bool, capfd: pytest.CaptureFixture[str]) -> None:
    bench = Endless()
    with listening(bench) as port:
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(
                raw(json.dumps({"model": "echo", "messages": user("x"), "stream": stream}).encode())
            )
            assert bench.started.wait(20)
            if stream:
                assert client.recv(10)
            # An abrupt end: what is being sent meets a reset.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert bench.closed.wait(20), "the answer goes on although no client reads it"
    assert capfd.readouterr().err == ""


def test_a_client_that_goes_away_while_it_sends_its_request_leaves_no_traceback(
    bench: Workbench, capfd: pytest.CaptureFixture[str]
) -> None:
    with listening(bench) as port:
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(raw(b"{" + b" " * 100_000)[:50_000])
            time.sleep(0.2)
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert b"200 OK" in client.recv(100)
    assert capfd.readouterr().err == ""


def raw(body: bytes) -> bytes:
    """A request as it is sent."""
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


def test_our_own_backend_talks_to_a_served_chain_as_to_any_model(bench: Workbench) -> None:
    with listening(bench) as port:
        llm = LLMS["openai_compatible"](
            "served", model="echo", base_url=f"http://127.0.0.1:{port}/v1"
        )
        request = Generate("served", (Message("user", "Hello there"),))
        (reply,) = llm.generate([request])
        *pieces, last = llm.stream(request)
        llm.close()
    assert reply.text == "[] Hello there" == "".join(pieces) == last.text
    assert reply.prompt_tokens > 0
