"""Accepted Host and Origin headers: one decision for all servers of the program, tested here as a table."""

from __future__ import annotations

import fnmatch
from typing import Any

import pytest
from loops import run_apart

from rallebench.core.errors import UsageError
from rallebench.core.hosts import (
    Access,
    HostGuard,
    authority,
    machine_names,
    mlflow_options,
    server_access,
)

LOCAL = server_access("127.0.0.1")


def status(access: Access, *headers: tuple[str, str]) -> int:
    """The status for a request with these headers, 200 if it is answered."""
    refusal = access.refusal(
        [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    )
    return refusal.status if refusal else 200


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", 200),
        ("localhost:7860", 200),
        ("LocalHost:7860", 200),
        ("localhost.", 200),
        ("localhost.:7860", 200),
        ("127.0.0.1", 200),
        ("127.0.0.2:1", 200),
        ("[::1]", 200),
        ("[::1]:7860", 200),
        ("[0:0:0:0:0:0:0:1]:7860", 200),
        ("evil.example", 421),
        ("evil.example:7860", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("evil.localhost", 421),
        ("10.0.0.1", 421),
        ("0.0.0.0", 421),
        ("[::2]", 421),
        ("127.1", 421),
        ("2130706433", 421),
        ("", 400),
        (" ", 400),
        (".", 400),
        ("::1", 400),
        ("[::1", 400),
        ("[::g]", 400),
        ("[::1%25lo]", 400),
        ("localhost..:x", 400),
        ("localhost:99999", 400),
        ("localhost:0", 400),
        ("localhost:-1", 400),
        ("localhost@evil.example", 400),
        ("evil.example:80@localhost", 400),
        ("localhost,evil.example", 400),
        ("localhost evil.example", 400),
        ("http://localhost", 400),
        ("localhost/", 400),
        ("localhost\n", 400),
        ("l\xf6calhost", 400),
    ],
)
def test_on_loopback_only_loopback_names_are_answered(host: str, expected: int) -> None:
    assert status(LOCAL, ("Host", host)) == expected


def test_a_request_has_exactly_one_host() -> None:
    assert status(LOCAL) == 400
    assert status(LOCAL, ("Host", "localhost"), ("Host", "localhost")) == 400
    assert status(LOCAL, ("Host", "localhost"), ("Host", "evil.example")) == 400


@pytest.mark.parametrize("name", ["X-Forwarded-Host", "Forwarded", "X-Host", "X-Original-Host"])
def test_a_header_that_a_script_can_set_decides_nothing(name: str) -> None:
    assert status(LOCAL, ("Host", "evil.example"), (name, "localhost")) == 421
    assert status(LOCAL, ("Host", "localhost"), (name, "evil.example")) == 200
    assert (
        status(
            LOCAL, ("Host", "localhost"), ("Origin", "http://evil.example"), (name, "evil.example")
        )
        == 403
    )


@pytest.mark.parametrize(
    ("host", "origin", "expected"),
    [
        ("localhost:7860", "http://localhost:7860", 200),
        ("LOCALHOST:7860", "HTTP://localhost.:7860", 200),
        ("[::1]:7860", "http://[0::1]:7860", 200),
        ("localhost", "http://localhost", 200),
        ("localhost", "http://localhost:80", 200),
        ("localhost", "https://localhost", 200),  # a proxy speaks TLS
        ("localhost:7860", "http://localhost", 403),
        ("localhost:7860", "http://localhost:3000", 403),
        ("localhost:7860", "http://127.0.0.1:7860", 403),
        ("localhost:7860", "http://evil.example", 403),
        ("localhost:7860", "http://evil.example:7860", 403),
        ("localhost:7860", "http://localhost:7860@evil.example", 403),
        ("localhost:7860", "http://localhost:7860.evil.example", 403),
        ("localhost:7860", "http://localhost:7860/", 403),
        ("localhost:7860", "chrome-extension://localhost:7860", 403),
        ("localhost:7860", "null", 403),
        ("localhost:7860", "", 403),
        ("localhost:7860", "localhost:7860", 403),
    ],
)
def test_only_pages_of_the_server_itself_may_ask(host: str, origin: str, expected: int) -> None:
    assert status(LOCAL, ("Host", host), ("Origin", origin)) == expected


def test_two_origins_are_refused_and_none_is_a_program_that_asks() -> None:
    own = ("Origin", "http://localhost:7860")
    assert status(LOCAL, ("Host", "localhost:7860"), own, own) == 403
    assert status(LOCAL, ("Host", "localhost:7860")) == 200


def test_a_bound_address_is_answered_and_loopback_is_not() -> None:
    bound = server_access("192.0.2.7")
    assert [
        status(bound, ("Host", host))
        for host in ("192.0.2.7:80", "localhost", "127.0.0.1", "192.0.2.8")
    ] == [200, 421, 421, 421]
    six = server_access("[2001:db8::7]")
    assert [status(six, ("Host", host)) for host in ("[2001:DB8:0::7]:80", "[::1]")] == [200, 421]
    scoped = server_access("fe80::7%eth0")
    assert status(scoped, ("Host", "[fe80::7]")) == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "[::]", "0:0::0"])
def test_on_a_wildcard_the_machines_own_names_are_answered(host: str) -> None:
    access = server_access(
        host, names_of_machine=lambda: {"box", "box.lab.example", "192.0.2.7", "fe80::7"}
    )
    for own in ("BOX:7860", "box.lab.example", "192.0.2.7", "[fe80::7]:1", "localhost", "[::1]"):
        assert status(access, ("Host", own)) == 200
    for foreign in ("evil.example", "192.0.2.8", "box.evil.example", "0.0.0.0"):
        assert status(access, ("Host", foreign)) == 421


def test_the_machines_names_are_its_host_name_and_its_addresses() -> None:
    import socket

    names = machine_names()
    assert socket.gethostname().lower() in names and "127.0.0.1" in names
    assert all(name == name.lower() and not name.startswith("[") for name in names)


def test_every_allowed_host_is_answered_and_its_pages_may_ask() -> None:
    access = server_access("127.0.0.1", ["Bench.Example.", "other.example:8443", "2001:db8::1"])
    for host in (
        "bench.example",
        "BENCH.example:80",
        "other.example",
        "[2001:db8::1]:9",
        "localhost:7860",
    ):
        assert status(access, ("Host", host)) == 200
    proxied = ("Host", "127.0.0.1:7860")  # a proxy that writes its own Host
    expected = {
        "https://bench.example": 200,
        "http://bench.example": 200,
        "https://other.example:8443": 200,
        "http://[2001:db8::1]": 200,
        "https://bench.example:9000": 403,
        "https://other.example": 403,
        "https://evil.example": 403,
    }
    assert {origin: status(access, proxied, ("Origin", origin)) for origin in expected} == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "*.example",
        "http://bench.example",
        "bench.example/",
        "a b",
        "a@b",
        "a:99999",
        "[::1",
    ],
)
def test_an_allowed_host_that_is_none_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not a host; write for example bench\.example\.org"):
        server_access("127.0.0.1", [text])


def test_a_refusal_names_the_mend() -> None:
    refusal = LOCAL.refusal([(b"host", b"bench.example:80")])
    assert refusal and "start it with the allowed host bench.example" in refusal.message
    assert authority("[::1]:80") == ("::1", 80)


def test_mlflow_is_told_the_same_hosts_and_pages() -> None:
    _, hosts, _, pages = mlflow_options(5001, ["bench.example:8443"])
    patterns = hosts.split(",")
    own = ("localhost:5001", "127.0.0.1:9", "[::1]:5001", "localhost", "bench.example:80")
    foreign = (
        "evil.example",
        "10.evil.example",
        "192.168.evil.example:5001",
        "localhost.evil.example",
    )
    for host in (*own, *foreign):
        answered = any(fnmatch.fnmatch(host, pattern) for pattern in patterns)
        assert answered == (host in own), host
    assert pages.split(",")[0] == "http://127.0.0.1:5001"
    assert "https://bench.example:8443" in pages and "*" not in pages


# ── the guard before an application ──────────────────────────────────────────


def answers(scope: dict[str, Any]) -> tuple[list[Any], list[str]]:
    """(replies of a guarded application, the kinds of scope that reached it)."""
    sent: list[Any] = []
    reached: list[str] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["type"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"1")]})

    async def send(message: Any) -> None:
        sent.append(message)

    run_apart(lambda: HostGuard(application, LOCAL)(scope, None, send))
    return sent, reached


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
def test_a_refused_request_does_not_reach_the_application(method: str) -> None:
    foreign = [(b"host", b"localhost"), (b"origin", b"http://evil.example")]
    for headers, code in (([(b"host", b"evil.example")], 421), (foreign, 403), ([], 400)):
        sent, reached = answers({"type": "http", "method": method, "headers": headers})
        assert reached == [] and sent[0]["status"] == code and sent[1]["body"]


def test_a_request_of_our_own_is_answered_and_a_foreign_websocket_is_closed() -> None:
    own = [(b"host", b"localhost")]
    sent, reached = answers({"type": "http", "method": "GET", "headers": own})
    assert reached == ["http"] and sent[0]["headers"] == [(b"a", b"1")]
    sent, reached = answers(
        {"type": "websocket", "headers": [*own, (b"origin", b"http://evil.example")]}
    )
    assert reached == [] and sent[0]["type"] == "websocket.close"
    assert answers({"type": "lifespan"})[1] == ["lifespan"]
