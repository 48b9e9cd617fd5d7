"""Gradio's own client calls the endpoints of the page, behind the login and the Host check of the page."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from browsing import serving

NAMES = ("ask", "search", "start_run", "run_status", "stop_run", "report", "compare", "list_names")


@pytest.fixture(scope="module")
def locked_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a page with a login."""
    with serving(tmp_path_factory.mktemp("workspace"), "--auth", "ada:secret") as url:
        yield url


@pytest.fixture(scope="module")
def client(locked_page: str) -> Any:
    gradio_client = pytest.importorskip("gradio_client")
    return gradio_client.Client(locked_page, auth=("ada", "secret"), verbose=False)


def test_every_call_is_a_named_endpoint_with_its_description_and_types(client: Any) -> None:
    endpoints = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert {f"/{name}" for name in NAMES} <= endpoints.keys()
    ask = endpoints["/ask"]
    assert ask["description"].startswith("Ask a chain one question")
    assert [p["parameter_name"] for p in ask["parameters"]] == [
        "question",
        "chain",
        "llm",
        "retriever",
    ]
    assert "steps: list" in ask["returns"][0]["python_type"]["type"]


def test_a_program_asks_runs_and_compares(client: Any) -> None:
    answer = client.predict("Who discovered Titan?", api_name="/ask")
    assert answer["answer"] and len(answer["steps"]) == 2
    for name in ("a", "b"):
        started = client.predict("starter", "starter-qa", 3, "em", name, api_name="/start_run")
        assert started["run"] == name
        ended = time.monotonic() + 60
        while (status := client.predict(name, api_name="/run_status"))["state"] == "running":
            assert time.monotonic() < ended, status
            time.sleep(0.2)
        assert (status["state"], status["done"], status["share"]) == ("finished", 3, 1.0)
    assert client.predict("a", api_name="/report")["n_done"] == 3
    assert client.predict("a", "b", api_name="/compare")["runs"] == ["a", "b"]


@pytest.mark.parametrize(
    ("arguments", "name", "sentence"),
    [
        (("Who?", "none"), "/ask", "There is no chain 'none'"),
        (("gone",), "/run_status", "gone"),
        (("Titan", "starter-bm25", "many"), "/search", "many"),
    ],
)
def test_a_wrong_call_gets_one_sentence(
    client: Any, arguments: tuple[Any, ...], name: str, sentence: str
) -> None:
    from gradio_client.exceptions import AppError

    with pytest.raises(AppError) as refused:
        client.predict(*arguments, api_name=name)
    assert sentence in str(refused.value) and "Traceback" not in str(refused.value)


def test_no_endpoint_answers_without_the_login_or_under_a_foreign_host(locked_page: str) -> None:
    body = {"data": ["Who?", "starter", "", ""]}
    for way in ("call", "run"):
        call = f"{locked_page}/gradio_api/{way}/ask"
        assert httpx.post(call, json=body).status_code == 401
        foreign = httpx.post(call, json=body, headers={"Host": "evil.example"})
        assert foreign.status_code in (400, 403, 421)


def test_one_request_is_answered_at_once(locked_page: str) -> None:
    with httpx.Client(base_url=locked_page, timeout=60) as visitor:
        visitor.post("/login", data={"username": "ada", "password": "secret"}).raise_for_status()
        call = "/gradio_api/run/search"
        (hits,) = visitor.post(call, json={"data": ["Titan", "starter-bm25", 2]}).json()["data"]
        assert [hit["rank"] for hit in hits] == [1, 2]
        wrong = visitor.post(call, json={"data": ["Titan", "none", 2]})
    assert wrong.status_code == 500 and "There is no retriever 'none'" in wrong.json()["error"]


def test_a_hundred_calls_at_once_are_all_answered(locked_page: str) -> None:
    with httpx.Client(base_url=locked_page, timeout=60) as visitor:
        visitor.post("/login", data={"username": "ada", "password": "secret"}).raise_for_status()
        call = "/gradio_api/call/list_names"

        def ask(_: int) -> str:
            event = visitor.post(call, json={"data": ["chains"]}).json()["event_id"]
            return visitor.get(f"{call}/{event}").text

        with ThreadPoolExecutor(100) as pool:
            answers = list(pool.map(ask, range(100)))
    assert all("event: complete" in answer and "starter" in answer for answer in answers)
