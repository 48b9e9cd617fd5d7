"""Calls of other programs return the values of services and views, and refuse in one sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from paying import paid_model

from rallebench.core.errors import HINTS, NotFoundError, ReadOnlyError, UsageError
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
        ("start_run", ("read", "tiny-qa", 0, "", "", "", "", -1.0), "must be above 0"),
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


SERVER = "openai_compatible:m?base_url=http://127.0.0.1:1/v1&api_key_env=HOME"


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("ask", {"question": QUESTION, "chain": "FILE"}),
        ("ask", {"question": QUESTION, "chain": "closed", "llm": SERVER}),
        ("ask", {"question": QUESTION, "chain": "read", "retriever": "FILE"}),
        ("search", {"query": QUESTION, "retriever": "FILE"}),
        ("start_run", {"chain": "FILE", "dataset": "tiny-qa"}),
        ("start_run", {"chain": "read", "dataset": "FILE"}),
        ("start_run", {"chain": "read", "dataset": "tiny-qa", "llm": SERVER}),
        ("start_run", {"chain": "read", "dataset": "tiny-qa", "retriever": "FILE"}),
        ("start_run", {"chain": "read", "dataset": "tiny-qa", "metrics": f"em,truthfulness:{SERVER}"}),
        ("start_run", {"chain": "read", "dataset": "tiny-qa", "metrics": "bertscore:FILE"}),
    ],
)  # fmt: skip
def test_a_program_names_no_file_no_address_and_no_key(
    calls: Calls, bench: Workbench, call: str, arguments: dict[str, str]
) -> None:
    chain, questions = (
        bench.workspace.path / part for part in ("chains/read.json", "datasets/tiny-qa.jsonl")
    )
    for file in (chain, questions):
        given = {key: value.replace("FILE", str(file)) for key, value in arguments.items()}
        with pytest.raises(NotFoundError, match="There is no"):
            getattr(calls, call)(**given)
    assert not bench.jobs.list("run")


def test_a_stopped_run_is_continued_under_its_name(calls: Calls, bench: Workbench) -> None:
    run_to_its_end(bench, calls.start_run("read", "tiny-qa", limit=3, metrics="em", name="some"))
    run_to_its_end(bench, calls.start_run("read", "tiny-qa", metrics="em", name="some"))
    assert calls.report("some")["n_done"] == 3
    run_to_its_end(bench, calls.start_run("read", "tiny-qa", limit=5, metrics="em", name="some"))
    assert calls.report("some")["n_done"] == 5
    run_to_its_end(bench, calls.start_run("closed", "tiny-qa", name="some"))
    other = calls.run_status("some")
    assert other["state"] == "failed" and "Use another run name" in other["error"]


@pytest.fixture
def reader(bench: Workbench) -> Iterator[Workbench]:
    """A read-only workbench on the same workspace."""
    reader = Workbench(bench.workspace.path, read_only=True)
    yield reader
    reader.close()


def test_a_run_stops_at_its_spending_limit_and_its_status_says_so(
    calls: Calls, bench: Workbench
) -> None:
    with paid_model(bench.workspace.path):
        started = calls.start_run("read", "tiny-qa", name="costly", llm="paid", max_usd=0.025)
        run_to_its_end(bench, started)
    status = calls.run_status("costly")
    assert status["state"] == "stopped" and "spending limit" in status["message"]


def test_a_read_only_server_asks_no_model_and_starts_nothing(reader: Workbench) -> None:
    calls = Calls(reader)
    for refused in (
        lambda: calls.ask(QUESTION, "read"),
        lambda: calls.start_run("read", "tiny-qa"),
        lambda: calls.stop_run("first"),
    ):
        with pytest.raises(UsageError, match="read-only"):
            refused()
    assert calls.search(QUESTION, "tiny") and not reader.jobs.list("run")


def test_a_read_only_server_searches_with_no_retriever_that_asks_a_model(
    bench: Workbench, reader: Workbench
) -> None:
    bench.data.combine("ranked", "llm-rerank", ["tiny"], {"llm": "titan"})
    bench.data.combine("fused", "rrf", ["tiny", "ranked"], {})
    for retriever in ("ranked", "fused"):
        with pytest.raises(ReadOnlyError, match="asks a language model"):
            Calls(reader).search(QUESTION, retriever)
    assert not reader.models.is_loaded("titan")


def test_a_hundred_calls_at_once_are_all_answered(calls: Calls) -> None:
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: calls.ask(QUESTION, "read")["answer"], range(100)))
    assert len(answers) == 100 and len(set(answers)) == 1


def test_every_mend_has_its_words_for_programs() -> None:
    assert CLAUSES.keys() == set(HINTS)
