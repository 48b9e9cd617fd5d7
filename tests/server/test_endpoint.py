"""A tuned chain answers other programs like a model: OpenAI's format, whole or streamed, with its sources."""

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
from hypothesis import given, settings
from hypothesis import strategies as st
from loopback import Behaviour, Loopback, fail
from small_workspace import CommandLine, make_workspace
from starlette.testclient import TestClient

from rallebench.core.entries import LLMEntry
from rallebench.core.errors import UsageError
from rallebench.core.hosts import server_access
from rallebench.core.listening import key_for
from rallebench.core.live import Delta
from rallebench.core.types import Action, Chain, Generate, Message, Note, Question, Reply, Step
from rallebench.llms import LLMS
from rallebench.server.answering import MOST_ANSWERED, MOST_WAITING, RETRY_SECONDS
from rallebench.server.completion_request import (
    REFUSED,
    CompletionBody,
    RequestError,
    parse_body,
    read_request,
)
from rallebench.server.endpoint import application, finish_reason
from rallebench.services.conversations import Turn
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
TORN = Chain("torn", (Action("generate", "{question}", "fstring", "torn"),))
CHAINS = {chain.name: chain for chain in (READ, ECHO, BROKEN, SHOUT, TORN)}
LIMITS = {"max_tokens": 10, "stop": ["a"]}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    bench = Workbench(make_workspace(tmp_path_factory.mktemp("serving") / "workspace"))
    torn = LLMEntry(backend="scripted", settings={"default": "half \ud800"})
    bench.workspace.save_llm("torn", torn)
    return bench


@pytest.fixture(scope="module")
def client(bench: Workbench) -> Iterator[TestClient]:
    with TestClient(application(bench.asking, CHAINS), base_url="http://localhost:8001") as client:
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
        {"role": "system", "content": "SECRET"},  # and null if a client's library has no value
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "one", "tool_calls": None, "refusal": None},
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
    assert streamed[-1]["choices"][0]["finish_reason"] == "stop"
    assert not any("usage" in event for event in streamed)


def test_usage_is_a_last_piece_without_choices_where_it_is_requested(client: TestClient) -> None:
    options = {"include_usage": True}
    streamed = events(
        ask(client, model="echo", messages=user("Say it"), stream=True, stream_options=options).text
    )
    *pieces, last = streamed
    assert all(piece["usage"] is None and piece["choices"] for piece in pieces)
    whole = ask(client, model="echo", messages=user("Say it")).json()
    assert last["choices"] == [] and last["usage"] == whole["usage"]


def test_half_a_surrogate_pair_of_a_model_is_answered_as_an_escape(client: TestClient) -> None:
    whole = ask(client, model="torn", messages=user("x"))
    assert whole.json()["choices"][0]["message"]["content"] == "half \ud800"
    streamed = events(ask(client, model="torn", messages=user("x"), stream=True).text)
    pieces = [event["choices"][0]["delta"].get("content", "") for event in streamed]
    assert "".join(pieces) == "half \ud800"


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("tool_calls", "tool_calls"),
        ("end_turn", "stop"),
        ("MAX_TOKENS", "length"),
    ],
)
def test_the_finish_reason_is_that_of_the_chains_last_model(reason: str, expected: str) -> None:
    steps = (
        Step(Generate("llm", ()), Reply("query", finish_reason="stop")),
        Step(Generate("llm", ()), Reply("cut", finish_reason=reason)),
        Step(Note("cut!"), Reply("cut!")),
    )
    assert finish_reason(Turn(SHOUT, "x", steps=steps)) == expected


def test_an_answer_that_was_cut_says_so_whole_and_streamed(client: TestClient) -> None:
    body = {"model": "echo", "messages": user("one two three"), "max_tokens": 2}
    choice = ask(client, **body).json()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("[] one", "length")
    streamed = events(ask(client, **body, stream=True).text)
    assert streamed[-1]["choices"][0]["finish_reason"] == "length"


def test_stop_strings_of_a_client_cut_the_answer(client: TestClient) -> None:
    body = {"model": "echo", "messages": user("one two three"), "stop": " two"}
    assert ask(client, **body).json()["choices"][0]["message"]["content"] == "[] one"
    body["stop"] = ["nowhere", "three"]
    assert ask(client, **body).json()["choices"][0]["message"]["content"] == "[] one two "


def test_a_limit_of_the_chain_stays_below_the_clients() -> None:
    own = Chain("c", (Action("generate", "{question}", "fstring", "echo", generation=LIMITS),))
    request = read_request({"messages": user("x"), "max_tokens": 50, "stop": "b"}, {"c": own})
    assert request.chain.actions[0].generation == {"max_tokens": 10, "stop": ["a", "b"]}
    request = read_request({"messages": user("x"), "max_completion_tokens": 5}, {"c": own})
    assert request.chain.actions[0].generation["max_tokens"] == 5
    assert read_request({"messages": user("x")}, {"c": own}).chain is own


def test_one_served_chain_is_described_alone(client: TestClient) -> None:
    listed = client.get("/v1/models").json()["data"]
    assert client.get("/v1/models/echo").json() in listed
    missing = client.get("/v1/models/any/thing")
    assert missing.status_code == 404 and missing.json()["error"]["code"] == "model_not_found"


def test_a_chain_that_fails_is_an_error_whole_and_streamed(client: TestClient) -> None:
    ran = ask(client, model="broken", messages=user("x"))
    assert ran.status_code == 500 and ran.json()["error"]["type"] == "server_error"
    streamed = events(ask(client, model="broken", messages=user("x"), stream=True).text)
    assert streamed[-1]["error"]["message"] == ran.json()["error"]["message"]


LIMITED = Chain("limited", (Action("generate", "{question}", "fstring", "limited"),))


@pytest.mark.parametrize(
    ("failure", "status", "seconds"),
    [
        (fail(429, "slow down", headers={"retry_after": "1.2"}), 429, "2"),
        (fail(429, "slow down"), 429, str(RETRY_SECONDS)),
        (fail(429, "Quota", code="insufficient_quota"), 500, None),
        (fail(500, "oops"), 500, None),
    ],
)
def test_a_busy_model_of_the_chain_is_a_429_that_says_when_to_ask_again(
    bench: Workbench, failure: Behaviour, status: int, seconds: str | None
) -> None:
    with (
        Loopback(failure) as server,
        TestClient(
            application(bench.asking, {"limited": LIMITED}), base_url="http://localhost:1"
        ) as own,
    ):
        settings = {"model": "m", "base_url": server.url, "max_retries": 0}
        entry = LLMEntry(backend="openai_compatible", settings=settings)
        bench.workspace.save_llm("limited", entry)
        whole = ask(own, messages=user("x"))
        streamed = ask(own, messages=user("x"), stream=True)
    if bench.models.is_loaded("limited"):
        bench.models.unload("limited")
    assert whole.status_code == status and whole.headers.get("retry-after") == seconds
    if status == 429:
        assert streamed.status_code == 429 and streamed.headers["retry-after"] == seconds
        assert streamed.json() == whole.json()
        assert whole.json()["error"]["code"] == "rate_limit_exceeded"
    else:
        assert events(streamed.text)[-1] == whole.json()


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"model": "nobody", "messages": user("x")}, 404, "There is no chain 'nobody'"),
        ({"model": ["nobody"], "messages": user("x")}, 400, "'model' is wrong"),
        ({"messages": []}, 400, "at least one user message"),
        ({}, 400, "'messages' is missing"),
        ({"messages": [{"role": ["user"], "content": "x"}]}, 400, "Message 1 has no known role"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, 400, "must be a user's question"),
        ({"messages": user("  ")}, 400, "must be a user's question"),
        ({"messages": user("x" * 300_000)}, 400, "300,000 characters"),
        ({"messages": [{"role": "robot", "content": "x"}]}, 400, "Message 1 has no known role"),
        ({"messages": [{"role": "tool", "content": "x"}]}, 400, "Message 1 has no known role"),
        ({"messages": [{"role": "user", "content": {"text": "x"}}]}, 400, "that is not text"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            400,
            "other than text",
        ),
        ({"messages": user("x"), "stream": "false"}, 400, "must be true or false, without quotes."),
        ({"messages": user("x"), "stream": 1}, 400, "must be true or false, without quotes."),
        ([1], 400, "must be a JSON object"),
    ],
)
def test_a_wrong_request_is_told(client: TestClient, body: Any, status: int, sentence: str) -> None:
    ran = client.post("/v1/chat/completions", json=body)
    assert ran.status_code == status and sentence in ran.json()["error"]["message"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tools", [{"type": "function", "function": {"name": "f"}}]),
        ("tool_choice", "auto"),
        ("functions", [{"name": "f"}]),
        ("function_call", "auto"),
        ("parallel_tool_calls", True),
        ("response_format", {"type": "json_object"}),
        ("logprobs", True),
        ("top_logprobs", 2),
        ("logit_bias", {"5": 1}),
        ("presence_penalty", 0.5),
        ("frequency_penalty", 0.5),
        ("reasoning_effort", "low"),
        ("modalities", ["audio"]),
        ("store", True),
        ("metadata", {"a": "b"}),
        ("n", 2),
        ("max_tokens", 0),
        ("max_tokens", "5"),
        ("max_tokens", True),
        ("max_completion_tokens", 10**30),
        ("temperature", 3),
        ("temperature", 10**400),
        ("top_p", 0),
        ("seed", 1.5),
        ("stream_options", {"include_usage": True}),
        ("best_of", 3),
    ],
)
def test_a_field_that_is_not_honoured_is_refused_by_its_name(
    client: TestClient, field: str, value: Any
) -> None:
    ran = client.post("/v1/chat/completions", json={"messages": user("x"), field: value})
    error = ran.json()["error"]
    assert ran.status_code == 400 and error["param"] == field and repr(field) in error["message"]


def test_fields_that_ask_for_nothing_are_accepted(client: TestClient) -> None:
    nothing = dict.fromkeys(REFUSED) | {"user": "me", "n": 1, "stop": None}
    harmless = {name: values[0] for name, (values, _) in REFUSED.items() if values}
    for more in (nothing, harmless):
        assert ask(client, model="echo", messages=user("x"), **more).status_code == 200


def test_settings_of_the_answer_are_refused_where_no_model_writes_it(client: TestClient) -> None:
    ran = ask(client, model="shout", messages=user("x"), temperature=0.5)
    assert (
        ran.status_code == 400
        and "'temperature' cannot be honoured" in ran.json()["error"]["message"]
    )


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages": [{"role": "user", "content": "a\\ud800b"}]}',
        b'{"messages": [{"role": "user", "content": "x"}], "\\udfff": 1}',
        b'{"messages": [{"role": "user", "content": "x"}], "temperature": NaN}',
        b'{"messages": [{"role": "user", "content": "x"}], "temperature": 1e999}',
        b'{"messages": [{"role": "user", "content": "x"}], "seed": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b"\xff\xfe\xfd",
        b"",
    ],
)
def test_what_is_no_json_or_no_text_is_a_bad_request(client: TestClient, body: bytes) -> None:
    head = {"Content-Type": "application/json"}
    ran = client.post("/v1/chat/completions", content=body, headers=head)
    assert ran.status_code == 400 and ran.json()["error"]["type"] == "invalid_request_error"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from([*REFUSED, *CompletionBody.model_fields])


@settings(max_examples=150, deadline=None)
@given(fields=st.dictionaries(FIELDS | st.text(), JSON_VALUES, max_size=4), message=JSON_VALUES)
def test_any_json_is_a_request_or_a_sentence(fields: dict[str, Any], message: Any) -> None:
    for messages in (user("x"), [message], [{"role": "user", "content": message}]):
        with contextlib.suppress(RequestError):
            body = parse_body(json.dumps({"messages": messages, **fields}).encode())
            assert read_request(body, CHAINS).question.strip()


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
    access = server_access("127.0.0.1", ["bench.example"])
    with TestClient(
        application(bench.asking, CHAINS, access=access), base_url="http://bench.example"
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
        application(bench.asking, CHAINS, key="secret"), base_url="http://localhost:8001"
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
def listening(bench: Any, *chains: Chain) -> Iterator[int]:
    """The port of a real server of the chains."""
    import uvicorn

    with socket.create_server(("127.0.0.1", 0)) as address:
        served = application(bench.asking, {chain.name: chain for chain in chains} or CHAINS)
        config = uvicorn.Config(served, log_config=None, log_level="warning", access_log=False)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [address]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + 20
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.02)
        yield address.getsockname()[1]
        server.should_exit = True
        thread.join(20)


class Endless:
    """A workbench with chains that answer until the connection is closed."""

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
            # An abrupt end: the data in flight meets a reset.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert bench.closed.wait(20), "the answer goes on although no client reads it"
    assert capfd.readouterr().err == ""


class SilentModel:
    """A server that accepts requests and never answers. ``asked`` counts the requests, ``left`` the closed connections."""

    def __init__(self) -> None:
        self.asked, self.left = threading.Semaphore(0), threading.Semaphore(0)
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._hear, args=(connection,), daemon=True).start()

    def _hear(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.recv(2**16)
            self.asked.release()
            while connection.recv(2**16):
                pass
        self.left.release()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def silent(bench: Workbench) -> Iterator[SilentModel]:
    model = SilentModel()
    entry = {"model": "m", "base_url": model.url, "timeout": 100}
    bench.workspace.save_llm("silent", LLMEntry(backend="openai_compatible", settings=entry))
    yield model
    model.close()


SILENT = Chain("silent", (Action("generate", "{question}", "fstring", "silent"),))


@contextlib.contextmanager
def waiting_clients(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Clients of the silent chain, every second one for a stream."""
    with contextlib.ExitStack() as stack:
        clients = []
        for number in range(count):
            body = {"model": "silent", "messages": user("x"), "stream": number % 2 == 1}
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            client.settimeout(20)
            client.sendall(raw(json.dumps(body).encode()))
            clients.append(client)
        yield clients


def test_clients_that_leave_a_silent_model_hang_up_on_it(
    bench: Workbench, silent: SilentModel
) -> None:
    with listening(bench, SILENT) as port:
        with waiting_clients(port, 2):
            for _ in range(2):
                assert silent.asked.acquire(timeout=20)
        for _ in range(2):
            assert silent.left.acquire(timeout=20), "the model is still being waited for"


def test_a_silent_chain_leaves_the_others_answering_and_refuses_what_is_too_much(
    bench: Workbench, silent: SilentModel
) -> None:
    most = MOST_ANSWERED + MOST_WAITING
    with listening(bench, SILENT, ECHO) as port, waiting_clients(port, most):
        for _ in range(MOST_ANSWERED):
            assert silent.asked.acquire(timeout=20)
        with waiting_clients(port, 1) as (refused,):
            head = refused.recv(2**16).decode().lower()
        assert " 429 " in head.split("\r\n")[0] and "retry-after: " in head
        with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
            client.sendall(raw(json.dumps({"model": "echo", "messages": user("x")}).encode()))
            assert b" 200 " in client.recv(100)
        assert not silent.asked.acquire(blocking=False), "more are asked at once than threads"


def test_a_server_that_stops_ends_what_waits_for_a_silent_model(
    bench: Workbench, silent: SilentModel
) -> None:
    served = application(bench.asking, {"silent": SILENT})
    with TestClient(served, base_url="http://localhost:8001") as client:

        def stop() -> None:
            silent.asked.acquire(timeout=20)
            assert client.portal is not None
            client.portal.call(served.state.stop_answers)

        threading.Thread(target=stop, daemon=True).start()
        ran = ask(client, messages=user("x"))
    assert ran.status_code == 503 and "is stopping" in ran.json()["error"]["message"]


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
