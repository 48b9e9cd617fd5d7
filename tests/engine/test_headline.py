"""A chain that only retrieves is judged by its retrieval, and a closed book by its answers, wherever runs are ranked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_workspace import (
    RECORDS,
    CommandLine,
    chain,
    generate,
    make_workspace,
    retrieve,
    write_lines,
)

from rallebench.chains.saved import chain_from_json
from rallebench.core.report import Estimate, RunReport
from rallebench.engine.headline import beyond_depth, deciding_metric, default_metrics
from rallebench.engine.metric_choice import DEFAULT_METRICS
from rallebench.engine.store import RunFolder
from rallebench.services.workbench import Workbench
from rallebench.views import run_list, run_questions, run_views

ANSWERS = ("em", "f1", "rougel", "accuracy", "has_answer", "has_answer_all", "KILT-em")
CHAINS = (
    chain("search", retrieve(k=3)),
    chain("blind", retrieve("Danube", k=3)),
    chain("first", retrieve(k=1)),
    chain("passed-on", retrieve(k=3), {"kind": "identity", "template": "{response[0]}"}),
    chain("reader", retrieve(k=3), generate()),
)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_workspace(tmp_path_factory.mktemp("retrieval") / "workspace")
    for content in CHAINS:
        (folder / "chains" / f"{content['name']}.json").write_text(json.dumps(content))
    graded = json.loads(json.dumps(RECORDS))
    for record in graded:
        record["output"][0]["provenance"][0]["relevance"] = 2
    write_lines(folder / "datasets" / "graded.jsonl", graded)
    return folder


def report_of(cli: CommandLine, name: str, *more: str, chain: str = "search") -> RunReport:
    """The report of a run, made if it does not exist."""
    if not (cli.workspace / "runs" / name).exists():
        words = ("--chain", chain, "--name", name, "--dataset", "tiny-qa", *more)
        assert cli("run --no-mlflow", *words).code == 0
    return RunFolder.open(cli.workspace / "runs", name).report() or RunReport()


@pytest.mark.parametrize("name", ["search", "passed-on"])
def test_a_chain_that_generates_nothing_has_no_score_of_an_answer_and_says_why(
    cli: CommandLine, name: str
) -> None:
    report = report_of(cli, name, chain=name)
    for metric in ANSWERS:
        assert report.metrics[metric] == Estimate(None), metric
        assert report.not_scored[metric].startswith("no answer is produced")
    assert report.metrics["Rprec"].n == report.metrics["seconds"].n == 8
    lines = RunFolder.open(cli.workspace / "runs", name).scores("em")
    assert {score.value for score in lines} == {None}


def test_the_table_of_a_retrieval_has_ndcg_mrr_and_map_and_no_row_without_a_score(
    cli: CommandLine,
) -> None:
    ran = cli("run --no-mlflow --chain search --name table --dataset tiny-qa")
    rows = {line.split()[0] for line in ran.out.splitlines() if line.startswith("  ")}
    assert {"ndcg@3", "mrr", "map", "Rprec", "recall@1", "recall@3"} <= rows
    assert not rows & {*ANSWERS, "recall@5", "recall@10", "ndcg@10", "precision@5"}
    assert "Not scored: accuracy, em, f1" in ran.out


@pytest.mark.parametrize("name", ["first", "title"])
def test_nothing_is_printed_beyond_the_retrieved_depth(cli: CommandLine, name: str) -> None:
    words = ("--chain", name, "--name", f"depth {name}", "--dataset", "tiny-qa")
    ran = cli("run --no-mlflow --metrics recall@1,recall@10,ndcg@5,answer_in_context@5", *words)
    rows = [line.split()[0] for line in ran.out.splitlines() if line.startswith("  ")]
    assert "recall@1" in rows
    assert not {"recall@10", "ndcg@5", "answer_in_context@5"} & set(rows)
    assert "Not printed: recall@10, ndcg@5, answer_in_context@5 (only 1 passage is" in ran.out


def test_a_closed_book_has_no_score_of_a_retrieval_and_its_answers_count(cli: CommandLine) -> None:
    report = report_of(cli, "closed", chain="closed")
    assert report.metrics["em"].value == 1 / 8
    for metric in ("Rprec", "recall@5", "precision@1", "KILT-em", "answer_in_context@5"):
        assert report.metrics[metric].n == 0, metric
        assert report.not_scored[metric] == "nothing is retrieved"


def test_runs_that_only_retrieve_are_compared_by_r_precision(cli: CommandLine) -> None:
    for name in ("search", "blind"):
        report_of(cli, name, chain=name)
    compared = cli.json("compare", "search", "blind")
    assert compared["metric"] == "Rprec" and compared["losses"] > 0
    assert "Rprec on 8 questions" in cli("compare", "search", "blind").out
    report_of(cli, "reader", chain="reader")
    assert cli.json("compare", "reader", "search")["metric"] == "Rprec"


def test_graded_gold_is_decided_by_ndcg(cli: CommandLine) -> None:
    for name in ("search", "blind"):
        report_of(cli, f"graded {name}", "--dataset", "graded", chain=name)
    assert cli.json("compare", "graded search", "graded blind")["metric"] == "ndcg@3"
    row = run_list.run_row(Workbench(cli.workspace).workspace, "graded search")
    assert row.metric == "ndcg@3" and row.mean and row.mean.n == 8


def test_a_sweep_of_a_retrieval_names_its_best_by_the_retrieval(cli: CommandLine) -> None:
    words = ("--chain", "search", "--dataset", "tiny-qa", "--name", "queries")
    vary = ("--vary", "1.template={question},Danube")
    value = cli.json("sweep --no-mlflow", *words, *vary)
    assert value["metric"] == "Rprec"
    best, other = (row["metrics"]["Rprec"]["value"] for row in value["variants"])
    assert best > other and value["verdict"].startswith("Best: ")


def test_baselines_of_a_retrieval_are_compared_by_the_retrieval(cli: CommandLine) -> None:
    report_of(cli, "search")
    value = cli.json("baselines --no-mlflow", "search")
    assert "em" not in value["metrics"] and "closed-book" not in value["metrics"]["Rprec"]
    row = value["metrics"]["Rprec"]
    assert row["oracle"]["value"] == 1.0 and row["run"]["value"] > row["random"]["value"]


def test_the_list_tiles_and_verdicts_of_a_retrieval_show_its_retrieval(cli: CommandLine) -> None:
    report = report_of(cli, "search")
    bench = Workbench(cli.workspace)
    row = run_list.run_row(bench.workspace, "search")
    assert row.metric == "Rprec" and row.mean == report.metrics["Rprec"]
    labels = [tile.label for tile in run_views.tiles(report, chain_from_json(CHAINS[0]))]
    assert labels[0] == "R-precision" and not {"EM", "F1"} & {*labels}
    run = bench.runs.open("search")
    run_questions.read_stages(bench.workspace, run)
    stages = {question.stage for question in run_questions.questions(bench.workspace, run)}
    assert stages <= {"retrieved", "not_retrieved"} and "retrieved" in stages


def test_an_answer_decides_before_a_retrieval() -> None:
    assert deciding_metric(["Rprec", "ndcg@10", "f1"], graded=True) == "f1"
    assert deciding_metric(["recall@5", "recall@20", "ndcg@10"]) == "recall@20"
    assert deciding_metric(["seconds"]) == ""


def test_a_chain_that_answers_keeps_the_default_metrics() -> None:
    reader = chain_from_json(CHAINS[-1])
    assert default_metrics(DEFAULT_METRICS, reader) == DEFAULT_METRICS
    assert default_metrics(DEFAULT_METRICS, None) == DEFAULT_METRICS
    assert beyond_depth(["recall@1", "recall@5"], reader) == ["recall@5"]
    assert beyond_depth(["recall@5"], None) == []
