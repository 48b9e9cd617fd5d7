"""A suite in MLflow: one run with the runs of its parts below it, even if it is sent later."""

from __future__ import annotations

import pytest
from small_suites import small_suites  # noqa: F401 - a fixture
from small_workspace import CommandLine

from rallebench.tracking.connection import connect, default_uri

pytestmark = [pytest.mark.usefixtures("small_suites"), pytest.mark.slow]


def test_the_parts_of_a_suite_stand_below_one_run_and_sending_it_again_makes_no_other(
    cli: CommandLine,
) -> None:
    cli.json("suite", "small-judged", "--llm", "titan", "--name", "n", "--limit", "2")
    client = connect(default_uri(cli.workspace))
    (experiment,) = [one for one in client.search_experiments() if one.name == "rallebench"]
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert len(runs) == 3 and runs["n"].data.tags["rallebench.kind"] == "suite"
    assert all(
        run.data.tags["mlflow.parentRunId"] == runs["n"].info.run_id
        for name, run in runs.items()
        if name != "n"
    )
    assert runs["time 1 · n"].data.metrics["right"] == 0.5
    expected = {"report.json", "variants.json"}
    assert {one.path for one in client.list_artifacts(runs["n"].info.run_id)} == expected
    assert cli.json("track", "n")["mlflow_run_id"] == runs["n"].info.run_id
