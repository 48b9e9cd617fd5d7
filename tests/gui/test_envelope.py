"""Broken HTTP requests to the page's server get a 4xx with one sentence in JSON, and the page continues."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from gradio.context import Context
from gradio.routes import App
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from rallebench.gui.app import build_app, server_functions
from rallebench.gui.envelope import CALL, FUNCTIONS, MOST_BYTES, UPLOAD, EnvelopeGuard
from rallebench.gui.frame import Page

JSON = {"content-type": "application/json"}
HALF = "\\ud83d"


def call(**changes: Any) -> dict[str, Any]:
    """A call of ``jobs`` in the form of the page's script, with some changed fields."""
    return {
        "session_hash": "s1",
        "component_id": 1,
        "fn_name": "jobs",
        "data": {"window": "w"},
        **changes,
    }


def act(**changes: Any) -> str:
    """A call of ``act`` as JSON."""
    return json.dumps(call(fn_name="act", data={"action": "runs.refresh", **changes}))


BROKEN: dict[str, tuple[str | bytes, int]] = {
    "nothing": ("", 400),
    "broken JSON": ('{"a":', 400),
    "other bytes": (b"\xff\xfe\x00", 400),
    "UTF-16": (act().encode("utf-16"), 400),
    "two values": (act() + act(), 400),
    "a list": ("[]", 422),
    "null": ("null", 422),
    "no fields": ("{}", 422),
    "a further field": (json.dumps(call(event_data=1)), 422),
    "a session that is a number": (json.dumps(call(session_hash=1)), 422),
    "a session that is a path": (json.dumps(call(session_hash="../x")), 422),
    "a session of half a character": (act().replace("s1", HALF), 422),
    "a long session": (json.dumps(call(session_hash="x" * 5000)), 422),
    "a component that is a text": (json.dumps(call(component_id="1")), 422),
    "a component that is true": (json.dumps(call(component_id=True)), 422),
    "an unknown component": (json.dumps(call(component_id=999)), 404),
    "a negative component": (json.dumps(call(component_id=-1)), 404),
    "a component of 400 digits": (json.dumps(call()).replace("1,", "9" * 400 + ",", 1), 404),
    "a component of 5,000 digits": (json.dumps(call()).replace("1,", "9" * 5000 + ",", 1), 400),
    "an unknown function": (json.dumps(call(fn_name="no")), 404),
    "a function of the class": (json.dumps(call(fn_name="__class__")), 404),
    "a function of Gradio's": (json.dumps(call(fn_name="postprocess")), 404),
    "a function that is a list": (json.dumps(call(fn_name=["jobs"])), 422),
    "a long function": (json.dumps(call(fn_name="x" * 5000)), 422),
    "data that is a text": (json.dumps(call(data="x")), 422),
    "data that is a list": (json.dumps(call(data=[{}])), 422),
    "an unknown field of data": (json.dumps(call(data={"other": 1})), 422),
    "an action that is a number": (act(action=3), 422),
    "a text of half a character": (act(data={"text": "@"}).replace("@", HALF), 422),
    "a field named by half a character": (act(data={"@": "x"}).replace("@", HALF), 422),
    "NaN": (act(number=float("nan")), 400),
    "NaN in a field": (act(data={"k": float("nan")}), 400),
    "infinity": (act(data={"k": float("-inf")}), 400),
    "1e999": (act(data={"k": "@"}).replace('"@"', "1e999"), 422),
    "deep lists": ("[" * 100_000, 400),
    "deep data": (act(data={"k": "@"}).replace('"@"', "[" * 500 + "]" * 500), 422),
    "very deep data": (act(data={"k": "@"}).replace('"@"', "[" * 9999 + "]" * 9999), 400),
    "megabytes": (act(data={"text": "x" * (MOST_BYTES + 1)}), 413),
    "a text that is too long": (act(data={"text": "x" * 2_000_001}), 422),
}


@pytest.fixture
def client(page: Page, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A client of the page as served; an exception in the server is a 500."""
    monkeypatch.setattr(Context, "id", 0)  # the page's component is number 1, as in a new process
    blocks = build_app(page)
    blocks.auth, blocks.max_file_size = None, None
    application = App.create_app(blocks, app_kwargs={"middleware": [Middleware(EnvelopeGuard)]})
    yield TestClient(application, "http://127.0.0.1", raise_server_exceptions=False)


def sentence(answer: Any) -> str:
    """The one sentence of a refusal."""
    words = answer.json()["detail"]["error"]
    assert words.endswith((".", ").")) and "\n" not in words and len(words) < 300
    return str(words)


@pytest.mark.parametrize(("body", "status"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_call_is_refused_in_one_sentence_and_the_page_goes_on(
    client: TestClient, body: str | bytes, status: int
) -> None:
    for path in (CALL, f"{CALL}/"):
        answer = client.post(path, content=body, headers=JSON)
        assert answer.status_code == status and sentence(answer)
    assert client.post(CALL, json=call()).json()["any"] is False


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "json"])
def test_a_call_of_another_content_type_is_refused(client: TestClient, kind: str) -> None:
    answer = client.post(CALL, content=json.dumps(call()), headers={"content-type": kind})
    assert answer.status_code == 415 and "application/json" in sentence(answer)
    form = client.post(CALL, data={"session_hash": "s"}, files={"file": b"x"})
    assert form.status_code == 415


def test_every_function_of_the_script_has_a_schema_and_answers(
    client: TestClient, page: Page
) -> None:
    assert set(FUNCTIONS) == {function.__name__ for function in server_functions(page)}
    rows = {"list": "gone", "start": 0, "count": 1}
    sent: dict[str, Any] = {
        "act": {"action": "gone"},
        "stop": {"action": "x"},
        "list_rows": rows,
        "more": {"stream": "gone"},
        "jobs": {},
    }
    for name, data in sent.items():
        answer = client.post(
            CALL,
            content=json.dumps(call(fn_name=name, data=data)),
            headers={"content-type": "application/json; charset=utf-8"},
        )
        assert answer.status_code == (200 if name in ("stop", "more", "jobs") else 400), name


def test_what_a_handler_refuses_is_400_and_a_bug_500_with_the_patch_in_it(
    client: TestClient, page: Page
) -> None:
    answer = client.post(CALL, content=act(action="gone"), headers=JSON)
    assert answer.status_code == 400 and "older than the program" in sentence(answer)
    assert answer.json()["detail"]["patch"]["problem"] == sentence(answer)
    page.action("test.bug", lambda page, event: {"#x": 1 / 0})
    assert client.post(CALL, content=act(action="test.bug"), headers=JSON).status_code == 500


PART = b'--b\r\nContent-Disposition: form-data; name="files"%s\r\n\r\nx\r\n--b--\r\n'
FORM = {"content-type": "multipart/form-data; boundary=b"}


def test_a_broken_upload_is_a_bad_request(client: TestClient) -> None:
    for content, headers in (
        (b"x", {}),
        (b"x", FORM),
        (b"x", {"content-type": "multipart/form-data"}),
        (PART % b"", FORM),
        (PART % b"; filename=\xff\xfe", FORM),
        (b"--b\r\n\xff\xff\r\n\r\n--b--", FORM),
    ):
        answer = client.post(UPLOAD, content=content, headers=headers)
        assert answer.status_code in (200, 400, 413), (content, answer.text)
    assert "not a form with named files" in sentence(
        client.post(UPLOAD, content=PART % b"", headers=FORM)
    )
    assert client.post(UPLOAD, files={"files": ("a.txt", b"x")}).status_code == 200


def test_no_other_address_takes_anything(client: TestClient) -> None:
    for path in ("api/x", "reset", "process_recording"):
        for content in ("{", "{}", '{"data": [], "fn_index": 99, "session_hash": "x"}'):
            answer = client.post(f"/gradio_api/{path}", content=content, headers=JSON)
            assert answer.status_code == 404 and "no such address" in sentence(answer)
    assert client.delete("/config").status_code == 404
    assert client.put(CALL, json=call()).status_code == 405


@pytest.mark.parametrize(
    ("path", "content", "status"),
    [
        ("call/x", '{"data": []}', 404),
        ("call/ask", "{", 400),
        ("call/ask", "{}", 422),
        ("call/ask", '{"data": [NaN]}', 400),
        ("call/ask", '{"data": "Who?"}', 422),
        ("call/ask", '{"data": ["Who?"]}', 422),
        ("run/x", '{"data": []}', 404),
        ("run/call/ask", '{"data": []}', 404),
        ("run/ask", "{", 400),
        ("run/ask", '{"data": ["Who?"]}', 422),
        ("run/ask", '{"data": ["Who?", "starter", "", ""], "fn_index": 0}', 422),
        ("queue/join", "[]", 422),
        ("queue/join", '{"data": [], "fn_index": 99, "session_hash": "x"}', 404),
        ("queue/join", '{"data": [], "fn_index": "0", "session_hash": "x"}', 422),
        ("queue/join", '{"data": [], "fn_index": 0, "session_hash": "../x"}', 422),
        ("cancel", "{", 400),
        ("cancel", '{"event_id": "e", "fn_index": 99, "session_hash": "x"}', 404),
    ],
)
def test_a_broken_call_of_an_endpoint_is_refused(
    client: TestClient, path: str, content: str, status: int
) -> None:
    answer = client.post(f"/gradio_api/{path}", content=content, headers=JSON)
    assert answer.status_code == status and sentence(answer).endswith(".")


def test_an_address_that_can_name_nothing_is_not_found(client: TestClient) -> None:
    for path in ("assets/" + "a" * 5000, "gradio_api/file/" + "a" * 300, "gradio_api/proxy=%00"):
        assert "no such address" in sentence(client.get(f"/{path}"))
    assert client.get("/gradio_api/file=/etc/passwd").status_code == 403


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(field=st.sampled_from(sorted(call())), value=VALUES, name=st.sampled_from(sorted(FUNCTIONS)))
def test_no_value_of_any_field_is_a_server_error(
    client: TestClient, field: str, value: Any, name: str
) -> None:
    sent = json.dumps({**call(fn_name=name), field: value})
    answer = client.post(CALL, content=sent, headers=JSON)
    assert answer.status_code == 200 or (400 <= answer.status_code < 500 and sentence(answer))
