"""Calls of other programs return the values of services and views, and refuse in one sentence."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from rallebench.core.errors import HINTS, NotFoundError, UsageError
from rallebench.remote.calls import Calls
from rallebench.remote.shapes import RunStatusJson
from rallebench.remote.wording import CLAUSES
from rallebench.services.workbench import Workbench

QUESTION = "Who discovered Titan?"


@pytest.fixture
def calls(bench: Workbench) -> Calls:
    bench.tracking.enabled = False
    return Calls(bench)


def run_to_its_end(bench: Workbench, started: RunStatusJson) -> str:
    job = bench.jobs.get("run", started["run"])
    assert job is not None and job.wait(60)
    return started["run"]


def test_an_answer_comes_with_every_prompt_and_passage(calls: Calls) -> None:
    answer = calls.ask(QUESTION, "read")
    retrieval, generation = answer["steps"]
    assert answer["answer"] == generation["reply"]
    assert retrieval["name"] == "retrieve tiny" and retrieval["sent"] == QUESTION
    assert retrieval["hits"][0]["rank"] == 1
    assert retrieval["hits"][0]["text"] in generation["sent"]


def test_passages_come_best_first(calls: Calls) -> None:
    hits = calls.search(QUESTION, "tiny", k=2)
    assert [hit["rank"] for hit in hits] == [1, 2]
    assert hits[0]["score"] >= hits[1]["score"]


def test_a_run_is_started_followed_read_and_compared(calls: Calls, bench: Workbench) -> None:
    first = calls.start_run("read", "tiny-qa", metrics="em, f1", name="first")
    assert first["run"] == "first" and first["state"] == "running"
    run_to_its_end(bench, first)
    run_to_its_end(bench, calls.start_run("read", "tiny-qa", metrics="em,f1", name="second"))
    status = calls.run_status("first")
    assert (status["state"], status["share"]) == ("finished", 1.0)
    report = calls.report("first")
    assert report["complete"] is True and "em" in json.dumps(report)
    assert calls.compare("first", "second", "em")["difference"] == 0


def test_the_state_of_a_run_of_an_earlier_program_is_known(calls: Calls, bench: Workbench) -> None:
    run_to_its_end(bench, calls.start_run("read", "tiny-qa", name="old"))
    later = Workbench(bench.workspace.path)
    try:
        status = Calls(later).run_status("old")
    finally:
        later.close()
    assert status["state"] == "finished" and status["done"] == status["total"] > 0


def test_names_come_with_a_line_about_each(calls: Calls) -> None:
    assert {"read", "title", "closed"} <= calls.list_names("chains").keys()
    assert "tiny" in calls.list_names("retrievers")


@pytest.mark.parametrize(
    ("call", "arguments", "sentence"),
    [
        ("ask", (" ", "read"), "The question is empty; write one."),
        ("ask", (QUESTION, "none"), "There is no chain 'none'"),
        ("search", (QUESTION, "none"), "none"),
        ("search", (QUESTION, "tiny", 0), "k is 0; it must be from 1 to 1000."),
        ("start_run", ("read", "none"), "none"),
        ("start_run", ("read", "tiny-qa", -1), "limit is -1"),
        ("run_status", ("gone",), "gone"),
        ("stop_run", ("gone",), "gone"),
        ("report", ("gone",), "gone"),
        ("compare", ("gone", "gone"), "gone"),
        ("list_names", ("stars",), "There is no kind 'stars'"),
    ],
)
def test_a_wrong_call_is_refused_in_one_sentence(
    calls: Calls, call: str, arguments: tuple[object, ...], sentence: str
) -> None:
    with pytest.raises((UsageError, NotFoundError)) as refused:
        getattr(calls, call)(*arguments)
    assert sentence in str(refused.value) and "\n" not in str(refused.value)


def test_a_read_only_server_asks_no_model_and_starts_nothing(bench: Workbench) -> None:
    calls = Calls(bench, read_only=True)
    for refused in (
        lambda: calls.ask(QUESTION, "read"),
        lambda: calls.start_run("read", "tiny-qa"),
        lambda: calls.stop_run("first"),
    ):
        with pytest.raises(UsageError, match="read-only"):
            refused()
    assert calls.search(QUESTION, "tiny") and not bench.jobs.list("run")


def test_a_hundred_calls_at_once_are_all_answered(calls: Calls) -> None:
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: calls.ask(QUESTION, "read")["answer"], range(100)))
    assert len(answers) == 100 and len(set(answers)) == 1


def test_every_mend_has_its_words_for_programs() -> None:
    assert CLAUSES.keys() == set(HINTS)
