"""Behind a login nothing but the login answers; wrong passwords are slowed, then locked, per address."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from gradio.routes import App
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from rallebench.gui import login_guard
from rallebench.gui.app import build_app
from rallebench.gui.frame import Page
from rallebench.gui.login_guard import (
    ADDRESSES,
    LOCKED,
    OPEN_FOLDERS,
    OPEN_PATHS,
    TRIES,
    Credentials,
    LoginGuard,
    Throttle,
)

RIGHT, WRONG = {"username": "me", "password": "sécret"}, {"username": "me", "password": "secret"}


class Clock:
    """A clock that a test sets, and the recorded pauses."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def application(page: Page, clock: Clock) -> Iterator[App]:
    """The page as served, behind a login."""
    blocks = build_app(page)
    blocks.auth, blocks.auth_message = Credentials("me", "sécret"), None
    guard = Middleware(LoginGuard, throttle=Throttle(clock), sleep=clock.sleep)
    yield App.create_app(blocks, app_kwargs={"middleware": [guard]})


def visitor(application: App, address: str = "192.0.2.1", **headers: str) -> TestClient:
    """A browser at an address."""
    return TestClient(application, "https://bench.example", client=(address, 5000), headers=headers)


def routes(application: App) -> list[tuple[str, str]]:
    """(method, path) of all routes of the application, with a word in place of each parameter."""
    paths = application.openapi()["paths"]
    listed = [(method.upper(), path) for path, methods in paths.items() for method in methods]
    return [(m, p.replace("{", "").replace("}", "").replace(":path", "")) for m, p in listed]


def test_without_a_login_only_the_listed_addresses_answer(application: App) -> None:
    client, asked = visitor(application), routes(application)
    assert len(asked) > 40 and ("POST", "/gradio_api/component_server") in asked
    for method, path in asked:
        is_listed = path in OPEN_PATHS or path.startswith(OPEN_FOLDERS)
        if path.rstrip("/") == "/login" or (is_listed and method in ("GET", "HEAD")):
            continue
        assert client.request(method, path).status_code == 401, (method, path)


@pytest.mark.parametrize(
    "path", ["/config/", "/CONFIG", "/assets/../config", "/%63onfig", "/./config", "/x"]
)
def test_no_other_writing_of_an_address_gets_around_it(application: App, path: str) -> None:
    answer = visitor(application).get(path)
    assert answer.status_code in (401, 404) and "components" not in answer.text


def test_the_page_of_the_login_holds_nothing_of_the_workspace(application: App, page: Page) -> None:
    shown = visitor(application).get("/")
    assert shown.status_code == 200 and "auth_required" in shown.text
    assert page.workbench.workspace.path.name not in shown.text and "data-place" not in shown.text
    tokens = {"cookie": "access-token-x=y; access-token-unsecure-x=z"}
    assert visitor(application, **tokens).get("/config").status_code == 401


def test_after_a_login_the_page_answers(application: App) -> None:
    client = visitor(application)
    assert client.post("/login", data=RIGHT).status_code == 200
    assert client.get("/config").status_code == 200


def test_wrong_passwords_are_slowed_then_locked_for_a_minute(
    application: App, clock: Clock
) -> None:
    client = visitor(application)
    answers = [client.post("/login", data=WRONG).status_code for _ in range(TRIES)]
    assert answers == [400] * TRIES
    assert clock.slept == sorted(clock.slept) and clock.slept[0] == 0.25 and clock.slept[-1] == 4.0
    locked = client.post("/login/", data=RIGHT)
    assert locked.status_code == 429 and locked.headers["retry-after"] == str(round(LOCKED))
    assert "Too many wrong passwords from this address; try again in 60 s." in locked.text
    clock.now += LOCKED
    assert client.post("/login", data=RIGHT).status_code == 200


def test_the_lock_of_an_address_is_not_that_of_another(application: App) -> None:
    for _ in range(TRIES + 1):
        last = visitor(application, "192.0.2.66").post("/login", data=WRONG)
    assert last.status_code == 429
    assert visitor(application, "192.0.2.7").post("/login", data=RIGHT).status_code == 200


def test_a_header_does_not_make_another_address(application: App) -> None:
    for number in range(TRIES + 1):
        claimed = {"X-Forwarded-For": f"198.51.100.{number}", "Forwarded": f"for=10.0.0.{number}"}
        last = visitor(application, **claimed).post("/login", data=WRONG)
    assert last.status_code == 429


def test_a_right_password_forgets_the_wrong_ones_before_it(application: App) -> None:
    client = visitor(application)
    for _ in range(3):
        for _ in range(TRIES - 1):
            assert client.post("/login", data=WRONG).status_code == 400
        assert client.post("/login", data=RIGHT).status_code == 200


def test_many_tries_at_once_are_no_more_tries(clock: Clock) -> None:
    throttle = Throttle(clock)
    begun = [throttle.begin("192.0.2.1") for _ in range(50)]
    assert begun.count(0.0) == TRIES
    for _ in range(TRIES):
        throttle.end("192.0.2.1", right=False)
    assert throttle.begin("192.0.2.1") == LOCKED
    clock.now += LOCKED
    assert throttle.begin("192.0.2.1") == 0.0


def test_a_network_of_ipv6_is_one_visitor_and_the_table_has_an_end(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    throttle = Throttle(clock)
    begun = [throttle.begin(f"2001:db8::{number:x}") for number in range(TRIES + 1)]
    assert begun[-1] > 0 and throttle.begin("2001:db9::1") == 0.0
    assert ADDRESSES >= 1000
    monkeypatch.setattr(login_guard, "ADDRESSES", 3)
    for number in range(20):
        throttle.begin(f"192.0.2.{number}")
    assert len(throttle._tries) == 3


def test_both_the_user_and_the_password_must_be_right() -> None:
    check = Credentials("me", "sécret")
    assert check("me", "sécret")
    assert not any(check(*pair) for pair in (("me", "secret"), ("you", "sécret"), ("", "")))


def test_a_wrong_user_name_costs_what_a_wrong_password_costs(
    application: App, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[int, int]] = []
    monkeypatch.setattr(
        "rallebench.gui.login_guard.hmac.compare_digest",
        lambda a, b: compared.append((len(a), len(b))) or a == b,
    )
    check, each = Credentials("me", "sécret"), []
    for pair in (("me", "x"), ("you", "sécret"), ("u" * 999, "p" * 999), ("", ""), ("\udcff", "x")):
        compared.clear()
        assert not check(*pair)
        each.append(list(compared))
    assert each == [[(32, 32), (32, 32)]] * 5
    for number, name in enumerate(("me", "you")):
        client = visitor(application, f"192.0.2.{number}")
        assert client.post("/login", data={**WRONG, "username": name}).status_code == 400
    assert clock.slept == [0.25, 0.25]


def test_what_came_to_no_answer_counts_as_wrong(clock: Clock) -> None:
    async def fail_to_answer(scope: Any, receive: Any, send: Any) -> None:
        raise OSError("gone")

    guard = LoginGuard(fail_to_answer, Throttle(clock), clock.sleep)
    client = TestClient(guard, client=("192.0.2.1", 1), raise_server_exceptions=False)
    statuses = [client.post("/login").status_code for _ in range(TRIES + 1)]
    assert statuses == [500] * TRIES + [429]
