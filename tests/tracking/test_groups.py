"""Several runs below one parent: found again, not duplicated, with the verdict and a table of the variants."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from run_folders import make_run
from small_workspace import CommandLine, make_workspace

from rallebench.core.errors import BackendError
from rallebench.engine.store import RunFolder
from rallebench.tracking.connection import default_uri
from rallebench.tracking.groups import Group, log_group
from rallebench.tracking.runs import log_run

ROWS = [
    {"variant": "k=2", "em": 1.0, "error": None},
    {"variant": "k=9", "em": None, "error": "the index is gone"},
]


@pytest.fixture
def runs(workspace: Path, request: pytest.FixtureRequest) -> list[RunFolder]:
    """Two runs of two questions."""
    name = request.node.name[:80]
    return [make_run(workspace / "runs", f"{name} {one}", 2, ()) for one in ("a", "b")]


def group(runs: list[RunFolder], **changes: Any) -> Group:
    """A sweep of these runs, the last the best."""
    more = {"best": runs[-1].name, "verdict": "Best: k=2.", "rows": ROWS, **changes}
    return Group("ks", "sweep", [run.path for run in runs], **more)


def put_together(group: Group, workspace: Path, **where: Any) -> str:
    """The id of the group's parent; runs that are not logged yet are."""
    return log_group(
        group,
        lambda path: log_run(path, workspace=workspace, **where),
        workspace=workspace,
        **where,
    )


def test_the_parent_has_the_verdict_the_bests_metrics_and_a_table_and_the_runs_stand_below_it(
    workspace: Path, client: Any, runs: list[RunFolder]
) -> None:
    best = client.get_run(log_run(runs[1].path, workspace=workspace))
    parent = client.get_run(put_together(group(runs), workspace))
    assert (parent.info.run_name, parent.info.status) == ("ks", "FINISHED")
    assert parent.data.metrics == best.data.metrics != {}
    assert (
        parent.data.tags["mlflow.note.content"]
        == parent.data.tags["rallebench.verdict"]
        == "Best: k=2."
    )
    table = json.loads(
        Path(client.download_artifacts(parent.info.run_id, "variants.json")).read_text("utf-8")
    )
    assert table == {
        "columns": ["variant", "em", "error"],
        "data": [["k=2", 1.0, None], ["k=9", None, "the index is gone"]],
    }
    assert json.loads(parent.data.tags["mlflow.loggedArtifacts"]) == [
        {"path": "variants.json", "type": "table"}
    ]
    below = client.search_runs(
        [parent.info.experiment_id], f"tags.mlflow.parentRunId = '{parent.info.run_id}'"
    )
    assert {run.info.run_name for run in below} == {run.name for run in runs}


def test_a_group_updates_its_parent(workspace: Path, client: Any, runs: list[RunFolder]) -> None:
    first = put_together(group(runs[:1]), workspace)
    assert put_together(group(runs, verdict="Best: k=3."), workspace) == first
    assert client.get_run(first).data.tags["rallebench.verdict"] == "Best: k=3."
    client.delete_run(first)
    assert put_together(group(runs), workspace) != first


def test_a_run_of_a_group_is_named_by_its_difference_unless_somebody_named_it_in_mlflow(
    workspace: Path, client: Any, runs: list[RunFolder]
) -> None:
    ids = [log_run(run.path, workspace=workspace) for run in runs]
    client.update_run(ids[1], name="my favourite")
    labels = {runs[0].name: "k 2", runs[1].name: "k 9"}
    for _ in range(2):
        put_together(group(runs, labels=labels), workspace)
        log_run(runs[0].path, workspace=workspace)
        assert [client.get_run(one).info.run_name for one in ids] == ["k 2 · ks", "my favourite"]


def test_a_group_that_cannot_be_sent_is_a_sentence(workspace: Path, runs: list[RunFolder]) -> None:
    with pytest.raises(BackendError, match="No MLflow server answers at") as raised:
        put_together(group(runs), workspace, tracking_uri="http://127.0.0.1:9")
    assert "\n" not in str(raised.value)


# from the command line


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with models, chains and questions."""
    return make_workspace(tmp_path_factory.mktemp("groups") / "workspace")


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], place: Path) -> CommandLine:
    """The command line."""
    return CommandLine(capfd, place)


def below(client: Any, parent: Any) -> set[str]:
    """The names of the runs below a run."""
    found = client.search_runs(
        [parent.info.experiment_id], f"tags.mlflow.parentRunId = '{parent.info.run_id}'"
    )
    return {run.info.run_name for run in found}


def parent_named(client: Any, name: str) -> Any:
    """The only parent run of a name."""
    experiment = client.get_experiment_by_name("rallebench").experiment_id
    (found,) = client.search_runs([experiment], f"tags.`rallebench.group` = '{name}'")
    return found


@pytest.mark.slow
def test_a_sweep_is_one_run_with_its_variants_below_it_and_can_be_sent_again(
    cli: CommandLine, place: Path, workspace: Path, client: Any
) -> None:
    uri = ("--tracking-uri", default_uri(workspace))
    asked = shlex.split(
        "--chain closed --dataset tiny-qa --name llms --vary llm=titan,echo,misspelt"
    )
    ran = cli("sweep", *asked, *uri, "--json")
    assert ran.code == 1 and "1 of 3 variants failed: llm=misspelt." in ran.last
    swept = json.loads(ran.out)
    parent = parent_named(client, "llms")
    assert below(client, parent) == {"model titan · llms", "model echo · llms"}
    assert parent.data.tags["rallebench.verdict"] == swept["verdict"]
    assert parent.data.metrics["em"] == 0.125
    table = json.loads(
        Path(client.download_artifacts(parent.info.run_id, "variants.json")).read_text("utf-8")
    )
    rows = [dict(zip(table["columns"], row)) for row in table["data"]]
    assert [(row["variant"], row["em"]) for row in rows[:2]] == [
        ("llm=titan", 0.125),
        ("llm=echo", 0.0),
    ]
    assert rows[2]["variant"] == "llm=misspelt" and "dealy" in rows[2]["error"]
    assert cli.json("track", "llms", *uri)["mlflow_run_id"] == parent.info.run_id


@pytest.mark.slow
def test_a_sweep_whose_mlflow_is_gone_is_complete_and_says_how_to_send_it(cli: CommandLine) -> None:
    asked = shlex.split("--chain closed --dataset tiny-qa --name alone --vary llm=titan,echo")
    ran = cli("sweep", *asked, "--tracking-uri", "http://127.0.0.1:9", "--json")
    assert ran.code == 0 and len(ran.json["variants"]) == 2
    assert "Warning: The sweep 'alone' is complete but was not put together in MLflow" in ran.err
    assert ran.last.endswith("It can be logged later.")
    assert cli("track", "alone", "--model").code == 2, "a sweep is not a model"


@pytest.mark.slow
def test_the_chains_of_a_folder_are_one_run_with_theirs_below_it(
    cli: CommandLine, place: Path, workspace: Path, client: Any
) -> None:
    asked = ("--dataset", "tiny-qa", "--name", "night", "--tracking-uri", default_uri(workspace))
    cli.json("run", "--chain", place / "chains", *asked)
    parent = parent_named(client, "night")
    assert below(client, parent) == {"closed · night", "read · night", "title · night"}
    assert (parent.data.tags["rallebench.kind"], parent.data.tags["rallebench.best"]) == (
        "batch",
        "night-title",
    )
    uri = ("--tracking-uri", default_uri(workspace))
    assert cli.json("track", "night", *uri)["mlflow_run_id"] == parent.info.run_id
