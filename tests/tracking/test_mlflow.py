"""A run folder in MLflow: everything is there, once, and nothing secret."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest
from run_folders import (
    FAILURE,
    LONG_TEMPLATE,
    STARTED,
    append,
    episode,
    make_run,
    mean,
    report,
    spec,
)

from rallebench.core.errors import BackendError, BadFileError, Hint, UsageError
from rallebench.core.files import read_json, write_json
from rallebench.core.report import ColumnResult, Estimate, RunReport
from rallebench.core.scoring import ScoreColumn
from rallebench.core.types import Note, Reply, Step, ToolCall, UseTool
from rallebench.core.waterfall import QuestionStage, Waterfall
from rallebench.engine.cost import run_cost
from rallebench.engine.metric_choice import DEFAULT_METRICS
from rallebench.engine.score import stored_cost
from rallebench.engine.store import REPORT, RunFolder
from rallebench.tracking import connection, content, database, live
from rallebench.tracking.connection import default_uri, find_tracking_uri, without_credentials
from rallebench.tracking.content import (
    MAX_CELL,
    MAX_LIST,
    MAX_ROWS,
    cut_note,
    per_question,
)
from rallebench.tracking.links import read_link
from rallebench.tracking.live import WRITER, trace_later
from rallebench.tracking.metrics import cost_tags, headlines, metrics_table
from rallebench.tracking.runs import log_run
from rallebench.tracking.trace_store import trace_episode
from rallebench.tracking.traces import span_content
from rallebench.tracking.view import COLUMNS, VIEW_TAG, address_of_run

NewRun = Callable[..., RunFolder]


def read(document: dict[str, Any]) -> RunReport:
    """The report in a document."""
    return RunReport.from_json(document, path=Path(REPORT))


def logged(client: Any, run_id: str, path: str) -> str:
    """The text of an artifact."""
    return Path(client.download_artifacts(run_id, path)).read_text("utf-8")


def traces_of(client: Any, run_id: str) -> list[Any]:
    """The traces that belong to a run."""
    run = client.get_run(run_id)
    return list(
        client.search_traces(locations=[run.info.experiment_id], run_id=run_id, max_results=200)
    )


@pytest.fixture(scope="module")
def run(workspace: Path, client: Any) -> Any:
    """The run folder "shown", with six questions and one failure, as MLflow's run."""
    folder = make_run(workspace / "runs", "shown")
    placed = tuple(QuestionStage(f"q{i}", "right") for i in (0, 1, 3, 4))
    waterfall = Waterfall(placed, corpus_known=True)
    where = {"workspace": workspace, "tracking_uri": default_uri(workspace)}
    page = "http://127.0.0.1:7870/"
    return client.get_run(log_run(folder.path, **where, page=page, waterfall=waterfall))


# params, metrics, tags


def test_params_hold_the_flattened_chain_fingerprints_versions_and_seed(run: Any) -> None:
    expected = {
        "dataset": "tiny-qa",
        "dataset_sha256": "cc" * 32,
        "fingerprint": "0123456789ab",
        "workflow": "chain",
        "limit": "all",
        "seed": "7",
        "batch_size": "20",
        "metrics": "em, recall@5",
        "backends.retriever tiny-bm25": "bm25:aa",
        "backends.llm my-llm": "scripted:bb",
        "versions.python": "3.11",
        "chain.name": "read two",
        "chain.1.kind": "retrieve",
        "chain.1.target": "tiny-bm25",
        "chain.1.k": "2",
        "chain.1.template": "{question}",
        "chain.2.kind": "generate",
        "chain.2.generation.max_tokens": "20",
        "chain.2.generation.stop": '["\\n"]',
    }
    assert {key: run.data.params.get(key) for key in expected} == expected


def test_the_experiment_shows_our_metrics_as_columns_and_a_run_links_back_to_our_page(
    workspace: Path, client: Any, run: Any
) -> None:
    view = json.loads(client.get_experiment(run.info.experiment_id).tags[VIEW_TAG])
    assert view["selectedColumns"][:2] == ["metrics.`em`", "metrics.`f1`"]
    assert {"em", "recall_at_5"} <= run.data.metrics.keys()  # the selected columns exist
    address = "http://127.0.0.1:7870/#/runs/run?id=shown"
    assert f"[Open in rallebench]({address})" in run.data.tags["mlflow.note.content"]
    link = read_link(workspace / "runs" / "shown")
    run_address = f"/#/experiments/{run.info.experiment_id}/runs/{run.info.run_id}"
    assert address_of_run(link) == run_address
    assert address_of_run(None) == ""


def test_a_long_template_is_cut_in_the_param_not_in_the_artifact(client: Any, run: Any) -> None:
    value = run.data.params["chain.2.template"]
    assert len(value) <= content.MAX_VALUE < len(LONG_TEMPLATE)
    assert value.startswith("Answer from the passages.")
    assert value.endswith(
        f"(cut: {len(LONG_TEMPLATE)} characters, whole in the artifact templates/action-2.txt)"
    )
    assert logged(client, run.info.run_id, "templates/action-2.txt") == LONG_TEMPLATE


def figures(client: Any, run_id: str) -> dict[str, list[Any]]:
    """Metric → the other cells of its row in the table of all figures."""
    table = json.loads(logged(client, run_id, "metrics.json"))
    assert table["columns"] == ["metric", "value", "low", "high", "n", "kind"]
    return {row[0]: row[1:] for row in table["data"]}


def test_the_headlines_are_metrics_and_all_figures_with_intervals_are_a_table(
    client: Any, run: Any
) -> None:
    assert run.data.metrics == {
        **{"em": 1.0, "recall_at_5": 1.0, "n": 6, "n_errors": 1, "sec per query": 2.0833},
        **{"total_seconds": 12.5, "total_prompt_tokens": 240, "total_completion_tokens": 18},
        **{"em_low": 0.9, "em_high": 1.1, "em_n": 5},
    }
    table = figures(client, run.info.run_id)
    assert table["recall@5"] == [1.0, 0.9, 1.1, 5, "score"]
    assert table["steps"] == [12.0, None, None, None, "count"]
    assert table["waterfall_right"][0] == 4 and table["waterfall_not_retrieved"][0] == 0
    assert table["waterfall_corpus_known"] == [1.0, None, None, None, "questions by stage"]


DEFAULT = {name: mean(0.5, 10) for name in DEFAULT_METRICS}


def test_at_most_twenty_headlines_stand_for_the_usual_metrics() -> None:
    shown = headlines(read(report(10, 0, **DEFAULT)))
    assert len(shown) <= 20
    assert list(shown)[:10] == [
        *("em", "f1", "accuracy", "rougel", "has_answer", "KILT-f1", "Rprec"),
        *("recall_at_5", "answer_in_context_at_5", "has_answer_all"),
    ]
    assert {column.split("`")[1] for column in COLUMNS if "metrics" in column} <= {
        *shown,
        "cost_total_usd",
    }, "the view of our runs names metrics that are logged"


def test_the_deciding_metric_and_a_suites_own_columns_come_first() -> None:
    own = ColumnResult(ScoreColumn("rejection_rate", "Declined."), Estimate(0.25, n=4), own=True)
    whole = read(report(4, 0, **DEFAULT))
    suite = replace(whole, columns=(*whole.columns, own), headline="f1")
    assert list(headlines(suite))[:3] == ["f1", "rejection_rate", "em"]
    assert headlines(suite)["f1_n"] == 10


def test_every_metric_of_ralle_is_in_the_table_under_its_own_name() -> None:
    downstream = ("accuracy", "em", "f1", "rougel", "has_answer")
    both = [*downstream, *(f"KILT-{name}" for name in downstream), "Rprec", "recall@5"]
    table = metrics_table(read(report(10, 0, **{name: mean(0.5, 10) for name in both})), None)
    assert {*both, "sec per query"} <= {row[0] for row in table.rows}


def test_a_mean_per_question_and_a_total_of_the_same_name_do_not_mix() -> None:
    shown = headlines(read(report(10, 0, seconds=mean(0.3, 10))))
    assert (shown["seconds"], shown["total_seconds"]) == (0.3, 12.5)


def test_a_metric_without_any_score_has_a_count_and_no_value() -> None:
    shown = headlines(read(report(4, 4, em=mean(None, 0))))
    assert shown["em_n"] == 0
    assert "em" not in shown


def test_the_run_has_the_times_of_its_benchmark_and_no_path(workspace: Path, run: Any) -> None:
    assert (run.info.start_time, run.info.end_time) == (STARTED * 1000, (STARTED + 12) * 1000)
    assert (run.info.run_name, run.info.status) == ("shown", "FINISHED")
    assert run.data.tags["rallebench.run"] == "shown"
    values = [*run.data.params.values(), *run.data.tags.values()]
    assert [value for value in values if str(workspace) in value] == []


@pytest.mark.slow
def test_odd_names_are_logged_all_the_same(workspace: Path, client: Any, new_run: NewRun) -> None:
    changed = spec()["spec"]
    changed["settings"]["backends"] = {
        "llm openai:a/b?x=1": "one",
        "llm openai:a_b?x=1": "two",
        "nul": "a\0b",
    }
    run = client.get_run(log_run(new_run(spec=changed).path, workspace=workspace))
    params = {key: value for key, value in run.data.params.items() if key.startswith("backends.")}
    assert params == {
        "backends.llm openai_a_b_x_1": "one",
        "backends.llm openai_a_b_x_1_2": "two",
        "backends.nul": "a\ufffdb",
    }


@pytest.mark.slow
def test_a_run_with_many_params_is_logged(workspace: Path, client: Any, new_run: NewRun) -> None:
    versions = {f"package{i}": str(i) for i in range(230)}
    params = client.get_run(
        log_run(new_run(versions=versions).path, workspace=workspace)
    ).data.params
    assert {f"versions.{name}": value for name, value in versions.items()}.items() <= params.items()


# artifacts


def test_ralles_files_and_tables_are_artifacts(workspace: Path, client: Any, run: Any) -> None:
    run_id = run.info.run_id
    names = {
        item.path for place in ("", "templates") for item in client.list_artifacts(run_id, place)
    }
    assert names == {
        *("output.jsonl", "output_reduced.jsonl", "results.json", "config.json", "prompt.txt"),
        *("run.json", "report.json", "chain.json", "per_question.json", "metrics.json"),
        *("templates", "templates/action-1.txt", "templates/action-2.txt"),
    }
    assert logged(client, run_id, "output.jsonl") == "content of output.jsonl\n"
    assert json.loads(logged(client, run_id, "chain.json")) == spec()["spec"]["settings"]["chain"]
    assert (workspace / "mlartifacts" / "rallebench" / run_id).is_dir()
    table = json.loads(logged(client, run_id, "per_question.json"))
    fixed = ["id", "question", "gold answers", "answer", "error", "gold pages", "pages"]
    assert table["columns"] == [*fixed, "em", "recall@5"]
    gold, pages = ["Ada Lovelace", "Ada"], ["p1", "p2"]
    first = ["q0", "Who is number 0?", gold, "Ada Lovelace", "", [], pages, 1.0, 1.0]
    failed = ["q2", "Who is number 2?", gold, "", FAILURE, [], pages, None, None]
    assert (len(table["data"]), table["data"][0], table["data"][2]) == (6, first, failed)
    shown = [{"path": path, "type": "table"} for path in ("metrics.json", "per_question.json")]
    assert json.loads(run.data.tags["mlflow.loggedArtifacts"]) == shown


def test_a_table_for_a_browser_is_cut_and_says_so() -> None:
    evidence = [{"wikipedia_id": f"g{i}"} for i in range(MAX_LIST + 3)]
    records = [
        {"id": f"q{i}", "input": "x" * 3000, "output": [{"answer": "a", "provenance": evidence}]}
        for i in range(MAX_ROWS + 7)
    ]
    episodes = {str(record["id"]): episode(str(record["id"])) for record in records}
    rows = cast(list[list[Any]], per_question(records, episodes, (), {}).rows)
    assert len(rows) == MAX_ROWS
    assert rows[0][1] == "x" * MAX_CELL + " … (cut: 3,000 characters)"
    assert rows[0][5][-2:] == [f"g{MAX_LIST - 1}", "… (3 more)"]
    assert cut_note(MAX_ROWS + 7).startswith("The table shows the first 5,000 of 5,007 questions")
    assert cut_note(MAX_ROWS) == ""


# the dataset, and where questions are lost


def test_the_dataset_is_the_runs_input(workspace: Path, client: Any, new_run: NewRun) -> None:
    changed = spec()["spec"]
    changed["settings"]["dataset_sha256"] = "dd" * 32
    folder = new_run(spec=changed, dataset_file="/data/tiny-qa.jsonl")
    run_id = log_run(folder.path, workspace=workspace)
    assert log_run(folder.path, workspace=workspace) == run_id
    (given,) = client.get_run(run_id).inputs.dataset_inputs
    assert (given.dataset.name, given.dataset.digest) == ("tiny-qa", "dd" * 18)
    assert json.loads(given.dataset.source) == {"uri": "/data/tiny-qa.jsonl", "sha256": "dd" * 32}
    assert {tag.key: tag.value for tag in given.tags} == {
        "mlflow.data.context": "eval",
        "rallebench.questions": "6",
    }


# traces


def test_a_trace_has_the_chain_at_its_root_and_a_span_per_step_with_its_time_and_cost(
    workspace: Path, client: Any, new_run: NewRun
) -> None:
    folder = new_run(1, (), prices={"my-llm": {"prompt": 1.0, "completion": 2.0}})
    (trace,) = traces_of(client, log_run(folder.path, workspace=workspace))
    root, retriever, llm = spans = trace.data.spans
    assert [span.span_type for span in spans] == ["CHAIN", "RETRIEVER", "LLM"]
    assert [span.parent_id for span in spans] == [None, root.span_id, root.span_id]
    shown = (root.name, root.inputs, root.outputs)
    assert shown == ("read two", "Who is number 0?", "Ada Lovelace")
    assert retriever.inputs == {"query": "question q0?", "k": 2}
    assert retriever.outputs[0] == {
        "page_content": "Passage 1 about q0.",
        "metadata": {"doc_uri": "d1", "page_id": "p1", "title": "Title 1", "rank": 1, "score": 1.0},
        "id": "d1",
    }
    assert retriever.attributes["retriever"] == "tiny-bm25"
    assert llm.inputs["messages"] == [{"role": "user", "content": "prompt of q0"}]
    assert llm.outputs["choices"][0]["message"] == {"role": "assistant", "content": "Ada Lovelace"}
    assert llm.attributes["mlflow.llm.model"] == "my-llm"
    assert (llm.attributes["cached"], retriever.attributes["cached"]) == (True, False)
    tokens = {"input_tokens": 40, "output_tokens": 3, "total_tokens": 43}
    assert trace.info.token_usage == llm.attributes["mlflow.chat.tokenUsage"] == tokens
    # each lasts as long as its step, and the last ends with the answer
    lengths = [(span.end_time_ns - span.start_time_ns) / 1e9 for span in spans]
    assert lengths == pytest.approx([1.75, 0.25, 1.5])
    assert retriever.end_time_ns == llm.start_time_ns
    assert llm.end_time_ns / 1e9 == pytest.approx(STARTED + 2.0)
    # of each step, and of the question
    assert llm.attributes["mlflow.llm.cost"]["total_cost"] == pytest.approx(46e-6)
    assert llm.attributes["tokens_per_second"] == 2.0 and llm.attributes["seconds"] == 1.5
    assert (root.attributes["prompt_tokens"], root.attributes["model_calls"]) == (40, 1)
    assert root.attributes["usd"] == pytest.approx(46e-6)


def test_a_failed_question_is_a_failed_trace(workspace: Path, client: Any, new_run: NewRun) -> None:
    run_id = log_run(new_run(1, (0,)).path, workspace=workspace)
    (trace,) = traces_of(client, run_id)
    assert trace.info.state.value == "ERROR"
    assert trace.data.spans[0].status.description == FAILURE
    assert trace.data.spans[0].events[0].attributes["exception.message"] == FAILURE
    assert [span.span_type for span in trace.data.spans] == ["CHAIN", "RETRIEVER"]
    assert client.get_run(run_id).info.status == "FAILED"


def test_a_sample_has_fifty_questions_and_the_first_ten_failures() -> None:
    asked = [episode(f"q{i}", error="broken" if i % 100 == 99 else "") for i in range(3000)]
    episodes = {one.qid: one for one in asked}
    chosen = content.choose_traced(episodes, seed=3)
    failures = [f"q{i}" for i in range(99, 1000, 100)]
    assert [qid for qid in failures if qid not in chosen] == []
    assert 50 < len(chosen) <= 60
    assert (
        chosen == content.choose_traced(episodes, seed=3) != content.choose_traced(episodes, seed=4)
    )
    assert len(set(chosen)) == len(chosen)
    assert content.choose_traced(episodes, seed=3, most=5000) == list(episodes)


def test_costs_are_in_the_table_dollars_a_metric_and_prices_params(
    workspace: Path, client: Any, new_run: NewRun
) -> None:
    folder = new_run(prices={"my-llm": {"prompt": 1.0, "completion": 2.0}, "other": None})
    scored = folder.report()
    assert scored is not None
    folder.write_report(replace(scored, cost=stored_cost(folder)))
    run = client.get_run(log_run(folder.path, workspace=workspace))
    expected = {
        "cost_total_prompt_tokens": 200,
        "cost_total_retrieval_seconds": 1.5,
        "cost_asked_prompt_tokens": 0,
        "cost_asked_retrievals": 6,
        "cost_failed_seconds": 0.25,
        "cost_question_seconds_p95": 1.75,
        "cost_question_seconds_n": 5,
    }
    table = figures(client, run.info.run_id)
    assert {key: table[key][0] for key in expected} == expected
    assert run.data.metrics["cost_total_usd"] == pytest.approx(5 * 46e-6)
    assert (
        run.data.params["prices.my-llm.completion"] == "2.0"
        and run.data.params["prices.other"] == "unknown"
    )
    assert run.data.tags["rallebench.cost.usd"] == "$0.00023"


def test_dollars_that_nobody_knows_are_no_metric_and_a_tag_says_for_which_model() -> None:
    unknown = run_cost([episode("q0")], [], {})
    costly = replace(read(report(1, 0)), cost=unknown)
    assert "cost_total_usd" not in headlines(costly)
    table = {row[0]: row[1] for row in metrics_table(costly, None).rows}
    assert "cost_total_usd" not in table and table["cost_question_usd_n"] == 0
    assert cost_tags(unknown) == {"rallebench.cost.usd": "unknown for my-llm (no prices)"}
    assert cost_tags(None) == {} and headlines(read(report(1, 0))), (
        "a report of an earlier version has no costs"
    )


def test_a_span_of_a_model_that_counts_nothing_says_unknown() -> None:
    step = replace(episode("q").steps[1], reply=Reply("Ada"))
    attributes = span_content(step, {"my-llm": {"prompt": 1.0, "completion": 2.0}}).attributes
    assert attributes["usd"] == "unknown" and "mlflow.chat.tokenUsage" not in attributes
    assert span_content(episode("q").steps[1]).attributes["usd"] == "unknown", "no prices are known"


def test_tools_and_notes_have_spans_too() -> None:
    tool = span_content(Step(UseTool("python", {"code": "1+1"}), Reply("2")))
    assert (tool.kind, tool.inputs, tool.outputs) == ("TOOL", {"code": "1+1"}, "2")
    note = span_content(Step(Note("as it is"), Reply("as it is")))
    assert (note.kind, note.outputs) == ("PARSER", "as it is")
    asked = episode("q").steps[1]
    called = span_content(
        Step(asked.request, Reply("", tool_calls=(ToolCall("1", "search", "{}"),)))
    )
    function = called.outputs["choices"][0]["message"]["tool_calls"][0]["function"]
    assert function == {"name": "search", "arguments": "{}"}


@pytest.mark.slow
def test_half_a_character_stops_nothing(workspace: Path, client: Any, new_run: NewRun) -> None:
    folder = new_run(1, ())
    append(folder, [episode("q0", "Ad\ud83d"), episode("q0", "Ad\ud83d", "broken \ud83d")])
    run_id = log_run(folder.path, workspace=workspace)
    assert json.loads(logged(client, run_id, "per_question.json"))["data"][0][4] == "broken ?"
    assert traces_of(client, run_id)[0].data.spans[0].status.description == "broken ?"


# again, and elsewhere


def test_logging_again_updates_the_run(workspace: Path, client: Any, new_run: NewRun) -> None:
    folder = new_run()
    first = log_run(folder.path, workspace=workspace)
    traces = {trace.info.trace_id for trace in traces_of(client, first)}
    write_json(folder.path / REPORT, report(6, 1, em=mean(0.5, 5)))
    assert log_run(folder.path, workspace=workspace) == first
    assert client.get_run(first).data.metrics["em"] == 0.5
    assert {trace.info.trace_id for trace in traces_of(client, first)} == traces
    found = client.search_runs(
        [client.get_run(first).info.experiment_id], f"tags.`rallebench.run` = '{folder.name}'"
    )
    assert [run.info.run_id for run in found] == [first]


def test_a_failure_that_was_tried_again_with_success_gets_a_trace_of_its_own(
    workspace: Path, client: Any, new_run: NewRun
) -> None:
    folder = new_run(2, (1,))
    run_id = log_run(folder.path, workspace=workspace)
    append(folder, [episode("q1", "Grace Hopper")], after=10.0)
    log_run(folder.path, workspace=workspace)
    states = sorted(trace.info.state.value for trace in traces_of(client, run_id))
    assert states == ["ERROR", "OK", "OK"]


@pytest.mark.slow
def test_a_changed_param_is_told_in_a_tag(workspace: Path, client: Any, new_run: NewRun) -> None:
    folder = new_run()
    run_id = log_run(folder.path, workspace=workspace)
    write_json(folder.path / "run.json", {**folder.description().to_json(), "batch_size": 5})
    log_run(folder.path, workspace=workspace)
    run = client.get_run(run_id)
    assert (run.data.params["batch_size"], run.data.tags["changed.batch_size"]) == ("20", "5")


def test_the_folder_knows_where_it_went(workspace: Path, client: Any, new_run: NewRun) -> None:
    folder = new_run()
    assert read_link(folder.path) is None
    run_id = log_run(folder.path, workspace=workspace)
    link = read_link(folder.path)
    assert link is not None and (link.run_id, link.experiment) == (run_id, "rallebench")
    assert link.experiment_id == client.get_run(run_id).info.experiment_id
    assert link.tracking_uri == default_uri(workspace)


@pytest.mark.slow
def test_a_run_deleted_in_mlflow_comes_back(workspace: Path, client: Any, new_run: NewRun) -> None:
    folder = new_run()
    first = log_run(folder.path, workspace=workspace)
    client.delete_run(first)
    second = log_run(folder.path, workspace=workspace)
    assert second != first
    assert log_run(folder.path, workspace=workspace) == second
    assert len(traces_of(client, second)) == 6


@pytest.mark.slow
def test_one_folder_in_two_stores_is_two(workspace: Path, tmp_path: Path, new_run: NewRun) -> None:
    folder, other = new_run(), {"workspace": workspace, "tracking_uri": default_uri(tmp_path)}
    here = log_run(folder.path, workspace=workspace)
    there = log_run(folder.path, **other)
    assert here != there
    assert log_run(folder.path, workspace=workspace) == here
    assert log_run(folder.path, **other) == there


@pytest.mark.slow
def test_two_runs_stay_apart(workspace: Path, client: Any) -> None:
    one = make_run(workspace / "runs", "apart one", 3, ())
    two = make_run(workspace / "runs", "apart two", 2, (0,), seed=1)
    ids = [log_run(folder.path, workspace=workspace) for folder in (one, two)]
    assert [client.get_run(i).data.metrics["n"] for i in ids] == [3, 2]
    assert [len(traces_of(client, i)) for i in ids] == [3, 2]


@pytest.mark.slow
def test_a_folder_logged_by_two_threads_at_once_is_one_run(
    workspace: Path, client: Any, new_run: NewRun
) -> None:
    folder, ids = new_run(), set[str]()
    threads = [
        threading.Thread(target=lambda: ids.add(log_run(folder.path, workspace=workspace)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 1


def test_a_stopped_run_is_logged_as_it_is(workspace: Path, client: Any, new_run: NewRun) -> None:
    folder = new_run()
    (folder.path / REPORT).unlink()
    run = client.get_run(log_run(folder.path, workspace=workspace))
    assert (run.info.status, run.data.metrics) == ("KILLED", {})
    assert run.data.tags["rallebench.complete"] == "false"


# secrets


def test_secrets_in_a_run_never_reach_mlflow(workspace: Path, client: Any, new_run: NewRun) -> None:
    changed = spec()["spec"]
    changed["settings"]["endpoint"] = {
        "api_key": "sk-very-secret-1",
        "headers": {"X-Api-Key": "sk-very-secret-2", "Authorization": "Bearer sk-very-secret-3"},
        "base_url": "https://me:sk-very-secret-4@models.example/v1",
        "max_tokens": 12,
        "eos_token": "</s>",
    }
    run_id = log_run(new_run(spec=changed).path, workspace=workspace)
    params = client.get_run(run_id).data.params
    assert params["endpoint.api_key"] == "(hidden)"
    assert params["endpoint.base_url"] == "https://models.example/v1"
    assert (params["endpoint.max_tokens"], params["endpoint.eos_token"]) == ("12", "</s>")
    assert "very-secret" not in json.dumps(params) + logged(client, run_id, "run.json")


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("postgresql+psycopg2://me:p%40ss@db:5432/runs", "postgresql+psycopg2://db:5432/runs"),
        ("https://me:p@ss@mlflow.example/base", "https://mlflow.example/base"),
        ("mysql://db/runs?user=me&password=pass", "mysql://db/runs"),
        ("sqlite:////home/me/mlflow.db", "sqlite:////home/me/mlflow.db"),
    ],
)
def test_a_tracking_uri_is_shown_without_its_credentials(uri: str, shown: str) -> None:
    assert without_credentials(uri) == shown


def test_an_error_text_hides_the_password_of_the_tracking_uri() -> None:
    uri = "postgresql://me:tr%40ubadour@db/runs"
    text = connection.sentence(ValueError(f"cannot reach {uri} as me with tr@ubadour"), uri)
    assert "ubadour" not in text
    assert (
        text
        == "MLflow at postgresql://db/runs failed: cannot reach postgresql://db/runs as me with ***"
    )


# address of the tracking server


def test_the_tracking_uri_is_the_setting_then_the_environment_then_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_tracking_uri(tmp_path) == f"sqlite:///{tmp_path.as_posix()}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mlflow.example")
    assert find_tracking_uri(tmp_path) == "http://mlflow.example"
    assert find_tracking_uri(tmp_path, "sqlite:///other.db") == "sqlite:///other.db"


def test_logging_leaves_mlflows_global_state_alone(workspace: Path, new_run: NewRun) -> None:
    import mlflow

    before = mlflow.get_tracking_uri()
    log_run(new_run().path, workspace=workspace)
    assert mlflow.get_tracking_uri() == before
    assert mlflow.active_run() is None


def test_importing_the_tracking_package_does_not_import_mlflow() -> None:
    code = "import sys, rallebench.tracking.runs, rallebench.tracking.server; print('mlflow' in sys.modules)"
    root = str(Path(connection.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert done.stdout.strip() == "False"


# when MLflow fails


def sentence_of(folder: RunFolder, workspace: Path, uri: str | None = None) -> str:
    """The final sentence of logging, which arrives within seconds and leaves the results intact."""
    started = time.monotonic()
    with pytest.raises(BackendError) as raised:
        log_run(folder.path, workspace=workspace, tracking_uri=uri)
    assert time.monotonic() - started < 10
    assert raised.value.hint == Hint("track", folder.name)
    assert (folder.path / "output.jsonl").exists()
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize(
    ("uri", "sentence"),
    [
        (
            "http://me:hunter22@127.0.0.1:9/",
            "No MLflow server answers at http://127.0.0.1:9/ (ConnectError); start it, or choose",
        ),
        (
            "postgresql://me:hunter22@127.0.0.1:9/runs",
            "No database answers at postgresql://127.0.0.1:9/runs (Connection refused); start it",
        ),
        ("sqlite:///{tmp}/letter.db", "is damaged or no SQLite database"),
        ("sqlite:///{tmp}", "cannot be opened"),
        ("sqlite:///file:{workspace}/mlflow.db?mode=ro&uri=true", "cannot be written to"),
        ("nonsense://here", "nonsense://here"),
    ],
)
def test_a_place_that_cannot_be_used_is_one_sentence_without_the_password(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)  # MLflow turns some addresses into a folder below the current one
    (tmp_path / "letter.db").write_text("This is a letter, not a database. " * 100)
    folder = make_run(workspace / "runs", f"nowhere {tmp_path.name}")
    told = sentence_of(folder, workspace, uri.format(tmp=tmp_path, workspace=workspace))
    assert sentence in told and "hunter22" not in told


def test_a_server_whose_store_hangs_is_one_sentence_soon(
    workspace: Path, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OnlyHealthy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/health":
                time.sleep(1.5)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    monkeypatch.setattr(connection, "ANSWER_PATIENCE", 0.3)
    with ThreadingHTTPServer(("127.0.0.1", 0), OnlyHealthy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        started = time.monotonic()
        said = sentence_of(new_run(), workspace, f"http://127.0.0.1:{server.server_port}")
        assert time.monotonic() - started < 1.4
        server.shutdown()
    assert "(ReadTimeout); start it, or choose another tracking URI" in said


def test_all_tries_of_a_server_that_stops_answering_end_before_two_minutes() -> None:
    connection.import_mlflow()
    from mlflow import environment_variables as mlflow_settings

    retries = mlflow_settings.MLFLOW_HTTP_REQUEST_MAX_RETRIES.get()
    pauses = sum(
        mlflow_settings.MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR.get() * 2**i for i in range(retries)
    )
    assert (retries + 1) * mlflow_settings.MLFLOW_HTTP_REQUEST_TIMEOUT.get() + pauses < 120


def test_a_locked_database_is_one_sentence(
    workspace: Path, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = new_run()
    monkeypatch.setattr(database, "LOCK_PATIENCE", 0.2)
    other = sqlite3.connect(workspace / "mlflow.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    try:
        assert "mlflow.db is locked by another program" in sentence_of(folder, workspace)
    finally:
        other.close()
    log_run(folder.path, workspace=workspace)


def test_a_database_of_another_mlflow_version_is_one_sentence(
    workspace: Path, client: Any, new_run: NewRun, tmp_path: Path
) -> None:
    newer = tmp_path / "newer.db"
    source, copy = sqlite3.connect(workspace / "mlflow.db"), sqlite3.connect(newer)
    source.backup(copy)
    copy.execute("UPDATE alembic_version SET version_num = 'ffffffffffff'")
    copy.commit()
    source.close()
    copy.close()
    said = sentence_of(new_run(), workspace, f"sqlite:///{newer}")
    assert "was made by another version of MLflow" in said and "mlflow db upgrade" in said


def test_a_database_of_another_program_is_refused_and_left_as_it_was(
    workspace: Path, new_run: NewRun, tmp_path: Path
) -> None:
    path = tmp_path / "memo.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE memo (key TEXT)")
    with pytest.raises(UsageError, match="is a database of another program, not MLflow's"):
        log_run(new_run().path, workspace=workspace, tracking_uri=f"sqlite:///{path}")
    tables = sqlite3.connect(path).execute("SELECT name FROM sqlite_master").fetchall()
    assert tables == [("memo",)]


def test_a_workspace_that_no_address_can_hold_is_refused(tmp_path: Path, new_run: NewRun) -> None:
    with pytest.raises(UsageError, match="Choose another workspace, or give a tracking URI"):
        log_run(new_run().path, workspace=tmp_path / "50% off")


@pytest.mark.slow
def test_a_deleted_experiment_is_one_sentence(tmp_path: Path, new_run: NewRun) -> None:
    client = connection.connect(default_uri(tmp_path))
    client.delete_experiment(client.create_experiment("rallebench"))
    with pytest.raises(BackendError, match="The MLflow experiment 'rallebench' was deleted; rest"):
        log_run(new_run().path, workspace=tmp_path)


def test_a_folder_without_a_run_is_refused(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match=r"run\.json does not exist"):
        log_run(tmp_path, workspace=workspace)


# live traces


def test_an_episode_of_the_develop_tab_is_a_trace_of_its_own(workspace: Path, client: Any) -> None:
    said = trace_episode(episode("dev"), "Who?", workspace=workspace, source="develop", name="mine")
    trace = client.get_trace(said)
    assert (trace.info.tags["rallebench.source"], trace.data.spans[0].name) == ("develop", "mine")
    assert abs(trace.data.spans[0].end_time_ns / 1e9 - time.time()) < 60


@pytest.mark.slow
def test_a_live_trace_is_handed_on_at_once_and_written_later(workspace: Path, client: Any) -> None:
    started = time.monotonic()
    where = {"workspace": workspace, "source": "chat", "session": "talk-1"}
    for turn in ("one", "two"):
        trace_later(episode(turn), turn, **where)
    assert time.monotonic() - started < 0.1
    assert WRITER.flush(30)
    experiment = client.get_experiment_by_name("rallebench").experiment_id
    chat = "tag.`rallebench.source` = 'chat'"
    traces = client.search_traces(locations=[experiment], filter_string=chat)
    sessions = [trace.info.trace_metadata["mlflow.trace.session"] for trace in traces]
    assert sessions == ["talk-1", "talk-1"]


def test_a_live_trace_that_fails_is_told(workspace: Path, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        trace_later(episode("x"), "x", workspace=workspace, tracking_uri="http://127.0.0.1:9")
    assert WRITER.flush(30)
    assert WRITER.last_error.startswith("No MLflow server answers at http://127.0.0.1:9")
    assert caplog.messages.count(WRITER.last_error) == 1
    assert "Traceback" not in caplog.text


@pytest.mark.slow
def test_when_too_many_live_traces_wait_new_ones_are_left_out_and_told() -> None:
    writer, gate = live.TraceWriter(), threading.Event()
    for _ in range(live.MAX_WAITING + 2):
        writer.add(gate.wait)
    assert writer.last_error == "MLflow is too slow: a trace was left out."
    gate.set()
    assert writer.flush(10)


def test_a_damaged_link_counts_as_none(new_run: NewRun) -> None:
    folder = new_run()
    (folder.path / "mlflow.json").write_text("[]")
    assert read_link(folder.path) is None
    assert read_json(folder.path / "mlflow.json") == []
