"""The settings of a model behind a server, its fingerprint, and the server for each key.

A proxy on the loopback plays every server other than this machine: it receives the requests for any host, with all their
headers.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from asking import KEY, ask, failure, reply_of
from loopback import Handler, Loopback, answer, fail, good_stream, send_text

from rallebench.core.errors import MissingPackageError, UsageError
from rallebench.http.endpoint import key_from_environment
from rallebench.llms import LLMS
from rallebench.llms._openai.requests import Settings

Serve = Callable[..., tuple[Loopback, Any]]
Make = Callable[..., Any]

HERE = "http://localhost:1/v1"

# ── settings and fingerprint ─────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"modle": "x"}, "no setting 'modle'. Did you mean 'model'"),
        ({"api_key": "sk-abc"}, "no setting 'api_key'"),
        ({"name": "x"}, "no setting 'name'"),
        ({"model": ""}, "model is empty"),
        ({"model": 3}, "model is 3; it must be text"),
        ({"base_url": "localhost:8000"}, "does not name a server"),
        ({"base_url": "ftp://localhost/v1"}, "does not name a server"),
        ({"base_url": "http://"}, "does not name a server"),
        ({"base_url": "http://h:99999/v1"}, "does not name a server"),
        ({"base_url": "http://[::1/v1"}, "does not name a server"),
        ({"base_url": "http://a b/v1"}, "does not name a server"),
        ({"base_url": "http://" + "ü" * 80 + ".de/v1"}, "does not name a server"),
        ({"base_url": "http://me:sk-abc@host/v1"}, "contains a user name or a query"),
        ({"base_url": "http://host/v1?key=sk-abc"}, "contains a user name or a query"),
        ({"api_key_env": "sk-abc"}, "must be the name of an environment variable"),
        ({"timeout": 0}, "timeout is 0; it must be a number from 0.01"),
        ({"timeout": float("nan")}, "timeout is nan"),
        ({"timeout": "10"}, "timeout is '10'"),
        ({"concurrency": 0}, "concurrency is 0; it must be a whole number from 1 to 256"),
        ({"concurrency": True}, "concurrency is True"),
        ({"max_retries": -1}, "max_retries is -1"),
        ({"max_tokens": 1.5}, "it must be a whole number from 1 to 10000000 or null"),
        ({"temperature": 9}, "temperature is 9"),
        ({"top_p": 2}, "top_p is 2"),
        ({"max_tokens_field": "limit"}, "max_tokens_field is 'limit'; it must be one of auto"),
        ({"requests_per_minute": 0}, "requests_per_minute is 0"),
        ({"tokens_per_minute": "many"}, "tokens_per_minute is 'many'"),
        ({"prices": {"prompt": 1}}, "prices must be {"),
        ({"prices": {"prompt": 1, "answer": 2}}, "in US dollars per million tokens"),
        ({"prices": {"prompt": 1, "completion": -2}}, "prices: completion is -2"),
        ({"extra_body": [1]}, "extra_body must be an object"),
        ({"extra_body": {"stream": True}}, "extra_body may not set stream"),
        ({"extra_body": {"x": float("inf")}}, "extra_body cannot be sent as JSON"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_setting_is_named(make: Make, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        make(**{"base_url": HERE, **settings})
    assert message in str(caught.value)
    assert "sk-abc" not in str(caught.value)


def test_a_missing_model_is_named() -> None:
    with pytest.raises(UsageError, match="'gpt' needs the setting 'model'"):
        LLMS["openai_compatible"]("gpt", base_url=HERE)


def test_options_that_would_change_the_kind_of_answer_are_refused_in_place(serve: Serve) -> None:
    server, llm = serve()
    result = reply_of(llm, ask(options={"n": 3}))
    assert isinstance(result, UsageError) and "may not set n" in str(result)
    assert server.bodies == []


@pytest.mark.parametrize("prices", [None, {"prompt": 0.15, "completion": 0.6}])
def test_prices_stay_as_they_were_set(make: Make, prices: dict[str, float] | None) -> None:
    assert make(base_url=HERE, prices=prices).prices == prices


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"model": "n"}, False),
        ({"base_url": "http://localhost:2/v1"}, False),
        ({"max_tokens": 5}, False),
        ({"temperature": 0.5}, False),
        ({"top_p": 0.5}, False),
        ({"system": "Sing."}, False),
        ({"extra_body": {"top_k": 1}}, False),
        ({}, True),
        ({"timeout": 5}, True),
        ({"concurrency": 2}, True),
        ({"max_retries": 1}, True),
        ({"requests_per_minute": 5}, True),
        ({"tokens_per_minute": 5}, True),
        ({"prices": {"prompt": 1, "completion": 2}}, True),
        ({"base_url": "http://localhost:1/v1/"}, True),
        ({"api_key_env": "MY_KEY"}, True),
    ],
    ids=str,
)
def test_the_fingerprint_changes_with_what_changes_an_answer_and_only_with_that(
    make: Make, change: dict[str, Any], same: bool
) -> None:
    changed = make(**{"base_url": HERE, **change}).fingerprint
    assert (changed == make(base_url=HERE).fingerprint) == same


def test_the_missing_http_package_is_named(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpcore2", None)
    with pytest.raises(MissingPackageError, match="pip install httpcore2"):
        make(base_url=HERE)


def test_listing_the_backends_does_not_import_the_client() -> None:
    code = (
        "import sys; from rallebench.llms import LLMS; assert 'openai_compatible' in LLMS.names(); "
        "print('openai' in sys.modules, 'httpcore2' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.split() == ["False", "False"]


# ── the server for each key ──────────────────────────────────────────────────

STRANGERS = (
    "http://models.example/v1",
    "http://api.openai.com.models.example/v1",
    "http://models.example/api.openai.com/v1",
    "http://localhost.models.example/v1",
    "http://10.1.2.3:8000/v1",
    "http://api.openai.com/v1",  # without TLS anyone in between could read the key
)
PROXIES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY")


@pytest.fixture
def proxied(serve: Serve, key: None, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Loopback]:
    """``proxied(behaviour)`` → the server that now receives all plain HTTP to other machines."""

    def start(*behaviours: Any) -> Loopback:
        server, _ = serve(*behaviours)
        for name in ("http_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{server.port}")
        return server

    return start


@pytest.mark.parametrize("base_url", STRANGERS)
def test_openais_key_is_not_shown_to_another_server(
    make: Make, proxied: Callable[..., Loopback], base_url: str
) -> None:
    server = proxied(answer("fine"))
    assert reply_of(make(base_url=base_url)).text == "fine"
    assert server.paths == [f"{base_url}/chat/completions"]
    assert server.headers[0]["authorization"] == "Bearer none"
    assert KEY not in str(server.headers)


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "MY_KEY"])
def test_a_key_that_the_user_names_is_shown_to_the_server_it_is_named_for(
    make: Make, proxied: Callable[..., Loopback], monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    server = proxied()
    monkeypatch.setenv(variable, "sk-mine0123456789")
    reply_of(make(base_url=STRANGERS[0], api_key_env=variable))
    assert server.headers[0]["authorization"] == "Bearer sk-mine0123456789"


def test_openais_key_is_shown_here_and_to_openai(make: Make, serve: Serve, key: None) -> None:
    server, llm = serve()
    reply_of(llm)
    reply_of(make(base_url=server.url.replace("127.0.0.1", "localhost"), api_key_env=None))
    assert [headers["authorization"] for headers in server.headers] == [f"Bearer {KEY}"] * 2
    addresses = ("https://API.openai.com:443/v1/", "https://api.openai.com.example/v1")
    settings = [Settings("m"), *(Settings("m", base_url=address) for address in addresses)]
    assert [key_from_environment("gpt", own) for own in settings] == [KEY, KEY, ""]


def test_a_server_that_wants_a_key_says_so(make: Make, proxied: Callable[..., Loopback]) -> None:
    proxied(fail(401, "no key"))
    assert failure(make(base_url=STRANGERS[0])) == (
        "'gpt' at http://models.example/v1 refused the key (401: no key). Type its key on the page, or name "
        "the environment variable with it (api_key_env); OPENAI_API_KEY is only sent to OpenAI and to this machine by default."
    )


def test_a_refused_key_names_its_variable(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    for value, unset in (("", "MY_KEY is not set. "), (KEY, "")):
        monkeypatch.setenv("MY_KEY", value)
        _, llm = serve(fail(401, "bad key"), api_key_env="MY_KEY")
        mend = "Give a valid key: typed on the page, or in the environment variable MY_KEY."
        assert failure(llm).endswith(f". {unset}{mend}")


def test_a_missing_key_is_wrong_for_openai(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    server, llm = serve()
    assert reply_of(llm).text == "fine"
    assert server.headers[0]["authorization"] == "Bearer none"
    with pytest.raises(UsageError, match="set the environment variable OPENAI_API_KEY"):
        LLMS["openai_compatible"]("gpt", model="gpt-4o")


def test_a_key_with_a_line_end_is_refused(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-first\nsk-second")
    with pytest.raises(
        UsageError, match="OPENAI_API_KEY contains characters that no key"
    ) as caught:
        make(base_url=HERE)
    assert "sk-first" not in str(caught.value)


# ── secrets ──────────────────────────────────────────────────────────────────


def test_the_key_appears_in_the_authorization_header_and_nowhere_else(
    serve: Serve, key: None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server, llm = serve(
        answer(),
        fail(401, f"Incorrect API key provided: {KEY}"),
        fail(400, "x" * 290 + KEY),
        good_stream("a"),
        send_text(f"rubbish {KEY}"),
    )
    reply_of(llm)
    messages = [failure(llm), failure(llm), *map(str, llm.stream(ask())), failure(llm)]
    messages += [repr(llm), str(vars(llm)), llm.fingerprint, llm.about, caplog.text]
    for text in messages:
        assert KEY not in text
        assert KEY[:12] not in text
    assert "***" in messages[0]
    for headers, body in zip(server.headers, server.bodies, strict=True):
        assert [name for name, value in headers.items() if KEY in value] == ["authorization"]
        assert headers["authorization"] == f"Bearer {KEY}"
        assert KEY not in str(body)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("x" * 295 + "plainword is wrong", "x" * 295 + "*** …"),
        (
            "Bearer abcdefghijklmnop and sk-proj-ab***yz and sk-learn-models are bad",
            "(401: *** and *** and sk-learn-models are bad)",
        ),
    ],
)
def test_a_key_of_any_form_is_blotted_out(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, message: str, words: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "plainword")
    assert words in failure(serve(fail(401, message))[1])


def test_a_server_that_answers_with_the_key_is_not_quoted(serve: Serve, key: None) -> None:
    def tell(handler: Handler) -> None:
        answer(f"You are {handler.headers['Authorization']}.")(handler)

    assert reply_of(serve(tell)[1]).text == "You are Bearer ***."


def test_openai_account_headers_are_not_sent_to_other_servers(
    serve: Serve, key: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-secret")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "admin-secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer other-secret")
    server, llm = serve()
    reply_of(llm)
    assert "secret" not in str(server.headers).replace(KEY, "")


def test_the_loopback_needs_no_proxy(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in PROXIES:
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert reply_of(serve()[1]).text == "fine"


@pytest.mark.parametrize("proxy", ["http://me:secret@host:port", "gopher://host:1"])
def test_a_proxy_that_is_no_address_is_named_without_what_it_holds(
    make: Make, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(
        UsageError,
        match=r"proxy for models\.example in the environment is not an address; correct http_proxy",
    ) as caught:
        make(base_url=STRANGERS[0])
    assert "secret" not in str(caught.value)
