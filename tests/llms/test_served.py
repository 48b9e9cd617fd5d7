"""The list of a server's models: requested once, read without trust, one sentence for every failure."""

from __future__ import annotations

import time
from typing import Any

import pytest
from loopback import Loopback, drip, fail, flood, hang, models, send_json, send_text

from rallebench.core.errors import BackendError, UsageError
from rallebench.http.model_list import MAX_NAME_CHARACTERS, served_models

KEY = "sk-a1b2c3d4e5f6"


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_the_names_come_sorted_and_once() -> None:
    with Loopback(models("b", "a", "b")) as server:
        assert served_models(server.url) == ("a", "b")
        assert served_models(server.url + "/") == ("a", "b")
    assert server.paths == ["/v1/models", "/v1/models"]


def test_the_key_of_the_named_variable_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    with Loopback(models("a")) as server:
        served_models(server.url, "MY_KEY")
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("listed", [{"data": []}, {"object": "list", "data": None}])
def test_a_server_without_a_model_has_none(listed: Any) -> None:
    with Loopback(send_json(listed)) as server:
        assert served_models(server.url) == ()


def test_what_is_no_name_is_passed_over_and_no_key_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    names = (3, " ", "a\nb", "y" * (MAX_NAME_CHARACTERS + 1), KEY, "good")
    with Loopback(send_json({"data": ["x", {}, *({"id": name} for name in names)]})) as server:
        assert served_models(server.url) == ("good",)


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (send_json([1]), "is not a list of models"),
        (send_json({"data": {"id": "a"}}), "is not a list of models"),
        (send_json({"error": {"code": 503, "message": "busy"}}), "internal error .503: busy"),
        (send_text("", 404), "has no list of models. Check its address"),
        (fail(405, "GET is not for you"), "has no list of models .GET is not for you"),
        (
            fail(401, f"bad key {KEY}"),
            "refused the key .401: bad key \\*\\*\\*.. OPENAI_API_KEY is not set. Give a valid key: typed on the page, or in the environment variable OPENAI",
        ),
        (fail(500, "oops"), "had an internal error .500: oops"),
        (flood, "more than 32 MB"),
    ],
)
def test_a_server_that_misbehaves_is_told_with_its_address(behaviour: Any, words: str) -> None:
    with Loopback(behaviour) as server, pytest.raises(BackendError, match=words) as caught:
        served_models(server.url)
    assert str(caught.value).startswith(f"The server at {server.url} ") and "\n" not in str(
        caught.value
    )


@pytest.mark.parametrize("behaviour", [hang(), drip])
def test_nobody_waits_longer_than_the_time_out(behaviour: Any) -> None:
    started = time.monotonic()
    with (
        Loopback(behaviour) as server,
        pytest.raises(BackendError, match=r"gave no answer within 0\.3 s\. Check that"),
    ):
        served_models(server.url, timeout=0.3)
    assert time.monotonic() - started < 3


@pytest.mark.parametrize(
    ("base_url", "variable", "words"),
    [
        ("localhost:8000", None, "does not name a server"),
        ("http://127.0.0.1:1/v1", KEY, "must be the name of an environment variable"),
        ("https://api.openai.com/v1", None, r"needs a key for https://api\.openai\.com/v1"),
    ],
)
def test_what_cannot_be_asked_is_refused(base_url: str, variable: str | None, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        served_models(base_url, variable)
    assert KEY not in str(caught.value)
