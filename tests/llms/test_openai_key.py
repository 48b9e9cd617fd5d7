"""Which server is shown which key.

A server that is not this machine is played by a proxy on the loopback: it gets the requests meant for
any host, with all their headers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from loopback import Loopback, answer, fail

from rallebench.core.errors import BackendError
from rallebench.core.types import Generate, Message
from rallebench.llms import LLMS

KEY = "sk-verysecret0123456789"
STRANGERS = (
    "http://models.example/v1",
    "http://api.openai.com.models.example/v1",
    "http://models.example/api.openai.com/v1",
    "http://localhost.models.example/v1",
    "http://10.1.2.3:8000/v1",
    "http://api.openai.com/v1",  # without TLS anybody in between could read the key
)

Make = Callable[..., Any]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[Any] = []

    def make(**settings: Any) -> Any:
        made.append(
            LLMS["openai_compatible"]("gpt", **{"model": "m", "max_retries": 0, **settings})
        )
        return made[-1]

    yield make
    for llm in made:
        llm.close()


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Loopback]]:
    """``proxied(behaviour)`` → the server that all plain HTTP to other machines now reaches."""
    opened: list[Loopback] = []

    def start(*behaviours: Any) -> Loopback:
        server = Loopback(*behaviours).__enter__()
        opened.append(server)
        for name in ("http_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{server.port}")
        return server

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    yield start
    for server in opened:
        server.__exit__()


def one(llm: Any) -> Any:
    (result,) = llm.generate([Generate("gpt", (Message("user", "Who?"),))])
    return result


@pytest.mark.parametrize("base_url", STRANGERS)
def test_openais_key_is_not_shown_to_another_server(
    make: Make, proxied: Callable[..., Loopback], base_url: str
) -> None:
    server = proxied(answer("fine"))
    assert one(make(base_url=base_url)).text == "fine"
    assert server.paths == [f"{base_url}/chat/completions"]
    assert server.headers[0]["authorization"] == "Bearer none"
    assert KEY not in str(server.headers)


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "MY_KEY"])
def test_a_key_that_the_user_names_is_shown_to_the_server_it_is_named_for(
    make: Make, proxied: Callable[..., Loopback], monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    server = proxied()
    monkeypatch.setenv(variable, "sk-mine0123456789")
    one(make(base_url="http://models.example/v1", api_key_env=variable))
    assert server.headers[0]["authorization"] == "Bearer sk-mine0123456789"


def test_openais_key_is_shown_to_this_machine(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Loopback() as server:
        one(make(base_url=server.url))
        one(make(base_url=server.url.replace("127.0.0.1", "localhost"), api_key_env=None))
    assert [headers["authorization"] for headers in server.headers] == [f"Bearer {KEY}"] * 2


def test_openais_key_is_meant_for_openai(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    from rallebench.http.endpoint import key_from_environment
    from rallebench.llms._openai.requests import Settings

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert key_from_environment("gpt", Settings("m")) == KEY
    assert (
        key_from_environment("gpt", Settings("m", base_url="https://API.openai.com:443/v1/")) == KEY
    )
    assert (
        key_from_environment("gpt", Settings("m", base_url="https://api.openai.com.example/v1"))
        == ""
    )


def test_a_server_that_wants_a_key_and_has_none_named_is_told_apart(
    make: Make, proxied: Callable[..., Loopback]
) -> None:
    proxied(fail(401, "no key"))
    result = one(make(base_url="http://models.example/v1"))
    assert isinstance(result, BackendError)
    assert str(result) == (
        "'gpt' at http://models.example/v1 refused the key (401: no key). Name the environment variable with "
        "its key in api_key_env; OPENAI_API_KEY by itself is shown to OpenAI and to this machine only."
    )


def test_the_key_changes_no_fingerprint(make: Make) -> None:
    url = "http://localhost:1/v1"
    assert make(base_url=url).fingerprint == make(base_url=url, api_key_env="MY_KEY").fingerprint
